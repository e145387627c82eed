"""Reflect: an analyst looks at one minibatch of trajectories and proposes edits, suggestions or a whole new skill."""

from __future__ import annotations

from typing import Literal

from skillopt_es.algorithms.classic.appendix import (
    MOST_NOTES,
    analyst_prompts,
    analyst_schema,
    asks_for_notes,
    budget_section,
)
from skillopt_es.algorithms.classic.jobs import AnalyseJob
from skillopt_es.algorithms.classic.modes import mode_of
from skillopt_es.algorithms.classic.prompt_text import buffer_section, meta_skill_section
from skillopt_es.algorithms.classic.state import ClassicState
from skillopt_es.algorithms.optimizer import guide_section, question, skill_section, steering_section, without_reply
from skillopt_es.engine.algorithms import Asking, Consulted
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import shown
from skillopt_es.events.catalog import PatchProposed
from skillopt_es.events.values import Minibatch
from skillopt_es.ports import ChatRequest
from skillopt_es.replies.answers import PatchReply, naming_files
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import placed_in


def analyse(job: AnalyseJob, state: ClassicState, run: RunData, evidence: RecordedTexts) -> Asking[PatchReply]:
    """The analyst's patch, or why there is none."""
    step = state.algorithm.step
    assert step is not None
    assert state.current is not None
    group = job.group
    optimizer = run.config.optimizer
    mode = mode_of(optimizer)
    most_notes = MOST_NOTES if asks_for_notes(optimizer, group.kind) else 0

    def read(text: str) -> PatchReply | Unusable:
        return mode.read_patch(text, group.id, group.kind, len(group.items), optimizer.learning_rate, most_notes)

    careful = optimizer.ask_again and not most_notes  # notes hold without edits
    request = analyst_request(group, state, run, evidence)
    reader = placed_in(state.current.skill, read) if careful else read

    def answered(consulted: Consulted[PatchReply]) -> PatchProposed:
        return _proposal(group, step.number, consulted)

    return Asking(request=request, read=reader, event=answered, silence_fails=True)


def _proposal(group: Minibatch, step: int, consulted: Consulted[PatchReply]) -> PatchProposed:
    reply = consulted.value
    if reply is None:
        return without_reply(group, step, consulted)
    return PatchProposed(
        patch=group.id,
        step=step,
        kind=group.kind,
        items=group.items,
        result=_result(reply),
        edits=reply.edits,
        suggestions=reply.suggestions,
        drafts=reply.drafts,
        notes=reply.notes,
        patterns=reply.patterns,
        reasoning=reply.reasoning,
        calls=consulted.calls,
    )


def _result(reply: PatchReply) -> Literal["edits", "suggestions", "draft", "notes", "nothing"]:
    if reply.edits:
        return "edits"
    if reply.suggestions:
        return "suggestions"
    if reply.drafts:
        return "draft"
    return "notes" if reply.notes else "nothing"


def analyst_request(group: Minibatch, state: ClassicState, run: RunData, evidence: RecordedTexts) -> ChatRequest:
    """The question to one analyst."""
    assert state.current is not None
    assert state.algorithm.epoch is not None
    skill = state.current.skill
    rows = state.rollouts[group.place]
    most = run.config.gradient.max_trajectory_chars
    blocks = [shown(rows[item], evidence, most_chars=most, skill=skill.text, run=run) for item in group.items]
    word = "Failed" if group.kind == "failure" else "Successful"
    return question(
        run,
        slot=group.id,
        stage="analyst",
        prompt=analyst_prompts(run.config.optimizer, group.kind),
        sections=(
            skill_section(skill),
            buffer_section(state.algorithm.buffer),
            meta_skill_section(state.algorithm.epoch.meta_skill),
            guide_section(run.started.guide),
            steering_section(state.steering),
            f"## {word} trajectories ({len(blocks)})\n" + "\n\n".join(blocks),
            # Last, for what was read last weighs most: a small model wrote one edit, for the last task.
            budget_section(run.config.optimizer, group.kind),
        ),
        schema=naming_files(analyst_schema(run.config.optimizer, group.kind), skill),
        max_tokens=mode_of(run.config.optimizer).most_tokens(run.config.optimizer),
    )
