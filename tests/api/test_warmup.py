"""Warming up compiles all that runs will need, and says what it did."""

from __future__ import annotations

from npusim.api.warmup import warm_up

ROWS = '''
from npusim import Graph, GraphBuilder

def rows(*, count: int = 40) -> Graph:
    """Rows of a table by number, which the program reads itself."""
    g = GraphBuilder("rows")
    table, ids = g.input("table", (100, 24), "fp32"), g.input("ids", (count,), "int64")
    return g.build([g.add("Relu", g.add("Gather", table, ids, name="rows"), name="act")])
'''
FOLLOWING = """
import sys
from numba.core.dispatcher import Dispatcher
from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.api.warmup import warm_up
from npusim.core.compiled import compilations

def loaded():
    return {
        (name, value.py_func.__qualname__, signature)
        for name, module in list(sys.modules.items()) if name.startswith("npusim.")
        for value in vars(module).values() if isinstance(value, Dispatcher)
        for signature in value.overloads
    }

warm_up()
before, compiled = loaded(), []
requests = [
    Request("llama_block", sizes={"seq": "16", "hidden": "64", "heads": "4", "kv_heads": "2",
            "head_dim": "16", "ffn": "96"}, out=None),
    Request("conv_block", hw="npu_edge", sizes={"image": "16", "dtype": "int8"},
            order="random:3", out=None),
    Request("rows.py", input={"ids": "randint:0:99"}, out=None),
    Request("rows.py", timing_only=True, out=None),
    Request("softmax", sizes={"rows": "9", "columns": "33"}, out=None, hw_set=("cores=5",
            "core.sequencer.queue_depth=1", "core.clock_hz=940 MHz", "shared_sram=null",
            "core.matrix.fold_overlap=none", "core.dma.outstanding_requests=1")),
    *(Request("softmax", sizes={"rows": "9", "columns": "33"}, out=None, hw_set=fields)
      for fields in (
          ("core.dma.arbitration=oldest_first",),
          ("core.vector.latency_cycles={exp: 20}", "host.operators_in_flight=4"),
          ("core.matrix.arrays=2", "shared_sram.slices=8"),
          ("cache={size_bytes: 1 MiB, bytes_per_cycle: 64, latency_cycles: 9, slices: 1, ways: 2, "
           "mshr_entries: 8}",),
      )),
]
with compilations(compiled.append):
    for request in requests:
        assert run(request).valid
print(len(before), compiled, sorted(name for name, *_ in loaded() - before))
"""


def test_after_it_runs_compile_nothing_and_load_nothing(run_python, tmp_path):
    """Models of all kinds on two machines: nothing that warming up had not been through."""
    (tmp_path / "rows.py").write_text(ROWS)
    count, rest = run_python(FOLLOWING, cwd=tmp_path).split(maxsplit=1)
    assert int(count) > 10
    assert rest.strip() == "[] []"


def test_it_tells_how_far_it_is_and_what_it_found():
    told = []
    warmth = warm_up(lambda *how_far: told.append(how_far))
    assert told[0] == ("compile", 0, len(warmth.all_of))
    assert [done for _, done, _ in told] == list(range(len(warmth.compiled) + 1))
    assert warmth.compiled <= warmth.all_of
    assert warmth.kept == warmth.all_of
    assert warmth.folder is not None and warmth.folder.is_dir()
    assert warmth.cpu_s > 0
    assert "npusim.machine.engine.simulate" in warmth.all_of
