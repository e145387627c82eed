"""The question of a search: failing tasks beside a few that pass, and which edits were refused; edits that say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve as replace
from attrs import frozen

from skillopt_es.engine.programs import Asking, Consulted
from skillopt_es.engine.rollout import RecordedTexts, fenced, shown, unpacked
from skillopt_es.engine.tasks import RunData
from skillopt_es.events.catalog import PatchProposed
from skillopt_es.events.values import Edit, Minibatch, SkillTree
from skillopt_es.ports import ChatRequest
from skillopt_es.programs.optimizer import (
    described,
    guide_section,
    question,
    skill_section,
    steering_section,
    without_reply,
)
from skillopt_es.programs.search.credit import spoken_of
from skillopt_es.programs.search.rounds import ground, parted, screened
from skillopt_es.programs.search.state import EARNED_NOTHING, SearchState, Tried, open_step
from skillopt_es.replies.answers import CLAIMED_SCHEMA, PatchReply, naming_files, read_patch
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import placed_in


@frozen
class SearchJob:
    """One question, about the tasks of one group."""

    group: Minibatch


def ask_for_edits(job: SearchJob, state: SearchState, run: RunData, evidence: RecordedTexts) -> Asking[PatchReply]:
    """The question about one group, and how its answer is read."""
    group, step = job.group, state.program.step
    assert step is not None
    failing, passing = parted(state, run, group)
    rows, skill = state.rollouts[group.place], ground(state, run, len(step.rounds) - 1)
    tasks = {item: unpacked(rows[item], evidence).task for item in group.items if rows[item].trajectory}

    def read(text: str) -> PatchReply | Unusable:
        most = most_edits(len(failing))
        found = read_patch(text, patch=group.id, kind="failure", support=len(failing), most=most, claimable=failing)
        if isinstance(found, Unusable):
            return found
        edits = (_with_claims(each, failing, tasks) for edit in found.edits for each in moved(edit, skill))
        named = tuple(replace(edit, id=f"{group.id}#{number}") for number, edit in enumerate(edits, start=1))
        return replace(found, edits=named)

    def answered(consulted: Consulted[PatchReply]) -> PatchProposed:
        return _proposal(group, step.number, consulted)

    return Asking(
        request=_request(group, skill, failing, passing, state, run, evidence),
        read=placed_in(skill, read) if run.config.optimizer.ask_again else read,
        event=answered,
        silence_fails=True,
    )


def moved(edit: Edit, skill: SkillTree) -> tuple[Edit, ...]:
    """The edit; where it appends what stands in the skill already, that is taken out first, so that it comes last."""
    content, text = edit.content.strip(), skill.files.get(edit.file or skill.main, "")
    if edit.op != "append" or not content or f"\n{content}\n" not in f"\n{text}\n" or text.rstrip().endswith(content):
        return (edit,)
    return replace(edit, op="delete", target=content, content=""), edit


def _with_claims(edit: Edit, failing: Sequence[str], tasks: Mapping[str, str]) -> Edit:
    """An edit that names no task claims those that it speaks of."""
    if edit.claims:
        return edit
    spoken = tuple(item for item in spoken_of(edit.content or edit.target, tasks) if item in failing)
    return replace(edit, claims=spoken, claims_assumed=bool(spoken))


def _request(
    group: Minibatch,
    skill: SkillTree,
    failing: Sequence[str],
    passing: Sequence[str],
    state: SearchState,
    run: RunData,
    evidence: RecordedTexts,
) -> ChatRequest:
    rows = state.rollouts[group.place]
    most = run.config.gradient.max_trajectory_chars

    def blocks(title: str, items: Sequence[str]) -> str:
        texts = [shown(rows[item], evidence, most_chars=most, skill=skill.text, run=run) for item in items]
        return f"## {title} trajectories ({len(texts)})\n" + "\n\n".join(texts) if texts else ""

    return question(
        run,
        slot=group.id,
        stage="analyst",
        prompt="search",
        sections=(
            skill_section(skill),
            tried_section([*state.program.tried, *_lost_before(state, run)]),
            guide_section(run.started.guide),
            steering_section(state.steering),
            blocks("Successful", passing),
            blocks("Failed", failing),
            f"At most {most_edits(len(failing))} edits: one for each kind of failure.",
        ),
        schema=naming_files(CLAIMED_SCHEMA, skill),
    )


def _lost_before(state: SearchState, run: RunData) -> list[Tried]:
    """What earlier rounds of the step have dropped."""
    step = open_step(state)
    found = screened(state, run, earlier=len(step.rounds) - 1)
    lost = [edit for index, each in found.items() if not each.won for edit in step.changes[index]]
    return [Tried(step=step.number, edit=edit, why=EARNED_NOTHING) for edit in lost]


def most_edits(failing: int) -> int:
    """How many edits an answer about so many failing tasks may have."""
    return max(2, failing)


def tried_section(tried: Sequence[Tried]) -> str:
    """What did not get into the skill, and why; or nothing."""
    if not tried:
        return ""
    lines = [f"- step {each.step}: {described(each.edit)}\n  refused: {each.why}" for each in tried]
    return "## Edits that were refused before\nDo not give them again as they are.\n" + fenced(
        "refused", "\n".join(lines)
    )


def _proposal(group: Minibatch, step: int, consulted: Consulted[PatchReply]) -> PatchProposed:
    reply = consulted.value
    if reply is None:
        return without_reply(group, step, consulted)
    return PatchProposed(
        patch=group.id,
        step=step,
        kind=group.kind,
        items=group.items,
        result="edits" if reply.edits else "nothing",
        edits=reply.edits,
        reasoning=reply.reasoning,
        calls=consulted.calls,
    )
