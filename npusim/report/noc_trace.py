"""Replayed traces as tables, and the load of every link as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from npusim.hw.machine import Machine
from npusim.measure.noc_trace import Replay, mean_end_error, mean_error
from npusim.report import figure
from npusim.report.table import Column, Table
from npusim.report.text import Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MODEL, _OTHER, _IDLE = "wormhole", "clock", "idle"
_WORST = 8
#: From a router's place to half the way over each of its links: right, left, down, up.
_WAYS = ((1, 0), (-1, 0), (0, 1), (0, -1))


def trace_parts(machine: Machine, replays: Sequence[Replay]) -> Iterator[Part]:
    """One row per trace, the means, and the readers that are furthest off."""
    yield f"{len(replays)} traces on {machine.name}, network model {_MODEL}"
    yield ""
    columns = (
        Column("trace", 12), Column("reads"), Column("KiB"), Column("measured"), Column("ours"),
        Column("error"), Column("ends"), Column("clock model"), Column("error"), Column("ends"),
        Column("no congestion"), Column("error"),
    )  # fmt: skip
    yield Table(columns, tuple(_row(r) for r in replays))
    yield ""
    yield "cycles from the first stamp to the last; ends: mean absolute error of the readers' ends"
    for model, name in ((_MODEL, "ours"), (_OTHER, "clock model"), (_IDLE, "no congestion")):
        total, ends = mean_error(replays, model), mean_end_error(replays, model)
        yield f"mean absolute error, {name}: total {_share(total)}, ends {_share(ends)}"
    worst = _worst(replays)
    if worst.rows:
        yield ""
        yield worst


def _row(replay: Replay) -> tuple[str, ...]:
    def model(name: str) -> tuple[str, str]:
        return f"{replay.cycles[name]:,}", _signed(replay.error(name))

    measured = "" if replay.measured_cycles is None else f"{replay.measured_cycles:,}"
    return (
        replay.name, f"{replay.transfers:,}", f"{replay.bytes / 1024:,.0f}", measured,
        *model(_MODEL), _share(replay.end_error(_MODEL)),
        *model(_OTHER), _share(replay.end_error(_OTHER)), *model(_IDLE),
    )  # fmt: skip


def _worst(replays: Sequence[Replay]) -> Table:
    """The readers whose ends are furthest off."""
    ends = [
        (abs(error), error, replay.name, who)
        for replay in replays
        for who, error in replay.end_errors[_MODEL].items()
    ]
    rows = tuple(
        (name, who[0], f"x{who[1]} y{who[2]}", _signed(error))
        for _, error, name, who in sorted(ends, reverse=True)[:_WORST]
    )
    columns = (Column("furthest off", 12), Column("proc", 6), Column("core", 6), Column("error"))
    return Table(columns, rows)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f} %"


def load_picture(machine: Machine, replay: Replay) -> str:
    """An SVG of each network's grid; a link is as dark as its share of the trace's time is busy."""
    grid = machine.noc.grid
    assert grid is not None
    room = max(replay.cycles[_MODEL], 1) * grid.link_bytes_per_cycle

    def draw(shown: Figure) -> None:
        for network, axis in enumerate(shown.subplots(1, grid.networks, squeeze=False)[0]):
            _draw(axis, machine, replay.link_bytes[network] / room)
            axis.set_title(f"network {network}", fontsize=9)
        shown.suptitle(
            f"{replay.name}: load of the links, in % of {grid.link_bytes_per_cycle:g} B/cycle"
        )

    return figure.drawn(draw, 6.0 * grid.networks, 6.0 * grid.rows / grid.columns + 1)


def _draw(axis: Any, machine: Machine, load: Any) -> None:
    grid = machine.noc.grid
    assert grid is not None
    for router in range(grid.nodes):
        x, y = router % grid.columns, router // grid.columns
        for way, (right, down) in enumerate(_WAYS):
            if load[router, way] > 0:
                share = min(load[router, way], 1.0)
                shade = (0.85 * (1 - share), 0.85 * (1 - share), 1 - 0.6 * share)
                ends = {"xy": (x + 0.75 * right, y + 0.75 * down), "xytext": (x, y)}
                arrow = {"arrowstyle": "->", "color": shade, "lw": 0.5 + 3 * share}
                axis.annotate("", **ends, arrowprops=arrow)
                where = (x + 0.45 * right + 0.08 * down, y + 0.45 * down + 0.12 * right)
                axis.text(*where, f"{100 * share:.0f}", fontsize=5, ha="center", va="center")
    for places, color in (
        (grid.core_places(machine.cores), "tab:gray"),
        (grid.dram_places(machine.dram.channels), "tab:orange"),
    ):
        axis.plot(*zip(*places, strict=True), "s", color=color, ms=5)
    axis.set_xlim(-1, grid.columns)
    axis.set_ylim(grid.rows, -1)
    axis.set_aspect("equal")
    axis.set_xlabel("x (gray: cores, orange: DRAM)", fontsize=8)
    axis.set_ylabel("y", fontsize=8)
