"""Plans: which kernel runs what, for whole models."""
