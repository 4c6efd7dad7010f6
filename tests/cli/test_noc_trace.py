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
    assert "links of t: pictures/noc_t.svg" in done.err
    assert (tmp_path / "pictures" / "noc_t.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--links", "t"), "--links: goes with --noc-trace only"),
        (("--golden", "t.csv"), "--golden: goes with --noc-trace only"),
        (("--noc-trace", "none.csv"), "none.csv: No such file or directory"),
        (("--noc-trace", "t.csv", "--links", "u"), "--links: no trace 'u' in the files\n  allowed"),
        (
            ("--noc-trace", "t.csv", "--golden", "t.csv"),
            "t.csv:1: the first line lacks the columns",
        ),
        (("--noc-trace", "t.csv", "--hw", "npu_a"), "the network of npu_a is a crossbar"),
    ],
)
def test_refusals(npusim, trace, flags, message):
    done = npusim("probe", "--hw", "wormhole_n150", *flags)
    assert done.code == 2
    assert message in done.err
