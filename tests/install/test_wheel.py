"""The installed package, far from the checkout: what is in it, and what it finds."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
CATALOGUE = ("hwconfigs", "mapping", "workloads")


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, source: Path, into: Path) -> Path:
    """The sdist or wheel that the sources of a folder give."""
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", into, cwd=source)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", CHECKOUT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Runs Python code in a fresh environment with the wheel, from an empty folder.

    The environment borrows the libraries of the one that runs the tests, but not its npusim: a
    folder named in a .pth file comes after the wheel, and its own .pth files are not read.
    """
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    site = Path(
        run(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home
        ).strip()
    )
    borrowed = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    empty = tmp_path_factory.mktemp("elsewhere")
    return lambda code: run(python, "-P", "-W", "error", "-c", code, cwd=empty)


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def sources() -> set[str]:
    """What the wheel must hold: the engine, and the catalogue below npusim/library."""
    engine = {str(p.relative_to(CHECKOUT)) for p in (CHECKOUT / "npusim").rglob("*.[pc][ys]*")}
    shelves = (
        p for f in CATALOGUE for p in (CHECKOUT / f).rglob("*") if p.suffix in (".py", ".yaml")
    )
    return engine | {f"npusim/library/{p.relative_to(CHECKOUT)}" for p in shelves}


def test_wheel_holds_engine_and_catalogue_and_nothing_else(wheel):
    assert names(wheel) == sources()
    assert "npusim/library/hwconfigs/npu_a.yaml" in names(wheel)


def test_wheel_from_the_sdist_is_the_same(wheel, tmp_path):
    sdist = build("sdist", CHECKOUT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build("wheel", source, tmp_path / "wheel")
    assert names(again) == names(wheel)


def test_installed_package_is_the_wheels(installed):
    code = "import npusim, npusim.library as l; print(npusim.__file__); print(l.ROOT)"
    module, root = installed(code).splitlines()
    assert not Path(module).is_relative_to(CHECKOUT)
    assert Path(root) == Path(module).parent / "library"


def test_catalogue_is_found_by_name_and_by_path(installed):
    code = """
from npusim.core.catalog import find_file, folder, listing
from npusim.core.modules import load_module
from npusim.hw.loader import load_machine
for text in ("npu_a", "npu_a.yaml", "configs/npu_a.yaml", "hwconfigs/npu_edge.yaml"):
    found = find_file("hwconfigs", text, (".yaml",))
    print(load_machine(found.path).machine.name, found.note)
import npusim.library.workloads.llama_block as imported
by_path = load_module(folder("workloads") / "llama_block.py")
print(by_path is imported, [name for name, _ in listing("workloads")])
"""
    lines = installed(code).splitlines()
    note = "does not exist: using hwconfigs/npu_a.yaml of the catalogue"
    assert lines[:3] == [
        "npu_a None",
        f"npu_a npu_a.yaml {note}",
        f"npu_a configs/npu_a.yaml {note}",
    ]
    assert lines[3].startswith("npu_edge hwconfigs/npu_edge.yaml does not exist")
    models = sorted(p.stem for p in (CHECKOUT / "workloads").glob("[!_]*.py"))
    assert lines[4] == f"True {models}"


def test_every_module_of_the_catalogue_imports(installed):
    modules = [
        ".".join(("npusim", "library", *path.relative_to(CHECKOUT).with_suffix("").parts))
        for shelf in ("mapping", "workloads")
        for path in sorted((CHECKOUT / shelf).rglob("[!_]*.py"))
    ]
    assert len(modules) >= 9
    installed(f"import importlib\nfor name in {modules!r}: importlib.import_module(name)")


def test_catalogue_is_no_top_level_package(installed):
    code = """
import importlib.util
print([importlib.util.find_spec(name) for name in ("mapping", "workloads", "hwconfigs", "tests")])
"""
    assert installed(code).strip() == "[None, None, None, None]"
