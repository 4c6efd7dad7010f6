"""Python files of the user's: loaded once, found by name, their errors placed in their text."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from npusim.core.errors import (
    InputError,
    NpusimError,
    Place,
    Problem,
    choose_from,
    source_place,
)
from npusim.library import ROOT

_CATALOGUE = ("mapping", "workloads")


def load_module(path: str | Path) -> ModuleType:
    """The module in a Python file.

    A file of the catalogue is the catalogue's module, so that its classes exist once. Any other
    gets a name made of its path and content: loading it again gives the same module until the
    file changes. Its folder does not join sys.path.
    Raises InputError with file and line for whatever goes wrong inside.
    """
    file = Path(path).resolve()
    with placing_errors(file):
        if file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in _CATALOGUE:
            dotted = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            return importlib.import_module(f"npusim.library.{dotted}")
        return _load_outside(file)


def _load_outside(file: Path) -> ModuleType:
    digest = hashlib.blake2b(str(file).encode("utf-8", "surrogateescape"), digest_size=8)
    digest.update(file.read_bytes())
    name = f"npusim_user_{digest.hexdigest()}_{file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def member(module: ModuleType, name: str, purpose: str) -> Any:
    """The module's attribute `name`; `purpose` says in an InputError what it is wanted for."""
    if hasattr(module, name):
        return getattr(module, name)
    message = f"defines no {name!r}, which {purpose}"
    hints = choose_from(name, _own_names(module))
    raise InputError(Problem(message, Place(str(module.__file__)), hints))


def _own_names(module: ModuleType) -> list[str]:
    """Public names that the file itself gives to something."""
    imported = (ModuleType, type(annotations))
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, imported)
        and not (isinstance(value, type | FunctionType) and value.__module__ != module.__name__)
    ]


@contextmanager
def placing_errors(file: Path) -> Iterator[None]:
    """Turn any exception into an InputError placed at the last line of `file` that led to it.

    An error of ours keeps its kind and its places, and its words alone if `file` raised it. What
    goes wrong in a file of the catalogue is no mistake of the user's, and passes.
    """
    try:
        yield
    except NpusimError as error:
        if Path(traceback.extract_tb(error.__traceback__)[-1].filename) == file:
            raise
        place = _last_line_in(file, error)
        raise type(error)(*(replace(p, place=p.place or place) for p in error.problems)) from error
    except SyntaxError as error:
        raise InputError(_syntax_problem(file, error)) from error
    except OSError as error:
        place = _last_line_in(file, error) or Place(str(file))
        raise InputError(Problem(f"{error.strerror or error}", place)) from error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if any(file.is_relative_to(ROOT / folder) for folder in ("workloads", "mapping")):
            raise
        place = _last_line_in(file, error) or Place(str(file))
        raise InputError(Problem(f"{type(error).__name__}: {error}", place)) from error


def _last_line_in(file: Path, error: BaseException) -> Place | None:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno and Path(frame.filename) == file
    ]
    return source_place(file, lines[-1]) if lines else None


def _syntax_problem(file: Path, error: SyntaxError) -> Problem:
    message = f"{type(error).__name__}: {error.msg}"
    if error.filename is None or error.lineno is None:
        return Problem(message, Place(str(file)))
    place = source_place(error.filename, error.lineno, error.offset or None)
    return Problem(message, place)
