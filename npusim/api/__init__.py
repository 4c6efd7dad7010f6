"""What npusim does, as plain functions that return results."""
