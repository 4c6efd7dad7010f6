"""Warp kernels: per-thread Python, compiled to a register program that warps run in step."""
