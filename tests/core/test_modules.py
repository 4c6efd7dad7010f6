"""User files as modules: identity, isolation, and errors that point into the user's text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from npusim.core.errors import InputError, NoPlan, Problem
from npusim.core.modules import load_module, member, placing_errors


def write(folder: Path, text: str, name: str = "net.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_same_file_same_module_until_it_changes(tmp_path):
    path = write(tmp_path, "class Thing: pass\n")
    first = load_module(path)
    assert load_module(path) is first
    assert sys.modules[first.__name__] is first
    write(tmp_path, "class Thing: pass\nVERSION = 2\n")
    assert load_module(path).VERSION == 2
    assert not hasattr(first, "VERSION")


def test_two_files_of_one_name_do_not_meet(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = load_module(write(tmp_path / "a", "WHO = 'a'\n"))
    second = load_module(write(tmp_path / "b", "WHO = 'b'\n"))
    assert (first.WHO, second.WHO) == ("a", "b")


def test_its_folder_does_not_join_the_search_path(tmp_path):
    write(tmp_path, "x = 1\n", "neighbour.py")
    with pytest.raises(InputError, match="No module named 'neighbour'") as error:
        load_module(write(tmp_path, "import neighbour\n"))
    assert str(tmp_path) not in sys.path
    assert f"{tmp_path / 'net.py'}:1:" in str(error.value)


CATALOGUE = """
import importlib
from pathlib import Path
import npusim.library
from npusim.core import modules

root = Path({root!r})
npusim.library.__path__ = [str(root)]
modules.ROOT = root
module = modules.load_module(root / "mapping/plans/shipped.py")
imported = importlib.import_module("npusim.library.mapping.plans.shipped")
print(module.__name__, imported.Thing is module.Thing)
"""


def test_catalogue_file_by_path_is_the_catalogues_module(tmp_path, run_python):
    (tmp_path / "mapping" / "plans").mkdir(parents=True)
    write(tmp_path / "mapping" / "plans", "class Thing: pass\n", "shipped.py")
    printed = run_python(CATALOGUE.format(root=str(tmp_path)))
    assert printed.split() == ["npusim.library.mapping.plans.shipped", "True"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = = 2\n", "net.py:2:5: SyntaxError: invalid syntax\n    y = = 2\n        ^"),
        ("x = 1\n1 / 0\n", "net.py:2: ZeroDivisionError: division by zero\n    1 / 0"),
        ("import no_such_thing\n", "net.py:1: ModuleNotFoundError: No module named"),
        ("def f():\n    raise KeyError('k')\n\n\nf()\n", "net.py:2: KeyError: 'k'"),
        ("import sys\nsys.exit(3)\n", "net.py:2: SystemExit: 3"),
        ("class X(BaseException):\n    pass\n\n\nraise X('k')\n", "net.py:5: X: k"),
        ("x = '\x00'\n", "SyntaxError: source code string cannot contain null bytes"),
        ("open('/no/such/file')\n", "net.py:1: No such file or directory"),
        (
            "from npusim.core.dtypes import dtype\n\ndtype('bf17')\n",
            "net.py:3: unknown dtype 'bf17'\n    dtype('bf17')\n  nearest: bf16",
        ),
    ],
)
def test_errors_point_into_the_file_and_leave_nothing_behind(tmp_path, text, message):
    path = write(tmp_path, text)
    before = set(sys.modules)
    with pytest.raises(InputError) as error:
        load_module(path)
    assert message in str(error.value)
    assert not [n for n in set(sys.modules) - before if n.startswith("npusim_user")]


def test_error_that_the_file_itself_raises_keeps_its_words(tmp_path):
    text = "from npusim.core.errors import InputError\n\nraise InputError('rows: 3 is too few')\n"
    with pytest.raises(InputError) as error:
        load_module(write(tmp_path, text))
    assert str(error.value) == "rows: 3 is too few"


def test_missing_file_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="No such file or directory"):
        load_module(tmp_path / "absent.py")


def test_exit_code_of_the_original_error_is_kept(tmp_path):
    with pytest.raises(NoPlan, match="out of bounds"), placing_errors(tmp_path / "plan.py"):
        raise NoPlan(Problem("out of bounds"))


def test_member_names_the_nearest_of_the_files_own(tmp_path):
    text = "from __future__ import annotations\nimport os\nfrom pathlib import Path\nplam = 1\n"
    module = load_module(write(tmp_path, text))
    assert member(module, "plam", "is needed") == 1
    with pytest.raises(InputError) as error:
        member(module, "plan", "a plan file must hold")
    message = "defines no 'plan', which a plan file must hold\n  nearest: plam\n  allowed: plam"
    assert str(error.value) == f"{tmp_path / 'net.py'}: {message}"


def test_all_public_names_come_with_a_star():
    names: dict[str, object] = {}
    exec("from npusim import *", names)
    assert {"Plan", "on", "kernel", "GraphBuilder", "vector"} <= names.keys()


def test_a_mistake_in_the_catalogue_is_not_the_users(tmp_path, monkeypatch):
    monkeypatch.setattr("npusim.core.modules.ROOT", tmp_path)
    for folder, kind in (("mapping", ZeroDivisionError), ("workloads", KeyError)):
        (tmp_path / folder).mkdir()
        file = write(tmp_path / folder, "x = 1\n")
        with pytest.raises(kind), placing_errors(file):
            raise kind
    with pytest.raises(InputError, match="ZeroDivisionError"), placing_errors(write(tmp_path, "")):
        raise ZeroDivisionError
