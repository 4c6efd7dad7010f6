"""Where a byte lies: an address taken apart by the machine's mapping (A23)."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram.params import DramParams


@jit_inline
def locate(number: int, p: DramParams) -> tuple[int, int]:
    """(channel, burst number inside the channel) of a burst, numbered through all channels.

    The digits above turn the channel, so that strides do not stay in one.
    """
    low = number & ((1 << p.low_bits) - 1)
    rest = number >> p.low_bits
    if p.channel_bits >= 0:
        channel = rest & (p.channels - 1)
        rest >>= p.channel_bits
        if p.channel_hash:
            turn = rest ^ rest >> p.channel_bits ^ rest >> 2 * p.channel_bits
            channel = (channel ^ turn ^ turn >> 3 * p.channel_bits) & (p.channels - 1)
    else:
        channel, rest = rest % p.channels, rest // p.channels
        left = rest if p.channel_hash else 0
        while left > 0:
            channel += left % p.channels
            left //= p.channels
        channel %= p.channels
    return channel, rest << p.low_bits | low


@jit_inline
def lane_of(inner: int, p: DramParams) -> int:
    """Pseudo-channel of a burst inside its channel."""
    return inner >> p.lane_shift & p.lane_mask


@jit_inline
def group_of(inner: int, p: DramParams) -> int:
    """Bank group, numbered through the pseudo-channels."""
    return lane_of(inner, p) * p.groups + (inner >> p.group_shift & p.group_mask)


@jit_inline
def row_of(inner: int, p: DramParams) -> int:
    """Row of a burst inside its channel."""
    return inner >> p.row_shift & p.row_mask


@jit_inline
def bank_of(inner: int, row: int, p: DramParams) -> int:
    """Bank inside its group; the digits of its row turn it."""
    bank = inner >> p.bank_shift & p.bank_mask
    if p.bank_hash:
        turn = row ^ row >> p.bank_bits ^ row >> 2 * p.bank_bits ^ row >> 3 * p.bank_bits
        bank = (bank ^ turn ^ row >> 4 * p.bank_bits) & p.bank_mask
    return bank
