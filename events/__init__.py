"""
What happened: the events, the append-only log that keeps them, and the journal of paid effects.

Imports nothing of ours.
"""
