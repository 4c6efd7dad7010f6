"""The model that a text names: of the catalogue, a Python file's, or an ONNX file's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from npusim.core.arguments import FLAG, call_sized, sizes_place
from npusim.core.catalog import find_file, folder
from npusim.core.errors import InputError, Place, Problem
from npusim.core.modules import load_module
from npusim.graph.ir import Graph


def load_model(text: str, sizes: Mapping[str, str]) -> tuple[Graph, list[str]]:
    """The graph that `text` names, built with `sizes`, and what to tell about the look-up.

    A Python file's model is its function named like the file, else its only public function
    annotated to return a Graph. In an ONNX file `sizes` bind open dimensions.
    """
    found = find_file("workloads", text, (".py", ".onnx"))
    notes = [found.note] if found.note else []
    if found.path.suffix == ".onnx":
        from npusim.graph.onnx_import import load_onnx

        return load_onnx(found.path, sizes), notes
    module = load_module(found.path)
    build = _model_function(module, found.path)
    graph = _built(build, sizes, found.path.resolve())
    if not isinstance(graph, Graph):
        message = f"{build.__name__} returned a {type(graph).__name__}, not a Graph"
        raise InputError(Problem(message, Place(str(found.path))))
    if missing := graph.missing():
        message = f"{build.__name__} names tensors that its graph lacks: {', '.join(missing)}"
        raise InputError(Problem(message, Place(str(found.path))))
    return graph, notes


def _built(build: Callable[..., Any], sizes: Mapping[str, str], path: Path) -> Any:
    """What the function makes of the sizes; where the catalogue's refuses them, they are at fault.

    A mistake in a file of the user's keeps its line there.
    """
    try:
        return call_sized(build, sizes, path)
    except InputError as error:
        if not (sizes and path.is_relative_to(folder("workloads"))):
            raise
        place = sizes_place(sizes)
        raise InputError(*(_at(place, problem) for problem in error.problems)) from error


def _at(place: Place, problem: Problem) -> Problem:
    """The problem at the flag, unless it points there already."""
    placed = problem.place is not None and problem.place.file == FLAG
    return problem if placed else replace(problem, place=place)


def _model_function(module: ModuleType, path: Path) -> Callable[..., Any]:
    """The function of a file that makes its model."""
    functions = {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_"
    }
    if path.stem in functions:
        return functions[path.stem]
    making = {name: f for name, f in functions.items() if _returns_graph(f)}
    if len(making) == 1:
        return next(iter(making.values()))
    wanted = f"def {path.stem}(*, ...) -> Graph"
    if making:
        message = f"defines several models, {', '.join(sorted(making))}, none called {path.stem!r}"
    else:
        message = f"defines no model: no function called {path.stem!r}, none annotated -> Graph"
    listed = ", ".join(sorted(functions)) or "none"
    raise InputError(
        Problem(message, Place(str(path)), (f"expected: {wanted}", f"functions: {listed}"))
    )


def _returns_graph(function: Callable[..., Any]) -> bool:
    found = function.__annotations__.get("return")
    return found is Graph or (isinstance(found, str) and found.rpartition(".")[2] == "Graph")
