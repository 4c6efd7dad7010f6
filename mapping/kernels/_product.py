"""Operands of matrix products as views with axes (b, c, rows, columns); b and c are batches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from npusim import Axis, Operation, Span, Unsuited, View

from ._integers import Product


@dataclass(frozen=True)
class Sizes:
    """Extents of C[b,c,m,n] = A[b,c,m,k] B[b,c,k,n]; a batch of B alone is folded into m.

    `dims` are the dimensions of the result behind b, c, m and n.
    """

    b: int
    c: int
    m: int
    n: int
    k: int
    dims: Mapping[str, Sequence[int]]


def sizes(op: Operation) -> Sizes:
    """Extents of a MatMul or Gemm."""
    node = op.graph.tensors
    a, b, y = (node[name].shape for name in (*op.node.inputs[:2], op.node.outputs[0]))
    rank = len(y)
    folded = {"b": (), "c": (), "m": range(rank - 1), "n": (rank - 1,)}
    if op.kind == "Gemm":
        return Sizes(1, 1, y[0], y[1], a[0 if op.attribute("transA") else 1], folded)
    if len(a) < 2 or len(b) < 2:
        raise Unsuited("vectors are not matrices: reshape them to one row or column")
    if prod(b[:-2]) == 1:
        return Sizes(1, 1, prod(y[:-1]), y[-1], a[-1], folded)
    for shape in (a, b):
        if _repeats(shape[:-3], y[:-3]):
            raise Unsuited(f"the batches of {shape} repeat along some of those of {y} only")
    dims = {"b": range(rank - 3), "c": (rank - 3,), "m": (rank - 2,), "n": (rank - 1,)}
    return Sizes(prod(y[:-3]), y[-3], y[-2], y[-1], a[-1], dims)


def _repeats(batches: tuple[int, ...], of: tuple[int, ...]) -> bool:
    """Whether batches are stretched along some dimensions and not along others."""
    own = (1,) * (len(of) - len(batches)) + batches
    return len({have == want for have, want in zip(own, of, strict=True) if want > 1}) > 1


def varies_along_batches(op: Operation, which: int) -> tuple[bool, bool]:
    """Whether operand 0 (A) or 1 (B) has a matrix of its own along b, and along c."""
    batches = op.graph.tensors[op.node.inputs[which]].shape[:-2]
    return prod(batches[:-1]) > 1, batches[-1:] > (1,)


def operands(op: Operation, product: Product, Y: View) -> tuple[View, View, View]:
    """A (b c m k), B (b c k n) and a result C (b c m n)."""
    A, B = product.view(0), product.view(1)
    if op.kind == "Gemm":
        turn_a, turn_b = op.attribute("transA"), op.attribute("transB")
        a = A.axes("b c k m").permute("b c m k") if turn_a else A.axes("b c m k")
        b = B.axes("b c n k").permute("b c k n") if turn_b else B.axes("b c k n")
        return a, b, Y.axes("b c m n")
    extent = sizes(op)
    if extent.b * extent.c == 1:
        a, y = A.axes("m k"), Y.axes("m n")
        return a.axes("b c m k"), B.axes("b c k n"), y.axes("b c m n")
    batch = (extent.b, extent.c)
    return (
        A.axes("b c m k").broadcast((*batch, extent.m, extent.k)),
        B.axes("b c k n").broadcast((*batch, extent.k, extent.n)),
        Y.axes("b c m n"),
    )


def tiles_of(rows: Axis, columns: Axis, m: int, n: int, hold: str) -> Iterator[tuple[Span, Span]]:
    """Tiles of C, so that a held panel of A (or of B) is used up before the next one."""
    if hold == "b":
        for j in columns.tiles(n):
            for i in rows.tiles(m):
                yield i, j
    else:
        for i in rows.tiles(m):
            for j in columns.tiles(n):
                yield i, j
