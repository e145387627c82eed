"""Run folders: finding them, reading them, and what is kept beside them."""
