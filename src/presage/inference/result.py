"""`Result`: the answer to a question about data. Row causes column, everywhere."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import presage
from presage.errors import ConfigError
from presage.files import atomic_write
from presage.graphs.acyclic import best_acyclic, log_odds
from presage.graphs.ops import is_acyclic
from presage.inference.knowledge import Knowledge
from presage.ood.check import OODReport
from presage.rng import Stream, generator

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.figure import Figure

    from presage.report.card import ModelCard

__all__ = ["Result"]

_TRIES = 200
"""Independent draws per acyclic sample before edges that close cycles are left out instead."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Edge probabilities with names, and what a scientist needs around them.

    matrix: float64 [d, d], read-only. warnings: sentences, empty when nothing is odd.
    ood: how far the data lies outside the model's training domain; None if the model cannot tell.
    """

    matrix: np.ndarray
    names: tuple[str, ...]
    warnings: list[str] = field(default_factory=list)
    model: str = ""
    card: ModelCard | None = None
    acyclic_model: bool = True
    ood: OODReport | None = None
    known: Knowledge | None = None
    data: dict[str, Any] = field(default_factory=dict)
    """A few facts about the data: rows, variables, interventional_rows, missing_share, kind."""

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def probabilities(self) -> pd.DataFrame:
        """[d, d] with names: the probability that the row's variable is a direct cause of the column's."""
        import pandas as pd

        index = pd.Index(self.names, name="cause")
        return pd.DataFrame(self.matrix.copy(), index=index, columns=pd.Index(self.names, name="effect"))

    def edges(self, threshold: float = 0.5) -> pd.DataFrame:
        """Edges with a probability above the threshold: source, target, probability; most probable first."""
        threshold = _check_threshold(threshold)
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
        return pd.DataFrame(
            {
                "source": [self.names[i] for i in sources[order]],
                "target": [self.names[j] for j in targets[order]],
                "probability": values[order],
            }
        ).astype({"source": object, "target": object})

    def adjacency(self, threshold: float = 0.5, acyclic: bool = False) -> np.ndarray:
        """The graph as int8 [d, d]. acyclic: the most probable graph without cycles (see `is_exact`)."""
        threshold = _check_threshold(threshold)
        if not acyclic:
            return (self.matrix > threshold).astype(np.int8)
        return best_acyclic(log_odds(self.matrix, threshold))[0]

    def is_exact(self, threshold: float = 0.5) -> bool:
        """Whether the most probable acyclic graph is proven to be that, rather than found by the heuristic."""
        return best_acyclic(log_odds(self.matrix, _check_threshold(threshold)))[1]

    def graph(self, threshold: float = 0.5, acyclic: bool = False) -> nx.DiGraph:
        """A networkx graph with the edge attribute "probability".

        acyclic=True gives the most probable acyclic graph: exact where cycles involve at most 16 variables,
        above that a greedy choice improved by moving single variables in the causal order.
        """
        import networkx as nx

        graph = nx.DiGraph(model=self.model)
        graph.add_nodes_from(self.names)
        for i, j in np.argwhere(self.adjacency(threshold, acyclic)):
            graph.add_edge(self.names[i], self.names[j], probability=float(self.matrix[i, j]))
        return graph

    def sample(self, k: int, acyclic: bool = False, seed: int = 0) -> np.ndarray:
        """k graphs drawn edge by edge from the probabilities: int8 [k, d, d].

        acyclic=True draws again until a graph has no cycle, which is exact; after 200 failures the edges of the last
        draw are put in one by one in random order (certain ones first), leaving out those that close a cycle.
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

        # Random priorities in (1, 2); certain edges go first, what was not drawn stays out.
        priority = np.where(self.matrix >= 1.0, 3.0, 1.0 + rng.random(draw.shape))
        return project_to_dag(np.where(draw, priority, 0.0))

    def to_networkx(self, threshold: float = 0.5, acyclic: bool = False) -> nx.DiGraph:
        """The same as `graph`."""
        return self.graph(threshold, acyclic)

    def to_dot(self, threshold: float = 0.5, acyclic: bool = False) -> str:
        """The graph in Graphviz's DOT language."""
        lines = ["digraph presage {"] + [f"  {_quoted(name)};" for name in self.names]
        for i, j in np.argwhere(self.adjacency(threshold, acyclic)):
            value = f"{self.matrix[i, j]:.4g}"
            lines.append(
                f'  {_quoted(self.names[i])} -> {_quoted(self.names[j])} [probability={value}, label="{value}"];'
            )
        return "\n".join([*lines, "}"]) + "\n"

    def to_dowhy(self, threshold: float = 0.5) -> str:
        """The most probable acyclic graph as the DOT text that DoWhy's `CausalModel(graph=...)` takes."""
        nodes = "".join(f"{_quoted(name)};" for name in self.names)
        edges = "".join(
            f"{_quoted(self.names[i])} -> {_quoted(self.names[j])};"
            for i, j in np.argwhere(self.adjacency(threshold, acyclic=True))
        )
        return f"digraph {{{nodes}{edges}}}"

    def to_pgmpy(self, threshold: float = 0.5) -> list[tuple[str, str]]:
        """The edges of the most probable acyclic graph, as pgmpy's Bayesian networks take them."""
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(self.adjacency(threshold, acyclic=True))]

    def to_json(self, threshold: float = 0.5) -> dict[str, Any]:
        """Everything as plain JSON data."""
        edges = self.edges(threshold)
        return {
            "presage": presage.__version__,
            "model": self.model,
            "orientation": "probabilities[i][j]: names[i] causes names[j]",
            "data": self.data,
            "names": list(self.names),
            "warnings": list(self.warnings),
            "ood": None if self.ood is None else self.ood.to_json(),
            "known": None if self.known is None else self.known.to_json(),
            "threshold": threshold,
            "edges": [
                {"source": source, "target": target, "probability": float(value)}
                for source, target, value in edges.itertuples(index=False)
            ],
            "most_probable_acyclic": {"edges": [list(e) for e in self.to_pgmpy(threshold)], "exact": self.is_exact()},
            "probabilities": self.matrix.tolist(),
        }

    def plot(self, threshold: float = 0.5) -> Figure:
        """A matplotlib figure: the heat map beside the graph."""
        from presage.report.plots import result_figure

        return result_figure(self, threshold=threshold)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write probabilities.csv, edges.csv, graph.graphml, graph.dot, graph.png, report.html and result.json."""
        import networkx as nx

        from presage.report.html import report_html
        from presage.report.plots import figure_bytes

        out = Path(folder)
        if out.exists() and not out.is_dir():
            raise ConfigError(f"cannot write to {str(out)!r}: it is a file, not a folder")
        contents: dict[str, bytes] = {
            "probabilities.csv": self.probabilities.to_csv().encode(),
            "edges.csv": self.edges().to_csv(index=False).encode(),
            "graph.graphml": "\n".join(nx.generate_graphml(self.graph())).encode("utf-8", "xmlcharrefreplace"),
            "graph.dot": self.to_dot().encode(),
            "graph.png": figure_bytes(self.plot()),
            "report.html": report_html(self).encode(),
            "result.json": json.dumps(self.to_json(), indent=1).encode(),
        }
        for name, content in contents.items():
            with atomic_write(out / name) as file:
                file.write(content)
        return out

    def __repr__(self) -> str:
        count = int((self.matrix > 0.5).sum())
        odd = f", {len(self.warnings)} warnings" if self.warnings else ""
        return f"Result({len(self.names)} variables, {count} edges above 0.5, model {self.model!r}{odd})"


def _check_threshold(threshold: float) -> float:
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.number)) or not 0 <= threshold <= 1:
        raise ConfigError(f"the threshold must be a number from 0 to 1, not {threshold!r}")
    return float(threshold)


def _check_count(k: int, what: str) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
        raise ConfigError(f"{what} must be a whole number of at least 0, not {k!r}")


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
