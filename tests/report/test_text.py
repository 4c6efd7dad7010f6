"""What people read of a result."""

from __future__ import annotations

import csv

import pytest

from npusim.machine.classes import CycleClass
from npusim.measure.result import Caching, Failure
from npusim.report import numbers, summary
from npusim.report.layers import kernel_and_tile, layer_table, verdict
from npusim.report.layers_csv import layers_csv
from npusim.report.text import REPORT_WIDTH, parts, plain, plain_report


def lines_of(result, full=False, width=200):
    return list(plain(parts(result, full), width))


def test_a_row_per_layer_and_the_total(result):
    table = layer_table(result)
    assert [row[0] for row in table.rows] == [*(y.name for y in result.layers), "total"]
    total = table.rows[-1]
    assert total[3] == f"{result.totals.cycles:,}"
    assert total[-1] == "pass"
    assert table.marks[[y.name for y in result.layers].index("relu1")] == "host"


def test_every_number_has_its_unit(result):
    table = layer_table(result)
    titles = [column.title for column in table.columns]
    row = dict(zip(titles, table.rows[0], strict=True))
    assert row["time"].split()[1] in ("s", "ms", "us", "ns")
    assert row["FLOPs"].endswith("FLOP")
    for title in ("sustained", "array busy", "PE use"):
        assert row[title].endswith(" %")
    share, unit, cause = row["memory stall"].split()
    assert float(share) >= 0 and unit == "%" and cause in {c.label for c in CycleClass}
    first = result.layers[0]
    assert row["bottleneck (next)"] == f"{first.bottleneck} ({first.runner_up})"


def test_kernel_and_tile(result):
    first = result.layers[0]
    assert kernel_and_tile(first).startswith("matmul m=")
    grid = first.model_copy(update={"choices": {"m": 64, "grid": "Grid(m=2, k=2)", "g": "Grid()"}})
    assert kernel_and_tile(grid) == "matmul m=64 grid=m2,k2 g=1"


def test_verdicts():
    assert [verdict(v) for v in (True, False, None)] == ["pass", "FAIL", "-"]


def test_report_holds_everything(result):
    report = plain_report(result)
    assert report.splitlines()[0] == "mlp on npu_a under plan hosted, seed 0"
    assert "1 layer ran on the host:" in report and "to see it" in report
    assert all(f"  - {text}" in report for text in result.assumptions)
    assert f"{result.totals.cycles:,} cycles" in report
    assert "checks: 5 layers, all within tolerance" in report
    tables = [line for line in report.splitlines() if line.startswith(("layer ", "fc1 "))]
    assert max(map(len, tables)) <= REPORT_WIDTH
    assert report == plain_report(result)


def test_terminal_counts_assumptions_and_says_where_they_are(result):
    shown = lines_of(result)
    count = len(result.assumptions)
    expected = f"assumptions: {count}, listed in report.txt and by `npusim show result`"
    assert expected in shown


def test_failed_checks_are_told(result):
    first = result.layers[0].model_copy(update={"validated": False})
    wrong = result.model_copy(
        update={
            "failures": (Failure(layer="fc1", output="fc1", message="MatMul 'fc1': got 1"),),
            "totals": result.totals.model_copy(update={"validated": False}),
            "layers": (first, *result.layers[1:]),
        }
    )
    shown = lines_of(wrong)
    assert "checks: 1 of 5 layers FAILED" in shown
    assert "  fc1: MatMul 'fc1': got 1" in shown
    assert layer_table(wrong).marks[0] == "failed"
    assert layer_table(wrong).rows[0][-1] == "FAIL"


def claimed(result, cycles, span):
    """The result's first layer with a share of 1000 cycles, this claim, and this span."""
    first = result.layers[0]
    claim = first.claim.model_copy(update={"cycles": cycles})
    changed = {"claim": claim, "cycles": 1000.0, "span": (500, 500 + span)}
    return result.model_copy(update={"layers": (first.model_copy(update=changed),)})


@pytest.mark.parametrize("cycles", [910, 1000, 2000, 3000, 3290])
def test_a_claim_between_share_and_span_agrees(result, cycles):
    assert summary.claims(claimed(result, cycles, 3000)) is None


@pytest.mark.parametrize(("cycles", "off"), [(890, "-11 %"), (500, "-50 %"), (3750, "+25 %")])
def test_a_claim_outside_is_shown_with_its_distance_to_the_nearer_end(result, cycles, off):
    table = summary.claims(claimed(result, cycles, 3000))
    assert table.rows[0][:5] == ("fc1", f"{cycles:,}", "1,000", "3,000", off)


def test_error_bands_are_shown_where_they_are_known(result):
    relative, line = summary.models(result)
    assert relative.startswith("model of dram: run, not compared on HBM2E_3200 itself; on HBM2")
    assert line.startswith("models without a known error: noc: crossbar;")
    dram = result.models["dram"].model_copy(update={"error_band": (-0.05, 0.12), "note": "of x"})
    known = result.model_copy(update={"models": {**result.models, "dram": dram}})
    first, second, third = summary.models(known)
    assert first == "model of dram: run, error -5 to +12 %, of x"
    assert second.startswith("time by the known errors: ")
    assert "; not compared, and taken as they are: " in second
    assert "dram" not in second.partition(";")[2]
    assert "dram: run" not in third


@pytest.mark.parametrize("width", [60, 100, 140])
def test_narrow_terminals_still_show_every_number(result, width):
    shown = "\n".join(lines_of(result, width=width))
    for layer in result.layers:
        assert numbers.cycles(layer.cycles) in shown
        assert numbers.duration(layer.time_s) in shown


def test_csv_reads_back(result):
    rows = list(csv.DictReader(layers_csv(result).splitlines()))
    assert len(rows) == len(result.layers)
    for row, layer in zip(rows, result.layers, strict=True):
        assert float(row["cycles"]) == layer.cycles
        assert int(row["flops"]) == layer.flops
        classes = {c.label: int(row[f"{c.label}_core_cycles"]) for c in CycleClass}
        assert {k: v for k, v in classes.items() if v} == layer.stall_cycles
        assert int(row["dram_read_bytes"]) == layer.bytes["dram"].read
        assert row["validated"] == "true"
    host = next(row for row in rows if row["how"] == "host")
    assert host["claim_cycles"] == "" and host["span_start"] != ""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (numbers.percent(0.4714), "47.1 %"),
        (numbers.percent(None), "-"),
        (numbers.cycles(1234567.25), "1,234,567"),
        (numbers.duration(2.5e-4), "250 us"),
        (numbers.flops(0), "-"),
        (numbers.flops(17179869184), "17.18 GFLOP"),
        (numbers.rate(1.31e14), "131 TFLOP/s"),
        (numbers.error(None), "-"),
        (numbers.error(0.00390625), "0.00391"),
        (numbers.size(3 << 20), "3 MiB"),
        (numbers.times(3, 2), "1.50x"),
        (numbers.times(3, 0), "-"),
    ],
)
def test_numbers(made, expected):
    assert made == expected


def test_elements_that_could_not_be_compared_are_counted(result):
    layers = [y.model_copy(update={"nonfinite_elements": 0}) for y in result.layers]
    layers[1] = layers[1].model_copy(update={"nonfinite_elements": 1200})
    layers[2] = layers[2].model_copy(update={"nonfinite_elements": 34})
    shown = lines_of(result.model_copy(update={"layers": tuple(layers)}))
    (told,) = [line for line in shown if "NaN or infinite" in line]
    assert told.startswith(f"  1,234 elements of 2 layers, {layers[1].name} first, ")
    assert not any("NaN" in line for line in lines_of(result))


def test_another_order_is_reported(result):
    assert not any("order" in line for line in summary.checks(result))
    inputs = result.manifest.inputs.model_copy(update={"order": "random:7"})
    manifest = result.manifest.model_copy(update={"inputs": inputs})
    told = list(summary.checks(result.model_copy(update={"manifest": manifest})))
    assert told[1] == "  order random:7: the same values as in the plan's order, in every byte"


def test_the_share_of_drams_peak_is_shown(result):
    line = next(line for line in summary.totals(result) if line.startswith("DRAM: "))
    assert "in whole bursts, the host's apart = " in line
    assert line.endswith(
        f"{100 * result.totals.dram_bandwidth_fraction:.1f} % of its peak over the run"
    )


def test_behind_a_cache_dram_moves_sectors(result):
    used = Caching(hits=3, merged=0, misses=1, sector_fills=1, write_backs=0, hit_rate=0.75)
    totals = result.totals.model_copy(update={"cache": used})
    told = summary.totals(result.model_copy(update={"totals": totals}))
    line = next(line for line in told if line.startswith("DRAM: "))
    assert "written through the cache; " in line
    assert "in whole sectors between it and DRAM" in line and "bursts" not in line


def test_results_without_an_error_to_tell_are_exact(result):
    def cells(**changed):
        layer = result.layers[0].model_copy(update={"max_error": None, **changed})
        return layer_table(result.model_copy(update={"layers": (layer,)})).rows[0][-3:]

    assert cells(tolerance_ratio=None, validated=True) == ("exact", "-", "pass")
    assert cells(tolerance_ratio=None, validated=False) == ("-", "-", "FAIL")
