"""Commands of the model `detailed` are legal, and those that a slow, obvious controller issues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine.dram.detailed.replay import replay_detailed

STANDARDS = [
    "HBM2_2000",
    "HBM2E_3200",
    "HBM3_6400",
    "LPDDR5_6400",
    "DDR4_3200",
    "DDR5_4800",
    "GDDR6_14000",
]


def commands(rules, dram, replay):
    """The recorded commands with their places spelled out."""
    per_lane = dram.bank_groups * dram.banks_per_group
    for when, kind, bank, row in replay.commands.tolist():
        lane, rest = divmod(bank, per_lane)
        yield rules.Command(when, rules.NAMES[kind], lane, *divmod(rest, dram.banks_per_group), row)


def drawn_trace(dram, bursts: int, rows: int, write_share: float, seed: int):
    """Bursts over a few rows of every bank, so that hits, conflicts and turns all occur."""
    draw = np.random.Generator(np.random.PCG64(seed))
    ends = (dram.pseudo_channels, dram.bank_groups, dram.banks_per_group, rows, 4)
    return np.stack(
        [draw.random(bursts) < write_share, *(draw.integers(0, end, bursts) for end in ends)], 1
    ).astype(np.int64)


def check_stream(rules, dram, trace, replay):
    """Every command is legal, every burst is served once, refreshes come when they are due."""
    book = rules.RuleBook(dram)
    for command in commands(rules, dram, replay):
        assert book.broken(command) == []
        book.issue(command)
    served = sorted(
        (c.kind == rules.WRITE, c.lane, c.group, c.bank, c.row)
        for c in book.history
        if c.kind in rules.COLUMN
    )
    assert served == sorted((bool(w), *place) for w, *place, _ in trace.tolist())
    refi = dram.clocks(dram.timings_ns.refi) * rules.QUARTERS
    for lane in range(dram.pseudo_channels):
        times = [c.when for c in book.history if c.kind == rules.REF and c.lane == lane]
        assert all(k * refi <= t < (k + 1) * refi for k, t in enumerate(times, 1))
        if dram.refresh == "all_bank":
            assert len(times) >= replay.clocks * rules.QUARTERS // refi - 1
    return book


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("write_share", [0.0, 0.5])
def test_streams_of_every_standard_are_legal(rules, channel, standard, write_share):
    dram = channel(standard, "timings_ns.rfc=60 ns", "timings_ns.refi=250 ns")
    trace = drawn_trace(dram, 250, 3, write_share, seed=1)
    replay = replay_detailed(dram, trace, log_commands=2000)
    book = check_stream(rules, dram, trace, replay)
    kinds = {command.kind for command in book.history}
    assert kinds >= {rules.READ, rules.ACT, rules.PRE, rules.PRE_ALL, rules.REF}


@pytest.mark.parametrize(
    ("short", "early"),
    [("rcd=9 ns", "RD"), ("rp=9 ns", "ACT"), ("ras=20 ns", "PRE"), ("wtr_l=6 ns", "RD")],
)
def test_the_oracle_sees_a_command_that_comes_too_early(rules, channel, short, early):
    """A stream made for shorter times breaks the rules of the longer ones."""
    fast = channel("HBM2_2000", f"timings_ns.{short}")
    trace = drawn_trace(fast, 100, 3, 0.5, seed=2)
    replay = replay_detailed(fast, trace, log_commands=1000)
    slow = channel("HBM2_2000")
    book, broken = rules.RuleBook(slow), []
    for command in commands(rules, slow, replay):
        broken += book.broken(command)
        book.issue(command)
    assert any(f"'{early}'" in text for text in broken)


clocks = st.integers


@st.composite
def devices(draw):
    """Settings of a small device with short times, in whole nanoseconds of a 1 GHz clock."""
    rcd, rp = draw(clocks(1, 6)), draw(clocks(1, 6))
    ras = draw(clocks(rcd, 14))
    short = {name: draw(clocks(1, 5)) for name in ("ccd", "rrd", "wtr")}
    times = {
        "rcd": rcd, "rcd_write": draw(clocks(1, rcd)), "rp": rp, "ras": ras,
        "rc": draw(clocks(max(ras, rcd + rp), ras + rp + 3)), "cl": draw(clocks(1, 8)),
        "cwl": draw(clocks(1, 8)), "wr": draw(clocks(1, 8)), "rtp": draw(clocks(1, 5)),
        "faw": draw(clocks(short["rrd"], 30)), "rtw": draw(clocks(9, 14)),
        "rfc": draw(clocks(5, 20)), "refi": draw(clocks(150, 300)),
        **{f"{name}_s": value for name, value in short.items()},
        **{f"{name}_l": value + draw(clocks(0, 3)) for name, value in short.items()},
    }  # fmt: skip
    half = draw(st.booleans())
    return [
        *(f"timings_ns.{name}={value} ns" for name, value in times.items()),
        f"bank_groups={draw(st.sampled_from([1, 2, 4]))}",
        f"banks_per_group={draw(st.sampled_from([1, 2]))}",
        f"pseudo_channels={draw(st.sampled_from([1, 2]))}",
        f"dual_command_bus={draw(st.sampled_from(['true', 'false']))}",
        f"activate_command_clocks={1.5 if half else draw(st.sampled_from([1, 2]))}",
        f"precharge_command_clocks={0.5 if half else 1}",
        f"refresh={draw(st.sampled_from(['all_bank', 'none']))}",
        f"read_queue={draw(clocks(1, 6))}",
        f"write_queue={draw(clocks(2, 6))}",
    ]


@settings(max_examples=40)
@given(devices(), st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 0.6, 1.0]), clocks(1, 3))
def test_commands_are_those_of_an_obvious_controller(
    rules, controllers, channel, device, seed, write_share, rows
):
    dram = channel("HBM2_2000", *device)
    trace = drawn_trace(dram, 24, rows, write_share, seed)
    replay = replay_detailed(dram, trace, log_commands=400)
    requests = [controllers.Request(bool(w), *place) for w, *place, _ in trace.tolist()]
    slow = controllers.Controller(dram, requests, rules)
    assert list(commands(rules, dram, replay)) == slow.run()
    check_stream(rules, dram, trace, replay)
