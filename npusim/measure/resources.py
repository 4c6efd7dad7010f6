"""Which numbers of a machine stand behind a class of cycles, and which way is better.

The two tables are the only place that knows; everything else asks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from npusim.hw.fields import Leaf
from npusim.hw.machine import Machine
from npusim.hw.matrix import Matrix
from npusim.hw.vary import Value, matching
from npusim.machine.classes import CycleClass as C

#: What twice the resource behind a class means: (pattern of fields, factor). Fields that a machine
#: lacks are left out; whole numbers are rounded down, so that one cycle becomes none.
_TWICE: Mapping[C, tuple[tuple[str, float], ...]] = MappingProxyType(
    {
        C.MATRIX: (("core.matrix.rates.*", 2),),
        C.VECTOR: (("core.vector.rates.*", 2), ("core.vector.start_cycles", 0.5)),
        C.HOST: (
            ("host.flops_per_s", 2),
            ("host.link_bytes_per_s", 2),
            ("host.launch_ns", 0.5),
        ),
        C.DRAM_BANDWIDTH: (("dram.channels", 2), ("dram.size_bytes", 2)),
        C.DRAM_LATENCY: (
            ("dram.timings_ns.rcd", 0.5),
            ("dram.timings_ns.cl", 0.5),
            ("dram.timings_ns.cwl", 0.5),
            ("dram.timings_ns.rp", 0.5),
            ("noc.*latency_cycles", 0.5),
            ("core.sram.latency_cycles", 0.5),
        ),
        C.NOC: (
            ("noc.*bytes_per_cycle", 2),
            ("noc.grid.flit_bytes", 2),  # which a link's rate must not exceed
            ("noc.*latency_cycles", 0.5),
            ("noc.*hop_cycles", 0.5),
            ("core.dma.port_bytes_per_cycle", 2),
            ("core.sram.bank_width_bytes", 2),  # which the wider port must not exceed
        ),
        C.SHARED_SRAM: (
            ("shared_sram.*bytes_per_cycle", 2),
            ("shared_sram.*latency_cycles", 0.5),
            ("cache.*bytes_per_cycle", 2),  # the class is a cache's too
            ("cache.*latency_cycles", 0.5),
            ("cache.mshr_entries", 2),
        ),
        C.BANK_CONFLICT: (("core.sram.bank_width_bytes", 2),),
        C.DMA_QUEUE: (
            ("core.dma.outstanding_requests", 2),
            ("core.sequencer.queue_depth", 2),
        ),
        C.SYNCHRONISATION: (
            ("core.sequencer.signal_cycles", 0.5),
            ("core.sequencer.wait_cycles", 0.5),
        ),
        C.DISPATCH: (
            ("core.sequencer.dispatch_cycles", 0.5),
            ("core.dma.descriptor_cycles", 0.5),
        ),
    }
)

#: Whether more of a field makes a machine better (1), worse (-1), or merely another one (0).
_BETTER: tuple[tuple[str, int], ...] = (
    ("cores", 1),
    ("core.matrix.rows", 1),
    ("core.matrix.columns", 1),
    ("core.matrix.depth", 1),
    ("core.matrix.arrays", 1),
    ("core.matrix.register_*", 1),
    ("core.matrix.rates.*", 1),
    ("core.accumulators.size_bytes", 1),
    ("core.vector.lanes", 1),
    ("core.vector.rates.*", 1),
    ("core.sram.size_bytes", 1),
    ("core.sram.banks", 1),
    ("core.sram.stream_entries", 1),
    ("core.dma.queues", 1),
    ("core.dma.outstanding_requests", 1),
    ("core.sequencer.queue_depth", 1),
    ("core.sequencer.semaphores", 1),
    ("shared_sram.size_bytes", 1),
    ("cache.size_bytes", 1),
    ("cache.ways", 1),
    ("cache.mshr_entries", 1),
    ("noc.grid.networks", 1),
    ("noc.grid.flit_bytes", 1),
    ("noc.grid.virtual_channels", 1),
    ("noc.grid.buffer_flits", 1),
    ("noc.grid.request_queue", 1),
    ("noc.grid.header_flits", -1),
    ("dram.size_bytes", 1),
    ("dram.channels", 1),
    ("dram.pseudo_channels", 1),
    ("dram.bank_groups", 1),
    ("dram.banks_per_group", 1),
    ("dram.width_bits", 1),
    ("dram.read_queue", 1),
    ("dram.write_queue", 1),
    ("dram.*_command_clocks", -1),
    ("dram.timings_ns.refi*", 1),
    ("host.operators_in_flight", 1),
)
_BETTER_BY_DIMENSION: Mapping[str, int] = MappingProxyType(
    {
        "hertz": 1,
        "bytes_per_cycle": 1,
        "bytes_per_second": 1,
        "transfers_per_second": 1,
        "flops_per_second": 1,
        "cycles": -1,
        "nanoseconds": -1,
    }
)


def better(leaf: Leaf) -> int:
    """1 if more of a field is a better machine, -1 if less is, 0 where that is open."""
    for pattern, way in _BETTER:
        if fnmatchcase(leaf.path, pattern):
            return way
    return _BETTER_BY_DIMENSION.get(leaf.dimension or "", 0)


def doubled(machine: Machine, what: C) -> dict[str, Value]:
    """Dotted path and new value of all that twice the resource behind a class changes (A55).

    Empty for a class that is no resource, or none of this machine's: `lacking` says why.
    """
    if what is C.FILL_DRAIN:
        return _half_the_filling(machine.core.matrix)
    found: dict[str, Value] = {}
    for pattern, factor in _TWICE.get(what, ()):
        for leaf in matching(machine, pattern):
            assert isinstance(leaf.value, int | float)
            value = leaf.value * factor
            found[leaf.path] = int(value) if isinstance(leaf.value, int) else value
    return found


def _half_the_filling(matrix: Matrix) -> dict[str, Value]:
    """What fills and drains an array of the same peak faster.

    That is overlap of folds, as long as some is missing; then an array's shape, from which its
    load (rows) and skew (rows + columns) follow: four of half the rows and half the columns have
    its peak. Of tensor cores it is the latency. Cycles from a table follow from no field.
    """
    if matrix.timing_table is not None:
        return {}
    if matrix.style == "tensor_core":
        halved = matrix.latency_cycles // 2
        return {"core.matrix.latency_cycles": halved} if matrix.latency_cycles else {}
    if matrix.fold_overlap != "pipelined":
        return {"core.matrix.fold_overlap": "pipelined"}
    if matrix.rows % 2 or matrix.columns % 2:
        return {}
    return {
        "core.matrix.rows": matrix.rows // 2,
        "core.matrix.columns": matrix.columns // 2,
        "core.matrix.arrays": matrix.arrays * 4,
    }


def lacking(machine: Machine, what: C) -> str:
    """Why `doubled` finds nothing, and what would have to change instead."""
    if what is C.IDLE:
        return (
            "no resource: these cores had no work left while others had; "
            "a plan that shares the work more evenly would change it"
        )
    matrix = machine.core.matrix
    if what is C.FILL_DRAIN and matrix.timing_table is not None:
        return f"its cycles come from the table {matrix.timing_table.file}, which no field changes"
    if what is C.FILL_DRAIN and matrix.style == "systolic":
        return (
            f"an array of {matrix.rows} x {matrix.columns} has no four halves of the same peak; "
            "longer streams past each operand would hide more"
        )
    return f"no number of {machine.name} is the resource behind {what.label}"
