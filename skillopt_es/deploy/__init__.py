"""Skills for agents: folders in the Agent Skills format that say where they come from, and where they are installed."""
