"""DRAM command by command."""
