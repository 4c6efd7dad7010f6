"""Places in the state of the DRAM models: what stands where in the record of each part."""

from __future__ import annotations

#: The models, by what `DramParams.model` holds.
BOUND, RUN, BURST, DETAILED = range(4)
#: Counts in front of the state.
BURSTS, ACTIVATES, REFRESHES, TURNS = range(4)
COUNTS = 4
#: A bank's record: open row (or -1); when it takes the next activate, column command, precharge;
#: rows closed before, with the time, for requests that came in time (A21).
ROW, NEXT_ACTIVATE, NEXT_COLUMN, NEXT_PRECHARGE, BEFORE = range(5)
#: Closed rows that are remembered, one for each value of a row's low digits.
REMEMBERED = 4
BANK = BEFORE + 2 * REMEMBERED
#: What banks of one number in all groups share: the row that all have open (or -1); when they take
#: the next run that needs them all, and their precharge after such runs.
ALL_ROW, ALL_COLUMN, ALL_PRECHARGE = range(3)
ALL = 3
#: A pseudo-channel's clocks: data bus, activate window, next refresh, last column command; and
#: whether nothing has passed its bus since that turned.
BUS, WINDOW, REFRESH, LAST, IDLE = range(5)
LANE = 5
#: A bank group's clocks: column commands, activates.
COLUMNS, GROUP_ACTIVATES = range(2)
GROUP = 2
#: A channel's own: row-command bus, when it admits more, writes posted (in runs and in bursts),
#: when the newest of them came, what it did last, when it had written, when its bus last turned
#: from one to the other; bursts in the place of the read queue that is being filled, and the sum of
#: their times.
COMMANDS, ADMITS, RUNS, POSTED, NEWEST, LATEST, DRAINED, TURNED, FILLED, LEAVING = range(10)
CHANNEL = 10
#: What a channel did last: nothing yet, reads, writes.
NOTHING, READING, WRITING = range(3)
#: Fraction bits of the factor by which model `bound` stretches for refreshes.
STRETCH_BITS = 16
#: A run of posted writes: its first burst inside the channel, and how many.
WRITE = 2
