"""What `--input NAME=...` means: how the inputs of a model get their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import DType
from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.graph.ir import Graph, Tensor
from npusim.graph.recipe import Arange, Filled, Given, Integers, Normal, Recipe

FLAG = "--input"
FORMS = "zeros|ones|arange[:START]|normal|randint:LO:HI|FILE.npy"


def with_inputs(graph: Graph, texts: Mapping[str, str]) -> Graph:
    """The graph with the recipes of its inputs replaced as `texts` (by name of input) say.

    Raises InputError with all problems: unknown names, forms and files that do not fit.
    """
    problems: list[Problem] = []
    tensors = dict(graph.tensors)
    for name, text in texts.items():
        if name not in graph.inputs:
            problems.append(_unknown(graph, name))
            continue
        try:
            tensors[name] = replace(tensors[name], recipe=_recipe(tensors[name], text))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return replace(graph, tensors=tensors)


def require_values(graph: Graph) -> None:
    """InputError that names every input which has no recipe, with an example of each."""
    missing = [graph.tensors[name] for name in graph.inputs if graph.tensors[name].recipe is None]
    if missing:
        raise InputError(*(_must_be_given(tensor) for tensor in missing))


def _unknown(graph: Graph, name: str) -> Problem:
    if name in graph.tensors:
        role = "a weight" if graph.tensors[name].role == "weight" else "computed by the model"
        message = f"{name!r} is {role}, not an input of {graph.name}"
    else:
        message = f"{graph.name} has no input {name!r}"
    return Problem(message, Place(FLAG), choose_from(name, list(graph.inputs)))


def _must_be_given(tensor: Tensor) -> Problem:
    shape = list(tensor.shape)
    example = "zeros" if tensor.dtype.name == "bool" else "randint:0:9"
    return Problem(
        f"input {tensor.name!r} ({tensor.dtype} {shape}) holds integers: say which",
        hints=(f"example: {FLAG} {tensor.name}={example}", f"forms: {FORMS}"),
    )


def _recipe(tensor: Tensor, text: str) -> Recipe:
    """The recipe that a text means; InputError if it means none or does not fit the tensor."""
    if text.endswith(".npy"):
        return _from_file(tensor, text)
    word, *numbers = text.split(":")
    counts = {"zeros": (0,), "ones": (0,), "normal": (0,), "arange": (0, 1), "randint": (2,)}
    if word not in counts:
        hints = choose_from(word, [*counts, "FILE.npy"])
        raise InputError(Problem(f"{tensor.name}={text}: no such form", Place(FLAG), hints))
    if len(numbers) not in counts[word]:
        message = f"{tensor.name}={text}: expected one of {FORMS}"
        raise InputError(Problem(message, Place(FLAG)))
    values = [_whole(tensor, text, number) for number in numbers]
    recipe = _simple(word, values)
    _check_range(tensor, text, recipe)
    return recipe


def _simple(word: str, values: list[int]) -> Recipe:
    match word:
        case "arange":
            return Arange(*values)
        case "randint":
            return Integers(*values)
        case "normal":
            return Normal()
    return Filled(float(word == "ones"))


def _whole(tensor: Tensor, text: str, number: str) -> int:
    try:
        return int(number)
    except ValueError:
        message = f"{tensor.name}={text}: expected a whole number, found {number!r}"
        raise InputError(Problem(message, Place(FLAG))) from None


def _check_range(tensor: Tensor, text: str, recipe: Recipe) -> None:
    """Integers must be in order and inside the tensor's dtype."""
    match recipe:
        case Integers(low, high):
            ends = (low, high)
        case Arange(start):
            ends = (start, start + max(tensor.size - 1, 0))
        case _:
            return
    if ends[0] > ends[1]:
        message = f"{tensor.name}={text}: LO must not exceed HI (both belong to the range)"
        raise InputError(Problem(message, Place(FLAG)))
    lowest, highest = _limits(tensor.dtype)
    if not lowest <= ends[0] <= ends[1] <= highest:
        drawn = f"{tensor.dtype} in 64 bits" if tensor.dtype.is_float else tensor.dtype
        message = (
            f"{tensor.name}={text}: values {ends[0]}..{ends[1]} are outside {drawn}, "
            f"{lowest:g}..{highest:g}"
        )
        raise InputError(Problem(message, Place(FLAG)))


def _limits(dtype: DType) -> tuple[int, int]:
    """Whole numbers of a dtype that can be drawn and counted: in 64 bits, whatever it holds."""
    if dtype.is_float:
        most = min(int(dtype.largest), np.iinfo(np.int64).max)
        return -most, most
    if dtype.name == "bool":
        return 0, 1
    held = np.iinfo(np.dtype(dtype.numpy.name))
    return int(held.min), int(held.max)


def _from_file(tensor: Tensor, text: str) -> Given:
    """The array of a .npy file, which must have the tensor's shape, and values of its kind."""
    name = Path(text).name
    stored = _loaded(tensor, text)
    if _is_view_of(stored.dtype, tensor.dtype):
        stored = stored.view(tensor.dtype.numpy)
    values = _converted(stored, tensor.dtype)
    if values is None or stored.shape != tensor.shape:
        message = (
            f"{tensor.name}={text}: the file holds {stored.dtype} {list(stored.shape)}, "
            f"input {tensor.name!r} is {tensor.dtype} {list(tensor.shape)}"
        )
        raise InputError(Problem(message, Place(FLAG)))
    how = "" if values is stored else f", {stored.dtype} converted to {tensor.dtype}"
    lost = _beyond(stored, values)
    if lost:
        message = f"{tensor.name}={text}: {lost:,} values are beyond the range of {tensor.dtype}"
        raise InputError(Problem(message, Place(FLAG)))
    return Given(np.ascontiguousarray(values), f"read from {name}{how}")


def _loaded(tensor: Tensor, text: str) -> NDArray[Any]:
    try:
        array = np.load(Path(text).expanduser(), allow_pickle=False)
    except OSError as error:
        message = f"{tensor.name}={text}: cannot be read: {error.strerror or error}"
        raise InputError(Problem(message, Place(FLAG))) from None
    except (ValueError, EOFError) as error:
        message = f"{tensor.name}={text}: cannot be read: {error}"
        raise InputError(Problem(message, Place(FLAG), _how_to_store(tensor.dtype))) from None
    return np.asarray(array.astype(array.dtype.newbyteorder("="), copy=False))


def _converted(stored: NDArray[Any], wanted: DType) -> NDArray[Any] | None:
    """The values in another dtype of their kind, floats rounded; None if the kind is another."""
    if stored.dtype == wanted.numpy:
        return stored
    floats, integers = stored.dtype.kind == "f", stored.dtype.kind in "iu"
    if (wanted.is_float and floats) or (not wanted.is_float and integers and wanted.name != "bool"):
        with np.errstate(over="ignore"):
            return stored.astype(wanted.numpy)
    return None


def _beyond(stored: NDArray[Any], values: NDArray[Any]) -> int:
    """How many values their new dtype does not reach."""
    if values is stored:
        return 0
    if stored.dtype.kind in "iu":
        return int(np.count_nonzero(values != stored))
    wide = values.astype(np.float64)
    return int(np.count_nonzero(np.isfinite(stored) & ~np.isfinite(wide)))


def _is_view_of(stored: np.dtype[Any], wanted: DType) -> bool:
    """Whether a file's dtype stands for one that .npy files cannot name."""
    same_size = stored.itemsize == wanted.itemsize
    return _nameless(wanted) and same_size and stored.kind in "uV"


def _nameless(wanted: DType) -> bool:
    """Whether a dtype is none of numpy's own (its kind may be V, as a bf16's, or f)."""
    return wanted.numpy.isbuiltin != 1


def _how_to_store(wanted: DType) -> tuple[str, ...]:
    if not _nameless(wanted):
        return ()
    bits = 8 * wanted.itemsize
    return (f"store an array of {wanted} as np.save(FILE, array.view(np.uint{bits})), or as fp32",)
