"""What is said of OfficeQA's tasks: to the target, and to analysts."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.adapters.environments.episodes import prompt_text

GUIDE = prompt_text(__package__, "guide")
_ANSWER = prompt_text(__package__, "answer")
_WITH_TOOLS = prompt_text(__package__, "with_tools")
_WITHOUT_TOOLS = prompt_text(__package__, "without_tools")
_WITH_SEARCH = prompt_text(__package__, "with_search")
_FIRST_NAMED = 20  # the original's


def tools_prompt(skill_section: str) -> str:
    """The system prompt of a target with tools."""
    return _joined(_WITH_TOOLS, skill_section, _ANSWER)


def plain_prompt(skill_section: str) -> str:
    """The system prompt of a target that is asked once."""
    return _joined(_WITHOUT_TOOLS, skill_section, _ANSWER)


def search_prompt(skill_section: str) -> str:
    """The system prompt of a target that searches in rounds."""
    return _joined(_WITH_SEARCH, skill_section, _ANSWER)


def user_prompt(question: str, *, pages: str, documents: Sequence[str] | None, sources: Sequence[str]) -> str:
    """The message that asks one question; `documents` is None where none can be read."""
    parts = [f"## Question\n{question}"]
    if pages:
        parts.append(f"## Oracle pages\nThe pages that the answer comes from, as parsed:\n\n{pages}")
    if documents is not None:
        parts.append(f"## Candidate files\n{_listed(documents)}")
    if sources:
        parts.append(f"## Source hints\n{_listed(sources)}")
    return _joined(*parts)


def round_policy(turn: int, most: int, queries: int) -> str:
    """What may be done in a round of searching."""
    if turn >= most:
        return f"## Round {turn} of {most}\nThis is the last round: answer now, inside <answer> and </answer> tags."
    return f"## Round {turn} of {most}\nSearch (at most {queries} queries) or answer."


def _listed(names: Sequence[str]) -> str:
    lines = [f"- {name}" for name in names[:_FIRST_NAMED]]
    if len(names) > _FIRST_NAMED:
        lines.append(f"- (and {len(names) - _FIRST_NAMED} more)")
    return "\n".join(lines) or "(none)"


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
