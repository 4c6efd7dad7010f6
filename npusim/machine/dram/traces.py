"""Synthetic accesses to one channel, burst by burst, on which DRAM models are compared.

The sequences, their random numbers included (PCG64), are those on which other simulators were
run; see tests/data/ORIGIN.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.program.program import Ints


@dataclass(frozen=True, slots=True)
class Geometry:
    """Counts of one channel: pseudo-channels, bank groups, banks per group, rows, bursts a row."""

    lanes: int
    groups: int
    banks: int
    rows: int
    columns: int
    burst_bytes: int


#: Columns of a trace: 1 for a write, then where the burst lies.
WRITE, LANE, GROUP, BANK, ROW, COLUMN = range(6)
_MATRIX_PITCH_BYTES = 8192
_MATRIX_ROWS = 4096


def trace(name: str, g: Geometry, count: int, seed: int = 1) -> Ints:
    """`count` bursts of the named pattern: int64 [count, 6], see the column numbers.

    seq_ilv, seq_col, seq_col_pc: sequential with banks, columns, pseudo-channels lowest.
    row_conflict, row_stride, random: a new row each in one bank, over all banks, anywhere.
    mix_seq, mix_block, mix_random: half of it writes, singly at random or in blocks of 64.
    tileRxB: R rows of B bytes, 8 KiB apart, from random places of a matrix. Raises ValueError
    for any other name.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    i = np.arange(count, dtype=np.int64)
    nothing = np.zeros(count, np.int64)
    if name.startswith("tile"):
        return _columns(nothing, _linear(_tile(name, g, count, draw), g))
    match name:
        case "seq_ilv":
            return _columns(nothing, _interleaved(i, g))
        case "seq_col":
            return _columns(nothing, _split(i, g, "column group bank lane row"))
        case "seq_col_pc":
            return _columns(nothing, _split(i, g, "lane column group bank row"))
        case "row_conflict":
            return _columns(nothing, (nothing, nothing, nothing, i % g.rows, nothing))
        case "row_stride":
            lane, group, bank, row, _ = _split(i, g, "lane group bank row column")
            return _columns(nothing, (lane, group, bank, row, nothing))
        case "random":
            return _columns(nothing, _anywhere(count, g, draw))
        case "mix_random":
            writes = draw.integers(0, 2, count)
            return _columns(writes, _anywhere(count, g, draw))
        case "mix_seq":
            writes = draw.integers(0, 2, count)
            own = np.where(writes == 1, np.cumsum(writes) - 1, np.cumsum(1 - writes) - 1)
            return _columns(writes, _apart(writes, _interleaved(own, g), g))
        case "mix_block":
            writes = i // 64 % 2
            return _columns(writes, _apart(writes, _interleaved(i // 128 * 64 + i % 64, g), g))
    raise ValueError(f"no trace is called {name!r}")


Places = tuple[Ints, Ints, Ints, Ints, Ints]


def _columns(writes: Ints, places: Places) -> Ints:
    return np.stack([writes, *places], axis=1)


def _split(number: Ints, g: Geometry, order: str) -> Places:
    """Digits of a burst number, the first named the lowest; rows wrap round."""
    counts = {"lane": g.lanes, "group": g.groups, "bank": g.banks, "column": g.columns}
    counts["row"] = g.rows
    found: dict[str, Ints] = {}
    for name in order.split():
        found[name], number = number % counts[name], number // counts[name]
    return found["lane"], found["group"], found["bank"], found["row"], found["column"]


def _interleaved(number: Ints, g: Geometry) -> Places:
    return _split(number, g, "lane group bank column row")


def _linear(number: Ints, g: Geometry) -> Places:
    return _split(number, g, "lane group column bank row")


def _apart(writes: Ints, places: Places, g: Geometry) -> Places:
    """The same places for reads, half the rows away for writes."""
    lane, group, bank, row, column = places
    return lane, group, bank, np.where(writes == 1, (row + g.rows // 2) % g.rows, row), column


def _anywhere(count: int, g: Geometry, draw: np.random.Generator) -> Places:
    lane, group, bank, row, column = (
        draw.integers(0, most, count) for most in (g.lanes, g.groups, g.banks, g.rows, g.columns)
    )
    return lane, group, bank, row, column


def _tile(name: str, g: Geometry, count: int, draw: np.random.Generator) -> Ints:
    """Burst numbers of 2-D tiles, `tile16x512`: 16 rows of 512 bytes."""
    rows, width = map(int, name[4:].split("x"))
    each = max(1, width // g.burst_bytes)
    tiles = count // (rows * each) + 1
    down = draw.integers(0, _MATRIX_ROWS // rows, tiles) * rows
    along = draw.integers(0, _MATRIX_PITCH_BYTES // width, tiles) * width
    starts = (down[:, None, None] + np.arange(rows)[:, None]) * _MATRIX_PITCH_BYTES
    places = starts + along[:, None, None] + np.arange(each) * g.burst_bytes
    return np.asarray(places.reshape(-1)[:count] // g.burst_bytes, np.int64)
