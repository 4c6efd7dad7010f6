"""Number formats: names, sizes, roundoff."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

from npusim.core.dtypes import dtype, names, of_numpy
from npusim.core.errors import InputError


@pytest.mark.parametrize(
    ("name", "itemsize", "roundoff", "tiny", "largest"),
    [
        ("fp64", 8, 2.0**-53, 2.0**-1074, float(np.finfo(np.float64).max)),
        ("fp32", 4, 2.0**-24, 2.0**-149, (2 - 2.0**-23) * 2.0**127),
        ("fp16", 2, 2.0**-11, 2.0**-24, 65504.0),
        ("bf16", 2, 2.0**-8, 2.0**-133, (2 - 2.0**-7) * 2.0**127),
        ("fp8e4m3", 1, 2.0**-4, 2.0**-9, 448.0),
        ("fp8e5m2", 1, 2.0**-3, 2.0**-16, 57344.0),
        ("int8", 1, 0.0, 1.0, 127.0),
        ("uint8", 1, 0.0, 1.0, 255.0),
        ("int32", 4, 0.0, 1.0, 2147483647.0),
        ("bool", 1, 0.0, 1.0, 1.0),
    ],
)
def test_formats(name, itemsize, roundoff, tiny, largest):
    found = dtype(name)
    assert (found.itemsize, found.unit_roundoff) == (itemsize, roundoff)
    assert (found.tiny, found.largest) == (tiny, largest)
    assert found.is_float == (roundoff > 0)


def test_one_object_per_format_under_all_its_names():
    assert dtype("bfloat16") is dtype("bf16") is of_numpy(ml_dtypes.bfloat16)
    assert pickle.loads(pickle.dumps(dtype("bf16"))) is dtype("bf16")
    assert all(of_numpy(dtype(name).numpy) is dtype(name) for name in names())
    assert repr(dtype("float8_e4m3fn")) == "fp8e4m3"


def test_unknown_formats_name_the_nearest():
    with pytest.raises(InputError, match="unknown dtype 'bf17'\n  nearest: bf16"):
        dtype("bf17")
    with pytest.raises(InputError, match="unsupported numpy dtype complex64"):
        of_numpy(np.complex64)
