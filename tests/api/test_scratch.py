"""Scratch folders: gone after use, and after the end of a process that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from npusim.api.scratch import _prefix, remove_left, scratch_folder


@pytest.fixture(scope="module")
def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def made(parent: Path, name: str, *inside: str) -> Path:
    folder = parent / name
    folder.mkdir()
    for part in inside:
        (folder / part).mkdir()
    return folder


def test_it_is_there_inside_and_gone_after(tmp_path):
    with scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path and folder.name.startswith(f"{_prefix()}{os.getpid()}-")
        remove_left(tmp_path)
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("inside", [(), ("1a2b3c4d",), ("replaced",)])
def test_what_a_killed_process_left_is_removed(tmp_path, gone, inside):
    made(tmp_path, f"{_prefix()}{gone}-ab_c12", *inside)
    remove_left(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "{prefix}{alive}-abc",  # at work
        ".npusim-elsewhere-{gone}-abc",  # of a host whose processes are not seen from here
        "{prefix}{gone}",
        "{prefix}{gone}-abc.txt",
        ".1a2b3c4d.{gone}-abc",
        "1a2b3c4d",
    ],
)
def test_all_else_stays(tmp_path, gone, name):
    folder = made(tmp_path, name.format(prefix=_prefix(), gone=gone, alive=os.getppid()), "inside")
    remove_left(tmp_path)
    assert folder.is_dir()


def test_a_link_and_a_file_of_such_a_name_stay(tmp_path, gone):
    target = made(tmp_path, "target", "inside")
    (tmp_path / f"{_prefix()}{gone}-a").symlink_to(target)
    (tmp_path / f"{_prefix()}{gone}-b").write_text("")
    remove_left(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3 and (target / "inside").is_dir()


def test_old_results_whose_place_is_empty_stay(tmp_path, gone):
    """Killed between the two renames: the folder has the old results and the new ones."""
    folder = made(tmp_path, f"{_prefix()}{gone}-a", "replaced", "1a2b3c4d")
    remove_left(tmp_path)
    assert folder.is_dir()
