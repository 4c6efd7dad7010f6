"""The loop nest of matrix products: tiles, who holds a panel, which core does what."""

from collections.abc import Callable
from dataclasses import dataclass

from npusim import Along, Buffer, DType, Grid, Piece, Tile, Tiles, View
from npusim.plan.grid import largest_share

from ._product import tiles_of

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
    """Buffers for products of equal tiling, which may be run one after the other.

    `extents` are the largest m, n and k of these products.
    """

    def __init__(
        self,
        t: Tiles,
        tiling: Tiling,
        extents: tuple[int, int, int],
        operand: DType,
        accumulator: DType,
        right: DType | None = None,
    ) -> None:
        grid = tiling.grid
        most = [
            int(largest_share(extent, parts))
            for extent, parts in zip(extents, (grid.m, grid.n, grid.k), strict=True)
        ]
        m, n, k = (min(a, b) for a, b in zip((tiling.m, tiling.n, tiling.k), most, strict=True))
        panel = tiling.slots + -(-most[2] // k) - 1
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
