"""A probe as text and pictures."""

from __future__ import annotations

import pytest

from npusim.report import curves, probe
from npusim.report.roofline import _merged, _names
from npusim.validate.probe_result import Curve, Roof, Series


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (7.25e-8, "s", "72.5 ns"),
        (17.0, "cycles", "17 cycles"),
        (738.7e9, "B/s", "738.7 GB/s"),
        (1.28e14, "FLOP/s", "128 TFLOP/s"),
        (97.72, "%", "97.72 %"),
    ],
)
def test_quantities(value, unit, text):
    assert probe.quantity(value, unit) == text


def a_curve(*lines):
    return Curve(
        group="matrix", name="a / b", x_label="x", y_label="y", y_unit="B/s", logarithmic=False,
        stated=None, series=lines,
    )  # fmt: skip


def test_lines_through_the_same_points_are_drawn_as_one():
    one = Series(label="bf16", x=(1.0, 2.0), y=(3.0, 4.0))
    same = one.model_copy(update={"label": "fp16"})
    other = Series(label="int8", x=(1.0,), y=(3.0,))
    assert list(curves.lines(a_curve(one, same, other))) == [
        ("bf16, fp16", (1.0, 2.0), (3.0, 4.0)),
        ("int8", (1.0,), (3.0,)),
    ]


@pytest.mark.parametrize(
    ("largest", "unit", "found"),
    [
        (2.039e12, "B/s", (1e9, "GB/s")),  # bandwidths have one unit on all pictures
        (819.2e9, "B/s", (1e9, "GB/s")),
        (131e12, "FLOP/s", (1e12, "TFLOP/s")),
        (99.0, "%", (1.0, "%")),
        (400.0, "B/s", (1.0, "B/s")),
    ],
)
def test_an_axis_has_a_unit_in_which_its_numbers_are_short(largest, unit, found):
    assert curves.scale(largest, unit) == found


def test_numbers_of_cores_are_ticks_where_they_have_room():
    assert curves.measured_ticks([1.0, 2.0, 4.0]) == [1.0, 2.0, 4.0]
    many = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 72.0]
    assert curves.measured_ticks(many) == [4.0, 8.0, 16.0, 32.0, 64.0, 72.0]


def test_a_picture_names_its_machine():
    line = Series(label="p", x=(1.0, 2.0), y=(3e9, 4e9))
    assert curves.picture(a_curve(line), "m_1") != curves.picture(a_curve(line), "m_2")


def test_roofs_that_share_a_line_say_what_they_share_once():
    assert _names(["matrix bf16", "matrix fp16"]) == "matrix bf16, fp16"
    assert _names(["vector simple", "matrix fp16"]) == "vector simple, matrix fp16"


def test_points_that_a_line_lacks_are_empty_cells():
    table = probe._points(
        a_curve(
            Series(label="p", x=(1.0, 2.0), y=(3.0, 4.0)), Series(label="q", x=(2.0,), y=(5e9,))
        )
    )
    assert table.rows == (("1", "3 B/s", "-"), ("2", "4 B/s", "5 GB/s"))


def test_roofs_of_one_height_share_a_line_and_keep_the_best_measurement():
    def roof(name, stated, measured):
        return Roof(name=name, kind="compute", stated=stated, measured=measured)

    assert _merged([roof("a", 1.0, 0.5), roof("b", 2.0, None), roof("c", 1.0, 0.75)]) == [
        ("b", 2.0, None),
        ("a, c", 1.0, 0.75),
    ]
