"""Transposition by tiles: read along the input's rows, written along the output's."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, Unsuited, View, kernel, pow2


@dataclass(frozen=True)
class Turn:
    """Axes in the output's order, each a run of input axes that stay neighbours."""

    groups: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Axis names in the output's order; a0 is the first in the input."""
        order = sorted(self.groups)
        return tuple(f"a{order.index(group)}" for group in self.groups)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Extent of each axis."""
        pairs = zip(self.names, self.groups, strict=True)
        return {name: prod(self.shape[d] for d in group) for name, group in pairs}

    @property
    def last(self) -> str:
        """The output's last axis."""
        return self.names[-1]

    @property
    def inner(self) -> str:
        """The input's last axis, or where that is the output's too, the one before it there."""
        order = sorted(self.names, key=lambda name: int(name[1:]))
        if order[-1] != self.last or len(order) == 1:
            return order[-1]
        return self.names[-2]

    def views(self, op: Operation) -> tuple[View, View]:
        """Input and output with the output's axes."""
        given = {name: self.sizes[name] for name in sorted(self.names, key=lambda n: int(n[1:]))}
        x = op.data.axes("all").split("all", **given).permute(" ".join(self.names))
        return x, op.transposed.axes("all").split("all", **self.sizes)


def turn(op: Operation) -> Turn:
    """What a Transpose does, without axes of size 1."""
    shape = op.given("data").shape or (1,)
    perm = op.attribute("perm") or list(reversed(range(len(shape))))
    groups: list[list[int]] = []
    for d in (d for d in perm if shape[d] != 1):
        follows = groups and d > groups[-1][-1]
        if follows and all(shape[e] == 1 for e in range(groups[-1][-1] + 1, d)):
            groups[-1].append(d)
        else:
            groups.append([d])
    return Turn(tuple(tuple(group) for group in groups) or ((0,),), shape)


@kernel("Transpose", space={"rows": pow2(16, 512), "columns": pow2(16, 512)})
def transpose(
    t: Tiles, op: Operation, *, rows: int = 128, columns: int = 128, slots: int = 2
) -> None:
    """The scratchpad turns the tile: it is stored along other dimensions than it was loaded."""
    how = turn(op)
    X, Y = how.views(op)
    cut = {how.inner: rows, how.last: columns}
    axes = [Y.by_name[name] for name in how.names]
    room = [min(cut[axis.name], axis.size) for axis in axes if axis.name in cut]
    x = t.sram(X.dtype, *room, slots=slots, name="x")
    spans = [axis.spans(cut[axis.name]) if axis.name in cut else axis for axis in axes]
    for _, *key in t.deal(*spans):
        t.store(Y[tuple(key)], t.load(x, X[tuple(key)]))


@transpose.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    how, item = turn(op), op.given("data").dtype.itemsize
    high, wide = how.sizes[how.inner], how.sizes[how.last]
    tall, broad = np.minimum(c.rows, high), np.minimum(c.columns, wide)
    if how.inner == how.last:
        high, tall = 1, np.ones_like(tall)
    if len(how.names) > 5:
        raise Unsuited(f"{len(how.names)} axes change places; five can")
    total = prod(how.sizes.values())
    items = total // max(high * wide, 1) * -(-high // tall) * -(-wide // broad)
    tiles, tile = -(-items // hw.cores), tall * broad * item
    word = hw.machine.core.sram.bank_width_bytes  # an element on its own takes a whole word
    run = hw.mean_run((1, tall * item), (1, broad * item))
    return Claim(
        exposed_cycles=hw.start_cycles(tile, run) + hw.store_cycles(tile),
        dram_read_bytes=total * item,
        dram_write_bytes=total * item,
        run_bytes=run,
        gathered_bytes=tiles * tall * broad * (word if how.inner != how.last else item),
        sram_bytes=hw.sram_room((c.slots, tile)),
        rounds=tiles,
        slots=c.slots,
    )
