"""A probe as text and as pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from npusim.core.units import si
from npusim.report import figure, numbers
from npusim.report.roofline import SUSTAINED, roofline
from npusim.report.table import Column, Table
from npusim.report.text import REPORT_WIDTH, Part, plain
from npusim.validate.probe_result import Curve, Measurement, Peak, ProbeResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = tuple[float, ...]
#: Units that axes write with a prefix at every tick, such as GB/s.
_PREFIXED = ("B/s", "FLOP/s", "element/s")


def parts(found: ProbeResult) -> Iterator[Part]:
    """Measurements by group, what was left out, then the peaks."""
    yield f"{found.hardware} measured by {numbers.count(len(found.groups), 'group')} of programs"
    for group in found.groups:
        mine = [m for m in found.measurements if m.group == group.name]
        curves = [curve.name for curve in found.curves if curve.group == group.name]
        yield ""
        if mine:
            yield _measurements(mine, f"{group.name}: {group.question}")
        else:
            yield f"{group.name}: {group.question}"
        if curves:
            yield f"  curves: {'; '.join(curves)}"
        yield from (f"  left out, {text}" for text in group.left_out)
    yield ""
    yield _peaks(found)
    yield from found.notes


def report(found: ProbeResult) -> str:
    """The text of report.txt, and under it every point of every curve."""
    lines = list(plain(parts(found), REPORT_WIDTH))
    for curve in found.curves:
        lines += ["", *plain(iter([_points(curve)]), REPORT_WIDTH)]
    return "\n".join(lines) + "\n"


def pictures(found: ProbeResult) -> Mapping[str, str]:
    """File name and SVG of every curve, and of the roofline where anything of it was measured."""
    drawn = {
        f"{curve.group}-{_slug(curve.name)}.svg": _picture(curve, found.hardware)
        for curve in found.curves
    }
    sustained = any(curve.group == SUSTAINED for curve in found.curves)
    if sustained or any(roof.measured for roof in found.roofs):
        drawn["roofline.svg"] = roofline(found)
    return drawn


def quantity(value: float, unit: str) -> str:
    """A value with the prefix that suits it."""
    if unit == "s":
        return numbers.duration(value)
    if unit in ("cycles", "times", "%"):
        return f"{value:,.4g} {unit}"
    return si(value, unit, 4)


def _measurements(rows: list[Measurement], title: str) -> Table:
    columns = (
        Column("measured", 30),
        Column("value"),
        Column("stated"),
        Column("of it"),
        Column("core-cycles went to", 24, head=True),
    )
    return Table(columns, tuple(_measurement(row) for row in rows), title)


def _measurement(row: Measurement) -> tuple[str, ...]:
    return (
        row.name,
        quantity(row.value, row.unit),
        numbers.NONE if row.stated is None else quantity(row.stated, row.unit),
        numbers.percent(row.share),
        row.limits,
    )


def _peaks(found: ProbeResult) -> Table:
    columns = (
        Column("stated peak", 20),
        Column("stated"),
        Column("best"),
        Column("share"),
        Column("reached"),
        Column("by, or why not", 40, head=True),
    )
    reached = sum(peak.reached for peak in found.peaks)
    title = f"{reached} of {len(found.peaks)} stated peaks reached:"
    marks = tuple("" if peak.reached else "host" for peak in found.peaks)
    return Table(columns, tuple(_peak(peak) for peak in found.peaks), title, marks)


def _peak(peak: Peak) -> tuple[str, ...]:
    told = "; ".join(text for text in (peak.by, peak.why) if text)
    return (
        peak.name,
        quantity(peak.stated, peak.unit),
        numbers.NONE if peak.best is None else quantity(peak.best, peak.unit),
        numbers.percent(peak.share),
        "yes" if peak.reached else "no",
        told,
    )


def _points(curve: Curve) -> Table:
    """A row for each x, a column for each line."""
    xs = sorted({x for line in curve.series for x in line.x})
    values = [dict(zip(line.x, line.y, strict=True)) for line in curve.series]
    columns = (Column(curve.x_label), *(Column(line.label) for line in curve.series))
    rows = tuple((f"{x:,.6g}", *(_at(value.get(x), curve.y_unit) for value in values)) for x in xs)
    return Table(columns, rows, f"{curve.name}:")


def _at(value: float | None, unit: str) -> str:
    return numbers.NONE if value is None else quantity(value, unit)


def _picture(curve: Curve, hardware: str) -> str:
    from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

    def draw(axes: Axes) -> None:
        for number, (label, x, y) in enumerate(_lines(curve)):
            colour = figure.COLOURS[number % len(figure.COLOURS)]
            axes.plot(x, y, marker="o", markersize=3, color=colour, label=label)
        if curve.stated is not None:
            axes.axhline(curve.stated, color="black", linestyle="--", linewidth=0.9,
                         label=f"stated {quantity(curve.stated, curve.y_unit)}")  # fmt: skip
        if curve.logarithmic:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}"))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if curve.y_unit in _PREFIXED:
            axes.yaxis.set_major_formatter(EngFormatter(curve.y_unit))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(curve.x_label)
        axes.set_ylabel(curve.y_label if curve.y_unit in _PREFIXED else _with_unit(curve))
        axes.set_title(f"{curve.name}, {hardware}")
        axes.legend()

    return figure.svg(draw)


def _with_unit(curve: Curve) -> str:
    return f"{curve.y_label}, {curve.y_unit}" if curve.y_unit else curve.y_label


def _lines(curve: Curve) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Label, x and y of each line; lines through the same points are one."""
    labels: dict[tuple[Numbers, Numbers], list[str]] = {}
    for line in curve.series:
        labels.setdefault((line.x, line.y), []).append(line.label)
    for (x, y), same in labels.items():
        yield ", ".join(same), x, y


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
