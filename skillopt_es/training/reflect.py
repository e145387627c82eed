"""Reflect: an analyst looks at one minibatch of trajectories and proposes edits."""

from __future__ import annotations

from functools import partial

from skillopt_es.events.catalog import PatchProposed
from skillopt_es.events.values import Minibatch
from skillopt_es.ports import ChatRequest
from skillopt_es.projections.trainer import TrainerState
from skillopt_es.training.calls import Calls
from skillopt_es.training.consult import Consulted, consult
from skillopt_es.training.evidence import Evidence
from skillopt_es.training.prompt_text import buffer_section, memory_section, question, skill_section
from skillopt_es.training.replies import PatchReply, read_patch
from skillopt_es.training.run_data import RunData
from skillopt_es.training.skill_aware import (
    MOST_NOTES,
    analyst_prompts,
    analyst_schema,
    asks_for_notes,
    budget_section,
)
from skillopt_es.training.tasks import AnalyseJob
from skillopt_es.training.trajectories import shown


async def analyse(
    job: AnalyseJob, state: TrainerState, run: RunData, calls: Calls, evidence: Evidence
) -> PatchProposed:
    """The analyst's patch, or why there is none."""
    assert state.step is not None
    group = job.group
    optimizer = run.config.optimizer
    read = partial(
        read_patch,
        patch=group.id,
        kind=group.kind,
        support=len(group.items),
        most=optimizer.learning_rate,
        most_notes=MOST_NOTES if asks_for_notes(optimizer, group.kind) else 0,
    )
    request = analyst_request(group, state, run, evidence)
    consulted = await consult(calls, request, read, again=run.config.optimizer.ask_again)
    return _proposal(group, state.step.number, consulted)


def _proposal(group: Minibatch, step: int, consulted: Consulted[PatchReply]) -> PatchProposed:
    reply = consulted.value
    if reply is None:
        return PatchProposed(
            patch=group.id,
            step=step,
            kind=group.kind,
            items=group.items,
            result="failed" if consulted.failed else "unusable",
            note=consulted.why,
            calls=consulted.calls,
        )
    return PatchProposed(
        patch=group.id,
        step=step,
        kind=group.kind,
        items=group.items,
        result="edits" if reply.edits else "notes" if reply.notes else "nothing",
        edits=reply.edits,
        notes=reply.notes,
        patterns=reply.patterns,
        reasoning=reply.reasoning,
        calls=consulted.calls,
    )


def analyst_request(group: Minibatch, state: TrainerState, run: RunData, evidence: Evidence) -> ChatRequest:
    """The question to one analyst."""
    assert state.current is not None
    assert state.epoch is not None
    skill = state.current.skill
    rows = state.rollouts[group.place]
    most = run.config.gradient.max_trajectory_chars
    blocks = [shown(rows[item], evidence, most_chars=most, skill=skill.text, run=run) for item in group.items]
    word = "Failed" if group.kind == "failure" else "Successful"
    return question(
        run.config,
        slot=group.id,
        stage="analyst",
        prompt=analyst_prompts(run.config.optimizer, group.kind),
        sections=(
            skill_section(skill),
            budget_section(run.config.optimizer, group.kind),
            buffer_section(state.buffer),
            memory_section(state.epoch.meta_skill),
            f"## {word} trajectories ({len(blocks)})\n" + "\n\n".join(blocks),
        ),
        schema=analyst_schema(run.config.optimizer, group.kind),
    )
