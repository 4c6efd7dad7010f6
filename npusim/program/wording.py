"""Instructions and their operands in words: tiles, pieces of tensors, formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.program.kinds import RANK, Kind, Space, Why
from npusim.program.program import Layer, Program
from npusim.program.uses import NAMED_KEPT, OTHER_KEPT

_NAMED = (Space.DRAM, Space.TAP)
_INFIX: Mapping[str, str] = MappingProxyType(
    {
        "add": "+",
        "sub": "-",
        "mul": "*",
        "div": "/",
        "pow": "**",
        "mod": "%",
        "eq": "==",
        "ne": "!=",
        "lt": "<",
        "le": "<=",
        "gt": ">",
        "ge": ">=",
        "and": "&",
        "or": "|",
        "xor": "^",
    }
)
#: How listings call the reasons of edges.
REASONS: Mapping[int, str] = MappingProxyType(
    {
        Why.READ_AFTER_WRITE: "raw",
        Why.WRITE_AFTER_READ: "war",
        Why.WRITE_AFTER_WRITE: "waw",
        Why.REUSE_OF_MEMORY: "reuse",
        Why.BY_HAND: "by hand",
    }
)


def action(program: Program, instruction: int) -> str:
    """What an instruction does, like `load a[512x128 bf16] <- q.weight[512:1024, 0:128]`."""
    kind = int(program.instructions.kind[instruction])
    row = int(program.instructions.row[instruction])
    core = program.streams[program.instructions.stream[instruction]].core
    if kind == Kind.COPY:
        return _copy(program, row, core)
    if kind == Kind.MMA:
        return _mma(program, row, core)
    if kind == Kind.VECTOR:
        return _vector(program, row, core)
    return _host(program, row)


def layer_title(layer: Layer) -> str:
    """Operator, kernel and plan step of a layer."""
    how = f"kernel {layer.kernel}" if layer.kernel else ""
    return ", ".join(part for part in (layer.name, how, layer.step) if part)


def loops(program: Program, instruction: int) -> str:
    """Loop indices of an instruction by axis, like `m=0 n=3 k=12`; empty outside all loops."""
    layer, point = (
        int(program.instructions.layer[instruction]),
        int(program.instructions.point[instruction]),
    )
    if layer < 0 or point < 0:
        return ""
    pairs = zip(program.layers[layer].axes, program.points[point].tolist(), strict=False)
    return " ".join(f"{axis}={index}" for axis, index in pairs if index >= 0)


def region_text(program: Program, region: int, core: int = -1) -> str:
    """A piece of a tensor in its coordinates, or a tile with its shape and dtype.

    `core` is the core that looks at it; memory of others is marked.
    """
    buffer = int(program.regions.buffer[region])
    label = buffer_label(program, buffer, core)
    kind = names()[program.regions.dtype[region]]
    on_chip = program.buffers.space[buffer] in (Space.SRAM, Space.ACC)
    if on_chip and program.regions.offset[region] == 0:
        return f"{label}[{shape_text(program, region)} {kind}]"
    inside = _coordinates(program, region)
    if inside is None:
        offset = int(program.regions.offset[region])
        return f"{label}[{shape_text(program, region)} {kind} from byte {offset}]"
    return f"{label}[{inside} {kind}]" if on_chip else f"{label}[{inside}]"


def shape_text(program: Program, region: int) -> str:
    """Like `512x128`; leading dimensions of size 1 are left out, rows and columns never."""
    return "x".join(map(str, program.regions.sizes[region, _rank(program, region) :].tolist()))


def buffer_label(program: Program, buffer: int, core: int = -1) -> str:
    """Name of a buffer with the number of its slot; `@shared`, `@sram2` where another's is meant.

    `core` is the core that looks at it.
    """
    name = _slot_name(program, buffer)
    space, owner = Space(int(program.buffers.space[buffer])), int(program.buffers.core[buffer])
    if space in _NAMED or (owner >= 0 and owner == core):
        return name
    return f"{name}@{space.name.lower()}{owner if owner >= 0 else ''}"


def buffer_text(program: Program, buffer: int) -> str:
    """Name and memory of a buffer, like `a.1 in sram of core 2`."""
    memory = memory_text(int(program.buffers.space[buffer]), int(program.buffers.core[buffer]))
    return f"{_slot_name(program, buffer)} in {memory}"


def _slot_name(program: Program, buffer: int) -> str:
    buffers = program.buffers
    name: str = buffers.names[buffer]
    first = int(buffers.slot_of[buffer])
    others = np.flatnonzero(buffers.slot_of == (first if first >= 0 else buffer))
    if not len(others):
        return name
    return f"{name}.{int(np.searchsorted(others, buffer, side='right')) if first >= 0 else 0}"


def memory_text(space: int, core: int) -> str:
    """Like `sram of core 2`, `dram`."""
    name = Space(space).name.lower()
    return f"{name} of core {core}" if core >= 0 else name


def formula(tree: Any, sources: Sequence[str], immediates: Sequence[float]) -> str:
    """A vector expression as one would write it; operands that it lacks are question marks."""
    if tree[0] == "source":
        return sources[tree[1]] if tree[1] < len(sources) else "?"
    if tree[0] == "immediate":
        return f"{float(immediates[tree[1]]):.6g}" if tree[1] < len(immediates) else "?"
    parts = [formula(child, sources, immediates) for child in tree[1:]]
    if tree[0] in _INFIX and len(parts) == 2:
        joined = zip(tree[1:], parts, strict=True)
        left, right = (f"({t})" if child[0] in _INFIX else t for child, t in joined)
        return f"{left} {_INFIX[tree[0]]} {right}"
    if tree[0] == "neg":
        return f"-{parts[0]}" if tree[1][0] not in _INFIX else f"-({parts[0]})"
    return f"{tree[0]}({', '.join(parts)})"


# ---------------------------------------------------------------- one per kind


def _copy(program: Program, row: int, core: int) -> str:
    table = program.copies
    to, source, index = (int(c[row]) for c in (table.destination, table.source, table.index))
    spaces = program.space_of(np.array([to, source]))
    far = np.isin(spaces, (Space.DRAM, Space.SHARED))
    verb = "gather" if index >= 0 else "copy" if far[0] == far[1] else "store" if far[0] else "load"
    more = program.multicasts.of(row).tolist()
    verb = "multicast" if more else verb
    targets = ", ".join(region_text(program, r, core) for r in (to, *more))
    text = f"{verb} {targets} <- {region_text(program, source, core)}"
    return f"{text} at rows {region_text(program, index, core)}" if index >= 0 else text


def _mma(program: Program, row: int, core: int) -> str:
    table = program.mmas
    c, a, b = (region_text(program, int(r[row]), core) for r in (table.c, table.a, table.b))
    if table.zero_a[row]:
        a = f"({a} - {table.zero_a[row]})"
    if table.zero_b[row]:
        b = f"({b} - {table.zero_b[row]})"
    named, other = ("A", "B") if table.stationary[row] else ("B", "A")
    notes = ["A stays"] if table.stationary[row] else []
    kept = {NAMED_KEPT: named, OTHER_KEPT: other}
    notes += [f"{operand} as before" for flag, operand in kept.items() if table.kept[row] & flag]
    text = f"mma {c} {'=' if table.first[row] else '+='} {a} @ {b}"
    return f"{text} ({', '.join(notes)})" if notes else text


def _vector(program: Program, row: int, core: int) -> str:
    table = program.vectors
    target = int(table.destination[row])
    sources = [int(r) for r in table.source[row] if r >= 0]
    full = [region_text(program, r, core) for r in sources]
    short = [buffer_label(program, int(program.regions.buffer[r]), core) for r in sources]
    plain = [
        name if short.count(name) == 1 and program.regions.offset[r] == 0 else text
        for name, text, r in zip(short, full, sources, strict=True)
    ]
    tree = program.expressions[table.expression[row]]
    value = formula(tree, plain, table.immediate[row].tolist())
    return f"vec {region_text(program, target, core)} = {value}"


def _host(program: Program, row: int) -> str:
    table = program.hosts
    read, written = (
        ", ".join(region_text(program, int(r)) for r in regions[ptr[row] : ptr[row + 1]])
        for regions, ptr in ((table.read, table.read_ptr), (table.write, table.write_ptr))
    )
    return f"host {table.node[row]}: {written} <- {read}"


# ---------------------------------------------------------------- coordinates


def _rank(program: Program, region: int) -> int:
    """The first dimension worth showing."""
    large = np.flatnonzero(program.regions.sizes[region] != 1)
    first = int(large[0]) if len(large) else RANK - 1
    return max(min(first, int(program.regions.split[region]) - 1), 0)


def _coordinates(program: Program, region: int) -> str | None:
    """Index ranges in memory order, as far as the region's own strides tell; else None."""
    regions = program.regions
    item = dtype(names()[regions.dtype[region]]).itemsize
    first = _rank(program, region)
    dims = zip(regions.strides[region, first:], regions.sizes[region, first:], strict=True)
    rest, parts, room = int(regions.offset[region]), [], 0
    for stride, size in sorted(((int(s), int(n)) for s, n in dims if s), key=lambda d: -d[0]):
        if stride < 0 or (room and room % stride):
            return None
        low, rest = divmod(rest, stride)
        if room and low + size > room // stride:
            return None
        parts.append(f"{low}:{low + size}" if size > 1 else str(low))
        room = stride
    if room > item:
        parts.append(str(rest // item))
        rest %= item
    return ", ".join(parts) if parts and not rest else None
