"""Cassettes: a finished run with its journal in one file, to be read and replayed where its models are not."""
