"""The tile program: what plans write and every reader of the machine reads."""
