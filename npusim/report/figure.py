"""A figure as SVG text, the same bytes for the same data: no dates, fixed fonts and identifiers."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Distinguishable without colour too, by their order in a legend.
COLOURS = ("#1f5fa8", "#d1622b", "#2e8b57", "#8a4fa3", "#a3872e", "#5b6b7a", "#b03060", "#2aa1b3")
_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "npusim",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def svg(draw: Callable[[Axes], None], width_in: float = 7.0, height_in: float = 4.2) -> str:
    """What `draw` puts on one pair of axes, as an SVG document."""

    def whole(figure: Figure) -> None:
        draw(figure.add_subplot())

    return drawn(whole, width_in, height_in)


def legend_below(axes: Axes) -> None:
    """The legend under the axes, where it covers nothing; up to three entries stand in a row."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.figure.legend(handles, labels, loc="outside lower center",
                           ncols=_columns(labels))  # fmt: skip


def _columns(labels: list[str]) -> int:
    longest = max(len(label) for label in labels)
    return max(min(len(labels), 3, 100 // (longest + 6)), 1)


def drawn(draw: Callable[[Figure], None], width_in: float, height_in: float) -> str:
    """What `draw` puts on a figure of its own, as an SVG document."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        draw(figure)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "npusim"})
    return out.getvalue()
