"""Every numbered assumption is cited where the code makes it, and no other is."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def test_no_number_is_given_twice():
    assert len(set(written())) == len(written()) > 30


def test_the_code_cites_each_of_them():
    sources = [*(CHECKOUT / "npusim").rglob("*.py"), *(CHECKOUT / "mapping").rglob("*.py")]
    cited = {
        number
        for source in sources
        for group in re.findall(r"\((A\d+(?:, A\d+)*)\)", source.read_text("utf-8"))
        for number in group.split(", ")
    }
    assert cited == set(written())


def written() -> list[str]:
    text = (CHECKOUT / "docs" / "assumptions.md").read_text("utf-8")
    return re.findall(r"^- \*\*(A\d+)\.", text, re.MULTILINE)
