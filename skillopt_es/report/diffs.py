"""A change of a skill as a unified diff, its lines told apart by their sign and, again, by their colour."""

from __future__ import annotations

from itertools import groupby

from skillopt_es.counting import counted
from skillopt_es.events.values import SkillTree
from skillopt_es.report.html import Html, el, join, note
from skillopt_es.runs.state_diff import skill_diff

_MOST_LINES = 1500
_KINDS = {"+": "ins", "-": "del", "@": "hunk"}


def diff_block(before: SkillTree | None, after: SkillTree | None, what: str) -> Html:
    """What changed from one text to the other; says so where one is not in the log, or nothing did."""
    if before is None or after is None:
        return note("One of the two texts cannot be read from the log, so what changed cannot be shown.")
    lines = skill_diff(before, after)
    if not lines:
        return note("The text did not change.")
    if len(before.files) == len(after.files) == 1:
        lines = lines[2:]  # the names of the one file on both sides
    shown = lines[:_MOST_LINES]
    parts = [_run(kind, list(run)) for kind, run in groupby(shown, key=_kind)]
    left = len(lines) - len(shown)
    rest = (
        note(f"{counted(left, 'more line')} of this diff are left out; `skillopt-es diff` shows them.")
        if left
        else None
    )
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    gone = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    label = f"{what}: {counted(added, 'line')} added, {counted(gone, 'line')} removed"
    return join([el("h3", label), el("pre", *parts, class_="diff", tabindex=0, role="group", aria_label=label), rest])


def _kind(line: str) -> str:
    return "file" if line.startswith(("+++ ", "--- ")) else _KINDS.get(line[:1], "")


def _run(kind: str, lines: list[str]) -> Html:
    """Lines of one kind, each ending in a line break."""
    body = "".join(f"{line}\n" for line in lines)
    if kind in ("ins", "del"):
        return el(kind, body)
    return el("span", body, class_=kind) if kind else join([body])
