"""The roofline of a machine: stated ceilings, measured ones beside them, and what was sustained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npusim.core.units import si
from npusim.report import figure
from npusim.validate.probe_result import ProbeResult, Roof

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The curve whose points are drawn under the roofs belongs to this group.
SUSTAINED = "roofline"
#: FLOPs per byte that are shown.
LEAST, MOST = 0.25, 16384.0


def roofline(found: ProbeResult) -> str:
    """An SVG document; roofs of one height share a line."""
    compute = _merged([roof for roof in found.roofs if roof.kind == "compute"])
    memory = _merged([roof for roof in found.roofs if roof.kind == "memory"])

    def draw(axes: Axes) -> None:
        top = max(height for _, height, _ in compute)
        for number, (label, bandwidth, measured) in enumerate(memory):
            colour = figure.COLOURS[number]
            _slope(axes, bandwidth, top, colour, "-", f"{label}, stated")
            if measured:
                _slope(axes, measured, top, colour, ":", f"{label}, measured")
        fastest = max(bandwidth for _, bandwidth, _ in memory)
        for number, (label, height, measured) in enumerate(compute):
            colour = figure.COLOURS[(number + len(memory)) % len(figure.COLOURS)]
            _level(axes, height, fastest, colour, "-", label)
            if measured:
                _level(axes, measured, fastest, colour, ":", None)
        for curve in found.curves:
            for line in curve.series if curve.group == SUSTAINED else ():
                axes.plot(line.x, line.y, "o", markersize=4, color="black",
                          label=f"sustained, {line.label}")  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(LEAST, MOST)
        axes.set_xlabel("FLOPs per byte")
        axes.set_ylabel("FLOP/s (vector: elements/s), all cores")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.yaxis.set_major_formatter(lambda value, _: si(value, "").strip())
        axes.set_title(f"{found.hardware}: roofline, stated (solid) and measured (dotted)")
        figure.legend_below(axes)

    return figure.svg(draw, height_in=5.4)


def _merged(roofs: list[Roof]) -> list[tuple[str, float, float | None]]:
    """(names, stated, best measured) of the roofs of each height, highest first."""
    heights: dict[float, list[Roof]] = {}
    for roof in roofs:
        heights.setdefault(roof.stated, []).append(roof)
    return [
        (
            _names([roof.name for roof in heights[height]]),
            height,
            max((roof.measured for roof in heights[height] if roof.measured), default=None),
        )
        for height in sorted(heights, reverse=True)
    ]


def _names(names: list[str]) -> str:
    """`matrix bf16, fp16`: what all begin with is said once."""
    first, _, _ = names[0].partition(" ")
    if len(names) > 1 and all(name.startswith(f"{first} ") for name in names):
        return f"{first} " + ", ".join(name.removeprefix(f"{first} ") for name in names)
    return ", ".join(names)


def _slope(axes: Axes, bandwidth: float, top: float, colour: str, style: str, label: str) -> None:
    ridge = top / bandwidth
    axes.plot([LEAST, ridge], [LEAST * bandwidth, top], style, color=colour, label=label)


def _level(
    axes: Axes, height: float, fastest: float, colour: str, style: str, label: str | None
) -> None:
    axes.plot([height / fastest, MOST], [height, height], style, color=colour, label=label)
