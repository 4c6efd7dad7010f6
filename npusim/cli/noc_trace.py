"""`npusim probe --noc-trace`: measured transfers on the modelled network."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from npusim.api.hardware import load_hardware
from npusim.api.noc_trace import replay_traces
from npusim.cli import printer
from npusim.core.errors import OK, InputError, Place, Problem, choose_from
from npusim.hw.machine import Machine
from npusim.measure.noc_trace import Replay
from npusim.report.noc_trace import load_figure, trace_parts


def probe_traces(args: Namespace) -> int:
    """Replay the traces of args.noc_trace, print how far off they are, draw args.links."""
    loaded, notes = load_hardware(args.hw, args.hw_set)
    for note in notes:
        printer.note(note)
    replays = replay_traces(loaded.machine, args.noc_trace, args.golden)
    if args.links is not None:
        _draw(loaded.machine, replays, args.links, Path(args.out))
    if args.json:
        printer.write(json.dumps([_document(r) for r in replays], indent=1) + "\n")
    else:
        printer.show(trace_parts(loaded.machine, replays))
    return OK


def _draw(machine: Machine, replays: tuple[Replay, ...], name: str, folder: Path) -> None:
    chosen = next((r for r in replays if r.name == name), None)
    if chosen is None:
        hints = choose_from(name, [r.name for r in replays])
        raise InputError(Problem(f"no trace {name!r} in the files", Place("--links"), hints))
    path = folder / f"noc_{''.join(c if c.isalnum() or c in '-_' else '_' for c in name)}.svg"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        load_figure(machine, chosen).savefig(path)
    except OSError as error:
        raise InputError(Problem(error.strerror or str(error), Place(str(path)))) from None
    printer.note(f"links of {name}: {path}")


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
