"""How a matrix product falls into folds of the arrays, and what a run of folds costs.

Per fold of an R x C array (S rows streamed, L cycles of stationary load, skew R + C - 2):

    none        L + S + skew                     exact against published simulators
    weights     S + skew, the first load exposed
    pipelined   max(S, R), with the first load and the last skew exposed once per run

Source of the `none` forms: output-stationary K + R + C - 2, weight-stationary M + 2R + C - 2,
input-stationary N + 2R + C - 2 cycles per fold (Samajdar et al., SCALE-Sim, ISPASS 2020).

A tensor core (m x n x k per cycle) has folds too: blocks of m x n sums, each of which takes
ceil(K / k) cycles; its latency is exposed once per run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npusim.hw.matrix import Matrix

Stationary = Literal["A", "B"]
Held = Literal["A", "B", "C"]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Folds:
    """How C[m,n] += A[m,k] B[k,n] falls into folds of the busiest array; int64 arrays.

    `stream` are the cycles in which useful rows enter per fold, `load` the cycles that bring in
    the stationary operand of one fold, `skew` those from the last row's entry to its exit.
    """

    count: Ints
    stream: Ints
    load: Ints
    skew: Ints

    def useful_cycles(self) -> Ints:
        """Cycles in which useful rows enter the array."""
        return self.count * self.stream


@dataclass(frozen=True, slots=True)
class Split:
    """How arrays share a product (A50): over so many parts of the columns that they hold, and so
    many parts of the rows that stream past them."""

    columns: Ints
    rows: Ints


def ceil_div(a: Any, b: Any) -> Any:
    """The quotient, rounded up."""
    return -(-a // b)


def whole_cycles(amount: ArrayLike, rate: float) -> Ints:
    """ceil(amount / rate), without the cycle too many that rounding gives 12 / 0.3."""
    return np.ceil(np.round(np.asarray(amount, np.float64) / rate, 9)).astype(np.int64)


def held_operand(matrix: Matrix, stationary: Stationary) -> Held:
    """The operand that stays in the array where a product asks for `stationary`."""
    if matrix.style == "tensor_core" or matrix.dataflow == "output_stationary":
        return "C"
    if matrix.dataflow == "input_stationary":
        return "B" if stationary == "A" else "A"
    return stationary


def split(matrix: Matrix, m: ArrayLike, n: ArrayLike, held: Held) -> Split:
    """How the arrays share a product: the folds of columns first, then rows with what is left."""
    m, n = np.asarray(m, np.int64), np.asarray(n, np.int64)
    across, along = (m, n) if held == "A" else (n, m)
    columns = np.clip(ceil_div(across, matrix.columns), 1, matrix.arrays)
    rows = matrix.arrays // columns
    most = ceil_div(along, matrix.rows) if held == "C" else along
    return Split(columns, np.minimum(rows, np.maximum(most, 1)))


def folds(
    matrix: Matrix,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    dtype_name: str,
    stationary: Stationary = "B",
) -> Folds:
    """Folds of a matrix product of the given extents (broadcast against each other) (A7, A8).

    `stationary` names the operand that a weight-stationary array holds; an input-stationary one
    holds the other. An output-stationary array holds C whatever is asked, and so does a tensor
    core.
    """
    m, n, k = (np.asarray(x, np.int64) for x in (m, n, k))
    rate, held = matrix.rates[dtype_name], held_operand(matrix, stationary)
    if matrix.style == "tensor_core":
        blocks = ceil_div(m, matrix.rows) * ceil_div(n, matrix.columns)
        stream = whole_cycles(k, matrix.depth * rate)
        return _folds(ceil_div(blocks, matrix.arrays), stream, 0, matrix.latency_cycles)
    rows, columns, shared = matrix.rows, matrix.columns, split(matrix, m, n, held)
    skew = rows + columns - 2
    if held == "C":
        high, wide = ceil_div(m, rows), ceil_div(n, columns)
        count = ceil_div(high, shared.rows) * ceil_div(wide, shared.columns)
        return _folds(count, whole_cycles(k, rate), 0, skew)
    across, along = (n, m) if held == "B" else (m, n)
    count = ceil_div(k, rows) * ceil_div(ceil_div(across, columns), shared.columns)
    return _folds(count, whole_cycles(ceil_div(along, shared.rows), rate), rows, skew)


def _folds(count: Ints, stream: Ints, load: int, skew: int) -> Folds:
    shape = np.broadcast_shapes(count.shape, stream.shape)
    return Folds(
        count=np.broadcast_to(count, shape),
        stream=np.broadcast_to(stream, shape),
        load=np.full(shape, load, np.int64),
        skew=np.full(shape, skew, np.int64),
    )


def occupied_cycles(matrix: Matrix, work: Folds) -> Ints:
    """Cycles for which the work keeps later work out of the array, inside a back-to-back run."""
    if matrix.style == "tensor_core":
        return work.count * work.stream
    if matrix.fold_overlap == "none":
        return work.count * (work.load + work.stream + work.skew)
    if matrix.fold_overlap == "weights":
        return work.count * (work.stream + work.skew)
    return work.count * np.maximum(work.stream, matrix.rows)


def without_load_cycles(matrix: Matrix, work: Folds) -> Ints:
    """Occupation by a product of one fold whose stationary operand is in the array already."""
    return work.stream if matrix.fold_overlap == "pipelined" else work.stream + work.skew


def exposed_fill_cycles(matrix: Matrix, work: Folds) -> Ints:
    """Stationary load that nothing hides, once at the start of a run."""
    return np.zeros_like(work.load) if matrix.fold_overlap == "none" else work.load


def exposed_drain_cycles(matrix: Matrix, work: Folds) -> Ints:
    """Skew or latency that nothing hides, once at the end of a run."""
    hidden = matrix.style == "systolic" and matrix.fold_overlap != "pipelined"
    return np.zeros_like(work.skew) if hidden else work.skew


def entering_vectors(matrix: Matrix, m: ArrayLike, n: ArrayLike, held: Held) -> Ints:
    """Vectors of length k that all arrays fetch together; each fetches on its own (A50).

    What an array holds it fetches once, what streams once per pass over it; a tensor core keeps
    both operands in registers while it computes `register_rows` x `register_columns` of C.
    """
    m, n = np.asarray(m, np.int64), np.asarray(n, np.int64)
    if held == "C":
        high = matrix.register_rows or matrix.rows
        wide = matrix.register_columns or matrix.columns
        return np.asarray(m * ceil_div(n, wide) + n * ceil_div(m, high))
    along, across = (m, n) if held == "B" else (n, m)
    copies = split(matrix, m, n, held).rows
    return np.asarray(along * ceil_div(across, matrix.columns) + across * copies)
