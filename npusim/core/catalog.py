"""Finding what the user names: a file of their own, or one of the catalogue shipped with npusim."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from npusim.core.errors import InputError, Problem, nearest
from npusim.library import ROOT

Kind = Literal["hwconfigs", "dram", "workloads", "plans", "warps"]

_FOLDERS: dict[Kind, str] = {
    "hwconfigs": "hwconfigs",
    "dram": "hwconfigs/dram",
    "workloads": "workloads",
    "plans": "mapping/plans",
    "warps": "mapping/warps",
}
_NOUNS: dict[Kind, str] = {
    "hwconfigs": "machine",
    "dram": "DRAM standard",
    "workloads": "model",
    "plans": "plan",
    "warps": "warp kernel",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A file that exists; `note` says so if it is not the one the user named."""

    path: Path
    note: str | None = None

    @property
    def name(self) -> str:
        """The file's name without suffix: what the catalogue calls it."""
        return self.path.stem


def find_file(kind: Kind, text: str, suffixes: Sequence[str]) -> Found:
    """The file that `text` names: with a suffix or a slash a path, else the catalogue's name.

    `suffixes` are the allowed ones, preferred first. A path that does not exist falls back to the
    catalogue's file of the same name if its folder is none, `configs` or the catalogue's own.
    Raises InputError that names the nearest file of the catalogue.
    """
    named = Path(os.path.expanduser(text))
    if named.suffix or "/" in text or os.sep in text:
        return _find_path(kind, text, named, suffixes)
    shipped = _shipped(kind, text, suffixes)
    if shipped:
        return Found(shipped)
    local = [f"{text}{s}" for s in suffixes if os.path.isfile(f"{text}{s}")]
    here = (f"for the file of that name here, write {local[0]}",) if local else ()
    message = f"the catalogue has no {_NOUNS[kind]} {text!r}"
    raise InputError(Problem(message, hints=(*here, *_catalogue_hints(kind, text))))


def _find_path(kind: Kind, text: str, named: Path, suffixes: Sequence[str]) -> Found:
    if os.path.isfile(named):
        if named.suffix in suffixes:
            return Found(named)
        kinds = " or ".join(suffixes)
        raise InputError(f"{text}: a {_NOUNS[kind]} is a {kinds} file, not {named.suffix!r}")
    if os.path.isdir(named):
        raise InputError(f"{text}: is a folder, not a {_NOUNS[kind]} file")
    own = PurePosixPath(_FOLDERS[kind])
    if named.parent.as_posix() in (".", "configs", str(own), own.name):
        allowed = [named.suffix] if named.suffix in suffixes else [] if named.suffix else suffixes
        shipped = _shipped(kind, named.stem, allowed)
        if shipped:
            note = f"{text} does not exist: using {own / shipped.name} of the catalogue"
            return Found(shipped, note)
    raise InputError(Problem(f"{text}: no such file", hints=_catalogue_hints(kind, named.stem)))


def _shipped(kind: Kind, name: str, suffixes: Sequence[str]) -> Path | None:
    candidates = (folder(kind) / f"{name}{suffix}" for suffix in suffixes if name)
    return next((path for path in candidates if os.path.isfile(path)), None)


def _catalogue_hints(kind: Kind, name: str) -> tuple[str, ...]:
    known = names(kind)
    near = nearest(name, known)
    return (
        *((f"nearest: {near}",) if near else ()),
        f"the catalogue has: {', '.join(known) or 'nothing'}",
    )


def folder(kind: Kind) -> Path:
    """Where the catalogue's files of this kind lie."""
    return ROOT / _FOLDERS[kind]


def _files(kind: Kind) -> list[Path]:
    """The catalogue's files by name; one that begins with an underscore is for the others' use."""
    suffix = ".yaml" if kind in ("hwconfigs", "dram") else ".py"
    return sorted(p for p in folder(kind).glob(f"*{suffix}") if p.name[0] not in "_.")


def names(kind: Kind) -> list[str]:
    """What the catalogue calls its files of this kind."""
    return [path.stem for path in _files(kind)]


def listing(kind: Kind) -> list[tuple[str, str]]:
    """Name and one line of description of each file in the catalogue; nothing is imported."""
    return [(path.stem, _description(path)) for path in _files(kind)]


def sizes(name: str) -> str:
    """The sizes of a model of the catalogue and their defaults, as they are set."""
    path = folder("workloads") / f"{name}.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            given = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            texts = [f"{a.arg}={ast.unparse(d)}" if d else a.arg for a, d in given]
            return " ".join(texts).replace("'", "").replace('"', "")
    return ""


def _description(path: Path) -> str:
    """The first line of a Python file's docstring, or a machine's `description`."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        described = ast.get_docstring(ast.parse(text))
    else:
        import yaml

        described = yaml.load(text, yaml.CSafeLoader).get("description")
    return (described or "").strip().partition("\n")[0]
