"""What a run will come to, before its first call: from its plan, and from what earlier runs have measured."""
