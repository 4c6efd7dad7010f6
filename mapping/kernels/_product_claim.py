"""What a tiled matrix product costs: one closed form for all kernels that contain one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tensor, Unsuited
from npusim.plan.chain import Chain, Operand
from npusim.plan.grid import largest_share, tiles_of_shares

from ._chain import Extent, Level, chain_buffers, chain_cycles, operand_buffers, operand_read_bytes
from ._product import Sizes, sizes, varies_along_batches
from ._reuse import times_read


@dataclass(frozen=True)
class Traffic:
    """What a product reads and writes; `a` is None where another product has loaded it.

    `inside` says that A lies in shared SRAM, not in DRAM.
    """

    a: Tensor | None
    b: Tensor
    c: Tensor
    inside: bool = False


@dataclass(frozen=True)
class Leaving:
    """What is done to a tile of sums: so many operations with `beside`, then a chain."""

    chain: Chain
    beside: Sequence[Operand] = ()
    operations: int = 0

    def cycles(self, hw: Hardware, elements: Any) -> Any:
        """Vector cycles for a tile of so many elements."""
        scaled = hw.vector_cycles(self.operations * elements) if self.operations else 0
        return scaled + chain_cycles(hw, self.chain, elements)

    @property
    def operands(self) -> list[Operand]:
        """Tensors of which each tile needs its part."""
        return [*self.beside, *(self.chain.loaded if self.chain.nodes else ())]


class Cut:
    """How choices cut a product, and what that makes the cores load; arrays over all choices.

    `m`, `n` and `k` are sizes of tiles, `rows`, `columns` and `depth` those of a core's share.
    """

    def __init__(self, s: Sizes, c: Any) -> None:
        self.s, self.c, grid = s, c, c.grid
        self.rows = largest_share(s.m, grid.m)
        self.columns = largest_share(s.n, grid.n)
        self.depth = largest_share(s.k, grid.k)
        self.m = np.minimum(c.m, self.rows)
        self.n = np.minimum(c.n, self.columns)
        self.k = np.minimum(c.k, self.depth)

    @cached_property
    def batch(self) -> Any:
        """Products that the busiest core does one after the other."""
        return self.s.b * largest_share(self.s.c, self.c.grid.c)

    @cached_property
    def tiles(self) -> Any:
        """Tiles of C on the busiest core."""
        return self.batch * -(-self.rows // self.m) * -(-self.columns // self.n)

    @cached_property
    def steps(self) -> Any:
        """Tiles along K on the busiest core."""
        return -(-self.depth // self.k)

    def held(self, which: str) -> Any:
        """Slots in which an operand stays: its whole panel, or none."""
        return np.where(self.c.hold == which, self.c.slots + self.steps - 1, 0)

    def slots(self, which: str) -> Any:
        """Slots of an operand's buffer."""
        return np.maximum(self.held(which), self.c.slots)

    @cached_property
    def levels(self) -> dict[str, Level]:
        """The loops over tiles of C: dimensions of the result, tiles of the mean core, cores."""
        s, grid = self.s, self.c.grid
        rows = tiles_of_shares(s.m, grid.m, self.m) / grid.m
        columns = tiles_of_shares(s.n, grid.n, self.n) / grid.n
        return {
            "b": (s.dims["b"], s.b, 1),
            "c": (s.dims["c"], s.c / grid.c, grid.c),
            "m": (s.dims["m"], rows, grid.m),
            "n": (s.dims["n"], columns, grid.n),
        }

    def read_bytes(self, op: Operation, which: int, tensor: Tensor | None) -> Any:
        """Bytes of operand 0 (A) or 1 (B) that all cores load."""
        if tensor is None:
            return 0
        varies = dict(zip("bc", varies_along_batches(op, which), strict=True))
        own, other = ("m", "n") if which == 0 else ("n", "m")
        varies |= {own: True, other: False}
        nest = [(self.levels[axis][1], varies[axis]) for axis in ("b", "c", own, other)]
        again = times_read([*nest, (self.steps, True)], self.held("ab"[which]))
        alike = [self.levels[axis][2] for axis, moves in varies.items() if not moves]
        return tensor.size_bytes * again * np.prod(np.broadcast_arrays(*alike), axis=0)

    def operand_read_bytes(self, operands: Sequence[Operand]) -> Any:
        """Bytes that all cores load of what is needed tile by tile of C."""
        levels = self.levels
        by_rows, by_columns = (
            operand_read_bytes(operands, [levels[axis] for axis in order])
            for order in ("bcmn", "bcnm")
        )
        return np.where(self.c.hold == "b", by_columns, by_rows)

    @property
    def tile(self) -> list[Extent]:
        """A tile of C in dimensions of the result."""
        return [(self.s.dims["m"], self.m), (self.s.dims["n"], self.n)]


def product_claim(hw: Hardware, op: Operation, traffic: Traffic, leaving: Leaving, c: Any) -> Claim:
    """The claim of one product tiled as the choices c say."""
    s, left = sizes(op), traffic.b.dtype if traffic.a is None else traffic.a.dtype
    if not hw.runs(left.name):
        raise Unsuited(f"the matrix unit of {hw.machine.name} has no {left}")
    if s.k == 0:
        raise Unsuited("a product over no elements")
    cut, grid = Cut(s, c), c.grid
    m, n, k, item, out = cut.m, cut.n, cut.k, left.itemsize, traffic.c.dtype.itemsize
    leave, overhead = leaving.cycles(hw, m * n), hw.matrix_overhead_cycles()
    add = (grid.k - 1) * (hw.fetch_cycles(m * n * 4) + hw.vector_cycles(m * n))  # one by one
    parts = (grid.k - 1) * s.b * s.c * s.m * s.n * 4
    spilled = np.where(parts > hw.shared_bytes, parts, 0)  # parts that do not fit go to DRAM
    read_a, read_b = (cut.read_bytes(op, i, x) for i, x in enumerate((traffic.a, traffic.b)))
    inside, from_dram = (read_a, 0) if traffic.inside else (0, read_a)
    wide = n * np.where(n == cut.columns, grid.n, 1)  # cores in step share the open rows
    lines_a, lines_b, lines_c = (  # whole rows are one run
        np.where(extent < whole, 1, lines)
        for extent, whole, lines in ((k, s.k, m), (wide, s.n, k), (wide, s.n, m))
    )
    run = hw.mean_run(
        (from_dram, lines_a * k * item),
        (read_b, lines_b * wide * item),
        (traffic.c.size_bytes, lines_c * wide * out),
    )
    work = hw.matrix_cycles(cut.rows, cut.columns, cut.depth, left.name, tile=(m, n, k))
    room_a, room_b = m * k * item, k * n * traffic.b.dtype.itemsize
    return Claim(
        matrix_cycles=cut.batch * work,
        vector_cycles=cut.tiles * (leave + add),
        exposed_cycles=hw.start_cycles(room_a + room_b, run)
        + overhead
        + np.where(c.acc_slots == 1, cut.tiles, 1) * (leave + add + overhead)
        + hw.store_cycles(m * n * out),
        dram_read_bytes=from_dram + read_b + spilled + cut.operand_read_bytes(leaving.operands),
        dram_write_bytes=traffic.c.size_bytes + spilled,
        run_bytes=run,
        shared_bytes=2 * (parts - spilled) + inside,
        gathered_bytes=(grid.k - 1) * cut.batch * cut.rows * cut.columns * 4 + inside / hw.cores,
        sram_bytes=hw.sram_room(
            (cut.slots("a"), room_a),
            (cut.slots("b"), room_b),
            (1, m * n * out),
            (grid.k > 1, m * n * 4),
            *operand_buffers(leaving.beside, cut.tile),
            *chain_buffers(leaving.chain, cut.tile),
        ),
        acc_bytes=hw.acc_room((c.acc_slots, m * n * 4)),
        rounds=cut.tiles * cut.steps,
        slots=c.slots,
        legal=(grid.c <= s.c) & (grid.m <= s.m) & (grid.n <= s.n) & (grid.k <= s.k),
    )
