"""Units, dtypes, errors, look-up: what every other package stands on; knows nothing of NPUs."""
