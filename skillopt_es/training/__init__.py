"""The trainer: a pure planner says what comes next, a stage does or decides it, the loop records it."""
