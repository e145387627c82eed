"""Aggregate: patches become one, level by level; where the model does not help, they are joined as they are."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from skillopt_es.algorithms.classic.jobs import MergeJob
from skillopt_es.algorithms.classic.modes import Group, mode_of
from skillopt_es.algorithms.classic.prompt_text import meta_skill_section
from skillopt_es.algorithms.classic.state import ClassicState, StepState
from skillopt_es.algorithms.optimizer import question, skill_section
from skillopt_es.engine.algorithms import Asking, Consulted
from skillopt_es.engine.evidence import RecordedTexts as Recordings
from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import PatchesMerged
from skillopt_es.events.values import Draft, Edit, PatchSource, Proposal, Suggestion
from skillopt_es.projections.state import proposals_in
from skillopt_es.replies.answers import MergeReply, naming_files
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import not_empty, placed_in


def merge(job: MergeJob, state: ClassicState, run: RunData, evidence: Recordings) -> Asking[MergeReply]:
    """The result of a merge; `fallback` says why it is the inputs joined in order, `failed` why there is nothing."""
    step = state.algorithm.step
    assert step is not None
    assert state.current is not None
    assert state.algorithm.epoch is not None
    mode = mode_of(run.config.optimizer)
    groups = _groups(job, step)
    labels = dict(labelled for _, group in groups for labelled in group)
    source: PatchSource = "success" if job.group == "success" else "failure"
    request = question(
        run,
        slot=job.merge,
        stage="merge",
        prompt=f"merge_{job.group}{mode.prompts}",
        sections=(
            meta_skill_section(state.algorithm.epoch.meta_skill),
            skill_section(state.current.skill),
            f"## Proposed {mode.proposals}: {len(groups)} proposals"
            + (f", merge level {job.level}" if job.level else ""),
            mode.shown(groups),
        ),
        schema=naming_files(mode.merge_schema, state.current.skill),
        max_tokens=mode.most_tokens(run.config.optimizer),
    )

    def read(text: str) -> MergeReply | Unusable:
        return mode.read_merge(text, job.merge, labels, source)

    again = run.config.optimizer.ask_again
    careful = not_empty(placed_in(state.current.skill, read)) if again else read

    def answered(consulted: Consulted[MergeReply]) -> PatchesMerged:
        nothing = MergeReply(reasoning="")
        # Only an unusable answer has the inputs joined; where nobody was reached the question is asked again.
        reply = consulted.value or (nothing if consulted.failed else _joined(job.merge, tuple(labels.values())))
        return PatchesMerged(
            merge=job.merge,
            step=step.number,
            group=job.group,
            level=job.level,
            inputs=job.inputs,
            edits=reply.edits,
            suggestions=reply.suggestions,
            drafts=reply.drafts,
            reasoning=reply.reasoning,
            fallback="" if consulted.failed else consulted.why,
            failed=consulted.why if consulted.failed else "",
            calls=consulted.calls,
        )

    return Asking(request=request, read=careful, event=answered)


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


def _joined(merge: str, inputs: Sequence[Proposal]) -> MergeReply:
    """All inputs in order, under this merge's ids."""
    renamed = [
        evolve(each, id=f"{merge}#{number}", origins=(each.id,), origins_assumed=False)
        for number, each in enumerate(inputs, start=1)
    ]
    return MergeReply(
        edits=tuple(each for each in renamed if isinstance(each, Edit)),
        suggestions=tuple(each for each in renamed if isinstance(each, Suggestion)),
        drafts=tuple(each for each in renamed if isinstance(each, Draft)),
        reasoning="",
    )
