"""Names, paths and fall-backs: what finds what, and what the errors say."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusim.core import catalog
from npusim.core.catalog import find_file, listing
from npusim.core.errors import InputError
from npusim.library import ROOT

YAML = (".yaml", ".yml")
MODEL = (".py", ".onnx")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue of two machines, two models and a plan; the working folder is an empty one."""
    root = tmp_path / "catalogue"
    for name, text in {
        "hwconfigs/big.yaml": "name: big\ndescription: A large machine.\n",
        "hwconfigs/small.yaml": "name: small\n",
        "workloads/__init__.py": '"""Models."""\n',
        "workloads/net.py": '"""A small net.\n\nMore words.\n"""\n',
        "workloads/_shared.py": '"""Not a model."""\n',
        "mapping/plans/fused.py": "plan = 1\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(catalog, "ROOT", root)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return root


def test_bare_name_is_the_catalogues_even_beside_a_local_file(shelf):
    Path("big.yaml").write_text("name: mine\n")
    assert find_file("hwconfigs", "big", YAML).path == shelf / "hwconfigs/big.yaml"
    assert find_file("plans", "fused", (".py",)).path == shelf / "mapping/plans/fused.py"


def test_path_that_exists_is_that_file(shelf):
    Path("big.yaml").write_text("name: mine\n")
    found = find_file("hwconfigs", "big.yaml", YAML)
    assert (found.path, found.note, found.name) == (Path("big.yaml"), None, "big")


@pytest.mark.parametrize(
    ("kind", "text", "used"),
    [
        ("hwconfigs", "configs/big.yaml", "hwconfigs/big.yaml"),
        ("hwconfigs", "hwconfigs/big.yaml", "hwconfigs/big.yaml"),
        ("hwconfigs", "big.yaml", "hwconfigs/big.yaml"),
        ("hwconfigs", "./configs/big", "hwconfigs/big.yaml"),
        ("workloads", "workloads/net.py", "workloads/net.py"),
        ("plans", "mapping/plans/fused.py", "mapping/plans/fused.py"),
        ("plans", "plans/fused.py", "mapping/plans/fused.py"),
    ],
)
def test_missing_path_falls_back_and_says_so(shelf, kind, text, used):
    found = find_file(kind, text, YAML if kind == "hwconfigs" else (".py",))
    assert found.path == shelf / used
    assert found.note == f"{text} does not exist: using {used} of the catalogue"


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("hwconfigs", "mine/big.yaml", "mine/big.yaml: no such file"),
        ("hwconfigs", "../configs/big.yaml", "../configs/big.yaml: no such file"),
        ("hwconfigs", "/configs/big.yaml", "/configs/big.yaml: no such file"),
        ("hwconfigs", "configs/bog.yaml", "nearest: big"),
        ("hwconfigs", "bigg", "the catalogue has no machine 'bigg'\n  nearest: big"),
        ("hwconfigs", "", "the catalogue has: big, small"),
        ("workloads", "net.onnx", "net.onnx: no such file\n  nearest: net"),
        ("workloads", "_nothing", "the catalogue has: net"),
        ("plans", "x" * 5000, "the catalogue has no plan"),
    ],
)
def test_what_is_not_found_names_the_nearest(shelf, kind, text, message):
    with pytest.raises(InputError) as error:
        find_file(kind, text, YAML if kind == "hwconfigs" else MODEL)
    assert message in str(error.value)


def test_other_mistakes_are_told_apart(shelf):
    Path("net.tflite").write_text("")
    with pytest.raises(InputError, match=r"a model is a .py or .onnx file, not '.tflite'"):
        find_file("workloads", "net.tflite", MODEL)
    Path("folder.py").mkdir()
    with pytest.raises(InputError, match="is a folder, not a model file"):
        find_file("workloads", "folder.py", MODEL)
    Path("mine.py").write_text("")
    with pytest.raises(InputError, match="for the file of that name here, write mine.py"):
        find_file("workloads", "mine", MODEL)


def test_listing_imports_nothing(shelf):
    (shelf / "workloads/broken.py").write_text("raise SystemExit\n")
    assert listing("workloads") == [("broken", ""), ("net", "A small net.")]
    assert listing("hwconfigs") == [("big", "A large machine."), ("small", "")]


def test_the_shipped_catalogue_is_described():
    assert catalog.ROOT == ROOT
    machines = dict(listing("hwconfigs"))
    assert {"npu_a", "npu_edge"} <= machines.keys()
    kinds = ("hwconfigs", "workloads", "plans")
    assert [name for kind in kinds for name, line in listing(kind) if not line] == []


def test_looking_up_imports_nothing_heavy(run_python):
    code = """
import sys
from npusim.core import arguments, catalog
catalog.find_file("hwconfigs", "npu_a", (".yaml",))
print(sorted({"numpy", "numba", "onnx", "pydantic", "matplotlib", "yaml"} & set(sys.modules)))
"""
    assert run_python(code).strip() == "[]"
