"""From conversations with coding agents to tasks that a person has kept."""
