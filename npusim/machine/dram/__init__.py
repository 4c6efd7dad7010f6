"""DRAM models behind one interface: parameters, state, one access, the end of a run."""

from npusim.machine.dram.access import access_all, flush, unloaded
from npusim.machine.dram.layout import ACTIVATES, BURSTS, REFRESHES, TURNS
from npusim.machine.dram.params import DramParams, dram_params, dram_state

__all__ = [
    "ACTIVATES",
    "BURSTS",
    "REFRESHES",
    "TURNS",
    "DramParams",
    "access_all",
    "dram_params",
    "dram_state",
    "flush",
    "unloaded",
]
