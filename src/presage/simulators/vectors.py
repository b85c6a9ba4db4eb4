"""Compiled float32 arithmetic that the compiler vectorises: log2, exp2 and blocks of normal variables.

Numba has no vectorised log, exp, sin and cos; short polynomials replace them. Only other compiled modules import this
one, because numba is slow to load.
"""

# mypy: disable-error-code="no-untyped-def, call-arg"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["STREAMS", "compiled", "exp2", "log2", "padded", "standard_normals"]

STREAMS = 16
"""Parallel random streams; a multiple of the widest vector registers in use."""

# error_model: a division that could raise would prevent vectorisation.
_cached: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
_uncached: Any = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
_inlined: Any = njit(inline="always")


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call and cache on disk; without a writable cache, compile in every process."""
    try:
        return _cached(function)
    except RuntimeError:  # numba found no writable cache folder
        return _uncached(function)


_F = np.float32
_LN2X2 = _F(2.0 * np.log(2.0))
_SMALL = _F(2.0**-24)
_HALF, _QUARTER, _ONE, _ZERO = _F(0.5), _F(0.25), _F(1.0), _F(0.0)
_ONE_BITS = np.int32(0x3F800000)
_MANTISSA = np.int32(0x007FFFFF)
_EDGE = np.int32(0x3F3504F3)  # sqrt(1/2) as bits
_CHUNK = 4096

# Coefficients, fitted by least squares at Chebyshev points; the errors are at the level of float32 rounding.
# log2(1 + t) = t * poly(t) for 1 + t in [sqrt(1/2), sqrt(2)].
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = map(
    _F, (1.442695, -0.72134733, 0.4809106, -0.36070484, 0.28791833, -0.23892035, 0.21566986, -0.20742103, 0.12614846)
)
# 2^t for t in [-1/2, 1/2].
_E0, _E1, _E2, _E3, _E4, _E5 = map(_F, (1.0000001, 0.6931472, 0.24022107, 0.05550327, 0.009676037, 0.0013400433))
# sin(2 pi q) = q * poly(q^2) for |q| <= 1/4.
_S0, _S1, _S2, _S3, _S4 = map(_F, (6.2831855, -41.341682, 81.60248, -76.58128, 39.760723))


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


@_inlined
def log2(x):
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


@_inlined
def exp2(x):
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


@_inlined
def _sine(q):
    """sin(2 pi q) for |q| <= 1/4."""
    s = q * q
    p = _S4
    p = p * s + _S3
    p = p * s + _S2
    p = p * s + _S1
    p = p * s + _S0
    return p * q


@compiled
def _words(state, out):
    """Fill `out` (uint64, length a multiple of STREAMS) from parallel xoroshiro128+ generators."""
    first, second = state[0], state[1]
    for block in range(0, out.size, STREAMS):
        for w in range(STREAMS):
            a, b = first[w], second[w]
            out[block + w] = a + b
            b ^= a
            first[w] = ((a << np.uint64(24)) | (a >> np.uint64(40))) ^ b ^ (b << np.uint64(16))
            second[w] = (b << np.uint64(37)) | (b >> np.uint64(27))


@compiled
def _box_muller(words, out):
    """Pairs of normals from pairs of int32, 24 bits of each."""
    half = out.size // 2
    left, right, x, y = words[:half], words[half : 2 * half], out[:half], out[half:]
    for i in range(half):
        radius = (_F(np.int32((left[i] >> np.int32(8)) & np.int32(0xFFFFFF))) + _ONE) * _SMALL  # (0, 1]
        angle = _F(np.int32(right[i] >> np.int32(8))) * _SMALL  # [-1/2, 1/2) turns
        size = np.sqrt(max(_ZERO, -_LN2X2 * log2(radius)))
        fold = abs(angle) - _QUARTER
        up = _sine(_QUARTER - abs(fold))
        x[i] = -size * _sine(fold)
        y[i] = size * (up if angle >= _ZERO else -up)


@compiled
def standard_normals(state, out):
    """Fill `out` (float32, length a multiple of 2 * STREAMS) with normals and advance `state` (uint64 [2, STREAMS])."""
    words = np.empty(_CHUNK // 2, dtype=np.uint64)
    for first in range(0, out.size, _CHUNK):
        chunk = out[first : first + _CHUNK]
        _words(state, words[: chunk.size // 2])
        _box_muller(words.view(np.int32), chunk)


@compiled
def padded(size):
    """The smallest length of at least `size` that `standard_normals` accepts."""
    return ((size + 2 * STREAMS - 1) // (2 * STREAMS)) * (2 * STREAMS)
