"""Calls about lanes and memory: barriers, shuffles, votes, atomics, vectors, the grid."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from npusim.program.simt import expressions, memory, names
from npusim.program.simt import functions as f
from npusim.program.simt.context import Context
from npusim.program.simt.opcodes import (
    Atomic,
    Binary,
    Kind,
    Meeting,
    Op,
    Shuffle,
    Special,
    Vote,
)
from npusim.program.simt.operators import arithmetic, truth
from npusim.program.simt.values import ArrayRef, Known, Reg, Several, Value

Given = dict[str, Any]
#: Barriers of a block, as many as GPUs have.
_BARRIERS = 16


def _whole(c: Context, node: ast.Call, value: Value, what: str) -> int:
    """A number that must be known."""
    if not (isinstance(value, Known) and isinstance(value.value, int)):
        c.wrong(node, f"{what} must be known when the kernel is compiled")
    return value.value


def _array(c: Context, node: ast.Call, value: Value) -> ArrayRef:
    if not isinstance(value, ArrayRef):
        c.wrong(node, "the first argument must be an array")
    return value


def _at(c: Context, node: ast.Call, array: ArrayRef, index: Value) -> Reg:
    found = list(index.items) if isinstance(index, Several) else [index]
    return memory.element(c, node, array, found)


def _barrier(c: Context, node: ast.Call, given: Given) -> Value:
    number = _whole(c, node, given["number"], "a barrier's number")
    if not 0 <= number < _BARRIERS:
        c.wrong(node, f"barriers have the numbers 0 to {_BARRIERS - 1}, found {number}")
    threads = given["threads"]
    count = 0
    if not (isinstance(threads, Known) and threads.value is None):
        count = _whole(c, node, threads, "how many threads meet")
    c.code.emit(Op.BARRIER, x=Meeting.PLAIN, y=count, z=number)
    return Known(None)


def _asking(meeting: Meeting) -> Callable[[Context, ast.Call, Given], Value]:
    def emit(c: Context, node: ast.Call, given: Given) -> Value:
        asked = truth(c, node, given["predicate"])
        out = c.code.register(Kind.INT32 if meeting is Meeting.COUNT else Kind.BOOL)
        c.code.emit(Op.BARRIER, d=out.number, a=asked.number, x=meeting)
        return out

    return emit


def _warp_barrier(c: Context, node: ast.Call, given: Given) -> Value:
    c.code.emit(Op.WARP_BARRIER)
    return Known(None)


def _shuffling(which: Shuffle, by: str) -> Callable[[Context, ast.Call, Given], Value]:
    def emit(c: Context, node: ast.Call, given: Given) -> Value:
        value, distance = c.lane(node, given["value"]), c.lane(node, given[by])
        if distance.kind == Kind.FP32:
            c.wrong(node, "a lane is a whole number, found fp32", "convert it with int(...)")
        width = given["width"]
        group = 0
        if not (isinstance(width, Known) and width.value is None):
            group = _whole(c, node, width, "the width of a shuffle")
            if group not in (1, 2, 4, 8, 16, 32, 64):
                c.wrong(node, f"the width of a shuffle is 1, 2, 4, ... 64, found {group}")
        out = c.code.register(value.kind)
        c.code.emit(Op.SHUFFLE, value.kind, d=out.number, a=value.number, b=distance.number,
                    x=which, y=group)  # fmt: skip
        return out

    return emit


def _voting(which: Vote) -> Callable[[Context, ast.Call, Given], Value]:
    def emit(c: Context, node: ast.Call, given: Given) -> Value:
        asked = -1
        kind = Kind.INT32
        if "predicate" in given:
            asked = truth(c, node, given["predicate"]).number
        elif "value" in given:
            value = c.lane(node, given["value"])
            asked, kind = value.number, value.kind
        out = c.code.register(Kind.BOOL if which in (Vote.ANY, Vote.ALL) else Kind.INT64)
        c.code.emit(Op.VOTE, kind, d=out.number, a=asked, x=which)
        return out

    return emit


def _atomic(which: Atomic) -> Callable[[Context, ast.Call, Given], Value]:
    def emit(c: Context, node: ast.Call, given: Given) -> Value:
        array = _array(c, node, given["array"])
        real = array.kind == Kind.FP32
        whole = array.kind in (Kind.INT32, Kind.UINT32, Kind.INT64)
        bits = which in (Atomic.AND, Atomic.OR, Atomic.XOR)
        if not (whole or (real and not bits)):
            c.wrong(node, f"atomics of this sort know int32, uint32 and int64"
                    f"{'' if bits else ', and fp32'}; {array.name} holds "
                    f"{array.kind.name.lower()}")  # fmt: skip
        at = _at(c, node, array, given["index"])
        value = c.lane(node, memory.stored(c, node, array, given["value"]), array.kind)
        expected = value
        if "expected" in given:
            asked = memory.stored(c, node, array, given["expected"])
            expected = c.lane(node, asked, array.kind)
        out = c.code.register(array.kind)
        c.code.emit(Op.ATOMIC, array.kind, d=out.number, a=at.number, b=value.number,
                    c=expected.number, x=array.number, y=which)  # fmt: skip
        return out

    return emit


def _load(c: Context, node: ast.Call, given: Given) -> Value:
    array = _array(c, node, given["array"])
    count = memory.vector_count(c, node, array, _whole(c, node, given["count"], "the count"))
    return memory.load(c, array, _at(c, node, array, given["index"]), count)


def _store(c: Context, node: ast.Call, given: Given) -> Value:
    array = _array(c, node, given["array"])
    values = given.get("values", ())
    memory.vector_count(c, node, array, len(values))
    memory.store(c, node, array, _at(c, node, array, given["index"]), values)
    return Known(None)


def _shared(c: Context, node: ast.Call, given: Given) -> Value:
    name = f"shared{len(c.code.shared)}"
    return memory.shared(
        c, node, name, given["shape"], given["kind"], given["pad"], given["swizzle"]
    )


def _special(c: Context, which: int) -> Value:
    return expressions.known(c, Special(which))


def _grid(c: Context, node: ast.Call, given: Given) -> Value:
    return _each(c, node, given, lambda d: arithmetic(
        c, node, Binary.ADD,
        arithmetic(c, node, Binary.MULTIPLY, _special(c, Special.BLOCK_X + d),
                   _special(c, Special.THREADS_X + d)),
        _special(c, Special.THREAD_X + d)))  # fmt: skip


def _gridsize(c: Context, node: ast.Call, given: Given) -> Value:
    return _each(c, node, given, lambda d: arithmetic(
        c, node, Binary.MULTIPLY, _special(c, Special.BLOCKS_X + d),
        _special(c, Special.THREADS_X + d)))  # fmt: skip


def _each(c: Context, node: ast.Call, given: Given, one: Callable[[int], Value]) -> Value:
    dimensions = _whole(c, node, given["dimensions"], "the number of dimensions")
    if dimensions not in (1, 2, 3):
        c.wrong(node, f"a grid has 1, 2 or 3 dimensions, found {dimensions}")
    found = tuple(one(d) for d in range(dimensions))
    return found[0] if dimensions == 1 else Several(found)


OWN: Mapping[Any, Callable[[Context, ast.Call, Given], Value]] = {
    names.barrier: _barrier, names.barrier_any: _asking(Meeting.ANY),
    names.barrier_all: _asking(Meeting.ALL), names.barrier_count: _asking(Meeting.COUNT),
    names.warp_barrier: _warp_barrier, names.shuffle: _shuffling(Shuffle.LANE, "lane"),
    names.shuffle_up: _shuffling(Shuffle.UP, "by"),
    names.shuffle_down: _shuffling(Shuffle.DOWN, "by"),
    names.shuffle_xor: _shuffling(Shuffle.XOR, "mask"), names.any_lane: _voting(Vote.ANY),
    names.all_lanes: _voting(Vote.ALL), names.ballot: _voting(Vote.BALLOT),
    names.match: _voting(Vote.MATCH), names.active: _voting(Vote.ACTIVE),
    names.load: _load, names.store: _store, names.shared: _shared, names.grid: _grid,
    names.gridsize: _gridsize, f.atomic_add: _atomic(Atomic.ADD),
    f.atomic_min: _atomic(Atomic.MINIMUM), f.atomic_max: _atomic(Atomic.MAXIMUM),
    f.atomic_and: _atomic(Atomic.AND), f.atomic_or: _atomic(Atomic.OR),
    f.atomic_xor: _atomic(Atomic.XOR), f.atomic_exchange: _atomic(Atomic.EXCHANGE),
    f.atomic_compare_and_swap: _atomic(Atomic.COMPARE_AND_SWAP),
}  # fmt: skip
