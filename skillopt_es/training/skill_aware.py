"""
Skill-aware reflection: what an analyst is asked in addition, so that it tells a defect of the skill from a lapse.

A defect becomes an edit; a lapse, where the skill was right and the agent did not follow it, becomes a reminder note.
Off, the question is the one without it, character for character.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.config import OptimizerConfig
from skillopt_es.events.values import Evidence, Json
from skillopt_es.training import replies

MOST_NOTES = 3  # of one analyst


def asks_for_notes(optimizer: OptimizerConfig, kind: Evidence) -> bool:
    """Whether the analysts of failures or of successes are asked for reminder notes."""
    if not optimizer.use_skill_aware_reflection:
        return False
    return kind == "failure" or optimizer.skill_aware_appendix_source == "both"


def analyst_prompts(optimizer: OptimizerConfig, kind: Evidence) -> tuple[str, ...]:
    """The names of the prompts that an analyst's system message is made of."""
    named = (f"analyst_{kind}",)
    return (*named, f"skill_aware_{kind}") if asks_for_notes(optimizer, kind) else named


def budget_section(optimizer: OptimizerConfig, kind: Evidence) -> str:
    """How much an analyst may propose."""
    edits = f"## Budget\nPropose at most {optimizer.learning_rate} edits."
    return f"{edits} Write at most {MOST_NOTES} reminder notes." if asks_for_notes(optimizer, kind) else edits


def analyst_schema(optimizer: OptimizerConfig, kind: Evidence) -> Mapping[str, Json]:
    """The form of an analyst's reply."""
    if asks_for_notes(optimizer, kind):
        return replies.NOTED_FAILURE_SCHEMA if kind == "failure" else replies.NOTED_SUCCESS_SCHEMA
    return replies.FAILURE_SCHEMA if kind == "failure" else replies.SUCCESS_SCHEMA
