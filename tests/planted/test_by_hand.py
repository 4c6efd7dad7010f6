"""Mistakes in an order placed by hand: races, deadlocks, and what they do to values."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusim.core.errors import IllegalProgram
from npusim.machine.order import shuffled

HAND = Path(__file__).with_name("hand")
NEG = ("Neg", [(80, 40)])
ROWS = {"rows": 8}

#: name -> kernel, (right), wrong, what the message says
MISTAKES = {
    "one slot used as if there were two": (
        "stream", 'X.n.size, slots=2, name="x")', 'X.n.size, slots=1, name="x")',
        ("race on x in sram of core 0", "vec", "load x"),
    ),
    "a slot loaded again before it has been read": (
        "stream", "                t.wait(work[before])", "                pass",
        ("race on x.", "read by", "written by"),
    ),
    "a result made before the slot has been stored": (
        "stream", "                t.wait(stores[before])", "                pass",
        ("race on y.", "read by", "written by"),
    ),
    "work that does not wait for its load": (
        "stream", "            t.wait(t.event())  # the tile is there\n", "",
        ("race on x.", "let #"),
    ),
    "a store that does not wait for the work": (
        "stream", "            t.wait(work[-1])  # the result is there\n", "",
        ("race on y.", "store y"),
    ),
    "waiting for the tile after next": (
        "stream", "before = i.index - 2", "before = i.index - 3", ("race on",),
    ),
    "a core that does not wait for another": (
        "handed", "                t.wait(done)", "                pass",
        ("race on handed in shared", "core 0", "core 1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_is_found(bench, plant, tmp_path, name):
    kernel, right, wrong, says = MISTAKES[name]
    mistake = plant.Mistake(
        NEG, kernel, ROWS, "stream.py", right, wrong, by="checker", says=says, source=HAND
    )
    plant.assert_found(bench, tmp_path, mistake)


@pytest.mark.parametrize("name", MISTAKES)
def test_some_legal_order_computes_something_else(bench, plant, tmp_path, name):
    """What the checker refuses is no formality: values come out differently, or not at all."""
    kernel, right, wrong, _ = MISTAKES[name]
    graph = bench.single(*NEG)
    with plant.wrong_kernels(tmp_path, "stream.py", right, wrong, HAND) as kernels:
        program = plant.lowered(bench, graph, kernel, ROWS, ("y",), kernels).program
    right_values = -bench.execute(graph, program).value("x0", (80, 40))
    outcomes = set()
    for seed in range(20):
        try:
            got = bench.execute(graph, program, order=seed).value("y", (80, 40))
            outcomes.add("right" if (got == right_values).all() else "wrong")
        except IllegalProgram as error:
            assert "were never written" in str(error)
            outcomes.add("refused by the reader")
    assert outcomes & {"wrong", "refused by the reader"}


def test_the_right_order_is_right_in_any_order(bench, plant, tmp_path):
    graph = bench.single(*NEG)
    with plant.wrong_kernels(tmp_path, "stream.py", "", "", HAND) as kernels:
        for kernel in ("stream", "prefetch", "handed"):
            lowered = plant.lowered(bench, graph, kernel, ROWS, ("y",), kernels)
            assert plant.find(bench, graph, lowered) is None


def test_the_order_by_hand_leaves_room(bench, plant, tmp_path):
    """Loads, work and stores of different tiles may overlap."""
    graph = bench.single(*NEG)
    with plant.wrong_kernels(tmp_path, "stream.py", "", "", HAND) as kernels:
        program = plant.lowered(bench, graph, "stream", ROWS, ("y",), kernels).program
    orders = [tuple(shuffled(program, seed)) for seed in range(5)]
    assert len({*orders, tuple(range(len(program)))}) == 6


def test_queue_too_short_for_what_waits_in_it(bench, plant, tmp_path):
    """Forty loads behind one that waits for an instruction which is handed out after them."""
    depth = bench.machine.core.sequencer.queue_depth
    graph = bench.single(*NEG)
    with plant.wrong_kernels(tmp_path, "stream.py", "", "", HAND) as kernels:
        fits = plant.lowered(bench, graph, "prefetch", {"rows": 80 // 20}, ("y",), kernels)
        stuck = plant.lowered(bench, graph, "prefetch", {"rows": 80 // 40}, ("y",), kernels)
    assert 20 <= depth < 40
    assert plant.find(bench, graph, fits) is None
    found = plant.find(bench, graph, stuck)
    assert found is not None and found.by == "checker"
    for text in (
        "deadlock: these instructions wait in a circle",
        'kernel prefetch, step 1, on("y")',
        "is not handed out: the sequencer of core 0",
        f"it holds {depth} instructions from #0 on",
    ):
        assert text in found.text, found.text
