"""The state of each open page: in memory only, limited in number, bytes and time."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from presage.errors import ConfigError, DataError
from presage.inference.result import Result
from presage.types import Dataset
from presage.web.sources import Source, Upload

if TYPE_CHECKING:
    from presage.web.jobs import Job

__all__ = ["Analysis", "Run", "Session", "Sessions"]

_KEY = re.compile(r"[A-Za-z0-9_-]{22,64}")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of `discover`, without background knowledge."""

    number: int
    dataset: Dataset
    source: Source
    arguments: dict[str, Any] = field(default_factory=dict)
    """The keyword arguments of `discover` that differ from their defaults."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The values of the controls; see `data_callbacks.settings_of`."""
    started: float = field(default_factory=time.time)
    is_example: bool = False
    """Whether it is the answer that an empty page shows."""


@dataclass(frozen=True, kw_only=True)
class Analysis(Run):
    """A run that is done, with its result."""

    result: Result
    seconds: float = 0.0
    """Duration of the run."""


@dataclass
class Session:
    """One open page."""

    key: str
    used: float
    source: Source | None = None
    mask: Upload | None = None
    roles: dict[str, str] = field(default_factory=dict)
    """Roles of columns that differ from the guess."""
    choice: str | None = None
    """The choice of interventions, once the page has one for this source."""
    job: Job | None = None
    analysis: Analysis | None = None
    """The last run that is done."""
    knowledge: dict[str, Any] = field(default_factory=dict)
    """Background knowledge as JSON, for a page that is loaded again."""
    count: int = 0

    def replace_source(self, source: Source | None) -> None:
        """Use other data, or none; choices for the former data are dropped."""
        self.source, self.mask, self.roles, self.choice = source, None, {}, None

    @property
    def has_answer(self) -> bool:
        """Whether the user has a result of their own here."""
        return self.analysis is not None and not self.analysis.is_example

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        total = sum(part.size for part in (self.source, self.mask) if part is not None)
        if self.analysis is not None and not self.analysis.is_example:  # the example is shared
            total += 10 * self.analysis.dataset.x.size + 8 * self.analysis.dataset.d**2
        return total


class Sessions:
    """All open pages. A page makes its own key and keeps it, so that loading it again brings its state back.

    Sessions without a result are removed first, and among them the least recently used one.
    """

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

    def open(self, key: Any) -> Session:
        """The session of a key, which is started if there is none; raises `ConfigError` if the key can be guessed."""
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ConfigError("this page has no valid session; reload it")
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = Session(key, self._clock())
                self.expire(keep=key)
            return self.get(key)

    def find(self, key: Any) -> Session | None:
        """The session of a key, if there is one; the time of last use stays as it is."""
        with self._lock:
            self.expire()
            return self._sessions.get(key) if isinstance(key, str) else None

    def get(self, key: Any) -> Session:
        """The session of a key; raises `DataError` if it has expired."""
        with self._lock:
            session = self._sessions.get(key) if isinstance(key, str) else None
            if session is not None and self._clock() - session.used <= self.seconds:
                session.used = self._clock()
            self.expire()
            if session is None or session.key not in self._sessions:
                raise DataError("this page was inactive for too long and its data has been deleted; reload it")
            return session

    def expire(self, keep: str = "") -> None:
        """Remove sessions that are too old, too many or too large.

        Those with a running job or a result go last, and after them the one to keep, which has just been started.
        """
        with self._lock:
            now = self._clock()
            for session in sorted(
                self._sessions.values(), key=lambda s: (s.key == keep, _busy(s), s.has_answer, s.used)
            ):
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
