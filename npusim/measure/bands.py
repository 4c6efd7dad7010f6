"""How far each model is known to be off, and what that leaves open about a run's time.

PARTS is the one place where a comparison with a reference is entered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from npusim.core.catalog import find_file
from npusim.hw.loader import load_machine
from npusim.hw.machine import Machine
from npusim.hw.noc import Noc
from npusim.hw.operations import CLASSES
from npusim.machine.classes import CycleClass as C
from npusim.machine.dram.compared import band as dram_band
from npusim.measure.result import NOT_COMPARED, ModelNote
from npusim.program.program import Ints


@dataclass(frozen=True)
class Band:
    """(ours - reference) / reference lies in `span`, None if nobody knows; `note` says why."""

    span: tuple[float, float] | None
    note: str = NOT_COMPARED


@dataclass(frozen=True)
class Part:
    """A part of the machine with a model of its own, and the classes of cycles it owns.

    `named` says which model a machine uses, `band` how far that one is off.
    """

    name: str
    owns: tuple[C, ...]
    named: Callable[[Machine], str]
    band: Callable[[Machine], Band]


def _uncompared(_: Machine) -> Band:
    return Band(None)


def _dram_band(machine: Machine) -> Band:
    return Band(*dram_band(machine.dram))


def _network(machine: Machine) -> str:
    grid = machine.noc.grid
    if grid is None:
        return machine.noc.kind
    many = f"{grid.networks} networks" if grid.networks > 1 else "one network"
    return f"{machine.noc.kind}, {many} of {grid.rows} x {grid.columns} routers, model clock"


def _network_band(machine: Machine) -> Band:
    """Clocks of links (A43) against whole kernels of reads on a chip whose rings go one way."""
    if machine.noc.grid is None or not machine.noc.grid.one_way:
        return Band(None)
    text = "reads measured on a Wormhole n150, totals of 47 kernels"
    if machine.noc != _measured_network():
        return Band(None, f"not compared; the network of wormhole_n150 with {text}: -22 to +5 %")
    return Band((-0.22, 0.05), f"compared with {text}")


@cache
def _measured_network() -> Noc:
    """The only network that was compared with silicon."""
    return load_machine(find_file("hwconfigs", "wormhole_n150", (".yaml",)).path).machine.noc


def _banks(machine: Machine) -> str:
    """Geometry of the scratchpad's banks."""
    sram = machine.core.sram
    blocks = f" in blocks of {sram.interleave_words} words" if sram.interleave_words > 1 else ""
    swizzled = ", swizzled" if sram.swizzle else ""
    ports = {"single": "one port", "read_write": "a read and a write port"}.get(sram.ports)
    ported = f"{ports} each" if ports else "no limit of ports"
    return f"{sram.banks} banks of {sram.bank_width_bytes} B{blocks}{swizzled}, {ported}"


def _shared(machine: Machine) -> str:
    """What stands beside DRAM or before it."""
    shared, cache = machine.shared_sram, machine.cache
    found = []
    if shared is not None:
        found.append(f"shared SRAM with queues at its slices ({shared.slices})")
    if cache is not None:
        found.append(
            f"cache, sectored, write-back, {cache.ways} ways, {cache.replacement}, queues at its "
            f"slices ({cache.slices})"
        )
    return "; ".join(found) or "none"


def _vector(machine: Machine) -> str:
    unit = machine.core.vector
    own = "" if set(unit.rates) <= set(CLASSES) else ", some operations at rates of their own"
    late = ", with latencies" if any(unit.latency_cycles.values()) else ""
    return f"closed forms by class of operation{own}{late}"


def _host(machine: Machine) -> str:
    host = machine.host
    if host.operators_in_flight == 1:
        return "launch, link and rate"
    link = host.link.replace("_", " ")
    return f"launch, {link} link and rate, {host.operators_in_flight} operators under way at most"


def _matrix_band(machine: Machine) -> Band:
    """Without overlap the forms are those of a published simulator, to the cycle (A7)."""
    matrix = machine.core.matrix
    if matrix.style != "systolic" or matrix.fold_overlap != "none" or matrix.timing_table:
        return Band(None)
    if matrix.arrays != 1 or 1 not in matrix.rates.values():
        return Band(None, "not compared; one array at rate 1 with SCALE-Sim: 0 %")
    return Band((0.0, 0.0), "compared with SCALE-Sim at rate 1, cycles without stalls")


#: Classes that nobody owns follow from what the other classes do.
PARTS: tuple[Part, ...] = (
    Part("dram", (C.DRAM_BANDWIDTH, C.DRAM_LATENCY), lambda m: m.dram.model, _dram_band),
    Part("noc", (C.NOC,), _network, _network_band),
    Part("sram", (C.BANK_CONFLICT,), _banks, _uncompared),
    Part("shared", (C.SHARED_SRAM,), _shared, _uncompared),
    Part("matrix", (C.MATRIX, C.FILL_DRAIN), lambda m: m.core.matrix.description, _matrix_band),
    Part("vector", (C.VECTOR,), _vector, _uncompared),
    Part("dma", (C.DMA_QUEUE,), lambda _: "queues of requests in flight", _uncompared),
    Part("sequencer", (C.DISPATCH,), lambda _: "in-order hand-out", _uncompared),
    Part("host", (C.HOST,), _host, _uncompared),
)
#: Core-cycles that only wait for other cores, or for nothing.
UNOWNED = (C.SYNCHRONISATION, C.IDLE)


def models(machine: Machine, parts: Sequence[Part] = PARTS) -> dict[str, ModelNote]:
    """How each part of the machine was modelled, and how far that is off."""
    found = {}
    for part in parts:
        band = part.band(machine)
        found[part.name] = ModelNote(
            name=part.named(machine),
            owns=tuple(what.label for what in part.owns),
            error_band=band.span,
            note=band.note,
        )
    return found


def time_range(time_s: float, classes: Ints, notes: Mapping[str, ModelNote]) -> tuple[float, float]:
    """The time that the references would have found, at least and at most (A56).

    `classes` are core-cycles per class. A model that is e too long took 1 + e times what its
    reference takes, so the cycles that it owns shrink by 1 / (1 + e). A model without a
    comparison changes nothing; classes without an owner stretch as the owned ones do together.
    """
    shortest = np.ones(len(C))
    longest = np.ones(len(C))
    owned = np.zeros(len(C), np.bool_)
    for note in notes.values():
        low, high = note.error_band or (0.0, 0.0)
        for label in note.owns:
            what = C[label.upper()]
            owned[what] = True
            shortest[what], longest[what] = 1 / (1 + high), 1 / (1 + low)
    weight = np.where(owned, classes, 0)
    if not weight.sum():
        return time_s, time_s
    return (
        time_s * float(weight @ shortest / weight.sum()),
        time_s * float(weight @ longest / weight.sum()),
    )


def took_part(classes: Mapping[str, int], note: ModelNote) -> bool:
    """Whether any core-cycle of a run follows from a model."""
    return any(classes.get(label, 0) for label in note.owns)
