"""The command that was probably meant by a name that stands alone: `npusim run mlp`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath

from npusim.core import catalog
from npusim.core.errors import nearest

#: Each flag that takes a name of the catalogue, what it finds there, and the verb of `show`.
_FLAGS: Mapping[str, tuple[catalog.Kind, str]] = {
    "--hw": ("hwconfigs", "hw"),
    "--model": ("workloads", "model"),
    "--plan": ("plans", "plan"),
}
#: A path of these can only be that.
_SUFFIXES = {".yaml": "--hw", ".yml": "--hw", ".onnx": "--model"}


def command(prog: str, text: str, flags: Collection[str]) -> tuple[str, ...]:
    """Hints: how a verb with these flags is told about `text`, and what else it can be told."""
    taking = [flag for flag in _FLAGS if flag in flags]
    flag, name = _flag(text, taking)
    how = f"try: {prog} {flag} {name}" if flag else f"see {prog} --help"
    about = flag or (taking[0] if len(taking) == 1 else None)
    if about is None or (flag and name == text):
        return (how,)
    return (how, f"the catalogue has: {', '.join(catalog.names(_FLAGS[about][0]))}")


def show(text: str) -> tuple[str, ...]:
    """Hints: the `npusim show` for a name of the catalogue, or of something like it."""
    flag, name = _flag(text, list(_FLAGS))
    return (f"try: npusim show {_FLAGS[flag][1]} {flag} {name}",) if flag else ()


def _flag(text: str, flags: Collection[str]) -> tuple[str | None, str]:
    """The flag that `text` belongs to, and the name or path to give it; None if to no flag."""
    if (suffix := PurePath(text).suffix) in _SUFFIXES:
        return (_SUFFIXES[suffix] if _SUFFIXES[suffix] in flags else None), text
    homes = {name: flag for flag in flags for name in catalog.names(_FLAGS[flag][0])}
    name = text if text in homes else nearest(text, homes)
    return (None, text) if name is None else (homes[name], name)
