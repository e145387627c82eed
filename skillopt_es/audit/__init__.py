"""Answers about a run from its log alone: where a line came from, what was refused and why."""
