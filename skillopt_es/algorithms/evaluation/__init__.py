"""Scoring one skill outside of training: what `eval` records, and what follows from it."""
