"""Writes docs/validation.md: our models beside simulators and silicon, value by value.

python experiments/validation/write.py            # print it
python experiments/validation/write.py --write    # and write docs/validation.md
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median

from npusim.api.hardware import load_hardware
from npusim.api.noc_trace import replay_traces
from npusim.hw import closed_forms
from npusim.hw.matrix import Matrix
from npusim.machine.dram import compared
from npusim.measure.noc_trace import mean_end_error, mean_error
from npusim.validate import microbench

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
MODELS = ("bound", "run", "burst", "detailed")
DATAFLOWS = {"os": "output_stationary", "ws": "weight_stationary", "is": "input_stationary"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, its first column to the left and the others to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"|---{'|---:' * (len(head) - 1)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def percent(value: float | None) -> str:
    """A relative error, signed."""
    return "" if value is None else f"{100 * value:+.1f} %"


def _unsigned(value: float | None) -> str:
    """A mean of errors without their signs."""
    return "" if value is None else f"{100 * value:.1f} %"


def memory() -> Iterator[str]:
    """DRAM models beside two other simulators, on the same bursts."""
    runs = compared.table()
    yield "## DRAM"
    yield ""
    yield (
        f"Cycles on {len(runs)} traces of bursts against runs of Ramulator 2.1 and DRAMsim3 (one "
        "channel, all bursts there at once, queues as theirs). Mixes of reads and writes depend "
        "on a controller's policy more than on the device. Mean, median and largest error without "
        "its sign:"
    )
    yield ""
    groups = [(peer, reads) for peer in ("ramulator2", "DRAMsim3") for reads in (True, False)]
    head = ["model", *(f"{peer}, {'reads' if reads else 'mixes'}" for peer, reads in groups)]
    rows = []
    for model in MODELS:
        cells = [model]
        for peer, reads in groups:
            errors = [
                abs(run.error(model)) for run in runs if run.peer == peer and run.mixed != reads
            ]
            parts = (fmean(errors), median(errors), max(errors))
            cells.append(" / ".join(f"{100 * part:.1f}" for part in parts) + " %")
        rows.append(cells)
    yield from table(head, rows)
    yield ""
    head = ["trace", "bursts", "their clocks", *(f"{model}" for model in MODELS)]
    rows = [
        [
            f"{run.peer}, {run.standard}, {run.trace}", f"{run.bursts:,}",
            f"{run.peer_clocks:,.0f}", *(percent(run.error(model)) for model in MODELS),
        ]
        for run in runs
    ]  # fmt: skip
    yield from table(head, rows)


def network() -> Iterator[str]:
    """The replay of measured transfers on wormhole_n150."""
    folder, machine = DATA / "silicon" / "tenstorrent", load_hardware("wormhole_n150", ())[0]
    golden = str(folder / "noc_golden.csv")
    replays = replay_traces(machine.machine, [str(folder / "noc_traces.csv.gz")], golden)
    yield "## Network"
    yield ""
    yield (
        "Reads measured on a Tenstorrent Wormhole n150, replayed at their issue cycles "
        "(`npusim probe --hw wormhole_n150 --noc-trace`). Mean absolute errors of the totals and "
        "of the readers' ends; a published first-order estimator, tt-npe, reaches 3.4 % and "
        "15.2 % between cores, and 3.1 % from DRAM:"
    )
    yield ""
    rows = []
    for words, dram in (("between cores", False), ("from DRAM", True)):
        some = [r for r in replays if r.name.startswith("DRAM") == dram]
        for model in some[0].cycles:
            total, ends = mean_error(some, model), mean_end_error(some, model)
            rows.append(
                [f"{words}, {len(some)} traces, {model}", _unsigned(total), _unsigned(ends)]
            )
    yield from table(("traces and model", "totals", "readers' ends"), rows)
    yield ""
    models = tuple(replays[0].cycles)
    head = ["trace", "measured cycles", *models, "readers' ends, " + models[0]]
    rows = [
        [
            r.name, f"{r.measured_cycles:,}", *(percent(r.error(m)) for m in models),
            _unsigned(r.end_error(models[0])),
        ]
        for r in replays
    ]  # fmt: skip
    yield from table(head, rows)


#: Read by one core for each channel of a Wormhole n150, GB/s, by transfer rate: tt-metal,
#: tech_reports/Saturating_DRAM_bandwidth.
ONE_READER = {"12 GT/s": 267.0, "14 GT/s": 310.0}


def readers() -> Iterator[str]:
    """DRAM of a real chip read by a core for each channel."""
    yield "## DRAM behind a network"
    yield ""
    yield (
        "Wormhole n150, every channel read by the core nearest to it "
        "(`npusim probe --hw wormhole_n150 --only bandwidth`), GB/s; measured values from "
        "tt-metal's report on saturating DRAM. The card at 14 GT/s has a faster memory clock, and "
        "its memory ports are scaled alike:"
    )
    yield ""
    rows = []
    for rate, measured in ONE_READER.items():
        share = float(rate.split()[0]) / 12
        fields = [
            f"dram.transfers_per_s={rate}", f"dram.clock_hz={1.5 * share} GHz",
            f"noc.grid.memory_port_bytes_per_cycle={23.2 * share:.2f}",
        ]  # fmt: skip
        machine = load_hardware("wormhole_n150", fields)[0].machine
        found = {m.name: m.value for m in microbench.measured("bandwidth", machine).measurements}
        ours = found["DRAM read, the nearest core for each channel"] / 1e9
        rows.append([rate, f"{measured:.0f}", f"{ours:.1f}", percent(ours / measured - 1)])
    yield from table(("memory", "measured", "ours", "error"), rows)


def arrays() -> Iterator[str]:
    """Systolic closed forms beside SCALE-Sim and the cycles published for TPU v4 products."""
    yield "## Systolic arrays"
    yield ""
    with (DATA / "silicon" / "scalesim_cycles.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    off = [row for row in runs if _form(row) - 1 != _whole(row, "total") - _whole(row, "stall")]
    yield (
        f"SCALE-Sim 3.0.0, {len(runs)} runs, `fold_overlap: none`: total cycles less stalls are "
        f"the closed form less 1 in {len(runs) - len(off)} of {len(runs)}. Its stalls come from "
        "buffers and a memory of its own kind, and are printed, not matched:"
    )
    yield ""
    rows = [
        [
            f"{row['name']}, {row['array_h']}x{row['array_w']} {row['dataflow']}",
            f"{_form(row) - 1:,}", f"{_whole(row, 'total'):,}", f"{_whole(row, 'stall'):,}",
        ]
        for row in runs if _whole(row, "stall") > 0
    ]  # fmt: skip
    yield from table(("run that stalls", "our cycles", "its total", "its stalls"), rows)
    yield ""
    with (DATA / "silicon" / "tpu_v4_gemm_us.csv").open(encoding="utf-8", newline="") as file:
        products = list(csv.DictReader(file))
    exact = sum(_either(row) == int(row["scale_sim_cycles"]) for row in products)
    yield (
        f"Cycles published with {len(products)} products measured on TPU v4: the shorter of "
        f"weight- and input-stationary on one 128x128 array, exact in {exact} of {len(products)}."
    )


def _whole(row: dict[str, str], name: str) -> int:
    return int(float(row[f"{name}_cycles"]))


def _array(rows: int, columns: int, dataflow: str) -> Matrix:
    return Matrix(
        rows=rows, columns=columns, dataflow=DATAFLOWS[dataflow], fold_overlap="none",
        rates={"bf16": 1}, accumulate={"bf16": "fp32"},
    )  # fmt: skip


def _form(row: dict[str, str]) -> int:
    m, n, k = (int(float(row[name])) for name in "MNK")
    array = _array(int(row["array_h"]), int(row["array_w"]), row["dataflow"])
    return int(closed_forms.cycles(array, m, n, k, "bf16"))


def _either(row: dict[str, str]) -> int:
    m, n, k = (int(row[f"dim_{name}"]) for name in "mnk")
    return min(int(closed_forms.cycles(_array(128, 128, d), m, n, k, "bf16")) for d in ("ws", "is"))


def page() -> str:
    """The whole page."""
    lines = [
        "# Validation",
        "",
        "Our models beside other simulators and silicon, written by "
        "`python experiments/validation/write.py --write`; where the data come from says "
        "[tests/data/ORIGIN.md](../tests/data/ORIGIN.md). An error is (ours - theirs) / theirs.",
        "",
        *memory(), "", *network(), "", *readers(), "", *arrays(), "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Print the page, or write it."""
    text = page()
    if "--write" in sys.argv[1:]:
        (ROOT / "docs" / "validation.md").write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
