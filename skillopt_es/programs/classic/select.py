"""Select: which edits of a pool that is larger than the step's budget are applied, in order."""

from __future__ import annotations

from functools import partial

from skillopt_es.engine.consult import Asking, Consulted
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import RecordedTexts
from skillopt_es.events.catalog import EditsRanked
from skillopt_es.programs.classic.jobs import RankJob
from skillopt_es.programs.classic.modes import mode_of
from skillopt_es.programs.classic.prompt_text import memory_section
from skillopt_es.programs.classic.state import ClassicState, proposals_of
from skillopt_es.programs.optimizer import described, question, skill_section
from skillopt_es.replies.answers import RANKING_SCHEMA, RankingReply, read_ranking


def rank(job: RankJob, state: ClassicState, run: RunData, evidence: RecordedTexts) -> Asking[RankingReply]:
    """The optimizer's choice, or the first of the pool when it makes none; nothing when it could not be reached."""
    step = state.program.step
    assert step is not None
    assert state.current is not None
    assert state.program.epoch is not None
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
            memory_section(state.program.epoch.meta_skill),
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
