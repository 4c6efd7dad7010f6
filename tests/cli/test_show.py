"""`npusim show`, `list` and `export`."""

from __future__ import annotations

import ast
import json
import re

import pytest

from npusim.core.catalog import listing
from npusim.hw.loader import parse_machine
from npusim.hw.schema import json_schema
from npusim.measure.result import Result

SMALL = ("--model", "matmul", "--set", "m=64", "--set", "n=96", "--set", "k=128")


def test_hw_as_a_table(npusim):
    done = npusim("show", "hw", "--hw", "npu_edge", "--hw-set", "core.clock_hz=1 GHz")
    assert done.code == 0
    assert re.search(r"^core\.clock_hz +1 GHz +assumed: --hw-set", done.out, re.M)
    assert re.search(r"^int8 +[\d,]+ FLOP +[\d.]+ TFLOP/s +[\d.,]+ FLOP/B$", done.out, re.M)
    assert "peaks: 1 core at 1 GHz, DRAM" in done.out


def test_peaks_and_ridge_point_of_npu_a(npusim):
    out = npusim("show", "hw").out
    # 4 cores x 2 x 128 x 128 FLOP per cycle at 1 GHz, 819.2 GB/s.
    assert re.search(r"^bf16 +131,072 FLOP +131\.1 TFLOP/s +160\.0 FLOP/B$", out, re.M)
    assert re.search(r"^fp32 +32,768 FLOP +32\.77 TFLOP/s +40\.0 FLOP/B$", out, re.M)


def test_values_are_written_as_yaml_takes_them(npusim):
    out = npusim("show", "hw").out
    assert re.search(r"^dram\.dual_command_bus +true ", out, re.M)
    assert re.search(r"^core\.sram\.swizzle +false ", out, re.M)
    assert re.search(r"^cache +null ", out, re.M)
    assert re.search(r"^dram\.address_mapping +\[.*, row\] ", out, re.M)


def test_hw_as_a_file(npusim):
    done = npusim("show", "hw", "--yaml", "--hw-set", "cores=2")
    assert parse_machine(done.out).machine.cores == 2


def test_model(npusim):
    out = npusim("show", "model", *SMALL).out
    assert "matmul: m=64, n=96, k=128, batch=1, dtype=bf16" in out
    row = next(line for line in out.splitlines() if line.startswith("matmul  MatMul"))
    assert "bf16[64x128], bf16[128x96]" in row
    assert f"{2 * 64 * 96 * 128 / 1e6:.4g} MFLOP" in row
    assert f"{128 * 96:,}" in row
    assert "1 operator, " in out and f"{128 * 96:,} parameters in 1 tensor, " in out


def test_model_says_what_the_import_did_and_what_must_be_given(npusim, data):
    models = data / "models"
    out = npusim("show", "model", "--model", models / "mnist_cntk.onnx").out
    assert "the import:" in out and "  folded " in out
    done = npusim(
        "show", "model", "--model", models / "tiny_gpt2_fp32_kvcache.onnx",
        "--set", "batch_size=1", "--set", "seq_len=4", "--set", "past_seq_len=2",
        "--set", "total_seq_len=6",
    )  # fmt: skip
    assert "to be given: --input input_ids=..." in done.out


def test_plan_is_a_plan_file(npusim, file):
    text = npusim("show", "plan", *SMALL).out
    ast.parse(text)
    pinned = file("pinned.py", text)
    assert npusim("show", "plan", *SMALL, "--plan", pinned).out == text
    first, second = (
        Result.model_validate_json(npusim("run", *SMALL, "--json", *plan).out)
        for plan in ((), ("--plan", pinned))
    )
    assert first.manifest.hashes == second.manifest.hashes
    assert first.totals == second.totals


def test_program(npusim):
    out = npusim("show", "program", *SMALL).out
    assert "instructions" in out.splitlines()[0]
    assert "#0 " in out
    rows = [line for line in out.splitlines() if re.match(r" +#\d+ ", line)]
    assert 0 < len(rows) <= 40
    everything = npusim("show", "program", *SMALL, "--all").out
    assert len(everything) >= len(out) and "more" not in everything.splitlines()[-1]
    core = npusim("show", "program", *SMALL, "--core", 0, "--all").out
    listed = [line for line in core.splitlines() if re.match(r" +#\d+ ", line)]
    assert listed and all("core 0" in line for line in listed)
    done = npusim("show", "program", *SMALL, "--layer", "matmuls")
    assert (done.code, "nearest: matmul" in done.err) == (2, True)


def test_result_latest_folder_and_file(npusim, tmp_path):
    assert npusim("show", "result").code == 2
    document = npusim("run", *SMALL, "--json").out
    shown = npusim("show", "result").out
    assert shown.splitlines()[0] == "matmul on npu_a under plan auto, seed 0"
    assert "assumptions:" in shown
    folder = tmp_path / "results" / "matmul@npu_a" / "latest"
    for path in (folder, folder / "result.json"):
        assert npusim("show", "result", path, "--json").out == document
    assert npusim("show", "result", "--json").out == document
    wrong = npusim("show", "result", folder / "layers.csv")
    assert (wrong.code, "is no result of schema version 1" in wrong.err) == (2, True)


def test_list_names_everything(npusim):
    out = npusim("list").out
    for kind in ("hwconfigs", "workloads", "plans"):
        for name, text in listing(kind):
            assert re.search(rf"^{re.escape(name)} +{re.escape(text)}", out, re.M)
    assert re.search(r"^auto +every operator as", out, re.M)
    assert re.search(r"^matmul +matmul +m n k grid .*MatMul, Gemm", out, re.M)
    assert re.search(r"^flash +attention +q kv heads", out, re.M)
    assert re.search(r"^mlp +batch=128 inputs=784 .*dtype=bf16", out, re.M)
    assert "ONNX operators (kernels above, else on the host): Abs, Add," in out


def test_the_schema_of_machine_files_is_printed(npusim):
    schema = json.loads(npusim("show", "hw", "--schema").out)
    assert schema == json_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_export_writes_a_model_that_comes_back(npusim, tmp_path):
    sizes = ("--set", "batch=4", "--set", "inputs=8", "--set", "hidden=16", "--set", "layers=1")
    done = npusim("export", "--model", "mlp", *sizes, "-o", "mlp.onnx", "--dtype", "float32")
    assert done.out == "wrote mlp (2 operators) to mlp.onnx\n"
    out = npusim("show", "model", "--model", "mlp.onnx").out
    assert "fp32[4x8], fp32[8x10]" in out


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("export",), "error: -o: say which file to write"),
        (("export", "-o", "x.onnx", "--dtype", "int8"), "expected a float dtype"),
        (("export", "-o", "x.onnx", "--model", "none"), "the catalogue has no model 'none'"),
        (("show",), "allowed: hw, model, plan, program, result"),
        (("show", "modle"), "nearest: model"),
        (("show", "hw", "--modle", "x"), "npusim show hw has no flag --modle"),
        (("show", "result", "nowhere"), "cannot be read: No such file"),
        (("show", "program", *SMALL, "--layer", "no"), "the program has no layer 'no'"),
        (("show", "program", *SMALL, "--core", "9"), "the program has cores 0 to 3, not 9"),
    ],
)
def test_mistakes(npusim, argv, told):
    done = npusim(*argv)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
