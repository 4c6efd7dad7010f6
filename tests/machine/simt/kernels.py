"""Kernels whose counts and faults are known."""
# ruff: noqa: SIM108 -- branches are what is tested

from __future__ import annotations

from npusim import simt


@simt.kernel
def transpose(a, out, *, pad=0):
    tile = simt.shared((32, 32), simt.float32, pad=pad)
    x, y = simt.thread.x, simt.thread.y
    column, row = simt.block.x * 32 + x, simt.block.y * 32
    for j in range(0, 32, 8):
        tile[y + j, x] = a[row + y + j, column]
    simt.barrier()
    column, row = simt.block.y * 32 + x, simt.block.x * 32
    for j in range(0, 32, 8):
        out[row + y + j, column] = tile[x, y + j]


@simt.kernel
def reduce_modulo(x, out, *, size=256):
    s = simt.shared(size, simt.float32)
    t = simt.thread.x
    s[t] = x[t]
    simt.barrier()
    step = 1
    while step < size:
        if t % (2 * step) == 0:
            s[t] += s[t + step]
        simt.barrier()
        step *= 2
    if t == 0:
        out[0] = s[0]


@simt.kernel
def reduce_strided(x, out, *, size=256):
    s = simt.shared(size, simt.float32)
    t = simt.thread.x
    s[t] = x[t]
    simt.barrier()
    step = 1
    while step < size:
        at = 2 * step * t
        if at < size:
            s[at] += s[at + step]
        simt.barrier()
        step *= 2
    if t == 0:
        out[0] = s[0]


@simt.kernel
def reduce_sequential(x, out, *, size=256, waits=True):
    s = simt.shared(size, simt.float32)
    t = simt.thread.x
    s[t] = x[t]
    simt.barrier()
    half = size // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        if waits:
            simt.barrier()
        half //= 2
    if t == 0:
        out[0] = s[0]


@simt.kernel
def reduce_shuffled(x, out):
    value = x[simt.lane]
    for distance in simt.unroll(range(5)):
        value += simt.shuffle_down(value, 16 >> distance)
    if simt.lane == 0:
        out[0] = value


@simt.kernel
def bitonic(x, *, size=256):
    s = simt.shared(size, simt.float32)
    t = simt.thread.x
    s[t] = x[t]
    simt.barrier()
    k = 2
    while k <= size:
        j = k // 2
        while j > 0:
            other = t ^ j
            if other > t:
                a = s[t]
                b = s[other]
                if (a > b) == ((t & k) == 0):
                    s[t] = b
                    s[other] = a
            simt.barrier()
            j //= 2
        k *= 2
    x[t] = s[t]


@simt.kernel
def bitonic_halved(x, *, size=256):
    s = simt.shared(size, simt.float32)
    t = simt.thread.x
    s[t] = x[t]
    s[t + size // 2] = x[t + size // 2]
    simt.barrier()
    k = 2
    while k <= size:
        j = k // 2
        while j > 0:
            i = 2 * t - (t & (j - 1))
            a = s[i]
            b = s[i + j]
            if (a > b) == ((i & k) == 0):
                s[i] = b
                s[i + j] = a
            simt.barrier()
            j //= 2
        k *= 2
    x[t] = s[t]
    x[t + size // 2] = s[t + size // 2]


@simt.kernel
def two_ways(out, *, limit=8):
    v = simt.lane
    if simt.lane < limit:
        for _ in simt.unroll(range(10)):
            v += 3
    else:
        for _ in simt.unroll(range(6)):
            v += 5
    out[simt.lane] = v


@simt.kernel
def one_way(out, *, then=True):
    v = simt.lane
    if (simt.block.x == 0) == then:
        for _ in simt.unroll(range(10)):
            v += 3
    else:
        for _ in simt.unroll(range(6)):
            v += 5
    out[simt.lane] = v


@simt.kernel
def nested(out, *, depth=1):
    v = simt.lane
    if depth == 1:
        v = nest1(v, 0)
    elif depth == 2:
        v = nest2(v, 0)
    elif depth == 3:
        v = nest3(v, 0)
    else:
        v = nest5(v, 0)
    out[simt.lane] = v


def four(v):
    v += 1
    v += 2
    v += 3
    v += 4
    return v


def nest1(v, bit):
    if (simt.lane >> bit) & 1:
        v = four(v)
    else:
        v = four(v)
    return v


def nest2(v, bit):
    if (simt.lane >> (bit + 1)) & 1:
        v = nest1(v, bit)
    else:
        v = nest1(v, bit)
    return v


def nest3(v, bit):
    if (simt.lane >> (bit + 2)) & 1:
        v = nest2(v, bit)
    else:
        v = nest2(v, bit)
    return v


def nest4(v, bit):
    if (simt.lane >> (bit + 3)) & 1:
        v = nest3(v, bit)
    else:
        v = nest3(v, bit)
    return v


def nest5(v, bit):
    if (simt.lane >> (bit + 4)) & 1:
        v = nest4(v, bit)
    else:
        v = nest4(v, bit)
    return v


@simt.kernel
def trips(out, *, form=0):
    if form == 0:
        count = simt.lane + 1
    elif form == 1:
        count = simt.lane % 4 + 1
    elif form == 2:
        count = 100 if simt.lane == 0 else 1
    else:
        count = 7
    v = 0
    while count > 0:
        v += 2
        count -= 1
    out[simt.lane] = v


@simt.kernel
def early_exit(out, *, limit=33):
    i = simt.grid(1)
    if i >= limit:
        return
    v = i
    for _ in simt.unroll(range(10)):
        v += 3
    out[i] = v
