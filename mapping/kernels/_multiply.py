"""The loop nest of matrix products: tiles, who holds a panel, which core does what."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusim import (
    Along,
    Buffer,
    Claim,
    DType,
    Grid,
    Hardware,
    Piece,
    Tensor,
    Tile,
    Tiles,
    Unsuited,
    View,
)
from npusim.plan.chain import Chain

from ._chain import chain_cycles, chain_read_bytes, chain_room_bytes
from ._product import Sizes, tiles_of

Finish = Callable[[Piece, Tile, Along], None]


@dataclass(frozen=True)
class Tiling:
    """Tile sizes and buffering of a product, as a kernel's choices name them."""

    m: int
    n: int
    k: int
    grid: Grid
    hold: str
    slots: int
    acc_slots: int


class Multiplier:
    """Buffers for products of equal tiling, which may be run one after the other."""

    def __init__(
        self,
        t: Tiles,
        tiling: Tiling,
        extents: tuple[int, int, int],
        operand: DType,
        accumulator: DType,
        right: DType | None = None,
    ) -> None:
        m, n, k = (min(a, b) for a, b in zip((tiling.m, tiling.n, tiling.k), extents, strict=True))
        panel = tiling.slots + -(-extents[2] // (k * tiling.grid.k)) - 1
        held = {name: panel if tiling.hold == name else tiling.slots for name in ("a", "b")}
        self.t, self.tiling, self.m, self.n, self.k = t, tiling, m, n, k
        self.a = t.sram(operand, m, k, slots=held["a"], name="a")
        self.b = t.sram(right or operand, k, n, slots=held["b"], name="b")
        self.acc: Buffer = t.acc(accumulator, m, n, slots=tiling.acc_slots, name="acc")

    def run(
        self, A: View, B: View, C: View, finish: Finish, zero_a: int = 0, zero_b: int = 0
    ) -> None:
        """C = A B with axes (b c m k), (b c k n), (b c m n); `finish` takes each tile of sums."""
        t, hold = self.t, self.tiling.hold
        for core, cs, M, N, K in t.split(self.tiling.grid, C.c, C.m, C.n, A.k):
            for x in C.b:
                for y in cs:
                    for i, j in tiles_of(M, N, self.m, self.n, hold):
                        for p in K.tiles(self.k):
                            left = t.load(self.a, A[x, y, i, p], keep=hold == "a")
                            right = t.load(self.b, B[x, y, p, j], keep=hold == "b")
                            sums = t.mma(
                                self.acc, left, right, first=p.first, zero_a=zero_a, zero_b=zero_b
                            )
                        finish(C[x, y, i, j], sums, core.along("k"))


@dataclass(frozen=True)
class Traffic:
    """What a product reads and writes; None for an operand that does not come from DRAM."""

    a: Tensor | None
    b: Tensor
    c: Tensor

    def bytes(self, tensor: Tensor | None) -> int:
        """Bytes in DRAM."""
        return tensor.size_bytes if tensor is not None else 0


def product_claim(hw: Hardware, s: Sizes, traffic: Traffic, chain: Chain, c: Any) -> Claim:
    """The claim of one product tiled as the choices c say, with a chain behind it."""
    operand = traffic.b.dtype if traffic.a is None else traffic.a.dtype
    if not hw.runs(operand.name):
        raise Unsuited(f"the matrix unit of {hw.machine.name} has no {operand}")
    if s.k == 0:
        raise Unsuited("a product over no elements")
    item, out, grid = operand.itemsize, traffic.c.dtype.itemsize, c.grid
    rows, columns, depth = -(-s.m // grid.m), -(-s.n // grid.n), -(-s.k // grid.k)
    batch = s.b * -(-s.c // grid.c)
    m, n, k = np.minimum(c.m, rows), np.minimum(c.n, columns), np.minimum(c.k, depth)
    tiles = batch * -(-rows // m) * -(-columns // n)
    panel = c.slots + -(-s.k // (k * grid.k)) - 1
    leave = chain_cycles(hw, chain, m * n)
    add = (grid.k - 1) * (hw.fetch_cycles(m * n * 4) + hw.vector_cycles(m * n))  # one by one
    room_a, room_b, room_c = m * k * item, k * n * item, m * n * out
    again_a = np.where(c.hold == "a", 1, -(-columns // n)) * grid.n
    again_b = np.where(c.hold == "b", 1, -(-rows // m)) * grid.m
    read_a, read_b = traffic.bytes(traffic.a) * again_a, traffic.bytes(traffic.b) * again_b
    parts = (grid.k - 1) * s.b * s.c * s.m * s.n * 4
    spilled = np.where(parts > hw.shared_bytes, parts, 0)  # parts that do not fit go to DRAM
    written = traffic.bytes(traffic.c)
    run = hw.mean_run((read_a, k * item), (read_b, n * item), (written, n * out))
    overhead = hw.matrix_overhead_cycles()
    return Claim(
        matrix_cycles=batch * hw.matrix_cycles(rows, columns, depth, operand.name, tile=(m, n, k)),
        vector_cycles=tiles * (leave + add),
        exposed_cycles=hw.start_cycles(room_a + room_b, run)
        + overhead
        + np.where(c.acc_slots == 1, tiles, 1) * (leave + add + overhead)
        + hw.store_cycles(room_c),
        dram_read_bytes=read_a + read_b + chain_read_bytes(chain) + spilled,
        dram_write_bytes=written + spilled,
        run_bytes=run,
        shared_bytes=2 * (parts - spilled),
        gathered_bytes=(grid.k - 1) * batch * rows * columns * 4,
        sram_bytes=np.where(c.hold == "a", panel, c.slots) * room_a
        + np.where(c.hold == "b", panel, c.slots) * room_b
        + room_c
        + chain_room_bytes(chain, m * n)
        + np.where(grid.k > 1, m * n * 4, 0),
        acc_bytes=c.acc_slots * m * n * 4,
        rounds=tiles * -(-depth // k),
        slots=c.slots,
        legal=(grid.c <= s.c) & (grid.m <= s.m) & (grid.n <= s.n) & (grid.k <= s.k),
    )
