"""What is said of SpreadsheetBench's tasks: to the target, and to analysts."""

from __future__ import annotations

from skillopt_es.adapters.environments.episodes import prompt_text
from skillopt_es.adapters.environments.spreadsheetbench.cells import Scoring
from skillopt_es.adapters.environments.spreadsheetbench.react import PROTOCOL

GUIDE = prompt_text(__package__, "guide")
_ROLE = "You are an expert in Python and spreadsheets. You solve a task by writing a script that changes a workbook."
_RULES = prompt_text(__package__, "script")
_ANSWER = prompt_text(__package__, "answer")
_TASK = prompt_text(__package__, "task")
NO_CODE = prompt_text(__package__, "no_code")
_AGAIN = "Reply with the whole corrected script in one fenced block."
_MOST_OUTPUT = 3000  # the original's


def system_prompt(skill_section: str) -> str:
    """The system prompt around a skill section, which may be empty."""
    return "\n\n".join(part for part in (_ROLE, f"{_RULES}\n\n{_ANSWER}", skill_section) if part)


def react_prompt(skill_section: str) -> str:
    """The system prompt of the mode with tools."""
    return "\n\n".join(part for part in (_ROLE, _RULES, skill_section, PROTOCOL) if part)


def user_prompt(instruction: str, kind: str, position: str, preview: str) -> str:
    """The user message of one item."""
    facts = [f"Kind of task: {kind}"] if kind else []
    facts += [f"Cells that are graded: {position}"]
    return "\n\n".join(
        [f"## Instruction\n{instruction}", "\n".join(facts), f"## Workbook\n{preview}", f"## Task\n{_TASK}"]
    )


def failed_prompt(output: str) -> str:
    """The message after a script that did not end well."""
    shown = output.strip()[:_MOST_OUTPUT] or "(no output)"
    return f"The script failed:\n```\n{shown}\n```\n{_AGAIN}"


def wrong_prompt(cells: str) -> str:
    """The message after a script that saved wrong cells."""
    return f"The script ran, but these cells are wrong:\n{cells}\n\n{_AGAIN}"


def code_in(reply: str, scoring: Scoring) -> str:
    """
    The script in a reply: the first fenced block, else all of it; empty when there is none.

    A block that is never closed is the whole reply with its fence for the original, and what follows the fence here.
    """
    before, fence, rest = reply.partition("```")
    _, line_end, body = rest.partition("\n")
    inside, closing, _ = body.partition("```")
    if fence and line_end and (closing or scoring == "extended"):
        return inside.strip("\n") if inside.strip() else ""
    return (before if fence and scoring == "extended" else reply).strip()
