"""
Coding agents as models: a command line run in a private folder, its event stream read into one form.

    agent.py      what an agent must say of itself (the port), and what it is told about one run
    codex.py, claude_code.py, cursor.py, copilot.py     one agent each: arguments, environment, event stream
    harness.py    the ChatModel over any of them: limits, deadline, tries, redaction
    workspace.py, prompts.py, child_environment.py, failures.py     what a run is given, and what went wrong with it
"""
