"""What a program would take on machines that differ in one thing: parts of the result."""

from __future__ import annotations

from typing import Literal

from npusim.measure.record import Record

Number = int | float


class Growth(Record):
    """The class of core-cycles that grew most, by how much, and the layer with most of that."""

    what: str
    core_cycles: int
    layer: str
    layer_core_cycles: int


class Effect(Record):
    """A field at another value: cycles and time of the whole run, relative change of the time.

    `faster` says whether that value is a better machine, null where this is open. An anomaly is a
    better machine on which the program takes longer; `grew` says where and `cause` why such a
    machine may be slower, for anomalies alone.
    """

    field: str
    before: Number
    after: Number
    faster: bool | None
    cycles: int
    time_s: float
    change: float
    anomaly: bool
    grew: Growth | None
    cause: str | None = None


class Skipped(Record):
    """A change that was not timed, and why."""

    field: str
    factor: float
    reason: str


class Sensitivity(Record):
    """Every number of the machine doubled and halved, one at a time, largest change first.

    `mode` is `fixed` where the same program was timed again, `replan` where each machine got a
    plan of its own.
    """

    mode: Literal["fixed", "replan"]
    cycles: int
    time_s: float
    effects: tuple[Effect, ...]
    skipped: tuple[Skipped, ...]
    anomalies: int


class Confirmation(Record):
    """A layer timed with twice the resource behind one of its classes.

    `fields` are the changes. `followed` is the layer's saving as a share of half of what it spent
    on the class: 1 where the layer becomes faster just as the resource does. `confirmed` is null
    where nothing could be timed; `note` says why.
    """

    layer: str
    rank: Literal["bottleneck", "runner_up"]
    what: str
    fields: tuple[str, ...]
    layer_cycles_before: float
    layer_cycles_after: float | None
    class_core_cycles_before: int
    class_core_cycles_after: int | None
    total_cycles_after: int | None
    followed: float | None
    confirmed: bool | None
    note: str


class Confirmations(Record):
    """The layers that make up `share` of the run's cycles, each with its two largest classes."""

    share: float
    layers: int
    left_out: int
    rows: tuple[Confirmation, ...]
