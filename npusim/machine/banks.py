"""The banks of a scratchpad: where an address falls, and how long an access to many takes (A47).

An access asks for some elements at once. Each bank gives one word per cycle, so it takes as many
cycles as the busiest of them has words to give; elements of one word come together.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit, jit_allocating, jit_inline
from npusim.hw.sram import Sram
from npusim.program.program import Ints


class BankParams(NamedTuple):
    """Geometry in bytes; write ports are numbered from `writes_from` (0: shared with reads)."""

    banks: int
    width: int
    interleave: int
    swizzle: int
    writes_from: int
    depth: int


def bank_params(sram: Sram) -> BankParams:
    """The banks of a scratchpad."""
    return BankParams(
        banks=sram.banks,
        width=sram.bank_width_bytes,
        interleave=sram.interleave_bytes,
        swizzle=int(sram.swizzle),
        writes_from=sram.banks if sram.ports == "read_write" else 0,
        depth=sram.stream_entries,
    )


def ports(p: BankParams) -> int:
    """Ports of all banks together."""
    return p.banks + p.writes_from


def layout_period(p: BankParams) -> int:
    """Bytes after which the pattern of banks repeats."""
    return p.interleave * p.banks * (p.banks if p.swizzle else 1)


@jit_inline
def bank_of(address: int, p: BankParams) -> int:
    """The bank of a byte."""
    piece = address // p.interleave
    bank = piece % p.banks
    if p.swizzle == 1:
        bank ^= piece // p.banks % p.banks
    return int(bank)


@jit_allocating
def access(base: int, lanes: Ints, item: int, p: BankParams, load: Ints) -> int:
    """Cycles of one access to elements of `item` bytes at base + lanes; words per bank in `load`.

    At least 1; `load` is int64[banks] and overwritten.
    """
    load[:] = 0
    span = (item + p.width - 2) // p.width + 1
    words, count = np.empty(lanes.size * span, np.int64), 0
    for lane in lanes:
        first, last = (base + lane) // p.width, (base + lane + item - 1) // p.width
        for word in range(first, last + 1):
            if count == 0 or words[count - 1] != word:
                words[count] = word
                count += 1
    wanted = words[:count]
    wanted.sort()
    longest, before = 1, -1
    for word in wanted:
        if word != before:
            bank = bank_of(word * p.width, p)
            load[bank] += 1
            longest = max(longest, load[bank])
        before = word
    return int(longest)


@jit_allocating
def serialised(
    base: int, lanes: Ints, chunk: int, item: int, sizes: Ints, strides: Ints, slot: int,
    p: BankParams,
) -> tuple[int, int]:  # fmt: skip
    """(accesses, cycles) of an operand: `chunk` lanes at a time, for every step of a box.

    A step moves all lanes by its dimensions' strides; an access that is wanted every `slot`
    cycles takes at least those. Exact: what an access takes depends on where it begins modulo a
    period (bytes of one bank, as turning all banks changes nothing; with swizzle those after which
    the layout repeats), and how often each remainder occurs follows from gcd(stride, period).
    """
    period = p.interleave * p.banks * p.banks if p.swizzle == 1 else p.interleave
    often = remainders(sizes, strides, period)
    grain = period // often.size
    load = np.zeros(p.banks, np.int64)
    accesses, cycles = 0, 0
    for first in range(0, lanes.size, chunk):
        part = lanes[first : first + chunk]
        for k in range(often.size):
            if often[k] > 0:
                accesses += often[k]
                taken = access(base + k * grain, part, item, p, load)
                cycles += often[k] * max(taken, slot)
    return accesses, cycles


@jit_allocating
def remainders(sizes: Ints, strides: Ints, period: int) -> Ints:
    """How often the steps of a box begin at each multiple of period / size, modulo the period."""
    grain = period
    for stride in strides:
        grain = _gcd(grain, stride)
    classes = period // grain
    often = np.zeros(classes, np.int64)
    often[0] = 1
    for d in range(sizes.size):
        step = (strides[d] // grain) % classes
        turns = classes // _gcd(classes, step)
        whole, rest = sizes[d] // turns, sizes[d] % turns
        found = np.zeros(classes, np.int64)
        for k in range(classes):
            if often[k] > 0:
                for turn in range(min(turns, sizes[d])):
                    times = whole + 1 if turn < rest else whole
                    found[(k + turn * step) % classes] += often[k] * times
        often = found
    return often


@jit
def _gcd(a: int, b: int) -> int:
    a, b = abs(a), abs(b)
    while b > 0:
        a, b = b, a % b
    return a


def turns(stride: int, p: BankParams) -> int:
    """Steps of `stride` bytes after which an access meets the same banks again."""
    period = layout_period(p)
    return period // gcd(stride, period)
