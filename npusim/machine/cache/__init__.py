"""The hardware-managed cache between the network and DRAM (A57).

`params` holds its figures and the layout of its state, `lines` what happens to one line,
`access` a whole request with what it fetches, `flush` the end of a run.
"""
