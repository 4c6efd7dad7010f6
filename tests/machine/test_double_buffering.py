"""Data sheet of loads beside work: two buffers, one buffer, one queue both ways.

Requests go one at a time and nothing is paid for starting or waiting, so that a copy takes what
it takes alone: a load from shared SRAM twice the network's 20 cycles, the SRAM's and 7 at the
ports, a store the network only once.
"""

from __future__ import annotations

import pytest

QUIET = (
    "dram.timings_ns.refi=1 s", "core.sequencer.dispatch_cycles=0",
    "core.sequencer.signal_cycles=0", "core.sequencer.wait_cycles=0",
    "core.dma.descriptor_cycles=0", "core.dma.outstanding_requests=1", "core.sram.ports=unlimited",
    "noc.latency_cycles=20",
)  # fmt: skip
#: One request.
BYTES = 512


def machine(load_cycles):
    """Fields of a machine whose loads take so long."""
    return (*QUIET, f"shared_sram.latency_cycles={load_cycles - 47}")


def load(b, after=()):
    tile = b.sram(BYTES, kind="uint8")
    return b.copy(tile, b.shared(BYTES, kind="uint8"), queue=0, after=after)


def store(b, after=()):
    tile = b.sram(BYTES, kind="uint8")
    return b.copy(b.shared(BYTES, kind="uint8"), tile, queue=0, after=after)


def work(b, cycles, after=()):
    """An addition: 12 cycles to start, then 128 elements in each."""
    return b.add((cycles - 12) * 128, after=after)


@pytest.mark.parametrize(
    ("loading", "working", "buffers", "expected"),
    [
        pytest.param(100, 150, 2, 1300, id="M37: l + (n - 1) max(l, c) + c"),
        pytest.param(150, 100, 2, 1300, id="M38"),
        pytest.param(100, 100, 2, 900, id="M39"),
        pytest.param(100, 150, 1, 2000, id="M40: n (l + c)"),
    ],
)
def test_eight_tiles_are_loaded_and_worked_on(bench, loading, working, buffers, expected):
    b, works = bench(*machine(loading)), []
    for k in range(8):
        free = works[k - buffers : k - buffers + 1] if k >= buffers else []
        works.append(work(b, working, after=load(b, after=free)))
    assert b.run().cycles == expected


def test_one_queue_for_loads_and_stores_adds_them_up(bench):
    """M42: in the steady state a tile takes max(c, l + s) = max(100, 80 + 60) cycles."""
    b, works, tiles = bench(*machine(80)), [], 200
    for k in range(tiles):
        if k >= 2:
            store(b, after=works[k - 2])
        works.append(work(b, 100, after=load(b, after=works[k - 2 : k - 1] if k > 1 else [])))
    seen = b.run()
    assert seen.cycles / tiles == pytest.approx(140, rel=0.02)
