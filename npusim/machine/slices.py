"""A memory in slices: consecutive granules of addresses in different slices (A19).

A slice moves so many bytes per cycle; a request that reaches several of them is served by all at
once, and two requests that meet in one wait for each other.
"""

from __future__ import annotations

from typing import NamedTuple

from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.machine.clock import occupy, ticks_of
from npusim.program.program import Ints

#: No address is longer.
_ADDRESS_BITS = 48


class SliceParams(NamedTuple):
    """Latency in ticks, bandwidth of one slice per network cycle.

    `bits` number the slices, -1 if they are no power of two; the low `granule_bits` of an address
    stay in one slice, `over_granule` are the ticks of all these bytes; `directions` is 2 if reads
    and writes have ports of their own.
    """

    cycle: int
    latency: int
    slices: int
    bits: int
    hashed: bool
    granule_bits: int
    over_granule: int
    bytes_per_cycle: int
    directions: int


def slice_params(
    machine: Machine, slices: int, granule_bytes: int, bytes_per_cycle: int, latency_cycles: int,
    slice_hash: str, ports: str,
) -> SliceParams:  # fmt: skip
    """A memory of the machine in ticks; `bytes_per_cycle` is that of all slices."""
    cycle = machine.tick_hz // machine.noc.clock_hz
    return SliceParams(
        cycle=cycle,
        latency=latency_cycles * cycle,
        slices=slices,
        bits=address_bits(slices),
        hashed=slice_hash == "xor",
        granule_bits=address_bits(granule_bytes),
        over_granule=ticks_of(granule_bytes, cycle, bytes_per_cycle // slices),
        bytes_per_cycle=bytes_per_cycle // slices,
        directions=2 if ports == "separate" else 1,
    )


def address_bits(count: int) -> int:
    """Address bits that number so many things, -1 if they are no power of two."""
    return count.bit_length() - 1 if count & (count - 1) == 0 else -1


@jit_inline
def fold(number: int, count: int, bits: int, hashed: bool) -> int:
    """One of `count` places for a number: its lowest digit, or all its digits folded.

    Digits are those to the base `count`; they are folded by XOR where that is a power of two and
    by their sum elsewhere, so that neighbours always have different places.
    """
    if bits >= 0:
        by = bits  # after n rounds every digit has met the 2^n - 1 above it
        while hashed and 0 < by < _ADDRESS_BITS:
            number ^= number >> by
            by *= 2
        return number & (count - 1)
    low, rest = number % count, number // count
    while hashed and rest > 0:
        low += rest % count
        rest //= count
    return low % count


@jit_inline
def slice_of(address: int, p: SliceParams) -> int:
    """The slice in which a byte lies."""
    return fold(address >> p.granule_bits, p.slices, p.bits, p.hashed)


@jit_inline
def piece_of(address: int, size: int, p: SliceParams) -> int:
    """How many of `size` bytes from `address` on the slice of the first one holds."""
    if p.slices == 1:
        return size
    granule = 1 << p.granule_bits
    return min(size, granule - (address & (granule - 1)))


@jit_inline
def serve(
    issue: int, t: int, waited: int, address: int, size: int, writes: bool, before: int,
    p: SliceParams, s: Ints,
) -> tuple[int, int]:  # fmt: skip
    """An access that reaches the slices at t; (when the last of them has moved its bytes, wait).

    `before` is where the same request has read here already, -1 if it has not. `s` begins with
    the clocks of the slices' ports.
    """
    end, longest, whole = t, 0, size
    while size > 0:
        piece = piece_of(address, size, p)
        length = p.over_granule
        if piece != 1 << p.granule_bits:
            length = ticks_of(piece, p.cycle, p.bytes_per_cycle)
        which, own = slice_of(address, p), 0
        if before >= 0 and p.directions == 1:
            own = _moved_before(which, before, whole, p)
        port = which * p.directions + (p.directions - 1 if writes else 0)
        done, _ = occupy(s, port, issue, t, waited, length, own)
        end, longest = max(end, done), max(longest, length)
        address += piece
        size -= piece
    return end, end - t - longest


@jit_inline
def _moved_before(which: int, address: int, size: int, p: SliceParams) -> int:
    """Ticks that `size` bytes from `address` on take in one slice."""
    ticks = 0
    while size > 0:
        piece = piece_of(address, size, p)
        if slice_of(address, p) == which:
            ticks += ticks_of(piece, p.cycle, p.bytes_per_cycle)
        address += piece
        size -= piece
    return ticks
