from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presage
from presage.config import from_json, options, register, to_json
from presage.domain.catalog import SHIFTS, domains, get_domain, open_domain, summary
from presage.domain.domain import Domain, ScmDomain
from presage.errors import ConfigError, InputError
from presage.graphs.ops import is_acyclic
from presage.graphs.random import ErdosRenyi, Geometric, ScaleFreeIn, ScaleFreeOut, StochasticBlock, WattsStrogatz
from presage.rng import Stream
from presage.simulators.mechanisms import Linear, Mechanism, RandomFourier
from presage.simulators.noise import Heteroscedastic, Homoscedastic, Noise

SCM = [name for name in domains() if not name.startswith("grn")]


def test_the_names() -> None:
    names = domains()
    assert len(names) == len(set(names)) == 3 * (2 + 3 + 3) + 2
    assert {"linear", "linear-ood", "rff", "rff-ood", "grn", "grn-ood", "scm", "general"} <= set(names)
    assert {"rff+graph", "rff+graph+mechanism", "linear+mechanism+noise", "grn+noise"} <= set(names)
    assert all(summary(name) for name in names)


@pytest.mark.parametrize("name", domains())
def test_every_domain_prints_and_round_trips(name) -> None:
    domain = get_domain(name)
    assert isinstance(domain, Domain)
    assert from_json(json.loads(json.dumps(to_json(domain), allow_nan=False))) == domain
    table = str(domain)
    assert len(table.splitlines()) > 8
    assert all(line == line.rstrip() for line in table.splitlines())


def test_in_distribution_parameters_match_the_papers_table() -> None:
    rff, linear = get_domain("rff"), get_domain("linear")
    assert isinstance(rff, ScmDomain)
    assert isinstance(linear, ScmDomain)
    graphs = (
        ErdosRenyi(edges_per_node=(1.0, 2.0, 3.0)),
        ScaleFreeIn(edges_per_node=(1, 2, 3), power=(1.0,)),
        ScaleFreeOut(edges_per_node=(1, 2, 3), power=(1.0,)),
    )
    assert rff.graphs == linear.graphs == graphs
    assert linear.mechanisms == (Linear(weights=((1.0, 3.0),), bias=((-3.0, 3.0),)),)
    assert rff.mechanisms == (
        RandomFourier(length_scale=((7.0, 10.0),), output_scale=((10.0, 20.0),), bias=((-3.0, 3.0),)),
    )
    assert rff.noises == linear.noises == (Homoscedastic(family=("gaussian",), scale=((0.2, 2.0),)),)
    assert rff.interventions.share == 0.5
    assert rff.interventions.values == linear.interventions.values == ((1.0, 3.0),)


def test_out_of_distribution_parameters_match_the_papers_table() -> None:
    rff, linear = get_domain("rff-ood"), get_domain("linear-ood")
    assert isinstance(rff, ScmDomain)
    assert isinstance(linear, ScmDomain)
    graphs = (
        ScaleFreeOut(edges_per_node=(2,), power=(0.5, 1.5)),
        WattsStrogatz(dimension=(2, 3), rewire=(0.3,)),
        StochasticBlock(edges_per_node=(2.0,), blocks=(5, 10), damping=(0.1,)),
        Geometric(radius=(0.1,)),
    )
    assert rff.graphs == linear.graphs == graphs
    assert linear.mechanisms == (Linear(weights=((0.5, 2.0), (2.0, 4.0)), bias=((-3.0, 3.0),)),)
    assert rff.mechanisms == (
        RandomFourier(
            length_scale=((5.0, 8.0), (8.0, 12.0)), output_scale=((8.0, 12.0), (18.0, 22.0)), bias=((-3.0, 3.0),)
        ),
    )
    noise = Heteroscedastic(family=("laplace", "cauchy"), length_scale=(10.0,), output_scale=(2.0,))
    assert rff.noises == linear.noises == (noise,)
    assert rff.interventions.values == linear.interventions.values == ((1.0, 5.0),)


@pytest.mark.parametrize("family", ["linear", "rff"])
@pytest.mark.parametrize("shifts", [("graph",), ("mechanism",), ("noise",), ("graph", "noise"), ("mechanism", "noise")])
def test_partial_shifts_replace_exactly_their_components(family, shifts) -> None:
    inside, outside = get_domain(family), get_domain(f"{family}-ood")
    mixed = get_domain("+".join((family, *shifts)))
    fields = {"graph": ["graphs"], "mechanism": ["mechanisms"], "noise": ["noises", "interventions"]}
    assert tuple(fields) == SHIFTS
    for shift, names in fields.items():
        for name in names:
            assert getattr(mixed, name) == getattr(outside if shift in shifts else inside, name)
            assert getattr(inside, name) != getattr(outside, name)


def test_the_broad_domain_covers_the_others() -> None:
    broad = get_domain("scm")
    assert isinstance(broad, ScmDomain)
    assert {type(graph) for graph in broad.graphs} == {
        ErdosRenyi, ScaleFreeIn, ScaleFreeOut, WattsStrogatz, StochasticBlock, Geometric,
    }  # fmt: skip
    assert {type(mechanism) for mechanism in broad.mechanisms} == {Linear, RandomFourier}
    for noise in broad.noises:
        assert set(noise.family) == {"gaussian", "laplace", "cauchy"}  # type: ignore[attr-defined]
    assert {type(noise) for noise in broad.noises} == {Homoscedastic, Heteroscedastic}


@pytest.mark.parametrize("name", SCM)
def test_samples_have_the_right_shape(name) -> None:
    batch = presage.simulate(name, d=9, n=20, n_interventional=7, seed=1, size=8)
    assert batch.x.shape == (8, 20, 9)
    assert np.isfinite(batch.x).all()
    assert not batch.interventions[:, :13].any()
    targets = batch.interventions[:, 13:].sum(axis=2)
    if name == "general":  # rows may have several targets or unrecorded ones, and a few graphs have cycles
        assert all((found >= 1).all() or not found.any() for found in targets)
    else:
        assert (targets == 1).all()
        assert all(is_acyclic(graph) for graph in batch.graph)


@settings(max_examples=20)
@given(st.sampled_from(SCM), st.integers(0, 2**31), st.integers(1, 9), st.data())
def test_a_dataset_does_not_depend_on_its_batch(name, seed, d, data) -> None:
    size = data.draw(st.integers(1, 6))
    k = data.draw(st.integers(0, size - 1))
    domain = get_domain(name)
    batch = domain.sample(d=d, n=7, n_interventional=3, seed=seed, size=size)
    alone = domain.sample(d=d, n=7, n_interventional=3, seed=seed, start=k)
    assert (alone.x[0] == batch.x[k]).all()
    assert (alone.graph[0] == batch.graph[k]).all()
    assert (alone.interventions[0] == batch.interventions[k]).all()


def _digest(batch: presage.Dataset) -> str:
    return hashlib.sha256(batch.x.tobytes() + batch.graph.tobytes() + batch.interventions.tobytes()).hexdigest()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_another_process_draws_the_same_dataset(threads) -> None:
    code = (
        "import hashlib, presage\n"
        "b = presage.simulate('scm', d=12, n=1100, n_interventional=10, seed=4, size=5)\n"
        "print(hashlib.sha256(b.x.tobytes() + b.graph.tobytes() + b.interventions.tobytes()).hexdigest())"
    )
    environment = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    here = presage.simulate("scm", d=12, n=1100, n_interventional=10, seed=4, size=5)
    assert run.stdout.strip() == _digest(here)


def test_seeds_and_indices_give_different_datasets() -> None:
    seen = {_digest(presage.simulate("linear", d=3, n=4, seed=seed, size=1)) for seed in range(30)}
    batch = presage.simulate("linear", d=3, n=4, seed=0, size=30)
    assert len(seen) == 30
    assert len({data.x.tobytes() for data in batch}) == 30


def test_simulate_uses_the_test_stream() -> None:
    one = presage.simulate("rff", d=4, n=5, seed=2)
    assert (one.x == get_domain("rff").sample(d=4, n=5, seed=2, stream=Stream.TEST).x[0]).all()
    assert one.graph is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": "rf"}, "there is no domain 'rf'; choose one of: linear"),
        ({"d": 0}, "d must be a whole number of at least 1, not 0"),
        ({"n": -3}, "n must be a whole number of at least 1, not -3"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"d": True}, "d must be a whole number"),
        ({"size": 0}, "size must be"),
        ({"n_interventional": -1}, "n_interventional must be"),
        ({"n": 5, "n_interventional": 6}, "cannot exceed n"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_invalid_requests_raise(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        presage.simulate(**{"domain": "rff", "d": 3, "n": 4, **arguments})


@register
@dataclass(frozen=True, kw_only=True)
class Threshold(Mechanism):
    """A step function of random height, as an example of a custom mechanism."""

    height: tuple[float, ...] = options(1.0, 5.0)

    def function(self, rng, n_parents):
        return lambda parents: self.only("height") * (parents.sum(axis=1) > 0)


@register
@dataclass(frozen=True, kw_only=True)
class Uniform(Noise):
    width: float = 0.5

    def sampler(self, rng, n_parents):
        return lambda noise_rng, parents: noise_rng.uniform(-self.width, self.width, len(parents))


def test_a_domain_with_custom_components() -> None:
    domain = ScmDomain(graphs=(ErdosRenyi(),), mechanisms=(Threshold(),), noises=(Uniform(),))
    assert from_json(json.loads(json.dumps(to_json(domain)))) == domain
    assert "Threshold" in str(domain)
    batch = presage.simulate(domain, d=5, n=50, seed=0, size=40)
    heights = {float(h) for h in np.unique(np.round(np.abs(batch.x).max(axis=(1, 2)) - 0.25))}
    assert heights - {0.0} == {1.0, 5.0}
    assert (np.abs(batch.x) <= 5.5).all()


def test_domain_files(tmp_path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(to_json(get_domain("rff-ood"))))
    assert open_domain(str(path)) == get_domain("rff-ood")
    for text, message in (
        ("{", "not valid JSON"),
        ('{"type": "ErdosRenyi"}', "no Domain of type 'ErdosRenyi'"),
        ("[1]", "Domain must be a JSON object"),
        (path.read_text().replace("0.3", "NaN"), "finite number"),
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ConfigError, match=message):
            open_domain(str(tmp_path / "bad.json"))
    with pytest.raises(ConfigError, match="cannot read"):
        open_domain(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    "components", [{"graphs": ()}, {"mechanisms": (Homoscedastic(),)}, {"noises": Homoscedastic()}]
)
def test_domains_need_components_of_the_right_kind(components) -> None:
    fine = {"graphs": (ErdosRenyi(),), "mechanisms": (Linear(),), "noises": (Homoscedastic(),)}
    with pytest.raises(
        ConfigError, match=rf"ScmDomain\.{next(iter(components))} must (hold at least one|be a list with every item a)"
    ):
        ScmDomain(**(fine | components))
