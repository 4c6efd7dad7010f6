"""Measures what npusim costs, and writes the table of results.md.

python experiments/bench/run.py            # print it
python experiments/bench/run.py --write    # and write results.md
"""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from commands import best_of
from emission import emission
from engine import speed
from memory import rates

from npusim import __version__
from npusim.api.request import Request

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One line of the table; `aim` is what it must not exceed, or reach."""

    what: str
    command: str
    measured: str
    aim: str


def rows() -> Iterator[Row]:
    """All measurements, in the order of the table."""
    yield from _help()
    with tempfile.TemporaryDirectory() as folder:
        yield from _run("default, every operator validated", "20 s, 4 GiB", folder)
        yield from _run("seq 2048, validated", "90 s", folder, "--set", "seq=2048")
        yield from _run("default, timing only", "3 s", folder, "--timing-only")
        square = ("m=8192", "n=8192", "k=8192")
        for model, aim in (("run", "5 s, 2 GiB"), ("burst", "20 s, 2 GiB")):
            dram = ("--timing-only", "--hw-set", f"dram.model={model}")
            yield from _run(f"seq 2048, `{model}`", aim, folder, "--set", "seq=2048", *dram)
            yield from _run(
                f"8192^3, `{model}`", aim, folder, "--set", *square, *dram, model="matmul"
            )
        yield from _run(
            "default, `detailed`", "", folder, "--timing-only", "--hw-set", "dram.model=detailed"
        )
    yield from _gemm()
    yield from _memory()
    yield from _emission()


def _help() -> Iterator[Row]:
    cost = best_of(5, "--help")
    yield Row("help", "npusim --help", f"{cost.cpu_s:.3f} CPU s", "0.1 s")


def _run(what: str, aim: str, folder: str, *more: str, model: str = "llama_block") -> Iterator[Row]:
    asked = ("--hw", "npu_a", "--model", model, *more)
    cost = best_of(3, "run", *asked, "--out", folder)
    command = " ".join(("npusim run", *asked))
    measured = f"{cost.cpu_s:.1f} CPU s, {cost.peak_bytes / 2**30:.2f} GiB"
    yield Row(f"{model}, {what}", command, measured, aim)


def _gemm() -> Iterator[Row]:
    plan = "experiments/bench/gemm_2048.py"
    sizes = {"m": "2048", "n": "2048", "k": "2048"}
    request = Request("matmul", sizes=sizes, plan=str(HERE / "gemm_2048.py"))
    for model, aim in (("run", "5 M, 80 M"), ("burst", "0.4 M, 8 M"), ("detailed", "")):
        found = speed(replace(request, hw_set=(f"dram.model={model}",)))
        if model == "run":
            yield Row(
                "GEMM 2048^3, cycles over the floor",
                f"npusim run --model matmul --set m=2048 n=2048 k=2048 --timing-only --plan {plan}",
                f"{found.over_floor:.3f} ({found.cycles:,} cycles)",
                "1.2",
            )
        yield Row(
            f"GEMM 2048^3, speed of the engine with `{model}`",
            "python experiments/bench/run.py (engine.speed: costs, walks, events and timeline "
            "alone)",
            f"{found.cycles_per_cpu_s / 1e6:.2f} M cycles, "
            f"{found.bursts / found.cpu_s / 1e6:.1f} M bursts, "
            f"{found.runs / found.cpu_s / 1e6:.2f} M runs, "
            f"{found.dram_bytes / found.cpu_s / 1e9:.2f} GB per CPU s "
            f"({found.cycles:,} cycles, {found.bursts:,} bursts, {found.runs:,} runs, "
            f"{found.dram_bytes / 1e6:.1f} MB)",
            aim,
        )


def _memory() -> Iterator[Row]:
    for model, aim in (("bound", "80 M"), ("run", "80 M"), ("burst", "8 M")):
        found = rates(model)
        listed = ", ".join(f"{r.pattern} {r.bursts_per_cpu_s / 1e6:.0f} M" for r in found)
        yield Row(
            f"DRAM model {model}, bursts per CPU s in requests of npu_a",
            "python experiments/bench/run.py (memory.rates)",
            f"{listed} ({found[0].bursts} bursts each)",
            aim,
        )


def _emission() -> Iterator[Row]:
    cases = [
        ("GEMM 4096^3 in 128^3 tiles", "matmul", "4096", str(HERE / "gemm_small_tiles.py")),
        ("llama_block, plan llama_ops", "llama_block", "", "llama_ops"),
    ]
    for what, model, size, plan in cases:
        sizes = dict.fromkeys(("m", "n", "k"), size) if size else {}
        found = emission(model, sizes, plan)
        yield Row(
            f"emission with edges, {what}",
            f"python experiments/bench/run.py (emission.emission, plan {Path(plan).stem})",
            f"{found.us:.2f} us an instruction ({found.instructions} instructions)",
            "2 us",
        )


def table(found: list[Row]) -> str:
    """The measurements as Markdown."""
    lines = ["| what | measured | at most / at least |", "|---|---|---|"]
    lines += [f"| {row.what} | {row.measured} | {row.aim} |" for row in found]
    lines += ["", "Commands:", "", *(f"- {row.what}: `{row.command}`" for row in found)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table row by row; with --write, keep it."""
    found = []
    for row in rows():
        print(f"{row.what}: {row.measured} (aim {row.aim})", flush=True)
        found.append(row)
    if "--write" in sys.argv[1:]:
        head = (
            "# Cost of npusim, measured\n\n"
            f"npusim {__version__}, Python {platform.python_version()}, {platform.machine()}, "
            "by `python experiments/bench/run.py --write`. CPU seconds are user plus system of "
            "the whole process with a warm compilation cache; the cheapest of several runs, since "
            "other load only ever adds.\n\n"
        )
        (HERE / "results.md").write_text(head + table(found))


if __name__ == "__main__":
    main()
