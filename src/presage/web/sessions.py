"""The state of each open page: in memory only, limited in number, bytes and time."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from presage.errors import DataError
from presage.inference.result import Result
from presage.types import Dataset
from presage.web.sources import Source, Upload

if TYPE_CHECKING:
    from presage.web.jobs import Job

__all__ = ["Analysis", "Run", "Session", "Sessions"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of `discover`, without background knowledge."""

    number: int
    dataset: Dataset
    source: Source
    arguments: dict[str, Any] = field(default_factory=dict)
    """The keyword arguments of `discover` that differ from their defaults."""


@dataclass(frozen=True, kw_only=True)
class Analysis(Run):
    """A run that is done, with its result."""

    result: Result


@dataclass
class Session:
    """One open page."""

    key: str
    used: float
    source: Source | None = None
    mask: Upload | None = None
    job: Job | None = None
    analysis: Analysis | None = None
    """The last run that is done."""
    count: int = 0

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        total = sum(part.size for part in (self.source, self.mask) if part is not None)
        if self.analysis is not None:
            total += 10 * self.analysis.dataset.x.size + 8 * self.analysis.dataset.d**2
        return total


class Sessions:
    """All open pages. The least recently used one is removed first."""

    def __init__(
        self,
        *,
        limit: int = 64,
        bytes_limit: int = 2 << 30,
        minutes: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit, self.bytes_limit, self.seconds = limit, bytes_limit, 60.0 * minutes
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._lock = threading.RLock()

    def open(self) -> Session:
        """Start a session for a new page."""
        with self._lock:
            session = Session(secrets.token_urlsafe(16), self._clock())
            self._sessions[session.key] = session
            self.expire()
            return session

    def get(self, key: str | None) -> Session:
        """The session of a key; raises `DataError` if it has expired."""
        with self._lock:
            self.expire()
            session = self._sessions.get(key or "")
            if session is None:
                raise DataError("this page was inactive for too long and its data has been deleted; reload it")
            session.used = self._clock()
            return session

    def expire(self) -> None:
        """Remove sessions that are too old, too many or too large; those with a running job last."""
        with self._lock:
            now = self._clock()
            for session in sorted(self._sessions.values(), key=lambda s: (_busy(s), s.used)):
                old = now - session.used > self.seconds
                many = len(self._sessions) > self.limit
                heavy = len(self._sessions) > 1 and sum(s.size for s in self._sessions.values()) > self.bytes_limit
                if old or many or heavy:
                    if session.job is not None:
                        session.job.cancel()
                    del self._sessions[session.key]

    def __len__(self) -> int:
        return len(self._sessions)


def _busy(session: Session) -> bool:
    return session.job is not None and not session.job.over
