"""What is shown of a run on other machines."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import pytest

from npusim.measure.whatif_result import (
    Confirmation,
    Confirmations,
    Effect,
    Growth,
    Sensitivity,
    Skipped,
)
from npusim.report import whatif
from npusim.report.text import plain

GREW = Growth(what="dram_bandwidth", core_cycles=300, layer="fc1", layer_core_cycles=200)
CAUSE = "the same addresses fall on other banks"


def effect(field, after, change, anomaly=False):
    return Effect(
        field=field, before=10, after=after, faster=None, cycles=1000, time_s=1e-6, change=change,
        anomaly=anomaly, grew=GREW if anomaly else None, cause=CAUSE if anomaly else None,
    )  # fmt: skip


FOUND = Sensitivity(
    mode="fixed", cycles=1000, time_s=1e-6,
    effects=(
        effect("dram.channels", 5, 0.5),
        effect("dram.channels", 20, -0.25),
        effect("core.sram.banks", 20, 0.0004, anomaly=True),
        effect("core.sram.banks", 5, 0.0),
    ),
    skipped=(Skipped(field="cores", factor=0.5, reason="no room"),),
    anomalies=1,
)  # fmt: skip
ROW = Confirmation(
    layer="fc1", rank="bottleneck", what="matrix",
    fields=("core.matrix.rates.bf16 1.0 -> 2.0", "core.matrix.rates.int8 2.0 -> 4.0"),
    layer_cycles_before=1000.0, layer_cycles_after=600.0, class_core_cycles_before=800,
    class_core_cycles_after=400, total_cycles_after=700, followed=1.0, confirmed=True, note="",
)  # fmt: skip
CONFIRMED = Confirmations(share=0.9, layers=1, left_out=2, rows=(ROW,))


def shown(result, full):
    return "\n".join(plain(whatif.parts(result, full), 160))


@pytest.fixture
def asked(result):
    return result.model_copy(update={"sensitivity": FOUND, "confirmations": CONFIRMED})


def test_nothing_is_shown_that_nobody_asked_for(result):
    assert shown(result, full=True) == ""


def test_small_changes_are_counted_and_anomalies_always_listed(asked):
    text = shown(asked, full=False)
    rows = [line.split() for line in text.splitlines()]
    assert ["dram.channels", "10", "5", "+50.00", "%", "1,000"] in rows
    assert "ANOMALY: dram_bandwidth +300 core-cycles, +200 of them in fc1" in text
    assert "1 change below 0.1 % not listed" in text
    assert "1 anomaly: a better machine, a longer run" in text
    assert "  core.sram.banks: the same addresses fall on other banks" in text
    assert "  cores x 0.5: no room" in text
    assert text.count("core.sram.banks ") == 1
    assert shown(asked, full=True).count("core.sram.banks ") == 2


def test_a_confirmed_bottleneck(asked):
    text = shown(asked, full=False)
    assert "core.matrix.rates.bf16 1.0 -> 2.0 and 1 more" in text
    line = next(line for line in text.splitlines() if line.startswith("fc1"))
    assert line.split()[-5:] == ["1,000", "600", "100.0", "%", "yes"]
    assert "1 layer that make up 90 % of the run, 2 left out" in text


def test_the_picture_is_svg_and_always_the_same():
    first = whatif.picture(FOUND)
    assert xml.fromstring(first).tag.endswith("svg")
    assert whatif.picture(FOUND) == first
    assert "<dc:date>" not in first
