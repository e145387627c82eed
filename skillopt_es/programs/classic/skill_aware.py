"""
Skill-aware reflection: what an analyst is asked in addition, so that it tells a defect of the skill from a lapse.

A defect becomes an edit; a lapse, where the skill was right and the agent did not follow it, becomes a reminder note.
Off, the question is the one without it, character for character.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.config import OptimizerConfig
from skillopt_es.events.values import Json, PatchSource
from skillopt_es.programs.classic.modes import mode_of

MOST_NOTES = 3  # of one analyst


def asks_for_notes(optimizer: OptimizerConfig, kind: PatchSource) -> bool:
    """Whether the analysts of failures or of successes are asked for reminder notes; those who draft never are."""
    if not optimizer.use_skill_aware_reflection or not mode_of(optimizer).noted_schemas:
        return False
    return kind == "failure" or optimizer.skill_aware_appendix_source == "both"


def analyst_prompts(optimizer: OptimizerConfig, kind: PatchSource) -> tuple[str, ...]:
    """The names of the prompts that an analyst's system message is made of."""
    mode = mode_of(optimizer).prompts
    named = (f"analyst_{kind}{mode}",)
    return (*named, f"skill_aware_{kind}{mode}") if asks_for_notes(optimizer, kind) else named


def budget_section(optimizer: OptimizerConfig, kind: PatchSource) -> str:
    """How much an analyst may propose."""
    limit = mode_of(optimizer).limit.format(most=optimizer.learning_rate)
    return f"{limit} Write at most {MOST_NOTES} reminder notes." if asks_for_notes(optimizer, kind) else limit


def analyst_schema(optimizer: OptimizerConfig, kind: PatchSource) -> Mapping[str, Json]:
    """The form of an analyst's reply."""
    mode = mode_of(optimizer)
    return mode.noted_schemas[kind] if asks_for_notes(optimizer, kind) else mode.schemas[kind]
