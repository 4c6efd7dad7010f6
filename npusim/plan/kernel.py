"""Kernels: a function that tiles an operator, its space of choices, and its claim."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npusim.core.errors import InputError, Problem, choose_from, source_place
from npusim.core.modules import placing_errors
from npusim.graph.ir import Graph, Node
from npusim.graph.ops import operator
from npusim.plan.claim import Claim
from npusim.plan.grid import Splits
from npusim.plan.hardware import Hardware
from npusim.plan.mistakes import kernel_line, mistake
from npusim.plan.operation import Operation

if TYPE_CHECKING:
    from npusim.plan.tiles import Tiles

#: What a choice may count to: more does not fit the arrays that claims work with.
_LARGEST = (1 << 31) - 1
#: Families of operators that change no value.
_MOVING = ("movement", "gather", "view")
Options = Sequence[Any] | Splits
Body = Callable[..., None]
Pricing = Callable[[Operation, Hardware, Any], Claim]
Group = Callable[[Graph, Sequence[Node]], "str | None"]
Find = Callable[[Graph, Node], "Sequence[Node] | None"]


class Unsuited(Exception):
    """A kernel cannot run this operator on this machine; the text says why."""


def pow2(low: int, high: int) -> tuple[int, ...]:
    """The powers of two from `low` to `high`, both included."""
    values = []
    while low <= high:
        values.append(low)
        low *= 2
    return tuple(values)


@dataclass(eq=False)
class Kernel:
    """A way to run some operators; call it with choices to use it in a plan."""

    name: str
    body: Body
    operators: tuple[str, ...]
    space: Mapping[str, Options]
    group: Group | None
    find: Find | None
    defaults: Mapping[str, Any]
    pricing: Pricing | None = field(default=None)

    def claim(self, pricing: Pricing) -> Pricing:
        """Attach the claim: `(op, hw, c) -> Claim`, where c holds arrays of all choices."""
        self.pricing = pricing
        return pricing

    def __call__(self, **choices: Any) -> Use:
        """This kernel with some choices made; the others are left to its claim."""
        place = kernel_line()
        problems = [
            Problem(
                f"kernel {self.name} has no choice {name!r}",
                place,
                choose_from(name, list(self.defaults)),
            )
            for name in choices
            if name not in self.defaults
        ]
        problems += [
            Problem(
                f"kernel {self.name}: {name}={value!r} is not like {self.defaults[name]!r}", place
            )
            for name, value in choices.items()
            if name in self.defaults and not _alike(value, self.defaults[name])
        ]
        problems += [
            Problem(
                f"kernel {self.name}: {name}={value!r} is none of its options",
                place,
                choose_from(value, self._words(name)),
            )
            for name, value in choices.items()
            if isinstance(value, str) and value not in (self._words(name) or (value,))
        ]
        if problems:
            raise InputError(*problems)
        return Use(self, choices)

    def _words(self, name: str) -> list[str]:
        """The options of a choice that is made by a word; a tile size may be any other too."""
        listed = self.space.get(name, ())
        return [] if isinstance(listed, Splits) else [o for o in listed if isinstance(o, str)]

    def emit(self, t: Tiles, op: Operation, choices: Mapping[str, Any]) -> None:
        """Run the body; InputError at its line for whatever goes wrong inside, or Unsuited."""
        with _blaming(self.body):
            self.body(t, op, **choices)

    def price(self, op: Operation, hw: Hardware, points: Any) -> Claim:
        """The claim for these points; errors as those of the body."""
        if self.pricing is None:
            raise Unsuited(f"kernel {self.name} states no claim: attach one by @{self.name}.claim")
        wide = _too_wide(op)
        if wide:
            raise Unsuited(f"the machine computes in fp32 at most, {wide} is fp64")
        with _blaming(self.pricing):
            return self.pricing(op, hw, points)

    @property
    def summary(self) -> str:
        """First line of its docstring."""
        return (self.body.__doc__ or "").strip().partition("\n")[0]

    def place(self) -> Any:
        """Where it is written."""
        code = self.body.__code__
        return source_place(Path(code.co_filename), code.co_firstlineno)


@dataclass(frozen=True)
class Use:
    """A kernel and the choices a plan has made for it; `pads` are bytes behind rows of buffers."""

    kernel: Kernel
    choices: Mapping[str, Any]
    pads: Mapping[str, int] = field(default_factory=dict)

    def padded(self, **bytes_by_buffer: int) -> Use:
        """Rows of these scratchpad buffers so many bytes further apart than they are long.

        `matmul().padded(b=64)`: what met in the banks of the scratchpad may then pass.
        """
        for name, size in bytes_by_buffer.items():
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise mistake(f"padded({name}=...) takes bytes, a whole number, found {size!r}")
        return replace(self, pads={**self.pads, **bytes_by_buffer})

    def __repr__(self) -> str:
        """As it is written in a plan."""
        made = ", ".join(f"{name}={value!r}" for name, value in self.choices.items())
        pads = ", ".join(f"{name}={size}" for name, size in self.pads.items())
        return f"{self.kernel.name}({made})" + (f".padded({pads})" if pads else "")


def kernel(
    *operators: str,
    space: Mapping[str, Options] | None = None,
    group: Group | None = None,
    find: Find | None = None,
) -> Callable[[Body], Kernel]:
    """Declare a kernel for these ONNX operators.

    `space` lists the options of each choice; a choice without options keeps its default.
    `group` says what is wrong with running these operators at once (None: nothing); without it,
    the kernel runs one operator at a time. `find` names the operators around one that belong to
    it without being asked, such as the conversions around an integer product.
    """

    def declare(body: Body) -> Kernel:
        parameters = inspect.signature(body).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        empty = [name for name, options in (space or {}).items() if options == ()]
        if empty:
            raise InputError(f"kernel {body.__name__}: no options for {', '.join(empty)}")
        missing = [name for name, value in defaults.items() if value is inspect.Parameter.empty]
        strange = sorted(set(space or {}) - set(defaults))
        if missing or strange:
            raise InputError(
                f"kernel {body.__name__}: choices without a default {missing}, options for "
                f"unknown choices {strange}"
            )
        return Kernel(body.__name__, body, operators, dict(space or {}), group, find, defaults)

    return declare


def _too_wide(op: Operation) -> str | None:
    """An operand or result that no unit can compute with; those that only move may be any."""
    for node in op.nodes:
        if operator(node.op).family in _MOVING:
            continue
        for tensor in (*op.graph.operand_tensors(node), *op.graph.result_tensors(node)):
            if tensor is not None and tensor.dtype.name == "fp64":
                return tensor.name
    return None


@contextmanager
def _blaming(function: Callable[..., Any]) -> Iterator[None]:
    """Place errors at the line of the function that they came from; Unsuited passes."""
    refused: Unsuited | None = None
    with placing_errors(Path(function.__code__.co_filename)):
        try:
            yield
        except Unsuited as why:
            refused = why
    if refused is not None:
        raise refused


def _alike(value: Any, default: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, int):
        return isinstance(value, int) and 0 < value <= _LARGEST
    return isinstance(value, type(default))


def kernels(modules: Iterable[Any]) -> list[Kernel]:
    """All kernels that these modules define, in order."""
    found: dict[str, Kernel] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Kernel) and value.body.__module__ == module.__name__:
                found[value.name] = value
    return list(found.values())
