"""One copy that brings a tile to several cores, as a kernel says it."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.errors import InputError
from npusim.machine.timing import time_program
from npusim.program.kinds import Kind


def arange(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def scaled_rows(stage, shares, *settings):
    """y = w x with w needed by every core: brought to all at once, or loaded by each."""
    s = stage(*settings)
    x, w = s.tensor("x", "m k", 8, 4096), s.tensor("w", "one k", 1, 4096)
    y = s.tensor("y", "m k", 8, 4096, initial=False)
    rows, factors = s.t.sram("fp32", 2, 4096), s.t.sram("fp32", 1, 4096)
    columns = slice(0, 4096)
    if shares:
        s.t.multicast(factors, w[slice(0, 1), columns], range(4))
    for _, m in s.t.deal(x.m.spans(2)):
        if not shares:
            s.t.load(factors, w[slice(0, 1), columns])
        tile = s.t.load(rows, x[m, columns])
        s.t.store(y[m, columns], s.t.vec(rows, tile * factors))
    return s


@pytest.mark.parametrize("shares", [True, False])
def test_every_core_has_it(stage, shares):
    values = {"x": arange(8, 4096), "w": arange(1, 4096)}
    for order in (None, 1, 2):
        done = scaled_rows(stage, shares).run(values, order)
        assert np.array_equal(done["y"], values["x"] * values["w"])


def test_it_is_read_once(stage):
    """Bursts of DRAM: w of 16 KiB once instead of four times."""
    bursts = []
    for shares in (True, False):
        s = scaled_rows(stage, shares)
        bursts.append(time_program(s.finish(), s.machine).dram_bursts)
    assert bursts[1] - bursts[0] == 3 * 16384 // 32


def test_its_slots_wait_for_their_readers(stage):
    """A second multicast into the same slots is behind the work that reads the first."""
    s = stage()
    w, y = s.tensor("w", "n k", 2, 256), s.tensor("y", "n k", 8, 256, initial=False)
    one, out = s.t.sram("fp32", 1, 256), s.t.sram("fp32", 1, 256)
    for n in range(2):
        s.t.multicast(one, w[slice(n, n + 1), slice(0, 256)], range(4))
        for core, _ in s.t.deal([0, 1, 2, 3]):
            row = 4 * n + core
            s.t.store(y[slice(row, row + 1), slice(0, 256)], s.t.vec(out, s.t.tile(one) * 2.0))
    values = arange(2, 256)
    done = s.run({"w": values}, order=3)
    assert np.array_equal(done["y"], 2 * np.repeat(values, 4, axis=0))
    program = done.program
    second = program.rows_of(Kind.COPY)[np.unique(program.multicasts.row)[1]]
    seen = time_program(program, s.machine)
    assert seen.start[second] >= seen.end[program.rows_of(Kind.VECTOR)[:4]].max()


@pytest.mark.parametrize(
    ("cores", "text"),
    [([], "multicast of w to no core"), ([0, 7], "core 7")],
)
def test_refusals(stage, cores, text):
    s = stage()
    w, room = s.tensor("w", "n k", 1, 256), s.t.sram("fp32", 1, 256)
    with pytest.raises(InputError, match=text):
        s.t.multicast(room, w.whole(), cores)
