"""Kernels with planted faults, and the correct ones beside them."""

from __future__ import annotations

from npusim import simt


@simt.kernel
def exit_before_barrier(out):
    if simt.lane >= 16:
        return
    simt.barrier()
    out[simt.lane] = 1


@simt.kernel
def half_a_barrier(out):
    if simt.lane < 16:
        simt.barrier()
    out[simt.thread.x] = 1


@simt.kernel
def one_warp_waits(out):
    if simt.warp == 0:
        simt.barrier()
    else:
        while out[0] == 0:
            pass
    out[0] = 1


@simt.kernel
def barrier_in_both_branches(out):
    if simt.lane < 16:
        simt.barrier()
    else:
        simt.barrier()
    out[simt.thread.x] = 1


@simt.kernel
def barriers_at_two_places(out):
    if simt.warp == 0:
        simt.barrier()
    else:
        simt.barrier()
    out[simt.thread.x] = 1


@simt.kernel
def barrier_in_uneven_loop(out):
    for _ in range(simt.lane + 1):
        simt.barrier()
    out[simt.thread.x] = 1


@simt.kernel
def continue_past_a_voting_barrier(out):
    t = simt.thread.x
    rounds = 0
    while simt.barrier_any(rounds < 3):
        if t == 0:
            rounds += 1
            continue
        rounds += 1
    out[t] = rounds


@simt.kernel
def named_barrier(out):
    if simt.warp < 3:
        simt.barrier(1, 64)
    out[simt.thread.x] = 1


@simt.kernel
def spin_lock(lock, total):
    taken = 1
    while taken != 0:
        taken = simt.atomic_compare_and_swap(lock, 0, 0, 1)
    total[0] = total[0] + 1
    simt.atomic_exchange(lock, 0, 0)


@simt.kernel
def wait_for_nobody(out):
    while out[0] == 0:
        pass


@simt.kernel
def read_without_barrier(out, *, waits=False):
    s = simt.shared(64, simt.int32)
    t = simt.thread.x
    s[t] = t
    if waits:
        simt.barrier()
    out[t] = s[63 - t]


@simt.kernel
def all_write_one(out, *, equal=True):
    s = simt.shared(1, simt.int32)
    if equal:
        s[0] = 7
    else:
        s[0] = simt.thread.x
    simt.barrier()
    out[simt.thread.x] = s[0]


@simt.kernel
def exchange_in_a_warp(out, *, waits=False):
    s = simt.shared(32, simt.int32)
    s[simt.lane] = simt.lane
    if waits:
        simt.warp_barrier()
    out[simt.lane] = s[simt.lane ^ 1]


@simt.kernel
def count_all(out):
    s = simt.shared(1, simt.int32)
    if simt.thread.x == 0:
        s[0] = 0
    simt.barrier()
    simt.atomic_add(s, 0, 1)
    simt.barrier()
    out[simt.thread.x] = s[0]


@simt.kernel
def double_buffer(x, out, *, odd_too=True):
    s = simt.shared((2, 64), simt.float32)
    t = simt.thread.x
    total = 0.0
    for step in simt.unroll(range(6)):
        s[step % 2, t] = x[step * 64 + t]
        if odd_too or step % 2 == 0:
            simt.barrier()
        total += s[step % 2, 63 - t]
    out[t] = total


@simt.kernel
def beyond(out, *, index=32):
    s = simt.shared(32, simt.int32)
    s[simt.lane] = simt.lane
    simt.barrier()
    at = simt.lane + index - 31
    out[simt.lane] = s[at] if simt.lane == 31 else 0


@simt.kernel
def below(out):
    s = simt.shared(32, simt.int32)
    s[simt.lane] = simt.lane
    simt.barrier()
    out[simt.lane] = s[simt.lane - 1]


@simt.kernel
def unwritten(out):
    s = simt.shared(64, simt.int32)
    if simt.lane != 3:
        s[simt.lane] = 1
    simt.barrier()
    out[simt.lane] = s[simt.lane]


@simt.kernel
def masked_off(x, out):
    i = simt.thread.x
    if i < x.size:
        out[i] = x[i]


@simt.kernel
def misaligned(x, out):
    a, b = simt.load(x, 2 * simt.lane + 1, 2)
    out[simt.lane] = a + b


@simt.kernel
def blocks_write_one(out):
    out[0] = simt.block.x


@simt.kernel
def blocks_count(out):
    simt.atomic_add(out, 0, 1)


@simt.kernel
def divide(x, out):
    out[simt.lane] = 100 // x[simt.lane]


@simt.kernel
def unused_array(out):
    spare = simt.shared(100, simt.float32)
    if simt.lane > 99:
        spare[0] = 1.0
    out[simt.lane] = simt.lane


@simt.kernel
def one_of_many_stays_away(out):
    if simt.warp == 3:
        while out[0] == 0:
            pass
    simt.barrier()
    out[0] = 1
