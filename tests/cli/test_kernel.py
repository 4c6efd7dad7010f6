"""The verb `kernel`."""

from __future__ import annotations

import json

import pytest

from npusim.cli.main import main

FAULTY = """
import numpy as np
from npusim import simt

@simt.kernel
def swap(x):
    s = simt.shared(64, simt.float32)
    t = simt.thread.x
    s[t] = x[t]
    x[t] = s[63 - t]

@swap.example
def _(rng):
    x = np.arange(64, dtype=np.float32)
    return simt.Example(1, 64, (x,), lambda x: {"x": x[::-1]})
"""


def test_the_annotated_source(capsys, tmp_path):
    assert main(["kernel", "transpose", "--set", "pad=0", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "67,584 wavefronts of shared memory, 63,488 beyond the ideal" in said
    assert "out[column + j, row + x] = tile[x, j]" in said
    assert "checks: nothing found" in said and "agrees with it" in said


def test_a_fault_ends_with_1_and_its_line(capsys, tmp_path):
    file = tmp_path / "faulty.py"
    file.write_text(FAULTY)
    assert main(["kernel", f"{file}:swap", "--out", str(tmp_path / "r")]) == 1
    said = capsys.readouterr().out
    assert f"fault: {file}:10: race: block 0 warp 1 lane 0 reads s[31]" in said
    assert "DIFFERS" in said


def test_the_document(capsys, tmp_path):
    assert main(["kernel", "reduce", "--json", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["kernel"] == "reduce"


@pytest.mark.parametrize("given", [["kernel"], ["kernel", "transpose", "--set", "pad=x"]])
def test_bad_input(capsys, given):
    assert main(given) == 2
    assert capsys.readouterr().err.startswith("error: ")
