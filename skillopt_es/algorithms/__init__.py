"""Ways of training: one folder each."""
