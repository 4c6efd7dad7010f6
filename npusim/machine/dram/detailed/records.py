"""Where the records of a bank, its bank group and its pseudo-channel begin in the state."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import Controller


@jit_inline
def bank_record(channel: int, bank: int, p: Controller) -> int:
    """Of a bank, numbered through its channel."""
    return channel + p.at_banks + bank * at.BANK


@jit_inline
def group_record(channel: int, bank: int, p: Controller) -> int:
    """Of the bank group that a bank is in."""
    return channel + p.at_groups + (bank >> p.group_shift) * at.GROUP


@jit_inline
def lane_record(channel: int, bank: int, p: Controller) -> int:
    """Of the pseudo-channel that a bank is in."""
    return channel + p.at_lanes + (bank >> p.lane_shift) * at.LANE
