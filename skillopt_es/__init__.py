"""Train the skill a frozen agent reads, as an event-sourced state machine."""
