"""Many runs: what a sweep plans, what became of it, what comes next, and the processes that do it."""
