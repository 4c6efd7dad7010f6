"""What a result says about operands that meet in banks."""

from __future__ import annotations

import pytest

from npusim.machine.banks import bank_params
from npusim.measure.operands import _padding, operand_conflicts
from npusim.report.conflicts import conflicts

STRAIGHT = "core.matrix.transposer=false"


@pytest.fixture(scope="module")
def attention(finished):
    return finished("llama_block", "seq=128 hidden=512 heads=4 kv_heads=2 ffn=512", hw_set=STRAIGHT,
                    timing_only=True)  # fmt: skip


def test_layers_name_the_operand_its_pitch_and_what_would_help(attention):
    layers = {layer.name: layer for layer in attention.result.layers}
    (found,) = layers["attention"].operand_conflicts
    assert (found.operand, found.buffer, found.pitch_bytes) == ("B", "k", 256)
    assert found.factor == found.cycles / found.accesses > 10
    assert found.pad_bytes == 64
    assert found.padded_factor == 4
    assert found.swizzled_factor == pytest.approx(4, rel=0.15)
    assert layers["attention"].stall_cycles["bank_conflict"] > 0
    assert layers["q"].operand_conflicts == ()


def test_the_report_has_a_row_for_it(attention):
    table = conflicts(attention.result)
    assert table is not None
    ((layer, operand, buffer, *_, pitch, remedy),) = table.rows
    assert (layer, operand, buffer, pitch) == ("attention", "B", "k", "256 B")
    assert remedy == "rows padded by 64 B: 4.00x; a swizzle: 4.25x"


def test_the_least_that_accesses_take_is_no_conflict(finished):
    result = finished("llama_block", "seq=128 hidden=512 heads=4 kv_heads=2 ffn=512",
                      timing_only=True).result  # fmt: skip
    assert not any(layer.operand_conflicts for layer in result.layers)
    assert conflicts(result) is None


def test_a_swizzle_leaves_little_and_is_not_advised_twice(finished):
    made = finished("llama_block", "seq=128 hidden=512 heads=4 kv_heads=2 ffn=512",
                    hw_set=f"{STRAIGHT} core.sram.swizzle=true", timing_only=True)  # fmt: skip
    for layer in made.result.layers:
        for found in layer.operand_conflicts:
            assert found.swizzled_factor is None
            assert found.factor < 4.6


def test_advice_holds(attention):
    """Fetching the padded box takes what the advice says, and no smaller padding does as well."""
    timeline, machine = attention.timeline, attention.machine
    p, layers = bank_params(machine.core.sram), operand_conflicts(timeline, machine)
    assert layers
    for use in timeline.conflicts.uses:
        for number in set(use.fetch[use.fetch >= 0].tolist()):
            fetch, box = timeline.conflicts.fetches[number], timeline.conflicts.boxes[number]
            if fetch.lost == 0:
                continue
            pad, factor = _padding(fetch, box, use.make, p)
            assert pad is not None and factor is not None
            for words in range(1, pad // p.width + 1):
                again = use.make(box.padded(fetch.pitch_bytes, words * p.width), p)
                taken = again.cycles / (again.accesses * again.slot)
                assert taken == factor if words * p.width == pad else taken > factor
