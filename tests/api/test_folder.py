"""The results folder: whole or not there, the same bytes twice, `latest` beside it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from npusim.api import folder as folders
from npusim.api.folder import _point, _safe, check_writable, write_folder
from npusim.api.pipeline import run
from npusim.api.scratch import scratch_folder
from npusim.api.stored import find_result, read_result
from npusim.core.errors import InputError
from npusim.hw.loader import load_machine

FILES = {"result.json", "layers.csv", "report.txt", "machine.yaml", "plan.py", "run.json"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_in_it(ask, tmp_path):
    made = run(ask())
    assert made.folder.parent == tmp_path / "results" / "matmul@npu_a"
    assert set(contents(made.folder)) == FILES
    assert (made.folder / "result.json").read_text() == made.result.to_json()
    assert load_machine(made.folder / "machine.yaml").machine == made.machine
    rows = list(csv.DictReader((made.folder / "layers.csv").read_text().splitlines()))
    assert [row["name"] for row in rows] == [layer.name for layer in made.result.layers]
    assert float(rows[0]["cycles"]) == made.result.layers[0].cycles
    assert rows[0]["validated"] == "true"
    report = (made.folder / "report.txt").read_text()
    assert all(text in report for text in made.result.assumptions)


def test_run_json_alone_differs_between_two_runs(ask):
    first = contents(run(ask()).folder)
    second = run(ask(), command=["npusim", "run"])
    again = contents(second.folder)
    assert first.pop("run.json") != again.pop("run.json")
    assert first == again
    told = json.loads((second.folder / "run.json").read_text())
    assert told["command"] == ["npusim", "run"]
    stages = ["load", "plan", "check the program", "execute", "compare", "time", "measure"]
    assert [name for name in told["stages"] if name != "write"] == stages


def test_latest_leads_to_the_last_run(ask):
    first = run(ask())
    latest = first.folder.parent / "latest"
    assert os.readlink(latest) == first.folder.name
    second = run(ask(seed=1))
    assert os.readlink(latest) == second.folder.name
    assert sorted(path.name for path in latest.parent.iterdir()) == sorted(
        ["latest", first.folder.name, second.folder.name]
    )
    assert read_result(latest) == second.result
    assert read_result(latest.parent) == second.result
    assert find_result(first.folder.parents[1]) == second.folder


def test_latest_is_a_file_where_links_cannot_be(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "symlink", refuse)
    _point(tmp_path / "latest", "12345678", tmp_path / "scratch")
    assert (tmp_path / "latest").read_text() == "12345678\n"


def test_a_folder_in_the_way_is_replaced(ask):
    made = run(ask())
    (made.folder / "stray").write_text("from before")
    assert set(contents(run(ask()).folder)) == FILES


@pytest.mark.parametrize("moment", ["_swap", "layers_csv", "_point"])
def test_an_error_leaves_what_was_there(ask, monkeypatch, moment):
    made = run(ask())
    before = contents(made.folder)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders, moment, fail)
    with pytest.raises(InputError, match="cannot write results: No space left on device"):
        write_folder(made, made.result, ())
    left = {path.name for path in made.folder.parent.iterdir()}
    assert left == {"latest", made.folder.name}
    if moment != "_point":
        assert contents(made.folder) == before


def test_an_interrupt_leaves_nothing(ask, monkeypatch, tmp_path):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "dump_yaml", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(ask())
    assert list((tmp_path / "results" / "matmul@npu_a").iterdir()) == []


KILLED = """
import sys, time
from npusim.api import folder
from npusim.api.pipeline import run
from npusim.api.request import Request

def wait(machine):
    open(sys.argv[2], "w").close()
    time.sleep(60)

folder.dump_yaml = wait
run(Request(model="matmul", sizes={"m": "64", "n": "96", "k": "128"}, out=sys.argv[1]))
"""


def test_killed_while_writing_nothing_has_its_final_name(tmp_path):
    out, mark = tmp_path / "results", tmp_path / "mark"
    checkout = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, out, mark], env={**os.environ, "PYTHONPATH": str(checkout)}
    )
    try:
        until = time.monotonic() + 600
        while not mark.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert mark.exists()
    visible = [p for p in out.rglob("*") if not any(part.startswith(".") for part in p.parts)]
    assert visible == [out / "matmul@npu_a"]
    (left,) = (out / "matmul@npu_a").iterdir()
    assert left.name.startswith(".npusim-") and f"-{process.pid}-" in left.name
    with scratch_folder(left.parent) as fresh:
        assert list(left.parent.iterdir()) == [fresh]
    assert list(left.parent.iterdir()) == []


def test_places_that_cannot_be_written_are_refused_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--out: .*file is not a folder"):
        check_writable(str(tmp_path / "file" / "deeper"))
    with pytest.raises(InputError, match="File name too long"):
        check_writable(str(tmp_path / ("x" * 300)))
    check_writable(str(tmp_path / "not" / "yet" / "there"))
    assert not (tmp_path / "not").exists()


def test_names_that_are_no_folder_names():
    assert _safe("../a b/c:d") == "_a_b_c_d"
    assert _safe("...") == "unnamed"
    assert len(_safe("x" * 300)) == 80


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no result of schema version 1"),
        ('{"schema_version": 9}', "is no result of schema version 1: schema_version"),
    ],
)
def test_files_that_are_no_result(tmp_path, text, message):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_result(tmp_path)


def test_no_results_yet(tmp_path):
    with pytest.raises(InputError, match="no results here"):
        find_result(tmp_path)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_result(tmp_path / "x.json")
