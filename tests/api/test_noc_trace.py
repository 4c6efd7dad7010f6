"""Transfers measured on a real network against ours, and what a bad trace is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from npusim.api.noc_trace import COLUMNS, read_traces, replay_traces
from npusim.core.catalog import folder
from npusim.core.errors import InputError
from npusim.hw.loader import load_machine
from npusim.machine.replay import MODELS
from npusim.measure.bands import models
from npusim.measure.noc_trace import mean_end_error, mean_error, measured_cycles
from npusim.report.noc_trace import load_picture, trace_parts
from npusim.report.text import plain

HEAD = ",".join(COLUMNS)
READ = "t,BRISC,0,1,1,2,1,4096,READ,5"
#: What a first-order estimator of the same network reaches on the transfers between cores.
PEER_TOTAL, PEER_ENDS = 0.034, 0.152


@pytest.fixture(scope="module")
def wormhole():
    return load_machine(folder("hwconfigs") / "wormhole_n150.yaml").machine


@pytest.fixture(scope="module")
def replays(wormhole, data: Path):
    measured = data / "silicon" / "tenstorrent"
    return replay_traces(
        wormhole, [str(measured / "noc_traces.csv.gz")], str(measured / "noc_golden.csv")
    )


def part(replays, dram):
    chosen = [r for r in replays if r.name.startswith("DRAM") == dram]
    assert len(chosen) == (17 if dram else 30)
    return chosen


def test_transfers_between_cores_against_silicon(replays):
    """Total below 5 % and ends below 15 % are asked for; a peer reaches 3.4 % and 15.2 %."""
    ours = part(replays, dram=False)
    assert mean_error(ours, "wormhole") < PEER_TOTAL
    assert mean_end_error(ours, "wormhole") < 0.10 < PEER_ENDS
    assert max(abs(r.error("wormhole")) for r in ours) < 0.11


def test_the_clock_model_against_silicon(wormhole, replays):
    """What programs are timed with, on the same transfers: totals hold, fairness does not."""
    ours = part(replays, dram=False)
    assert mean_error(ours, "clock") < 0.06
    assert 0.12 < mean_end_error(ours, "clock") < 0.19
    assert mean_error(ours, "idle") > 0.5, "without congestion nothing is explained"
    low, high = models(wormhole)["noc"].error_band
    assert all(low <= r.error("clock") <= high for r in replays)


def test_transfers_from_dram_against_silicon(replays):
    """Most of it is in the issue times that are given."""
    ours = part(replays, dram=True)
    assert mean_error(ours, "wormhole") < 0.025
    assert mean_end_error(ours, "wormhole") < 0.035


def test_totals_of_the_stamps_are_those_of_the_table(wormhole, replays, data):
    again = read_traces(wormhole, [str(data / "silicon" / "tenstorrent" / "noc_traces.csv.gz")])
    assert sum(len(trace.transfers) for trace in again) == 13184
    assert [measured_cycles(t) for t in again] == [r.measured_cycles for r in replays]


def test_no_link_carries_more_than_its_bandwidth(wormhole, replays):
    for replay in replays:
        most = replay.cycles["wormhole"] + 20
        assert replay.link_bytes.max() <= wormhole.noc.grid.link_bytes_per_cycle * most


def test_the_table_and_the_picture(wormhole, replays):
    lines = list(plain(trace_parts(wormhole, replays), 200))
    assert lines[0] == "47 traces on wormhole_n150, network model wormhole"
    assert sum("%" in line for line in lines) > 47
    picture = load_picture(wormhole, replays[0])
    assert picture == load_picture(wormhole, replays[0])
    assert "<svg" in picture


def test_a_trace_without_stamps_of_its_barriers_is_timed_and_not_compared(wormhole, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(f"{HEAD}\n{READ}\n")
    (replay,) = replay_traces(wormhole, [str(file)])
    assert replay.measured_cycles is None and replay.error("wormhole") is None
    assert replay.end_error("wormhole") is None
    # 50 to begin, 10 there, a hop back round of 10 x 9 in all, 10 back, 129 flits at 28.1 B/cycle.
    idle = 5 + 50 + 10 + 90 + 10 + 129 * 32 / 28.1
    for model in MODELS:
        assert replay.cycles[model] == pytest.approx(idle - 5, abs=3)
    list(plain(trace_parts(wormhole, [replay]), 200))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (READ.replace("READ", "REED"), "t.csv:3: unknown event 'REED'; nearest: READ; allowed: R"),
        (
            READ.replace(",5", ",soon"),
            "cycle must be a whole number from 0 to 1099511627776, found",
        ),
        (READ.replace("4096", "0"), "bytes must be a whole number from 1 to 1073741824, found '0'"),
        (READ.replace("BRISC,0", "BRISC,2"), "noc must be a whole number from 0 to 1, found '2'"),
        (READ.replace("0,1,1", "0,0,1"), "t.csv:3: x0 y1 (sx, sy) must be a core of the machine"),
        (READ.replace("2,1,4", "5,0,4"), "x5 y0 (dx, dy) must be a core or DRAM place"),
        ("t,BRISC,0,1,1,,,,READ_BARRIER_END,9", "a barrier of BRISC at x1 y1 ends and never began"),
        ("t,BRISC,0,1", "t.csv:3: must have 10 values"),
        (READ + ",x", "t.csv:3: must have 10 values"),
        ("u,BRISC,,1,1,,,,ZONE_BEGIN,0", "trace 'u' has no READ"),
    ],
)
def test_a_bad_line_is_told_with_its_place(wormhole, tmp_path, line, message):
    file = tmp_path / "t.csv"
    file.write_text(f"{HEAD}\n{READ}\n{line}\n")
    with pytest.raises(InputError) as error:
        read_traces(wormhole, [str(file)])
    assert message in str(error.value)


def test_a_bad_file_is_told(wormhole, npu, tmp_path):
    def told(name, content=None, machine=wormhole, golden=None):
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(InputError) as error:
            replay_traces(machine, [str(file)], golden and str(golden))
        return str(error.value)

    assert "missing.csv: No such file or directory" in told("missing.csv")
    assert "is neither UTF-8 text nor gzip" in told("a.csv", b"\xff\xfe\x00")
    assert "a.csv:1: the first line lacks the columns proc, noc" in told("a.csv", b"trace\n1\n")
    assert "a.gz:" in told("a.gz", gzip.compress(f"{HEAD}\n{READ}\n".encode())[:-9])
    assert "spoilt.gz:" in told("spoilt.gz", gzip.compress(b"x" * 999)[:12] + b"\0" * 20)
    good = f"{HEAD}\n{READ}\n".encode()
    assert "the network of npu_a is a crossbar" in told("b.csv", good, npu())
    golden = tmp_path / "golden.csv"
    golden.write_text("trace,golden_cycles\nt,0\n")
    assert "golden.csv:2: golden_cycles must be a whole number" in told(
        "b.csv", good, golden=golden
    )


def test_at_most_ten_bad_lines_are_told(wormhole, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("\n".join([HEAD, *["t,BRISC,0,1,1,2,1,-1,READ,5"] * 50]) + "\n")
    with pytest.raises(InputError) as error:
        read_traces(wormhole, [str(file)])
    assert len(error.value.problems) == 10
