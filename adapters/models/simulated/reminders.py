"""Reminder notes of the simulation: which rules the appendix of a skill names, and how such a note is worded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillopt_es.adapters.models.simulated.kinds import Rule
from skillopt_es.adapters.models.simulated.worlds import ALL_STYLE

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
    return [rule for rule in ALL_STYLE if re.search(rf"\b{re.escape(rule.name)}\b", notes)]


def reminder(rules: Sequence[Rule]) -> str:
    """One note that reminds of these rules."""
    *names, last = [rule.name for rule in rules]
    which = f"rules on {', '.join(names)} and {last}" if names else f"rule on {last}"
    return f"Before you answer, check the {which} again."
