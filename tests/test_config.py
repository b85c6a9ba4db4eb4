from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.config import Component, Config, from_json, options, param, readable, register, to_json
from presage.errors import ConfigError
from presage.graphs.random import ErdosRenyi, Geometric, ScaleFreeIn, StochasticBlock, WattsStrogatz
from presage.simulators.interventions import Interventions
from presage.simulators.mechanisms import Linear, RandomFourier
from presage.simulators.noise import Heteroscedastic, Homoscedastic

positive = st.floats(0.01, 100.0)
ranges = st.tuples(positive, positive).map(lambda pair: (min(pair), max(pair)))


def several(values):
    return st.lists(values, min_size=1, max_size=3).map(tuple)


components = st.one_of(
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


@given(components)
def test_components_round_trip_through_json(component) -> None:
    assert from_json(json.loads(json.dumps(to_json(component), allow_nan=False))) == component


@given(components, st.integers(0, 2**32))
def test_resolving_settles_on_one_option_per_field(component, seed) -> None:
    resolved = component.resolve(np.random.default_rng(seed))
    for name in component._option_names():
        assert resolved.only(name) in getattr(component, name)
    assert resolved.resolve(np.random.default_rng(0)) is resolved


def test_options_are_drawn_uniformly_over_all_combinations() -> None:
    rng = np.random.default_rng(0)
    component = WattsStrogatz(dimension=(2, 3), rewire=(0.1, 0.2, 0.3))
    drawn = Counter((p.only("dimension"), p.only("rewire")) for p in (component.resolve(rng) for _ in range(6000)))
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
        (lambda: ErdosRenyi(edges_per_node=("two",)), "every item a finite number"),
        (lambda: ScaleFreeIn(edges_per_node=(1.5,)), "every item a whole number"),
        (lambda: ScaleFreeIn(power=(-1.0,)), "at least 0"),
        (lambda: WattsStrogatz(dimension=(1.5,)), "every item a whole number"),
        (lambda: StochasticBlock(blocks=(2.5,)), "every item a whole number"),
        (lambda: WattsStrogatz(rewire=(1.5,)), "between 0 and 1"),
        (lambda: StochasticBlock(damping=(-0.1,)), "between 0 and 1"),
        (lambda: Geometric(radius=(0.0,)), "above 0"),
        (lambda: Linear(weights=((3.0, 1.0),)), "low <= high"),
        (lambda: Linear(weights=((-1.0, 1.0),)), "of at least 0"),
        (lambda: Linear(weights=(1.0, 3.0)), "every item a pair"),
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
        ({"type": "Unheard"}, "no Config of type 'Unheard'"),
        ({"type": ["ErdosRenyi"]}, "no Config of type"),
        ({"type": "ErdosRenyi", "edge": 1}, "no field 'edge'"),
        ({"type": "ErdosRenyi", "edges_per_node": [float("nan")]}, "finite"),
        ({"type": "ScmDomain", "graphs": []}, "needs the field 'mechanisms'"),
        ({"type": "ScmDomain", "graphs": [], "mechanisms": [], "noises": []}, "at least one GraphModel"),
        ({"type": "ScmDomain", "graphs": 3, "mechanisms": [], "noises": []}, "every item a GraphModel"),
    ],
)
def test_bad_json_is_refused(data, message) -> None:
    import presage.domain.domain  # noqa: F401 - registers ScmDomain

    with pytest.raises(ConfigError, match=message):
        from_json(data)


def test_numpy_numbers_become_plain_ones() -> None:
    component = ErdosRenyi(edges_per_node=[np.float64(2.0), np.int64(3)])
    assert json.loads(json.dumps(to_json(component))) == {"type": "ErdosRenyi", "edges_per_node": [2.0, 3]}


def test_two_classes_cannot_share_a_name() -> None:
    @dataclass(frozen=True, kw_only=True)
    class ErdosRenyi(Component):
        strange: int = 1

    with pytest.raises(ConfigError, match="two different configurations"):
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


@register
@dataclass(frozen=True, kw_only=True)
class Inner(Config):
    rate: float = param(0.5, gt=0, lt=1)
    name: str | None = None


@register
@dataclass(frozen=True, kw_only=True)
class Outer(Config):
    inner: Inner = Inner()
    several: tuple[Inner, ...] = ()
    span: tuple[int, int] = param((1, 2), ge=1, ordered=True)
    count: int = param(ge=0)
    flag: bool = False


def test_nested_configurations_need_a_type_only_where_it_is_not_known() -> None:
    made = Outer(inner=Inner(rate=0.1, name="a"), several=(Inner(),), count=3)
    data = json.loads(json.dumps(made.to_json()))
    assert data["inner"] == {"type": "Inner", "rate": 0.1, "name": "a"}
    assert from_json(data) == Outer.from_json(data) == made
    assert Outer.from_json({"inner": {"rate": 0.1, "name": "a"}, "several": [{}], "count": 3}) == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inner": {"rate": 2.0}}, r"^Outer\.inner\.rate must lie between 0 and 1 \(exclusive\), not 2\.0$"),
        ({"several": [{}, {"rate": 0}]}, r"^Outer\.several\.rate must lie between"),
        ({"inner": {"speed": 1}}, r"^Outer\.inner: Inner has no field 'speed'; it has: name, rate$"),
        ({"inner": {"name": 3}}, r"^Outer\.inner\.name must be a string or null, not 3$"),
        ({"inner": {"type": "Outer", "count": 1}}, "no Inner of type 'Outer'"),
        ({"inner": 3}, r"^Outer\.inner must be an Inner, not 3$"),
        ({"span": [3, 2]}, r"^Outer\.span must be in increasing order, not \(3, 2\)$"),
        ({"span": [0, 2]}, r"^Outer\.span must be at least 1"),
        ({"span": [1, 2, 3]}, r"^Outer\.span must be a pair \(a whole number, a whole number\)"),
        ({"count": True}, r"^Outer\.count must be a whole number, not True$"),
        ({"count": 1.0}, r"^Outer\.count must be a whole number"),
        ({"flag": 1}, r"^Outer\.flag must be true or false"),
    ],
)
def test_errors_name_the_field(change, message) -> None:
    with pytest.raises(ConfigError, match=message):
        Outer.from_json({"count": 1, **change})


def test_missing_fields_and_other_data_are_refused() -> None:
    with pytest.raises(ConfigError, match="Outer needs the field 'count'"):
        Outer.from_json({})
    with pytest.raises(ConfigError, match="Outer must be a JSON object"):
        Outer.from_json([])
