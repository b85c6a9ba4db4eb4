"""What the server remembers of each open page. Bounded in number and bytes, forgotten after a while, never on disk."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from presage.errors import DataError
from presage.graphs.ops import is_acyclic
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.types import Dataset
from presage.web.sources import Source, Upload

if TYPE_CHECKING:
    from presage.web.jobs import Job

__all__ = ["Answer", "Session", "Sessions", "with_knowledge"]

_CYCLE = "the edges above 0.5 form a cycle"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A result before any background knowledge, the data it is about, and how it was asked for."""

    number: int
    result: Result
    dataset: Dataset
    source: Source
    asked: dict[str, Any] = field(default_factory=dict)
    """The keyword arguments of `discover` that differ from their defaults."""


@dataclass
class Session:
    """One open page."""

    key: str
    used: float
    source: Source | None = None
    mask: Upload | None = None
    job: Job | None = None
    answer: Answer | None = None
    count: int = 0

    @property
    def size(self) -> int:
        """Bytes it keeps, roughly."""
        total = sum(part.size for part in (self.source, self.mask) if part is not None)
        if self.answer is not None:
            total += 10 * self.answer.dataset.x.size + 8 * self.answer.result.matrix.size
        return total


class Sessions:
    """All open pages. The one that was used longest ago is forgotten first."""

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
        """A new page."""
        with self._lock:
            session = Session(secrets.token_urlsafe(16), self._clock())
            self._sessions[session.key] = session
            self.tidy()
            return session

    def get(self, key: str | None) -> Session:
        """The page of a key; a sentence if it was forgotten."""
        with self._lock:
            self.tidy()
            session = self._sessions.get(key or "")
            if session is None:
                raise DataError("this page was left alone for too long and its data was forgotten; reload it")
            session.used = self._clock()
            return session

    def tidy(self) -> None:
        """Forget what is too old or too much; pages with a run going on are the last to go."""
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


def with_knowledge(result: Result, known: Knowledge | None) -> Result:
    """The answer given what is known; no network runs. Contradictions raise `ConfigError`."""
    if not known:
        return result
    matrix = known.apply(result.matrix, result.names, result.acyclic_model)
    warnings = [text for text in result.warnings if not text.startswith(_CYCLE) or not is_acyclic(matrix > 0.5)]
    return replace(result, matrix=matrix, known=known, warnings=warnings)
