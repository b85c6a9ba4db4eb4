from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.config import Component, from_json, options, readable, register, to_json
from presage.errors import ConfigError
from presage.graphs.random import ErdosRenyi, Geometric, ScaleFreeIn, StochasticBlock, WattsStrogatz
from presage.simulators.interventions import Interventions
from presage.simulators.mechanisms import Linear, RandomFourier
from presage.simulators.noise import Heteroscedastic, Homoscedastic

positive = st.floats(0.01, 100.0)
ranges = st.tuples(positive, positive).map(lambda pair: (min(pair), max(pair)))


def several(values):
    return st.lists(values, min_size=1, max_size=3).map(tuple)


parts = st.one_of(
    st.builds(ErdosRenyi, edges_per_node=several(positive)),
    st.builds(ScaleFreeIn, edges_per_node=several(st.integers(1, 5)), power=several(st.floats(0, 2))),
    st.builds(WattsStrogatz, dimension=several(st.integers(1, 4)), rewire=several(st.floats(0, 1))),
    st.builds(StochasticBlock, blocks=several(st.integers(1, 9)), damping=several(st.floats(0, 1))),
    st.builds(Linear, weights=several(ranges), bias=several(ranges)),
    st.builds(RandomFourier, length_scale=several(ranges), output_scale=several(ranges)),
    st.builds(Homoscedastic, family=several(st.sampled_from(["gaussian", "laplace", "cauchy"])), scale=several(ranges)),
    st.builds(Heteroscedastic, length_scale=several(positive)),
    st.builds(Interventions, share=st.floats(0.01, 1.0), values=several(ranges)),
)


@given(parts)
def test_parts_round_trip_through_json(part) -> None:
    assert from_json(json.loads(json.dumps(to_json(part), allow_nan=False))) == part


@given(parts, st.integers(0, 2**32))
def test_resolving_settles_on_one_option_per_field(part, seed) -> None:
    resolved = part.resolve(np.random.default_rng(seed))
    for name in part._option_names():
        assert resolved.only(name) in getattr(part, name)
    assert resolved.resolve(np.random.default_rng(0)) is resolved


def test_options_are_drawn_uniformly_over_all_combinations() -> None:
    rng = np.random.default_rng(0)
    part = WattsStrogatz(dimension=(2, 3), rewire=(0.1, 0.2, 0.3))
    drawn = Counter((p.only("dimension"), p.only("rewire")) for p in (part.resolve(rng) for _ in range(6000)))
    assert len(drawn) == 6
    assert all(abs(count - 1000) < 5 * np.sqrt(1000 * 5 / 6) for count in drawn.values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ErdosRenyi(edges_per_node=(float("nan"),)), "finite"),
        (lambda: ErdosRenyi(edges_per_node=(np.float32("inf"),)), "finite"),
        (lambda: Linear(weights=((1.0, float("nan")),)), "finite"),
        (lambda: ErdosRenyi(edges_per_node=()), "at least one option"),
        (lambda: ErdosRenyi(edges_per_node=2.0), "at least one option"),
        (lambda: ErdosRenyi(edges_per_node=(0.0,)), "above 0"),
        (lambda: ErdosRenyi(edges_per_node=("two",)), "wrong kind"),
        (lambda: ScaleFreeIn(edges_per_node=(1.5,)), "whole numbers"),
        (lambda: ScaleFreeIn(power=(-1.0,)), "at least 0"),
        (lambda: WattsStrogatz(dimension=(1.5,)), "whole numbers"),
        (lambda: StochasticBlock(blocks=(2.5,)), "whole numbers"),
        (lambda: WattsStrogatz(rewire=(1.5,)), "between 0 and 1"),
        (lambda: StochasticBlock(damping=(-0.1,)), "between 0 and 1"),
        (lambda: Geometric(radius=(0.0,)), "above 0"),
        (lambda: Linear(weights=((3.0, 1.0),)), "low <= high"),
        (lambda: Linear(weights=((-1.0, 1.0),)), "of at least 0"),
        (lambda: Linear(weights=(1.0, 3.0)), "wrong kind"),
        (lambda: RandomFourier(length_scale=((0.0, 1.0),)), "above 0"),
        (lambda: Homoscedastic(family=("normal",)), "gaussian, laplace, cauchy"),
        (lambda: Heteroscedastic(output_scale=(0.0,)), "above 0"),
        (lambda: Interventions(share=0.0), "above 0"),
        (lambda: Interventions(values=((-1.0, 1.0),)), "of at least 0"),
        (lambda: Interventions(softness=((0.0, 1.5),)), "at most 1"),
    ],
)
def test_bad_parameters_are_refused(make, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"type": "Unheard"}, "unknown part 'Unheard'"),
        ({"type": ["ErdosRenyi"]}, "unknown part"),
        ({"type": "ErdosRenyi", "edge": 1}, "no field 'edge'"),
        ({"type": "ErdosRenyi", "edges_per_node": [float("nan")]}, "finite"),
        ({"type": "ScmDomain", "graphs": []}, "needs the field 'mechanisms'"),
        ({"type": "ScmDomain", "graphs": [], "mechanisms": [], "noises": []}, "at least one GraphModel"),
        ({"type": "ScmDomain", "graphs": 3, "mechanisms": [], "noises": []}, "at least one GraphModel"),
    ],
)
def test_bad_json_is_refused(data, message) -> None:
    import presage.domain.domain  # noqa: F401 - registers ScmDomain

    with pytest.raises(ConfigError, match=message):
        from_json(data)


def test_numpy_numbers_become_plain_ones() -> None:
    part = ErdosRenyi(edges_per_node=[np.float64(2.0), np.int64(3)])
    assert json.loads(json.dumps(to_json(part))) == {"type": "ErdosRenyi", "edges_per_node": [2.0, 3]}


def test_two_parts_cannot_share_a_name() -> None:
    @dataclass(frozen=True, kw_only=True)
    class ErdosRenyi(Component):
        strange: int = 1

    with pytest.raises(ConfigError, match="two different parts"):
        register(ErdosRenyi)


def test_readable() -> None:
    assert readable(((1.0, 3.0),), alternatives=True, signed=True) == "U±(1, 3)"
    assert readable((0.5, 1.5), alternatives=True) == "0.5 or 1.5"
    assert dict(Linear(weights=((1.0, 2.0), (2.0, 4.0))).describe())["weights"] == "U±(1, 2) or U±(2, 4)"
    assert readable(ErdosRenyi(edges_per_node=(2.0,))) == "ErdosRenyi(edges per node 2)"


def test_a_tuple_field_that_is_no_option_is_left_alone() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Pair(Component):
        fixed: tuple[int, int] = (1, 2)
        drawn: tuple[int, ...] = options(1, 2)

    resolved = Pair().resolve(np.random.default_rng(0))
    assert resolved.fixed == (1, 2)
    assert resolved.drawn in ((1,), (2,))
