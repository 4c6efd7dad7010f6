"""The commands that a newcomer copies, and the one that CI runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CI = CHECKOUT / ".ci" / "run"


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_set_up_is_one_line_each_and_makes_its_environment():
    run, test = commands()[:2]
    for command in (run, test):
        assert command.startswith("python3.11 -m venv .venv && .venv/bin/python -m pip install")
    assert run.endswith(".venv/bin/npusim run --hw configs/npu_a.yaml --model llama_block")
    assert test.endswith(".venv/bin/python -m pytest -q -n auto")


def test_ci_runs_the_command_of_the_readme():
    assert os.access(CI, os.X_OK)
    subprocess.run(["bash", "-n", str(CI)], check=True)
    (line,) = [line for line in CI.read_text().splitlines() if line.startswith("test_command=")]
    picked = subprocess.run(
        ["bash", "-c", f'{line}; echo "$test_command"'],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert picked.stdout.strip() == commands()[1]
