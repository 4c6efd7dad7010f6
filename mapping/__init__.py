"""The catalogue of kernels and plans, written as users write their own."""
