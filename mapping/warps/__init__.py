"""Kernels for warps, each with an example that `npusim kernel NAME` launches and checks."""
