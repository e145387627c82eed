"""Rewrite: one question to the optimizer turns the chosen suggestions into a whole new skill."""

from __future__ import annotations

import json

from skillopt_es.algorithms.classic.jobs import RewriteJob
from skillopt_es.algorithms.classic.prompt_text import buffer_section
from skillopt_es.algorithms.classic.state import ClassicState, proposals_of
from skillopt_es.algorithms.optimizer import question, skill_section
from skillopt_es.engine.algorithms import Asking, Consulted
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import fenced
from skillopt_es.events.catalog import SkillRewritten
from skillopt_es.events.values import Json, Suggestion
from skillopt_es.replies.drafts import REWRITE_SCHEMA, RewriteReply, read_rewrite


def rewrite(job: RewriteJob, state: ClassicState, run: RunData, evidence: RecordedTexts) -> Asking[RewriteReply]:
    """The new text as the optimizer wrote it, or why there is none."""
    step = state.algorithm.step
    assert step is not None
    assert state.current is not None
    by_id = proposals_of(step)
    chosen = [each for each in (by_id[name] for name in job.chosen) if isinstance(each, Suggestion)]
    rows = json.dumps([_row(each) for each in chosen], indent=1, ensure_ascii=False)
    request = question(
        run,
        slot=job.slot,
        stage="rewrite",
        prompt="rewrite_skill",
        sections=(
            skill_section(state.current.skill),
            f"## Selected suggestions ({len(chosen)})\n{fenced('suggestions', rows)}",
            buffer_section(state.algorithm.buffer),
            _closing(state.current.skill.main, len(state.current.skill.files)),
        ),
        schema=REWRITE_SCHEMA,
        max_tokens=run.config.optimizer.rewrite_max_completion_tokens,
        effort=run.config.optimizer.rewrite_reasoning_effort,
    )

    def answered(consulted: Consulted[RewriteReply]) -> SkillRewritten:
        reply = consulted.value
        if reply is None:
            return SkillRewritten(
                step=step.number,
                result="failed" if consulted.failed else "unusable",
                note=consulted.why,
                calls=consulted.calls,
            )
        return SkillRewritten(
            step=step.number,
            result="written",
            text=reply.text,
            changes=reply.changes,
            reasoning=reply.reasoning,
            calls=consulted.calls,
        )

    return Asking(request=request, read=read_rewrite, event=answered)


def _row(suggestion: Suggestion) -> dict[str, Json]:
    return {
        "type": suggestion.kind,
        "title": suggestion.title,
        "motivation": suggestion.motivation,
        "instruction": suggestion.instruction,
        "priority_hint": suggestion.priority,
    }


def _closing(main: str, files: int) -> str:
    which = "the whole new skill" if files == 1 else f"the whole new text of {main}; the other files stay as they are"
    return f"Write {which} into `new_skill`."
