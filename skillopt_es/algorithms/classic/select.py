"""
How many of a step's edits are applied, and which: asked of the optimizer where the pool is larger than that.

The autonomous learning rate is its own number, from the evidence of the step.
"""

from __future__ import annotations

from functools import partial

from skillopt_es.algorithms.classic.jobs import LearningRateJob, RankJob
from skillopt_es.algorithms.classic.modes import mode_of
from skillopt_es.algorithms.classic.prompt_text import buffer_section, meta_skill_section
from skillopt_es.algorithms.classic.state import ClassicState, is_train, proposals_of
from skillopt_es.algorithms.optimizer import described, question, skill_section
from skillopt_es.engine.algorithms import Asking, Consulted
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import EditsRanked, LearningRateChosen
from skillopt_es.events.values import Measured
from skillopt_es.replies.answers import (
    LEARNING_RATE_SCHEMA,
    RANKING_SCHEMA,
    LearningRateReply,
    RankingReply,
    read_learning_rate,
    read_ranking,
)


def rank(job: RankJob, state: ClassicState, run: RunData, evidence: RecordedTexts) -> Asking[RankingReply]:
    """The optimizer's choice, or the first of the pool when it makes none; nothing when it could not be reached."""
    step = state.algorithm.step
    assert step is not None
    assert state.current is not None
    assert state.algorithm.epoch is not None
    mode = mode_of(run.config.optimizer)
    by_id = proposals_of(step)
    lines = [
        f"[{index}] {described(by_id[name])}  support={by_id[name].support}" for index, name in enumerate(job.pool)
    ]
    request = question(
        run,
        slot=job.slot,
        stage="ranking",
        prompt=f"ranking{mode.prompts}",
        sections=(
            meta_skill_section(state.algorithm.epoch.meta_skill),
            skill_section(state.current.skill),
            f"## Proposed {mode.proposals} ({len(job.pool)}, of which {job.budget} can be applied)\n"
            + "\n".join(lines),
            f"Choose the {job.budget} most important ones, in order.",
        ),
        schema=RANKING_SCHEMA,
    )
    read = partial(read_ranking, pool=len(job.pool), budget=job.budget)

    def answered(consulted: Consulted[RankingReply]) -> EditsRanked:
        reply = consulted.value
        fallback = () if consulted.failed else tuple(range(job.budget))
        chosen = fallback if reply is None else reply.chosen
        return EditsRanked(
            step=step.number,
            budget=job.budget,
            pool=job.pool,
            chosen=tuple(job.pool[index] for index in chosen),
            reasoning="" if reply is None else reply.reasoning,
            fallback="" if consulted.failed else consulted.why,
            failed=consulted.why if consulted.failed else "",
            calls=consulted.calls,
        )

    return Asking(request=request, read=read, event=answered)


def choose_learning_rate(
    job: LearningRateJob, state: ClassicState, run: RunData, evidence: RecordedTexts
) -> Asking[LearningRateReply]:
    """The optimizer's number, at most what there is; 0 with the reason when it gives none."""
    step = state.algorithm.step
    assert step is not None
    assert state.current is not None
    assert state.algorithm.epoch is not None
    mode = mode_of(run.config.optimizer)
    by_id = proposals_of(step)
    pool = [by_id[name] for name in job.pool]
    lines = [f"[{index}] {described(each)}  support={each.support}" for index, each in enumerate(pool)]
    request = question(
        run,
        slot=job.slot,
        stage="learning_rate",
        prompt=f"lr_autonomous{mode.prompts}",
        sections=(
            meta_skill_section(state.algorithm.epoch.meta_skill),
            skill_section(state.current.skill),
            _evidence_section(state, f"proposed {mode.proposals}: {len(job.pool)}"),
            f"## Proposed {mode.proposals} ({len(job.pool)})\n" + "\n".join(lines),
            "Decide how many of them to apply in this step.",
            buffer_section(state.algorithm.buffer),
        ),
        schema=LEARNING_RATE_SCHEMA,
    )
    available = len(job.pool)

    def answered(consulted: Consulted[LearningRateReply]) -> LearningRateChosen:
        reply = consulted.value
        if reply is None:
            return LearningRateChosen(
                step=step.number,
                result="failed" if consulted.failed else "unusable",
                available=available,
                budget=0,
                note=consulted.why,
                calls=consulted.calls,
            )
        return LearningRateChosen(
            step=step.number,
            result="chosen",
            available=available,
            budget=min(reply.learning_rate, available),
            asked=reply.learning_rate,
            confidence=reply.confidence,
            risks=reply.risks,
            reasoning=reply.reasoning,
            calls=consulted.calls,
        )

    return Asking(request=request, read=read_learning_rate, event=answered)


def _evidence_section(state: ClassicState, proposed: str) -> str:
    assert state.algorithm.step is not None
    places = [done for place, done in state.rollouts.items() if is_train(place, state.algorithm.step.number)]
    outcomes = [row.outcome for done in places for row in done.values() if isinstance(row.outcome, Measured)]
    score = mean_score(list(outcomes))
    return (
        "## Evidence of this step\n"
        f"rollouts: {score.measured}\nhard score: {score.hard:.6f}\nsoft score: {score.soft:.6f}\n"
        f"{proposed}"
    )
