"""Every numbered assumption is cited where the code makes it, and no other is."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TEXT = (CHECKOUT / "docs" / "assumptions.md").read_text("utf-8")


def test_no_number_is_given_twice():
    numbers = re.findall(r"^- \*\*(A\d+)\.", TEXT, re.MULTILINE)
    assert len(set(numbers)) == len(numbers) > 30


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
    """Those that hold: the ones that were replaced are no longer cited."""
    return re.findall(r"^- \*\*(A\d+)\.(?!\*\* Replaced)", TEXT, re.MULTILINE)
