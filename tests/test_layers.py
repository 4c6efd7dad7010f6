"""The shape of the house: imports go downwards only, files and functions stay short."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "npusim"

#: From the top down; packages in one row stand beside each other and do not see each other.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("api",),
    ("report", "serve"),
    ("tune", "validate"),
    ("measure",),
    ("check",),
    ("plan", "machine"),
    ("program",),
    ("hw",),
    ("graph",),
    ("core",),
)
DEPTH = {name: depth for depth, row in enumerate(LAYERS) for name in row}
#: The only modules that know where the catalogue lies.
CATALOGUE_KEEPERS = {"core/catalog.py", "core/modules.py"}
#: The only modules that know numba: one compiles, the other tells what has been compiled.
COMPILERS = {"core/jit.py", "core/compiled.py"}

LONGEST_FILE, LONGEST_FUNCTION = 500, 60
#: Functions that may be longer, with the reason; none should be.
LONG_FUNCTIONS: dict[str, str] = {}

SOURCES = sorted(PACKAGE.rglob("*.py"))
WRITTEN = sorted(
    path
    for folder in ("npusim", "mapping", "workloads", "experiments", "tests")
    for path in (CHECKOUT / folder).rglob("*.py")
)


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that is imported anywhere in a file, also inside functions, and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def parts_of(path: Path) -> tuple[str, ...]:
    return path.relative_to(PACKAGE).with_suffix("").parts


def misplaced(importer: str, imported: str) -> str | None:
    """Why the package `importer` may not import `imported`; None if it may."""
    parts = imported.split(".")
    if parts[0] != "npusim" or parts[1] in (importer, "__version__"):
        return None
    if parts[1] == "library":
        return "the catalogue is found by npusim.core.catalog only"
    if parts[1] not in DEPTH:
        return "the public names of npusim are for users"
    if importer not in DEPTH:
        return f"{importer} stands in no layer"
    if DEPTH[importer] >= DEPTH[parts[1]]:
        return f"{importer} stands {'beside' if DEPTH[importer] == DEPTH[parts[1]] else 'below'}"
    return None


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("plan", "npusim.program.builder.Builder", True),
        ("plan", "npusim.machine.order", False),
        ("machine", "npusim.plan.tiles", False),
        ("core", "npusim.hw.machine", False),
        ("graph", "npusim.core.errors", True),
        ("graph", "npusim.hw.machine", False),
        ("cli", "npusim.core.errors", True),
        ("report", "npusim.serve", False),
        ("hw", "npusim.library.workloads", False),
        ("hw", "npusim.Graph", False),
        ("api", "npusim.__version__", True),
        ("new", "npusim.core.errors", False),
        ("hw", "numpy", True),
    ],
)
def test_the_rule_itself(importer, imported, allowed):
    assert (misplaced(importer, imported) is None) == allowed


def test_imports_go_downwards_only():
    wrong = []
    for path in SOURCES:
        relative = path.relative_to(PACKAGE).as_posix()
        if relative in ("__init__.py", "library/__init__.py"):
            continue
        for imported, line in imports(ast.parse(path.read_text())):
            if imported == "npusim.library.ROOT" and relative in CATALOGUE_KEEPERS:
                continue
            why = misplaced(parts_of(path)[0], imported)
            if why:
                wrong.append(f"npusim/{relative}:{line}: imports {imported}: {why}")
    assert wrong == []


def test_every_package_stands_in_a_layer():
    found = {parts_of(path)[0] for path in SOURCES} - {"__init__", "__main__", "library"}
    assert found <= DEPTH.keys()


@pytest.mark.parametrize(
    ("banned", "exempt"), [("numba", COMPILERS), ("matplotlib.pyplot", set()), ("pylab", set())]
)
def test_banned_imports(banned, exempt):
    wrong = [
        f"{path.relative_to(CHECKOUT)}:{line}"
        for path in SOURCES
        if path.relative_to(PACKAGE).as_posix() not in exempt
        for imported, line in imports(ast.parse(path.read_text()))
        if imported == banned or imported.startswith(f"{banned}.")
    ]
    assert wrong == []


def test_importing_npusim_imports_the_standard_library_only(run_python):
    code = "import sys; before = set(sys.modules); import npusim; print(set(sys.modules) - before)"
    loaded = ast.literal_eval(run_python(code))
    assert {name for name in loaded if name.split(".")[0] not in sys.stdlib_module_names} == {
        "npusim"
    }


def test_every_public_name_is_found_and_draws_nothing(run_python):
    code = """
import sys
import npusim
values = [getattr(npusim, name) for name in npusim._HOME]
print(sorted({"matplotlib", "rich", "onnxruntime"} & set(sys.modules)))
"""
    assert run_python(code).strip() == "[]"


def lengths(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno
            yield f"{path.relative_to(CHECKOUT)}:{node.name}", node.end_lineno - node.lineno + 1


def test_files_stay_short():
    long = {
        str(path.relative_to(CHECKOUT)): count
        for path in WRITTEN
        if (count := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_functions_stay_short():
    long = {name: count for p in WRITTEN for name, count in lengths(p) if count > LONGEST_FUNCTION}
    assert long.keys() == LONG_FUNCTIONS.keys(), long
