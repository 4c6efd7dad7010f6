"""Results that were written before: found and read back."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from npusim.api.folder import LATEST
from npusim.core.errors import InputError, Place, Problem
from npusim.measure.result import SCHEMA_VERSION, Result

FILE = "result.json"


def find_result(out: Path) -> Path:
    """The results folder below `out` that was written last. Raises InputError without any."""
    written = [path for path in out.glob(f"*@*/[!.]*/{FILE}") if path.parent.name != LATEST]
    if not written:
        hint = "`npusim run` writes one"
        raise InputError(Problem("no results here", Place(str(out)), (hint,)))
    return max(written, key=lambda path: (os.stat(path).st_mtime_ns, str(path))).parent


def read_result(path: Path) -> Result:
    """The result in a results folder, the latest below MODEL@HARDWARE, or a result.json.

    Raises InputError if it is none.
    """
    file = _document(path)
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(f"cannot be read: {reason}", Place(str(file)))) from None
    try:
        return Result.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "document"
        message = f"is no result of schema version {SCHEMA_VERSION}: {where}: {first['msg']}"
        raise InputError(Problem(message, Place(str(file)))) from None


def _document(path: Path) -> Path:
    """The file itself; `latest` may be a file that names a folder, and stands for its own."""
    if (path / LATEST).exists():
        path = path / LATEST
    if path.name == LATEST and path.is_file():
        path = path.parent / path.read_text("utf-8").strip()
    return path / FILE if path.is_dir() else path
