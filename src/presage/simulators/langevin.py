"""Compiled integration of the chemical Langevin equation. Only `simulators/grn` imports it: numba is slow to load.

A lane is one cell type of one experiment. All lanes of a gene are integrated together. Arrays over time are flat with
the lane as the fastest index, so that the compiler vectorises all loops without a recursion in time.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from presage.simulators.vectors import compiled, exp2, log2, padded, standard_normals

__all__ = ["heights", "mean_field", "run", "run_together"]

_F = np.float32
_HALF, _ONE, _ZERO, _TINY = _F(0.5), _F(1.0), _F(0.0), _F(1e-20)


@compiled
def _activate(x, half, hill, out):
    """Hill function out = x^g / (h^g + x^g), element-wise, and 0 where x is 0."""
    for at in range(x.size):
        value = x[at]
        power = -hill * log2(max(value, _TINY) / max(half[at], _TINY))
        share = _ONE / (_ONE + exp2(min(max(power, _F(-100.0)), _F(100.0))))
        out[at] = share if value > _ZERO else _ZERO


@compiled
def _step(x, production, normals, lanes, rate, scale, dt, states):
    """Euler-Maruyama steps, flat over times and lanes: `states` receives every state; `x` ends one step later."""
    for row in range(0, production.size, lanes):
        for lane in range(lanes):
            value = x[lane]
            states[row + lane] = value
            gain, loss = max(_ZERO, production[row + lane]), rate * value
            value += (gain - loss) * dt + scale * np.sqrt(gain + loss) * normals[row + lane]
            x[lane] = max(_ZERO, value)


@compiled
def _add(target, weight, source):
    for at in range(target.size):
        target[at] += weight * source[at]


@compiled
def _spread(row, out):
    """Repeat a row of lanes over all times, copying in doubling lengths because long copies are faster."""
    done = min(row.size, out.size)
    for lane in range(done):
        out[lane] = row[lane]
    while done < out.size:
        more = min(done, out.size - done)
        source, target = out[:more], out[done : done + more]
        for at in range(more):
            target[at] = source[at]
        done += more


@compiled
def _scale(row, out):
    """Multiply every time by a row of lanes."""
    plain = True
    for lane in range(row.size):
        plain = plain and row[lane] == _ONE
    if plain:
        return
    for first in range(0, out.size, row.size):
        for lane in range(row.size):
            out[first + lane] *= row[lane]


@compiled
def _sum_times(x, out):
    """Sums over time per lane, eight time steps together because rows may be short."""
    wide = np.zeros(8 * out.size, dtype=np.float32)
    for first in range(0, x.size, wide.size):
        for at in range(min(wide.size, x.size - first)):
            wide[at] += x[first + at]
    for lane in range(out.size):
        out[lane] = _ZERO
        for at in range(lane, wide.size, out.size):
            out[lane] += wide[at]


@compiled
def _take(x, cells, out):
    for cell in range(cells.size):
        out[cell] = x[cells[cell]]


@compiled
def _average(total, steps, kinds, given, lane_mean, lane_half, means):
    """Means per lane and per experiment, and the half response of each lane: as given, or its experiment's mean."""
    for e in range(means.size):
        mean = _ZERO
        for lane in range(e * kinds, (e + 1) * kinds):
            lane_mean[lane] = total[lane] / _F(steps)
            mean += lane_mean[lane]
        means[e] = mean / _F(kinds)
        for lane in range(e * kinds, (e + 1) * kinds):
            lane_half[lane] = given[0] if given.size else means[e]


@compiled
def run(
    state,  # uint64 [2, STREAMS]
    order,  # genes, regulators first
    height,  # [d] length of the longest path to a gene without targets
    first_parent,  # [d + 1] offsets into parents and strength
    parents,
    strength,  # signed
    basal,  # [d, E * C] production of genes without regulators
    factor,  # [d, E * C] multiplies production: 0 in a knockout, 1/2 in a knockdown
    decay,  # [d]
    noise,  # [d]
    hill,  # [d] of the regulator
    half,  # [d, 1], or [d, 0]: then the mean within each experiment
    kinds,  # C, the number of cell types
    steps,  # length of the window that cells are sampled from
    warm,  # extra steps per unit of height
    dt,
    cells,  # [m] time * lanes + lane of each cell, time counted from the start of the window
):
    """Expression of the cells [d, m] and mean expression per experiment [d, E], one gene at a time.

    A gene starts `warm * height` steps before the window. Step s of a gene depends on step s of its regulators, each
    counted from its own start, so effects are delayed by `warm` steps per level, as in the paper's public code.
    """
    d, lanes = basal.shape
    tallest = 0
    slot = np.zeros(d, dtype=np.int64)  # index of a regulator's activation
    slots = 0
    for j in range(d):
        tallest = max(tallest, height[j])
        slot[j] = slots
        slots += 1 if height[j] > 0 else 0
    before = warm * tallest * lanes  # all offsets below are flat: time * lanes + lane
    length = before + steps * lanes
    expression = np.empty((d, cells.size), dtype=np.float32)
    means = np.empty((d, lanes // kinds), dtype=np.float32)
    lane_mean = np.empty((d, lanes), dtype=np.float32)
    lane_half = np.empty((d, lanes), dtype=np.float32)
    activation = np.empty((slots, length), dtype=np.float32)
    normal = np.empty(padded(length), dtype=np.float32)
    states = np.empty(length, dtype=np.float32)
    buffer = np.empty(length, dtype=np.float32)
    x = np.empty(lanes, dtype=np.float32)
    share = np.empty(lanes, dtype=np.float32)
    scale = _F(np.sqrt(dt))
    for j in order:
        begin = before - warm * height[j] * lanes
        production, trajectory = buffer[begin:], states[begin:]
        # Production at every step, and at the mean of the regulators, which gives the initial state.
        if first_parent[j] == first_parent[j + 1]:
            for lane in range(lanes):
                x[lane] = basal[j, lane]
            _spread(x, production)
        else:
            for lane in range(lanes):
                x[lane] = _ZERO
            for e in range(first_parent[j], first_parent[j + 1]):
                for lane in range(lanes):  # a repressor contributes |k| - |k| A
                    x[lane] += max(_ZERO, -strength[e])
            _spread(x, production)
            for e in range(first_parent[j], first_parent[j + 1]):
                i = parents[e]
                head = before - warm * height[i] * lanes  # counted from each gene's own start: see the delay above
                _add(production, strength[e], activation[slot[i], head : head + production.size])
                _activate(lane_mean[i], lane_half[i], hill[i], share)
                _add(x, strength[e], share)
        _scale(factor[j], production)
        for lane in range(lanes):
            x[lane] = max(_ZERO, x[lane]) * factor[j, lane] / decay[j]
        standard_normals(state, normal[: padded(production.size)])
        _step(x, production, normal, lanes, decay[j], noise[j] * scale, _F(dt), trajectory)
        window = states[before:]
        _sum_times(window, x)
        _average(x, steps, kinds, half[j], lane_mean[j], lane_half[j], means[j])
        if height[j] > 0:
            _spread(lane_half[j], production)  # production is no longer needed
            _activate(trajectory, production, hill[j], activation[slot[j], begin:])
        _take(window, cells, expression[j])
    return expression, means


@compiled
def _produce(j, first_parent, parents, strength, basal, factor, share, production):
    """Production of gene j in every lane, from the activations [d, lanes] of its regulators."""
    for lane in range(production.size):
        production[lane] = basal[j, lane] if first_parent[j] == first_parent[j + 1] else _ZERO
    for e in range(first_parent[j], first_parent[j + 1]):
        for lane in range(production.size):
            production[lane] += strength[e] * share[parents[e], lane] + max(_ZERO, -strength[e])
    for lane in range(production.size):
        production[lane] = max(_ZERO, production[lane]) * factor[j, lane]


@compiled
def run_together(
    state,
    first_parent,
    parents,
    strength,
    basal,
    factor,
    decay,
    noise,
    hill,
    half,  # [d, E * C]
    start,  # [d, E * C]
    steps,
    dt,
    cells,
):
    """Expression of the cells [d, m], means per lane [d, E * C] and the last state, with all genes integrated together.

    Arguments as in `run`; the graph may have cycles.
    """
    d, lanes = basal.shape
    expression = np.empty((d, cells.size), dtype=np.float32)
    by_time = np.argsort(cells)
    x, after = start.copy(), start.copy()
    total = np.zeros((d, lanes), dtype=np.float64)
    share = np.empty((d, lanes), dtype=np.float32)
    production = np.empty(lanes, dtype=np.float32)
    size = padded(d * lanes)
    normal = np.empty(size, dtype=np.float32)
    scale = _F(np.sqrt(dt))
    done = 0
    for t in range(steps):
        while done < cells.size and cells[by_time[done]] < (t + 1) * lanes:
            cell = by_time[done]
            for j in range(d):
                expression[j, cell] = x[j, cells[cell] - t * lanes]
            done += 1
        standard_normals(state, normal)
        for i in range(d):
            _activate(x[i], half[i], hill[i], share[i])
        for j in range(d):
            _produce(j, first_parent, parents, strength, basal, factor, share, production)
            for lane in range(lanes):
                total[j, lane] += x[j, lane]
                after[j, lane] = x[j, lane]
            normals = normal[j * lanes : (j + 1) * lanes]
            _step(after[j], production, normals, lanes, decay[j], noise[j] * scale, _F(dt), x[j])
        x, after = after, x
    return expression, (total / steps).astype(np.float32), x


@compiled
def mean_field(first_parent, parents, strength, basal, factor, decay, hill, half, kinds, rounds):
    """Noiseless steady state [d, E * C] by damped fixed-point iteration; `half` as in `run`."""
    d, lanes = basal.shape
    x = np.empty((d, lanes), dtype=np.float32)
    share = np.empty((d, lanes), dtype=np.float32)
    production = np.empty(lanes, dtype=np.float32)
    lane_mean = np.empty(lanes, dtype=np.float32)
    lane_half = np.empty(lanes, dtype=np.float32)
    means = np.empty(lanes // kinds, dtype=np.float32)
    x[:] = _ONE
    for _ in range(rounds):
        for i in range(d):
            _average(x[i], 1, kinds, half[i], lane_mean, lane_half, means)
            _activate(x[i], lane_half, hill[i], share[i])
        for j in range(d):
            _produce(j, first_parent, parents, strength, basal, factor, share, production)
            for lane in range(lanes):
                x[j, lane] = _HALF * (x[j, lane] + production[lane] / decay[j])
    return x


@compiled
def heights(order, first_parent, parents):
    """Length of the longest path from each gene to one without targets; `order` has regulators first."""
    height = np.zeros(order.size, dtype=np.int64)
    for j in order[::-1]:
        for e in range(first_parent[j], first_parent[j + 1]):
            height[parents[e]] = max(height[parents[e]], height[j] + 1)
    return height
