"""Proposals, fates and results in a few words, for the commands that audit a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import asdict

from skillopt_es.cli.terminal import print_error
from skillopt_es.events.values import Draft, Edit, Json, Proposal

if TYPE_CHECKING:
    from skillopt_es.projections.fates import Fate
    from skillopt_es.runs.reading import Reading

_LONGEST = 90
_MOST_NAMES = 12


def short(text: str, longest: int = _LONGEST) -> str:
    """A text on one line, its end left out where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def names(items: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def proposal_words(proposal: Proposal) -> str:
    """What a proposal wants, on one line."""
    if isinstance(proposal, Draft):
        return f"a whole text: {short(proposal.title or '; '.join(proposal.changes))}"
    if not isinstance(proposal, Edit):
        return f"{proposal.kind.replace('_', ' ')}: {short(proposal.instruction)}"
    file = f" in {proposal.file}" if proposal.file else ""
    match proposal.op:
        case "append":
            return f"append{file} “{short(proposal.content)}”"
        case "insert_after":
            return f"insert{file} after “{short(proposal.target, 40)}”: “{short(proposal.content)}”"
        case "replace":
            return f"replace{file} “{short(proposal.target, 40)}” by “{short(proposal.content)}”"
        case "delete":
            return f"delete{file} “{short(proposal.target)}”"


def unsaid_words(merges: int) -> str:
    """The one note on merges that did not say which of their inputs they used."""
    if merges == 1:
        return "The merge did not say which proposals it used; matched by wording."
    return f"{merges} merges did not say which proposals they used; matched by wording."


def fate_words(fate: Fate) -> str:
    """Where a proposal ended, and by which way."""
    way = f"merged into {', then '.join(fate.path[1:])}; " if len(fate.path) > 1 else ""
    way += f"the skill has it in the same words, by {fate.same_as}; " if fate.same_as else ""
    detail = f" ({fate.detail})" if fate.detail else ""
    return f"{way}{fate.reason.replace('_', ' ')}{detail}"


def fate_json(fate: Fate) -> Json:
    """A fate for programs."""
    return {
        "path": list(fate.path),
        "reason": fate.reason,
        "detail": fate.detail,
        "assumed": fate.assumed,
        "same_as": fate.same_as or None,
    }


def proposal_json(proposal: Proposal) -> Json:
    """A proposal for programs, with its kind."""
    values: dict[str, Json] = asdict(proposal, value_serializer=lambda _, __, value: _listed(value))
    return {"type": type(proposal).__name__.lower(), **values}


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def as_found(reading: Reading, *, shown: bool = True) -> int:
    """
    Says what is wrong with the log, if something is, after what could be read was shown; the exit code.

    `shown` is whether what was shown ends where the log stops being whole.
    """
    if reading.problem is None:
        return 0
    ends = f"; what is shown ends before event {reading.until + 1}" if shown and reading.until < reading.end else ""
    print_error(f"{reading.problem}{ends}", reading.problem.hint)
    return 1


def problem_json(reading: Reading) -> Json:
    """What is wrong with the log, for programs; null when nothing was noticed."""
    return None if reading.problem is None else str(reading.problem)


def two_words(words: Sequence[str]) -> list[str]:
    """Arguments as words: who quotes a moment (`"step 12"`) means the two words."""
    return [part for word in words for part in (word.split() if _is_moment(word) else [word])]


def _is_moment(word: str) -> bool:
    parts = word.split()
    return len(parts) == 2 and parts[0] in ("step", "epoch", "seq", "event", "candidate")
