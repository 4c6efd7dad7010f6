"""Sensitivity and confirmed bottlenecks as tables, and the picture of the former."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from npusim.measure.result import Result
from npusim.measure.whatif_result import Confirmation, Confirmations, Effect, Sensitivity
from npusim.report import figure, numbers
from npusim.report.caching import class_name
from npusim.report.table import Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Changes of the time below this are counted, not listed, where the table is to be short.
VISIBLE = 0.001
#: Bars in the picture: the fields with the largest changes.
BARS = 24
Part = str | Table


def parts(result: Result, full: bool) -> Iterator[Part]:
    """What the run would take on other machines, where that was asked."""
    if result.confirmations is not None:
        yield ""
        yield from _confirmed(result.confirmations, full, result.totals.cache is not None)
    if result.sensitivity is not None:
        yield ""
        yield from _sensitive(result.sensitivity, full)


def _confirmed(found: Confirmations, full: bool, cached: bool) -> Iterator[Part]:
    columns = (
        Column("layer", 10),
        Column("class", 12),
        Column("twice the resource", 24, head=True),
        Column("cycles"),
        Column("then"),
        Column("followed"),
        Column("confirmed"),
        Column("note", 24, head=True),
    )
    title = (
        f"bottlenecks, the resource behind each doubled: the "
        f"{numbers.count(found.layers, 'layer')} that make up {100 * found.share:.0f} % of the "
        f"run, {found.left_out} left out"
    )
    yield Table(columns, tuple(_confirmation(row, full, cached) for row in found.rows), title)
    yield (
        "followed: the layer's saving as a share of half its cycles of the class; a layer follows "
        "from 50 % on"
    )


def _confirmation(row: Confirmation, full: bool, cached: bool) -> tuple[str, ...]:
    what = class_name(row.what, cached)
    ranked = what if row.rank == "bottleneck" else f"({what})"
    return (
        row.layer,
        ranked,
        ", ".join(row.fields if full else _short(row.fields)) or numbers.NONE,
        numbers.cycles(row.layer_cycles_before),
        numbers.cycles(row.layer_cycles_after),
        numbers.percent(row.followed),
        {True: "yes", False: "no", None: numbers.NONE}[row.confirmed],
        row.note,
    )


def _short(fields: Sequence[str]) -> list[str]:
    """One change, and how many more of the same block."""
    blocks: dict[str, list[str]] = {}
    for field in fields:
        blocks.setdefault(field.partition(" ")[0].rpartition(".")[0], []).append(field)
    return [
        same[0] + (f" and {len(same) - 1} more" if len(same) > 1 else "")
        for same in blocks.values()
    ]


def _sensitive(found: Sensitivity, full: bool) -> Iterator[Part]:
    shown = [e for e in found.effects if full or abs(e.change) >= VISIBLE or e.anomaly]
    columns = (
        Column("field", 20),
        Column("from"),
        Column("to"),
        Column("time"),
        Column("cycles"),
        Column("note", 30, head=True),
    )
    how = "the same program" if found.mode == "fixed" else "a new plan for each machine"
    title = f"sensitivity, {how}: every number of the machine doubled and halved by itself"
    yield Table(columns, tuple(_effect(e) for e in shown), title)
    same = len(found.effects) - len(shown)
    if same:
        yield f"{numbers.count(same, 'change')} below {100 * VISIBLE:.1f} % not listed"
    yield (
        f"{numbers.count(found.anomalies, 'anomaly').replace('anomalys', 'anomalies')}: "
        "a better machine, a longer run"
    )
    yield from _causes(found)
    if found.skipped:
        yield f"{numbers.count(len(found.skipped), 'change')} not timed:"
        yield from (f"  {s.field} x {s.factor:g}: {s.reason}" for s in found.skipped)


def _causes(found: Sensitivity) -> Iterator[Part]:
    """Why better machines may be slower, the fields of one cause in one line."""
    fields: dict[str, list[str]] = {}
    for effect in found.effects:
        if effect.cause is not None:
            fields.setdefault(effect.cause, []).append(effect.field)
    yield from (f"  {', '.join(dict.fromkeys(names))}: {cause}" for cause, names in fields.items())


def _effect(effect: Effect) -> tuple[str, ...]:
    note = ""
    if effect.grew is not None:
        g = effect.grew
        note = (
            f"ANOMALY: {g.what} {g.core_cycles:+,} core-cycles, "
            f"{g.layer_core_cycles:+,} of them in {g.layer}"
        )
    return (
        effect.field,
        f"{effect.before:g}",
        f"{effect.after:g}",
        f"{100 * effect.change:+.2f} %",
        numbers.cycles(effect.cycles),
        note,
    )


def picture(found: Sensitivity) -> str:
    """The fields with the largest changes as bars, an SVG document."""
    fields = list(dict.fromkeys(effect.field for effect in found.effects))[:BARS]
    place = {field: row for row, field in enumerate(fields)}

    def draw(axes: Axes) -> None:
        for label, more, colour in (("doubled", True, 0), ("halved", False, 1)):
            mine = [e for e in found.effects if e.field in place and (e.after > e.before) == more]
            axes.barh(
                [place[e.field] + (-0.2 if more else 0.2) for e in mine],
                [100 * e.change for e in mine],
                height=0.38,
                color=figure.COLOURS[colour],
                label=label,
            )
        axes.set_yticks(range(len(fields)), fields)
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_xlabel("change of the run's time, %")
        axes.set_title(f"one number of the machine doubled or halved ({found.mode})")
        axes.legend(loc="lower right")

    return figure.svg(draw, height_in=1.4 + 0.26 * len(fields))
