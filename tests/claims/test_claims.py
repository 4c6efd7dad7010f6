"""Every figure that the documents quote is recomputed; every function here has its figure."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from inspect import isfunction
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
Figure = Callable[[], float]


def beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


QUOTED = beside("quoted")


def functions(module: ModuleType) -> Mapping[str, Figure]:
    """The claims that a module recomputes: its public functions."""
    return {
        name: value
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def wrong(texts: Mapping[str, str], recompute: Mapping[str, Figure]) -> list[str]:
    """What is wrong with the figures of some documents; each value is computed once."""
    found = [figure for where, text in texts.items() for figure in QUOTED.quoted(text, where)]
    problems = []
    for name in sorted({figure.name for figure in found} | recompute.keys()):
        mine = [figure for figure in found if figure.name == name]
        if name not in recompute:
            problems += [f"{figure.place}: claim {name} has no function" for figure in mine]
        elif not mine:
            problems.append(f"{name}: no document quotes this figure")
        else:
            value = recompute[name]()
            problems += [
                f"{figure.place}: {name} is quoted as {figure.text}{figure.unit}, it is {value:g}"
                for figure in mine
                if not figure.agrees(value)
            ]
    return problems


def test_the_documents_quote_what_is_so():
    texts = {
        path.relative_to(CHECKOUT).as_posix(): path.read_text("utf-8")
        for path in QUOTED.documents(CHECKOUT)
    }
    assert "README.md" in texts
    assert wrong(texts, functions(beside("figures"))) == []


# ---------------------------------------------------------------- the mechanism itself

SAMPLE = """\
The product takes 1.02x <!-- claim: over_floor --> the floor: 147,248 cycles <!-- claim: cycles -->.

| what | share | bytes |
|---|---|---|
| matrix | 91.3 % <!-- claim: matrix_share --> | 3.5 MiB of 4 <!-- claim: limit --> |

```
total 147,248 cycles, 91.3 % of them in the array
```
<!-- claim: cycles 147,248 --> <!-- claim: matrix_share 91.3 % -->

Two on one line: 12 <!-- claim: dozen --> and 5.3 M <!-- claim: many -->.
A small one: 1.5e-3 <!-- claim: small -->.
"""
VALUES = {
    "over_floor": 1.0249, "cycles": 147248, "matrix_share": 0.91349, "limit": 4, "dozen": 12,
    "many": 5_349_000, "small": 0.00154,
}  # fmt: skip


def values(**other: float) -> dict[str, Figure]:
    return {name: lambda value=value: value for name, value in {**VALUES, **other}.items()}


def test_figures_are_found_with_their_units():
    found = [(f.name, f.place, f.text, f.unit) for f in QUOTED.quoted(SAMPLE, "s.md")]
    assert found == [
        ("over_floor", "s.md:1", "1.02", ""), ("cycles", "s.md:1", "147,248", ""),
        ("matrix_share", "s.md:5", "91.3", "%"), ("limit", "s.md:5", "4", ""),
        ("cycles", "s.md:10", "147,248", ""), ("matrix_share", "s.md:10", "91.3", "%"),
        ("dozen", "s.md:12", "12", ""), ("many", "s.md:12", "5.3", "M"),
        ("small", "s.md:13", "1.5e-3", ""),
    ]  # fmt: skip


def test_figures_that_are_so_pass():
    assert wrong({"s.md": SAMPLE}, values()) == []


@pytest.mark.parametrize(
    ("name", "value", "places"),
    [
        ("over_floor", 1.0251, 1),  # 1.03 in the printed digits
        ("over_floor", 1.0149, 1),
        ("cycles", 147249, 2),
        ("matrix_share", 0.9136, 2),
        ("dozen", 12.6, 1),
        ("many", 5_351_000, 1),
        ("small", 0.0016, 1),
    ],
)
def test_a_figure_that_is_not_so_is_told_everywhere_it_stands(name, value, places):
    found = wrong({"s.md": SAMPLE}, values(**{name: value}))
    assert len(found) == places
    assert all(f"{name} is quoted as " in line and f"it is {value:g}" in line for line in found)


def test_a_claim_without_a_function_is_told():
    recompute = values()
    del recompute["dozen"]
    assert wrong({"s.md": SAMPLE}, recompute) == ["s.md:12: claim dozen has no function"]


def test_a_function_without_a_claim_is_told():
    found = wrong({"s.md": SAMPLE}, values(forgotten=1))
    assert found == ["forgotten: no document quotes this figure"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing here <!-- claim: x -->", "s.md:1: claim x follows no figure"),
        ("7 <!-- claim: a --> <!-- claim: b -->", None),
        ("```\n12\n```\n<!-- claim: x 13 -->", "13 does not stand in the code block above"),
        ("<!-- claim: x 13 -->", "13 does not stand"),
        ("```\n12\n```\n<!-- claim: x many -->", "many is no figure"),
        ("```\n12", "a code block does not end"),
    ],
)
def test_comments_without_a_figure_are_mistakes(text, message):
    if message is None:
        assert [f.text for f in QUOTED.quoted(text, "s.md")] == ["7", "7"]
        return
    with pytest.raises(ValueError, match=message):
        list(QUOTED.quoted(text, "s.md"))


def test_a_value_is_computed_once_however_often_it_is_quoted():
    calls = []
    wrong({"s.md": SAMPLE}, values() | {"cycles": lambda: calls.append(1) or 147248})
    assert calls == [1]


def test_public_functions_of_a_module_are_its_claims():
    module = ModuleType("sample")
    exec(
        "from math import sqrt\ndef ratio(): return 2\ndef _hidden(): return 3\nconstant = 4",
        module.__dict__,
    )
    assert list(functions(module)) == ["ratio"]
