"""What the rows of a copy cost at the scratchpad that it fills or empties (A15, A49)."""

from __future__ import annotations

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.hw.machine import Machine
from npusim.machine.banks import BankParams, bank_params, layout_period
from npusim.machine.operands import Box, merged, vector_fetch
from npusim.program.kinds import RANK, Space
from npusim.program.program import Ints, Program


def moved(program: Program, machine: Machine, far: Ints, near: Ints, shape: Ints) -> Ints:
    """Bytes that the scratchpad's port moves for each 1024 useful ones, int64 per copy.

    `far` and `near` are the regions at the ends of the copies, `shape` the regions whose sizes
    they have. Rows go in the order of the far side; the port takes as many words per cycle as it
    is wide, from banks that may coincide, and a short row takes whole words.
    """
    regions, p = program.regions, bank_params(machine.core.sram)
    port_words = max(machine.core.dma.port_bytes_per_cycle // p.width, 1)
    found = np.full(len(near), 1024, np.int64)
    item = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype[near]]
    sizes, strides = _in_order(regions.sizes[shape], regions.strides[far], regions.strides[near])
    inside = (program.space_of(near) == Space.SRAM) & (machine.core.sram.ports != "unlimited")
    who = np.flatnonzero(inside & ~_contiguous(sizes, strides, item) & (sizes.min(axis=1) > 0))
    base = program.buffers.offset[regions.buffer[near]] + regions.offset[near]
    phase = base[who] % layout_period(p)
    keys = np.concatenate([phase[:, None], item[who, None], sizes[who], strides[who]], axis=1)
    unique, back = np.unique(keys, axis=0, return_inverse=True)
    costs = np.array([_rows(p, port_words, *_parts(key.tolist())) for key in unique], np.int64)
    found[who] = costs[back.reshape(-1)] if len(who) else 0
    return found


def _parts(key: list[int]) -> tuple[int, int, list[int], list[int]]:
    return key[0], key[1], key[2 : 2 + RANK], key[2 + RANK :]


def _in_order(sizes: Ints, far: Ints, near: Ints) -> tuple[Ints, Ints]:
    """Dimensions from the slowest to the fastest of the far side, as the port meets them."""
    order = np.argsort(-np.where(sizes > 1, far, np.iinfo(np.int64).max), axis=1, kind="stable")
    return np.take_along_axis(sizes, order, 1), np.take_along_axis(near, order, 1)


def _contiguous(
    sizes: Ints, strides: Ints, item: Ints
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether each box is one run of bytes."""
    inner = np.cumprod(
        np.concatenate([sizes[:, 1:], np.ones_like(sizes[:, :1])], axis=1)[:, ::-1], axis=1
    )
    wanted = inner[:, ::-1] * item[:, None]
    return np.asarray(((sizes <= 1) | (strides == wanted)).all(axis=1))


def _rows(
    p: BankParams, port_words: int, base: int, item: int, sizes: list[int], strides: list[int]
) -> int:
    """Bytes moved for 1024 useful ones by a box that is no single run."""
    outer, steps = merged(sizes, strides)
    run = item
    if outer and steps[-1] == item:
        run, outer, steps = outer[-1] * item, outer[:-1], steps[:-1]
    words = (base % p.width + run + p.width - 1) // p.width
    box = Box(base // p.width * p.width, 1, (outer, steps), ((words,), (p.width,)))
    fetch = vector_fetch(box, port_words, p)
    return -(-1024 * words * p.width * fetch.cycles // (run * fetch.accesses))
