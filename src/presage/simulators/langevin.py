"""Compiled stepping of the chemical Langevin equation. Only `simulators/grn` imports this: numba is slow to load.

Everything works on lanes. A lane is one cell type of one experiment; all lanes of a gene are stepped together, and
arrays over time are flat with the lane running fastest, so the loops without a recursion in time become vector code.
Numba ships no vector versions of log, exp, sin and cos: the short float32 polynomials below take their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["STREAMS", "heights", "mean_field", "run", "run_together", "standard_normals"]

STREAMS = 16
"""Parallel random streams; a multiple of the widest vector of today's processors."""

_F = np.float32
_LN2X2 = _F(2.0 * np.log(2.0))
_TWO_PI = _F(2.0 * np.pi)
_SMALL = _F(2.0**-24)
_HALF, _QUARTER, _ONE, _ZERO = _F(0.5), _F(0.25), _F(1.0), _F(0.0)
_ONE_BITS = np.int32(0x3F800000)
_MANTISSA = np.int32(0x007FFFFF)
_EDGE = np.int32(0x3F3504F3)  # sqrt(1/2) as bits

# log2(1 + t) = t * poly(t) for 1 + t in [sqrt(1/2), sqrt(2)], and 2^t for t in [-1/2, 1/2]: least squares at
# Chebyshev points in double precision, done once at import; the error is at float32 rounding.
_nodes = np.cos(np.pi * (np.arange(400) + 0.5) / 400)
_t = 0.5 * (np.sqrt(2.0) - np.sqrt(0.5)) * _nodes + 0.5 * (np.sqrt(2.0) + np.sqrt(0.5)) - 1.0
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = (
    _F(c) for c in np.polynomial.polynomial.polyfit(_t, np.log2(1 + _t) / _t, 8)
)
_E0, _E1, _E2, _E3, _E4, _E5 = (_F(c) for c in np.polynomial.polynomial.polyfit(0.5 * _nodes, 2.0 ** (0.5 * _nodes), 5))
# sin(2 pi q) = q * poly(q^2) for |q| <= 1/4.
_q = 0.25 * _nodes
_S0, _S1, _S2, _S3, _S4 = (_F(c) for c in np.polynomial.polynomial.polyfit(_q**2, np.sin(2 * np.pi * _q) / _q, 4))


@intrinsic
def _bits(typingctx: Any, value: Any) -> Any:
    """The bits of a float32 as int32."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), code


@intrinsic
def _float(typingctx: Any, value: Any) -> Any:
    """The float32 of some int32 bits."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), code


@njit(inline="always")
def _log2(x):  # noqa: ANN001, ANN202
    """log2 of a positive, normal float32."""
    bits = np.int32(_bits(x) - _EDGE)
    power = np.int32(bits >> np.int32(23))
    t = _float(np.int32(np.int32(bits & _MANTISSA) + _EDGE)) - _ONE
    p = _L8
    p = p * t + _L7
    p = p * t + _L6
    p = p * t + _L5
    p = p * t + _L4
    p = p * t + _L3
    p = p * t + _L2
    p = p * t + _L1
    p = p * t + _L0
    return p * t + _F(power)


@njit(inline="always")
def _exp2(x):  # noqa: ANN001, ANN202
    """2^x of a float32 between -120 and 120."""
    whole = np.int32(np.floor(x + _HALF))
    t = x - _F(whole)
    p = _E5
    p = p * t + _E4
    p = p * t + _E3
    p = p * t + _E2
    p = p * t + _E1
    p = p * t + _E0
    return p * _float(np.int32(np.int32(whole << np.int32(23)) + _ONE_BITS))


@njit(inline="always")
def _sine(q):  # noqa: ANN001, ANN202
    """sin(2 pi q) for |q| <= 1/4."""
    s = q * q
    p = _S4
    p = p * s + _S3
    p = p * s + _S2
    p = p * s + _S1
    p = p * s + _S0
    return p * q


@njit(cache=True, nogil=True, fastmath={"contract"})
def standard_normals(state, out):  # noqa: ANN001, ANN201
    """Fill `out` (float32, length a multiple of 2 * STREAMS) with normals; `state` (uint64 [2, STREAMS]) moves on.

    STREAMS generators of the kind xoroshiro128+ run side by side; each 64 bits give a Box-Muller pair.
    """
    first, second = state[0], state[1]
    for block in range(0, out.size, 2 * STREAMS):
        for w in range(STREAMS):
            a, b = first[w], second[w]
            word = a + b
            b ^= a
            first[w] = ((a << np.uint64(24)) | (a >> np.uint64(40))) ^ b ^ (b << np.uint64(16))
            second[w] = (b << np.uint64(37)) | (b >> np.uint64(27))
            radius = (_F(np.int32(word >> np.uint64(40))) + _ONE) * _SMALL  # (0, 1]
            angle = _F(np.int32((word >> np.uint64(16)) & np.uint64(0xFFFFFF))) * _SMALL - _HALF  # [-1/2, 1/2)
            size = np.sqrt(max(_ZERO, -_LN2X2 * _log2(radius)))
            fold = abs(angle) - _QUARTER
            up = _sine(_QUARTER - abs(fold))
            out[block + w] = -size * _sine(fold)
            out[block + STREAMS + w] = size * (up if angle >= _ZERO else -up)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _activate(x, start, stop, lanes, half, hill, out):  # noqa: ANN001, ANN202
    """out = x^g / (h^g + x^g), and 0 where x is 0; `half` holds one h per lane."""
    for t in range(start, stop):
        row = t * lanes
        for lane in range(lanes):
            value = x[row + lane]
            ratio = max(value, _F(1e-20)) / max(half[lane], _F(1e-20))
            power = hill * _log2(ratio)
            share = _ONE / (_ONE + _exp2(min(max(-power, _F(-100.0)), _F(100.0))))
            out[row + lane] = share if value > _ZERO else _ZERO


@njit(cache=True, nogil=True, fastmath={"contract"})
def run(  # noqa: ANN201, PLR0913
    state,  # noqa: ANN001  uint64 [2, STREAMS]
    order,  # noqa: ANN001  genes, regulators first
    height,  # noqa: ANN001  longest way down to a gene without targets, per gene
    first_parent,  # noqa: ANN001  [d + 1] offsets into parents and strength
    parents,  # noqa: ANN001
    strength,  # noqa: ANN001  signed
    basal,  # noqa: ANN001  [d, C] production of genes without regulators
    factor,  # noqa: ANN001  [E, d] multiplies production: 0 in a knockout, 1/2 in a knockdown
    decay,  # noqa: ANN001  [d]
    noise,  # noqa: ANN001  [d]
    hill,  # noqa: ANN001  [d] of the regulator
    half,  # noqa: ANN001  [d] or empty: then the mean of each experiment
    steps,  # noqa: ANN001  length of the window that cells are taken from
    warm,  # noqa: ANN001  extra steps per unit of height
    dt,  # noqa: ANN001
    cells,  # noqa: ANN001  [m] time * lanes + lane of each cell, time counted from the start of the window
):
    """Expression of the cells [d, m] and mean expression per experiment [d, E], gene after gene.

    A gene is stepped from the moment all its targets need it: `warm * height` steps before the window.
    """
    d, types_ = basal.shape
    experiments = factor.shape[0]
    lanes = experiments * types_
    before = warm * height.max()
    length = (before + steps) * lanes
    padded = ((length + 2 * STREAMS - 1) // (2 * STREAMS)) * (2 * STREAMS)
    expression = np.empty((d, cells.size), dtype=np.float32)
    means = np.empty((d, experiments), dtype=np.float32)
    lane_mean = np.empty((d, lanes), dtype=np.float32)
    lane_half = np.empty((d, lanes), dtype=np.float32)
    slot = np.full(d, -1, dtype=np.int64)  # where the activation of a regulator is kept
    used = 0
    for j in range(d):
        if height[j] > 0:
            slot[j] = used
            used += 1
    activation = np.empty((used, length), dtype=np.float32)
    normal = np.empty(padded, dtype=np.float32)
    track = np.empty(length, dtype=np.float32)
    production = np.empty(length, dtype=np.float32)
    x = np.empty(lanes, dtype=np.float32)
    one_value = np.empty(1, dtype=np.float32)
    one_share = np.empty(1, dtype=np.float32)
    drift = _F(dt)
    for j in order:
        begin = before - warm * height[j]
        low, high = begin * lanes, length
        lo, hi = first_parent[j], first_parent[j + 1]
        rate, scale = decay[j], noise[j] * np.sqrt(drift)
        # Production at every step, and at the mean of the regulators, which gives the starting point.
        if lo == hi:
            for lane in range(lanes):
                level = basal[j, lane % types_] * factor[lane // types_, j]
                x[lane] = level / rate
                for at in range(low + lane, high, lanes):
                    production[at] = level
        else:
            base = _ZERO
            for e in range(lo, hi):
                base += max(_ZERO, -strength[e])
            production[low:high] = base
            x[:] = base
            for e in range(lo, hi):
                i, k = parents[e], strength[e]
                share = activation[slot[i]]
                for at in range(low, high):
                    production[at] += k * share[at]
                for lane in range(lanes):
                    one_value[0] = lane_mean[i, lane]
                    _activate(one_value, 0, 1, 1, lane_half[i, lane : lane + 1], hill[i], one_share)
                    x[lane] += k * one_share[0]
            for lane in range(lanes):
                x[lane] = max(_ZERO, x[lane]) * factor[lane // types_, j] / rate
            if experiments > 1 or factor[0, j] != _ONE:
                for e in range(experiments):
                    share_left = factor[e, j]
                    if share_left != _ONE:
                        for at in range(low + e * types_, high, lanes):
                            for c in range(types_):
                                production[at + c] *= share_left
        size = ((high - low + 2 * STREAMS - 1) // (2 * STREAMS)) * (2 * STREAMS)
        standard_normals(state, normal[:size])
        for at in range(low, high, lanes):
            now, make, wind = track[at : at + lanes], production[at : at + lanes], normal[at - low : at - low + lanes]
            for lane in range(lanes):
                value = x[lane]
                now[lane] = value
                made, lost = max(_ZERO, make[lane]), rate * value
                value += (made - lost) * drift + scale * np.sqrt(made + lost) * wind[lane]
                x[lane] = max(_ZERO, value)
        window = before * lanes
        total = np.zeros(lanes, dtype=np.float64)
        for at in range(window, high, lanes):
            for lane in range(lanes):
                total[lane] += track[at + lane]
        for e in range(experiments):
            mean = 0.0
            for c in range(types_):
                lane = e * types_ + c
                lane_mean[j, lane] = total[lane] / steps
                mean += total[lane] / steps
            means[j, e] = mean / types_
            for c in range(types_):
                lane_half[j, e * types_ + c] = half[j] if half.size else means[j, e]
        if slot[j] >= 0:
            _activate(track, begin, before + steps, lanes, lane_half[j], hill[j], activation[slot[j]])
        for cell in range(cells.size):
            expression[j, cell] = track[window + cells[cell]]
    return expression, means


@njit(cache=True, nogil=True)
def heights(order, first_parent, parents):  # noqa: ANN001, ANN201
    """Edges on the longest way from each gene down to one without targets; `order` has regulators first."""
    height = np.zeros(order.size, dtype=np.int64)
    for j in order[::-1]:
        for e in range(first_parent[j], first_parent[j + 1]):
            height[parents[e]] = max(height[parents[e]], height[j] + 1)
    return height
