"""Runs every DRAM model on the traces of other simulators and writes the table of errors.

python experiments/dram/compare.py            # print it
python experiments/dram/compare.py --write    # and write npusim/machine/dram/compared.csv
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from npusim.machine.dram.compared import TABLE, Compared, recomputed

RUNS = Path(__file__).parents[2] / "tests" / "data" / "memory" / "dram_peer_runs.csv"
MODELS = ("bound", "run", "burst", "detailed")
#: By the name of their geometry: our table; banks per group, rows, bursts a row, tRFC there.
GEOMETRIES = {
    "HBM2_2000": ("HBM2_2000", 4, 1 << 16, 32, 350.0),
    "HBM3_6400": ("HBM3_6400", 4, 1 << 14, 32, 260.0),
    "LPDDR5_6400": ("LPDDR5_6400", 4, 1 << 15, 64, 210.0),
    "DDR5_4800": ("DDR5_4800", 4, 1 << 16, 64, 295.833),
    "GDDR6_14000": ("GDDR6_14000", 4, 1 << 14, 64, 120.571),
    "D3_HBM2": ("HBM2_2000_DRAMSIM3", 4, 1 << 15, 32, 260.0),
    "D3_DDR4_3200": ("DDR4_3200_DRAMSIM3", 4, 1 << 16, 128, 350.0),
}


def rows() -> Iterator[Compared]:
    """One row for each run of another simulator, with our clocks."""
    with RUNS.open(encoding="utf-8", newline="") as file:
        for run in csv.DictReader(file):
            standard, banks, count, columns, rfc_ns = GEOMETRIES[run["geom"]]
            row = Compared(
                peer=run["peer"].split()[0],
                standard=standard,
                trace=run["trace"],
                bursts=int(run["n"]),
                banks=banks,
                rows=count,
                columns=columns,
                rfc_ns=rfc_ns,
                peer_clocks=float(run["peer_cycles"]),
                clocks={},
            )
            yield replace(row, clocks={model: recomputed(row, model).clocks for model in MODELS})


def main() -> None:
    """Print the errors; with --write, keep the clocks."""
    lines = []
    for row in rows():
        errors = "".join(f"{100 * row.error(model):+8.1f} %" for model in MODELS)
        print(f"{row.peer:12}{row.standard:20}{row.trace:12}{errors}", flush=True)
        fixed = (row.peer, row.standard, row.trace, row.bursts, row.banks, row.rows, row.columns)
        clocks = (f"{value:.10g}" for value in (row.peer_clocks, *row.clocks.values()))
        lines.append([*fixed, f"{row.rfc_ns:g}", *clocks])
    if "--write" in sys.argv[1:]:
        head = ["peer", "standard", "trace", "bursts", "banks", "rows", "columns", "rfc_ns"]
        head += ["clocks_peer", *(f"clocks_{model}" for model in MODELS)]
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *lines])


if __name__ == "__main__":
    main()
