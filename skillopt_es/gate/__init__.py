"""The gate: when one skill is better than another, and what must be drawn to know."""
