"""How the open step's candidate of a folder meets the gate: where, by which rule, and what speaks against it."""

from __future__ import annotations

from attrs import evolve

from skillopt_es.algorithms.skills.candidate import Candidate
from skillopt_es.algorithms.skills.scope import lost_recall
from skillopt_es.algorithms.skills.state import Skills, SkillsState, place_of, where_of
from skillopt_es.algorithms.skills.triggers import misrouted
from skillopt_es.algorithms.steps import doubts_about
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import GatePolicy, Objection, Terms, usual_terms
from skillopt_es.events.catalog import CandidateBuilt
from skillopt_es.projections.core import waiting


def gate_config(state: SkillsState, config: RunConfig) -> RunConfig:
    """The config with the rule for the open step: at an epoch's end a simpler folder need not be a better one."""
    if not where_of(state).managing:
        return config
    return evolve(config, evaluation=evolve(config.evaluation, gate_rule=config.skills.manage_gate_rule))


def _doubts(state: SkillsState, config: RunConfig) -> str:
    """What of the candidate no trusted attempt supports; empty for none, or where that is no reason."""
    edits = {edit.id: edit for edit in state.algorithm.edits}
    origins = ((name, edits[name].origins) for name in waiting(state).applied)
    return doubts_about(state, config, origins, state.algorithm.groups or ())


def _terms(state: SkillsState, config: RunConfig) -> Terms:
    return evolve(usual_terms(state, config), config=gate_config(state, config))


def _objection(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> Objection | None:
    """Why a candidate that its rule would take is refused: items pass by what they opened, or are sent wrong."""
    whole = Candidate(state, built, config)
    return lost_recall(whole) or misrouted(whole)


GATE: GatePolicy[Skills] = GatePolicy(place=place_of, terms=_terms, doubts=_doubts, objection=_objection)
