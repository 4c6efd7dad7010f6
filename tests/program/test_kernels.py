"""Programs that kernels make: whatever they do, the derived edges satisfy the checker."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from npusim.core.errors import IllegalProgram
from npusim.machine.order import shuffled
from npusim.plan.grid import Grid
from npusim.program.checker import check, problems
from npusim.program.kinds import Kind, Space

SIZE = 96
CUTS = st.sampled_from((16, 24, 32, 48, 96))


@st.composite
def programs(draw, rig, npu):
    """Two or three random kernels that read what the ones before wrote."""
    r = rig.Rig(npu)
    tensors = [r.tensor(name, "bf16", "m n", SIZE, SIZE) for name in ("x", "w")]
    for number in range(draw(st.integers(2, 3))):
        space = draw(st.sampled_from((Space.DRAM, Space.SHARED)))
        out = r.tensor(f"y{number}", "bf16", "m n", SIZE, SIZE, initial=False, space=space)
        t = r.layer(f"kernel {number}")
        kernel = draw(st.sampled_from((product, elementwise, normalise, transpose)))
        kernel(draw, r, t, draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors)), out)
        tensors.append(out)
    return r.finish()


def product(draw, r, t, x, w, y):
    m, n, k = (draw(CUTS) for _ in "mnk")
    slots = draw(st.integers(1, 3))
    a = t.sram("bf16", m, k, slots=slots, name="a")
    b = t.sram("bf16", k, n, slots=draw(st.integers(1, 2)), name="b")
    acc = t.acc("fp32", m, n, slots=draw(st.integers(1, 2)), name="acc")
    out = t.sram("bf16", m, n, name="out")
    grid = draw(st.sampled_from((Grid(), Grid(m=2), Grid(m=2, n=2), Grid(k=3))))
    A, B = x.axes("m k"), w.axes("k n")
    keep = draw(st.booleans()) and slots > 1
    for core, M, N, K in t.split(grid, A.m, B.n, A.k):
        for i in M.tiles(m):
            for j in N.tiles(n):
                for p in K.tiles(k):
                    left = t.load(a, A[i, p], keep=keep and len(K) <= slots * k)
                    t.mma(acc, left, t.load(b, B[p, j]), first=p.first)
                t.store(y[i, j], acc, via=out, add_over=core.along("k"))


def elementwise(draw, r, t, x, w, y):
    m, n = draw(CUTS), draw(CUTS)
    a, b = (t.sram("bf16", m, n, slots=draw(st.integers(1, 2)), name=name) for name in "ab")
    shown = r.tap("sum", "m n", SIZE, SIZE)
    both = t.sram("fp32", m, n, name="both")
    for _, i, j in t.deal(list(y.m.tiles(m)), list(y.n.tiles(n))):
        total = t.vec(both, t.load(a, x[i, j]) + t.load(b, w[i, j]))
        t.holds(shown[i, j], total)
        t.store(y[i, j], t.vec(a, total * 0.5))


def normalise(draw, r, t, x, w, y):
    """Rows with a running maximum; the halves of a tile are written one by one."""
    m = draw(st.sampled_from((16, 32)))
    a = t.sram("bf16", m, SIZE, slots=draw(st.integers(1, 2)), name="a")
    top, out = t.sram("fp32", m, 1, name="top"), t.sram("bf16", m, SIZE, name="out")
    half = SIZE // 2
    for _, i in t.deal(list(y.m.tiles(m))):
        rows = t.load(a, x[i, slice(0, SIZE)])
        t.vec(top, rows.max(axis="row"))
        whole = out.next(t.core, (i.size, SIZE))
        t.vec(whole[:, :half], rows[:, :half] - top)
        t.vec(whole[:, half:], rows[:, half:] - top)
        t.store(y[i, slice(0, SIZE)], whole)


def transpose(draw, r, t, x, w, y):
    m, n = draw(CUTS), draw(CUTS)
    a = t.sram("bf16", m, n, slots=2, name="a")
    turned = x.permute("n m")
    for _, i, j in t.deal(list(y.m.tiles(m)), list(y.n.tiles(n))):
        t.store(y[i, j], t.load(a, turned[i, j]))


@settings(max_examples=60)
@given(st.data())
def test_derived_edges_satisfy_the_checker(rig, npu, data):
    check(data.draw(programs(rig, npu)), npu)


@settings(max_examples=15)
@given(st.data())
def test_a_random_edge_less_is_seen_or_changes_no_order(rig, sketch, brute, npu, data):
    program = data.draw(programs(rig, npu))
    assume(len(program) < 700)
    source, target = data.draw(st.sampled_from(sketch.edges(program)))
    less = sketch.without_edge(program, source, target)
    implied = brute.happens_before(less)[source, target]
    assert bool(problems(less, npu)) == (not implied)


@settings(max_examples=10)
@given(st.data())
def test_legal_programs_run_to_the_end_in_any_order(rig, npu, data):
    program = data.draw(programs(rig, npu))
    order = list(shuffled(program, data.draw(st.integers(0, 99))))
    assert sorted(order) == list(range(len(program)))


def by_hand(rig, npu, *, wait_for_use=True, wait_for_load=True):
    """Double buffering with edges placed by the kernel."""
    r = rig.Rig(npu)
    x = r.tensor("x", "bf16", "m k", 128, 512)
    y = r.tensor("y", "bf16", "m n", 128, 128, initial=False)
    t = r.layer("hand")
    a = t.sram("bf16", 128, 128, slots=2, name="a")
    acc, out = t.acc("fp32", 128, 128, name="acc"), t.sram("bf16", 128, 128, name="out")
    uses = []
    with t.order("by hand"):
        for p in x.k.tiles(128):
            if wait_for_use and p.index >= 2:
                t.wait(uses[p.index - 2])
            tile = t.load(a, x[slice(0, 128), p])
            if wait_for_load:
                t.wait(t.event())
            t.mma(acc, tile, tile, first=p.first)
            uses.append(t.event())
        t.wait(uses[-1])
        t.vec(out, acc)
        t.wait(t.event())
        t.store(y[slice(0, 128), slice(0, 128)], out)
    return r.finish()


def test_order_by_hand(rig, npu):
    program = by_hand(rig, npu)
    check(program, npu)
    assert len(program.edges.source) == 4 + 2 + 1 + 1


@pytest.mark.parametrize(
    ("forgotten", "expected"),
    [
        ("wait_for_use", "race on a.0 in sram of core 0: 32 KiB are read and written in no order"),
        ("wait_for_load", "race on a.0 in sram of core 0: 32 KiB are written and read in no order"),
    ],
)
def test_what_is_forgotten_by_hand_is_found(rig, npu, forgotten, expected):
    with pytest.raises(IllegalProgram) as caught:
        check(by_hand(rig, npu, **{forgotten: False}), npu)
    told = [p for p in caught.value.problems if p.message == expected]
    assert told
    assert all("(hand, kernel by_test" in line and "k=" in line for line in told[0].hints[:2])


def test_a_tile_of_another_core(rig, npu):
    """A handle kept from one core and used while the kernel works for another."""
    r = rig.Rig(npu)
    x = r.tensor("x", "bf16", "m k", 128, 64)
    t = r.layer("mixed")
    a, out = t.sram("bf16", 64, 64, name="a"), t.sram("bf16", 64, 64, name="out")
    tiles = []
    for _, i in t.deal(list(x.m.tiles(64))):
        tiles.append(t.load(a, x[i, slice(0, 64)]))
    t.vec(out, tiles[0])
    with pytest.raises(IllegalProgram) as caught:
        check(r.finish(), npu)
    assert caught.value.problems[0].message == (
        "an operand of a vec must be in sram or acc of core 3, not a@sram0[64x64 bf16]"
    )


def test_the_random_kernels_use_everything(rig, npu):
    """A guard of the properties above: all kinds but the host's, both shared memories."""
    kinds, spaces = set(), set()

    @settings(max_examples=30, database=None)
    @given(st.data())
    def collect(data):
        program = data.draw(programs(rig, npu))
        kinds.update(program.instructions.kind.tolist())
        spaces.update(program.buffers.space.tolist())
        assert len(program.holds.after) == 0 or Space.TAP in program.buffers.space

    collect()
    assert kinds == {Kind.COPY, Kind.MMA, Kind.VECTOR}
    assert spaces == set(Space)
