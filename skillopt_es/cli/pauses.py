"""What makes a paused run go on: what to type next, each with what it takes, by what paused it."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.runs.folders import dir_option


def limit_option(message: str) -> str:
    """The option that raises the limit which a budget's message begins with: `--max-calls`."""
    return f"--{message.split(maxsplit=1)[0].removeprefix('budget.').replace('_', '-')}"


def resuming(folder: Path, reason: str = "", message: str = "") -> str:
    """The command that goes on with a run; after a budget's pause it has to raise the limit."""
    more = f" {limit_option(message)} N" if reason == "budget" else ""
    return f"resume {folder.name}{dir_option(folder.parent)}{more}"


def steps_after(folder: Path, *, reason: str, message: str, hint: str) -> list[tuple[str, str]]:
    """What to type about a pause; `hint` is what was said to do about its cause."""
    command = resuming(folder, reason, message)
    match reason:
        case "handoff":
            asked = (f"handoff list {folder.name}{dir_option(folder.parent)}", "what is asked")
            return [asked, (command, "when it is answered")]
        case "budget":
            return [(command, "with a higher limit")]
        case "interrupt":
            return [(command, "")]
        case _:
            return [(command, f"first: {hint}" if hint else "when the cause is gone")]
