"""Default components of the domain `general`."""

from __future__ import annotations

from presage.graphs.layered import Layered, UniformDensity
from presage.graphs.random import (
    ErdosRenyi,
    Geometric,
    GraphModel,
    ScaleFreeIn,
    ScaleFreeOut,
    StochasticBlock,
    WattsStrogatz,
)
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

__all__ = ["DISCRETE_GRAPHS", "GRAPHS", "MECHANISMS", "NOISES", "RAW_MECHANISMS", "SMALL_GRAPHS"]

EDGES_PER_NODE = (0.3, 0.5, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0)

GRAPHS: tuple[GraphModel, ...] = (
    ErdosRenyi(edges_per_node=EDGES_PER_NODE),
    ErdosRenyi(edges_per_node=EDGES_PER_NODE),
    ScaleFreeIn(edges_per_node=(1, 1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
    ScaleFreeOut(edges_per_node=(1, 1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
    WattsStrogatz(dimension=(1, 2, 3), rewire=(0.1, 0.3, 0.6)),
    StochasticBlock(edges_per_node=EDGES_PER_NODE, blocks=(2, 5, 10), damping=(0.05, 0.1, 0.3)),
    Geometric(radius=(0.08, 0.1, 0.15, 0.2, 0.25)),
    Layered(edges_per_node=EDGES_PER_NODE),
    Layered(edges_per_node=EDGES_PER_NODE),
)

SMALL_GRAPHS: tuple[GraphModel, ...] = (
    UniformDensity(),
    UniformDensity(),
    UniformDensity(),
    ScaleFreeOut(edges_per_node=(1,)),
    Layered(edges_per_node=(0.5, 1.0)),
)

DISCRETE_GRAPHS: tuple[GraphModel, ...] = (
    ErdosRenyi(edges_per_node=(0.8, 1.0, 1.3, 1.6, 2.0)),
    ScaleFreeOut(edges_per_node=(1, 1, 2), power=(0.5, 1.0)),
    ScaleFreeIn(edges_per_node=(1,), power=(0.5, 1.0)),
    Layered(tiers=(3, 4), edges_per_node=(0.8, 1.2, 1.6)),
    WattsStrogatz(dimension=(1,), rewire=(0.1, 0.3)),
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

RAW_MECHANISMS: tuple[Mechanism, ...] = (
    Linear(weights=((1.0, 3.0), (0.5, 2.0), (2.0, 4.0), (0.25, 1.0))),
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
