"""A program as text: one line an instruction, and what it is made of as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim.core.errors import InputError, Problem, choose_from
from npusim.core.units import kib
from npusim.program.kinds import Kind, Space, Why
from npusim.program.program import Ints, Program
from npusim.program.wording import REASONS, action, layer_title, loops, memory_text, region_text


def summary(program: Program) -> list[str]:
    """How many of everything, how full the memories get, who does how much, and the hash."""
    return [
        f"program {program.hash}: {len(program):,} instructions in {len(program.layers)} layers "
        f"on {program.cores} cores",
        f"  instructions: {_kinds(program)}",
        f"  edges: {_edges(program)}",
        "  memory, peak of the buffers alive at once:",
        *(f"    {line}" for line in _memories(program)),
        "  streams, instructions each:",
        *(f"    {line}" for line in _streams(program)),
    ]


def listing(
    program: Program, layer: str | None = None, core: int | None = None, limit: int | None = 40
) -> list[str]:
    """Instructions in program order under headings of their layers, at most `limit` of them.

    `layer` and `core` choose whose; raises InputError if the program has none of that name.
    """
    chosen = _chosen(program, layer, core)
    shown = chosen if limit is None else chosen[:limit]
    shows = _holds(program, shown)
    lines: list[str] = []
    last = -2
    for i in shown.tolist():
        number = int(program.instructions.layer[i])
        if number != last:
            lines.append(_heading(program, number))
            last = number
        lines.append(_row(program, i, shows.get(i, [])))
    if len(shown) < len(chosen):
        lines.append(f"... and {len(chosen) - len(shown):,} more")
    return lines


# ---------------------------------------------------------------- listing


def _chosen(program: Program, layer: str | None, core: int | None) -> Ints:
    mine = np.ones(len(program), np.bool_)
    if layer is not None:
        known = [candidate.name for candidate in program.layers]
        if layer not in known:
            raise InputError(
                Problem(f"the program has no layer {layer!r}", hints=choose_from(layer, known))
            )
        numbers = [n for n, name in enumerate(known) if name == layer]
        mine &= np.isin(program.instructions.layer, numbers)
    if core is not None:
        if not 0 <= core < program.cores:
            raise InputError(f"the program has cores 0 to {program.cores - 1}, not {core}")
        owner = np.array([stream.core for stream in program.streams])
        mine &= owner[program.instructions.stream] == core
    return np.flatnonzero(mine)


def _heading(program: Program, number: int) -> str:
    if number < 0:
        return "no layer"
    layer = program.layers[number]
    return f"{layer_title(layer)}: {layer.operator}"


def _row(program: Program, i: int, shows: list[str]) -> str:
    edges = range(int(program.edges.ptr[i]), int(program.edges.ptr[i + 1]))
    waits = ", ".join(
        f"#{program.edges.source[e]} ({REASONS[int(program.edges.why[e])]})" for e in edges
    )
    notes = [f"waits {waits}"] if waits else []
    notes += [f"shows {text}" for text in shows]
    stream = str(program.streams[program.instructions.stream[i]])
    cells = [f"{f'#{i}':>8}  {stream:<14}", loops(program, i), action(program, i), *notes]
    return "  ".join(cell for cell in cells if cell)


def _holds(program: Program, shown: Ints) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in np.flatnonzero(np.isin(program.holds.after, shown)):
        text = region_text(program, int(program.holds.tap[row]))
        found.setdefault(int(program.holds.after[row]), []).append(text)
    return found


# ---------------------------------------------------------------- summary


def _kinds(program: Program) -> str:
    counts = np.bincount(program.instructions.kind, minlength=len(Kind))
    parts = [f"{counts[kind]:,} {kind.name.lower()}" for kind in Kind if counts[kind]]
    holds = [f"{len(program.holds.after):,} tiles shown"] if len(program.holds.after) else []
    return ", ".join(parts + holds) or "none"


def _edges(program: Program) -> str:
    counts = np.bincount(program.edges.why, minlength=len(Why))
    parts = [f"{counts[why]:,} {REASONS[why]}" for why in Why if counts[why]]
    return f"{len(program.edges.source):,} ({', '.join(parts)})" if parts else "none"


def _memories(program: Program) -> Iterator[str]:
    buffers = program.buffers
    for space in Space:
        for core in sorted(set(buffers.core[buffers.space == space].tolist())):
            mine = np.flatnonzero((buffers.space == space) & (buffers.core == core))
            used = mine[buffers.first_use[mine] >= 0]
            idle = (
                f", {len(mine) - len(used):,} of them never used" if len(used) < len(mine) else ""
            )
            peak = kib(_peak_bytes(program, used))
            yield f"{memory_text(space, core)}: {peak} in {len(mine):,} buffers{idle}"


def _peak_bytes(program: Program, buffers: Ints) -> int:
    """Largest sum of the sizes of buffers between their first and last use."""
    table = program.buffers
    change = np.zeros(len(program) + 1, np.int64)
    np.add.at(change, table.first_use[buffers], table.size_bytes[buffers])
    np.add.at(change, table.last_use[buffers] + 1, -table.size_bytes[buffers])
    return int(np.cumsum(change).max())


def _streams(program: Program) -> Iterator[str]:
    counts = np.bincount(program.instructions.stream, minlength=len(program.streams))
    lines: dict[str, list[str]] = {}
    for stream, count in zip(program.streams, counts.tolist(), strict=True):
        if stream.core >= 0:
            head = f"core {stream.core}"
            lines.setdefault(head, []).append(f"{str(stream).removeprefix(head).strip()} {count:,}")
        elif count:
            lines["host"] = [f"operators {count:,}"]
    for head, parts in lines.items():
        yield f"{head}: {', '.join(parts)}"
