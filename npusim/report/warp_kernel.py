"""A launch of a warp kernel as text and as a picture of its banks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from npusim.measure.warp_kernel import Line, WarpKernelResult
from npusim.program.simt.code import WarpCode
from npusim.program.simt.listing import listing
from npusim.report import figure, numbers
from npusim.report.table import Column, Table
from npusim.report.text import REPORT_WIDTH, Part, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def parts(found: WarpKernelResult) -> Iterator[Part]:
    """The annotated source, totals, occupancy, comparison, findings."""
    blocks, threads = ("x".join(str(n) for n in shape) for shape in (found.blocks, found.threads))
    yield f"{found.kernel} of {found.file} on one core of {found.hardware}"
    yield f"{blocks} blocks of {threads} threads, warps of {found.warp_lanes} lanes"
    yield ""
    yield _source(found)
    issues, lanes = found.total("issues"), found.total("lanes")
    share = numbers.percent(lanes / (issues * found.warp_lanes) if issues else None)
    yield ""
    yield (
        f"total: {issues:,} instructions issued, {share} of their lanes active; "
        f"{found.total('wavefronts'):,} wavefronts of shared memory, "
        f"{found.total('conflicts'):,} beyond the ideal; {found.total('sectors'):,} sectors"
    )
    yield _residents(found)
    yield from _comparison(found)
    yield from _findings(found)


def _residents(found: WarpKernelResult) -> str:
    o = found.occupancy
    return (
        f"occupancy: {o.blocks} blocks, {o.warps} warps = {100 * o.share:.1f} % of what a core "
        f"holds, limited by {o.limit}; {found.registers} registers a thread, "
        f"{found.shared_bytes:,} B of shared memory a block"
    )


def _source(found: WarpKernelResult) -> Table:
    columns = (
        Column("line"), Column("source", 30, head=True), Column("issues"), Column("lanes active"),
        Column("divergent"), Column("wavefronts"), Column("beyond ideal"), Column("sectors"),
    )  # fmt: skip
    marks = tuple("host" if line.conflicts else "" for line in found.lines)
    return Table(columns, tuple(_row(line, found.warp_lanes) for line in found.lines), "", marks)


def _row(line: Line, lanes: int) -> tuple[str, ...]:
    share = line.lanes / (line.issues * lanes) if line.issues else None
    counts = (line.divergent, line.wavefronts, line.conflicts, line.sectors)
    return (
        str(line.number), line.text, f"{line.issues:,}", numbers.percent(share),
        *(f"{count:,}" if count else numbers.NONE for count in counts),
    )  # fmt: skip


def _comparison(found: WarpKernelResult) -> Iterator[str]:
    if not found.compared:
        yield "reference: the example has none, nothing was compared"
    for one in found.compared:
        verdict = "agrees with" if one.agrees else "DIFFERS from"
        text = f"largest deviation {one.error:.3g}, allowed {one.allowed:.3g}"
        yield f"reference: {one.name} {verdict} it: {text}"


def _findings(found: WarpKernelResult) -> Iterator[str]:
    if not found.findings:
        yield "checks: nothing found"
    for one in found.findings:
        yield f"{'warning' if one.warning else 'fault'}: {one.text}"


def report(found: WarpKernelResult, code: WarpCode) -> str:
    """The text of report.txt: what the terminal shows, and under it every instruction."""
    text = "\n".join(plain(parts(found), REPORT_WIDTH))
    return f"{text}\n\ninstructions:\n{listing(code)}\n"


def picture(found: WarpKernelResult) -> str:
    """An SVG document: by source line and bank, how many words a bank had to give at once."""
    rows = [line for line in found.lines if line.wavefronts]
    degree = [
        [words / busy if busy else 0.0 for words, busy in zip(line.banks, line.busy, strict=True)]
        for line in rows
    ]
    most = max(max(row) for row in degree)

    def draw(axes: Axes) -> None:
        image = axes.imshow(
            degree, aspect="auto", cmap="YlOrRd", vmin=1, vmax=max(most, 2), interpolation="nearest"
        )
        axes.set_yticks(range(len(rows)), [_label(line) for line in rows], fontsize=7)
        axes.set_xlabel("bank")
        axes.grid(visible=False)
        axes.set_title(
            f"{found.kernel} on {found.hardware}: words of a bank at once (1: no conflict)"
        )
        axes.figure.colorbar(image, ax=axes, label="words at once", shrink=0.9)

    return figure.svg(draw, 9.0, 1.8 + 0.34 * len(rows))


def _label(line: Line) -> str:
    text = line.text.strip()
    shown = text if len(text) <= 44 else text[:43] + "…"
    beyond = f", {line.conflicts:,} beyond the ideal" if line.conflicts else ""
    return f"{line.number}: {shown}\n{line.wavefronts:,} wavefronts{beyond}"
