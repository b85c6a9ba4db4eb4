"""Default components of the domain `general`."""

from __future__ import annotations

from presage.graphs import random as graphs
from presage.graphs.layered import Layered, UniformDensity
from presage.graphs.regulatory import RegulatorySubgraph
from presage.simulators.interventions_general import MixedInterventions
from presage.simulators.measurement import Measurement
from presage.simulators.mechanisms import Linear, Mechanism, RandomFourier
from presage.simulators.mechanisms_general import (
    FourierFeatures,
    MonotoneSum,
    Polynomial,
    RandomMLP,
    Saturating,
    WeightedSum,
)
from presage.simulators.mechanisms_steps import SoftTree, Thresholds
from presage.simulators.noise_general import (
    CauchyNoise,
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
    LogNormalNoise,
    MixtureNoise,
    NoiseFamily,
    StudentNoise,
    UniformNoise,
)

__all__ = [
    "DISCRETE_GRAPHS",
    "EXPRESSION_GRAPHS",
    "EXPRESSION_MEASUREMENT",
    "EXPRESSION_NOISES",
    "GRAPHS",
    "MECHANISMS",
    "NOISES",
    "RAW_MECHANISMS",
    "SMALL_GRAPHS",
    "TEXTBOOK_INTERVENTIONS",
]

EDGES_PER_NODE = (0.3, 0.5, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0)

GRAPHS: tuple[graphs.GraphModel, ...] = (
    graphs.ErdosRenyi(edges_per_node=EDGES_PER_NODE),
    graphs.ErdosRenyi(edges_per_node=EDGES_PER_NODE),
    graphs.ScaleFreeIn(edges_per_node=(1, 1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
    graphs.ScaleFreeOut(edges_per_node=(1, 1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
    graphs.WattsStrogatz(dimension=(1, 2, 3), rewire=(0.1, 0.3, 0.6)),
    graphs.StochasticBlock(edges_per_node=EDGES_PER_NODE, blocks=(2, 5, 10), damping=(0.05, 0.1, 0.3)),
    graphs.Geometric(radius=(0.08, 0.1, 0.15, 0.2, 0.25)),
    Layered(edges_per_node=EDGES_PER_NODE),
    Layered(edges_per_node=EDGES_PER_NODE),
)

SMALL_GRAPHS: tuple[graphs.GraphModel, ...] = (
    UniformDensity(),
    UniformDensity(),
    UniformDensity(),
    graphs.ScaleFreeOut(edges_per_node=(1,)),
    Layered(edges_per_node=(0.5, 1.0)),
)

DISCRETE_GRAPHS: tuple[graphs.GraphModel, ...] = (
    graphs.ErdosRenyi(edges_per_node=(0.8, 1.0, 1.3, 1.6, 2.0)),
    graphs.ScaleFreeOut(edges_per_node=(1, 1, 2), power=(0.5, 1.0)),
    graphs.ScaleFreeIn(edges_per_node=(1,), power=(0.5, 1.0)),
    Layered(tiers=(3, 4), edges_per_node=(0.8, 1.2, 1.6)),
    graphs.WattsStrogatz(dimension=(1,), rewire=(0.1, 0.3)),
)

# Yeast only: third-party expression data is often simulated on parts of the E. coli network.
EXPRESSION_GRAPHS: tuple[graphs.GraphModel, ...] = (
    RegulatorySubgraph(network=("yeast",), top=(0.2,)),
    RegulatorySubgraph(network=("yeast",), top=(1.0,)),
    graphs.ScaleFreeOut(edges_per_node=(1, 1, 2), power=(0.5, 1.0, 1.5)),
    Layered(edges_per_node=(0.8, 1.0, 1.3, 1.6, 2.0)),
)

MECHANISMS: tuple[Mechanism, ...] = (
    WeightedSum(),
    FourierFeatures(),
    RandomMLP(),
    MonotoneSum(),
    Polynomial(),
    Saturating(),
    Thresholds(),
    SoftTree(),
)

_RAW_LINEAR = Linear(weights=((1.0, 3.0), (0.5, 2.0), (2.0, 4.0), (0.25, 1.0)))

RAW_MECHANISMS: tuple[Mechanism, ...] = (
    _RAW_LINEAR,  # twice, because linear tables are learned more slowly
    _RAW_LINEAR,
    RandomFourier(
        length_scale=((7.0, 10.0), (5.0, 8.0), (8.0, 12.0), (3.0, 6.0), (10.0, 20.0)),
        output_scale=((10.0, 20.0), (8.0, 12.0), (18.0, 22.0), (2.0, 8.0), (20.0, 30.0)),
    ),
)

NOISES: tuple[NoiseFamily, ...] = (
    GaussianNoise(),
    LaplaceNoise(),
    StudentNoise(),
    UniformNoise(),
    GumbelNoise(),
    ExponentialNoise(),
    LogNormalNoise(),
    MixtureNoise(),
    CauchyNoise(),
)

EXPRESSION_NOISES: tuple[NoiseFamily, ...] = (
    GaussianNoise(),
    UniformNoise(),
    LogNormalNoise(),
    MixtureNoise(),
)
"""Also the concentrations of genes without regulators."""

EXPRESSION_MEASUREMENT = Measurement(noise=0.75, proportional=0.6, noise_level=(0.03, 0.4), distortion=0.15)
"""Arrays and sequencing measure every gene with noise, most of it proportional to its concentration."""

TEXTBOOK_INTERVENTIONS = MixedInterventions(
    soft=0.35, signed=0.75, single=0.0, factorial=0.0, two_targets=0.0, mislabelled=0.0, strength=(0.5, 4.0)
)
