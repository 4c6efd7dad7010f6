"""Operands of matrix products as views with axes (b, c, rows, columns); b and c are batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from npusim import Axis, InputError, Operation, Span, Unsuited, View

from ._integers import Product


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
    node = op.graph.tensors
    a, b, y = (node[name].shape for name in (*op.node.inputs[:2], op.node.outputs[0]))
    if op.kind == "Gemm":
        return Sizes(1, 1, y[0], y[1], a[0 if op.attribute("transA") else 1])
    if len(a) < 2 or len(b) < 2:
        raise Unsuited("vectors are not matrices: reshape them to one row or column")
    if prod(b[:-2]) == 1:
        return Sizes(1, 1, prod(y[:-1]), y[-1], a[-1])
    batch = y[:-2]
    return Sizes(prod(batch[:-1]), batch[-1], y[-2], y[-1], a[-1])


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
    try:
        return (
            A.axes("b c m k").broadcast((*batch, extent.m, extent.k)),
            B.axes("b c k n").broadcast((*batch, extent.k, extent.n)),
            Y.axes("b c m n"),
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
