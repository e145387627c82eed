"""A corpus of runs: what a change of the core must neither decide, record nor show in another way."""
