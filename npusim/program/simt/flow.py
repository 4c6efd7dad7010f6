"""The flow of a warp program: where paths meet again, and which registers are in use at once."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import numpy.typing as npt

from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Kind, Op

Rows = npt.NDArray[np.int32]


def successors(rows: Rows) -> list[tuple[int, ...]]:
    """Where each instruction may go on; the number of instructions stands for the end."""
    end = len(rows)
    found: list[tuple[int, ...]] = []
    for pc, row in enumerate(rows.tolist()):
        if row[Column.OP] == Op.EXIT:
            found.append((end,))
        elif row[Column.OP] == Op.JUMP:
            found.append((row[Column.X],))
        elif row[Column.OP] == Op.BRANCH:
            found.append((pc + 1, row[Column.X]))
        else:
            found.append((pc + 1,))
    return found


def meeting_places(rows: Rows) -> list[int]:
    """The immediate post-dominator of each instruction: the first that all paths from it reach.

    By intersecting paths to the end until nothing changes (Cooper, Harvey and Kennedy, "A Simple,
    Fast Dominance Algorithm", 2001). What never reaches the end meets there.
    """
    end = len(rows)
    after = successors(rows)
    order = _from_the_end(after, end)
    place = {node: number for number, node in enumerate(order)}
    meet = [-1] * end + [end]
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            found = -1
            for following in after[node]:
                if following == end or meet[following] >= 0:
                    found = following if found < 0 else _shared(meet, place, found, following)
            if found >= 0 and meet[node] != found:
                meet[node] = found
                changed = True
    return [end if m < 0 else m for m in meet[:end]]


def _shared(meet: Sequence[int], place: dict[int, int], a: int, b: int) -> int:
    while a != b:
        while place[a] > place[b]:
            a = meet[a]
        while place[b] > place[a]:
            b = meet[b]
    return a


def _from_the_end(after: Sequence[Sequence[int]], end: int) -> list[int]:
    """Instructions from which the end is reached, each behind all but loops that follow it."""
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for pc, following in enumerate(after):
        for one in following:
            before[one].append(pc)
    seen, order, stack = {end}, [], [(end, iter(before[end]))]
    while stack:
        node, rest = stack[-1]
        for one in rest:
            if one not in seen:
                seen.add(one)
                stack.append((one, iter(before[one])))
                break
        else:
            order.append(node)
            stack.pop()
    return order[::-1]


def uses(row: Sequence[int]) -> tuple[list[int], list[int]]:
    """Registers that an instruction reads and writes."""
    op, elements = row[Column.OP], row[Column.Y]
    read = [row[Column.A], row[Column.B], row[Column.C]]
    if op == Op.STORE:
        read = [row[Column.A], *range(row[Column.B], row[Column.B] + elements)]
    written = [row[Column.D]]
    if op == Op.LOAD:
        written = list(range(row[Column.D], row[Column.D] + elements))
    return [r for r in read if r >= 0], [r for r in written if r >= 0]


def registers_alive(rows: Rows, kinds: Sequence[Kind], presets: Set[int]) -> int:
    """The most 32-bit registers whose values are still needed at one place; int64 takes two.

    Presets lie in a constant bank.

    What a compiler would need at least without computing anything twice.
    """
    table = rows.tolist()
    after, end = successors(rows), len(rows)
    alive: list[set[int]] = [set() for _ in range(end + 1)]
    changed = True
    while changed:
        changed = False
        for pc in range(end - 1, -1, -1):
            read, written = uses(table[pc])
            out = set().union(*(alive[one] for one in after[pc]))
            found = (out - set(written)) | set(read)
            if found != alive[pc]:
                alive[pc] = found
                changed = True
    weight = [2 if kind == Kind.INT64 else 1 for kind in kinds]
    return max((sum(weight[r] for r in one - presets) for one in alive), default=0)
