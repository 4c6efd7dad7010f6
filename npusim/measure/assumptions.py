"""What a result takes for granted, in sentences: models, data, figures nobody measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.hw.provenance import KINDS, Provenance
from npusim.machine.meeting import MOST_CYCLES
from npusim.machine.operands import MOST_FOLLOWED
from npusim.measure.layers import Run
from npusim.measure.result import ModelNote
from npusim.measure.work import Work

_NOT_COMPARED = "not compared with a reference yet"


def models(machine: Machine) -> dict[str, ModelNote]:
    """How each part of the machine was modelled."""
    matrix, shared = machine.core.matrix, machine.shared_sram
    named = {
        "dram": machine.dram.model,
        "noc": machine.noc.kind,
        "sram": _banks(machine) + (", and shared SRAM" if shared else ""),
        "matrix": f"closed forms, {matrix.dataflow}, fold_overlap {matrix.fold_overlap}",
        "vector": "closed forms by class of operation",
        "host": "launch, link and rate",
    }
    return {
        part: ModelNote(name=name, error_band=None, note=_NOT_COMPARED)
        for part, name in named.items()
    }


def _banks(machine: Machine) -> str:
    """Geometry of the scratchpad's banks."""
    sram = machine.core.sram
    blocks = f" in blocks of {sram.interleave_words} words" if sram.interleave_words > 1 else ""
    swizzled = ", swizzled" if sram.swizzle else ""
    ports = {"single": "one port", "read_write": "a read and a write port"}.get(sram.ports)
    ported = f"{ports} each" if ports else "no limit of ports"
    return f"{sram.banks} banks of {sram.bank_width_bytes} B{blocks}{swizzled}, {ported}"


def assumptions(
    run: Run,
    work: Sequence[Work],
    provenance: Mapping[str, Provenance],
    notes: Sequence[str],
) -> tuple[str, ...]:
    """All of them; `notes` are those of the look-up of files."""
    found = [
        *notes,
        *_imports(run.graph),
        *_figures(run.machine, provenance),
        *_data(run),
        *run.lowered.notes,
        *_hosted(run),
        *_unsolved(run),
        *(w.note for w in work if w.note),
        "claims are the plan's own closed forms; simulated cycles do not depend on them",
        "one allocator places tensors in DRAM; another placement may change the cycles",
    ]
    return tuple(dict.fromkeys(found))


def _imports(graph: Graph) -> Iterator[str]:
    folded = [note for note in graph.notes if note.startswith("folded ")]
    if folded:
        yield f"the import folded {len(folded)} constant operators; `npusim show model` lists them"
    yield from (note for note in graph.notes if note not in folded)


def _figures(machine: Machine, provenance: Mapping[str, Provenance]) -> Iterator[str]:
    count = Counter(found.kind for found in provenance.values())
    listed = ", ".join(f"{count[kind]} {kind}" for kind in KINDS)
    yield f"of the {len(provenance)} figures of {machine.name} are {listed}"


def _data(run: Run) -> Iterator[str]:
    if run.verdicts is None:
        yield "no values were computed, so nothing is validated"
        rows = run.timeline.assumed_rows
        if rows:
            yield f"{rows} indirect copies fetch rows that are assumed to be evenly spread"
        return
    drawn = [t for t in run.graph.weights() if str(t.recipe).startswith(("normal", "integers"))]
    if drawn:
        yield f"{len(drawn)} weights are drawn at random, not trained"
    for name in run.graph.inputs:
        yield f"input {name} is {run.graph.tensors[name].recipe}"


def _unsolved(run: Run) -> Iterator[str]:
    """Streams in the scratchpad's banks whose rates are not exact."""
    found = run.timeline.conflicts
    if found.tables.inexact:
        yield (
            f"{found.tables.inexact} of {found.tables.solved} meetings of operand streams found no "
            f"common period within {MOST_CYCLES} cycles: their rates are means over half of these"
        )
    if found.cut_short:
        yield (
            f"{found.cut_short} operand streams were followed for {MOST_FOLLOWED} accesses, less "
            "than the period of their banks, when they meet others"
        )


def _hosted(run: Run) -> Iterator[str]:
    hosted = [d.unit.name for d in run.lowered.decisions if d.how == "host"]
    if hosted:
        host = run.machine.host
        yield (
            f"the host runs {', '.join(hosted)}: {host.launch_ns:g} ns to launch each, "
            f"{host.link_bytes_per_s:g} B/s over its link, {host.flops_per_s:g} FLOP/s"
        )
