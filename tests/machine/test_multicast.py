"""Data sheet of copies to several cores: what they move, what they share, who is told no."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.errors import IllegalProgram
from npusim.machine.classes import CycleClass
from npusim.program.checker import check
from npusim.program.kinds import Kind, Space

QUIET = ("dram.timings_ns.refi=1 s", "core.sequencer.dispatch_cycles=0")
BIG = 256 << 10


def multicast(b, source, targets, *, core=0, queue=0, after=()):
    """Copy `source` to a region on each of several cores."""
    first, *others = targets
    return b.emit(
        core, 2 + queue, Kind.COPY, first, source, -1, b.builder.multicast(others), after=after
    )


def everywhere(b, size=BIG, cores=(0, 1, 2, 3)):
    return [b.sram(size, kind="uint8", core=c) for c in cores]


def test_all_targets_receive_the_same(bench):
    b = bench(*QUIET)
    x = b.tensor("x", (64, 64))
    tiles = [b.sram(64, 64, kind="fp32", core=c) for c in range(4)]
    sent = multicast(b, x, tiles)
    for core, tile in enumerate(tiles):
        b.copy(b.tensor(f"y{core}", (64, 64), initial=False), tile, core=core, queue=3, after=sent)
    value = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    done = b.execute({"x": value})
    for core in range(4):
        assert np.array_equal(done.value(f"y{core}", (64, 64)), value)


def test_dram_is_read_once_for_all(bench):
    """Four loads read four times as much; one multicast fills the same tiles in the time of one,
    and of one more way through the network."""
    one, four = bench(*QUIET), bench(*QUIET)
    sent = multicast(one, one.dram(BIG, kind="uint8"), everywhere(one))
    for core in range(4):
        four.load(BIG, core=core, at=0)
    alone, apart = one.run(), four.run()
    assert apart.timeline.dram_bursts == 4 * alone.timeline.dram_bursts
    single = bench(*QUIET)
    load = single.load(BIG)
    way = 20 + 1 + 1 + 4  # latency, port, banks and theirs
    more = alone.ticks(sent) - single.run().ticks(load)
    assert 0 < more <= way * alone.cycle


def test_the_sender_s_port_carries_it_once(bench):
    """512 B per cycle out of core 0, however many receive; as single copies they share the port."""
    took = []
    for cores in ((1,), (1, 2), (1, 2, 3)):
        b = bench(*QUIET)
        sent = multicast(b, b.sram(BIG, kind="uint8"), everywhere(b, cores=cores))
        took.append(b.run().ticks(sent))
    assert max(took) - min(took) <= 8
    b = bench(*QUIET)
    source = b.sram(BIG, kind="uint8")
    for target in everywhere(b, cores=(1, 2, 3)):
        b.copy(target, source)
    seen = b.run()
    assert seen.cycles * seen.cycle > 2.8 * took[0]


def test_every_receiver_s_port_carries_it_too(bench):
    """A receiver that is busy with a load of its own gets both at half the rate each."""
    b = bench(*QUIET)
    sent = multicast(b, b.sram(BIG, kind="uint8"), everywhere(b, cores=(1, 2)))
    own = b.copy(b.sram(BIG, kind="uint8", core=2), b.shared(BIG, kind="uint8"), core=2)
    seen = b.run()
    for copy in (sent, own):
        assert seen.ticks(copy) == pytest.approx(2 * BIG / 512 * seen.cycle, rel=0.1)
    assert seen.share(sent, CycleClass.NOC) > 0


def test_on_a_mesh_a_link_carries_it_once(bench):
    """Cores in a row: each further receiver costs hops, not bandwidth."""
    grid = (
        "noc.kind=mesh",
        "noc.port_bytes_per_cycle=64",
        "noc.grid={rows: 1, columns: 4, hop_cycles: 3, flit_bytes: 64, link_bytes_per_cycle: 64, "
        "places: {cores: 'x0-3 y0', dram: 'x0 y0', shared: 'x0 y0'}}",
    )
    took = []
    for cores in ((3,), (1, 2, 3)):
        b = bench(*QUIET, *grid)
        sent = multicast(b, b.sram(BIG, kind="uint8"), everywhere(b, cores=cores))
        took.append(b.run().ticks(sent))
    assert took[1] == pytest.approx(took[0], rel=0.01)


def test_edges_follow_every_target(bench):
    """Work on a receiver waits for the multicast, which waits for work on what it overwrites."""
    b = bench(*QUIET)
    source, tiles = b.sram(4096, kind="uint8"), everywhere(b, 4096, cores=(1, 2))
    before = b.copy(b.dram(4096, kind="uint8"), tiles[1], core=2, queue=3)
    sent = multicast(b, source, tiles)
    after = b.copy(b.dram(4096, kind="uint8"), tiles[0], core=1, queue=3)
    program = b.program()
    assert before in program.edges.of(sent)
    assert sent in program.edges.of(after)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("twice", "more than one target on core 1"),
        ("unlike", "a multicast brings the same to all its targets"),
        ("dram", "a target of a multicast must be in sram or acc"),
    ],
)
def test_what_no_network_can_do_is_refused(bench, wrong, told):
    b = bench(*QUIET)
    first = b.sram(4096, kind="uint8", core=1)
    other = {
        "twice": lambda: b.sram(4096, kind="uint8", core=1),
        "unlike": lambda: b.sram(2048, kind="uint8", core=2),
        "dram": lambda: b.tile(Space.DRAM, -1, (4096,), "uint8"),
    }[wrong]()
    x = b.tensor("x", (4096,), "uint8")
    multicast(b, x, [first, other])
    with pytest.raises(IllegalProgram, match=told):
        check(b.program(), b.machine)
