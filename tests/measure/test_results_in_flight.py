"""Accounting where results are on their way while their unit goes on."""

from __future__ import annotations

import pytest

from npusim.machine.classes import CycleClass
from npusim.measure.accounting import account

X = ("source", 0)
QUIET = ("cores=1", "core.sequencer.dispatch_cycles=0")


@pytest.fixture(scope="module")
def bench(helper, npu):
    return lambda *fields: helper("machine/bench.py").Bench(npu(*QUIET, *fields))


def classes(b):
    accounting = account(b.run().timeline)
    found = accounting.of_core(0)
    assert found.sum() == accounting.total
    return {c.label: int(found[c]) for c in CycleClass if found[c]}


def test_a_latency_that_somebody_waits_for_is_the_vector_unit_s(bench):
    b = bench("core.vector.latency_cycles={simple: 30}")
    x, y, z = (b.sram(8, 128, kind="fp32") for _ in range(3))
    b.vec(("neg", X), y, x)
    b.vec(("neg", X), z, y)
    assert classes(b) == {"vector": 2 * (12 + 8 + 30)}


def test_a_latency_behind_other_work_is_counted_once(bench):
    b = bench("core.vector.latency_cycles={exp: 30}")
    x, y, z = (b.sram(8, 128, kind="fp32") for _ in range(3))
    b.vec(("exp", X), y, x)
    b.vec(("neg", X), z, x)
    assert classes(b) == {"vector": 12 + 32 + 30}


def test_each_layer_has_its_own_part_of_a_run(bench):
    b = bench("core.vector.latency_cycles={exp: 30}")
    x, y, z = (b.sram(8, 128, kind="fp32") for _ in range(3))
    b.vec(("exp", X), y, x)
    b.layer("behind")
    b.vec(("neg", X), z, x)
    accounting = account(b.run().timeline)
    assert accounting.of_layer(0).sum() == 12 + 32
    assert accounting.of_layer(1).sum() == 30


def test_who_waits_for_a_chain_on_the_host_waits_for_the_host(bench):
    """Two operators, the second of which reads the first one's result, then a load and a sum."""
    b = bench("host.operators_in_flight=4", "host.launch_ns=1 us", "dram.timings_ns.refi=1 s")
    x, y, z = (b.dram(1024, kind="uint8") for _ in range(3))
    b.host([x], [y])
    b.host([y], [z])
    tile = b.sram(1024, kind="uint8")
    b.copy(tile, z)
    b.vec(("neg", X), b.sram(1024, kind="uint8"), tile)
    found = classes(b)
    assert 2 * (1000 + 32 + 32) <= found["host"] <= 2 * (1000 + 32 + 32 + 2)
    assert found.get("synchronisation", 0) <= 6
