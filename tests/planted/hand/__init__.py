"""Kernels whose order is placed by hand; right as they stand here."""
