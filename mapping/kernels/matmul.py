"""Matrix products with C in the accumulators, split over cores in M, N and K."""

from typing import Any

import numpy as np

from npusim import (
    Buffer,
    Claim,
    Grid,
    Hardware,
    Operand,
    Operation,
    Span,
    Tiles,
    Unsuited,
    kernel,
    pow2,
)

from ._chain import chain_behind, chain_bytes_per_row, chain_read_bytes
from ._product import operands, sizes, tiles_of


@kernel(
    "MatMul",
    "Gemm",
    space={
        "m": pow2(32, 1024),
        "n": pow2(128, 1024),
        "k": pow2(128, 1024),
        "grid": Grid.splits("c", "m", "n", "k"),
        "hold": ("none", "a", "b"),
        "acc_slots": (1, 2),
    },
    group=chain_behind,
)
def matmul(
    t: Tiles,
    op: Operation,
    *,
    m: int = 512,
    n: int = 512,
    k: int = 128,
    grid: Grid = Grid(m=2, n=2),
    hold: str = "none",
    slots: int = 2,
    acc_slots: int = 1,
) -> None:
    """C[M,N] = A[M,K] B[K,N]; C stays in the accumulators while K streams past.

    `hold` keeps a panel of A (or B) in the scratchpad, so that each core reads it only once.
    """
    if op.kind == "Gemm" and grid.k > 1:
        raise Unsuited("a Gemm adds C once: its K cannot be split over cores")
    A, B, C = operands(op)
    m, n, k = min(m, C.m.size), min(n, C.n.size), min(k, A.k.size)
    panel = slots + -(-A.k.size // (k * grid.k)) - 1
    a = t.sram(A.dtype, m, k, slots=panel if hold == "a" else slots, name="a")
    b = t.sram(B.dtype, k, n, slots=panel if hold == "b" else slots, name="b")
    acc = t.acc(op.accumulate(A.dtype), m, n, slots=acc_slots, name="acc")
    out = t.sram(C.dtype, m, n, name="out")
    for core, cs, M, N, K in t.split(grid, C.c, C.m, C.n, A.k):
        for x in C.b:
            for y in cs:
                for i, j in tiles_of(M, N, m, n, hold):
                    for p in K.tiles(k):
                        left = t.load(a, A[x, y, i, p], keep=hold == "a")
                        right = t.load(b, B[x, y, p, j], keep=hold == "b")
                        t.mma(acc, left, right, first=p.first)
                    t.store(
                        C[x, y, i, j],
                        _scaled(t, op, acc, i, j),
                        via=out,
                        epilogue=op.epilogue,
                        add_over=core.along("k"),
                    )


@matmul.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    dtype = op.given("A").dtype
    if not hw.runs(dtype.name):
        raise Unsuited(f"the matrix unit of {hw.machine.name} has no {dtype}")
    s = sizes(op)
    item, out = dtype.itemsize, op.result.dtype.itemsize
    rows, columns = -(-s.m // c.grid.m), -(-s.n // c.grid.n)
    depth, batch = -(-s.k // c.grid.k), s.b * -(-s.c // c.grid.c)
    m, n, k = np.minimum(c.m, rows), np.minimum(c.n, columns), np.minimum(c.k, depth)
    passes_a = np.where(c.hold == "a", 1, -(-columns // n))
    passes_b = np.where(c.hold == "b", 1, -(-rows // m))
    panel = c.slots + -(-s.k // (k * c.grid.k)) - 1
    parts = (c.grid.k - 1) * s.b * s.c * s.m * s.n * 4
    leave = hw.vector_cycles(m * n) * c.grid.k
    tiles = batch * -(-rows // m) * -(-columns // n)
    room_a, room_b = m * k * item, k * n * item
    return Claim(
        matrix_cycles=batch * hw.matrix_cycles(rows, columns, depth, dtype.name, tile=(m, n, k)),
        vector_cycles=tiles * leave,
        exposed_cycles=hw.first_bytes_cycles(room_a + room_b)
        + np.where(c.acc_slots == 1, tiles * leave, leave),
        dram_read_bytes=op.bytes("A") * passes_a * c.grid.n
        + op.bytes("B") * passes_b * c.grid.m
        + chain_read_bytes(op),
        dram_write_bytes=op.result.size_bytes,
        shared_bytes=2 * parts,
        sram_bytes=np.where(c.hold == "a", panel, c.slots) * room_a
        + np.where(c.hold == "b", panel, c.slots) * room_b
        + m * n * out
        + m * chain_bytes_per_row(op, n)
        + np.where(c.grid.k > 1, m * n * 4, 0),
        acc_bytes=c.acc_slots * m * n * 4,
        legal=(op.kind == "MatMul") | (c.grid.k == 1),
    )


def _scaled(t: Tiles, op: Operation, acc: Buffer, i: Span, j: Span) -> Operand:
    """Gemm's alpha A B + beta C, added up in the accumulators; nothing to do for a MatMul."""
    if op.kind != "Gemm":
        return acc
    value = acc if op.attribute("alpha") == 1 else acc * op.attribute("alpha")
    if op.tensor("C") is not None:
        piece = op.C.axes("m n").broadcast(op.given("Y").shape)[i, j]
        room = [min(have, most) for have, most in zip(piece.shape, acc.shape, strict=True)]
        bias = t.load(t.helper("bias", piece.dtype, *room), piece)
        value = value + (bias if op.attribute("beta") == 1 else bias * op.attribute("beta"))
    return acc if value is acc else t.vec(acc, value)
