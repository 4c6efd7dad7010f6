"""The DRAM controllers of model `detailed` for the engine: asked now, they answer later."""

from __future__ import annotations

from npusim.core.jit import jit
from npusim.machine import state as s
from npusim.machine.dram import DramParams
from npusim.machine.dram.detailed.interface import due, post
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.dram.mapping import locate
from npusim.machine.heap import hasten, key_of, push
from npusim.program.program import Ints


@jit
def ask(
    label: int, t: int, address: int, size: int, writes: bool, streams: Ints, agenda: Ints,
    heap: Ints, counts: Ints, d: DramParams, k: Controller, ks: Ints,
) -> int:  # fmt: skip
    """Hand an access to the controllers of its channels, cut where it crosses a granule.

    Each of its pieces, whose number is returned, is answered under the label.
    """
    pieces, granule = 0, d.burst_bytes << d.low_bits
    while size > 0:
        piece = min(size, granule - address % granule)
        post(t, label, address, piece, writes, d, k, ks)
        channel, _ = locate(address // d.burst_bytes, d)
        wake(channel, streams, agenda, heap, counts, k, ks)
        address += piece
        size -= piece
        pieces += 1
    return pieces


@jit
def wake(
    channel: int, streams: Ints, agenda: Ints, heap: Ints, counts: Ints, k: Controller, ks: Ints
) -> None:
    """Queue the channel's next action, unless it is queued for as early a time already.

    A channel has one event in the heap, which is moved to an earlier time.
    """
    when, number = due(channel, k, ks), streams.shape[0] + channel
    if when < agenda[channel]:
        old, new = key_of(agenda[channel], 0, number), key_of(when, 0, number)
        if agenda[channel] < s.UNKNOWN:
            counts[s.HEAP] = hasten(heap, counts[s.HEAP], old, new)
        else:
            counts[s.HEAP] = push(heap, counts[s.HEAP], new)
        agenda[channel] = when
