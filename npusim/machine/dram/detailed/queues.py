"""Queue entries of a channel: lists of each bank's reads and writes in order of arrival."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.dram.detailed.records import bank_record
from npusim.program.program import Ints


@jit_inline
def has_room(channel: int, writes: int, p: Controller, s: Ints) -> bool:
    """Whether the read queue (writes = 0) or write queue (1) takes one more burst."""
    if writes:
        return bool(s[channel + at.WRITES] < p.write_queue)
    return bool(s[channel + at.READS] < p.read_queue)


@jit_inline
def enter(
    channel: int, writes: int, bank: int, row: int, piece: int, p: Controller, s: Ints
) -> int:
    """Put one burst behind the others of its bank; returns the entry."""
    entry = s[channel + at.FREE]
    s[channel + at.FREE] = s[entry + at.ENTRY_NEXT]
    s[entry + at.ENTRY_ROW], s[entry + at.ENTRY_BANK], s[entry + at.ENTRY_PIECE] = row, bank, piece
    s[entry + at.ENTRY_WRITES] = writes
    s[entry + at.ENTRY_AGE] = s[channel + at.SEQUENCE]
    s[channel + at.SEQUENCE] += 1
    s[channel + at.READS + writes] += 1
    record = bank_record(channel, bank, p)
    lists = record + writes * at.LIST
    newest = s[lists + at.NEWEST]
    s[entry + at.ENTRY_NEXT], s[entry + at.ENTRY_BEFORE] = -1, newest
    if newest < 0:
        s[lists + at.OLDEST] = entry
    else:
        s[newest + at.ENTRY_NEXT] = entry
    s[lists + at.NEWEST] = entry
    if s[lists + at.HIT] < 0 and s[record + at.ROW] == row:
        s[lists + at.HIT] = entry
    if s[record + at.AT_BUSY] < 0:
        s[record + at.AT_BUSY] = s[channel + at.BUSY]
        s[channel + p.at_busy + s[channel + at.BUSY]] = bank
        s[channel + at.BUSY] += 1
    return int(entry)


@jit_inline
def leave(channel: int, entry: int, p: Controller, s: Ints) -> None:
    """Take an entry out of its bank's list: it has been served or has opened its row."""
    writes = s[entry + at.ENTRY_WRITES]
    lists = channel + p.at_banks + s[entry + at.ENTRY_BANK] * at.BANK + writes * at.LIST
    after, before = s[entry + at.ENTRY_NEXT], s[entry + at.ENTRY_BEFORE]
    if before < 0:
        s[lists + at.OLDEST] = after
    else:
        s[before + at.ENTRY_NEXT] = after
    if after < 0:
        s[lists + at.NEWEST] = before
    else:
        s[after + at.ENTRY_BEFORE] = before
    s[channel + at.READS + writes] -= 1


@jit_inline
def release(channel: int, entry: int, s: Ints) -> None:
    """Give a served entry back."""
    s[entry + at.ENTRY_NEXT] = s[channel + at.FREE]
    s[channel + at.FREE] = entry


@jit_inline
def rest(channel: int, bank: int, p: Controller, s: Ints) -> None:
    """Take a bank off the list of busy ones if nothing waits for it."""
    record = bank_record(channel, bank, p)
    waiting = max(s[record + at.OLDEST], s[record + at.LIST + at.OLDEST])
    if waiting < 0 and s[record + at.CLAIM] < 0:
        s[channel + at.BUSY] -= 1
        last = s[channel + p.at_busy + s[channel + at.BUSY]]
        s[channel + p.at_busy + s[record + at.AT_BUSY]] = last
        s[channel + p.at_banks + last * at.BANK + at.AT_BUSY] = s[record + at.AT_BUSY]
        s[record + at.AT_BUSY] = -1


@jit_inline
def first_hit(entry: int, row: int, s: Ints) -> int:
    """The first entry from `entry` on in its bank's list that asks for this row, or -1."""
    while entry >= 0 and s[entry + at.ENTRY_ROW] != row:
        entry = s[entry + at.ENTRY_NEXT]
    return int(entry)
