"""The lock of a run folder: two trainings in one folder would overwrite each other's files."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from presage.errors import ConfigError, InputError, reason

__all__ = ["RunLock"]


class RunLock:
    """Locks a run folder for this process. The operating system releases the lock of a process that ends or dies."""

    def __init__(self, folder: Path) -> None:
        self._lock: FileLock | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / ".lock", thread_local=False)
            lock.acquire(timeout=0)
            self._lock = lock
        except Timeout as error:
            raise ConfigError(
                f"another process is training in {folder}; wait until it ends, or choose another folder"
            ) from error
        except NotImplementedError:  # a file system without locks
            return
        except OSError as error:
            why = "it is not a folder" if folder.is_file() else reason(error)
            raise InputError(f"cannot train in {folder}: {why}") from error

    def release(self) -> None:
        """Release the lock. May be called more than once."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
