"""What the fast analyses should find, the slow way: sets of bytes and transitive closures."""

from __future__ import annotations

from itertools import product

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.program.accesses import accesses
from npusim.program.kinds import Space, Unit
from npusim.program.program import Program

READ, WRITE, SHOW = 0, 1, 2


def region_bytes(program: Program, region: int) -> frozenset[int]:
    """Byte offsets of a region in its buffer."""
    regions = program.regions
    item = dtype(names()[regions.dtype[region]]).itemsize
    sizes, strides = regions.sizes[region].tolist(), regions.strides[region].tolist()
    start = int(regions.offset[region])
    found = set()
    for position in product(*(range(n) for n in sizes)):
        at = start + sum(p * s for p, s in zip(position, strides, strict=True))
        found.update(range(at, at + item))
    return frozenset(found)


def places(program: Program, region: int) -> frozenset[tuple[int, int, int]]:
    """(memory, core, address) of every byte of a region."""
    buffer = int(program.regions.buffer[region])
    space, core, base = (
        int(column[buffer])
        for column in (program.buffers.space, program.buffers.core, program.buffers.offset)
    )
    return frozenset((space, core, base + at) for at in region_bytes(program, region))


def all_accesses(program: Program) -> list[tuple[int, int, int]]:
    """(instruction, region, how), shown tiles behind the writes of their instruction."""
    table = accesses(program)
    found = []
    for i in range(len(program)):
        for a in range(int(table.ptr[i]), int(table.ptr[i + 1])):
            found.append((i, int(table.region[a]), int(table.write[a])))
        for after, source in zip(program.holds.after, program.holds.source, strict=True):
            if after == i:
                found.append((i, int(source), SHOW))
    return found


def happens_before(program: Program) -> np.ndarray:
    """[n, n]: instruction i has completed before j starts."""
    count = len(program)
    before = np.zeros((count, count), np.bool_)
    for j in range(count):
        before[program.edges.of(j), j] = True
    stream = program.instructions.stream
    ahead = (stream[:, None] == stream[None, :]) & (
        np.arange(count)[:, None] < np.arange(count)[None, :]
    )
    dma = np.array([program.streams[s].unit is Unit.DMA for s in stream])
    before |= ahead & ~dma[:, None]
    queue = (ahead | np.eye(count, dtype=np.bool_)).astype(np.float32)
    while True:
        grown = before | (queue @ before.astype(np.float32) @ queue > 0)
        steps = grown.astype(np.float32)
        grown |= steps @ steps > 0
        if (grown == before).all():
            return before
        before = grown


def ordered(program: Program, before: np.ndarray, x: tuple, y: tuple) -> bool:
    """Whether two accesses (instruction, region, how) have an order."""
    (i, _, how_i), (j, _, how_j) = x, y
    if before[i, j] or before[j, i]:
        return True
    same = program.instructions.stream[i] == program.instructions.stream[j]
    return bool(same and ((how_i == SHOW and j < i) or (how_j == SHOW and i < j)))


def races(program: Program, order: list[int]) -> dict[tuple[int, int, int], dict[int, set]]:
    """Per access, the instructions ahead of it in `order` that it races with, and the bytes."""
    before = happens_before(program)
    rank = {i: n for n, i in enumerate(order)}
    listed = all_accesses(program)
    held = [
        set() if _tapped(program, region) else places(program, region) for _, region, _ in listed
    ]
    found: dict[tuple[int, int, int], dict[int, set]] = {}
    for x, mine in zip(listed, held, strict=True):
        for y, theirs in zip(listed, held, strict=True):
            if WRITE not in (x[2], y[2]) or not mine & theirs:
                continue
            if x[0] == y[0]:
                stream = program.streams[program.instructions.stream[x[0]]]
                if not (stream.unit is Unit.DMA and (y[2], x[2]) == (READ, WRITE)):
                    continue
            elif rank[y[0]] > rank[x[0]] or ordered(program, before, x, y):
                continue
            found.setdefault(x, {}).setdefault(y[0], set()).update(mine & theirs)
    return found


def valueless(program: Program, order: list[int]) -> dict[tuple[int, int, int], int]:
    """Per access, its bytes that its buffer has not written last and that race with nothing."""
    racing = races(program, order)
    owner: dict[tuple[int, int, int], int] = {}
    for name in program.initial:
        region = program.tensors[name]
        owner |= dict.fromkeys(places(program, region), int(program.regions.buffer[region]))
    listed = all_accesses(program)
    found = {}
    for i in order:
        for access in (a for a in listed if a[0] == i):
            _, region, how = access
            buffer = int(program.regions.buffer[region])
            if _tapped(program, region):
                continue
            bytes_of = places(program, region)
            if how == WRITE:
                owner |= dict.fromkeys(bytes_of, buffer)
                continue
            raced = set().union(*racing.get(access, {}).values())
            missing = sum(owner.get(at, -1) != buffer for at in bytes_of - raced)
            if missing:
                found[access] = missing
    return found


def _tapped(program: Program, region: int) -> bool:
    return bool(program.buffers.space[program.regions.buffer[region]] == Space.TAP)


def run(program: Program, depth: int) -> list[int]:
    """Instructions in an order in which they complete, handing out and completing one by one."""
    stream = program.instructions.stream.tolist()
    core = [program.streams[s].core for s in stream]
    done: list[int] = []
    given = {i for i in range(len(program)) if core[i] < 0}
    while True:
        before = len(done), len(given)
        for c in range(program.cores):
            for i in (i for i in range(len(program)) if core[i] == c and i not in given):
                inside = sum(stream[j] == stream[i] and j not in done for j in given)
                if inside >= depth:
                    break
                given.add(i)
        for i in range(len(program)):
            ahead = any(stream[j] == stream[i] and j not in done for j in range(i))
            waits = any(j not in done for j in program.edges.of(i).tolist())
            if i in given and i not in done and not ahead and not waits:
                done.append(i)
        if (len(done), len(given)) == before:
            return done
