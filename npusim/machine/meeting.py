"""Operand streams that meet in the banks of a scratchpad, solved over their joint period (A48).

A *pattern* is what one instruction asks of the banks: one or two *groups* of streams. A group's
unit takes one access of each of its streams at a time, `slot` cycles apart at the earliest; a
stream has `depth` accesses in flight. In each cycle a port serves one word: of the group after the
one that it served last, if several want it, of that group's first stream that does, and of its
oldest access.

Patterns repeat and the rule is fixed, so sooner or later everything recurs; what happens between
two equal states happens for ever.
"""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit, jit_allocating, jit_inline
from npusim.machine.banks import BankParams, access
from npusim.program.program import Ints

# Members: streams of patterns; accesses FIRST to FIRST + PERIOD of the table of loads, over again.
M_FIRST, M_PERIOD, M_GROUP, M_WIDTH = range(4)
# Patterns: their members; slot and accesses needed, in all, of each of two groups; by what factor
# they slow down a copy that reads the scratchpad, and one that writes it; and what such a copy
# costs them, in cycles / UNIT per access of its own; the cycles / UNIT that they take alone, and
# whether that is exact.
(
    P_MEMBER, P_MEMBER_END, P_SLOT, P_SLOT_2, P_NEEDS, P_NEEDS_2, P_READING, P_WRITING,
    P_LOST_READING, P_LOST_WRITING, P_ALONE, P_EXACT, P_WIDTH,
) = range(13)  # fmt: skip

#: Cycles of search for a recurrence among streams that meet. States are remembered after 2^n - 1
#: cycles; without a recurrence the rates since the last of these are taken, half the search.
MOST_CYCLES = 8000
#: Factors are in parts of this.
UNIT = 1024


@jit_allocating
def walk(
    base: int, lanes: Ints, item: int, stride: int, count: int, port: int, p: BankParams, out: Ints
) -> None:
    """Loads of `count` accesses `stride` bytes apart into rows of `out`, ports from `port` on."""
    load = np.zeros(p.banks, np.int64)
    for k in range(count):
        access(base + k * stride, lanes, item, p, load)
        out[k, port : port + p.banks] = load


@jit_allocating
def meet(
    who: Ints, patterns: Ints, members: Ints, loads: Ints, depth: int, most: int, found: Ints
) -> bool:
    """Let patterns `who` run together for at most so many cycles; True if something recurred.

    found[0] are the cycles before it, found[1] those of one period; found[2 + g] and
    found[2 + 2 * who.size + g] the accesses that group g (two per pattern) has taken before and
    takes in a period.
    """
    groups = 2 * who.size
    stream, of_group, slot = _streams(who, patterns, members)
    width = loads.shape[1]
    state = np.zeros((stream.size, _LEFT + depth * width), np.int64)
    wait, taken = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    turn = np.zeros(width, np.int64)
    kept_state, kept_wait, kept_turn, kept_taken = (
        state.copy(),
        wait.copy(),
        turn.copy(),
        wait.copy(),
    )
    age, limit, began = 0, 1, 0
    for now in range(1, most + 1):
        _ask(stream, members, loads, depth, state)
        _serve(of_group, groups, depth, state, turn)
        _take(of_group, slot, width, state, wait, taken)
        age += 1
        again = _same(wait, kept_wait) and _same(turn, kept_turn)
        again = again and _same(state.ravel(), kept_state.ravel())
        if again or now == most:
            found[0], found[1] = began, now - began
            found[2 : 2 + groups] = kept_taken
            found[2 + groups : 2 + 2 * groups] = taken - kept_taken
            return bool(again)
        if age == limit:
            kept_state[:], kept_wait[:], kept_turn[:] = state, wait, turn
            kept_taken[:] = taken
            age, limit, began = 0, 2 * limit, now
    return False


# Columns of a stream's state: next access of its period, accesses in flight, and the words that
# these still need, from the oldest on, port by port.
_AT, _FLYING, _LEFT = range(3)


@jit_allocating
def _streams(who: Ints, patterns: Ints, members: Ints) -> tuple[Ints, Ints, Ints]:
    """Members of all patterns in order, the group of each, and the slot of each group."""
    count = 0
    for k in who:
        count += patterns[k, P_MEMBER_END] - patterns[k, P_MEMBER]
    stream, of_group = np.empty(count, np.int64), np.empty(count, np.int64)
    slot, at = np.empty(2 * who.size, np.int64), 0
    for n in range(who.size):
        k = who[n]
        slot[2 * n], slot[2 * n + 1] = patterns[k, P_SLOT], patterns[k, P_SLOT_2]
        for member in range(patterns[k, P_MEMBER], patterns[k, P_MEMBER_END]):
            stream[at], of_group[at] = member, 2 * n + members[member, M_GROUP]
            at += 1
    return stream, of_group, slot


@jit
def _ask(stream: Ints, members: Ints, loads: Ints, depth: int, state: Ints) -> None:
    """Fill up the accesses in flight."""
    width = loads.shape[1]
    for s in range(stream.size):
        first, period = members[stream[s], M_FIRST], members[stream[s], M_PERIOD]
        while state[s, _FLYING] < depth:
            begin = _LEFT + state[s, _FLYING] * width
            for port in range(width):
                state[s, begin + port] = loads[first + state[s, _AT], port]
            state[s, _AT] = (state[s, _AT] + 1) % period
            state[s, _FLYING] += 1


@jit
def _serve(of_group: Ints, groups: int, depth: int, state: Ints, turn: Ints) -> None:
    """One cycle of all ports; `turn` is the group that each port served last."""
    width = turn.size
    for port in range(width):
        best, chosen, column = groups, -1, 0
        for s in range(of_group.size):
            behind = (of_group[s] - turn[port] + groups - 1) % groups
            if behind >= best:
                continue
            for k in range(depth):
                if state[s, _LEFT + k * width + port] > 0:
                    best, chosen, column = behind, s, _LEFT + k * width + port
                    break
        if chosen >= 0:
            turn[port] = of_group[chosen]
            state[chosen, column] -= 1


@jit
def _take(of_group: Ints, slot: Ints, width: int, state: Ints, wait: Ints, taken: Ints) -> None:
    """Units take what lies ready: the oldest access of each stream of a group."""
    for g in range(slot.size):
        wait[g] = max(wait[g] - 1, 0)
        ready, streams = wait[g] == 0, 0
        for s in range(of_group.size):
            if of_group[s] == g and ready:
                streams += 1
                for port in range(width):
                    ready = ready and state[s, _LEFT + port] == 0
        if ready and streams > 0:
            taken[g] += 1
            wait[g] = slot[g]
            for s in range(of_group.size):
                if of_group[s] == g:
                    for column in range(_LEFT, state.shape[1] - width):
                        state[s, column] = state[s, column + width]
                    for column in range(state.shape[1] - width, state.shape[1]):
                        state[s, column] = 0
                    state[s, _FLYING] -= 1


@jit
def _same(a: Ints, b: Ints) -> bool:
    for k in range(a.size):  # noqa: SIM110 - compiled
        if a[k] != b[k]:
            return False
    return True


@jit
def cycles_of(n: int, pattern: int, patterns: Ints, found: Ints, size: int) -> int:
    """Cycles, in parts of UNIT, in which the n-th of `size` patterns that met gets all it needs."""
    longest = 0
    for g in range(2):
        needs = patterns[pattern, P_NEEDS + g]
        if needs > 0:
            got = max(found[2 + 2 * size + 2 * n + g], 1)
            longest = max(longest, UNIT * needs * found[1] // got)
    return longest


@jit_allocating
def run_alone(patterns: Ints, members: Ints, loads: Ints, depth: int) -> None:
    """Fill in what each pattern takes by itself."""
    found = np.zeros(6, np.int64)
    for k in range(patterns.shape[0]):
        who = np.array([k])
        exact = meet(who, patterns, members, loads, depth, MOST_CYCLES, found)
        patterns[k, P_EXACT] = 1 if exact else 0
        patterns[k, P_ALONE] = cycles_of(0, k, patterns, found, 1)


@jit_allocating
def beside(
    first: int, second: int, patterns: Ints, members: Ints, loads: Ints, depth: int, out: Ints
) -> bool:
    """Two patterns side by side against each by itself; whether all recurrences were found.

    out[0] and out[1] are the factors, in parts of UNIT, by which they slow each other down;
    out[2] the cycles, in parts of UNIT, that `first` loses per access of `second`.
    """
    found, who = np.zeros(10, np.int64), np.array([first, second])
    exact = meet(who, patterns, members, loads, depth, MOST_CYCLES, found)
    for n in range(2):
        alone = max(patterns[who[n], P_ALONE], 1)
        out[n] = max(UNIT * cycles_of(n, who[n], patterns, found, 2) // alone, UNIT)
        exact = exact and patterns[who[n], P_EXACT] == 1
    lost = found[1] * UNIT - found[1] * UNIT * UNIT // out[0]
    out[2] = lost // max(found[8], 1)
    return bool(exact)


# The memo of `beside`: pairs and their factors, each at a place that its pair decides. The last
# row counts what was solved, and what of it had no common period.
MEMO = 1 << 12


@jit_inline
def recalled(
    first: int, second: int, patterns: Ints, members: Ints, loads: Ints, memo: Ints, depth: int
) -> int:
    """The row of `memo` with (pair, factor of first, factor of second) for two patterns."""
    key = first * patterns.shape[0] + second + 1
    at = key % MEMO
    if memo[at, 0] != key:
        memo[at, 0] = key
        _remember(at, first, second, patterns, members, loads, memo, depth)
    return int(at)


@jit_allocating
def _remember(
    at: int, first: int, second: int, patterns: Ints, members: Ints, loads: Ints, memo: Ints,
    depth: int,
) -> None:  # fmt: skip
    exact = beside(first, second, patterns, members, loads, depth, memo[at, 1:])
    memo[MEMO, 0] += 1
    memo[MEMO, 1] += 0 if exact else 1


@jit_allocating
def beside_copies(
    copy: int, column: int, patterns: Ints, members: Ints, loads: Ints, depth: int, memo: Ints
) -> None:
    """Fill the columns of what each pattern and the copies of one direction do to each other."""
    out = np.zeros(3, np.int64)
    for k in range(patterns.shape[0]):
        exact = beside(k, copy, patterns, members, loads, depth, out)
        patterns[k, column], patterns[k, column + P_LOST_READING - P_READING] = out[1], out[2]
        memo[MEMO, 0] += 1
        memo[MEMO, 1] += 0 if exact else 1
