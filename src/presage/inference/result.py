"""`Result`: the estimates of a model for a table, with graphs, samples, exports and reports. Row causes column."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import presage
from presage.errors import ConfigError, reason
from presage.files import atomic_write, parse_json, read_bytes
from presage.graphs.acyclic import best_acyclic, log_odds
from presage.graphs.cpdag import cpdag
from presage.graphs.dot import dot, plain_dot
from presage.graphs.graphml import graphml
from presage.graphs.ops import is_acyclic
from presage.inference.experiments import experiment_frame
from presage.inference.inputs.names import did_you_mean
from presage.inference.knowledge import Knowledge
from presage.inference.moments import Moments
from presage.inference.total_effects import TotalEffect, Units, effect_frame, total_effect
from presage.ood.check import OODReport
from presage.rng import Stream, generator
from presage.types import Dataset

if TYPE_CHECKING:
    import anndata
    import networkx as nx
    import pandas as pd
    from matplotlib.figure import Figure

    from presage.report.card import ModelCard

__all__ = ["Result", "check_threshold"]

_INTERVAL = 0.9
"""Probability of the intervals of effects."""
_ESTIMATES = ("hidden_causes", "effect", "effect_scale", "stability")
_TRIES = 200
"""Rejected draws per acyclic sample before edges that close cycles are removed instead."""
_GRAPHS = 500
"""Sampled acyclic graphs behind total effects and next experiments."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Edge probabilities, hidden causes and effects with names, warnings and background knowledge.

    unconstrained: float64 [d, d], read-only; the probabilities of the model before background knowledge.
    hidden_causes: [d, d], probabilities of a hidden common cause; None if the model does not estimate them.
    effect, effect_scale: [d, d], signed effect of an edge in standard deviations (change of the column's variable when
    the row's rises by one and its other causes stay) and scale of its Laplace distribution; None if not estimated, NaN
    where undefined.
    data_warnings: sentences about the data. acyclic_model: whether the model was trained on acyclic graphs.
    ood: report of the out-of-distribution check; None if the model has no reference for it.
    known: background knowledge. data: rows, variables, interventional_rows, targets, soft_targets (names),
    missing_share, kind, column_kinds, missing_shares; name of the file and command, where there are any.
    moments: second moments of the table, for total effects; None in results without data.
    stability: [d, d], the standard deviation of each unconstrained probability over resampled rows; None without
    bootstrap.
    excerpt: some rows of the data for scatter plots in the report; not part of result.json.
    """

    unconstrained: np.ndarray
    names: tuple[str, ...]
    hidden_causes: np.ndarray | None = None
    effect: np.ndarray | None = None
    effect_scale: np.ndarray | None = None
    data_warnings: tuple[str, ...] = ()
    model: str = ""
    card: ModelCard | None = None
    acyclic_model: bool = True
    ood: OODReport | None = None
    known: Knowledge | None = None
    data: dict[str, Any] = field(default_factory=dict)
    moments: Moments | None = None
    stability: np.ndarray | None = None
    excerpt: Dataset | None = field(default=None, repr=False)
    matrix: np.ndarray = field(init=False)
    """float64 [d, d], read-only: the probabilities given the background knowledge."""
    warnings: list[str] = field(init=False)
    """Sentences about data and graph; empty if there is nothing to warn about."""

    def __post_init__(self) -> None:
        unconstrained = np.array(self.unconstrained, dtype=np.float64)
        matrix = unconstrained
        if self.known:
            matrix = self.known.apply(unconstrained, self.names, self.acyclic_model)
        warnings = list(self.data_warnings)
        if self.acyclic_model and not is_acyclic(matrix > 0.5):
            warnings.append("the edges above 0.5 form a cycle; the most probable acyclic graph leaves some of them out")
        arrays = {"unconstrained": unconstrained, "matrix": matrix}
        for name in _ESTIMATES:
            if (value := getattr(self, name)) is not None:
                arrays[name] = np.array(value, dtype=np.float64)
        for name, value in arrays.items():
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, "warnings", warnings)

    def with_knowledge(self, known: Knowledge | None) -> Result:
        """The result under other background knowledge, which replaces the present one; the network is not run again.

        Raises `ConfigError` if the knowledge contradicts itself or names unknown variables.
        """
        if known is not None and not isinstance(known, Knowledge):
            raise ConfigError(f"known must be a presage.Knowledge, not {type(known).__name__}")
        return replace(self, known=known or None)

    def __getitem__(self, edge: tuple[str, str]) -> float:
        """`result["a", "b"]`: the probability that a is a direct cause of b."""
        if not isinstance(edge, tuple) or len(edge) != 2:
            raise ConfigError('give the names of cause and effect: result["a", "b"]')
        return float(self.matrix[self._position(edge[0]), self._position(edge[1])])

    def parents(self, name: str, threshold: float = 0.5) -> list[str]:
        """Direct causes of a variable with a probability above the threshold, most probable first."""
        return self._ranked(self.matrix[:, self._position(name)], threshold)

    def children(self, name: str, threshold: float = 0.5) -> list[str]:
        """Direct effects of a variable with a probability above the threshold, most probable first."""
        return self._ranked(self.matrix[self._position(name)], threshold)

    def _ranked(self, values: np.ndarray, threshold: float) -> list[str]:
        order = np.argsort(-values, kind="stable")
        return [self.names[k] for k in order[values[order] > check_threshold(threshold)]]

    def _position(self, name: str) -> int:
        if not isinstance(name, str):  # arrays would be compared cell by cell
            raise ConfigError(f"the name of a variable must be a string, not {type(name).__name__}")
        if name not in self.names:
            raise ConfigError(f"there is no variable {name!r}{did_you_mean(name, self.names)}")
        return self.names.index(name)

    @property
    def probabilities(self) -> pd.DataFrame:
        """[d, d] with names: the probability that the row's variable is a direct cause of the column's."""
        import pandas as pd

        index = pd.Index(self.names, name="cause")
        return pd.DataFrame(self.matrix.copy(), index=index, columns=pd.Index(self.names, name="effect"))

    @property
    def confounded(self) -> pd.DataFrame | None:
        """[d, d] with names, symmetric: the probability of a hidden common cause; None if the model has no estimate."""
        import pandas as pd

        if self.hidden_causes is None:
            return None
        return pd.DataFrame(self.hidden_causes.copy(), index=list(self.names), columns=list(self.names))

    def confounded_pairs(self, threshold: float = 0.5) -> list[tuple[str, str, float]]:
        """Pairs with a hidden common cause and its probability, above the threshold, most probable first."""
        if self.hidden_causes is None:
            return []
        pairs = np.argwhere(np.triu(self.hidden_causes, 1) > check_threshold(threshold))
        found = [(self.names[i], self.names[j], float(self.hidden_causes[i, j])) for i, j in pairs]
        return sorted(found, key=lambda pair: -pair[2])

    def effect_interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends [d, d] of the central 90 % intervals of the effects; NaN where there is no estimate."""
        nothing = np.full(self.matrix.shape, np.nan)
        effect, scale = (nothing if part is None else part for part in (self.effect, self.effect_scale))
        reach = -np.log(1.0 - _INTERVAL) * scale  # of a Laplace distribution
        return effect - reach, effect + reach

    def edges(self, threshold: float = 0.5) -> pd.DataFrame:
        """Edges with a probability above the threshold, most probable first.

        Columns: source, target, probability, effect (signed, standardized), effect_low, effect_high (90 % interval).
        Effects are NaN if the model does not estimate them or the levels of a column have no order.
        With bootstrap there is also stability: the standard deviation of the probability over resampled rows, 0 where
        background knowledge decides.
        """
        threshold = check_threshold(threshold)
        sources, targets = np.nonzero(self.matrix > threshold)
        return self._edge_frame(sources, targets)

    def top(self, k: int) -> pd.DataFrame:
        """The k most probable edges, whatever their probability."""
        _check_count(k, "k")
        sources, targets = np.nonzero(~np.eye(len(self.names), dtype=bool))
        return self._edge_frame(sources, targets).head(k)

    def _edge_frame(self, sources: np.ndarray, targets: np.ndarray) -> pd.DataFrame:
        import pandas as pd

        values = self.matrix[sources, targets]
        order = np.argsort(-values, kind="stable")
        sources, targets = sources[order], targets[order]
        columns: dict[str, Any] = {
            "source": [self.names[i] for i in sources],
            "target": [self.names[j] for j in targets],
            "probability": values[order],
            **{name: array[sources, targets] for name, array in self._effects().items()},
        }
        if self.stability is not None:
            columns["stability"] = self._known_stability(self.stability)[sources, targets]
        return pd.DataFrame(columns).astype({"source": object, "target": object})

    def _known_stability(self, stability: np.ndarray) -> np.ndarray:
        if not self.known:
            return stability
        required, forbidden = self.known.masks(self.names, self.acyclic_model)
        return np.where(required | forbidden, 0.0, stability)

    def _effects(self) -> dict[str, np.ndarray]:
        low, high = self.effect_interval()
        return {"effect": 0.5 * (low + high), "effect_low": low, "effect_high": high}

    def adjacency(self, threshold: float = 0.5, acyclic: bool = True) -> np.ndarray:
        """The graph as int8 [d, d]; see `graph`."""
        threshold = check_threshold(threshold)
        if not acyclic:
            return (self.matrix > threshold).astype(np.int8)
        return self._most_probable_acyclic(threshold)[0]

    def is_exact(self, threshold: float = 0.5) -> bool:
        """Whether the most probable acyclic graph is a proven optimum rather than the result of a heuristic."""
        return self._most_probable_acyclic(threshold)[1]

    def _most_probable_acyclic(self, threshold: float) -> tuple[np.ndarray, bool]:
        return best_acyclic(log_odds(self.matrix, check_threshold(threshold)))

    def graph(self, threshold: float = 0.5, acyclic: bool = True) -> nx.DiGraph:
        """A networkx graph of the edges above the threshold, with the edge attributes "probability" and "effect".

        acyclic: the most probable acyclic graph. It is exact where cycles involve at most 16 variables, and beyond
        that found by a greedy search improved by moving single variables in the causal order. Pass acyclic=False for
        all edges above the threshold, above all if the domain of the model has feedback loops (`acyclic_model`).
        """
        import networkx as nx

        graph = nx.DiGraph(model=self.model)
        graph.add_nodes_from(self.names)
        effect = self._effects()["effect"]
        for i, j in np.argwhere(self.adjacency(threshold, acyclic)):
            known = {} if np.isnan(effect[i, j]) else {"effect": float(effect[i, j])}
            graph.add_edge(self.names[i], self.names[j], probability=float(self.matrix[i, j]), **known)
        return graph

    def sample(self, k: int, acyclic: bool = False, seed: int = 0) -> np.ndarray:
        """Sample k graphs, each edge independently with its probability: int8 [k, d, d].

        acyclic=True rejects graphs with cycles, which is exact; after 200 rejections the edges of the last sample are
        added one by one in random order (certain ones first), leaving out those that close a cycle.
        """
        _check_count(k, "k")
        d = len(self.names)
        rng = generator(seed, Stream.ANSWER)
        if not acyclic:
            out = np.empty((k, d, d), dtype=np.int8)
            for number in range(k):
                out[number] = rng.random((d, d)) < self.matrix
            return out
        return np.array([self._acyclic_sample(rng) for _ in range(k)], dtype=np.int8).reshape(k, d, d)

    def _acyclic_sample(self, rng: np.random.Generator) -> np.ndarray:
        draw = np.zeros(self.matrix.shape, dtype=bool)
        for _ in range(_TRIES):
            draw = rng.random(self.matrix.shape) < self.matrix
            if is_acyclic(draw):
                return draw
        from presage.graphs.ops import project_to_dag

        # Random priorities in (1, 2); certain edges go first, edges that were not drawn have priority 0.
        priority = np.where(self.matrix >= 1.0, 3.0, 1.0 + rng.random(draw.shape))
        return project_to_dag(np.where(draw, priority, 0.0))

    @cached_property
    def _graphs(self) -> np.ndarray:
        return self.sample(_GRAPHS, acyclic=True)

    def cpdag(self, threshold: float = 0.5) -> np.ndarray:
        """The equivalence class of the most probable acyclic graph: int8 [d, d], both entries 1 for undirected edges.

        All graphs of the class imply the same conditional independences. The class ignores what interventions, the
        shape of distributions or background knowledge imply about directions; the probabilities use it.
        """
        return cpdag(self.adjacency(threshold))

    def total_effect(
        self, cause: str, outcome: str, *, units: Units = "standardized", level: float = 0.9
    ) -> TotalEffect:
        """The effect of setting one variable on another along all paths, with an interval of probability `level`.

        Mean over 500 sampled acyclic graphs; in each, a linear regression that adjusts for the parents of the cause.
        units: "standardized" (standard deviations of the outcome per standard deviation of the cause) or "raw" (units
        of the outcome per unit of the cause). Effects of hidden common causes are not removed, nonlinear ones are
        approximated by straight lines, and nominal variables have no effect per unit.
        """
        i, j = self._position(cause), self._position(outcome)
        found = total_effect(self._graphs, self.moments, self.names, i, j, units=units, level=level)
        return found if self.hidden_causes is None else replace(found, confounded=float(self.hidden_causes[i, j]))

    def effects(self, threshold: float = 0.5, *, units: Units = "standardized", level: float = 0.9) -> pd.DataFrame:
        """Total effects of all pairs whose cause is an ancestor with a probability above the threshold.

        Columns: source, target, effect, low, high, probability; largest effects first. See `total_effect`.
        """
        threshold = check_threshold(threshold)
        return effect_frame(self._graphs, self.moments, self.names, threshold=threshold, units=units, level=level)

    def next_experiments(self, k: int = 5, *, exclude: Sequence[str] = ()) -> pd.DataFrame:
        """The k variables on which an intervention would be most informative about the graph.

        Columns: variable; information (bits: the entropy of its set of descendants over 500 sampled acyclic graphs);
        settles (pairs of names whose edge the intervention would settle); reason (a sentence). exclude: variables that
        cannot be intervened on, or were already.
        """
        _check_count(k, "k")
        if isinstance(exclude, str):
            raise ConfigError(f"exclude must be a list of names, not {exclude!r}")
        return experiment_frame(self._graphs, self.names, k, [self._position(name) for name in exclude])

    def to_anndata(self, adata: anndata.AnnData, *, copy: bool = True) -> anndata.AnnData:
        """The AnnData with the probabilities in varp["presage"] (sparse, row causes column) and a record in uns.

        copy=False writes into the given AnnData instead of a copy. Variables that were not analysed have no entries.
        """
        from presage.data.anndata_io import store_probabilities

        filled = adata.copy() if copy else adata
        record = {
            "version": presage.__version__,
            "model": self.model,
            "orientation": "varp['presage'][i, j]: probability that variable i is a direct cause of variable j",
            "warnings": np.array(self.warnings, dtype=object),
        }
        store_probabilities(filled, self.matrix, self.names, record)
        return filled

    def to_dot(self, threshold: float = 0.5, acyclic: bool = True) -> str:
        """The graph (see `graph`) in Graphviz's DOT language; hidden common causes are dashed double arrows."""
        return dot(self.names, self.adjacency(threshold, acyclic), self.matrix, self.confounded_pairs(threshold))

    def to_graphml(self, threshold: float = 0.5, acyclic: bool = True) -> str:
        """The graph (see `graph`) as GraphML text."""
        numbers = {"probability": self.matrix, "effect": self._effects()["effect"]}
        return graphml(self.names, self.adjacency(threshold, acyclic), numbers, {"model": self.model})

    def to_dowhy(self, threshold: float = 0.5) -> str:
        """The most probable acyclic graph as DOT text for DoWhy's `CausalModel(graph=...)`."""
        return plain_dot(self.names, self.adjacency(threshold))

    def to_pgmpy(self, threshold: float = 0.5) -> list[tuple[str, str]]:
        """The edges of the most probable acyclic graph, as pgmpy's Bayesian networks take them."""
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(self.adjacency(threshold))]

    def to_json(self, threshold: float = 0.5) -> dict[str, Any]:
        """Everything but the card as plain JSON data; `unconstrained` is there only with background knowledge."""
        edges = self.edges(threshold)
        acyclic, exact = self._most_probable_acyclic(threshold)
        content: dict[str, Any] = {
            "presage": presage.__version__,
            "model": self.model,
            "acyclic_model": self.acyclic_model,
            "orientation": "probabilities[i][j]: names[i] causes names[j]",
            "data": self.data,
            "names": list(self.names),
            "warnings": list(self.warnings),
            "data_warnings": list(self.data_warnings),
            "ood": None if self.ood is None else self.ood.to_json(),
            "known": None if self.known is None else self.known.to_json(),
            "threshold": threshold,
            "edges": [
                {key: None if value != value else value for key, value in edge.items()}  # JSON has no NaN
                for edge in edges.to_dict("records")
            ],
            "most_probable_acyclic": {
                "edges": [[self.names[i], self.names[j]] for i, j in np.argwhere(acyclic)],
                "exact": exact,
            },
            "probabilities": self.matrix.tolist(),
            "moments": None if self.moments is None else self.moments.to_json(),
        }
        if self.known:
            content["unconstrained"] = self.unconstrained.tolist()
        for key in _ESTIMATES:
            if (values := getattr(self, key)) is not None:
                content[key] = [[None if value != value else value for value in row] for row in values.tolist()]
        return content

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Result:
        """Read a result that `save` wrote: the folder or its result.json. The card is not restored."""
        file = Path(path)
        file = file / "result.json" if file.is_dir() else file
        try:
            content = parse_json(read_bytes(file))
            estimates: dict[str, Any] = {
                key: np.array(content[key], dtype=np.float64) for key in _ESTIMATES if key in content
            }
            return Result(
                unconstrained=np.array(content.get("unconstrained", content["probabilities"]), dtype=np.float64),
                names=tuple(content["names"]),
                **estimates,
                data_warnings=tuple(content["data_warnings"]),
                model=content["model"],
                acyclic_model=content["acyclic_model"],
                ood=None if content["ood"] is None else OODReport.from_json(content["ood"]),
                known=None if content["known"] is None else Knowledge.from_json(content["known"]),
                data=content["data"],
                moments=None if content["moments"] is None else Moments.from_json(content["moments"]),
            )
        except OSError as error:
            raise ConfigError(f"cannot read {str(file)!r}: {reason(error)}") from error
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ConfigError(f"{str(file)!r} is not a saved result ({type(error).__name__}: {error})") from error

    def plot(self, threshold: float = 0.5) -> Figure:
        """A matplotlib figure: the heat map beside the graph."""
        from presage.report.plots import result_figure

        return result_figure(self, threshold=threshold)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write probabilities.csv, edges.csv, graph.graphml, graph.dot, graph.png, report.html and result.json.

        Models that estimate hidden common causes add confounded.csv.

        The graph files hold the most probable acyclic graph, or all edges above 0.5 if the domain of the model has
        feedback loops.
        """
        from presage.report.html import report_html
        from presage.report.plots import figure_bytes
        from presage.report.text import escape_formulas

        out = Path(folder)
        if out.exists() and not out.is_dir():
            raise ConfigError(f"cannot write to {str(out)!r}: it is a file, not a folder")
        picture = figure_bytes(self.plot())
        frames = {"probabilities.csv": self.probabilities, "confounded.csv": self.confounded}
        texts = {
            **{name: escape_formulas(frame).to_csv() for name, frame in frames.items() if frame is not None},
            "edges.csv": escape_formulas(self.edges()).to_csv(index=False),
            "graph.graphml": self.to_graphml(acyclic=self.acyclic_model),
            "graph.dot": self.to_dot(acyclic=self.acyclic_model),
            "report.html": report_html(self, picture=picture),
            "result.json": json.dumps(self.to_json(), indent=1),
        }
        # Text that UTF-8 cannot hold (lone surrogates in names) is written as escapes.
        contents = {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}
        for name, content in {**contents, "graph.png": picture}.items():
            with atomic_write(out / name) as file:
                file.write(content)
        return out

    def __repr__(self) -> str:
        count = int((self.matrix > 0.5).sum())
        warnings = f", {len(self.warnings)} warnings" if self.warnings else ""
        return f"Result({len(self.names)} variables, {count} edges above 0.5, model {self.model!r}{warnings})"

    def _repr_html_(self) -> str:
        """Summary, warnings, most probable edges and picture for notebooks."""
        from presage.report.html import notebook_html

        return notebook_html(self)


RESULT_FILES = frozenset(
    ("probabilities.csv", "confounded.csv", "edges.csv", "graph.graphml", "graph.dot", "graph.png", "report.html")
) | {"result.json"}
"""The names of all files that `Result.save` writes."""


def check_result_folder(folder: Path) -> None:
    """Raise `ConfigError` if a folder holds files that are not those of a saved result."""
    try:
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    except (OSError, ValueError):  # `check_writable` explains what is wrong with such a folder
        return
    if names and not ("result.json" in names and names <= RESULT_FILES):
        raise ConfigError(
            f"the folder {str(folder)!r} holds other files; choose another one, or write into it with --force"
        )


def check_threshold(threshold: float) -> float:
    """The threshold as a float; raises `ConfigError` unless it is a number from 0 to 1."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.number)) or not 0 <= threshold <= 1:
        raise ConfigError(f"the threshold must be a number from 0 to 1, not {threshold!r}")
    return float(threshold)


def _check_count(k: int, what: str) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
        raise ConfigError(f"{what} must be a whole number of at least 0, not {k!r}")
