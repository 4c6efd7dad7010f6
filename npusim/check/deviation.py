"""Where device values are farthest from their references, in units of their tolerance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from npusim.check.rounding import Bound
from npusim.core.dtypes import DType, of_numpy
from npusim.graph.onnx_types import Array

_BLOCK = 1 << 17


@dataclass(frozen=True)
class Worst:
    """The element that fares worst, and how many are beyond their tolerance."""

    ratio: float
    error: float
    tolerance: float
    index: int | None
    failed: int


def worst_element(device: Array, reference: Array, bound: Bound) -> Worst:
    """The element of `device` that fares worst against its tolerance, of all that are not equal.

    The elements are gone through in blocks that fit a cache.
    """
    kind = of_numpy(device.dtype)
    flat, expected = device.reshape(-1), reference.reshape(-1)
    absolute = _flat(bound.absolute, reference)
    worst = Worst(0.0, 0.0, 0.0, None, 0)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            allowed = absolute if absolute.size == 1 else absolute[part]
            found = _worst_block(flat[part], expected[part], allowed, bound, kind)
            worst = _worse(worst, found, start)
    return worst


def _worse(known: Worst, found: Worst, start: int) -> Worst:
    failed = known.failed + found.failed
    if found.index is None or (known.index is not None and found.ratio <= known.ratio):
        return replace(known, failed=failed)
    return replace(found, index=start + found.index, failed=failed)


def _flat(x: Array | float, like: Array) -> Array:
    """One value for all elements, or one for each."""
    array = np.asarray(x, np.float64)
    return array.reshape(1) if array.size == 1 else np.broadcast_to(array, like.shape).reshape(-1)


def _worst_block(
    device: Array, reference: Array, allowed: Array, bound: Bound, kind: DType
) -> Worst:
    got, expected = device.astype(np.float64), reference.astype(np.float64)
    error = np.abs(got - expected)
    if bound.exact:
        equal, tolerance = device == reference.astype(kind.numpy), np.zeros(1)
    else:
        slack = kind.tiny if kind.is_float else 0.0
        allowed = np.where(np.isfinite(allowed), allowed, 0.0)
        tolerance = allowed + (bound.relative + kind.unit_roundoff) * np.abs(expected) + slack
        equal = error == 0
    ratio = np.where(equal, 0.0, error / tolerance)
    odd = ~(np.isfinite(got) & np.isfinite(expected))
    if odd.any():
        beyond = np.where(_coincide(got, expected, tolerance, kind), 0.0, inf)
        ratio, error = np.where(odd, beyond, ratio), np.where(odd, beyond, error)
    at = int(np.argmax(ratio))
    allowed_there = float(np.broadcast_to(tolerance, ratio.shape)[at])
    failed = int((ratio > 1).sum())
    return Worst(float(ratio[at]), float(error[at]), allowed_there, at, failed)


def _coincide(got: Array, expected: Array, tolerance: Array, kind: DType) -> Array:
    """NaN with NaN; an infinity with itself, or with a reference that the dtype cannot hold."""
    edge = kind.largest * (1 - 2 * kind.unit_roundoff)
    overflow = np.isinf(got) & (np.abs(expected) + tolerance >= edge)
    both = np.isnan(got) & np.isnan(expected)
    return np.asarray(both | (overflow & (np.sign(got) == np.sign(expected))))
