"""How the open step's candidate of a folder meets the gate: where, by which rule, and what speaks against it."""

from __future__ import annotations

from attrs import evolve

from skillopt_es.algorithms.skills.state import Skills, SkillsState, place_of, where_of
from skillopt_es.algorithms.skills.triggers import objection
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithms import GatePolicy


def gate_config(state: SkillsState, config: RunConfig) -> RunConfig:
    """The config with the rule for the open step: at an epoch's end a simpler folder need not be a better one."""
    if not where_of(state).managing:
        return config
    return evolve(config, evaluation=evolve(config.evaluation, gate_rule=config.skills.manage_gate_rule))


GATE: GatePolicy[Skills] = GatePolicy(place=place_of, config=gate_config, objection=objection)
