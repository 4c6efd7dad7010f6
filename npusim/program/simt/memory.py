"""Arrays of kernels: indices, loads, stores, shared allocations."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from npusim.program.simt import expressions
from npusim.program.simt.code import SharedArray
from npusim.program.simt.context import Context
from npusim.program.simt.names import ElementKind
from npusim.program.simt.opcodes import ITEM_BYTES, REAL_KINDS, Binary, Kind, Op
from npusim.program.simt.operators import arithmetic
from npusim.program.simt.values import ArrayRef, Known, Reg, Several, Value, in_register

#: Bits of an element's place that a swizzle may name.
_MOST_BITS = 16
#: Dimensions of an array at most.
MOST_DIMENSIONS = 4
#: Bytes that a lane reads or writes with one instruction at most.
_WIDEST_BYTES = 16
_UNSIGNED = {Kind.UINT8, Kind.UINT16, Kind.UINT32}


def indices(c: Context, node: ast.expr) -> list[Value]:
    """The indices between brackets."""
    found = expressions.value(c, node)
    return list(found.items) if isinstance(found, Several) else [found]


def element(c: Context, node: ast.AST, array: ArrayRef, at: Sequence[Value]) -> Reg:
    """A register with the element's place: the index itself, or the sum over dimensions."""
    if len(at) != array.dimensions:
        c.wrong(node, f"{array.name} has {array.dimensions} dimensions, found {len(at)} indices")
    registers = [c.lane(node, index) for index in at]
    for register in registers:
        if register.kind == Kind.FP32:
            c.wrong(node, f"an index of {array.name} must be an integer, found fp32",
                    "convert it with int(...)")  # fmt: skip
    if len(registers) == 1:
        return registers[0]
    before = -1
    for dimension, register in enumerate(registers):
        out = c.code.register(Kind.INT64)
        c.code.emit(Op.INDEX, Kind.INT64, d=out.number, a=before, b=register.number,
                    x=array.number, y=dimension)  # fmt: skip
        before = out.number
    return out


def load(c: Context, array: ArrayRef, at: Reg, count: int, into: Reg | None = None) -> Several:
    """So many neighbouring elements in registers, one behind the other."""
    kind = in_register(array.kind)
    first = into if into is not None and into.kind == kind and count == 1 else None
    registers = [first] if first is not None else [c.code.register(kind) for _ in range(count)]
    c.code.emit(Op.LOAD, kind, d=registers[0].number, a=at.number, x=array.number, y=count)
    return Several(tuple(registers))


def store(c: Context, node: ast.AST, array: ArrayRef, at: Reg, values: Sequence[Value]) -> None:
    """Writes neighbouring elements; fp32 into integers only if it is said."""
    sources = [stored(c, node, array, value) for value in values]
    if len(sources) > 1:
        row = [c.code.register(in_register(array.kind)) for _ in sources]
        for source, target in zip(sources, row, strict=True):
            c.converted(source, target.kind, target)
        sources = row
    c.code.emit(Op.STORE, sources[0].kind, a=at.number, b=sources[0].number, x=array.number,
                y=len(sources))  # fmt: skip


def _swizzle(c: Context, node: ast.AST, given: Value) -> tuple[int, int, int]:
    """Bits, base and shift; all 0 for None."""
    if isinstance(given, Known) and given.value is None:
        return (0, 0, 0)
    items = given.items if isinstance(given, Several) else ()
    numbers = [one.value for one in items if isinstance(one, Known)]
    if len(numbers) != 3 or not all(isinstance(n, int) and 0 <= n <= _MOST_BITS for n in numbers):
        c.wrong(
            node, f"swizzle must be (bits, base, shift), known whole numbers up to {_MOST_BITS}"
        )
    if numbers[2] < numbers[0]:
        c.wrong(node, f"the shift of a swizzle must not be below its {numbers[0]} bits, "
                f"found {numbers[2]}", "elements would share places")  # fmt: skip
    return (numbers[0], numbers[1], numbers[2])


def stored(c: Context, node: ast.AST, array: ArrayRef, value: Value) -> Reg:
    """A value as an array may hold it; fp32 becomes an integer only where that is said."""
    if isinstance(value, Known) and not _fits(array.kind, value.value):
        c.wrong(node, f"{array.name} holds {array.kind.name.lower()}, which {value.value} is not")
    source = c.lane(node, value)
    if array.kind in REAL_KINDS:
        return c.lane(node, value, Kind.FP32)
    if source.kind == Kind.FP32:
        c.wrong(node, f"{array.name} holds {array.kind.name.lower()}, found an fp32 value",
                "convert it with int(...)")  # fmt: skip
    return source


def _fits(kind: Kind, number: object) -> bool:
    """Whether a number of Python is one of the kind; any is one of the floats."""
    if kind in REAL_KINDS or not isinstance(number, int | float):
        return True
    if isinstance(number, float):
        return False
    bits = 8 * ITEM_BYTES[kind]
    low = 0 if kind in _UNSIGNED else -(1 << (bits - 1))
    return kind == Kind.BOOL or low <= number < 1 << (bits if kind in _UNSIGNED else bits - 1)


def vector_count(c: Context, node: ast.AST, array: ArrayRef, count: int) -> int:
    """Checks how many elements one access may take."""
    if count < 1 or count & (count - 1) or count * ITEM_BYTES[array.kind] > _WIDEST_BYTES:
        most = _WIDEST_BYTES // ITEM_BYTES[array.kind]
        c.wrong(node, f"one access takes 1, 2, 4, ... up to {most} elements of {array.name}, "
                f"found {count}")  # fmt: skip
    return count


def attribute(c: Context, node: ast.Attribute, array: ArrayRef) -> Value:
    """`.shape`, `.size`, `.ndim`."""
    if node.attr == "ndim":
        return Known(array.dimensions)
    if node.attr not in ("shape", "size"):
        c.wrong(node, f"an array has no `.{node.attr}` in a kernel",
                "there are .shape, .size and .ndim")  # fmt: skip
    extents = [extent(c, array, dimension) for dimension in range(array.dimensions)]
    if node.attr == "shape":
        return Several(tuple(extents))
    size = extents[0]
    for other in extents[1:]:
        if isinstance(size, Known) and isinstance(other, Known):
            size = Known(size.value * other.value)
        else:
            size = arithmetic(c, node, Binary.MULTIPLY, size, other)
    return size


def extent(c: Context, array: ArrayRef, dimension: int) -> Value:
    """A shared array's is known, a parameter's filled in at launch."""
    if array.shape is not None:
        return Known(array.shape[dimension])
    return c.code.scalar(f"{array.name}.{dimension}", Kind.INT32)


def shared(
    c: Context, node: ast.Call, name: str, shape: Value, kind: Value, pad: Value, swizzle: Value
) -> ArrayRef:  # fmt: skip
    """An array of shared memory, the same for all threads of the block."""
    sizes = shape.items if isinstance(shape, Several) else (shape,)
    known = [size.value for size in sizes if isinstance(size, Known)]
    if len(known) != len(sizes) or not all(isinstance(s, int) and s > 0 for s in known):
        c.wrong(node, "the shape of a shared array must be known when the kernel is compiled, "
                "numbers from 1 on", "make its sizes keyword-only parameters")  # fmt: skip
    if not 1 <= len(known) <= MOST_DIMENSIONS:
        c.wrong(node, f"arrays have 1 to {MOST_DIMENSIONS} dimensions, found {len(known)}")
    if not (isinstance(kind, Known) and isinstance(kind.value, ElementKind)):
        c.wrong(node, "simt.shared(shape, kind): kind must be simt.float32, simt.int32, ...")
    if not (isinstance(pad, Known) and isinstance(pad.value, int) and pad.value >= 0):
        c.wrong(node, "pad must be a known whole number of elements, 0 or more")
    way = _swizzle(c, node, swizzle)
    array = SharedArray(
        name, kind.value.kind, tuple(known), pad.value, way, c.frame.source.line(node)
    )  # fmt: skip
    c.code.shared.append(array)
    return ArrayRef(-len(c.code.shared), name, array.kind, len(known), array.shape)
