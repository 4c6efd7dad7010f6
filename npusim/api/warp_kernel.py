"""One warp kernel by itself: launched with its example, counted, checked, compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from npusim import __version__
from npusim.api.folder import check_writable, circumstances, place_of, write_whole
from npusim.api.hardware import load_hardware
from npusim.api.stages import Stopwatch, Watcher, nobody
from npusim.api.warp_example import find_kernel, launched, made
from npusim.core.errors import InputError, Place, Problem
from npusim.core.hashing import content_hash
from npusim.hw.dump import dump_yaml
from npusim.hw.loader import LoadedMachine
from npusim.hw.occupancy import occupancy
from npusim.machine.simt.launch import Launch
from npusim.measure.warp_kernel import (
    WARP_KERNEL_SCHEMA_VERSION,
    WarpKernelResult,
    found_in,
    lines_of,
    shared_bytes,
)
from npusim.report.warp_kernel import picture, report


@dataclass(frozen=True)
class KernelRun:
    """A result, where it lies (None if it was not written), and notes on the look-up."""

    result: WarpKernelResult
    folder: Path | None
    notes: tuple[str, ...]


def run_kernel(
    subject: str, hw: str = "npu_a", hw_set: Sequence[str] = (),
    sizes: Mapping[str, str] | None = None, seed: int = 0, order_seed: int | None = None,
    out: str | None = "results", watcher: Watcher = nobody, command: Sequence[str] = (),
) -> KernelRun:  # fmt: skip
    """Launches the kernel FILE:NAME with its example on one core of a machine.

    `sizes` are those of the example and choices of the kernel. With `order_seed` warps take their
    turns in an order drawn from it. Raises InputError.
    """
    watch = Stopwatch(watcher)
    if out is not None:
        check_writable(out)
    loaded, notes = load_hardware(hw, hw_set)
    kernel, path, more = find_kernel(subject)
    simt = loaded.machine.core.simt
    if simt is None:
        message = f"a core of {loaded.machine.name} has no warps"
        raise InputError(Problem(message, Place("--hw"), ("core.simt describes them",)))
    given = sizes or {}
    example = made(kernel, path, given, seed)
    with watch.stage("execute"):
        done, agreed = launched(kernel, example, loaded, order_seed)
    needed = kernel.registers or done.code.registers_alive
    residents = occupancy(simt, int(np.prod(done.threads)), needed, shared_bytes(done))
    if residents.blocks == 0:
        takes = {"registers": f"{needed} registers a thread",
                 "shared memory": f"{shared_bytes(done):,} B of shared memory"}  # fmt: skip
        raise InputError(
            f"a block of {kernel.name} does not fit a core of {loaded.machine.name}: "
            f"{takes.get(residents.limit, 'its threads')} are more than core.simt has"
        )
    result = WarpKernelResult(
        schema_version=WARP_KERNEL_SCHEMA_VERSION, kernel=kernel.name, file=path.name,
        hardware=loaded.machine.name, blocks=done.blocks, threads=done.threads,
        warp_lanes=simt.warp_lanes, sizes=dict(given), seed=seed, lines=lines_of(done),
        findings=found_in(done), compared=agreed, registers=needed,
        shared_bytes=shared_bytes(done),
        occupancy=residents,
        versions={"npusim": __version__, **{n: version(n) for n in ("numpy", "numba")}},
    )  # fmt: skip
    folder = None if out is None else _written(result, loaded, done, out, watch, command, given)
    return KernelRun(result, folder, (*notes, *more))


def _written(
    result: WarpKernelResult, loaded: LoadedMachine, done: Launch, out: str, watch: Stopwatch,
    command: Sequence[str], given: Mapping[str, str],
) -> Path:  # fmt: skip
    key = content_hash(
        content_hash(loaded.machine), done.code.text, dict(given), result.seed, result.blocks,
        result.threads,
    )  # fmt: skip
    target = place_of(out, result.kernel, result.hardware, key[:8])
    how = circumstances(target, command, loaded.source, watch)
    write_whole(
        target,
        lambda: {
            "kernel.json": result.to_json(),
            "report.txt": report(result, done.code),
            "machine.yaml": dump_yaml(loaded.machine),
            "run.json": json.dumps(how, indent=2) + "\n",
            **({"banks.svg": picture(result)} if result.total("wavefronts") else {}),
        },
    )
    return target
