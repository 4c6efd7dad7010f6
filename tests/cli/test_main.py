"""The command as a process: help, unknown words, pipes, interrupts, internal errors."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from npusim.core import errors

CHECKOUT = Path(__file__).resolve().parents[2]
SMALL = ("--model", "matmul", "--set", "m=64", "--set", "n=96", "--set", "k=128")

CODES = {
    errors.OK: "all went well",
    errors.CHECK_FAILED: "a check failed",
    errors.BAD_INPUT: "bad input",
    errors.ILLEGAL_PROGRAM: "the checker refused a program",
    errors.NO_PLAN: "nothing legal",
    errors.INTERNAL: "internal error",
    errors.INTERRUPTED: "interrupted",
}


@pytest.mark.parametrize(
    "verb",
    [(), ("run",), ("probe",), ("show",), ("show", "hw"), ("list",), ("export",), ("warmup",)],
)
def test_help_states_the_exit_codes(npusim, verb):
    done = npusim(*verb, "--help")
    assert (done.code, done.err) == (0, "")
    for code, meaning in CODES.items():
        assert re.search(rf"^  {code} +.*{meaning}", done.out, re.M)


def test_help_of_run_names_every_flag(npusim):
    out = npusim("run", "--help").out
    for flag in (
        "--hw", "--hw-set", "--model", "--set", "--plan", "--no-host", "--seed", "--input",
        "--out", "--json", "--timing-only", "--order", "--stop-after",
    ):  # fmt: skip
        assert f"{flag} " in out or f"{flag}\n" in out


def test_help_imports_nothing_heavy(run_python):
    code = """
import sys
from npusim.cli.main import main
main(["run", "--help"])
print()
heavy = {"numpy", "numba", "onnx", "pydantic", "rich", "yaml", "matplotlib", "ml_dtypes"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run_python(code).splitlines()[-1] == "[]"


def test_version(npusim):
    assert re.fullmatch(r"npusim \d+\.\d+\.\d+\n", npusim("--version").out)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ((), "error: a verb is missing\n  verbs: run, probe, kernel, show, list, export, warmup"),
        (("rnu",), "error: VERB: unknown 'rnu'\n  nearest: run"),
        (("run", "--modle", "mlp"), "error: npusim run has no flag --modle\n  nearest: --model"),
        (("run", "--mod", "mlp"), "error: npusim run has no flag --mod\n  nearest: "),
        (("run", "--jsn", "--sed=3"), "error: npusim run has no flag --sed\n  nearest: --seed"),
        (("run", "mlp"), "unexpected argument 'mlp'\n  try: npusim run --model mlp\n"),
        (("run", "own.yaml"), "unexpected argument 'own.yaml'\n  try: npusim run --hw own.yaml\n"),
        (("run", "zzzz"), "unexpected argument 'zzzz'\n  see npusim run --help\n"),
        (("show", "hw", "npu_a"), "argument 'npu_a'\n  try: npusim show hw --hw npu_a\n"),
        (
            ("show", "hw", "npu_b"),
            "error: npusim show hw: unexpected argument 'npu_b'\n"
            "  try: npusim show hw --hw npu_a\n  the catalogue has: gpu_a100_like, npu_a, ",
        ),
        (
            ("show", "hw", "zzzz"),
            "  see npusim show hw --help\n  the catalogue has: gpu_a",
        ),
        (("show", "model", "net.onnx"), "\n  try: npusim show model --model net.onnx\n"),
        (
            ("show", "npu_a"),
            "error: WHAT: unknown 'npu_a'\n  allowed: hw, model, plan, program, result\n"
            "  try: npusim show hw --hw npu_a\n",
        ),
        (("show", "llama_fuse"), "\n  try: npusim show plan --plan llama_fused\n"),
        (("run", "--seed"), "error: --seed: expected one argument"),
        (("list", "--all"), "error: npusim list has no flag --all"),
    ],
)
def test_unknown_words(npusim, argv, told):
    done = npusim(*argv)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_internal_error_is_one_line_and_a_saved_traceback(npusim, monkeypatch):
    monkeypatch.setattr("npusim.cli.listing.list_catalogue", lambda: 1 / 0)
    done = npusim("list")
    assert (done.code, done.out) == (70, "")
    (line,) = done.err.splitlines()
    found = re.fullmatch(
        r"internal error: ZeroDivisionError: division by zero "
        r"\((\S+:\d+); traceback in (\S+)\)",
        line,
    )
    with open(found[2]) as file:
        text = file.read()
    os.unlink(found[2])
    assert text.startswith("npusim list\nTraceback") and "ZeroDivisionError" in text


def test_memory_that_does_not_suffice_is_no_internal_error(npusim, monkeypatch):
    def ask() -> int:
        raise MemoryError("Unable to allocate 4.00 PiB for an array")

    monkeypatch.setattr("npusim.cli.listing.list_catalogue", ask)
    done = npusim("list")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[0] == (
        "error: the memory of this computer does not suffice: "
        "Unable to allocate 4.00 PiB for an array"
    )


def test_internal_error_prints_its_traceback_if_asked(npusim, monkeypatch):
    monkeypatch.setenv("NPUSIM_TRACEBACK", "1")
    monkeypatch.setattr("npusim.cli.listing.list_catalogue", lambda: 1 / 0)
    err = npusim("list").err
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("internal error: ZeroDivisionError")


def test_interrupt_is_exit_130(npusim, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("npusim.cli.run.run_model", interrupt)
    done = npusim("run", *SMALL)
    assert (done.code, done.out) == (130, "")
    assert done.err == "interrupted: nothing half-written is left\n"


WAITING = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
from npusim.api import execute, pipeline

def wait(*_):
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(60)

pipeline.execute = wait
from npusim.cli.main import entry
entry()
"""


def test_interrupted_process_leaves_no_results(process, tmp_path):
    running = process("run", *SMALL, code=WAITING)
    assert "waiting\n" in iter(running.stderr.readline, "")  # it may have compiled before
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert (running.returncode, out) == (130, "")
    assert err == "interrupted: nothing half-written is left\n"
    assert list(tmp_path.iterdir()) == []


def test_a_process_told_to_end_leaves_no_results(process, tmp_path):
    running = process("run", *SMALL, code=WAITING)
    assert "waiting\n" in iter(running.stderr.readline, "")
    running.send_signal(signal.SIGTERM)
    running.communicate()
    assert running.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_reader_that_goes_away_is_no_error(process):
    running = process("show", "hw")
    assert running.stdout.readline().startswith("npu_a:")
    running.stdout.close()
    assert running.wait() == 0
    assert running.stderr.read() == ""
    running.stderr.close()


def test_names_that_stdout_cannot_spell(tmp_path):
    """An ASCII terminal gets escapes, not an error."""
    model = tmp_path / "own.py"
    model.write_text(
        "from npusim import Graph, GraphBuilder\n"
        "def own() -> Graph:\n"
        "    g = GraphBuilder('own')\n"
        "    return g.build(g.add('Relu', g.input('x', (2, 2), 'fp32'), name='größe'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "npusim", "show", "model", "--model", str(model)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"gr\xf6\xdfe" in done.stdout


class Terminal:
    """A terminal of 90 columns; what a process writes to it is in `seen` when it is closed."""

    def __init__(self) -> None:
        self._leader, self.follower = pty.openpty()
        self._seen = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how Linux says that nobody writes any more
            while chunk := os.read(self._leader, 65536):
                self._seen += chunk

    def close(self) -> str:
        os.close(self.follower)
        self._reader.join()
        os.close(self._leader)
        return self._seen.decode().replace("\r", "")


def terminal_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "90", "TERM": "xterm"}


def test_a_terminal_gets_colour_and_a_table_that_fits(tmp_path):
    terminal = Terminal()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "npusim", "show", "hw"],
        stdout=terminal.follower,
        stderr=subprocess.PIPE,
        env=terminal_environment(),
    )
    seen = terminal.close()
    assert (done.returncode, done.stderr) == (0, b"")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    assert plain != seen
    rows = plain.split("\n")
    table = rows[next(n for n, row in enumerate(rows) if row.split()[:1] == ["field"]) :]
    assert max(len(row.rstrip()) for row in table) <= 90
    assert any("core.sram.banks" in row and " 32 " in row for row in table)


def test_stdout_that_takes_nothing(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-P", "-m", "npusim", "show", "hw"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert done.returncode == 2
    assert done.stderr == "error: stdout: cannot be written: No space left on device\n"
    closed = subprocess.run(
        ["bash", "-c", f"{' '.join(command)} >&-"], capture_output=True, text=True, env=environment
    )
    assert (closed.returncode, closed.stderr) == (0, "")


BROKEN = """
from npusim import Claim, Plan, kernel, on

@kernel("Relu", space={})
def broken(t, op, *, rows=16):
    X = op.X.axes("m n")
    return rows // (X.m.size - 64)

broken.claim(lambda op, hw, c: Claim(vector_cycles=1))
plan = Plan("broken", steps=[on("elementwise").use(broken())])
"""


def test_an_exception_out_of_a_file_of_the_users_points_into_it(npusim, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    model = ("--model", "elementwise", "--set", "op=Relu", "--set", "rows=64")
    done = npusim("run", *model, "--plan", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f'error: {path}:7: step 1, on("elementwise"): elementwise (Relu), kernel broken: '
        "ZeroDivisionError: integer division or modulo by zero",
        "        return rows // (X.m.size - 64)",
    ]


BAR = """
from npusim.cli import progress
progress.DELAY_S = 0.0
from npusim.cli.main import entry
entry()
"""


def test_progress_is_shown_on_a_terminal_and_the_json_stays_pure(tmp_path):
    terminal = Terminal()
    done = subprocess.run(
        [sys.executable, "-P", "-c", BAR, "run", *SMALL, "--json"],
        stdout=subprocess.PIPE,
        stderr=terminal.follower,
        text=True,
        cwd=tmp_path,
        env=terminal_environment(),
    )
    seen = terminal.close()
    assert done.returncode == 0
    assert json.loads(done.stdout)["model"] == "matmul"
    assert any(stage in seen for stage in ("load", "plan", "execute", "time"))
