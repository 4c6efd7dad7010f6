"""What a result takes for granted, in sentences: models, data, figures nobody measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.hw.provenance import KINDS, Provenance
from npusim.measure.layers import Run
from npusim.measure.result import ModelNote
from npusim.measure.work import Work

_NOT_COMPARED = "not compared with a reference yet"


def models(machine: Machine) -> dict[str, ModelNote]:
    """How each part of the machine was modelled."""
    matrix = machine.core.matrix
    named = {
        "dram": machine.dram.model,
        "noc": machine.noc.kind,
        "sram": "bandwidth of all banks, with latency",
        **_shared(machine),
        "matrix": f"closed forms, {matrix.dataflow}, fold_overlap {matrix.fold_overlap}",
        "vector": "closed forms by class of operation",
        "host": "launch, link and rate",
    }
    return {
        part: ModelNote(name=name, error_band=None, note=_NOT_COMPARED)
        for part, name in named.items()
    }


def _shared(machine: Machine) -> dict[str, str]:
    """What stands beside DRAM or before it."""
    shared, cache = machine.shared_sram, machine.cache
    found = {}
    if shared is not None:
        found["shared_sram"] = f"queues at its slices ({shared.slices})"
    if cache is not None:
        found["cache"] = (
            f"sectored, write-back, {cache.ways} ways, {cache.replacement}, queues at its slices "
            f"({cache.slices})"
        )
    return found


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
        *(w.note for w in work if w.note),
        "claims are the plan's own closed forms; simulated cycles do not depend on them",
        *_cached(run.machine),
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


def _cached(machine: Machine) -> Iterator[str]:
    if machine.cache is not None:
        yield "a run begins with an empty cache and ends when all that is dirty in it is in DRAM"
        yield "claims count every byte asked of DRAM as if there were no cache: upper bounds (A60)"


def _hosted(run: Run) -> Iterator[str]:
    hosted = [d.unit.name for d in run.lowered.decisions if d.how == "host"]
    if hosted:
        host = run.machine.host
        yield (
            f"the host runs {', '.join(hosted)}: {host.launch_ns:g} ns to launch each, "
            f"{host.link_bytes_per_s:g} B/s over its link, {host.flops_per_s:g} FLOP/s"
        )
