"""A timing table: what it says, between its entries and beyond them, and what is wrong with one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.core.errors import InputError
from npusim.core.hashing import content_hash
from npusim.hw.closed_forms import cycles, product_cost, run_drain_cycles, run_fill_cycles
from npusim.hw.dump import dump_yaml
from npusim.hw.loader import load_machine
from npusim.hw.machine import Machine
from npusim.hw.override import override
from npusim.hw.timing_grid import Grid

TABLE = """\
# 8 x 4 array, from RTL
dtype, m,  n, k, cycles, occupied_cycles
bf16,  16, 4, 8, 40, 20
bf16,  64, 4, 8, 90, 70
bf16,  16, 8, 8, 60, 40
bf16,  64, 8, 8, 160, 140
"""


@pytest.fixture
def machine(tmp_path, small):
    """Loads the small machine with a table beside its file."""

    def load(text: str = TABLE, *flags: str):
        (tmp_path / "tiles.csv").write_text(text)
        field = "    rows: 8\n    timing_table: tiles.csv\n"
        (tmp_path / "m.yaml").write_text(small.replace("    rows: 8\n", field))
        loaded = load_machine(tmp_path / "m.yaml")
        return (override(loaded, flags) if flags else loaded).machine

    return load


def cost(machine, m, n, k, kind="bf16"):
    found = product_cost(machine.core.matrix, m, n, k, kind)
    return int(found.fill), int(found.busy), int(found.tail)


def test_entries_are_used_as_they_are(machine):
    m = machine()
    assert cost(m, 16, 4, 8) == (0, 20, 20)
    assert cost(m, 64, 8, 8) == (0, 140, 20)
    assert int(cycles(m.core.matrix, 64, 4, 8, "bf16")) == 90


def test_without_a_column_the_engine_is_occupied_to_the_end(machine):
    text = "\n".join(line.rpartition(",")[0] for line in TABLE.splitlines()[1:])
    assert cost(machine(text), 16, 4, 8) == (0, 40, 0)


@pytest.mark.parametrize(
    ("m", "n", "busy", "tail"),
    [
        (40, 4, 45, 20),  # half way from 20 to 70
        (16, 6, 30, 20),
        (40, 6, 68, 20),  # the middle of four: (20 + 70 + 40 + 140) / 4 = 67.5, rounded up
        (17, 4, 22, 20),  # 20 + 50 / 48, rounded up
    ],
)
def test_between_entries_times_are_interpolated(machine, m, n, busy, tail):
    assert cost(machine(), m, n, 8) == (0, busy, tail)


@pytest.mark.parametrize(
    ("m", "n", "k", "busy"),
    [
        (128, 8, 8, 140 + 140),  # two of the longest
        (80, 8, 8, 140 + 40),  # the longest, then an entry
        (64, 8, 24, 3 * 140),
        (64, 12, 16, 2 * (140 + 70)),
        (1, 1, 1, 20),  # padded to the shortest
    ],
)
def test_beyond_the_table_products_are_cut_or_padded(machine, m, n, k, busy):
    assert cost(machine(), m, n, k) == (0, busy, 20)


def test_what_was_guessed_is_marked():
    grid = Grid.of([(16, 4, 8, 40, 20), (64, 4, 8, 90, 70)])
    found = grid.look_up([16, 64, 40, 65, 15, 16], 4, [8, 8, 8, 8, 8, 9])
    assert found.exact.tolist() == [True, True, False, False, False, False]
    assert found.beyond.tolist() == [False, False, False, True, True, True]


@given(m=st.integers(1, 500), n=st.integers(1, 500), k=st.integers(1, 100))
def test_never_above_the_peak_that_the_entries_keep(m, n, k):
    """Interpolation, padding and cutting keep macs / cycles <= 32 if every entry does."""
    sizes = [(a, b, c) for a in (8, 32, 100) for b in (4, 24) for c in (8, 60)]
    grid = Grid.of([(a, b, c, a * b * c // 32 + 30, -(-a * b * c // 32)) for a, b, c in sizes])
    found = grid.look_up(m, n, k)
    assert m * n * k <= 32 * int(found.occupied) <= 32 * int(found.cycles)
    assert int(found.occupied) <= int(grid.look_up(m + 1, n, k).occupied)


def test_a_dtype_without_entries_is_priced_by_the_closed_form(machine, small):
    m = machine()
    assert cost(m, 16, 4, 8, "int8") == (8, 8 + 10, 0)
    assert (run_fill_cycles(m.core.matrix), run_drain_cycles(m.core.matrix)) == (0, 20)


def test_an_empty_product_costs_nothing(machine):
    assert np.array_equal(
        cycles(machine().core.matrix, [0, 8, 8], [8, 0, 8], [8, 8, 0], "bf16"), [0] * 3
    )


def test_what_the_table_says_is_part_of_the_machine(machine):
    first = machine()
    other = machine(TABLE.replace("90, 70", "91, 70"))
    reordered = machine("\n".join([*TABLE.splitlines()[:2], *TABLE.splitlines()[:1:-1]]))
    assert content_hash(first) != content_hash(other)
    assert reordered == first and content_hash(reordered) == content_hash(first)
    assert str(first.core.matrix.timing_table).startswith("tiles.csv (4 entries, hash ")


def test_a_machine_with_a_table_is_written_and_read_again(machine, tmp_path):
    first = machine()
    for again in (
        Machine.model_validate(first.model_dump()),
        Machine.model_validate_json(first.model_dump_json()),
    ):
        assert again == first
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "m.yaml").write_text(dump_yaml(first))
    (folder / "tiles.csv").write_text(first.core.matrix.timing_table.text())
    assert load_machine(folder / "m.yaml").machine == first


def test_a_flag_names_a_file_here(machine, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.csv").write_text("dtype,m,n,k,cycles\nbf16,8,4,8,99\n")
    monkeypatch.chdir(here)
    m = machine(TABLE, "core.matrix.timing_table=mine.csv")
    assert cost(m, 8, 4, 8) == (0, 99, 0)
    assert machine(TABLE, "cores=3").core.matrix.timing_table.file == "tiles.csv"
    assert machine(TABLE, "core.matrix.timing_table=null").core.matrix.timing_table is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("40, 20", "40, 41", "tiles.csv:3: occupied_cycles 41 are more than cycles 40\n    bf16"),
        ("90, 70", "90, -7", "tiles.csv:4: occupied_cycles must be a whole number from 1 to"),
        ("90, 70", "9.5, 7", "tiles.csv:4: cycles must be a whole number from 1 to 1000000000"),
        ("90, 70", "90", "tiles.csv:4: 5 values under 6 columns"),
        ("bf16,  64, 8", "bf61,  64, 8", "tiles.csv:6: unknown dtype 'bf61'\n"),
        ("bf16,  64, 8", "bf16,  16, 8",
         "tiles.csv:6: bf16 16 x 8 x 8 is given twice, first in line 5"),
        ("bf16,  64, 8", "bf16,  65, 8",
         "tiles.csv:3: no entry for bf16 m = 64, n = 8, k = 8"),
        ("occupied_", "ocupied_", "tiles.csv:2: unknown column 'ocupied_cycles'\n"),
        (" k, cycles", " k, k", "tiles.csv:2: no column cycles"),
        (TABLE, "# nothing\n", "tiles.csv: the file is empty"),
        (TABLE, "dtype,m,n,k,cycles\n", "tiles.csv: no entries below the header"),
        ("bf16", "fp16", "timing_table: tiles.csv has tiles of fp16, which has no rate"),
        ("90, 70", "90, 63", "63 cycles for 64 x 4 x 8 of bf16 are above the peak of 32 multiply"),
    ],
)  # fmt: skip
def test_mistakes_are_shown_at_their_line(machine, old, new, message):
    assert old in TABLE
    with pytest.raises(InputError) as error:
        machine(TABLE.replace(old, new))
    assert message in str(error.value)


def test_all_mistakes_at_once(machine):
    with pytest.raises(InputError) as error:
        machine(TABLE.replace("40, 20", "0, 20").replace("90, 70", "90, x"))
    lines = [p.place.line for p in error.value.problems]
    assert lines == [3, 4]


def test_a_file_that_is_not_there(small, refusal):
    text = small.replace("    rows: 8\n", "    rows: 8\n    timing_table: absent.csv\n")
    assert "m.yaml:7:19: core.matrix.timing_table: no such file: absent.csv" in refusal(text)
    text = small.replace("    rows: 8\n", "    rows: 8\n    timing_table: 7\n")
    assert "core.matrix.timing_table: expected the path of a CSV file, found 7" in refusal(text)
