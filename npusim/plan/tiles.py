"""What a kernel talks to, one verb each; see `buffers` and `emitter` for those of one core.

sram acc shared        room for tiles (slots=2 is double buffering)
load store copy gather DMA; multicast brings the same to several cores
mma vec                the compute units
holds                  show a tile as a piece of a graph tensor, for validation
order wait event       edges by hand
split deal ahead       who does what, and what is fetched while something else is computed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from npusim.hw.machine import Machine
from npusim.plan.axis import Axis, Loops, Span
from npusim.plan.emitter import Emitter
from npusim.plan.epilogue import Epilogue
from npusim.plan.expression import Operand
from npusim.plan.grid import Along, Grid, shares, spread
from npusim.plan.mistakes import mistake
from npusim.plan.partial import add_parts
from npusim.plan.room import Room
from npusim.plan.tile import Buffer
from npusim.plan.view import Piece
from npusim.program.builder import Builder

S = TypeVar("S")
P = TypeVar("P")
_Here = tuple[int, list[int]]


class Tiles(Emitter):
    """One kernel at work: emits instructions for the core that `split` or `deal` has chosen."""

    def __init__(
        self,
        builder: Builder,
        machine: Machine,
        room: Room,
        loops: Loops,
        pads: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(builder, room, loops, pads)
        self.machine = machine

    def store(
        self,
        piece: Piece,
        source: Operand,
        *,
        via: Buffer | None = None,
        epilogue: Epilogue | None = None,
        add_over: Along | None = None,
    ) -> None:
        """Copy a tile to a piece of a tensor.

        Accumulators, another dtype or an epilogue go through the vector unit into `via` first.
        `add_over` sums the parts that other cores computed of the same piece.
        """
        tile = self.tile(source)
        if add_over is not None and not add_parts(self, add_over, piece, tile):
            return
        if epilogue is not None:
            tile = epilogue.apply(self, piece, tile, via)
        elif via is not None:
            tile = self.vec(via, tile)
        self.put(piece, tile)

    # ---------------------------------------------------------------- edges by hand

    @contextmanager
    def order(self, how: str) -> Iterator[None]:
        """`with t.order("by hand")`: no edges are derived inside; place them with `wait`."""
        if how != "by hand":
            raise mistake(f'order is "by hand" or left to the buffers, found {how!r}')
        first = self.builder.count
        yield
        self.builder.by_hand(first)

    def event(self) -> int:
        """The completion of the instruction emitted last."""
        return self.builder.count - 1

    def wait(self, *events: int) -> None:
        """The instruction emitted next waits for these events."""
        for event in events:
            self.builder.wait(event)

    # ---------------------------------------------------------------- work for the cores

    def ahead(
        self, steps: Iterable[S], prepare: Callable[[S], P], slots: int
    ) -> Iterator[tuple[S, P]]:
        """Each step with what `prepare` returned for it, one step before it is worked on.

        With a single slot nothing can be prepared early. Instructions belong to the core and the
        loop indices of their own step.
        """
        held: deque[tuple[S, P, _Here]] = deque()
        for step in steps:
            held.append((step, prepare(step), self._here()))
            if len(held) == min(slots, 2):
                yield from self._return_to(*held.popleft())
        while held:
            yield from self._return_to(*held.popleft())

    def _here(self) -> _Here:
        return self.core, self._loops.indices[:]

    def _return_to(self, step: S, prepared: P, place: _Here) -> Iterator[tuple[S, P]]:
        """Work on one step at its own place, then be again where the loops have come to."""
        newest = self._here()
        self._stand(place)
        yield step, prepared
        self._stand(newest)

    def _stand(self, place: _Here) -> None:
        self._at(place[0])
        self._loops.go(place[1])

    def split(self, grid: Grid, *axes: Axis) -> Iterator[tuple[Any, ...]]:
        """One slice of each axis per core: yields (place, slice, slice, ...).

        The axis that is reduced over cores runs backwards, so that the core that adds comes last.
        """
        for place in grid.places([axis.name for axis in axes], self.machine.cores):
            slices = [shares(axis, place, self._loops) for axis in axes]
            if all(len(part) for part in slices):
                self._at(place.core)
                yield (place.over(axes), *slices)

    def deal(self, *axes: Axis | Sequence[Any], weigh: Any = None) -> Iterator[tuple[Any, ...]]:
        """All combinations of positions, dealt to the cores: yields (core, item, ...).

        Without `weigh` each core gets a run of neighbours; with it, heavy ones go first to
        whichever core has least.
        """
        slots = [self._loops.slot(_axis_name(axis, n)) for n, axis in enumerate(axes)]
        for core, items in enumerate(spread(axes, self.machine.cores, weigh)):
            self._at(core)
            for ordinals, item in items:
                self._loops.arrive(slots, ordinals)
                yield (core, *item)


def _axis_name(axis: Axis | Sequence[Any], number: int) -> str:
    """What a position along something that is dealt is called."""
    if isinstance(axis, Axis):
        return axis.name
    first = axis[0] if len(axis) else None
    return first.axis if isinstance(first, Span) else f"i{number}"
