"""The instructions of a warp program. Each is issued once for all active lanes of a warp.

A row of the program has the columns of `code.Column`. Registers are per lane; one register holds
an integer (kept in 64 bits, wrapped to its kind) or an fp32 number, as the instruction says.
"""

from __future__ import annotations

from enum import IntEnum


class Op(IntEnum):
    """What an instruction does; d, a, b, c are registers, x, y, z immediates."""

    SPECIAL = 0  # d = Special x of the thread
    MOVE = 1  # d = a
    SELECT = 2  # d = b where a, else c
    CONVERT = 3  # d = a of kind x, as the instruction's kind (rounded, wrapped)
    INTEGER = 4  # d = a (Binary x) b, wrapped to the kind
    REAL = 5  # d = a (Binary x) b in fp32
    FMA = 6  # d = a * b + c, rounded once; integers wrapped
    UNARY = 7  # d = (Unary x) a
    COMPARE = 8  # d = a (Comparison x) b, operands of the instruction's kind
    INDEX = 9  # d = a + b * stride of dimension y of array x, checked; a is -1 in the first one
    LOAD = 10  # d, d+1, ... = y elements of array x from element a on
    STORE = 11  # y elements of array x from element a on = b, b+1, ...
    ATOMIC = 12  # d = element a of array x, which becomes (Atomic y) of it and b; c compares
    SHUFFLE = 13  # d = a of lane (Shuffle x) b, within groups of y lanes
    VOTE = 14  # d = (Vote x) of a over the active lanes
    BARRIER = 15  # all threads of the block (or y of them) meet at barrier z; x is a Meeting
    WARP_BARRIER = 16  # active lanes of a warp meet
    BRANCH = 17  # where a is not 0 (z = 1) or is 0 (z = 0): go on at x; paths meet again at y
    JUMP = 18  # go on at x
    EXIT = 19  # the active lanes are done


class Kind(IntEnum):
    """What a register holds, and what memory elements are made of."""

    BOOL = 0
    INT8 = 1
    UINT8 = 2
    INT16 = 3
    UINT16 = 4
    INT32 = 5
    UINT32 = 6
    INT64 = 7
    FP16 = 8  # in memory; registers hold it as fp32
    BF16 = 9  # in memory; registers hold it as fp32
    FP32 = 10


class Binary(IntEnum):
    """Arithmetic of two operands. Integer quotient and remainder are floored, as in Python."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3  # fp32 only
    QUOTIENT = 4
    REMAINDER = 5
    MINIMUM = 6
    MAXIMUM = 7
    POWER = 8  # fp32 only
    AND = 9
    OR = 10
    XOR = 11
    SHIFT_LEFT = 12
    SHIFT_RIGHT = 13


class Unary(IntEnum):
    """Functions of one operand; integers know the first three."""

    NEGATIVE = 0
    ABSOLUTE = 1
    INVERT = 2  # bits; `not` of a bool
    FLOOR = 3
    CEIL = 4
    ROUND = 5  # to even
    SQRT = 6
    RSQRT = 7
    EXP = 8
    EXP2 = 9
    LOG = 10
    LOG2 = 11
    SIN = 12
    COS = 13
    TANH = 14
    ERF = 15
    ISNAN = 16
    POPULATION = 17  # bits that are set
    LEADING_ZEROS = 18
    FIRST_SET = 19  # number of the lowest set bit from 1, 0 if none


class Comparison(IntEnum):
    """Comparisons; NaN is unequal to all."""

    LESS = 0
    LESS_EQUAL = 1
    EQUAL = 2
    UNEQUAL = 3


class Special(IntEnum):
    """What a thread knows of itself and of the launch."""

    THREAD_X = 0
    THREAD_Y = 1
    THREAD_Z = 2
    BLOCK_X = 3
    BLOCK_Y = 4
    BLOCK_Z = 5
    THREADS_X = 6
    THREADS_Y = 7
    THREADS_Z = 8
    BLOCKS_X = 9
    BLOCKS_Y = 10
    BLOCKS_Z = 11
    LANE = 12
    WARP = 13
    LANES = 14


class Atomic(IntEnum):
    """What an atomic leaves in memory; it returns what was there."""

    ADD = 0
    MINIMUM = 1
    MAXIMUM = 2
    AND = 3
    OR = 4
    XOR = 5
    EXCHANGE = 6
    COMPARE_AND_SWAP = 7  # b if it was c


class Shuffle(IntEnum):
    """Which lane a value comes from."""

    LANE = 0  # lane b of the group
    UP = 1  # b lanes below; one's own if there is none
    DOWN = 2  # b lanes above; one's own if there is none
    XOR = 3  # own lane xor b


class Vote(IntEnum):
    """What the active lanes of a warp find together."""

    ANY = 0
    ALL = 1
    BALLOT = 2  # a bit for each lane where a holds
    MATCH = 3  # a bit for each lane with the same a
    ACTIVE = 4  # a bit for each active lane


class Meeting(IntEnum):
    """What a barrier tells those who meet: nothing, or about their predicates."""

    PLAIN = 0
    ANY = 1
    ALL = 2
    COUNT = 3


#: Bytes of an element in memory.
ITEM_BYTES = {
    Kind.BOOL: 1, Kind.INT8: 1, Kind.UINT8: 1, Kind.INT16: 2, Kind.UINT16: 2, Kind.INT32: 4,
    Kind.UINT32: 4, Kind.INT64: 8, Kind.FP16: 2, Kind.BF16: 2, Kind.FP32: 4,
}  # fmt: skip
#: Kinds that registers hold as fp32.
REAL_KINDS = frozenset({Kind.FP16, Kind.BF16, Kind.FP32})
