"""How many channels a strided descriptor reaches: a stride can leave most of them idle (A38)."""

from __future__ import annotations

from npusim.core.jit import jit
from npusim.machine.dram.mapping import locate
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints

#: Runs of a descriptor that are looked at; a pattern that has not shown itself by then is none.
MOST_RUNS = 1 << 14


@jit
def channels_reached(
    base: int, run: int, counts: Ints, strides: Ints, p: DramParams, seen: Ints
) -> tuple[int, int]:  # fmt: skip
    """(channels reached, granules touched) by runs of `run` bytes from address `base` on.

    `counts` and `strides` (bytes) give the runs, the last dimension the fastest; `seen` (one
    entry a channel) is scratch. Ends early once every channel has been reached.
    """
    for channel in range(len(seen)):
        seen[channel] = 0
    reached, touched, runs = 0, 0, 1
    for d in range(len(counts)):
        runs *= counts[d]
    for k in range(min(runs, MOST_RUNS)):
        address, left = base, k
        for d in range(len(counts) - 1, -1, -1):
            address += left % counts[d] * strides[d]
            left //= counts[d]
        number = address // p.burst_bytes
        last = (address + run - 1) // p.burst_bytes
        while number <= last and reached < p.channels:
            channel, _ = locate(number, p)
            reached += 1 - seen[channel]
            seen[channel] = 1
            touched += 1
            number = ((number >> p.low_bits) + 1) << p.low_bits
    return reached, touched
