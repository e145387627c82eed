"""One process that writes one log: opening the world, from config to closed files."""
