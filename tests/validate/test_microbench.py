"""Micro-benchmarks read like a data sheet: what a machine is found to do, against its file."""

from __future__ import annotations

from itertools import pairwise

import pytest

from npusim.core.errors import InputError
from npusim.validate import microbench
from npusim.validate.peaks import held_against, stated_latency_s, stated_peaks

GROUPS = microbench.names()
EVERYWHERE = [(m, g) for m in ("npu_a", "npu_edge", "one core", "small") for g in GROUPS]
EVERYWHERE += [("wormhole_n150", group) for group in ("bandwidth", "latency", "onchip")]


def value(rig, name):
    (found,) = [m for m in rig.measurements if m.name == name]
    return found.value


def curve(rig, name):
    (found,) = [c for c in rig.curves if c.name == name]
    return {line.label: dict(zip(line.x, line.y, strict=True)) for line in found.series}


def test_groups_are_the_modules_of_the_package():
    assert GROUPS == [
        "bandwidth", "latency", "matrix", "onchip", "overheads", "roofline", "scaling", "vector",
        "warmth",
    ]  # fmt: skip
    assert all(microbench.question(name) for name in GROUPS)


def test_groups_are_chosen_by_name_each_once():
    assert microbench.chosen([]) == GROUPS
    assert microbench.chosen(["vector", "latency", "vector"]) == ["latency", "vector"]
    with pytest.raises(InputError, match="--only: unknown group 'bandwith'\n  nearest: bandwidth"):
        microbench.chosen(["bandwith", "latency"])


@pytest.mark.parametrize(("machine", "group"), EVERYWHERE)
def test_no_measurement_exceeds_what_the_machine_states(probed, machine, group):
    """bytes / time <= peak. Operand fetch is known in whole bytes per cycle only (A13)."""
    rig = probed(machine, group)
    for found in rig.measurements:
        if found.peak is not None:
            assert found.value <= found.stated * (1 + (3e-3 if "banks" in found.peak else 1e-12))
        assert found.value > 0
    for found in rig.curves:
        for line in found.series:
            assert found.stated is None or max(line.y) <= found.stated * (1 + 1e-12)
            assert found.y_unit != "%" or max(line.y) <= 100


@pytest.mark.parametrize(
    ("machine", "group", "what"),
    [
        ("npu_edge", "latency", "shared SRAM: npu_edge has none"),
        ("npu_edge", "onchip", "core to core: npu_edge has one core"),
        ("one core", "scaling", "more cores: npu_a has one core"),
        ("unlimited ports", "onchip", "additions and copies at once: npu_a has unlimited ports"),
        ("one core", "overheads", "signal to another core: npu_a has one core"),
        ("no shared SRAM", "scaling", "shared SRAM: npu_a has none"),
        ("no shared SRAM", "onchip", "shared SRAM: npu_a has none"),
    ],
)
def test_what_a_machine_lacks_is_left_out_and_said(probed, machine, group, what):
    assert what in probed(machine, group).left_out


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_is_left_out_on_the_default_machine(probed, group):
    assert probed("npu_a", group).left_out == []


# ------------------------------------------------------------------ bandwidth


def test_one_request_at_a_time_obeys_little(probed, npu):
    """A queue that waits for each batch moves no more than it in a round trip."""
    line = curve(probed("npu_a", "bandwidth"), "DRAM read against requests in flight")
    trip = stated_latency_s(npu(), "DRAM, row open")
    for requests, bandwidth in line["one core, one queue"].items():
        assert bandwidth <= requests * 512 / trip


def test_more_requests_in_flight_move_more_until_the_peak(probed):
    line = curve(probed("npu_a", "bandwidth"), "DRAM read against requests in flight")
    queue = list(line["one core, one queue"].values())
    assert all(later > earlier for earlier, later in pairwise(queue))
    assert queue[1] > 1.5 * queue[0]
    everyone = list(line["all cores, 3 of their queues each"].values())
    assert max(everyone) > 0.85 * 819.2e9


def test_streams_that_meet_in_banks_close_rows_on_one_another(probed):
    """With a quarter of the banks between them, every fourth of 12 streams is in the same ones."""
    line = curve(probed("npu_a", "bandwidth"), "DRAM read against places of streams")
    (points,) = line.values()
    assert min(points.values()) == points[262144.0] < 0.95 * max(points.values())
    assert max(points.values()) > 0.85 * 819.2e9


def test_few_outstanding_requests_hold_a_core_back(probed, npu):
    """Two of 512 B per queue and trip: two cores with one load queue cannot fill the pins."""
    small = value(probed("small", "bandwidth"), "DRAM read, all cores")
    trip = stated_latency_s(npu(), "DRAM, row open")
    assert small < 2 * 2 * 2 * 512 / trip


def test_far_apart_pieces_waste_bandwidth(probed):
    """32 B out of each row of DRAM cost an activate each."""
    line = curve(probed("npu_a", "bandwidth"), "DRAM read against stride")
    assert line["pieces of 32 B"][65536.0] < 0.1 * line["pieces of 32 B"][32.0]
    assert line["pieces of 512 B"][512.0] > 0.8 * 819.2e9


def test_wide_tiles_beat_tall_ones(probed):
    line = curve(probed("npu_a", "bandwidth"), "DRAM read against tile shape")
    (points,) = line.values()
    assert points[32.0] < points[128.0] < points[1024.0]


def test_writes_cost_turns_of_the_bus(probed):
    (points,) = curve(
        probed("npu_a", "bandwidth"), "DRAM bandwidth against writes among reads"
    ).values()  # fmt: skip
    assert points[50.0] < points[0.0]


def test_many_cores_keep_a_gpu_s_dram_busy(probed):
    """About nine tenths of the peak, as streams reach on such chips."""
    found = value(probed("gpu_a100_like", "bandwidth"), "DRAM read, all cores")
    assert 0.85 * 2.039e12 < found < 0.95 * 2.039e12


def test_behind_a_cache_the_second_read_is_a_hit(probed):
    rig = probed("gpu_a100_like", "latency")
    hit = next(m for m in rig.measurements if m.name == "cache, hit")
    assert hit.value == pytest.approx(hit.stated, rel=0.01)
    assert value(rig, "DRAM, row closed") > hit.value


def test_one_reader_for_each_channel_of_a_real_chip(probed):
    """Wormhole n150 at 12 GT/s: 267 of 288 GB/s (tt-metal, Saturating_DRAM_bandwidth)."""
    rig = probed("wormhole_n150", "bandwidth")
    found = value(rig, "DRAM read, the nearest core for each channel")
    assert found == pytest.approx(267e9, rel=0.05)
    assert found > 1.5 * value(rig, "DRAM read, all cores")


# ------------------------------------------------------------------ latency


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("DRAM, row closed", "DRAM"),
        ("DRAM, row open", "DRAM, row open"),
        ("shared SRAM", "shared SRAM"),
        ("remote core", "remote core"),
        ("scratchpad to scratchpad", "scratchpad"),
    ],
)
def test_an_idle_latency_is_what_the_figures_add_up_to(probed, npu, name, level):
    """Plus the time of one burst, less than four cycles; a remote scratchpad adds no latency."""
    found = value(probed("npu_a", "latency"), name)
    assert found == pytest.approx(stated_latency_s(npu(), level), abs=4e-9)


def test_a_remote_core_on_a_grid_is_as_far_as_its_links(probed):
    rig = probed("wormhole_n150", "latency")
    (found,) = [m for m in rig.measurements if m.name == "remote core"]
    assert found.value == pytest.approx(found.stated, rel=0.03)


def test_levels_are_in_order(probed):
    rig = probed("npu_a", "latency")
    names = ("scratchpad to scratchpad", "remote core", "shared SRAM", "DRAM, row open",
             "DRAM, row closed", "DRAM, dependent load")  # fmt: skip
    found = [value(rig, name) for name in names]
    assert found == sorted(found)


# ------------------------------------------------------------------ on the chip


def test_cores_together_read_a_cache_near_its_bandwidth(probed):
    """Slices chosen by a hash are not equally busy at every moment."""
    rig = probed("gpu_a100_like", "onchip")
    found = next(m for m in rig.measurements if m.peak == "cache bandwidth")
    assert 0.85 < found.share <= 1


def test_one_copy_serves_all_other_cores(probed):
    """A multicast leaves its core once: at each of the others arrives what its port sends."""
    rig = probed("npu_a", "onchip")
    pair, all_others = (
        value(rig, f"core to core, {name}") for name in ("one pair", "one to all others at once")
    )
    assert all_others == pytest.approx(pair, rel=0.01)


def test_networks_of_one_way_links_are_filled_by_the_right_neighbours(probed):
    """512 B in 17 flits of 32 B at 28.1 B per cycle: 26.45 useful, 94.1 % of what is stated."""
    rig = probed("wormhole_n150", "onchip")
    beside, following = (
        value(rig, f"core to core, each from {name}") for name in ("beside it", "the next")
    )
    stated = rig.peaks["network ports"].value
    assert 0.92 * stated < beside <= 512 / (17 * 32) * stated
    assert following < 0.15 * stated


def test_a_missed_peak_says_what_was_full(probed):
    rig = probed("wormhole_n150", "onchip")
    busy = {m.name: m.busy for m in rig.measurements}
    assert busy["core to core, each from the next"].startswith("the busiest link between routers")
    assert busy["core to core, each from beside it"].startswith("a core's port out to a network")
    assert busy["scratchpad copy, all cores"] == ""


@pytest.mark.parametrize(
    ("machine", "group", "number", "full"),
    [
        # Nothing moves bytes any faster than its operands come: the vector unit never rests.
        ("npu_a", "vector", "operands of additions, all cores", "a core's vector unit: busy 100 %"),
        # Half a fold's time is the fill of a short one, at the doubled rate of fp8.
        ("wormhole_n150", "matrix", "fp8e4m3 product 128 x 64 x 32, all cores",
         "a core's arrays: busy 100 %"),
        ("npu_a", "scaling", "DRAM bandwidth, all cores over one",
         "DRAM's data pins and refreshes (9 %): busy 98 %"),
        # Two requests of each of two queues, of which one stores: Little's law.
        ("small", "bandwidth", "DRAM read, one core", "the DMA queues: waited for "),
    ],
)  # fmt: skip
def test_what_is_less_than_stated_says_what_was_full(probed, machine, group, number, full):
    (found,) = (m for m in probed(machine, group).measurements if m.name == number)
    assert found.share < 0.95 and found.busy.startswith(full)


def test_ports_without_end_state_no_peak(npu):
    assert "scratchpad banks" in stated_peaks(npu())
    assert "scratchpad banks" not in stated_peaks(npu("core.sram.ports=unlimited"))


# ------------------------------------------------------------------ units


def test_arrays_reach_their_peak_with_long_products_only(probed):
    rig = probed("npu_a", "matrix")
    for name, line in curve(rig, "matrix efficiency against rows").items():
        points = list(line.values())
        assert all(later >= earlier for earlier, later in pairwise(points)), name
        assert points[-1] > 95
    cubes = curve(rig, "matrix efficiency against size")
    assert cubes["bf16"][64.0] == pytest.approx(cubes["fp8e4m3"][64.0] * 2, rel=0.01)


def test_a_kept_operand_saves_its_load(probed):
    """32 rows past a 128 x 128 tile: the array takes one row a cycle, the load is 128."""
    rig = probed("npu_a", "warmth")
    assert value(rig, "product of 32 rows, stationary operand of its own") == pytest.approx(128)
    assert value(rig, "product of 32 rows, stationary operand kept from the one before") == (
        pytest.approx(32)
    )


def test_the_first_layer_fills_the_pipeline(probed):
    rig = probed("npu_a", "warmth")
    first, steady = (
        value(rig, f"layer of 8 products, {which}") for which in ("the first", "a steady one")
    )
    assert first > steady


def test_starting_things_costs_what_the_file_says(probed):
    rig = probed("npu_a", "overheads")
    for found in rig.measurements:
        assert found.value == pytest.approx(found.stated, rel=1e-4), found.name
    assert value(rig, "descriptor with one request") == 17
    assert value(rig, "signal to another core") == 3


def test_vector_instructions_cost_their_start(probed):
    rig = probed("npu_a", "vector")
    assert value(rig, "vector instruction without elements") == pytest.approx(12)
    lines = curve(rig, "vector throughput against size")
    assert lines["simple"][65536.0] > 3.9 * lines["divide"][65536.0]


def test_two_cores_fill_dram_and_shared_sram_grows_with_all(probed):
    rig = probed("npu_a", "scaling")
    (dram,) = curve(rig, "DRAM bandwidth against cores").values()
    (shared,) = curve(rig, "shared SRAM bandwidth against cores").values()
    assert list(dram) == [1.0, 2.0, 4.0]
    assert dram[4.0] == pytest.approx(dram[2.0], rel=0.02)
    assert shared[4.0] == pytest.approx(4 * shared[1.0], rel=0.05)


def test_products_stand_under_both_roofs(probed, npu):
    (points,) = curve(probed("npu_a", "roofline"), "sustained against intensity").values()
    bandwidth, peak = 819.2e9, 131.072e12
    for intensity, sustained in points.items():
        roof = min(peak, intensity * bandwidth)
        assert 0.6 * roof < sustained <= roof


# ------------------------------------------------------------------ peaks


def test_the_best_point_of_a_curve_counts_for_its_peak(probed):
    rig = probed("npu_a", "bandwidth")
    (points,) = curve(rig, "DRAM read against tile shape").values()
    best = max(points, key=points.get)
    assert value(rig, f"DRAM read against tile shape, best at {best:,.6g}") == points[best]


def test_every_stated_peak_is_asked_for(probed, npu):
    found = [m for group in GROUPS for m in probed("npu_a", group).measurements]
    peaks = {peak.name: peak for peak in held_against(npu(), found)}
    assert all(peak.by is not None for peak in peaks.values())
    missed = {name for name, peak in peaks.items() if not peak.reached}
    assert "DRAM bandwidth" in missed
    assert "refreshes (9 %)" in peaks["DRAM bandwidth"].why
    assert {"matrix bf16", "vector simple", "shared SRAM bandwidth", "network ports"} & missed == (
        set()
    )


def test_what_nobody_asked_for_is_said(npu):
    assert {peak.why for peak in held_against(npu(), [])} == {
        "no micro-benchmark that was run asks for it"
    }


def test_doubling_a_resource_doubles_what_is_measured_of_it(npu):
    """Nothing is read off the file: a machine with half the channels is measured as one."""
    full = microbench.measured("bandwidth", npu())
    half = microbench.measured("bandwidth", npu("dram.channels=8", "dram.size_bytes=16 GiB"))
    name = "DRAM read, all cores"
    assert value(half, name) == pytest.approx(value(full, name) / 2, rel=0.03)


def test_a_program_that_the_machine_cannot_run_is_left_out_not_fatal(npu):
    """One semaphore per core is too few for copies, products and stores that wait in a ring."""
    rig = microbench.measured("scaling", npu("core.sequencer.semaphores=1"))
    (told,) = rig.left_out
    assert told.startswith("a product fed from DRAM: core 0 synchronises")
    assert len(rig.curves) == 2
