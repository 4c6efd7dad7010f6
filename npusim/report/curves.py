"""The picture of one curve of a probe: units that suit the values, ticks at round places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from npusim.core.units import si
from npusim.report import figure
from npusim.validate.probe_result import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = tuple[float, ...]
#: A stated peak of more than this many times the highest point would press the curve flat.
TALLEST = 8
#: Ticks at measured places lie at least this share of the axis apart, so that numbers have room.
APART = 0.045
#: The most ticks at powers of two.
POWERS = 10
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def picture(curve: Curve, machine: str) -> str:
    """An SVG document."""
    top = max(max(line.y) for line in curve.series)
    stated = curve.stated
    shown = stated if stated is not None and stated <= TALLEST * top else None
    factor, unit = scale(max(top, shown or 0.0), curve.y_unit)

    def draw(axes: Axes) -> None:
        for number, (label, x, y) in enumerate(lines(curve)):
            colour = figure.COLOURS[number % len(figure.COLOURS)]
            axes.plot(x, [value / factor for value in y], marker="o", markersize=3.5,
                      color=colour, label=label)  # fmt: skip
        if shown is not None:
            axes.axhline(shown / factor, color="black", linestyle="--", linewidth=0.9,
                         label=f"stated {si(shown, curve.y_unit, 4)}")  # fmt: skip
        elif stated is not None:
            axes.plot([], [], " ", label=f"stated {si(stated, curve.y_unit, 4)}: far above")
        axes.set_ylim(0, 1.06 * max(top, shown or 0.0) / factor)
        _ticks(axes, curve)
        axes.set_xlabel(curve.x_label)
        axes.set_ylabel(f"{curve.y_label}, {unit}")
        axes.set_title(f"{machine}: {curve.name}")
        figure.legend_below(axes)

    return figure.svg(draw)


def scale(largest: float, unit: str) -> tuple[float, str]:
    """What a y axis is divided by, and its unit: bandwidths in GB/s, what is huge with a prefix."""
    if unit == "B/s" and largest >= 1e9:
        return 1e9, "GB/s"
    if unit not in ("%", "cycles", "times", "s"):
        for factor, prefix in _PREFIXES:
            if largest >= factor:
                return factor, prefix + unit
    return 1.0, unit


def lines(curve: Curve) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Label, x and y of each line; lines through the same points are one."""
    labels: dict[tuple[Numbers, Numbers], list[str]] = {}
    for line in curve.series:
        labels.setdefault((line.x, line.y), []).append(line.label)
    for (x, y), same in labels.items():
        yield ", ".join(same), x, y


def measured_ticks(xs: Sequence[float]) -> list[float]:
    """Measured places from the largest down, without those too near to the one above."""
    ticks: list[float] = []
    for x in sorted(set(xs), reverse=True):
        if not ticks or ticks[-1] - x >= APART * max(xs):
            ticks.append(x)
    return ticks[::-1]


def _ticks(axes: Axes, curve: Curve) -> None:
    """Powers of two written out, or the measured places where they are whole numbers."""
    xs = [x for line in curve.series for x in line.x]
    if curve.logarithmic:
        axes.set_xscale("log", base=2)
        powers = sorted({1 << int(x).bit_length() - 1 for x in xs if x >= 1})
        _set(axes, powers[:: -(-len(powers) // POWERS)])
    elif all(x == int(x) for x in xs):
        axes.set_xlim(left=0)
        _set(axes, measured_ticks(xs))


def _set(axes: Axes, ticks: Sequence[float]) -> None:
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.set_xticks([], minor=True)
