"""Buffers, regions and streams that the machine has no place for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npusim.core.errors import IllegalProgram
from npusim.program.checker import check
from npusim.program.kinds import Kind, Space
from npusim.program.places import capacities


def messages(program, machine):
    with pytest.raises(IllegalProgram) as caught:
        check(program, machine)
    return [p.message for p in caught.value.problems], caught.value.problems


def used(s, region, core=0, at=1 << 20):
    """Give a region values."""
    x = s.tensor("x", (8, 8), at=at)
    s.copy(core, 0, region, x)


@pytest.mark.parametrize(
    ("space", "core", "size", "memory"),
    [
        (Space.SRAM, 0, 4 << 20, "sram of core 0, which has 4 MiB (4,194,304 bytes)"),
        (Space.SRAM, 3, 4 << 20, "sram of core 3, which has 4 MiB (4,194,304 bytes)"),
        (Space.ACC, 1, 1 << 20, "acc of core 1, which has 1 MiB (1,048,576 bytes)"),
        (Space.SHARED, -1, 32 << 20, "shared, which has 32 MiB (33,554,432 bytes)"),
        (Space.DRAM, -1, 32 << 30, "dram, which has 32 GiB (34,359,738,368 bytes)"),
    ],
)
def test_a_buffer_beyond_its_memory(sketch, npu, space, core, size, memory):
    assert capacities(npu)[space] == size
    s = sketch.Sketch()
    used(s, s.tile(space, core, (8, 8), at=size - 256, name="fits"), max(core, 0))
    check(s.finish(), npu)
    used(s, s.tile(space, core, (8, 8), at=size - 192, name="late"), max(core, 0))
    found, problems = messages(s.finish(), npu)
    assert found[0] == f"buffer late takes bytes {size - 192:,} to {size + 64:,} of {memory}"
    assert problems[0].hints[0].startswith("first used by #1 ")


def test_a_buffer_in_front_of_its_memory(sketch, npu):
    s = sketch.Sketch()
    used(s, s.tile(Space.SRAM, 0, (8, 8), at=-64, name="early"))
    assert messages(s.finish(), npu)[0][0].startswith("buffer early takes bytes -64 to 192 of sram")


def test_a_machine_without_shared_sram(sketch, variant):
    s = sketch.Sketch()
    used(s, s.tile(Space.SHARED, -1, (8, 8), name="parts"))
    found, _ = messages(s.finish(), variant("shared_sram=null"))
    assert found == ["buffer parts takes bytes 0 to 256 of shared, which has 0 B (0 bytes)"]


@pytest.mark.parametrize(
    ("space", "core", "expected"),
    [
        (Space.SRAM, 4, "buffer t lies in sram of core 4: cores are 0 to 3"),
        (Space.ACC, -1, "buffer t lies in acc: cores are 0 to 3"),
        (Space.DRAM, 0, "buffer t lies in dram of core 0: all cores share it"),
        (Space.SHARED, 2, "buffer t lies in shared of core 2: all cores share it"),
    ],
)
def test_buffers_of_cores(sketch, npu, space, core, expected):
    s = sketch.Sketch()
    used(s, s.tile(space, core, (8, 8)))
    assert expected in messages(s.finish(), npu)[0]


def test_a_region_beyond_its_buffer(sketch, npu):
    s = sketch.Sketch()
    tile = s.buffer(Space.SRAM, 0, (8, 8), name="a")
    s.layer("edge", "m")
    s.at(3)
    used(s, s.part(tile, (8, 8), at=8))
    s.axes("m")
    found, problems = messages(s.finish(), npu)
    assert found == ["a 8x8 fp32 region of a@sram0 reaches bytes 32 to 288 of a buffer of 256"]
    assert problems[0].hints[0].startswith("first used by #0 load a[1:9, 0:8 fp32] <- x[0:8, 0:8]")
    assert "(edge, kernel matmul" in problems[0].hints[0] and "m=3" in problems[0].hints[0]


@pytest.mark.parametrize(
    ("shape", "steps", "at", "bounds"),
    [
        ((8, 8), (-8, 1), 48, "-32 to 224"),  # backwards past the front
        ((8, 8), (9, 1), 0, "0 to 284"),  # rows too far apart
        ((64, 1), (1, 1), 1, "4 to 260"),
    ],
)
def test_strides_that_leave_the_buffer(sketch, npu, shape, steps, at, bounds):
    s = sketch.Sketch()
    tile = s.buffer(Space.SRAM, 0, (8, 8), name="a")
    used(s, s.part(tile, shape, steps, at=at))
    found, _ = messages(s.finish(), npu)
    assert f"reaches bytes {bounds} of a buffer of 256" in found[0]


def test_regions_that_just_fit(sketch, npu):
    s = sketch.Sketch()
    tile = s.buffer(Space.SRAM, 0, (8, 8), name="a")
    used(s, s.part(tile, (8, 8), (-8, 1), at=56))
    s.vec(0, s.part(tile, (8, 8)), s.part(tile, (8, 8), (1, 8)))
    s.part(tile, (0, 8), (8, 1), at=64)
    check(s.finish(), npu)


def test_half_elements(sketch, npu):
    s = sketch.Sketch()
    tile = s.buffer(Space.SRAM, 0, (16, 8), name="a")
    used(s, s.part(tile, (8, 8), (32, 4), at=2, item=1))
    used(s, s.part(tile, (8, 8), (34, 4), item=1))
    found, _ = messages(s.finish(), npu)
    expected = "a 8x8 fp32 region of a@sram0 begins or steps inside an element of 4 bytes"
    assert found[:2] == [expected] * 2


def test_a_region_with_another_dtype_than_its_buffer(sketch, npu):
    program = sketch.every_kind()
    kinds = program.regions.dtype.copy()
    kinds[4] = 3  # the shown tile as bf16
    odd = replace(program, regions=replace(program.regions, dtype=kinds))
    found, _ = messages(odd, npu)
    assert "a 8x8 bf16 region of z sees a buffer of fp32" in found


def test_negative_sizes(sketch, npu):
    s = sketch.Sketch()
    tile = s.buffer(Space.SRAM, 0, (8, 8), name="a")
    used(s, s.part(tile, (-2, 8), (8, 1)))
    assert any("has a negative size in [1, 1, 1, -2, 8]" in t for t in messages(s.finish(), npu)[0])


def test_two_values_from_the_start(sketch, npu):
    s = sketch.Sketch()
    s.tensor("x", (8, 8))
    s.tensor("w", (8, 8), at=192)
    s.tensor("v", (8, 8), at=448)
    assert messages(s.finish(), npu)[0] == [
        "x and w both have values from the start, at the same bytes of dram"
    ]


def test_streams_that_the_machine_lacks(sketch, npu, variant):
    s = sketch.Sketch(cores=6, queues=6)
    x = s.tensor("x", (8, 8))
    for core, queue in ((0, 5), (5, 0)):
        s.copy(core, queue, s.tile(Space.SRAM, core, (8, 8)), x)
    found, _ = messages(s.finish(), npu)
    assert found == [
        "the program is for 6 cores, npu_a has 4",
        "stream core 0 dma 5: a core of npu_a has 4 DMA queues",
        "stream core 5 dma 0: npu_a has cores 0 to 3",
        "buffer t lies in sram of core 5: cores are 0 to 3",
    ]
    check(s.finish(), variant("cores=6", "core.dma.queues=6"))


def test_streams_nobody_uses_are_no_problem(sketch, variant):
    """A program for more queues than it uses runs on a machine that has those it uses."""
    s = sketch.Sketch(cores=4, queues=6)
    s.copy(0, 1, s.tile(Space.SRAM, 0, (8, 8)), s.tensor("x", (8, 8)))
    check(s.finish(), variant("core.dma.queues=2"))
    assert s.finish().rows_of(Kind.COPY).tolist() == [0]
