"""Whether everything lies where the machine has room: streams, buffers, regions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from npusim.core.dtypes import names
from npusim.core.errors import Problem
from npusim.core.units import kib
from npusim.hw.machine import Machine
from npusim.program.accesses import Accesses
from npusim.program.footprints import DIMS, LOW, RUN, SIZE, STRIDE, boxes, itemsizes
from npusim.program.kinds import RANK, Space, Unit
from npusim.program.origin import describe
from npusim.program.program import Ints, Program
from npusim.program.wording import buffer_label, memory_text, shape_text

_SHARED_BY_ALL = (Space.DRAM, Space.SHARED, Space.TAP)


def problems(program: Program, machine: Machine, accesses: Accesses) -> list[Problem]:
    """Streams the machine lacks, buffers outside their memory, regions outside their buffer."""
    user = _first_users(program, accesses)
    return [
        *_streams(program, machine),
        *_homes(program, machine),
        *_capacities(program, machine),
        *_initial_values(program),
        *_regions(program, user),
    ]


def capacities(machine: Machine) -> dict[Space, int | None]:
    """Bytes of each memory (of one core's, where every core has one); None without a limit."""
    shared = machine.shared_sram.size_bytes if machine.shared_sram else 0
    return {
        Space.DRAM: machine.dram.size_bytes,
        Space.SHARED: shared,
        Space.SRAM: machine.core.sram.size_bytes,
        Space.ACC: machine.core.accumulators.size_bytes,
        Space.TAP: None,
    }


def _streams(program: Program, machine: Machine) -> Iterator[Problem]:
    cores, queues = machine.cores, machine.core.dma.queues
    if program.cores > cores:
        yield Problem(
            f"the program is for {program.cores} cores, {machine.name} has {machine.cores}"
        )
    used = np.bincount(program.instructions.stream, minlength=len(program.streams))
    for stream, count in zip(program.streams, used.tolist(), strict=True):
        if not count:
            continue
        if (stream.unit is Unit.HOST) != (stream.core < 0) or stream.core >= cores:
            yield Problem(f"stream {stream}: {machine.name} has cores 0 to {cores - 1}")
        elif stream.queue < 0 or stream.queue >= (queues if stream.unit is Unit.DMA else 1):
            yield Problem(f"stream {stream}: a core of {machine.name} has {queues} DMA queues")


def _homes(program: Program, machine: Machine) -> Iterator[Problem]:
    buffers = program.buffers
    common = np.isin(buffers.space, _SHARED_BY_ALL)
    absent = (buffers.core < 0) | (buffers.core >= machine.cores)
    wrong = np.where(common, buffers.core != -1, absent)
    for b in np.flatnonzero(wrong):
        name, memory = buffers.names[b], memory_text(int(buffers.space[b]), int(buffers.core[b]))
        allowed = "all cores share it" if common[b] else f"cores are 0 to {machine.cores - 1}"
        yield Problem(f"buffer {name} lies in {memory}: {allowed}")


def _capacities(program: Program, machine: Machine) -> Iterator[Problem]:
    buffers, limits = program.buffers, capacities(machine)
    for space, limit in limits.items():
        end = buffers.offset + buffers.size_bytes
        wrong = (buffers.offset < 0) | (buffers.size_bytes < 0)
        if limit is not None:
            wrong |= end > limit
        for b in np.flatnonzero(wrong & (buffers.space == space)):
            room = f"which has {kib(limit or 0)} ({limit or 0:,} bytes)"
            first = int(buffers.first_use[b])
            used = (f"first used by {describe(program, first)}",) if first >= 0 else ()
            yield Problem(
                f"buffer {buffers.names[b]} takes bytes {buffers.offset[b]:,} to {end[b]:,} of "
                f"{memory_text(space, int(buffers.core[b]))}, {room}",
                hints=used,
            )


def _initial_values(program: Program) -> Iterator[Problem]:
    """No byte can have two values before the first instruction."""
    buffers = program.buffers
    homes = {int(program.regions.buffer[program.tensors[name]]) for name in program.initial}
    mine = np.array(sorted(homes), np.int64)
    order = mine[np.lexsort((buffers.offset[mine], buffers.core[mine], buffers.space[mine]))]
    for a, b in pairwise(order.tolist()):
        same = (buffers.space[a], buffers.core[a]) == (buffers.space[b], buffers.core[b])
        if same and buffers.offset[b] < buffers.offset[a] + buffers.size_bytes[a]:
            place = memory_text(int(buffers.space[a]), int(buffers.core[a]))
            yield Problem(
                f"{buffers.names[a]} and {buffers.names[b]} both have values from the start, at "
                f"the same bytes of {place}"
            )


def _first_users(program: Program, accesses: Accesses) -> Ints:
    """The first instruction that touches each region, or -1."""
    user = np.full(len(program.regions), -1, np.int64)
    instruction = np.repeat(np.arange(len(program)), np.diff(accesses.ptr))
    user[accesses.region[::-1]] = instruction[::-1]
    return user


def _regions(program: Program, user: Ints) -> Iterator[Problem]:
    regions, buffers = program.regions, program.buffers
    everything = np.arange(len(regions))
    box = boxes(regions, everything, np.zeros(len(regions), np.int64))
    dims = np.arange(RANK)[None, :] < box[:, DIMS, None]
    size, stride = box[:, SIZE : SIZE + RANK], box[:, STRIDE : STRIDE + RANK]
    end = box[:, LOW] + box[:, RUN] + np.where(dims, (size - 1) * stride, 0).sum(axis=1)
    room = buffers.size_bytes[regions.buffer]
    item = itemsizes(regions)
    outside = (box[:, RUN] > 0) & ((box[:, LOW] < 0) | (end > room))
    steps = np.where(regions.sizes > 1, regions.strides, 0)
    odd = (regions.offset % item != 0) | (steps % item[:, None] != 0).any(axis=1)
    for r in np.flatnonzero(outside).tolist():
        text = f"reaches bytes {box[r, LOW]:,} to {end[r]:,} of a buffer of {room[r]:,}"
        yield _of_region(program, r, user, text)
    for r in np.flatnonzero((regions.sizes < 0).any(axis=1)).tolist():
        yield _of_region(program, r, user, f"has a negative size in {regions.sizes[r].tolist()}")
    for r in np.flatnonzero(odd).tolist():
        yield _of_region(program, r, user, f"begins or steps inside an element of {item[r]} bytes")
    for r in np.flatnonzero(regions.dtype != buffers.dtype[regions.buffer]).tolist():
        kind = names()[buffers.dtype[regions.buffer[r]]]
        yield _of_region(program, r, user, f"sees a buffer of {kind}")


def _of_region(program: Program, region: int, user: Ints, what: str) -> Problem:
    """A problem of a region and the instruction that uses it first."""
    label = buffer_label(program, int(program.regions.buffer[region]))
    kind = names()[program.regions.dtype[region]]
    first = int(user[region])
    used = (f"first used by {describe(program, first)}",) if first >= 0 else ()
    text = f"a {shape_text(program, region)} {kind} region of {label} {what}"
    return Problem(text, hints=used)
