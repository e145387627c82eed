"""What slips the simulated target's mind: now and then a rule of the skill, less often when it is told to check."""

from __future__ import annotations

import re

from skillopt_es.adapters.models.simulated.kinds import Rule
from skillopt_es.adapters.models.simulated.reminders import appendix_of, rules_named_in, without_appendix
from skillopt_es.adapters.models.simulated.rules import chance

LAPSES = 0.12
LAPSES_WHEN_CHECKING = 0.025

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
