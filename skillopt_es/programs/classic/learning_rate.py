"""The autonomous learning rate: the optimizer decides, from the evidence of the step, how many edits to apply."""

from __future__ import annotations

from skillopt_es.engine.consult import Asking, Consulted
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import RecordedTexts
from skillopt_es.events.catalog import LearningRateChosen
from skillopt_es.events.values import Measured
from skillopt_es.programs.classic.jobs import LearningRateJob
from skillopt_es.programs.classic.modes import mode_of
from skillopt_es.programs.classic.prompt_text import buffer_section, memory_section
from skillopt_es.programs.classic.state import ClassicState, is_train, proposals_of
from skillopt_es.programs.optimizer import described, question, skill_section
from skillopt_es.replies.answers import LEARNING_RATE_SCHEMA, LearningRateReply, read_learning_rate


def choose_learning_rate(
    job: LearningRateJob, state: ClassicState, run: RunData, evidence: RecordedTexts
) -> Asking[LearningRateReply]:
    """The optimizer's number, at most what there is; 0 with the reason when it gives none."""
    step = state.program.step
    assert step is not None
    assert state.current is not None
    assert state.program.epoch is not None
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
            memory_section(state.program.epoch.meta_skill),
            skill_section(state.current.skill),
            _evidence_section(state, f"proposed {mode.proposals}: {len(job.pool)}"),
            f"## Proposed {mode.proposals} ({len(job.pool)})\n" + "\n".join(lines),
            "Decide how many of them to apply in this step.",
            buffer_section(state.program.buffer),
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
    assert state.program.step is not None
    places = [done for place, done in state.rollouts.items() if is_train(place, state.program.step.number)]
    outcomes = [row.outcome for done in places for row in done.values() if isinstance(row.outcome, Measured)]
    score = mean_score(list(outcomes))
    return (
        "## Evidence of this step\n"
        f"rollouts: {score.measured}\nhard score: {score.hard:.6f}\nsoft score: {score.soft:.6f}\n"
        f"{proposed}"
    )
