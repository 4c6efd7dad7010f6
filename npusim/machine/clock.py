"""A shared resource as a clock of the work asked of it, in ticks (A18)."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.program.program import Ints


@jit_inline
def occupy(
    clocks: Ints, which: int, issue: int, t: int, waited: int, length: int, own: int
) -> tuple[int, int]:
    """Occupy a resource for `length` ticks by a request that reaches it at t; (end, wait).

    The clock counts the work of all requests in the order of their issue, so a request that
    arrives early is not held up by one issued before it that is still on its way. `own` is what
    the request itself has put on this clock before.
    """
    busy = max(clocks[which], issue)
    begin = max(t, busy - own + (t - waited - issue))
    clocks[which] = busy + length
    return begin + length, begin - t


@jit_inline
def ticks_of(size: int, cycle: int, bytes_per_cycle: int) -> int:
    """Ticks in which `size` bytes pass, rounded up."""
    return (size * cycle + bytes_per_cycle - 1) // bytes_per_cycle
