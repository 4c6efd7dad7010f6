"""Is a layer's bottleneck one? The layer again, with twice the resource behind its class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from npusim.core.errors import NpusimError
from npusim.hw.fields import leaves
from npusim.hw.machine import Machine
from npusim.hw.vary import changed
from npusim.machine.classes import CycleClass
from npusim.measure.resources import doubled, lacking
from npusim.measure.result import LayerResult
from npusim.measure.retime import Retimed
from npusim.measure.whatif_result import Confirmation, Confirmations

#: The largest layers that together make up this share of the run are looked at.
SHARE = 0.9
#: A layer follows its resource if it saves at least this share of half its cycles of the class.
FOLLOWS = 0.5
Rank = Literal["bottleneck", "runner_up"]
Outcome = Retimed | str


def confirm(
    base: Retimed,
    layers: Sequence[LayerResult],
    retimed: Callable[[Machine], Retimed],
    watch: Callable[[int, int], None],
) -> Confirmations:
    """The largest layers' two largest classes, each with its resource doubled (A55).

    A class is timed once for all layers. `retimed` times the same program on another machine.
    """
    chosen = _largest(layers, base.cycles)
    asked = [(n, rank, what) for n in chosen for rank, what in _classes(layers[n])]
    outcomes: dict[CycleClass, Outcome] = {}
    fields: dict[CycleClass, tuple[str, ...]] = {}
    classes = sorted({what for _, _, what in asked})
    for done, what in enumerate(classes):
        watch(done, len(classes))
        fields[what], outcomes[what] = _twice(base.machine, what, retimed)
    watch(len(classes), len(classes))
    rows = tuple(
        _row(base, layers[number], number, rank, what, fields[what], outcomes[what])
        for number, rank, what in asked
    )
    return Confirmations(
        share=SHARE, layers=len(chosen), left_out=len(layers) - len(chosen), rows=rows
    )


def _largest(layers: Sequence[LayerResult], cycles: int) -> list[int]:
    """As few layers as make up SHARE of the run, largest first."""
    order = sorted(range(len(layers)), key=lambda n: (-layers[n].cycles, n))
    chosen: list[int] = []
    covered = 0.0
    for number in order:
        if covered >= SHARE * cycles or not layers[number].cycles:
            break
        chosen.append(number)
        covered += layers[number].cycles
    return chosen


def _classes(layer: LayerResult) -> list[tuple[Rank, CycleClass]]:
    named: list[tuple[Rank, str | None]] = [
        ("bottleneck", layer.bottleneck),
        ("runner_up", layer.runner_up),
    ]
    return [(rank, CycleClass[name.upper()]) for rank, name in named if name]


def _twice(
    machine: Machine, what: CycleClass, retimed: Callable[[Machine], Retimed]
) -> tuple[tuple[str, ...], Outcome]:
    """What is changed for a class, and the run then, or why there is none."""
    values = doubled(machine, what)
    if not values:
        return (), lacking(machine, what)
    was = {leaf.path: leaf.value for leaf in leaves(machine)}
    fields = tuple(f"{path} {was[path]} -> {new}" for path, new in values.items())
    try:
        return fields, retimed(changed(machine, values))
    except NpusimError as error:
        return fields, error.problems[0].message


def _row(
    base: Retimed, layer: LayerResult, number: int, rank: Rank, what: CycleClass,
    fields: tuple[str, ...], outcome: Outcome,
) -> Confirmation:  # fmt: skip
    spent = int(base.accounting.of_layer(number)[what])
    after = total = left = followed = confirmed = None
    note = outcome if isinstance(outcome, str) else ""
    if isinstance(outcome, Retimed):
        classes = outcome.accounting.of_layer(number)
        after, left = float(classes.sum()) / base.machine.cores, int(classes[what])
        total = outcome.cycles
        followed = (layer.cycles - after) * base.machine.cores / (spent / 2)
        confirmed = followed >= FOLLOWS
        note = _verdict(layer, what, confirmed, base, outcome, number)
    return Confirmation(
        layer=layer.name,
        rank=rank,
        what=what.label,
        fields=fields,
        layer_cycles_before=layer.cycles,
        layer_cycles_after=after,
        class_core_cycles_before=spent,
        class_core_cycles_after=left,
        total_cycles_after=total,
        followed=followed,
        confirmed=confirmed,
        note=note,
    )


def _verdict(
    layer: LayerResult, what: CycleClass, confirmed: bool, base: Retimed, other: Retimed,
    number: int,
) -> str:  # fmt: skip
    """Where the cycles went that the class lost and the layer kept."""
    if confirmed:
        return ""
    grown = other.accounting.of_layer(number) - base.accounting.of_layer(number)
    instead = CycleClass(int(grown.argmax()))
    if grown[what] >= 0 or instead is what:
        return f"more of the resource leaves its {what.label} cycles as they are"
    if grown[instead] > 0:
        return f"{instead.label} takes its place: {int(grown[instead]):+,} core-cycles"
    return "only a part of its cycles follows the resource"
