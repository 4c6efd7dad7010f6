"""Orders in which a program's instructions may run one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim.program.program import Ints, Program


def emitted(program: Program) -> Iterator[int]:
    """The order in which the plan wrote them; it respects every derived edge."""
    return iter(range(len(program)))


def shuffled(program: Program, seed: int) -> Iterator[int]:
    """A random order that respects streams and edges: the next one is drawn among all ready."""
    draw = np.random.Generator(np.random.Philox(key=seed))
    streams = [list(map(int, rows)) for rows in stream_rows(program)]
    waiting = np.diff(program.edges.ptr)
    users = _users(program)
    position = [0] * len(streams)
    ready = [s for s, rows in enumerate(streams) if rows and waiting[rows[0]] == 0]
    parked = {rows[0]: s for s, rows in enumerate(streams) if rows and waiting[rows[0]] > 0}
    while ready:
        at = int(draw.integers(len(ready)))
        stream = ready[at]
        ready[at] = ready[-1]
        ready.pop()
        instruction = streams[stream][position[stream]]
        yield instruction
        position[stream] += 1
        for user in users[instruction]:
            waiting[user] -= 1
            if waiting[user] == 0 and user in parked:
                ready.append(parked.pop(user))
        if position[stream] < len(streams[stream]):
            following = streams[stream][position[stream]]
            if waiting[following] == 0:
                ready.append(stream)
            else:
                parked[following] = stream


def stream_rows(program: Program) -> list[Ints]:
    """The instructions of each stream, in order."""
    stream = program.instructions.stream
    order = np.argsort(stream, kind="stable")
    bounds = np.searchsorted(stream[order], np.arange(len(program.streams) + 1))
    return [order[low:high] for low, high in zip(bounds[:-1], bounds[1:], strict=True)]


def _users(program: Program) -> list[list[int]]:
    users: list[list[int]] = [[] for _ in range(len(program))]
    target = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))
    for source, user in zip(program.edges.source.tolist(), target.tolist(), strict=True):
        users[source].append(user)
    return users
