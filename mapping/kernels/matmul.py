"""Matrix products with C in the accumulators, split over cores in M, N and K."""

from dataclasses import replace
from typing import Any

from npusim import (
    Along,
    Claim,
    Grid,
    Hardware,
    Operation,
    Piece,
    Tile,
    Tiles,
    Unsuited,
    Value,
    kernel,
    pow2,
)
from npusim.plan.chain import Operand

from ._integers import Product, integer_group, product_group
from ._multiply import Multiplier, Tiling
from ._product import operands
from ._product_claim import Leaving, Traffic, product_claim


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
    group=product_group,
    find=integer_group,
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
    product = Product(op)
    A, B, C = operands(op, product, op.Y)
    tiling = Tiling(m, n, k, grid, hold, slots, acc_slots)
    extents = (C.m.size, C.n.size, A.k.size)
    work = Multiplier(t, tiling, extents, A.dtype, op.accumulate(A.dtype), B.dtype)
    out = t.sram(C.dtype, work.m, work.n, name="out")

    def finish(piece: Piece, sums: Tile, parts: Along) -> None:
        scaled = sums if product.integer else _scaled(t, op, piece, sums)
        t.store(piece, scaled, via=out, epilogue=product.epilogue, add_over=parts)

    work.run(A, B, C, finish, product.zero(0), product.zero(1))


@matmul.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    product = Product(op)
    traffic = Traffic(product.tensor(0), product.tensor(1), op.result)
    claim = product_claim(hw, op, traffic, _leaving(op, product), c)
    return replace(claim, legal=claim.legal & ((op.kind == "MatMul") | (c.grid.k == 1)))


def _leaving(op: Operation, product: Product) -> Leaving:
    """What `_scaled` and the chain behind do to each tile."""
    if op.kind != "Gemm" or product.integer:
        return Leaving(product.chain)
    operations = int(op.attribute("alpha") != 1)
    if not _adds_c(op):
        return Leaving(product.chain, (), operations)
    operations += 1 + (op.attribute("beta") != 1)
    added = op.given("C")
    aligned = (1,) * (2 - len(added.shape)) + added.shape
    return Leaving(product.chain, (Operand(added, aligned),), operations)


def _adds_c(op: Operation) -> bool:
    """Whether a Gemm reads C; with beta = 0 it does not, whatever is in there."""
    return op.tensor("C") is not None and op.attribute("beta") != 0


def _scaled(t: Tiles, op: Operation, piece: Piece, sums: Tile) -> Tile:
    """Gemm's alpha A B + beta C, added up in the accumulators; nothing to do for a MatMul."""
    if op.kind != "Gemm":
        return sums
    value: Value = sums if op.attribute("alpha") == 1 else sums * op.attribute("alpha")
    if _adds_c(op):
        added = op.C.axes("m n").broadcast(op.given("Y").shape)[piece.key[2:]]
        full = zip(added.strides, sums.slot.buffer.shape, strict=True)
        room = t.helper("bias", added.dtype, *(most if stride else 1 for stride, most in full))
        bias = t.load(room, added, keep=True)
        value = value + (bias if op.attribute("beta") == 1 else bias * op.attribute("beta"))
    return sums if value is sums else t.vec(sums, value)
