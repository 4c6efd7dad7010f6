"""The timing engine's tables: flat int64 arrays with named columns.

Compiled functions pass a flat array for nothing, while a tuple of arrays costs a reference count
per array and call; hence a few wide tables instead of many narrow ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.program.kinds import RANK
from npusim.program.program import Ints

# Work: one row an instruction, what is known before the run.
(
    W_STREAM, W_KIND, W_ROW, W_USER, W_USER_END, W_FILL, W_BUSY, W_TAIL, W_STRETCH, W_LOAD_STRETCH,
    W_PATTERN, W_WIDTH,
) = range(12)  # fmt: skip

# Trace: one row an instruction, what happened, in ticks (STRETCH in cycles). END of a copy is the
# latest byte so far; FLIGHT counts its requests that are out, and one while more are to come.
(
    T_DISPATCHED, T_READY, T_START, T_FREE, T_END, T_STRETCH, T_REQUESTS, T_LEFT, T_SEGMENT,
    T_LANDED, T_FLIGHT, T_WIDTH,
) = range(12)  # fmt: skip

# Streams: one row a stream. AT is the first of RANK positions inside a descriptor.
(
    S_CORE, S_UNIT, S_MODE, S_BEGIN, S_HEAD, S_NEXT, S_END, S_FREE, S_WAITING, S_RING, S_OFFSET,
    S_FAR, S_NEAR, S_LATER, S_FINISH, S_WANTS,
    S_QUEUE, S_AT,
) = range(18)  # fmt: skip
S_WIDTH = S_AT + RANK

# Cores: one row a core. Of the matrix, then of the vector unit: what it asks of the banks and until
# when, and the cycles / UNIT that it has lost there and not made up for yet.
(
    C_DISPATCH, C_NEXT, C_LAST, C_BLOCKED, C_PATTERN, C_PATTERN_2, C_UNTIL, C_UNTIL_2, C_DEBT,
    C_DEBT_2, C_ISSUE, C_WIDTH,
) = range(12)  # fmt: skip

# Segments of copies: which instruction, until when, why.
G_INSTRUCTION, G_UNTIL, G_WHY, G_WIDTH = range(4)

# Requests that wait for a controller's answer, a row for every slot of every stream's window. AT is
# when main memory was asked, FREE when it would have answered had it been idle; PIECES are still to
# come. WHY is the cause of the LONGEST wait so far, COPY the row of the walk table. Behind a cache:
# the LINE that is looked up next, the tick GO at which that may be, the request NEXT in a list.
(
    F_INSTRUCTION, F_ISSUE, F_WAITED, F_WHY, F_LONGEST, F_NEAR, F_SIZE, F_NODE, F_ADDRESS, F_WRITES,
    F_AT, F_FREE, F_PIECES, F_FINISH, F_BEHIND, F_COPY, F_LINE, F_GO, F_NEXT,
    F_WIDTH,
) = range(20)  # fmt: skip

#: Modes of a stream; HELD has its window full of requests whose end is not known yet.
IDLE, STARTING, ISSUING, HELD = range(4)
#: Which queue of a core issues next, if they do not just take turns.
FIXED_PRIORITY, OLDEST_FIRST = range(2)
#: A tick that is not known yet.
UNKNOWN = 1 << 48


class CoreParams(NamedTuple):
    """Costs inside a core, in ticks and counts; `ahead`: accesses that a stream may be ahead."""

    cycle: int
    outstanding: int
    request_bytes: int
    descriptor: int
    dispatch: int
    depth: int
    signal: int
    wait: int
    ahead: int
    queues: int


class Tables(NamedTuple):
    """Everything a run reads and writes; `order` lists instructions by stream, then by core."""

    work: Ints
    users: Ints
    order: Ints
    walk: Ints
    rows: Ints
    trace: Ints
    streams: Ints
    cores: Ints
    rings: Ints
    segments: Ints
    flying: Ints
    agenda: Ints
    done: Ints
    heap: Ints
    counts: Ints


#: Positions in Tables.counts.
EVENTS, SEGMENTS, COMPLETED, HEAP = range(4)


def empty_trace(count: int, dependencies: Ints) -> Ints:
    """Nothing has happened; `dependencies` counts what each instruction waits for."""
    trace = np.zeros((count, T_WIDTH), np.int64)
    trace[:, T_DISPATCHED] = -1
    trace[:, T_SEGMENT] = -1
    trace[:, T_LEFT] = dependencies
    return trace
