"""Public benchmarks: where their data comes from, and how splits are built from what a user has downloaded."""
