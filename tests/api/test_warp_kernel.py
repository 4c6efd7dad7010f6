"""One warp kernel by itself: examples of the catalogue and of files of one's own."""

from __future__ import annotations

import json

import pytest

from npusim.api.warp_kernel import run_kernel
from npusim.core.catalog import names
from npusim.core.errors import InputError

MINE = """
import numpy as np
from npusim import simt

@simt.kernel
def twice(x, out, *, offset=0):
    i = simt.grid(1)
    if i < x.size:
        out[i] = x[i] * {factor} + float(offset)

@twice.example
def _(rng, *, n: int = 100):
    x = rng.standard_normal(n, dtype=np.float32)
    return simt.Example(blocks=-(-n // 64), threads=64, arguments=(x, np.zeros_like(x)),
                        reference=lambda x, out: {{"out": 2 * x}})

@simt.kernel
def alone(x):
    x[0] = 1.0
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A file of one's own."""
    monkeypatch.chdir(tmp_path)

    def write(factor="2.0"):
        (tmp_path / "mine.py").write_text(MINE.format(factor=factor))
        return "mine.py:twice"

    return write


@pytest.mark.parametrize("name", names("warps"))
def test_every_kernel_of_the_catalogue_is_right(name):
    """Its values agree with its reference, and no check finds anything."""
    result = run_kernel(name, out=None).result
    assert result.compared and result.is_right
    assert result.findings == ()


@pytest.mark.parametrize("name", names("warps"))
@pytest.mark.parametrize("order", [1, 2])
def test_in_any_order_of_warps(name, order):
    result = run_kernel(name, out=None, order_seed=order).result
    assert result.is_right and result.findings == ()


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("transpose", {"rows": "33", "columns": "70"}),
        ("transpose", {"rows": "1", "columns": "1"}),
        ("reduce", {"n": "1", "blocks": "3"}),
        ("reduce", {"n": "100003"}),
        ("softmax", {"rows": "5", "columns": "31"}),
        ("rmsnorm", {"rows": "3", "columns": "100"}),
        ("gather", {"count": "7", "columns": "33"}),
        ("histogram", {"n": "1001", "copies": "4"}),
    ],
)
def test_ragged_sizes(name, sizes):
    assert run_kernel(name, sizes=sizes, out=None).result.is_right


def test_copies_of_a_histogram_take_fewer_turns():
    few, many = (
        run_kernel("histogram", sizes={"copies": c, "spread": "4"}, out=None).result
        for c in ("1", "8")
    )
    assert many.total("conflicts") < 0.6 * few.total("conflicts")


def test_a_file_of_one_s_own(mine):
    found = run_kernel(mine(), out=None).result
    assert found.is_right and found.total("divergent") == 1
    assert found.blocks == (2, 1, 1) and found.threads == (64, 1, 1)


def test_a_kernel_that_is_wrong_is_told(mine):
    found = run_kernel(mine("2.1"), out=None).result
    assert not found.is_right
    (out,) = found.compared
    assert out.name == "out" and out.error > out.allowed


def test_a_choice_and_a_size(mine):
    found = run_kernel(mine(), sizes={"n": "64", "offset": "3"}, out=None).result
    assert not found.is_right and found.compared[0].error == pytest.approx(3, abs=1e-5)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"m": "3"}, "m is neither a size of the example nor a choice of twice"),
        ({"n": "many"}, "expected a whole number, found 'many'"),
        ({"offset": "x"}, "expected a whole number"),
    ],
)
def test_wrong_sizes(mine, sizes, said):
    with pytest.raises(InputError) as raised:
        run_kernel(mine(), sizes=sizes, out=None)
    text = str(raised.value.problems[0])
    assert said in text and text.startswith("--set")


ODD = """
import numpy as np
from npusim import simt

@simt.kernel
def odd(x, y):
    s = simt.shared(SIZE, simt.float32)
    s[simt.lane] = x[simt.lane]
    y[simt.lane] = s[simt.lane]

@odd.example
def _(rng):
    z = np.zeros(64, np.float32)
    EXAMPLE
"""


@pytest.mark.parametrize(
    ("size", "example", "said"),
    [
        (40000, "return simt.Example(1, 32, (z, z.copy()))", "160,000 B of shared memory are more"),
        (32, "return simt.Example(0, 32, (z, z.copy()))", "blocks are one to three numbers from 1"),
        (32, "return simt.Example((1, 2, 3, 4), 32, (z, z.copy()))", "found 1 x 2 x 3 x 4"),
        (32, "return simt.Example(1, 32, (z[:40], z[20:]))", "x and y lie in the same memory"),
        (32, "return simt.Example(1, 32, (z,))", "takes 2 arguments, its example gives 1"),
        (32, "return simt.Example(1, 32, (z, np.zeros(64)))", "found float64 of 1 dimensions"),
        (32, "return 3", "returned a int, not a simt.Example"),
        (
            32,
            "return simt.Example(1, 32, (z, z.copy()), lambda x, y: {'y': x[:3]})",
            "the reference of y has the shape [3], the array [64]",
        ),
        (32, "return simt.Example(1, 32, (z, z.copy()), lambda x, y: {'w': x})", "no array of odd"),
        (32, "raise ValueError('mine')", "ValueError: mine"),
    ],
)
def test_examples_that_cannot_be(tmp_path, monkeypatch, size, example, said):
    monkeypatch.chdir(tmp_path)
    text = ODD.replace("SIZE", str(size)).replace("EXAMPLE", example)
    (tmp_path / "odd.py").write_text(text)
    with pytest.raises(InputError) as raised:
        run_kernel("odd.py:odd", out=None)
    assert said in str(raised.value.problems[0])


def test_one_array_may_be_given_twice(tmp_path, monkeypatch):
    """Then both are the same memory."""
    monkeypatch.chdir(tmp_path)
    example = "return simt.Example(1, 32, (z, z), lambda x, y: {'y': np.zeros(64)})"
    text = ODD.replace("SIZE", "32").replace("EXAMPLE", example)
    (tmp_path / "odd.py").write_text(text)
    assert run_kernel("odd.py:odd", out=None).result.is_right


def test_what_cannot_be_found(mine):
    subject = mine()
    with pytest.raises(InputError, match="which warp kernel of the file"):
        run_kernel("mine.py", out=None)
    with pytest.raises(InputError, match="alone has no example"):
        run_kernel("mine.py:alone", out=None)
    with pytest.raises(InputError, match="nearest: twice"):
        run_kernel("mine.py:twise", out=None)
    with pytest.raises(InputError, match="nearest: transpose"):
        run_kernel("transpos", out=None)
    with pytest.raises(InputError, match="has no warps"):
        run_kernel(subject, "npu_edge", out=None)


def test_results_are_the_same_bytes(mine, tmp_path):
    subject = mine()
    first, second = (run_kernel(subject, out=str(tmp_path / n)).folder for n in "ab")
    files = {path.name for path in first.iterdir()}
    assert files == {"kernel.json", "report.txt", "machine.yaml", "run.json"}
    for name in files - {"run.json"}:
        assert (first / name).read_bytes() == (second / name).read_bytes()
    document = json.loads((first / "kernel.json").read_text())
    assert document["kernel"] == "twice" and document["lines"][0]["issues"] > 0


def test_a_picture_where_there_is_shared_memory(tmp_path):
    folder = run_kernel("transpose", sizes={"pad": "0"}, out=str(tmp_path)).folder
    assert (folder / "banks.svg").read_text().startswith("<?xml")
