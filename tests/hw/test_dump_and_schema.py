"""A machine written out again, and the schema for editors."""

from __future__ import annotations

import re

import pytest

from npusim.core.catalog import folder
from npusim.hw.dram_timings import DramTimings
from npusim.hw.dump import dump_yaml
from npusim.hw.fields import leaves
from npusim.hw.loader import load_machine, parse_machine
from npusim.hw.machine import Machine
from npusim.hw.override import override
from npusim.hw.quantities import Spec
from npusim.hw.schema import json_schema


@pytest.mark.parametrize("name", ["npu_a", "npu_edge", "tpu_v3_core"])
def test_dump_loads_back_equal(name):
    machine = load_machine(folder("hwconfigs") / f"{name}.yaml").machine
    text = dump_yaml(machine)
    assert parse_machine(text).machine == machine
    assert dump_yaml(parse_machine(text).machine) == text


def test_dump_of_awkward_values_loads_back_equal(small):
    loaded = override(
        parse_machine(small),
        [
            'description="null: \\"# é\\n"',
            "name=null-1",
            "dram.description='1e9'",
            "dram.timings_ns.rcd=14.123456789012345 ns",
            "core.vector.rates.function=0.333333333333333314",
            "host.link_bytes_per_s=123456789.123 B/s",
        ],
    )
    assert parse_machine(dump_yaml(loaded.machine)).machine == loaded.machine


def test_dump_has_defaults_units_and_the_models_order(small):
    lines = dump_yaml(parse_machine(small).machine).splitlines()
    assert lines[:6] == [
        "name: small",
        'description: ""',
        "cores: 2",
        "core:",
        "  clock_hz: 1 GHz",
        "  matrix:",
    ]
    stripped = [line.strip() for line in lines]
    for line in (
        "rates: {bf16: 1, int8: 2}",
        "zero_points: false",
        "request_bytes: 512 B",
        "size_bytes: 64 KiB",
        "latency_cycles: 3 cycles",
        "bank_width_bytes: 16 B/cycle",
        "shared_sram: null",
        "model: run",
        "pseudo_channels: 1",
        "width_bits: 16 bits",
        "transfers_per_s: 6.4 GT/s",
        "rcd: 18.75 ns",
        "launch_ns: 10 us",
        "flops_per_s: 10 GFLOP/s",
        "rates: {simple: 1, divide: 0.25, function: 0.25}",
    ):
        assert line in stripped


def test_leaves_cover_the_dump(small):
    machine = parse_machine(small).machine
    paths = [leaf.path for leaf in leaves(machine)]
    assert len(paths) == len(set(paths))
    assert {"core.matrix.rates.int8", "dram.timings_ns.refi", "shared_sram"} <= set(paths)
    by_path = {leaf.path: leaf for leaf in leaves(machine)}
    assert by_path["core.sram.size_bytes"].dimension == "bytes"
    assert by_path["core.matrix.rates.int8"].dimension == "number"
    assert by_path["noc.kind"].dimension is None
    assert by_path["core.sram.banks"].description.startswith("Banks that can each")


def every_spec(spec: type[Spec] = Spec):
    """The kinds of block that a file can have: those that no other kind builds on."""
    for kind in spec.__subclasses__():
        if kind.__subclasses__():
            yield from every_spec(kind)
        else:
            yield kind


def test_every_field_of_every_block_is_described():
    kinds = list(every_spec())
    assert len(kinds) >= 13
    bare = [(k.__name__, n) for k in kinds for n, f in k.model_fields.items() if not f.description]
    assert bare == []
    assert [k.__name__ for k in kinds if not (k.__doc__ or "").strip()] == []


def blocks(schema: dict):
    return [schema, *schema["$defs"].values()]


def test_schema_describes_every_field_and_refuses_others():
    schema = json_schema()
    assert len(schema["$defs"]) == len(list(every_spec())) - 1
    for block in blocks(schema):
        assert block["additionalProperties"] is False
        assert {"provenance", "source"} <= block["properties"].keys()
        assert all("description" in field for field in block["properties"].values())
    assert schema["properties"].keys() - {"provenance", "source"} == Machine.model_fields.keys()


def test_schema_accepts_units_and_statements():
    size = json_schema()["$defs"]["Sram"]["properties"]["size_bytes"]
    number_or_text, statement = size["anyOf"]
    number, text = number_or_text["anyOf"]
    assert number == {"type": "integer", "exclusiveMinimum": 0}
    for good in ("4 MiB", "512B", "1.5 KiB", "4_096 B", "1e3 KB"):
        assert re.search(text["pattern"], good), good
    for bad in ("4 GHz", "MiB", "-4 MiB", "4 MiB each"):
        assert not re.search(text["pattern"], bad), bad
    assert statement["properties"]["value"] == number_or_text
    assert statement["properties"]["provenance"]["enum"] == ["public", "measured", "assumed"]
    rate = json_schema()["$defs"]["Matrix"]["properties"]["rates"]["anyOf"][0]
    assert rate["additionalProperties"]["anyOf"][1]["required"] == ["value"]


def test_schema_leaves_to_a_standard_what_its_table_has():
    """Without a name all is required, with it nothing; what is there stays strict."""
    blocks = json_schema()["$defs"]
    dram, timings = blocks["Dram"], blocks["DramTimings"]
    assert "required" not in dram and "required" not in timings
    assert dram["if"]["required"] == ["standard"]
    assert dram["if"]["properties"]["standard"] == {"type": ["string", "object"]}
    assert {"clock_hz", "channels", "row_bytes", "timings_ns"} <= set(dram["else"]["required"])
    timed = dram["else"]["properties"]["timings_ns"]["required"]
    assert set(timed) == {n for n, f in DramTimings.model_fields.items() if f.is_required()}
    assert "then" not in dram and dram["additionalProperties"] is False


def test_schema_knows_required_fields_and_choices():
    schema = json_schema()
    assert set(schema["required"]) == {"name", "cores", "core", "noc", "dram", "host"}
    kind = schema["$defs"]["Noc"]["properties"]["kind"]["anyOf"][0]
    assert kind["enum"] == ["crossbar", "ring", "mesh", "torus"]
