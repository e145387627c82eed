"""What the events mean: pure folds over the log, each answering one question. Imports events only."""
