"""`npusim probe`."""

from __future__ import annotations

import json

import pytest

FAST = ("--hw", "npu_edge", "--only", "latency", "overheads")


def test_tables_and_folder(npusim, tmp_path):
    done = npusim("probe", *FAST)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "npu_edge measured by 2 groups of programs"
    assert "  left out, shared SRAM: npu_edge has none" in lines
    assert any(line.endswith("stated peaks that were measured reached:") for line in lines)
    (folder,) = [p for p in (tmp_path / "results/probe@npu_edge").iterdir() if p.name != "latest"]
    assert lines[-1] == f"results: results/probe@npu_edge/{folder.name}"


def test_json_is_the_document_and_nothing_else(npusim, tmp_path):
    done = npusim("probe", *FAST, "--json", "--out", "elsewhere")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["schema_version"] == 1
    stored = tmp_path / "elsewhere/probe@npu_edge/latest/probe.json"
    assert stored.read_text() == done.out


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("--only", "latncy"), "error: --only: unknown group 'latncy'\n  nearest: latency"),
        (("--hw", "npu_b"), "error: the catalogue has no machine 'npu_b'"),
        (("--hw-set", "cores=0"), "error: --hw-set:"),
        (("--model", "mlp"), "error: npusim probe has no flag --model"),
    ],
)
def test_bad_input(npusim, argv, told):
    done = npusim("probe", *argv)
    assert done.code == 2
    assert told in done.err


def test_a_file_in_the_way_is_told_before_anything_is_measured(npusim, file):
    done = npusim("probe", "--out", file("taken", ""))
    assert done.code == 2
    assert "error: --out: " in done.err and "taken is not a folder" in done.err
