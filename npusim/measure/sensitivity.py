"""Which numbers of a machine a run depends on: each doubled and halved, and the run timed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

import numpy as np

from npusim.core.errors import InputError, NpusimError
from npusim.hw.fields import Leaf
from npusim.hw.machine import Machine
from npusim.hw.vary import changed, numbers, times
from npusim.machine.classes import CycleClass
from npusim.measure.causes import cause
from npusim.measure.resources import better
from npusim.measure.retime import Retimed
from npusim.measure.whatif_result import Effect, Growth, Sensitivity, Skipped

FACTORS = (2.0, 0.5)
#: Told how many of how many changes have been timed.
Watch = Callable[[int, int], None]


def sensitivity(
    base: Retimed,
    retimed: Callable[[Machine], Retimed],
    mode: Literal["fixed", "replan"],
    watch: Watch,
) -> Sensitivity:
    """Every number of the machine doubled and halved by itself.

    `retimed` times the program, or a new plan's, on a machine; where it raises an error of ours
    the change is skipped, with the reason. Nothing else of the machine is adapted.
    """
    effects: list[Effect] = []
    skipped: list[Skipped] = []
    tries = [(leaf, factor) for leaf in numbers(base.machine) for factor in FACTORS]
    for done, (leaf, factor) in enumerate(tries):
        watch(done, len(tries))
        try:
            other = retimed(changed(base.machine, {leaf.path: times(leaf, factor)}))
        except NpusimError as error:
            skipped.append(Skipped(field=leaf.path, factor=factor, reason=_first(error)))
        else:
            effects.append(_effect(leaf, factor, base, other))
    effects.sort(key=lambda e: -abs(e.change))
    return Sensitivity(
        mode=mode,
        cycles=base.cycles,
        time_s=base.time_s,
        effects=tuple(effects),
        skipped=tuple(skipped),
        anomalies=sum(effect.anomaly for effect in effects),
    )


def _first(error: NpusimError) -> str:
    """What is wrong in one line."""
    more = len(error.problems) - 1
    text = error.problems[0].message
    if not isinstance(error, InputError):
        text = f"the program is not legal there: {text}"
    return text + (f" (and {more} more)" if more else "")


def _effect(leaf: Leaf, factor: float, base: Retimed, other: Retimed) -> Effect:
    way = better(leaf) * (1 if factor > 1 else -1)
    anomaly = way > 0 and other.time_s > base.time_s
    assert isinstance(leaf.value, int | float)
    return Effect(
        field=leaf.path,
        before=leaf.value,
        after=times(leaf, factor),
        faster=way > 0 if way else None,
        cycles=other.cycles,
        time_s=other.time_s,
        change=other.time_s / base.time_s - 1 if base.time_s else 0.0,
        anomaly=anomaly,
        grew=_growth(base, other) if anomaly else None,
        cause=cause(leaf.path) if anomaly else None,
    )


def _growth(base: Retimed, other: Retimed) -> Growth:
    """Where the longer run spends its additional core-cycles."""
    before, after = _by_layer(base), _by_layer(other)
    total = np.zeros(len(CycleClass), np.int64)
    for name in before | after:
        total += after.get(name, 0) - before.get(name, 0)
    what = CycleClass(int(total.argmax()))
    grown = Counter(
        {
            name: int((after.get(name, total * 0) - before.get(name, total * 0))[what])
            for name in before | after
        }
    )
    layer, most = max(grown.items(), key=lambda item: item[1])
    return Growth(
        what=what.label, core_cycles=int(total[what]), layer=layer, layer_core_cycles=most
    )


def _by_layer(run: Retimed) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Core-cycles per class of each layer, by name."""
    return {
        layer.name: run.accounting.of_layer(number)
        for number, layer in enumerate(run.program.layers)
    }
