"""The words of a mapping plan: `Plan(...)`, `on(...)`, `fuse(...)`, `keep(...)`."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from npusim.core.errors import InputError, Place, Problem
from npusim.graph.ir import Graph, Node
from npusim.plan.kernel import Kernel, Use
from npusim.plan.mistakes import kernel_line, mistake


@dataclass(frozen=True)
class Step:
    """One line of a plan: which operators, and what happens to them.

    `patterns` are names (with * and ?) of operators, or of tensors for a `keep`; `op` is an ONNX
    operator instead. `fused` steps take all their operators together.
    """

    patterns: tuple[str, ...] = ()
    op: str | None = None
    fused: bool = False
    what: Use | None = None
    space: str | None = None
    on_host: bool = False
    reason: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False)
    number: int = -1

    def use(self, what: Use) -> Step:
        """Run them with this kernel and these choices."""
        if isinstance(what, Kernel):
            raise mistake(
                f"use({what.name}): write {what.name}() to leave all choices to its claim"
            )
        if not isinstance(what, Use):
            raise mistake(
                f"use(...) takes a kernel with its choices, such as matmul(m=256), found {what!r}"
            )
        return replace(self, what=what)

    def because(self, reason: str) -> Step:
        """Say why; printed with the layer."""
        if not isinstance(reason, str):
            raise mistake(f"because(...) takes a text, found {reason!r}")
        return replace(self, reason=reason)

    def when(self, **conditions: Any) -> Step:
        """Only for models built with these sizes, e.g. when(phase="decode")."""
        return replace(self, conditions={**self.conditions, **conditions})

    def host(self, because: str) -> Step:
        """Leave them to the host; priced, counted and printed."""
        return replace(self.because(because), on_host=True)

    def applies(self, graph: Graph) -> bool:
        """Whether the model was built with the sizes that `when` asks for."""
        return all(
            key in graph.sizes and str(graph.sizes[key]) == str(value)
            for key, value in self.conditions.items()
        )

    def matches(self, node: Node) -> bool:
        """Whether the step is about this operator."""
        if self.op is not None:
            return node.op == self.op
        return any(self.named(pattern, node) for pattern in self.patterns)

    def named(self, pattern: str, node: Node) -> bool:
        """Whether one of the step's patterns means this operator; fused ones are plain names."""
        return node.name == pattern if self.fused else fnmatch.fnmatchcase(node.name, pattern)

    def tensor_named(self, pattern: str, tensor: str) -> bool:
        """Whether one of a keep's patterns means this tensor."""
        return fnmatch.fnmatchcase(tensor, pattern)

    def __str__(self) -> str:
        """Like `step 3, on("down")`."""
        if self.space is not None:
            return f"step {self.number + 1}, keep({_quoted(self.patterns)})"
        word = "fuse" if self.fused else "on"
        subject = f"op={self.op!r}" if self.op else _quoted(self.patterns)
        return f"step {self.number + 1}, {word}({subject})"


def on(*names: str, op: str | None = None) -> Step:
    """A step about operators called so (patterns allowed), or about all of one ONNX operator."""
    if bool(names) == (op is not None):
        raise mistake("on(...) takes names of operators or op=, one of the two")
    return Step(patterns=names, op=op, place=kernel_line())


def fuse(*names: str) -> Step:
    """A step about operators that run as one kernel, so that what is between them stays inside."""
    if len(names) < 2:
        raise mistake("fuse(...) takes the names of at least two operators")
    return Step(patterns=names, fused=True, place=kernel_line())


def keep(*tensors: str, space: str = "shared") -> Step:
    """A step that keeps tensors on the chip (space="shared") instead of in DRAM."""
    if space != "shared" or not tensors:
        raise mistake(f'keep(...) takes tensors and space="shared", found space={space!r}')
    return Step(patterns=tensors, space=space, place=kernel_line())


@dataclass(frozen=True)
class Plan:
    """A mapping plan: steps in order, a later one overriding an earlier.

    `bounds` are the sizes it is meant for, as (lowest, highest).
    """

    name: str
    description: str = ""
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    steps: Sequence[Step] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise mistake(f"a plan's name is a text, found {self.name!r}")
        for size, ends in self.bounds.items():
            if not (isinstance(ends, tuple | list) and len(ends) == 2 and ends[0] <= ends[1]):
                raise mistake(f"plan {self.name}: bounds[{size!r}] is (lowest, highest): {ends!r}")
        wrong = [step for step in self.steps if not isinstance(step, Step)]
        if wrong:
            raise mistake(f"plan {self.name}: a step is made by on, fuse or keep, found {wrong}")
        numbered = tuple(replace(step, number=n) for n, step in enumerate(self.steps))
        object.__setattr__(self, "steps", numbered)
        idle = [s for s in numbered if s.what is None and not s.on_host and s.space is None]
        if idle:
            raise InputError(
                *(Problem(f"{s} does nothing; add .use(...) or .host(...)", s.place) for s in idle)
            )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


#: The plan without steps: every operator is mapped as its kernels' claims advise.
AUTO = Plan("auto", "every operator as the kernels' claims advise")
