"""The known answers about warps, by their names."""

from __future__ import annotations

import csv
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data" / "simt"


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def known(*starts):
    """Rows of cases.csv whose names begin so."""
    return [row for row in rows("cases.csv") if row["id"].startswith(starts)]


def answer(name):
    """What is expected of one case."""
    (row,) = (row for row in rows("cases.csv") if row["id"] == name)
    return row["expected"]
