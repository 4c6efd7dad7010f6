"""Warp kernels: functions of one thread, compiled for the kinds of their arguments (A68)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np

from npusim.core.errors import InputError, choose_from
from npusim.program.simt import statements
from npusim.program.simt.assembly import Assembly
from npusim.program.simt.code import Column, Parameter, WarpCode
from npusim.program.simt.context import Context, Frame
from npusim.program.simt.example import Maker
from npusim.program.simt.flow import meeting_places, registers_alive
from npusim.program.simt.opcodes import REAL_KINDS, Op
from npusim.program.simt.source import Source, source_of
from npusim.program.simt.values import ArrayRef, Known, Several, Value, in_register

Body = Callable[..., None]


@dataclass(eq=False)
class WarpKernel:
    """A kernel; positional parameters are arrays and scalars, keyword-only ones are choices.

    `registers` is what is stated for occupancy, None if nothing is.
    """

    name: str
    body: Body
    registers: int | None = None
    make_example: Maker | None = None
    _compiled: dict[Any, WarpCode] = field(default_factory=dict, repr=False)

    def compile(
        self, parameters: Sequence[Parameter], choices: Mapping[str, Any] | None = None
    ) -> WarpCode:  # fmt: skip
        """The program for arguments of these kinds, under these choices.

        Raises InputError, at the line, for what a kernel cannot hold.
        """
        chosen = self._chosen(choices or {})
        key = (tuple(parameters), tuple(sorted(chosen.items())))
        if key not in self._compiled:
            self._compiled[key] = _compiled(self, parameters, chosen)
        return self._compiled[key]

    def example(self, make: Maker) -> Maker:
        """Decorates a function of (rng, *, sizes) that returns an Example for `npusim kernel`."""
        self.make_example = make
        return make

    @property
    def parameters(self) -> list[str]:
        """Names of arrays and scalars, in order."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        found = inspect.signature(self.body).parameters.values()
        return [p.name for p in found if p.kind in kinds]

    @property
    def choices(self) -> dict[str, Any]:
        """Keyword-only parameters and their defaults, which may be `inspect.Parameter.empty`."""
        found = inspect.signature(self.body).parameters.values()
        return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}

    def _chosen(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every choice with its value."""
        known = self.choices
        for name in given:
            if name not in known:
                raise InputError(
                    f"kernel {self.name} has no choice {name!r}\n"
                    + "\n".join(choose_from(name, list(known)))
                )
        for name, default in known.items():
            if default is inspect.Parameter.empty and name not in given:
                raise InputError(f"kernel {self.name} needs a value for its choice {name}")
        return {**known, **given}


@overload
def kernel(body: Body) -> WarpKernel: ...
@overload
def kernel(*, registers: int | None = None) -> Callable[[Body], WarpKernel]: ...


def kernel(
    body: Body | None = None, *, registers: int | None = None
) -> WarpKernel | Callable[[Body], WarpKernel]:  # fmt: skip
    """Makes a kernel of a function; `registers` per thread may be stated for occupancy."""

    def make(function: Body) -> WarpKernel:
        return WarpKernel(function.__name__, function, registers)

    return make if body is None else make(body)


def _compiled(
    of: WarpKernel, parameters: Sequence[Parameter], choices: Mapping[str, Any]
) -> WarpCode:  # fmt: skip
    source = source_of(of.body)
    if len(parameters) != len(of.parameters):
        raise InputError(
            f"kernel {of.name} has {len(of.parameters)} parameters, found {len(parameters)}"
        )
    frame = Frame(source)
    c = Context(Assembly(), [frame])
    _bind(c, parameters, choices)
    if statements.body(c, source.tree.body) or any(
        label.at == len(c.code.rows) for _, label in c.code.jumps
    ):
        c.code.emit(Op.EXIT)
    return _assembled(of, source, c.code, parameters)


def _bind(c: Context, parameters: Sequence[Parameter], choices: Mapping[str, Any]) -> None:
    """Arguments as variables."""
    frame, arrays = c.frame, 0
    c.at(frame.source.tree)
    for parameter in parameters:
        found: Value
        if parameter.dimensions:
            found = ArrayRef(arrays, parameter.name, parameter.kind, parameter.dimensions)
            arrays += 1
        else:
            found = c.code.scalar(parameter.name, in_register(parameter.kind))
            if parameter.name in frame.assignments:
                found = replace(
                    c.converted(found, found.kind, c.code.register(found.kind)), owned=True
                )
        frame.variables[parameter.name] = found
    for name, value in choices.items():
        frame.variables[name] = _known(value)
    frame.set_names.update(frame.variables)
    frame.since.update(dict.fromkeys(frame.variables, frame.source.first_line))


def _known(value: Any) -> Value:
    return (
        Several(tuple(_known(one) for one in value)) if isinstance(value, tuple) else Known(value)
    )


def _assembled(
    of: WarpKernel, source: Source, code: Assembly, parameters: Sequence[Parameter]
) -> WarpCode:  # fmt: skip
    code.resolve()
    rows = np.array(code.rows, np.int32).reshape(-1, len(Column))
    arrays = sum(p.dimensions > 0 for p in parameters)
    touching = np.isin(rows[:, Column.OP], [Op.INDEX, Op.LOAD, Op.STORE, Op.ATOMIC])
    shared = touching & (rows[:, Column.X] < 0)
    rows[shared, Column.X] = arrays - 1 - rows[shared, Column.X]
    branches = rows[:, Column.OP] == Op.BRANCH
    rows[branches, Column.Y] = np.array(meeting_places(rows), np.int32)[branches]
    count = len(code.constants) + len(code.scalars)
    integers, reals = np.zeros(count, np.int64), np.zeros(count, np.float32)
    for at, (kind, text) in enumerate(code.constants):
        if kind in REAL_KINDS:
            reals[at] = np.float32(text)
        else:
            integers[at] = int(text)
    return WarpCode(
        name=of.name, file=source.file, text="\n".join(source.lines),
        first_line=source.first_line, rows=rows, lines=np.array(code.lines, np.int32),
        columns=np.array(code.columns, np.int32), parameters=tuple(parameters),
        shared=tuple(code.shared), integers=integers, reals=reals,
        presets=np.array([*code.constants.values(), *code.scalars.values()], np.int32),
        scalars=tuple(code.scalars),
        registers=len(code.registers),
        registers_alive=registers_alive(
            rows, code.registers, {*code.constants.values(), *code.scalars.values()}
        ),
    )  # fmt: skip
