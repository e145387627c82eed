"""The command: parse, call, print. No logic of its own."""
