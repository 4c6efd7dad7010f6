"""The readers of a program: memory state, values, timing, and one file per unit."""
