"""What is said of SpreadsheetBench's tasks: to the target, and to analysts."""

from __future__ import annotations

from skillopt_es.adapters.environments.spreadsheetbench.cells import Scoring
from skillopt_es.adapters.environments.spreadsheetbench.react import PROTOCOL

_ROLE = "You are an expert in Python and spreadsheets. You solve a task by writing a script that changes a workbook."

_RULES = """\
## Script
- One self-contained Python script. INPUT_PATH and OUTPUT_PATH are defined already: read the first, save to the second.
- The standard library, openpyxl and pandas are there, and nothing else: no network, no other program, no other file.
- It is run on this workbook and may be run on others of the same layout: find rows and columns by what is in them.
- What is graded is the values of cells after saving, as they are stored: nothing computes a formula."""
_ANSWER = """\
## Answer
Reply with the script in one fenced block that begins with ```python, and nothing after it."""

_TASK = (
    "Change the workbook at INPUT_PATH as the instruction asks, leave all other cells as they are, and save it at "
    "OUTPUT_PATH. The preview shows the first rows only: go through all rows that there are."
)
NO_CODE = (
    "There is no script in your reply. Reply with the whole script in one fenced block that begins with ```python."
)
_AGAIN = "Reply with the whole corrected script in one fenced block."
_MOST_OUTPUT = 3000


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


GUIDE = """\
Changes to workbooks, made by a Python script and graded cell by cell: values are compared, not looks. See what the
script assumed of the workbook, and which cells came out otherwise than expected.
Kinds of failure, to be used as failure_type where one fits:
- data_exploration: the real layout was not looked at: headings, extent, other sheets, types of values, empty or
  merged cells
- code_error: the script broke, or did something else than was meant
- rule_missing, rule_wrong, rule_ignored: the skill lacks, has wrong, or has and was not obeyed
- other
Rules say how to read and change any workbook; cells of a single workbook belong in no rule."""
