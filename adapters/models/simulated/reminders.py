"""Reminder notes of the simulation, and what slips the simulated target's mind unless a note tells it to check."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillopt_es.adapters.models.simulated.chance import chance
from skillopt_es.adapters.models.simulated.kinds import Rule
from skillopt_es.adapters.models.simulated.worlds import all_style

# Written out here, not imported: a model knows a skill only as the text it is given.
_APPENDIX = re.compile(r"<!-- APPENDIX_START -->(.*?)<!-- APPENDIX_END -->", re.DOTALL)


def appendix_of(skill: str) -> str:
    """What stands in the appendix of a skill; empty when it has none."""
    return " ".join(_APPENDIX.findall(skill))


def without_appendix(skill: str) -> str:
    """The skill as it would be without its appendix."""
    return _APPENDIX.sub("", skill)


def rules_named_in(notes: str) -> list[Rule]:
    """The rules that a text names."""
    return [rule for rule in all_style() if re.search(rf"\b{re.escape(rule.name)}\b", notes)]


def reminder(rules: Sequence[Rule]) -> str:
    """One note that reminds of these rules."""
    *names, last = [rule.name for rule in rules]
    which = f"rules on {', '.join(names)} and {last}" if names else f"rule on {last}"
    return f"Before you answer, check the {which} again."


LAPSES = 0.12  # one rule in eight tasks: what is left for reminders once all rules are in the skill
LAPSES_WHEN_CHECKING = 0.025  # one in forty: notes and guidance earn some points then, and a perfect score stays rare

# Written out here, not imported: a model knows a skill only as the text it is given.
_GUIDANCE = re.compile(r"<!-- SLOW_UPDATE_START -->(.*?)<!-- SLOW_UPDATE_END -->", re.DOTALL)
_RECHECK = re.compile(r"\b(?:re-?check|check again|double-check|go through)\b[^.]*\brules?\b", re.IGNORECASE)


def forgets(rule: Rule, task: str, skill: str) -> bool:
    """Whether a rule slips the target's mind; far less often when the guidance or a note tells it to check."""
    guidance = " ".join(_GUIDANCE.findall(skill))
    checks = _RECHECK.search(guidance) or rule in rules_named_in(appendix_of(skill))
    share = LAPSES_WHEN_CHECKING if checks else LAPSES
    # Guidance and notes do not enter the draw, so that following them can only help.
    rest = " ".join(without_appendix(_GUIDANCE.sub("", skill)).split())
    return chance("lapse", task, rest) < share
