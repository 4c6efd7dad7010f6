"""Operands of matrix products as views with axes (b, c, rows, columns); b and c are batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from npusim import Axis, InputError, Operation, Span, Unsuited, View


@dataclass(frozen=True)
class Sizes:
    """Extents of C[b,c,m,n] = A[b,c,m,k] B[b,c,k,n]; a batch of B alone is folded into m."""

    b: int
    c: int
    m: int
    n: int
    k: int


def sizes(op: Operation) -> Sizes:
    """Extents of a MatMul or Gemm."""
    if op.kind == "Gemm":
        m, n = op.given("Y").shape
        return Sizes(1, 1, m, n, op.given("A").shape[0 if op.attribute("transA") else 1])
    a, b, y = op.given("A").shape, op.given("B").shape, op.given("Y").shape
    if len(a) < 2 or len(b) < 2:
        raise Unsuited("vectors are not matrices: reshape them to one row or column")
    if prod(b[:-2]) == 1:
        return Sizes(1, 1, prod(y[:-1]), y[-1], a[-1])
    batch = y[:-2]
    return Sizes(prod(batch[:-1]), batch[-1], y[-2], y[-1], a[-1])


def operands(op: Operation) -> tuple[View, View, View]:
    """A (b c m k), B (b c k n) and the group's result C (b c m n)."""
    if op.kind == "Gemm":
        turn_a, turn_b = op.attribute("transA"), op.attribute("transB")
        a = op.A.axes("b c k m").permute("b c m k") if turn_a else op.A.axes("b c m k")
        b = op.B.axes("b c n k").permute("b c k n") if turn_b else op.B.axes("b c k n")
        return a, b, op.Y.axes("b c m n")
    extent = sizes(op)
    if extent.b * extent.c == 1:
        a, y = op.A.axes("m k"), op.Y.axes("m n")
        return a.axes("b c m k"), op.B.axes("b c k n"), y.axes("b c m n")
    batch = (extent.b, extent.c)
    try:
        a, b = op.A.axes("b c m k"), op.B.axes("b c k n")
        return (
            a.broadcast((*batch, extent.m, extent.k)),
            b.broadcast((*batch, extent.k, extent.n)),
            op.Y.axes("b c m n"),
        )
    except InputError as error:
        raise Unsuited(f"more than two batch dimensions that broadcast ({error})") from None


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
