"""The engine: plans, performs, records and folds; it knows no stage of any algorithm."""
