"""Objects that all callbacks share, and the answer that an empty page shows."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from presage.errors import ConfigError
from presage.inference.hub import DEFAULT_MODEL
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.web.jobs import Job, Runner
from presage.web.layout import Offer
from presage.web.reading import Reader
from presage.web.sessions import Analysis, Run, Sessions
from presage.web.sources import Example

__all__ = ["Context"]

_EXAMPLE = "rff"
_KEPT_RESULTS = 8


@dataclass(kw_only=True)
class Context:
    """Objects that all callbacks share. limit: largest upload in bytes."""

    sessions: Sessions
    runner: Runner
    reader: Reader
    models: Sequence[Offer]
    limit: int
    _example: Job | Analysis | None = None
    _given: OrderedDict[tuple[int, str], tuple[Analysis, Result]] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)

    @property
    def offered(self) -> set[str]:
        """Names of the models that may be asked for."""
        return {offer.name for offer in self.models}

    def example(self) -> Job | Analysis:
        """The answer about a bundled example, the same for all pages; the job while it is computed."""
        with self._lock:
            if self._example is None:
                source = Example(_EXAMPLE)
                inputs = source.inputs()
                name = next((offer.name for offer in self.models if offer.kind == "real"), "")
                job = self.runner.submit({"inputs": inputs, "model": name, "counts": None})
                arguments = {} if name == DEFAULT_MODEL else {"model": name}
                job.pending = Run(number=0, dataset=inputs.dataset, source=source, arguments=arguments, is_example=True)
                self._example = job
            job_or_answer = self._example
            if isinstance(job_or_answer, Job) and job_or_answer.result is not None:
                job = job_or_answer
                assert job.result is not None
                self._example = Analysis(**vars(job.pending), result=job.result, seconds=job.seconds)
            return self._example

    def result_given(self, analysis: Analysis, known: Knowledge) -> Result:
        """The result under background knowledge. The most recent ones are cached with their sampled graphs."""
        if not known:
            return analysis.result
        key = (id(analysis), json.dumps(known.to_json(), sort_keys=True))
        with self._lock:
            if key not in self._given:
                self._given[key] = (analysis, analysis.result.with_knowledge(known))
            self._given.move_to_end(key)
            while len(self._given) > _KEPT_RESULTS:
                self._given.popitem(last=False)
            return self._given[key][1]

    def analysis(self, key: Any, answer: Any) -> Analysis:
        """The result that a page shows. answer: what the page says it is, {"example": True} or {"number": ...}."""
        if isinstance(answer, dict) and answer.get("example"):
            example = self.example()
            if isinstance(example, Analysis):
                return example
            raise ConfigError("the example is still being computed; reload the page in a moment")
        found = self.sessions.get(key).analysis
        if found is None:
            raise ConfigError("there is no result yet; run the analysis first")
        return found
