"""What kernels are compiled to."""

from __future__ import annotations

import textwrap

import pytest

from npusim import simt
from npusim.core.errors import InputError
from npusim.program.simt.code import Parameter
from npusim.program.simt.listing import listing
from npusim.program.simt.opcodes import Kind

REAL, WHOLE = Kind.FP32, Kind.INT32
LIMIT = 7


def code_of(kernel, **choices):
    """Arrays a, b of fp32, i of int32, n a scalar, by the first letters of their names."""
    kinds = {"i": WHOLE, "n": WHOLE}
    parameters = [
        Parameter(name, kinds.get(name[0], REAL), 0 if name[0] == "n" else 2 if name == "m" else 1)
        for name in kernel.parameters
    ]
    return kernel.compile(parameters, choices)


def instructions(kernel, **choices):
    """The listing without source lines and numbers."""
    rows = listing(code_of(kernel, **choices)).split("\n")
    return [row[13:] for row in rows if row.startswith("       ")]


@simt.kernel
def scaled(a, b, n):
    i = simt.grid(1)
    if i < n:
        b[i] = a[i] * 2.0


@simt.kernel
def summed(a, b):
    acc = 0.0
    for k in range(a.size):
        acc += a[k]
    b[0] = acc


@simt.kernel
def of_rows(m, b):
    b[simt.lane] = m[simt.lane, 3]


@simt.kernel
def chosen(b, *, fast=True):
    if fast:
        b[0] = 1.0
    else:
        b[0] = 2.0


@simt.kernel
def known_numbers(b):
    size = 4 * LIMIT
    s = simt.shared((size, 2), simt.float32, pad=1)
    s[0, 0] = size // 5
    b[0] = s[0, 0]


@simt.kernel(registers=40)
def guarded(a, b):
    i = simt.thread.x
    if i < a.size and a[i] > 0.0:
        b[i] = 1.0


def test_a_guarded_element():
    """What a thread knows of itself is read first, and once."""
    assert [row.split(".int32")[0] for row in instructions(scaled)[:3]] == [
        "special.block_x", "special.threads_x", "special.thread_x",
    ]  # fmt: skip
    text = listing(code_of(scaled))
    assert "less.int64 r" in text and ", n" in text
    assert "multiply.fp32" in text and ", 2" in text
    assert instructions(scaled)[-1] == "exit"


def test_a_loop_is_tested_behind_its_body():
    """Once around: a load, an addition into the variable itself, a count, a test, a branch."""
    rows = instructions(summed)
    body = rows[rows.index(next(r for r in rows if r.startswith("load"))) :]
    assert [row.split()[0] for row in body[:5]] == [
        "load", "add.fp32", "add.int32", "less.int64", "branch",
    ]  # fmt: skip
    assert " if " in body[4]


def test_an_index_of_each_dimension():
    rows = [row for row in instructions(of_rows) if row.startswith("index")]
    assert [row.split(" of ", 1)[1] for row in rows] == ["dimension 0 of m", "dimension 1 of m"]


def test_only_the_chosen_branch_is_compiled():
    assert [r for r in instructions(chosen, fast=False) if "store" in r] == ["store b[0] = 2"]
    assert not [r for r in instructions(chosen) if "branch" in r]


def test_known_numbers_stay_known():
    code = code_of(known_numbers)
    (array,) = code.shared
    assert (array.name, array.shape, array.strides, array.elements) == ("s", (28, 2), (3, 1), 84)
    assert "store s[" in listing(code) and "= 5" in listing(code)


def test_a_guard_keeps_the_load_away():
    """`and` looks at memory only where its left side holds: a branch before the load."""
    rows = instructions(guarded)
    load = next(n for n, row in enumerate(rows) if row.startswith("load"))
    assert any(row.startswith("branch") for row in rows[:load])
    assert guarded.registers == 40


def test_a_program_is_compiled_once():
    assert code_of(scaled) is code_of(scaled)
    assert code_of(chosen, fast=False) is not code_of(chosen, fast=True)


def test_registers_that_are_needed_at_once():
    """Of the sum: the sum, the count, the element; the test replaces the element."""
    assert 3 <= code_of(summed).registers_alive <= 4


# ------------------------------------------------------------------ errors


def broken(tmp_path, monkeypatch, body, **choices):
    """Compiles a kernel of (a, i) with such a body; returns what is said, with its place."""
    text = "from npusim import simt\nimport numpy as np\n\n\n@simt.kernel\ndef wrong(a, i):\n"
    text += textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    text += "\n\ndef half(x):\n    if x > 3:\n        return x\n"
    file = tmp_path / "mine.py"
    file.write_text(text)
    space = {"__name__": "mine"}
    exec(compile(text, str(file), "exec"), space)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        space["wrong"].compile([Parameter("a", REAL, 1), Parameter("i", WHOLE, 1)])
    return str(raised.value.problems[0]).replace(str(file), "mine.py")


@pytest.mark.parametrize(
    ("body", "place", "said"),
    [
        ("x = [1, 2]", "7:9", "kernels cannot hold List"),
        ("try:\n    a[0] = 1\nexcept ValueError:\n    pass", "7:5", "kernels raise nothing"),
        ("with a:\n    pass", "7:5", "cannot hold `with`"),
        ("print(a[0])", "7:5", "`print` cannot be called in a kernel"),
        ("a[0] = np.sum(a)", "7:12", "cannot be called in a kernel"),
        ("a[0] = simt.exq(a[1])", "7:12", "there is no `exq` here"),
        ("a[0] = simt.exq(a[1])", "7:12", "nearest: exp"),
        ("a[0, 1] = 2.0", "7:5", "a has 1 dimensions, found 2 indices"),
        ("a[0] = missing", "7:12", "`missing` is not defined"),
        ("acc = 0\nfor k in range(4):\n    acc += a[k]", "9:9", "`acc` is int32 since line 7"),
        ("acc = 0\nfor k in range(4):\n    acc += a[k]", "9:9", "begin with a float such as 0.0"),
        ("if a[0] > 1:\n    x = 1.0\na[1] = x", "9:12", "may be read here before it is assigned"),
        ("i[0] = a[0]", "7:5", "i holds int32, found an fp32 value"),
        ("a[a[0]] = 1", "7:5", "an index of a must be an integer, found fp32"),
        ("for x in a:\n    pass", "7:5", "kernels loop over ranges"),
        (
            "for k in range(4):\n    pass\nelse:\n    a[0] = 1",
            "10:9",
            "loops of kernels have no else",
        ),
        ("return a[0]", "7:5", "a kernel returns nothing"),
        ("n = i[0]\ns = simt.shared(n, simt.float32)", "8:9", "must be known when the kernel"),
        ("x = a[0] & 1", "7:9", "bits of fp32 numbers cannot be combined"),
        ("simt.barrier(1, 2, 3)", "7:5", "too many positional arguments"),
        ("f = lambda x: x", "7:9", "write a function with `def`"),
        ("a[0:2] = 1.0", "7:7", "write a loop over the elements"),
        ("x = 'text'", "7:9", "kernels compute with numbers"),
        ("simt.atomic_add(a, 0, 'x')", "7:27", "kernels compute with numbers"),
        ("simt.atomic_xor(a, 0, 1)", "7:5", "int32, uint32 and int64; a holds fp32"),
        ("x, y = simt.load(a, 0, 3)", "7:12", "up to 4 elements of a, found 3"),
        ("a[0] = 1 if 'x' in a else 2", "7:17", "kernels compute with numbers"),
        ("global z", "7:5", "cannot hold `global`"),
        ("x = i[0] ** i[1]", "7:9", "write float(x) ** y"),
        ("a.fill = 3", "7:5", "kernels assign to names and to elements"),
        ("for k in range(0, 9, 0):\n    pass", "7:5", "the step of a range must not be 0"),
        (
            "s = simt.shared(32, simt.float32, swizzle=3)",
            "7:9",
            "swizzle must be (bits, base, shift)",
        ),
        ("s = simt.shared(32, simt.float32, swizzle=(3, 0, 2))", "7:9", "must not be below its 3"),
        ("s = simt.shared((2, 2, 2, 2, 2), simt.int8)", "7:9", "1 to 4 dimensions, found 5"),
        ("a[0] = simt.shuffle(a[0], 1.5)", "7:12", "a lane is a whole number"),
        ("i[0] = 2**40", "7:5", "i holds int32, which 1099511627776 is not"),
        ("a[0] = 10**30", "7:5", "more than 64 bits"),
        ("simt.atomic_add(i, 0, 1.5)", "7:5", "i holds int32, which 1.5 is not"),
        ("x = i[0] > 1\nx = i[0]", "8:5", "`x` is bool since line 7"),
        ("a[0] = half(i[0])", "7:12", "half may end without returning a value"),
        ("simt.barrier(16)", "7:5", "barriers have the numbers 0 to 15"),
        ("a[0] = len(3)", "7:12", "has no len"),
    ],
)
def test_what_a_kernel_cannot_hold_is_told_at_its_place(tmp_path, monkeypatch, body, place, said):
    text = broken(tmp_path, monkeypatch, body)
    assert text.startswith(f"mine.py:{place}: ")
    assert said in text


def test_a_function_that_calls_itself(tmp_path, monkeypatch):
    def again(x):
        return again(x - 1)

    @simt.kernel
    def wrong(a):
        a[0] = again(3)

    with pytest.raises(InputError, match="again calls itself"):
        wrong.compile([Parameter("a", REAL, 1)])


def test_choices_by_other_names():
    with pytest.raises(InputError, match="nearest: fast"):
        code_of(chosen, fats=True)


def test_names_have_no_value_outside_of_kernels():
    with pytest.raises(InputError, match="only inside a kernel"):
        simt.barrier()
