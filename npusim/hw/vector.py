"""The vector unit."""

from __future__ import annotations

from npusim.hw.quantities import Count, Cycles, Rate, Spec


class VectorRates(Spec):
    """Elements per lane and cycle by class of operation."""

    simple: Rate = 1.0
    """Add, subtract, multiply, compare, select, minimum, maximum, logic, move, convert."""
    divide: Rate = 0.25
    """Division, reciprocal, square root, remainder."""
    function: Rate = 0.25
    """Transcendentals: exp, log, tanh, erf, sigmoid, sine, cosine, power."""


class Vector(Spec):
    """The vector unit: element-wise operations, row reductions and conversions on tiles."""

    lanes: Count
    """Elements processed side by side."""
    start_cycles: Cycles
    """Pipeline fill and drain, paid once per instruction."""
    rates: VectorRates = VectorRates()
    """Throughput by class of operation."""
    function_ulp: Rate = 2.0
    """Largest error of a transcendental, in units in the last place of fp32."""
