"""Agents that users bring: a Python function, a command or an address, each asked with one documented object."""
