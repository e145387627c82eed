"""
What is asked of the optimizer in a step: what each analyst proposes, its merges, how much to apply, what, a rewrite.

Where a merge or a choice brings nothing that can be used, the step goes by what was proposed, in its order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Literal

from attrs import evolve

from skillopt_es.algorithms.classic.appendix import MOST_NOTES, asks_for_notes
from skillopt_es.algorithms.classic.jobs import AnalyseJob, LearningRateJob, MergeJob, RankJob, RewriteJob
from skillopt_es.algorithms.classic.modes import Group, fields_of, mode_of
from skillopt_es.algorithms.classic.state import ClassicState, OpenStep, StepState, is_train, proposals_of
from skillopt_es.algorithms.optimizer import (
    called,
    described,
    guide_section,
    patch_asked,
    question,
    skill_section,
    steering_section,
)
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Asking
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import fenced, shown
from skillopt_es.events.catalog import EditsRanked, LearningRateChosen, PatchesMerged, SkillRewritten
from skillopt_es.events.values import BufferEntry, CallRef, FailurePattern, Measured, PatchSource, SkillTree, Suggestion
from skillopt_es.projections.state import proposals_in
from skillopt_es.replies.answers import (
    LEARNING_RATE_SCHEMA,
    RANKING_SCHEMA,
    LearningRateReply,
    RankingReply,
    read_learning_rate,
    read_ranking,
)
from skillopt_es.replies.proposals import (
    PatchReply,
    merge_schema,
    naming_files,
    not_empty,
    patch_schema,
    placed_in,
    read_merge,
    read_patch,
)
from skillopt_es.replies.rewrites import REWRITE_SCHEMA, RewriteReply, read_rewrite

Calls = tuple[CallRef, ...]
Why = Literal["failed", "unusable"]


def _open(state: ClassicState, at: OpenStep) -> tuple[StepState, SkillTree, str]:
    """The open step, the skill that it is to change, and the optimizer's notes as a section."""
    return at.step, state.current.skill, meta_skill_section(at.epoch.meta_skill)


# --- what analysts propose -------------------------------------------------------------------------------------------


def analyse(
    job: AnalyseJob, state: ClassicState, at: OpenStep, config: RunConfig, evidence: RecordedTexts
) -> Asking[PatchReply]:
    """An analyst looks at one minibatch of trajectories."""
    step, skill, notes = _open(state, at)
    group, optimizer, rows = job.group, config.optimizer, state.rollouts[job.group.place]
    mode, noted = mode_of(optimizer), asks_for_notes(optimizer, group.kind)
    most = config.gradient.max_trajectory_chars
    blocks = [shown(rows[item], evidence, most_chars=most, skill=skill.text, config=config) for item in group.items]
    word = "Failed" if group.kind == "failure" else "Successful"
    limit = mode.limit.format(most=optimizer.learning_rate)
    prompt = f"analyst_{group.kind}{mode.prompts}"
    request = question(
        config,
        slot=group.id,
        stage="analyst",
        prompt=(prompt, f"skill_aware_{group.kind}{mode.prompts}") if noted else prompt,
        sections=(
            skill_section(skill),
            buffer_section(state.algorithm.buffer),
            notes,
            guide_section(state.started.guide),
            steering_section(state.steering),
            f"## {word} trajectories ({len(blocks)})\n" + "\n\n".join(blocks),
            # Last, for what was read last weighs most: a small model wrote one edit, for the last task.
            f"{limit} Write at most {MOST_NOTES} reminder notes." if noted else limit,
        ),
        schema=naming_files(patch_schema(mode.kind, group.kind, noted=noted), skill),
        max_tokens=mode.most_tokens(optimizer),
    )
    read = partial(
        read_patch,
        of=mode.kind,
        patch=group.id,
        kind=group.kind,
        support=len(group.items),
        most=optimizer.learning_rate,
        most_notes=MOST_NOTES if noted else 0,
    )
    careful = optimizer.ask_again and not noted  # notes hold without edits
    return patch_asked(group, step.number, request, placed_in(skill, read) if careful else read)


# --- merges ----------------------------------------------------------------------------------------------------------


def merge(
    job: MergeJob, state: ClassicState, at: OpenStep, config: RunConfig, evidence: RecordedTexts
) -> Asking[PatchReply]:
    """Patches become one; where the model does not help, they are joined as they are."""
    step, skill, notes = _open(state, at)
    mode, groups = mode_of(config.optimizer), _groups(job, step)
    labels = dict(labelled for _, group in groups for labelled in group)
    source: PatchSource = "success" if job.group == "success" else "failure"
    level = f", merge level {job.level}" if job.level else ""
    request = question(
        config,
        slot=job.merge,
        stage="merge",
        prompt=f"merge_{job.group}{mode.prompts}",
        sections=(
            notes,
            skill_section(skill),
            f"## Proposed {mode.proposals}: {len(groups)} proposals{level}",
            mode.shown(groups),
        ),
        schema=naming_files(merge_schema(mode.kind), skill),
        max_tokens=mode.most_tokens(config.optimizer),
    )
    read = partial(read_merge, of=mode.kind, merge=job.merge, inputs=labels, source=source)
    named = partial(
        PatchesMerged, merge=job.merge, step=step.number, group=job.group, level=job.level, inputs=job.inputs
    )

    def merged(reply: PatchReply, calls: Calls, fallback: str = "") -> PatchesMerged:
        return named(
            edits=reply.edits,
            suggestions=reply.suggestions,
            drafts=reply.drafts,
            reasoning=reply.reasoning,
            fallback=fallback,
            calls=calls,
        )

    def none(*, result: Why, note: str, calls: Calls) -> PatchesMerged:
        # Only an unusable answer has the inputs joined; where the optimizer was not reached, it is asked again.
        if result == "failed":
            return named(edits=(), failed=note, calls=calls)
        renamed = (
            evolve(each, id=f"{job.merge}#{number}", origins=(each.id,), origins_assumed=False)
            for number, each in enumerate(labels.values(), start=1)
        )
        return merged(PatchReply(proposals=tuple(renamed), reasoning=""), calls, note)

    careful = not_empty(placed_in(skill, read)) if config.optimizer.ask_again else read
    return Asking(request=request, read=careful, event=merged, none=none)


def _groups(job: MergeJob, step: StepState) -> list[Group]:
    """The inputs under their names, with a label for each proposal, counted through."""
    groups: list[Group] = []
    number = 0
    for position, name in enumerate(job.inputs):
        made = step.merges[name] if name in step.merges else step.patches[name]
        labelled = []
        for proposal in proposals_in(made):
            number += 1
            labelled.append((f"E{number}", proposal))
        # The last merge has the merged failures first, and then the merged successes.
        title = ("failures", "successes")[position] if job.group == "final" else f"proposal {position + 1}"
        groups.append((title, labelled))
    return groups


# --- how many of the pool, and which ---------------------------------------------------------------------------------


def choose_learning_rate(
    job: LearningRateJob, state: ClassicState, at: OpenStep, config: RunConfig, evidence: RecordedTexts
) -> Asking[LearningRateReply]:
    """The optimizer's own number, from the evidence of the step: at most what there is, and 0 when it gives none."""
    step, skill, notes = _open(state, at)
    mode, available = mode_of(config.optimizer), len(job.pool)
    request = question(
        config,
        slot=job.slot,
        stage="learning_rate",
        prompt=f"lr_autonomous{mode.prompts}",
        sections=(
            notes,
            skill_section(skill),
            _evidence_section(state, step, f"proposed {mode.proposals}: {available}"),
            f"## Proposed {mode.proposals} ({available})\n{_pool(step, job.pool)}",
            "Decide how many of them to apply in this step.",
            buffer_section(state.algorithm.buffer),
        ),
        schema=LEARNING_RATE_SCHEMA,
    )
    named = partial(LearningRateChosen, step=step.number, available=available)

    def chosen(reply: LearningRateReply, calls: Calls) -> LearningRateChosen:
        return named(
            result="chosen",
            budget=min(reply.learning_rate, available),
            asked=reply.learning_rate,
            confidence=reply.confidence,
            risks=reply.risks,
            reasoning=reply.reasoning,
            calls=calls,
        )

    return Asking(request=request, read=read_learning_rate, event=chosen, none=partial(named, budget=0))


def rank(
    job: RankJob, state: ClassicState, at: OpenStep, config: RunConfig, evidence: RecordedTexts
) -> Asking[RankingReply]:
    """The optimizer's choice, or the first of the pool when it makes none; nothing when it could not be reached."""
    step, skill, notes = _open(state, at)
    mode = mode_of(config.optimizer)
    request = question(
        config,
        slot=job.slot,
        stage="ranking",
        prompt=f"ranking{mode.prompts}",
        sections=(
            notes,
            skill_section(skill),
            f"## Proposed {mode.proposals} ({len(job.pool)}, of which {job.budget} can be applied)\n"
            + _pool(step, job.pool),
            f"Choose the {job.budget} most important ones, in order.",
        ),
        schema=RANKING_SCHEMA,
    )
    named = partial(EditsRanked, step=step.number, budget=job.budget, pool=job.pool)

    def chosen(reply: RankingReply, calls: Calls) -> EditsRanked:
        return named(chosen=tuple(job.pool[at] for at in reply.chosen), reasoning=reply.reasoning, calls=calls)

    def none(*, result: Why, note: str, calls: Calls) -> EditsRanked:
        if result == "failed":
            return named(chosen=(), failed=note, calls=calls)
        return named(chosen=job.pool[: job.budget], fallback=note, calls=calls)

    read = partial(read_ranking, pool=len(job.pool), budget=job.budget)
    return Asking(request=request, read=read, event=chosen, none=none)


def _pool(step: StepState, pool: Sequence[str]) -> str:
    by_id = proposals_of(step)
    rows = [by_id[name] for name in pool]
    return "\n".join(f"[{index}] {described(each)}  support={each.support}" for index, each in enumerate(rows))


def _evidence_section(state: ClassicState, step: StepState, proposed: str) -> str:
    places = [done for place, done in state.rollouts.items() if is_train(place, step.number)]
    score = mean_score([row.outcome for done in places for row in done.values() if isinstance(row.outcome, Measured)])
    return (
        "## Evidence of this step\n"
        f"rollouts: {score.measured}\nhard score: {score.hard:.6f}\nsoft score: {score.soft:.6f}\n"
        f"{proposed}"
    )


# --- a rewrite -------------------------------------------------------------------------------------------------------


def rewrite(
    job: RewriteJob, state: ClassicState, at: OpenStep, config: RunConfig, evidence: RecordedTexts
) -> Asking[RewriteReply]:
    """The chosen suggestions become a whole new skill."""
    step, skill, _ = _open(state, at)
    by_id = proposals_of(step)
    chosen = [each for each in (by_id[name] for name in job.chosen) if isinstance(each, Suggestion)]
    rows = json.dumps([fields_of(each) for each in chosen], indent=1, ensure_ascii=False)
    one_file = f"the whole new text of {skill.main}; the other files stay as they are"
    request = question(
        config,
        slot=job.slot,
        stage="rewrite",
        prompt="rewrite_skill",
        sections=(
            skill_section(skill),
            f"## Selected suggestions ({len(chosen)})\n{fenced('suggestions', rows)}",
            buffer_section(state.algorithm.buffer),
            f"Write {'the whole new skill' if len(skill.files) == 1 else one_file} into `new_skill`.",
        ),
        schema=REWRITE_SCHEMA,
        max_tokens=config.optimizer.rewrite_max_completion_tokens,
        effort=config.optimizer.rewrite_reasoning_effort,
    )
    named = partial(SkillRewritten, step=step.number)

    def written(reply: RewriteReply, calls: Calls) -> SkillRewritten:
        return named(result="written", text=reply.text, changes=reply.changes, reasoning=reply.reasoning, calls=calls)

    return Asking(request=request, read=read_rewrite, event=written, none=named)


# --- what earlier steps and epochs say -------------------------------------------------------------------------------

_CAUSES = {"defect": "the skill's defect", "lapse": "a lapse: the skill has the rule"}


def meta_skill_section(meta_skill: str) -> str:
    """The optimizer's own notes from earlier epochs, or nothing."""
    if not meta_skill.strip():
        return ""
    return (
        "## Your notes from earlier epochs\n"
        "Use them where the evidence is unclear; what the trajectories show now comes first.\n"
        f"{meta_skill.strip()}"
    )


def buffer_section(buffer: Sequence[BufferEntry]) -> str:
    """What earlier steps of this epoch tried and what came of it, or nothing."""
    if not buffer:
        return ""
    lines = [
        "## Earlier steps of this epoch",
        "Do not propose again what did not work; turn first to failures that are still unsolved.",
    ]
    for attempt in buffer:
        earlier = " of the training before this one" if attempt.before else ""
        came = f"{attempt.action.upper()}, {attempt.failed} of {attempt.total} failed"
        lines.append(f"\n### Step {attempt.step}{earlier}: {came}")
        seen = _seen_in(attempt)
        if seen:
            lines.append(fenced(f"step {attempt.step}", "\n".join(seen)))
    return "\n".join(lines)


def _seen_in(attempt: BufferEntry) -> list[str]:
    """What went wrong in a step and what was tried; ids, codes and descriptions come from outside."""
    lines = [f"- {seen.code} ×{len(seen.items)}: {', '.join(seen.items)}" for seen in attempt.codes]
    lines += [f"- an analyst saw: {_seen(pattern)}" for pattern in attempt.patterns]
    if attempt.rejected:
        lines.append(f"Rejected {called(attempt.rejected[0])} ({_why_rejected(attempt)}):")
        lines += [f"{number}. {described(each)}" for number, each in enumerate(attempt.rejected, start=1)]
    if attempt.rejected_notes:
        lines.append("Reminder notes that were rejected with this step:")
        lines += [f"* {note}" for note in attempt.rejected_notes]
    return lines


def _why_rejected(attempt: BufferEntry) -> str:
    if attempt.value_after is None:
        return "they make the skill too large"
    before = "unknown" if attempt.value_before is None else f"{attempt.value_before:.4f}"
    most = "at most " if attempt.bound else ""
    return f"score {before} -> {most}{attempt.value_after:.4f}"


def _seen(pattern: FailurePattern) -> str:
    cause = f" ({_CAUSES[pattern.cause]})" if pattern.cause else ""
    return f"{pattern.type}{cause}: {pattern.description}"
