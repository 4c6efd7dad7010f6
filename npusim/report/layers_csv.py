"""The layers of a result as comma-separated values, one row each."""

from __future__ import annotations

import csv
import io

from npusim.machine.classes import CycleClass
from npusim.measure.result import Caching, LayerResult, Result

Cell = str | int | float | None


def layers_csv(result: Result) -> str:
    """A header and a row per layer; what does not exist is empty."""
    rows = [_cells(layer) for layer in result.layers]
    header = list(rows[0]) if rows else ["name"]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_text(row[name]) for name in header] for row in rows)
    return stream.getvalue()


def _text(cell: Cell) -> str:
    """Booleans as in JSON, numbers so that they read back as they were."""
    if isinstance(cell, bool):
        return str(cell).lower()
    return "" if cell is None else str(cell)


def _cells(layer: LayerResult) -> dict[str, Cell]:
    span, claim, roof = layer.span, layer.claim, layer.roofline
    return {
        "name": layer.name,
        "operator": layer.operator,
        "kernel": layer.kernel,
        "how": layer.how,
        "choices": " ".join(f"{name}={value}" for name, value in layer.choices.items()),
        "step": layer.step,
        "repeat": layer.repeat,
        "cycles": layer.cycles,
        "core_cycles": layer.core_cycles,
        "time_s": layer.time_s,
        "span_start": span[0] if span else None,
        "span_end": span[1] if span else None,
        "flops": layer.flops,
        "compute_dtype": layer.compute_dtype,
        "flop_fraction": layer.flop_fraction,
        "array_busy_fraction": layer.array_busy_fraction,
        "pe_utilization": layer.pe_utilization,
        "memory_stall_fraction": layer.memory_stall_fraction,
        **{f"{c.label}_core_cycles": layer.stall_cycles.get(c.label, 0) for c in CycleClass},
        "bottleneck": layer.bottleneck,
        "runner_up": layer.runner_up,
        **_traffic(layer),
        "minimum_bytes": layer.minimum_bytes,
        "dram_bandwidth_fraction": layer.dram_bandwidth_fraction,
        **_caching(layer),
        "claim_cycles": claim.cycles if claim else None,
        "claim_bytes": claim.bytes if claim else None,
        "claim_bottleneck": claim.bottleneck if claim else None,
        "intensity_flops_per_byte": roof.intensity if roof else None,
        "attainable_flops_per_s": roof.attainable_flops_per_s if roof else None,
        "sustained_flops_per_s": roof.sustained_flops_per_s if roof else None,
        "roof": roof.roof if roof else None,
        "max_error": layer.max_error,
        "tolerance_ratio": layer.tolerance_ratio,
        "nonfinite_elements": layer.nonfinite_elements,
        "validated": layer.validated,
        "reason": layer.reason,
    }


def _traffic(layer: LayerResult) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for memory, moved in layer.bytes.items():
        cells[f"{memory}_read_bytes"] = moved.read
        cells[f"{memory}_write_bytes"] = moved.write
    return cells


def _caching(layer: LayerResult) -> dict[str, Cell]:
    return {
        f"cache_{name}": getattr(layer.cache, name) if layer.cache else None
        for name in Caching.model_fields
    }
