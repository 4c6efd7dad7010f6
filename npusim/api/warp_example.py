"""The kernel that a command names, its example, and the launch of both."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from npusim.core.arguments import call_sized, size_place
from npusim.core.catalog import find_file
from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.core.modules import load_module, member, placing_errors
from npusim.core.sizes import value_of
from npusim.hw.loader import LoadedMachine
from npusim.machine.simt.launch import Launch, launch
from npusim.program.simt.arguments import parameters_of
from npusim.program.simt.example import Compared, Example, compared, sizes_of
from npusim.program.simt.kernel import WarpKernel


def find_kernel(subject: str) -> tuple[WarpKernel, Path, list[str]]:
    """The kernel that FILE:NAME means; a bare NAME is a file of the catalogue with its kernel."""
    text, _, name = subject.rpartition(":")
    text, name = (text, name) if text else (name, "")
    found = find_file("warps", text, (".py",))
    module = load_module(found.path)
    mine = {n: v for n, v in vars(module).items() if isinstance(v, WarpKernel)}
    if not name and len(mine) == 1:
        (kernel,) = mine.values()
    elif not name:
        hints = (f"it has: {', '.join(mine) or 'none'}", f"try: {text}:NAME")
        raise InputError(Problem("which warp kernel of the file?", Place(str(found.path)), hints))
    else:
        kernel = member(module, name, "npusim kernel was asked for")
    if not isinstance(kernel, WarpKernel):
        hints = choose_from(name, list(mine))
        raise InputError(Problem(f"{name} is no warp kernel", Place(str(found.path)), hints))
    return kernel, found.path, [found.note] if found.note else []


def made(kernel: WarpKernel, path: Path, given: Mapping[str, str], seed: int) -> Example:
    """The kernel's example under such sizes; those that are choices of the kernel go to it."""
    if kernel.make_example is None:
        hints = (f"write one: @{kernel.name}.example def _(rng, *, n: int = 1024): ...",)
        raise InputError(Problem(f"kernel {kernel.name} has no example", Place(str(path)), hints))
    make, own = kernel.make_example, sizes_of(kernel.make_example)
    choices = kernel.choices
    unknown = [name for name in given if name not in own and name not in choices]
    if unknown:
        raise InputError(*(
            Problem(f"{name} is neither a size of the example nor a choice of {kernel.name}",
                    size_place(name, given, 1), choose_from(name, [*own, *choices]))
            for name in unknown
        ))  # fmt: skip
    rng = np.random.default_rng(seed)

    def build(**sizes: Any) -> Example:
        return make(rng, **sizes)

    signature = inspect.signature(make, eval_str=True)
    sized = [p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    vars(build)["__signature__"] = signature.replace(parameters=sized)
    build.__name__ = f"the example of {kernel.name}"
    example: Any = call_sized(build, {n: v for n, v in given.items() if n in own}, path)
    if not isinstance(example, Example):
        text = f"the example of {kernel.name} returned a {type(example).__name__}"
        raise InputError(Problem(f"{text}, not a simt.Example", Place(str(path))))
    chosen = {n: _choice(n, v, choices[n], given) for n, v in given.items() if n in choices}
    return replace(example, choices={**example.choices, **chosen})


def _choice(name: str, text: str, default: Any, given: Mapping[str, str]) -> Any:
    """A choice as a value of its default's kind."""
    kind = type(default) if type(default) in (bool, int, float, str) else int
    try:
        return value_of(text, kind)
    except ValueError as error:
        at = size_place(name, given, len(name) + 2)
        raise InputError(Problem(f"{name}: {error}", at)) from None


def launched(
    kernel: WarpKernel, example: Example, loaded: LoadedMachine, order_seed: int | None
) -> tuple[Launch, tuple[Compared, ...]]:  # fmt: skip
    """Runs an example and compares what its reference names."""
    simt = loaded.machine.core.simt
    assert simt is not None
    names = kernel.parameters
    if len(names) != len(example.arguments):
        text = f"{len(names)} arguments, its example gives {len(example.arguments)}"
        raise InputError(f"kernel {kernel.name} takes {text}")
    parameters = parameters_of(names, example.arguments)
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in example.arguments]
    code = kernel.compile(parameters, example.choices)
    done = launch(
        code, _sizes(example.blocks), _sizes(example.threads), example.arguments,
        simt, seed=order_seed,
    )  # fmt: skip
    if example.reference is None:
        return done, ()
    with placing_errors(Path(code.file)):
        wanted = example.reference(*before)
    after = dict(zip(names, example.arguments, strict=True))
    for name in wanted:
        if not isinstance(after.get(name), np.ndarray):
            arrays = [n for n, a in after.items() if isinstance(a, np.ndarray)]
            raise InputError(Problem(
                f"the reference names {name!r}, which is no array of {kernel.name}",
                hints=choose_from(name, arrays)))  # fmt: skip
    return done, tuple(
        compared(name, after[name], np.asarray(array), example.tolerance)
        for name, array in wanted.items()
    )


def _sizes(given: int | Sequence[int]) -> Sequence[int]:
    return [given] if isinstance(given, int) else list(given)
