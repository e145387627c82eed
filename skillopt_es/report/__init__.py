"""A run as one page to look at and to send: each section a module, over facts that are read once."""
