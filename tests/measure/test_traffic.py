"""Bytes per memory, instruction kind by instruction kind, and against what a plan must move."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.catalog import folder
from npusim.core.dtypes import dtype
from npusim.hw.loader import load_machine
from npusim.machine.units import costs
from npusim.measure.traffic import traffic
from npusim.program.builder import Builder
from npusim.program.kinds import Kind, Space
from npusim.program.program import Layer

BF16, FP32, INT32 = dtype("bf16"), dtype("fp32"), dtype("int32")
DRAM, SHARED, SRAM, ACC = Space.DRAM, Space.SHARED, Space.SRAM, Space.ACC


@pytest.fixture(scope="module")
def machine():
    return load_machine(folder("hwconfigs") / "npu_a.yaml").machine


class Draft:
    """A program by hand, one layer after the other."""

    def __init__(self, machine) -> None:
        self.machine = machine
        self.builder = Builder(machine.cores, machine.core.dma.queues)

    def layer(self, name: str) -> None:
        self.builder.begin(Layer(name, (name,), "Op", "by hand", "", ()))

    def region(self, space, kind, rows: int, columns: int, core: int = 0) -> int:
        size = rows * columns * kind.itemsize
        owner = core if space in (SRAM, ACC) else -1
        number = self.builder.buffer(space, owner, kind, 0, size, f"{space.name}{rows}x{columns}")
        strides = (columns * kind.itemsize, kind.itemsize)
        return self.builder.region(number, 0, (rows, columns), strides, 1)

    def traffic(self) -> np.ndarray:
        program = self.builder.finish()
        return traffic(program, costs(program, self.machine))


def test_copies_count_at_both_ends(machine):
    draft = Draft(machine)
    tensor, tile = draft.region(DRAM, BF16, 64, 32), draft.region(SRAM, BF16, 64, 32)
    pool = draft.region(SHARED, BF16, 64, 32)
    draft.layer("in")
    draft.builder.emit(2, Kind.COPY, tile, tensor, -1)
    draft.layer("out")
    draft.builder.emit(5, Kind.COPY, pool, tile, -1)
    size = 64 * 32 * 2
    moved = draft.traffic()
    assert moved[0].tolist() == [[size, 0], [0, 0], [0, size], [0, 0], [0, 0]]
    assert moved[1].tolist() == [[0, 0], [0, size], [size, 0], [0, 0], [0, 0]]


def test_gather_reads_the_rows_it_fetches_and_their_numbers(machine):
    draft = Draft(machine)
    table, tile = draft.region(DRAM, BF16, 5000, 32), draft.region(SRAM, BF16, 7, 32)
    numbers = draft.region(SRAM, INT32, 1, 7)
    draft.layer("gather")
    draft.builder.emit(2, Kind.COPY, tile, table, numbers)
    (moved,) = draft.traffic()
    assert moved[DRAM].tolist() == [7 * 32 * 2, 0]
    assert moved[SRAM].tolist() == [7 * 4, 7 * 32 * 2]


@pytest.mark.parametrize(("first", "read"), [(1, 0), (0, 64 * 256 * 4)])
def test_product_fetches_operands_and_adds_into_accumulators(machine, first, read):
    draft = Draft(machine)
    a, b = draft.region(SRAM, BF16, 64, 128), draft.region(SRAM, BF16, 128, 256)
    c = draft.region(ACC, FP32, 64, 256)
    draft.layer("product")
    draft.builder.emit(0, Kind.MMA, c, a, b, first)
    (moved,) = draft.traffic()
    passes = 2  # 256 columns on 128: A streams past each half of B
    assert moved[SRAM].tolist() == [(64 * 128 * passes + 128 * 256) * 2, 0]
    assert moved[ACC].tolist() == [read, 64 * 256 * 4]


def test_vector_instruction_reads_its_sources_where_they_lie(machine):
    draft = Draft(machine)
    acc, bias = draft.region(ACC, FP32, 8, 64), draft.region(SRAM, BF16, 1, 64)
    out = draft.region(SRAM, BF16, 8, 64)
    draft.layer("add")
    tree = draft.builder.expression(("add", ("source", 0), ("source", 1)))
    none = draft.builder.immediates(())
    draft.builder.emit(1, Kind.VECTOR, tree, out, acc, bias, -1, -1, none)
    (moved,) = draft.traffic()
    assert moved[ACC].tolist() == [8 * 64 * 4, 0]
    assert moved[SRAM].tolist() == [64 * 2, 8 * 64 * 2]


def test_host_reads_and_writes_memory_of_the_machine(machine):
    draft = Draft(machine)
    x, w = draft.region(DRAM, BF16, 8, 64), draft.region(SHARED, FP32, 4, 4)
    y = draft.region(DRAM, FP32, 8, 64)
    draft.layer("host")
    draft.builder.host("node", [x, w], [y], 1)
    (moved,) = draft.traffic()
    assert moved[DRAM].tolist() == [8 * 64 * 2, 8 * 64 * 4]
    assert moved[SHARED].tolist() == [4 * 4 * 4, 0]


def test_tiled_product_moves_what_its_tiles_say(finished, planned):
    """512^3 in tiles of 256: each half of A is read for each half of B's columns, and so on."""
    plan = planned(
        "tiled",
        "from npusim import Grid, Plan, on\n"
        "from npusim.library.mapping.kernels.matmul import matmul\n"
        'plan = Plan("tiled", steps=[on("matmul").use(\n'
        '    matmul(m=256, n=128, k=128, grid=Grid(), hold="none"))])\n',
    )
    made = finished("matmul", "m=512 n=512 k=512", plan, "cores=1")
    (layer,) = made.result.layers
    tensor = 512 * 512 * 2
    assert layer.bytes["dram"].read == tensor * 4 + tensor * 2
    assert layer.bytes["dram"].write == tensor
    assert layer.bytes["acc"].write == 512 * 512 * 4 * 4  # four steps of k
    assert layer.bytes["acc"].read == 512 * 512 * 4 * 3 + 512 * 512 * 4
    assert layer.minimum_bytes == 3 * tensor
    assert layer.claim.bytes == 7 * tensor
    assert made.result.totals.dram_burst_bytes == 7 * tensor
