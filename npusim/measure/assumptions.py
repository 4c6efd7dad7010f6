"""What a result takes for granted, in sentences: models, data, figures nobody measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.hw.provenance import KINDS, Provenance
from npusim.machine.meeting import MOST_CYCLES
from npusim.machine.operands import MOST_FOLLOWED
from npusim.machine.table_use import table_use
from npusim.measure.channels import narrow_copies
from npusim.measure.layers import Run
from npusim.measure.reach import reach_notes
from npusim.measure.work import Work


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
        *_table(run),
        *_data(run),
        *run.lowered.notes,
        *_hosted(run),
        *narrow_copies(run.lowered.program, run.machine),
        *_unsolved(run),
        *(w.note for w in work if w.note),
        "claims are the plan's own closed forms; simulated cycles do not depend on them",
        *_cached(run.machine),
        *reach_notes(run.lowered.program, run.machine),
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


def _table(run: Run) -> Iterator[str]:
    """How much of the matrix engine's time is read from its table, and how much is guessed."""
    use, table = table_use(run.lowered.program, run.machine), run.machine.core.matrix.timing_table
    if use is None:
        return
    yield f"{use.exact:,} of {use.products:,} products are entries of the timing table {table}"
    if use.between:
        yield f"{use.between:,} products lie between entries of the timing table: interpolated"
    if use.beyond:
        yield (
            f"{use.beyond:,} products are longer or shorter than any entry of the timing table: "
            "extrapolated, cut into the longest entries or padded to the shortest"
        )
    if use.formula:
        yield f"{use.formula:,} products have a dtype without timing table: in closed form"


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
