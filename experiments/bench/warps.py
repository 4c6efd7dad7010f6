"""Lane memory operations per CPU second of warp kernels, beside numba's simulator of CUDA.

python experiments/bench/warps.py            # print the table
python experiments/bench/warps.py --write    # and write warps.md

Both run the same two kernels with one CPU each; numba's checks nothing and counts nothing, and is
given smaller arrays, since the same ones would take it minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from npusim.api.warp_example import find_kernel, made
from npusim.hw.loader import load_machine
from npusim.library import ROOT
from npusim.machine.simt.launch import launch
from npusim.machine.simt.tables import Count
from npusim.program.simt.arguments import parameters_of
from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Op

HERE = Path(__file__).parent
#: Sizes that both are given, and those of numba's simulator.
OURS = {"transpose": {"rows": "256", "columns": "256"}, "reduce": {"n": str(1 << 20)}}
THEIRS = {"transpose": 64, "reduce": 1 << 12}


def ours(name: str) -> tuple[float, int]:
    """CPU seconds of the fastest of five warm launches, and its lane memory operations."""
    kernel, path, _ = find_kernel(name)
    simt = load_machine(ROOT / "hwconfigs" / "npu_a.yaml").machine.core.simt
    assert simt is not None
    best, operations = float("inf"), 0
    for _ in range(6):  # the first one compiles
        example = made(kernel, path, OURS[name], seed=0)
        arguments = list(example.arguments)
        code = kernel.compile(parameters_of(kernel.parameters, arguments), example.choices)
        blocks, threads = np.atleast_1d(example.blocks), np.atleast_1d(example.threads)
        start = time.process_time()
        done = launch(code, blocks.tolist(), threads.tolist(), arguments, simt)
        best = min(best, time.process_time() - start)
        touching = np.isin(code.rows[:, Column.OP], [Op.LOAD, Op.STORE, Op.ATOMIC])
        operations = int(done.counts[touching, Count.LANES].sum())
    return best, operations


def theirs(name: str) -> tuple[float, int]:
    """The same of numba's simulator, in a process of its own."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, str(HERE / "warps_numba.py"), name, str(THEIRS[name])]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, operations = out.stdout.split()
    return float(seconds), int(operations)


def table() -> str:
    """The rows of warps.md."""
    lines = [
        "| kernel | npusim, CPU s | lane memory operations | a CPU second | "
        "numba's simulator, a CPU second | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, what in (("transpose", "256 x 256, padded"), ("reduce", "1,048,576 floats")):
        seconds, operations = ours(name)
        their_seconds, their_operations = theirs(name)
        rate, other = operations / seconds, their_operations / their_seconds
        lines.append(
            f"| {name}, {what} | {seconds:.4f} | {operations:,} | {rate / 1e6:.1f} M | "
            f"{other / 1e3:.1f} k | {rate / other:,.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = table()
    print(text)
    if "--write" in sys.argv[1:]:
        head = "# Warps\n\nWritten by experiments/bench/warps.py, which says what is measured.\n\n"
        (HERE / "warps.md").write_text(head + text, encoding="utf-8")
