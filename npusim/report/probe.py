"""A probe as text and as pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from npusim.core.units import si
from npusim.report import numbers
from npusim.report.curves import picture
from npusim.report.roofline import SUSTAINED, roofline
from npusim.report.table import Column, Table
from npusim.report.text import REPORT_WIDTH, Part, plain
from npusim.validate.peaks import REACHED
from npusim.validate.probe_result import Curve, Measurement, Peak, ProbeResult


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
    yield from _missed(found)
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
        f"{curve.group}-{_slug(curve.name)}.svg": picture(curve, found.hardware)
        for curve in found.curves
        if curve.series
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
    columns = [
        Column("measured", 30),
        Column("value"),
        Column("stated"),
        Column("of it"),
        Column("core-cycles went to", 24, head=True),
    ]
    cells = [_measurement(row) for row in rows]
    if any(row.busy for row in rows):
        columns.append(Column("what was full", 24, head=True))
        cells = [(*cell, row.busy) for cell, row in zip(cells, rows, strict=True)]
    return Table(tuple(columns), tuple(cells), title)


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
        Column("by", 40, head=True),
    )
    reached = sum(peak.reached for peak in found.peaks)
    asked = sum(peak.best is not None for peak in found.peaks)
    title = f"{reached} of {asked} stated peaks reached:"
    if asked < len(found.peaks):
        title = f"{reached} of {asked} stated peaks that were measured reached:"
    if not asked:
        title = "no stated peak was measured:"
    marks = tuple("" if peak.reached else "host" for peak in found.peaks)
    return Table(columns, tuple(_peak(peak) for peak in found.peaks), title, marks)


def _missed(found: ProbeResult) -> Iterator[str]:
    """Why peaks were not reached: those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for peak in found.peaks:
        if peak.best is not None and not peak.reached:
            reasons.setdefault(peak.why, []).append(peak.name)
    if reasons:
        yield f"not reached, that is below {100 * REACHED:.0f} % of what is stated:"
    for why, names in reasons.items():
        yield f"  {', '.join(names)}: {why}"


def _peak(peak: Peak) -> tuple[str, ...]:
    return (
        peak.name,
        quantity(peak.stated, peak.unit),
        numbers.NONE if peak.best is None else quantity(peak.best, peak.unit),
        numbers.percent(peak.share),
        "not measured" if peak.best is None else "yes" if peak.reached else "no",
        peak.by or numbers.NONE,
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


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
