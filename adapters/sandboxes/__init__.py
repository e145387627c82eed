"""Where code that a model wrote is run: in a private folder, with nothing of this machine in reach."""
