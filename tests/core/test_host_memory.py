"""What a computer has, and what asks for more of it."""

from __future__ import annotations

import os

import pytest

from npusim.core import host_memory
from npusim.core.errors import InputError


def test_a_container_has_what_it_was_granted(tmp_path, monkeypatch):
    granted = tmp_path / "memory.max"
    monkeypatch.setattr(host_memory, "_GRANTED", granted)
    present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert host_memory.available_bytes() == present  # no such file
    granted.write_text("max\n")
    assert host_memory.available_bytes() == present
    granted.write_text("1048576\n")
    assert host_memory.available_bytes() == 1 << 20


def test_more_than_there_is_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(host_memory, "available_bytes", lambda: 1 << 30)
    host_memory.require(1 << 30, "a table")
    with pytest.raises(InputError) as error:
        host_memory.require((1 << 30) + (1 << 29), "a table", "a smaller one")
    assert str(error.value) == (
        "a table needs 1.5 GiB of memory or more, this computer has 1 GiB\n  a smaller one"
    )
