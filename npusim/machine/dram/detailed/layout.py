"""Where each part of the per-command model's state lies: one flat array for a whole machine.

First the pool of pieces, then a block per channel: its own fields, then those of its
pseudo-channels, bank groups, banks, the list of busy banks, queue entries, recorded commands.
Compiled functions pass a single array cheaply. "When" is always in quarters of a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from npusim.hw.dram import Dram
from npusim.program.program import Ints

if TYPE_CHECKING:
    from npusim.machine.dram.detailed.params import Controller

#: A time that never comes; four times it still is a number.
NEVER = 1 << 60

#: Of the machine: the first piece of the pool that is free.
FREE_PIECE, HEADER = range(2)
#: Of a piece: the caller's number, when it arrives, the burst that comes next, bursts not yet
#: queued, bursts not yet read, whether it writes, when its last data leave, its neighbours in line.
(
    PIECE_LABEL, PIECE_TIME, PIECE_BURST, PIECE_LEFT, PIECE_UNREAD, PIECE_WRITES, PIECE_END,
    PIECE_NEXT, PIECE_BEFORE, PIECE,
) = range(10)  # fmt: skip
#: Of a channel: its time, when it acts next, whether it serves reads (0) or writes (1), queued
#: reads and writes, when its buses are free, when the last data move, busy banks, the first free
#: entry, entries so far, first and last piece that waits for room; then what is counted.
(
    CLOCK, NEXT, MODE, READS, WRITES, ROW_BUS, COLUMN_BUS, LAST, BUSY, FREE, SEQUENCE,
    FIRST_PIECE, LAST_PIECE,
    READ_BURSTS, WRITE_BURSTS, HITS, ACTIVATES, PRECHARGES, REFRESHES, TURNS, LOGGED, CHANNEL,
) = range(22)  # fmt: skip
#: Of a pseudo-channel: when each command may come next, the last four activates and which of them
#: is the oldest, when the next refresh is due and whether it waits, open rows, claimed banks.
(
    LANE_READ, LANE_WRITE, LANE_ACTIVATE, LANE_PRECHARGE, LANE_REFRESH, LANE_OLDEST, LANE_DUE,
    LANE_WAITS, LANE_OPEN, LANE_CLAIMS, LANE_WINDOW,
) = range(11)  # fmt: skip
LANE = LANE_WINDOW + 4
#: Of a bank group: when each command may come next.
GROUP_READ, GROUP_WRITE, GROUP_ACTIVATE, GROUP = range(4)
#: Of a bank: its open row, when each command may come next, the entry that opened the row and is
#: still to be served, its place among the busy banks; then, first for reads and then for writes,
#: the oldest entry, the newest, and the oldest that hits the open row. -1 stands for none.
(
    ROW, BANK_ACTIVATE, BANK_READ, BANK_WRITE, BANK_PRECHARGE, CLAIM, AT_BUSY, OLDEST, NEWEST, HIT,
) = range(10)  # fmt: skip
LIST = 3
BANK = OLDEST + 2 * LIST
#: Of a queue entry, one burst each: NEXT and BEFORE are its neighbours in its bank's list.
(
    ENTRY_ROW, ENTRY_BANK, ENTRY_PIECE, ENTRY_AGE, ENTRY_NEXT, ENTRY_BEFORE, ENTRY_WRITES, ENTRY,
) = range(8)  # fmt: skip
#: Kinds of commands; a recorded one is (when, kind, bank, row).
READ, WRITE, ACTIVATE, PRECHARGE, PRECHARGE_ALL, REFRESH = range(6)
LOG = 4


def parts(dram: Dram, pieces: int, log_commands: int) -> dict[str, int]:
    """Sizes and positions, as fields of `Controller`."""
    lanes, groups, banks = dram.pseudo_channels, dram.bank_groups, dram.banks_per_group
    group_shift = banks.bit_length() - 1
    entries = dram.read_queue + dram.write_queue + lanes * groups * banks
    sizes = {
        "at_lanes": CHANNEL,
        "at_groups": lanes * LANE,
        "at_banks": lanes * groups * GROUP,
        "at_busy": lanes * groups * banks * BANK,
        "at_entries": lanes * groups * banks,
        "at_log": entries * ENTRY,
        "channel_size": log_commands * LOG,
    }
    ends = dict(zip(sizes, np.cumsum([*sizes.values()]).tolist(), strict=True))
    at_channels = HEADER + pieces * PIECE
    return {
        **ends,
        "banks": lanes * groups * banks,
        "group_shift": group_shift,
        "lane_shift": group_shift + groups.bit_length() - 1,
        "pieces": pieces,
        "log_commands": log_commands,
        "at_pieces": HEADER,
        "at_channels": at_channels,
        "size": at_channels + dram.channels * ends["channel_size"],
    }


def detailed_state(p: Controller) -> Ints:
    """Everything closed and idle; refreshes of the channels are spread over the interval (A62)."""
    s = np.zeros(p.size, np.int64)
    s[FREE_PIECE] = _chain(s, p.at_pieces, p.pieces, PIECE, PIECE_NEXT)
    blocks = s[p.at_channels :].reshape(p.channels, p.channel_size)
    blocks[:, NEXT] = NEVER
    blocks[:, [FIRST_PIECE, LAST_PIECE]] = -1
    lanes = blocks[:, p.at_lanes : p.at_groups].reshape(p.channels, -1, LANE)
    lanes[:, :, LANE_WINDOW:] = -NEVER
    lanes[:, :, LANE_DUE] = _first_refreshes(p)[:, None]
    banks = blocks[:, p.at_banks : p.at_busy].reshape(p.channels, -1, BANK)
    banks[:, :, [ROW, CLAIM, AT_BUSY]] = -1
    banks[:, :, OLDEST:] = -1
    entries = (p.at_log - p.at_entries) // ENTRY
    for channel in range(p.at_channels, p.size, p.channel_size):
        s[channel + FREE] = _chain(s, channel + p.at_entries, entries, ENTRY, ENTRY_NEXT)
    return s


def _first_refreshes(p: Controller) -> Ints:
    """When the first refresh of each channel is due, on a point where commands may begin."""
    if p.refi == NEVER:
        return np.full(p.channels, NEVER, np.int64)
    first = p.first_refresh + np.arange(p.channels, dtype=np.int64) * p.refi // (2 * p.channels)
    return first // p.step * p.step


def _chain(s: Ints, first: int, count: int, size: int, link: int) -> int:
    """Link free records one behind the other; the first of them."""
    places = first + np.arange(count) * size
    s[places[:-1] + link] = places[1:]
    s[places[-1] + link] = -1
    return first


def counted(p: Controller, s: Ints) -> Ints:
    """Bursts, activates, refreshes and turns of the bus, in the order of `dram.params`."""
    blocks = s[p.at_channels : p.size].reshape(p.channels, p.channel_size)
    total = blocks[:, :CHANNEL].sum(axis=0)
    columns = total[READ_BURSTS] + total[WRITE_BURSTS]
    return np.array([columns, total[ACTIVATES], total[REFRESHES], total[TURNS]], np.int64)
