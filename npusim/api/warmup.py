"""Compiles ahead: small programs through the very paths that real ones take.

What a compiled function is called with decides what is compiled, so nothing is compiled by name:
one small model is planned, checked, executed, timed and accounted for, once for each kind of
machine that takes loops of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from npusim.api.hardware import load_hardware
from npusim.api.pipeline import build_program, prepare, run
from npusim.api.request import Request
from npusim.api.stages import Watcher, nobody
from npusim.api.warp_kernel import run_kernel
from npusim.core.compiled import compilations, entry_points, kept_functions
from npusim.core.jit import cache_folder, is_temporary
from npusim.hw.dram import Dram
from npusim.machine.dram import replay as bursts
from npusim.machine.dram.detailed.replay import replay_detailed
from npusim.machine.dram.traces import trace
from npusim.machine.replay import MODELS, replay
from npusim.machine.simt.cost import access_cost
from npusim.machine.transfers import Transfers
from npusim.program import deadlock

_SMALL = {"batch": "8", "inputs": "32", "hidden": "32"}
_BLOCK = {"seq": "16", "hidden": "64", "heads": "4", "kv_heads": "2", "head_dim": "16", "ffn": "96"}
#: Fields of machines for which the engine is compiled once more.
_CACHED = (
    "cache={size_bytes: 64 KiB, bytes_per_cycle: 64, latency_cycles: 30, slices: 1, ways: 4, "
    "mshr_entries: 64}",
)
_KINDS = (
    ("core.dma.arbitration=fixed_priority",),
    _CACHED,
    ("dram.model=detailed", *_CACHED),
    ("core.vector.latency_cycles={simple: 30}",),
)


@dataclass(frozen=True)
class Warmth:
    """What was compiled, and where it is kept.

    `compiled` names the functions compiled now, `kept` those that `folder` holds, of `all_of`
    in the package; `folder` is None if nothing can be kept, `temporary` says that it lies in the
    temporary folder for want of a better place.
    """

    compiled: frozenset[str]
    kept: frozenset[str]
    all_of: frozenset[str]
    folder: Path | None
    temporary: bool
    cpu_s: float


def warm_up(watcher: Watcher = nobody) -> Warmth:
    """Compile all loops, or load those that have been compiled; `watcher` hears of each."""
    start = time.process_time()
    everything, compiled = frozenset(entry_points()), set[str]()

    def tell(name: str) -> None:
        if name in everything - compiled:  # one is compiled again for arguments of other types
            compiled.add(name)
            watcher("compile", len(compiled), len(everything))

    watcher("compile", 0, len(everything))
    with compilations(tell):
        for request in _requests():
            run(request)
        _look_for_deadlock()
        _replay_traces()
        _launch_warps()
    return Warmth(
        compiled=frozenset(compiled),
        kept=frozenset(kept_functions()),
        all_of=everything,
        folder=cache_folder(),
        temporary=is_temporary(),
        cpu_s=time.process_time() - start,
    )


def _requests() -> Iterator[Request]:
    """One run of everything, then timing alone on each kind of machine with loops of its own."""
    yield Request("mlp", sizes=_SMALL, order="random:0", out=None)
    yield Request("llama_block", sizes=_BLOCK, timing_only=True, out=None)
    yield Request("conv_block", hw="npu_edge", sizes={"image": "16"}, timing_only=True, out=None)
    models = get_args(Dram.model_fields["model"].annotation)
    for fields in (*((f"dram.model={model}",) for model in models), *_KINDS):
        yield Request("mlp", sizes=_SMALL, hw_set=fields, timing_only=True, out=None)


def _look_for_deadlock() -> None:
    """The checker goes through a program instruction by instruction only if it must."""
    lowered = build_program(prepare(Request("mlp", sizes=_SMALL, out=None)))
    deadlock.run(lowered.program, queue_depth=0)


def _replay_traces() -> None:
    """Traces of one channel of DRAM, and transfers through a grid by itself."""
    dram = bursts.channel_of(load_hardware("npu_a", ())[0].machine.dram)
    some = trace("mix_block", bursts.geometry_of(dram), 256)
    bursts.replay(dram, some)
    replay_detailed(dram, some)
    grid = load_hardware("wormhole_n150", ())[0].machine
    nothing = np.zeros(2, np.int64)
    pair = np.array([0, 1])
    for model in MODELS:
        replay(grid, Transfers(nothing, nothing, nothing + 1, nothing + 64, nothing, pair), model)


def _launch_warps() -> None:
    """A warp kernel, and the rule for one access by itself."""
    run_kernel("transpose", sizes={"rows": "32", "columns": "32"}, out=None)
    simt = load_hardware("npu_a", ())[0].machine.core.simt
    assert simt is not None
    access_cost(range(0, 4 * simt.warp_lanes, 4), 4, simt)
