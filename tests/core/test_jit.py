"""Compiled code is cached, never stale, and never fails for want of a cache."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest

from npusim.core import jit as module
from npusim.core.jit import jit, jit_inline, source_hash

SUM = """
from npusim.core.jit import jit
from npusim.other.callee import double
from npusim.other import (
    constants,
)

@jit
def compute(x):
    return double(x) + constants.STEP
"""
CALLEE = """
from npusim.core.jit import jit

@jit
def double(x):
    return 2 * x
"""
RUN = """
from npusim.caller import compute
print(compute(10), sum(compute.stats.cache_hits.values()), compute.stats.cache_path)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package with this decorator, a compiled caller and a callee in another file."""
    root = tmp_path / "site" / "npusim"
    for folder in (root, root / "core", root / "other"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
    shutil.copy(module.__file__, root / "core" / "jit.py")
    (root / "caller.py").write_text(SUM)
    (root / "other" / "callee.py").write_text(CALLEE)
    (root / "other" / "constants.py").write_text("STEP = 1\n")
    (root / "bystander.py").write_text("ANSWER = 42\n")
    return root


def run(run_python, package: Path, code: str = RUN, **env: str) -> tuple[int, int, str]:
    printed = run_python(code, path=package.parent, env={"NUMBA_CACHE_DIR": "", **env})
    value, hits, path = printed.split(maxsplit=2)
    return int(value), int(hits), path.strip()


def test_second_process_compiles_nothing(run_python, package, tmp_path):
    base = str(tmp_path / "cache")
    assert run(run_python, package, NUMBA_CACHE_DIR=base)[:2] == (21, 0)
    value, hits, path = run(run_python, package, NUMBA_CACHE_DIR=base)
    assert (value, hits) == (21, 1)
    assert Path(path).is_relative_to(base)


def test_changed_callee_in_another_file_is_not_run_stale(run_python, package, tmp_path):
    base = str(tmp_path / "cache")
    assert run(run_python, package, XDG_CACHE_HOME=base)[0] == 21
    (package / "other" / "callee.py").write_text(CALLEE.replace("2 * x", "3 * x"))
    assert run(run_python, package, XDG_CACHE_HOME=base)[0] == 31


def test_hash_covers_what_compiled_code_sees_and_nothing_else(package, monkeypatch):
    before = source_hash(package)
    (package / "bystander.py").write_text("ANSWER = 43\n")
    assert source_hash(package) == before
    (package / "other" / "constants.py").write_text("STEP = 2\n")
    constants = source_hash(package)
    assert constants != before
    jit_file = package / "core" / "jit.py"
    jit_file.write_text(jit_file.read_text() + "\n")
    assert source_hash(package) not in (before, constants)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert source_hash(package) not in (before, constants)


def test_falls_back_to_the_temporary_folder_then_to_no_cache(run_python, package, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder can be made here")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    blocked = {"NUMBA_CACHE_DIR": str(in_the_way), "XDG_CACHE_HOME": str(in_the_way / "deeper")}
    value, _, path = run(run_python, package, **blocked, TMPDIR=str(temporary))
    assert value == 21
    assert Path(path).is_relative_to(temporary)
    nowhere = f"import tempfile; tempfile.tempdir = {str(in_the_way)!r}\n" + RUN
    printed = run_python(nowhere, path=package.parent, env=blocked)
    assert printed.split() == ["21", "0", "None"]
    assert not list(package.rglob("*.nb[ic]"))


@pytest.fixture
def sealed(package: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The package installed read-only and a home that cannot be written; where all that is."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    below = [*package.parent.rglob("*"), package.parent, home]
    for path in below:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield {"HOME": str(home), "XDG_CACHE_HOME": "", "TMPDIR": str(temporary)}
    for path in below:
        path.chmod(0o755)


def test_read_only_installation_and_unwritable_home(run_unprivileged, package, sealed):
    """Compiled once into the temporary folder, loaded from there by the next process."""
    installed = sorted(package.rglob("*"))
    for folder in (package, package / "core", Path(sealed["HOME"])):
        refused = f"""
try:
    open({str(folder / "new")!r}, "w")
except PermissionError:
    print("refused")
"""
        assert run_unprivileged(refused, path=package.parent).strip() == "refused"
    for hits in (0, 1):
        value, found, path = run(run_unprivileged, package, **sealed)
        assert (value, found) == (21, hits)
        assert Path(path).is_relative_to(sealed["TMPDIR"])
    assert sorted(package.rglob("*")) == installed
    assert not list(Path(sealed["HOME"]).iterdir())


def test_nowhere_to_write_is_no_reason_to_fail(run_unprivileged, package, sealed):
    """Neither home nor a temporary folder: compiled for this process alone."""
    nowhere = f"import tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc']\n{RUN}"
    for _ in range(2):
        assert run(run_unprivileged, package, nowhere, **sealed) == (21, 0, "None")
    assert not list(Path(sealed["TMPDIR"]).iterdir())


def test_no_temporary_folder_at_all(monkeypatch, tmp_path):
    def missing() -> str:
        raise FileNotFoundError

    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder can be made here")
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(in_the_way))
    monkeypatch.setattr(tempfile, "gettempdir", missing)
    assert module.cache_folder.__wrapped__() is None


def test_a_cache_in_the_temporary_folder_is_known_as_such(run_python, package, tmp_path):
    ask = "from npusim.core.jit import cache_folder, is_temporary; print(is_temporary())"
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder can be made here")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    places = {"NUMBA_CACHE_DIR": str(temporary), "TMPDIR": str(temporary)}
    assert run_python(ask, path=package.parent, env=places).strip() == "False"
    places |= {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(in_the_way)}
    assert run_python(ask, path=package.parent, env=places).strip() == "True"


def test_folder_that_others_may_write_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder = tmp_path / f"npusim-{source_hash(module.PACKAGE)}"
    folder.mkdir()
    folder.chmod(0o777)
    assert module.cache_folder.__wrapped__() != folder
    folder.chmod(0o700)
    assert module.cache_folder.__wrapped__() == folder


def test_old_folders_are_removed_and_strangers_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for number in range(module._KEPT_FOLDERS + 5):
        (tmp_path / f"npusim-{number:024x}").mkdir()
    (tmp_path / "stranger").mkdir()
    used = module.cache_folder.__wrapped__()
    left = {p.name for p in tmp_path.iterdir()}
    assert {used.name, "stranger"} <= left
    assert len(left) == module._KEPT_FOLDERS + 1


def test_without_jit_it_is_the_plain_function(run_python, package):
    code = "from npusim.caller import compute; print(type(compute).__name__, compute(1))"
    printed = run_python(code, path=package.parent, env={"NUMBA_DISABLE_JIT": "1"})
    assert printed.split() == ["function", "3"]


def test_settings_and_no_cache_outside_the_package():
    given = numba.config.CACHE_DIR

    @jit_inline
    def half(x):
        return x // 2

    @jit
    def ratio(a, b):
        return half(a) / b

    assert ratio(4, 2) == 1.0
    assert ratio(4, 0) == float("inf")
    assert ratio.targetoptions["nogil"]
    assert ratio.stats.cache_path is None
    assert given == numba.config.CACHE_DIR
