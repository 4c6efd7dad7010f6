"""What has been compiled is known by name: in the sources, in the cache, and while one watches."""

from __future__ import annotations

from numba.core.dispatcher import Dispatcher

from npusim.core.compiled import compilations, entry_points, first_compilation
from npusim.core.jit import jit, jit_inline
from npusim.machine import engine, heap
from npusim.measure import accounting


def compiled_by(module) -> set[str]:
    """The functions of a module that numba compiles on their own."""
    return {
        f"{module.__name__}.{name}"
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__
        and not value.targetoptions.get("forceinline")
    }  # fmt: skip


def test_entry_points_are_those_that_numba_compiles_on_their_own():
    found = entry_points()
    for module in (engine, heap, accounting):
        mine = {name for name in found if name.rpartition(".")[0] == module.__name__}
        assert mine == compiled_by(module)
    assert not compiled_by(heap)


def test_the_first_compilation_of_the_package_is_told_as_it_begins():
    def twice(x):
        return 2 * x

    def thrice(x):
        return 3 * x

    def users(x):
        return 4 * x

    twice.__module__ = thrice.__module__ = "npusim.somewhere"
    users.__module__ = "npusim_user_kernel"
    told: list[int] = []
    with first_compilation(lambda: told.append(1)):
        assert jit(users)(1) == 4
        assert told == []
        assert (jit(twice)(1), jit(thrice)(1)) == (2, 3)
    assert told == [1]


def test_each_compilation_is_told_once_for_every_signature():
    @jit_inline
    def half(x):
        return x / 2

    @jit
    def mean(a, b):
        return half(a + b)

    told: list[str] = []
    with compilations(told.append):
        for values in ((1, 2), (3, 4), (1.0, 2.0)):
            mean(*values)
    mine = [name for name in told if name.startswith(__name__)]
    assert len(mine) == 2
    assert all(name.endswith(".mean") for name in mine)
    mean(1, 2.0)  # nobody watches any more
    assert len([name for name in told if name.startswith(__name__)]) == 2
