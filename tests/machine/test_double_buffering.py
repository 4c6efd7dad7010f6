"""Data sheet of loads beside work (M37 to M42): two buffers, one buffer, one queue both ways.

Requests go one at a time and nothing is paid for starting or waiting, so that a copy takes what
it takes alone. A load takes l cycles, work c, a store s.
"""

from __future__ import annotations

import pytest

QUIET = (
    "dram.timings_ns.refi=1 s", "core.sequencer.dispatch_cycles=0",
    "core.sequencer.signal_cycles=0", "core.sequencer.wait_cycles=0",
    "core.dma.descriptor_cycles=0", "core.dma.outstanding_requests=1", "core.sram.ports=unlimited",
)  # fmt: skip
TILES = 8
#: Bytes of a load from the shared SRAM, and elements of the work: shorter, longer, in between.
BYTES, ELEMENTS = 1536, (6_000, 24_000, 18_432)


def load(b, after=()):
    tile = b.sram(BYTES, kind="uint8")
    return b.copy(tile, b.shared(BYTES, kind="uint8"), queue=0, after=after)


def store(b, after=()):
    tile = b.sram(BYTES, kind="uint8")
    return b.copy(b.shared(BYTES, kind="uint8"), tile, queue=0, after=after)


def alone(bench, *verbs):
    """Cycles of each by itself."""
    found = []
    for verb in verbs:
        b = bench(*QUIET)
        i = verb(b)
        seen = b.run()
        found.append((seen.timeline.end[i] - seen.timeline.start[i]) / seen.cycle)
    return found


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("buffers", [1, 2])
def test_the_longer_of_load_and_work_sets_the_pace_of_two_buffers(bench, elements, buffers):
    """M37 to M39: l + (n - 1) max(l, c) + c; M40, with one buffer: n (l + c)."""
    loading, work = alone(bench, load, lambda b: b.add(elements))
    b, works = bench(*QUIET), []
    for k in range(TILES):
        free = works[k - buffers : k - buffers + 1] if k >= buffers else []
        works.append(b.add(elements, after=load(b, after=free)))
    expected = TILES * (loading + work)
    if buffers == 2:
        expected = loading + (TILES - 1) * max(loading, work) + work
    # Each start is rounded up to a whole cycle.
    assert expected <= b.run().cycles <= expected + 2 * TILES


def test_one_queue_for_loads_and_stores_adds_them_up(bench):
    """M42: in the steady state a tile takes max(c, l + s)."""
    tiles = 40
    loading, storing, work = alone(bench, load, store, lambda b: b.add(ELEMENTS[1]))
    assert max(loading, storing) < work < loading + storing
    b, works = bench(*QUIET), []
    for k in range(tiles):
        if k >= 2:
            store(b, after=works[k - 2])
        works.append(b.add(ELEMENTS[1], after=load(b, after=works[k - 2 : k - 1] if k > 1 else [])))
    assert b.run().cycles / tiles == pytest.approx(loading + storing, rel=0.06)
