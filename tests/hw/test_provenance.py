"""Where figures come from: stated per value, per block, or nowhere."""

from __future__ import annotations

import pytest

from npusim.core.catalog import folder
from npusim.hw.fields import leaves
from npusim.hw.loader import load_machine, parse_machine
from npusim.hw.provenance import KEYS, Provenance
from npusim.hw.quantities import Spec


def test_value_with_provenance_is_the_value(small):
    stated = "{value: 2, provenance: measured, source: data sheet}"
    loaded = parse_machine(small.replace("cores: 2", f"cores: {stated}"))
    assert loaded.machine == parse_machine(small).machine
    assert loaded.provenance["cores"] == Provenance("measured", "data sheet")
    assert str(loaded.provenance["cores"]) == "measured: data sheet"
    assert str(loaded.provenance["name"]) == "assumed"


def test_block_speaks_for_what_is_inside_and_the_inside_first(small):
    text = small.replace(
        "  timings_ns:\n", "  provenance: public\n  source: standard\n  timings_ns:\n"
    ).replace("rrd_s: 5 ns", "rrd_s: {value: 5 ns, source: guessed}")
    found = parse_machine(text).provenance
    assert (
        found["dram.channels"] == found["dram.timings_ns.rcd"] == Provenance("public", "standard")
    )
    assert found["dram.timings_ns.rrd_s"] == Provenance("assumed", "guessed")
    assert found["core.clock_hz"] == Provenance("assumed", "")


def test_mapping_and_its_entries(small):
    stated = "{value: {bf16: 1, int8: {value: 2, provenance: measured}}, provenance: public}"
    text = small.replace("rates: {bf16: 1, int8: 2}", f"rates: {stated}")
    found = parse_machine(text)
    assert found.provenance["core.matrix.rates.bf16"].kind == "public"
    assert found.provenance["core.matrix.rates.int8"].kind == "measured"
    assert found.machine == parse_machine(small).machine


def test_every_leaf_has_one(small):
    loaded = parse_machine(small)
    assert list(loaded.provenance) == [leaf.path for leaf in leaves(loaded.machine)]


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ("{value: 2, provenance: publik}", "m.yaml:2:31: provenance: unknown kind 'publik'"),
        ("{value: 2, provenance: publik}", "nearest: public\n  allowed: assumed, measured, public"),
        ("{value: 2, source: 7}", "m.yaml:2:27: source: must be a text"),
        ("{value: 2, sauce: x}", "cores: 'sauce' cannot stand beside a value\n"),
        ("{value: -2, provenance: public}", "m.yaml:2:16: cores: must be greater than 0, found -2"),
        ("{provenance: public}", "m.yaml:2:8: cores: expected a number, found a block of fields"),
        ("{value: {value: 2}, x: 1}", "'x' cannot stand beside a value"),
    ],
)
def test_mistakes_in_statements(spoilt, stated, message):
    assert message in spoilt("cores: 2", f"cores: {stated}")


def test_no_field_is_called_like_a_word_of_provenance():
    def kinds(spec: type[Spec]):
        yield spec
        for kind in spec.__subclasses__():
            yield from kinds(kind)

    assert [(k, n) for k in kinds(Spec) for n in k.model_fields if n in KEYS] == []


def test_shipped_machines_state_theirs():
    npu_a = load_machine(folder("hwconfigs") / "npu_a.yaml").provenance
    derived = "derived from HBM2_2400 nanoseconds, rounded up to clocks of 0.625 ns"
    assert npu_a["dram.timings_ns.rc"] == Provenance("assumed", derived)
    assert npu_a["dram.bank_groups"].kind == "public"
    assert npu_a["dram.channels"].kind == "assumed"
    edge = load_machine(folder("hwconfigs") / "npu_edge.yaml").provenance
    assert edge["dram.timings_ns.faw"].kind == "public"
    assert all(p.source for p in (*npu_a.values(), *edge.values()))
