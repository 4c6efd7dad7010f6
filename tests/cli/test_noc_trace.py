"""`npusim probe --noc-trace`: what it prints, draws and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HEAD = "trace,proc,noc,sx,sy,dx,dy,bytes,event,cycle"
LINES = (
    "t,NCRISC,0,1,1,2,1,4096,READ,0",
    "t,NCRISC,0,1,1,-1,-1,0,READ_BARRIER_START,20",
    "t,NCRISC,0,1,1,-1,-1,0,READ_BARRIER_END,300",
)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    file = tmp_path / "t.csv"
    file.write_text("\n".join((HEAD, *LINES)) + "\n")
    return str(file)


def test_the_table_has_a_row_per_trace_and_the_means(npusim, trace):
    done = npusim("probe", "--hw", "wormhole_n150", "--noc-trace", trace)
    assert done.code == 0
    row = next(line for line in done.out.splitlines() if line.startswith("t "))
    assert row.split()[:4] == ["t", "1", "4", "280"]
    assert "mean absolute error, ours: total" in done.out


def test_json_is_one_document(npusim, trace):
    done = npusim("probe", "--hw", "wormhole_n150", "--noc-trace", trace, trace, "--json")
    (replay,) = json.loads(done.out)
    assert replay["transfers"] == 2 and replay["measured_cycles"] == 280
    assert set(replay["models"]) == {"wormhole", "clock", "idle"}


def test_links_are_drawn(npusim, trace, tmp_path):
    done = npusim(
        "probe", "--hw", "wormhole_n150", "--noc-trace", trace, "--links", "t", "--out", "pictures"
    )
    folder = tmp_path / "pictures" / "noc@wormhole_n150" / "latest"
    assert done.out.splitlines()[-1].startswith("results: pictures/noc@wormhole_n150/")
    assert (folder / "links.svg").read_text().startswith("<?xml")


def test_the_results_lie_in_a_folder(npusim, trace, tmp_path):
    for _ in range(2):
        done = npusim("probe", "--hw", "wormhole_n150", "--noc-trace", trace, "--json")
    folder = tmp_path / "results" / "noc@wormhole_n150" / "latest"
    assert (folder / "traces.json").read_text() == done.out
    assert "mean absolute error, ours: total" in (folder / "report.txt").read_text()
    assert {f.name for f in folder.iterdir()} == {
        "traces.json", "report.txt", "machine.yaml", "run.json"
    }  # fmt: skip


def test_a_read_of_which_nothing_was_measured_takes_all_of_its_cycles(npusim, tmp_path):
    """Of the own tile: 70 cycles (tt-npe), and what 32 bytes pass through ports."""
    file = tmp_path / "own.csv"
    file.write_text(f"{HEAD}\nown,NCRISC,0,1,1,1,1,32,READ,0\n")
    done = npusim("probe", "--hw", "wormhole_n150", "--noc-trace", str(file), "--json")
    (replay,) = json.loads(done.out)
    assert replay["measured_cycles"] is None
    assert 70 <= replay["models"]["clock"]["cycles"] <= 75


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--links", "t"), "--links: goes with --noc-trace only"),
        (("--golden", "t.csv"), "--golden: goes with --noc-trace only"),
        (("--noc-trace", "empty.csv"), "empty.csv:1: holds no rows below its first line"),
        (("--noc-trace", "none.csv"), "none.csv: No such file or directory"),
        (("--noc-trace", "t.csv", "--links", "u"), "--links: no trace 'u' in the files\n  allowed"),
        (
            ("--noc-trace", "t.csv", "--golden", "t.csv"),
            "t.csv:1: the first line lacks the columns",
        ),
        (("--noc-trace", "t.csv", "--hw", "npu_a"), "the network of npu_a is a crossbar"),
    ],
)
def test_refusals(npusim, trace, tmp_path, flags, message):
    (tmp_path / "empty.csv").write_text(HEAD + "\n")
    done = npusim("probe", "--hw", "wormhole_n150", *flags)
    assert done.code == 2
    assert message in done.err
