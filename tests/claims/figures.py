"""Recomputes the figures that README.md and docs/ quote: one public function per claim.

A function takes nothing and returns a plain number: a ratio, cycles, a count, bytes. Times and
speeds are not claimed here, since they differ from computer to computer.
"""
