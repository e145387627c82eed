"""The estimate of a run before its first call: from its plan, and from what earlier runs have measured."""
