"""What a result takes for granted, in sentences: models, data, figures nobody measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.hw.provenance import KINDS, Provenance
from npusim.machine.dram.compared import band
from npusim.measure.channels import narrow_copies
from npusim.measure.layers import Run
from npusim.measure.result import NOT_COMPARED, ModelNote
from npusim.measure.work import Work


def models(machine: Machine) -> dict[str, ModelNote]:
    """How each part of the machine was modelled."""
    matrix, shared = machine.core.matrix, machine.shared_sram
    named = {
        "dram": machine.dram.model,
        "noc": machine.noc.kind,
        "sram": "bandwidth of all banks, with latency" + (", and shared SRAM" if shared else ""),
        "matrix": f"closed forms, {matrix.dataflow}, fold_overlap {matrix.fold_overlap}",
        "vector": "closed forms by class of operation",
        "host": "launch, link and rate",
    }
    notes = {
        part: ModelNote(name=name, error_band=None, note=NOT_COMPARED)
        for part, name in named.items()
    }
    span, text = band(machine.dram.model, machine.dram.standard)
    return notes | {"dram": ModelNote(name=machine.dram.model, error_band=span, note=text)}


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
        *narrow_copies(run.lowered.program, run.machine),
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


def _hosted(run: Run) -> Iterator[str]:
    hosted = [d.unit.name for d in run.lowered.decisions if d.how == "host"]
    if hosted:
        host = run.machine.host
        yield (
            f"the host runs {', '.join(hosted)}: {host.launch_ns:g} ns to launch each, "
            f"{host.link_bytes_per_s:g} B/s over its link, {host.flops_per_s:g} FLOP/s"
        )
