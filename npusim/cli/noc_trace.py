"""`npusim probe --noc-trace`: measured transfers on the modelled network."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from npusim.api.folder import check_writable, circumstances, place_of, write_whole
from npusim.api.hardware import load_hardware
from npusim.api.noc_trace import replay_traces
from npusim.api.stages import Stopwatch
from npusim.cli import printer
from npusim.cli.compiling import compile_note
from npusim.core.errors import OK, InputError, Place, Problem, choose_from
from npusim.core.hashing import content_hash
from npusim.hw.dump import dump_yaml
from npusim.hw.loader import LoadedMachine
from npusim.hw.machine import Machine
from npusim.measure.noc_trace import Replay
from npusim.report.noc_trace import load_picture, trace_parts
from npusim.report.text import REPORT_WIDTH, plain


def probe_traces(args: Namespace, given: Sequence[str]) -> int:
    """Replay the traces of args.noc_trace, print how far off they are, draw args.links."""
    check_writable(args.out)
    watch = Stopwatch()
    loaded, notes = load_hardware(args.hw, args.hw_set)
    for note in notes:
        printer.note(note)
    with watch.stage("replay"), compile_note():
        replays = replay_traces(loaded.machine, args.noc_trace, args.golden)
    folder = _written(args, given, loaded, replays, watch)
    if args.json:
        printer.write(_json(replays))
    else:
        printer.show([*trace_parts(loaded.machine, replays), f"results: {folder}"])
    return OK


def _written(
    args: Namespace, given: Sequence[str], loaded: LoadedMachine, replays: tuple[Replay, ...],
    watch: Stopwatch,
) -> Path:  # fmt: skip
    """OUT/noc@HARDWARE/HASH; the hash is that of the machine and of what was found."""
    picture, document = _picture(loaded.machine, replays, args.links), _json(replays)
    name = content_hash(loaded.machine, document, args.links)[:8]
    target = place_of(args.out, "noc", loaded.machine.name, name)
    how = circumstances(target, ["npusim", *given], loaded.source, watch)
    text = "\n".join(plain(trace_parts(loaded.machine, replays), REPORT_WIDTH)) + "\n"
    files = {"traces.json": document, "report.txt": text, "machine.yaml": dump_yaml(loaded.machine)}
    write_whole(target, lambda: {**files, "run.json": json.dumps(how, indent=2) + "\n", **picture})
    return target


def _picture(
    machine: Machine, replays: tuple[Replay, ...], name: str | None
) -> Mapping[str, str]:  # fmt: skip
    """The load of the links in the trace that was asked for."""
    if name is None:
        return {}
    chosen = next((r for r in replays if r.name == name), None)
    if chosen is None:
        hints = choose_from(name, [r.name for r in replays])
        raise InputError(Problem(f"no trace {name!r} in the files", Place("--links"), hints))
    return {"links.svg": load_picture(machine, chosen)}


def _json(replays: tuple[Replay, ...]) -> str:
    return json.dumps([_document(r) for r in replays], indent=1) + "\n"


def _document(replay: Replay) -> dict[str, object]:
    return {
        "trace": replay.name,
        "transfers": replay.transfers,
        "bytes": replay.bytes,
        "measured_cycles": replay.measured_cycles,
        "models": {
            model: {
                "cycles": cycles,
                "error": replay.error(model),
                "end_error": replay.end_error(model),
            }
            for model, cycles in replay.cycles.items()
        },
    }
