"""A machine measured as silicon is: by small programs, and what they took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from npusim import __version__
from npusim.api.folder import check_writable, circumstances, place_of, write_whole
from npusim.api.hardware import load_hardware
from npusim.api.stages import Stopwatch, Watcher, nobody
from npusim.core.hashing import content_hash
from npusim.hw.dump import dump_yaml
from npusim.hw.loader import LoadedMachine
from npusim.report.probe import pictures, report
from npusim.validate import microbench
from npusim.validate.peaks import held_against, roofs
from npusim.validate.probe_result import (
    PROBE_SCHEMA_VERSION,
    Group,
    ProbeManifest,
    ProbeResult,
)
from npusim.validate.rig import Rig

SUBJECT = "probe"
_LIBRARIES = ("numpy", "numba")


@dataclass(frozen=True)
class Probed:
    """What a probe found, where it lies (None if it was not written), notes on the look-up."""

    result: ProbeResult
    folder: Path | None
    notes: tuple[str, ...]
    watch: Stopwatch


def probe(
    hw: str = "npu_a",
    hw_set: Sequence[str] = (),
    only: Sequence[str] = (),
    out: str | None = "results",
    watcher: Watcher = nobody,
    command: Sequence[str] = (),
) -> Probed:
    """Measure a machine by all groups of micro-benchmarks, or by those that `only` names.

    Nothing but sizes of programs follows from the machine's file; what its figures promise stands
    beside what was measured. `out` None writes no results folder. Raises InputError.
    """
    watch = Stopwatch(watcher)
    chosen = microbench.chosen(only)
    if out is not None:
        check_writable(out)
    loaded, notes = load_hardware(hw, hw_set)
    rigs = []
    for done, name in enumerate(chosen):
        with watch.stage(f"probe {name}"):
            watcher(f"probe {name}", done, len(chosen))
            rigs.append(microbench.measured(name, loaded.machine))
    manifest = ProbeManifest(
        versions={"npusim": __version__, **{name: version(name) for name in _LIBRARIES}},
        machine_hash=content_hash(loaded.machine),
        hw=Path(hw).name or hw,
        hw_set=tuple(hw_set),
        only=tuple(only),
    )
    result = _result(loaded, rigs, manifest)
    folder = None
    if out is not None:
        with watch.stage("draw"):
            folder = _written(result, loaded, out, watch, command)
    return Probed(result, folder, tuple(notes), watch)


def _result(loaded: LoadedMachine, rigs: Sequence[Rig], manifest: ProbeManifest) -> ProbeResult:
    machine = loaded.machine
    measurements = tuple(m for rig in rigs for m in rig.measurements)
    peaks = tuple(held_against(machine, measurements))
    return ProbeResult(
        schema_version=PROBE_SCHEMA_VERSION,
        hardware=machine.name,
        groups=tuple(
            Group(
                name=rig.group,
                question=microbench.question(rig.group),
                left_out=tuple(rig.left_out),
            )
            for rig in rigs
        ),
        measurements=measurements,
        curves=tuple(curve for rig in rigs for curve in rig.curves),
        peaks=peaks,
        roofs=tuple(roofs(machine, peaks)),
        notes=(
            "the programs run on the model, and their operands are there from the start; "
            "`stated` is what the figures of the machine's file add up to",
        ),
        manifest=manifest,
    )


def _written(
    result: ProbeResult, loaded: LoadedMachine, out: str, watch: Stopwatch, command: Sequence[str]
) -> Path:
    manifest = result.manifest
    name = content_hash(manifest.machine_hash, manifest.hw, manifest.hw_set, manifest.only)[:8]
    target = place_of(out, SUBJECT, result.hardware, name)
    how = circumstances(target, command, loaded.source, watch)
    write_whole(
        target,
        lambda: {
            "probe.json": result.to_json(),
            "report.txt": report(result),
            "machine.yaml": dump_yaml(loaded.machine),
            "run.json": json.dumps(how, indent=2) + "\n",
            **pictures(result),
        },
    )
    return target
