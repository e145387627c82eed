"""A run that another trainer made: read and checked, never continued."""
