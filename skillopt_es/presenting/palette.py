"""What is told apart by colour, and as what: the one palette of everything that people look at."""

from __future__ import annotations

from typing import Literal

from skillopt_es.projections.lines import StepLine

Tone = Literal["plain", "good", "bad", "unsure", "strong", "faint", "place"]
"""What a piece of text is for its reader; how that looks is up to what it is shown on."""

_VERDICTS: dict[str, Tone] = {
    "accept": "good",
    "accept, not worse": "plain",
    "accept new best": "good",
    "force accept": "good",
    "completed": "good",
    "scored": "good",
    "passed": "good",
    "ok": "good",
    "reject": "bad",
    "too large": "bad",
    "untrusted only": "bad",
    "unreadable": "bad",
    "failed": "bad",
    "problem": "bad",
    "differs": "bad",
    "UNTRUSTED ONLY": "bad",
    "indecisive": "unsure",
    "paused": "unsure",
    "stopped": "unsure",
    "warning": "unsure",
    "cannot be told": "unsure",
}


_ACTIONS = {
    "placeholder": "place for guidance",
    "no_content": "no guidance",
    "unknown": "end unknown",
    "": "not judged yet",
}


def verdict_words(verdict: str) -> str:
    """A recorded verdict, or why a step was skipped, as people read it."""
    return _ACTIONS.get(verdict, verdict.replace("_", " "))


def step_verdict(line: StepLine) -> str:
    """A step's verdict as people read it; a rule that takes ties may have accepted what is no better."""
    tie = line.candidate is not None and line.current is not None and line.candidate <= line.current
    if tie and line.verdict in ("accept", "accept_new_best"):
        return "accept, not worse"
    return verdict_words(line.verdict)


def tone_of(word: str) -> Tone:
    """The tone of a verdict, a status or the like, as it stands in a table; plain for all others."""
    said = word.removeprefix("slow update: ")
    return _VERDICTS.get(said, _VERDICTS.get(said.partition(",")[0], "plain"))
