"""The names that warp kernels are written with: `from npusim import simt`, then `simt.thread.x`.

They have no value outside a kernel: a kernel is compiled from its source and never called. Shapes
are tuples of integers that are known when it is compiled; indices count elements.
"""

from __future__ import annotations
