"""Tolerances of matrix products and convolutions, by the cheap form |a_i| |b_j|."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from npusim.check.rounding import EXACT, U32, Bound, Rounding, accumulation
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops.base import is_float, needed, optional, real
from npusim.graph.ops.conv import conv_windows
from npusim.graph.ops.windows import Windows

_QUICK_ELEMENTS = 1 << 20


def matmul_bound(a: Array, b: Array, rounding: Rounding) -> Bound:
    """(2 sqrt(d) u_acc + ...) |a_i|_2 |b_j|_2, which bounds (|A||B|)_ij by Cauchy-Schwarz.

    It is about 1.6 times looser than (|A||B|)_ij for normal data, and needs no second product.
    """
    if not is_float(a):
        return EXACT
    factor, note = accumulation(a.shape[-1], rounding)
    return Bound(cross(factor * norms(a, -1), norms(b, -2), b.ndim), note=note)


def gemm_bound(node: Node, inputs: Sequence[Array | None], rounding: Rounding) -> Bound:
    """As matmul_bound for alpha A' B', and c u32 (|alpha A' B'| + |beta C|) for the sum."""
    a, b = operands(node, inputs)
    product = matmul_bound(needed(a), needed(b), rounding)
    if product.exact:
        return product
    c = optional(inputs, 2)
    absolute = abs(node.attributes.get("alpha", 1.0)) * product.absolute
    beta = abs(node.attributes.get("beta", 1.0))
    if c is not None and beta:
        absolute = absolute + 4 * U32 * beta * np.abs(real(c))
    return Bound(absolute, 4 * U32, note=product.note)


def conv_bound(node: Node, inputs: Sequence[Array | None], rounding: Rounding) -> Bound:
    """As matmul_bound with K = C/g kh kw: the norm of each patch times that of each filter."""
    x, weight, bias = needed(inputs[0]), needed(inputs[1]), optional(inputs, 2)
    factor, note = accumulation(prod(weight.shape[1:]), rounding)
    groups = node.attributes.get("group", 1)
    patches = patch_norms(x, conv_windows(node, x.shape, weight.shape), groups)
    absolute = factor * outer(patches, norms(weight.reshape(len(weight), -1), -1))
    if bias is not None:
        absolute = absolute + 2 * U32 * channels(np.abs(real(bias)), x.ndim)
    return Bound(absolute, 2 * U32, note=note)


def transposed_conv_bound(
    inputs: Sequence[Array | None], reference: Array, rounding: Rounding
) -> Bound:
    """As matmul_bound with the largest row of x and the largest filter: no output exceeds it."""
    x, weight = real(inputs[0]), real(inputs[1])
    factor, note = accumulation(x.shape[1] * prod(weight.shape[2:]), rounding)
    pixel = _largest(np.sqrt(np.square(x).sum(axis=1)))
    taps = np.sqrt(prod(weight.shape[2:]))
    filters = _largest(np.sqrt(np.square(weight).sum(axis=(0, *range(2, weight.ndim)))))
    bias = optional(inputs, 2)
    shift = 0.0 if bias is None else _largest(np.abs(real(bias)))
    absolute = factor * pixel * taps * filters + 2 * U32 * shift
    return Bound(np.full(reference.shape, absolute), 2 * U32, note=note)


def _largest(x: Array) -> float:
    """The largest finite element: what is infinite makes its results infinite too."""
    return float(x[np.isfinite(x)].max(initial=0.0))


def operands(node: Node, arrays: Sequence[Array | None]) -> tuple[Array | None, Array | None]:
    """A and B (or what belongs to them) as they are multiplied: Gemm may transpose them."""
    pairs = zip(arrays[:2], ("transA", "transB"), strict=True)
    a, b = (x if x is None or not node.attributes.get(flag, 0) else x.T for x, flag in pairs)
    return a, b


def cross(rows: Array, columns: Array, columns_rank: int) -> Array:
    """Products of every row's and every column's value; B of rank 1 is a single column."""
    if columns_rank == 1:
        return rows * columns
    if rows.ndim == 0:
        return rows * columns
    return np.asarray(rows[..., None] * columns[..., None, :])


def norms(x: Array, axis: int, power: int = 2) -> Array:
    """Norms of power 2 or 4 along the last or the last but one axis."""
    axis = max(axis, -x.ndim)
    if x.ndim != 2 or x.dtype.itemsize > 4:
        return _exact_norms(x, axis, power)
    found = _quick_norms(x, axis, power)
    doubtful = ~(np.isfinite(found) & (found > 0))
    if doubtful.any():
        found[doubtful] = _exact_norms(x[doubtful] if axis == -1 else x[:, doubtful], axis, power)
    return found


def _exact_norms(x: Array, axis: int, power: int) -> Array:
    squares = np.square(real(x))
    powers = np.square(squares) if power == 4 else squares
    return np.asarray(powers.sum(axis=axis) ** (1 / power))


def _quick_norms(x: Array, axis: int, power: int) -> Array:
    """Norms of a matrix by fp32 powers of a few rows at a time, ten times faster.

    Good to 1e-4, which a bound forgives; not to be trusted where powers leave fp32's range.
    """
    step = max(1, _QUICK_ELEMENTS // max(1, x.shape[1]))
    sums = []
    for start in range(0, x.shape[0], step):
        rows = np.square(x[start : start + step].astype(np.float32))
        rows = np.square(rows) if power == 4 else rows
        sums.append(rows.sum(axis=1) if axis == -1 else np.ones(len(rows), np.float32) @ rows)
    if not sums:
        return np.zeros(x.shape[0 if axis == -1 else 1])
    total = np.concatenate(sums) if axis == -1 else np.sum(sums, axis=0, dtype=np.float64)
    return np.asarray(total.astype(np.float64) ** (1 / power))


def patch_norms(x: Array, shape: Windows, groups: int, power: int = 2) -> Array:
    """The norm of what each window of each group sees: [N, groups, *out]."""
    powers = np.square(real(x))
    powers = np.square(powers) if power == 4 else powers
    depth = x.shape[1] // groups
    powers = powers.reshape(x.shape[0], groups, depth, *x.shape[2:]).sum(axis=2)
    padded = shape.padded(powers, 0)
    total = np.zeros((*powers.shape[:2], *shape.out))
    for offset in shape.offsets():
        total += shape.tap(padded, offset)
    return np.asarray(total ** (1 / power))


def outer(patches: Array, filters: Array) -> Array:
    """Patches [N, groups, *out] times their group's filters [F]: [N, F, *out]."""
    groups = patches.shape[1]
    per_group = filters.reshape(groups, -1)
    shaped = per_group.reshape(1, groups, -1, *(1,) * (patches.ndim - 2))
    product = patches[:, :, None] * shaped
    return np.asarray(product.reshape(patches.shape[0], filters.size, *patches.shape[2:]))


def channels(values: Array, rank: int) -> Array:
    """A vector over channels that broadcasts against [N, C, ...]."""
    return values.reshape((-1,) + (1,) * (rank - 2))
