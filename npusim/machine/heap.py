"""A binary heap of packed event keys in one flat array.

A key is time << 14 | phase << 13 | stream: earlier first, completions (phase 0) before starts
(phase 1), then the lower stream. Every stream has at most one event of each phase, so keys never
tie and insertion order never matters.
"""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.program.program import Ints

STREAM_BITS = 13
MAX_STREAMS = 1 << STREAM_BITS


@jit_inline
def key_of(time: int, phase: int, stream: int) -> int:
    """Pack an event."""
    return time << (STREAM_BITS + 1) | phase << STREAM_BITS | stream


@jit_inline
def push(heap: Ints, count: int, key: int) -> int:
    """Add a key; returns the new count."""
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= key:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = key
    return count + 1


@jit_inline
def hasten(heap: Ints, count: int, old: int, key: int) -> int:
    """Put a lower key in the place of an old one, or add it if that is not there; the new count."""
    at = 0
    while at < count and heap[at] != old:
        at += 1
    push(heap, at, key)
    return max(count, at + 1)


@jit_inline
def sift_down(heap: Ints, count: int, key: int) -> None:
    """Put `key` where the top was."""
    at = 0
    child = 1
    while child < count:
        if child + 1 < count and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = key


@jit_inline
def pop(heap: Ints, count: int) -> int:
    """Remove the top; returns the new count."""
    count -= 1
    if count > 0:
        sift_down(heap, count, heap[count])
    return count
