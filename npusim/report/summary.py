"""What stands under the table of layers: totals, claims, fall-backs, models, assumptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from npusim.measure.bands import took_part
from npusim.measure.result import NOT_COMPARED, LayerResult, Result
from npusim.report import numbers
from npusim.report.table import Column, Table

#: A claim that is off by more than this share of the simulated cycles is shown.
CLAIM_TOLERANCE = 0.10


def headline(result: Result) -> str:
    """What was run."""
    return f"{result.model} on {result.hardware} under plan {result.plan}, seed {result.seed}" + (
        ", timing only" if result.manifest.inputs.timing_only else ""
    )


def totals(result: Result) -> Iterator[str]:
    """The whole run in sentences."""
    t = result.totals
    yield (
        f"total: {numbers.cycles(t.cycles)} cycles = {numbers.duration(t.time_s)}; "
        f"{numbers.flops(t.flops)} at {numbers.rate(t.flops_per_s)} = "
        f"{numbers.percent(t.flop_fraction)} of the arrays' peak; "
        f"memory stall {numbers.percent(t.memory_stall_fraction)}"
    )
    if t.floor_cycles:
        yield (
            f"floor: {numbers.cycles(t.floor_cycles)} cycles (arithmetic at peak, or inputs, "
            f"weights and outputs over DRAM once); the run took "
            f"{numbers.times(t.cycles, t.floor_cycles)} that"
        )
    dram, apart = t.bytes["dram"], ", the host's apart" if result.fallbacks else ""
    into, moved = "", "in whole bursts"
    if t.cache is not None:
        into, moved = " through the cache", "in whole sectors between it and DRAM"
    yield (
        f"DRAM: {numbers.size(dram.read)} read, {numbers.size(dram.write)} written{into}; "
        f"{numbers.size(t.dram_burst_bytes)} {moved}{apart} = "
        f"{numbers.percent(t.dram_bandwidth_fraction)} of its peak over the run"
    )


def checks(result: Result) -> Iterator[str]:
    """Whether the values are right, and every failed check."""
    if result.totals.validated is None:
        yield "checks: none, no values were computed"
        return
    checked = [layer for layer in result.layers if layer.validated is not None]
    failed = [layer for layer in checked if not layer.validated]
    if result.totals.validated:
        yield f"checks: {numbers.count(len(checked), 'layer')}, all within tolerance"
        yield from _caveats(result)
        return
    yield f"checks: {len(failed)} of {numbers.count(len(checked), 'layer')} FAILED"
    for failure in result.failures:
        yield f"  {failure.layer}: {failure.message}"


def _caveats(result: Result) -> Iterator[str]:
    """What the checks could not see, and what they saw besides."""
    wild = [layer for layer in result.layers if layer.nonfinite_elements]
    if wild:
        count = sum(layer.nonfinite_elements or 0 for layer in wild)
        yield (
            f"  {count:,} elements of {numbers.count(len(wild), 'layer')}, {wild[0].name} first, "
            "are NaN or infinite in the reference too: of those only the kind was compared"
        )
    order = result.manifest.inputs.order
    if order != "plan":
        yield f"  order {order}: the same values as in the plan's order, in every byte"


def claims(result: Result) -> Table | None:
    """Layers whose claim does not fit what was simulated, None if all do."""
    off = [layer for layer in result.layers if abs(deviation(layer)) > CLAIM_TOLERANCE]
    if not off:
        return None
    columns = (
        Column("layer", 10),
        Column("claimed cycles"),
        Column("share"),
        Column("span"),
        Column("claim is off by"),
        Column("claimed bottleneck", 16),
    )
    rows = tuple(
        (
            layer.name,
            numbers.cycles(layer.claim.cycles),
            numbers.cycles(layer.cycles),
            numbers.cycles(_span(layer)),
            f"{100 * deviation(layer):+.0f} %",
            layer.claim.bottleneck,
        )
        for layer in off
        if layer.claim is not None
    )
    return Table(columns, rows, f"claims that are off by more than {100 * CLAIM_TOLERANCE:.0f} %:")


def deviation(layer: LayerResult) -> float:
    """(claimed - simulated) / simulated cycles; 0 where there is nothing to compare.

    A claim is for the layer alone, and layers overlap: anything from the layer's own share of the
    cycles to its span agrees, and what lies outside is held against the nearer of the two.
    """
    if layer.claim is None or not layer.cycles:
        return 0.0
    nearest = min(max(layer.claim.cycles, layer.cycles), max(_span(layer), layer.cycles))
    return layer.claim.cycles / nearest - 1


def _span(layer: LayerResult) -> float:
    """Cycles from its first start to its last end."""
    return layer.span[1] - layer.span[0] if layer.span else 0


def fallbacks(result: Result) -> Table | None:
    """What the host ran and what it cost, None if nothing."""
    if not result.fallbacks:
        return None
    rows = tuple(
        (
            f.layer,
            f.operator,
            numbers.cycles(f.cycles),
            numbers.duration(f.time_s),
            numbers.cycles(f.launch_cycles),
            numbers.cycles(f.link_cycles),
            numbers.cycles(f.arithmetic_cycles),
            numbers.cycles(f.waiting_cycles),
            numbers.size(f.bytes),
            f.reason,
        )
        for f in result.fallbacks
    )
    columns = (
        Column("layer", 10),
        Column("operator", 10),
        Column("host cycles"),
        Column("time"),
        Column("launch"),
        Column("link"),
        Column("arithmetic"),
        Column("waiting"),
        Column("over the link"),
        Column("why", 20, head=True),
    )
    title = f"{numbers.count(len(rows), 'layer')} ran on the host:"
    return Table(columns, rows, title, ("host",) * len(rows))


def models(result: Result) -> Iterator[str]:
    """How each part was modelled: with an error band where one is known."""
    known = {part: note for part, note in result.models.items() if note.error_band is not None}
    unknown = [f"{part}: {m.name}" for part, m in result.models.items() if m.note == NOT_COMPARED]
    for part, note in known.items():
        yield f"model of {part}: {note.name}, error {_band(note.error_band)}, {note.note}"
    for part, note in result.models.items():
        if part not in known and note.note != NOT_COMPARED:
            yield f"model of {part}: {note.name}, {note.note}"
    if known:
        yield from _range(result)
    if unknown:
        yield f"models without a known error: {'; '.join(unknown)}"


def _range(result: Result) -> Iterator[str]:
    """What the known errors leave open about the time, and whose errors nobody knows."""
    t, spent = result.totals, Counter[str]()
    for classes in result.accounting.cores.values():
        spent.update(classes)
    used = [(part, note) for part, note in result.models.items() if took_part(spent, note)]
    open_ = [part for part, note in used if note.error_band is None]
    text = f"time by the known errors: {_times(t.time_low_s, t.time_high_s)}"
    yield text + (f"; not compared, and taken as they are: {', '.join(open_)}" if open_ else "")


def _times(low_s: float, high_s: float) -> str:
    low, high = numbers.duration(low_s), numbers.duration(high_s)
    return low if low == high else f"{low} to {high}"


def _band(band: tuple[float, float] | None) -> str:
    return "no error band" if band is None else f"{100 * band[0]:+.0f} to {100 * band[1]:+.0f} %"
