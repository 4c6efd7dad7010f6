"""Nodes as they stand in an ONNX file, and what replaces those of other domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from npusim.core.errors import InputError, Problem, choose_from
from npusim.graph.ir import Tensor
from npusim.graph.onnx_types import Array


@dataclass(frozen=True)
class ForeignNode:
    """A node of whatever domain; absent inputs and outputs are ''."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def input(self, index: int) -> str:
        """The input at `index`, '' if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def output(self, index: int) -> str:
        """The output at `index`, '' if it is not asked for."""
        return self.outputs[index] if index < len(self.outputs) else ""

    def part(self, part: str) -> str:
        """The name of something that replaces a part of this node."""
        return f"{self.name}.{part}"

    def required(self, attribute: str) -> Any:
        """An attribute that the node cannot do without."""
        if attribute not in self.attributes:
            raise InputError(Problem(f"attribute {attribute!r} is missing"))
        return self.attributes[attribute]


class Emitter(Protocol):
    """What a lowering writes to: operators and constants named after the node they replace."""

    def add(
        self,
        op: str,
        *inputs: str,
        part: str,
        outputs: Sequence[str] | None = None,
        **attributes: Any,
    ) -> str:
        """Add an operator called NODE.part; returns its first output."""

    def constant(self, part: str, values: Array) -> str:
        """Add a constant called NODE.part; returns its name."""

    def tensor(self, name: str) -> Tensor:
        """A tensor that exists already."""

    def note(self, text: str) -> None:
        """Record what the lowering takes for granted."""


@dataclass(frozen=True)
class Signature:
    """What a foreign operator takes: attributes, inputs and outputs by their documented names.

    `attributes` maps a name to the values supported, None for any. What is `refused` is known
    and has no counterpart.
    """

    attributes: Mapping[str, Sequence[Any] | None]
    inputs: Sequence[str]
    outputs: Sequence[str]
    refused: Sequence[str] = ()

    def check(self, node: ForeignNode) -> None:
        """Raise InputError naming every attribute, input and output that is not supported."""
        problems = [
            problem
            for name, value in node.attributes.items()
            for problem in self._attribute_problems(name, value)
        ]
        problems += self._operand_problems("input", node.inputs, self.inputs)
        problems += self._operand_problems("output", node.outputs, self.outputs)
        if problems:
            raise InputError(*problems)

    def _attribute_problems(self, name: str, value: Any) -> list[Problem]:
        if name not in self.attributes:
            hints = choose_from(name, list(self.attributes))
            return [Problem(f"attribute {name!r} is not supported", hints=hints)]
        allowed = self.attributes[name]
        if allowed is None or value in allowed:
            return []
        known = ", ".join(str(item) for item in allowed)
        return [Problem(f"attribute {name}={value} is not supported (allowed: {known})")]

    def _operand_problems(
        self, kind: str, given: Sequence[str], known: Sequence[str]
    ) -> list[Problem]:
        problems = []
        for index, tensor in enumerate(given):
            if not tensor:
                continue
            if index >= len(known):
                problems.append(Problem(f"{kind} {index} ({tensor!r}) is not supported"))
            elif known[index] in self.refused:
                problems.append(Problem(f"{kind} {known[index]!r} is not supported"))
        return problems
