"""Compares what a machine computed with float64 references, to tolerances given by formula."""
