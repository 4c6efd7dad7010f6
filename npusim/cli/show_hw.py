"""A machine as tables: every field with its unit and provenance, and the peaks that follow."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.core import units
from npusim.hw.fields import Leaf, leaves
from npusim.hw.loader import LoadedMachine
from npusim.hw.machine import Machine
from npusim.report.numbers import count
from npusim.report.table import Column, Table
from npusim.report.text import Part


def hardware_parts(loaded: LoadedMachine) -> Iterator[Part]:
    """Everything about a machine."""
    machine = loaded.machine
    yield f"{machine.name}: {machine.description}"
    yield f"from {loaded.source}" + "".join(f", {text}" for text in loaded.overrides)
    yield ""
    yield _peaks(machine)
    yield ""
    rows = tuple(
        (leaf.path, _value(leaf), str(loaded.provenance[leaf.path]), leaf.description)
        for leaf in leaves(machine)
    )
    columns = (
        Column("field", 20),
        Column("value", 8),
        Column("provenance", 20, head=True),
        Column("what it is", 30, head=True),
    )
    yield Table(columns, rows)


def _value(leaf: Leaf) -> str:
    """As YAML takes it."""
    if isinstance(leaf.value, bool) or leaf.value is None:
        return {True: "true", False: "false", None: "null"}[leaf.value]
    if isinstance(leaf.value, int | float):
        return units.write(leaf.value, leaf.dimension or "number")
    if isinstance(leaf.value, tuple):
        return f"[{', '.join(leaf.value)}]"
    return str(leaf.value)


def _peaks(machine: Machine) -> Table:
    """Peak FLOP/s of all cores by dtype, and the FLOPs per DRAM byte at which it is reached."""
    bandwidth = machine.dram.peak_bytes_per_s
    rows = []
    for name in machine.core.matrix.rates:
        per_cycle = machine.cores * machine.peak_matrix_flops_per_cycle(name)
        peak = per_cycle * machine.core.clock_hz
        rows.append(
            (
                name,
                f"{per_cycle:,.0f} FLOP",
                units.si(peak, "FLOP/s", 4),
                f"{peak / bandwidth:,.1f} FLOP/B",
            )
        )
    columns = (
        Column("dtype", 8),
        Column("per cycle, all cores"),
        Column("peak"),
        Column("ridge point"),
    )
    dram = units.si(bandwidth, "B/s", 4)
    title = (
        f"peaks: {count(machine.cores, 'core')} at {units.write(machine.core.clock_hz, 'hertz')}, "
        f"DRAM {dram} = {machine.dram_bytes_per_cycle:,.1f} B/cycle"
    )
    return Table(columns, tuple(rows), title)
