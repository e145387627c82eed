"""SkillOpt's own way of training, as a program: epochs of steps, each with analysts, merges, a candidate, a verdict."""

from __future__ import annotations

from collections.abc import Hashable

from skillopt_es.engine.programs import Answered, Program
from skillopt_es.events import catalog as events
from skillopt_es.programs.classic import epoch_events, jobs, step_events
from skillopt_es.programs.classic.advice import propose_slow_update, write_meta_skill
from skillopt_es.programs.classic.aggregate import merge
from skillopt_es.programs.classic.consolidate import consolidate
from skillopt_es.programs.classic.decisions import DECISIONS
from skillopt_es.programs.classic.epoch_end import judging
from skillopt_es.programs.classic.estimate import kind_of, plan_of, planned_steps
from skillopt_es.programs.classic.evaluations import units_ahead
from skillopt_es.programs.classic.learning_rate import choose_learning_rate
from skillopt_es.programs.classic.planner import next_task
from skillopt_es.programs.classic.reflect import analyse
from skillopt_es.programs.classic.rewrite import rewrite
from skillopt_es.programs.classic.select import rank
from skillopt_es.programs.classic.state import Classic, ClassicState, initial, open_step, under_way
from skillopt_es.programs.classic.taint import untrusted_parts
from skillopt_es.programs.classic.words import WORDS


def _stage(state: ClassicState) -> Hashable:
    return state.program.epochs_done, state.steps_done


CLASSIC: Program[Classic] = Program(
    name="classic",
    initial=initial,
    evolve={
        events.RunResumed: step_events.resumed,
        events.EvidenceRetracted: epoch_events.retracted,
        events.EpochPlanned: epoch_events.epoch_planned,
        events.MinibatchesPlanned: step_events.minibatches,
        events.PatchProposed: step_events.patch,
        events.AppendixExtended: step_events.appendix_extended,
        events.AppendixConsolidated: step_events.appendix_consolidated,
        events.PatchesMerged: step_events.merged,
        events.LearningRateChosen: step_events.learning_rate,
        events.EditsRanked: step_events.ranked,
        events.SkillRewritten: step_events.rewritten,
        events.CandidateGated: step_events.gated,
        events.StepSkipped: step_events.skipped,
        events.AppendixWritten: step_events.appendix_written,
        events.ComparisonDrawn: epoch_events.comparison,
        events.ComparisonExtended: epoch_events.comparison_extended,
        events.SlowUpdateProposed: epoch_events.slow_proposed,
        events.SlowUpdateApplied: epoch_events.slow_applied,
        events.MetaSkillWritten: epoch_events.meta,
        events.EpochCompleted: epoch_events.epoch_completed,
        events.StepImported: step_events.step_imported,
        events.GapFound: step_events.gap,
    },
    next_task=next_task,
    decisions=DECISIONS,
    questions={
        jobs.AnalyseJob: analyse,
        jobs.SlowUpdateJob: propose_slow_update,
        jobs.MetaSkillJob: write_meta_skill,
        jobs.ConsolidateJob: consolidate,
        jobs.MergeJob: merge,
        jobs.LearningRateJob: choose_learning_rate,
        jobs.RankJob: rank,
        jobs.RewriteJob: rewrite,
    },
    answers={
        events.PatchProposed: Answered(
            names=("patch", "step", "items", "kind"),
            nothing={"edits": (), "suggestions": (), "drafts": (), "notes": ()},
        ),
        events.PatchesMerged: Answered(
            names=("merge", "step", "group", "level", "inputs"),
            nothing={"edits": (), "suggestions": (), "drafts": ()},
        ),
        events.LearningRateChosen: Answered(names=("step", "available"), nothing={"budget": 0}),
        events.EditsRanked: Answered(names=("step", "budget", "pool"), nothing={"chosen": ()}),
        events.SkillRewritten: Answered(names=("step",), nothing={"text": "", "changes": ()}),
        events.SlowUpdateProposed: Answered(names=("epoch", "pairs"), nothing={"guidance": "", "candidate": None}),
        events.MetaSkillWritten: Answered(names=("epoch",), nothing={"content": ""}),
    },
    stage=_stage,
    under_way=under_way,
    place=lambda state: open_step(state)[1],
    doubts=untrusted_parts,
    judging=judging,
    ahead=units_ahead,
    milestones=(*events.STEP_ENDS, events.EpochCompleted),
    words=WORDS,
    steps=planned_steps,
    plan=plan_of,
    kind_of=kind_of,
)
