"""Kernels: how an operator is tiled, which tiles to try, and what that is expected to cost."""
