"""The question of a search: failing tasks beside a few that pass, and which edits were refused; edits that say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve as replace
from attrs import frozen

from skillopt_es.algorithms.optimizer import (
    described,
    guide_section,
    patch_asked,
    question,
    skill_section,
    steering_section,
)
from skillopt_es.algorithms.search.results import ground, parted, screened, solved_tasks
from skillopt_es.algorithms.search.state import (
    TOO_NARROW,
    Kept,
    ReplyForm,
    SearchState,
    Tried,
    asked_form,
    open_step,
    replaced_by,
    types_of,
    why_dropped,
)
from skillopt_es.algorithms.search.taking import Asked, Taken, taken
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import fenced, shown, unpacked
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Edit, Minibatch, SkillTree
from skillopt_es.ports import ChatRequest
from skillopt_es.prompts import system_prompt
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.plain import as_json
from skillopt_es.replies.proposals import CLAIMED_SCHEMA, PatchReply, naming_files, placed_in, read_patch
from skillopt_es.skill.edits import apply_edits

_MOST_TOLD = 16  # refused edits in one question
_MOST_HELPED = 8  # the latest ones show what kind of edit helps; all of a long run would crowd out the evidence
_PROMPTS: Mapping[ReplyForm, str] = {"json": "search", "text": "search_text"}


@frozen
class SearchJob:
    """One question, about the tasks of one group."""

    group: Minibatch


def ask_for_edits(job: SearchJob, state: SearchState, config: RunConfig, evidence: RecordedTexts) -> Asking[PatchReply]:
    """The question about one group, and how its answer is read."""
    group, step = job.group, open_step(state)
    asked, refused = asked_about(group, state, config, evidence), dict[str, str]()
    _, passing = parted(state, config, group)

    def read(text: str) -> PatchReply | Unusable:
        found = taken_from(text, group, asked)
        if isinstance(found, Unusable):
            return found
        reply, result = found
        refused.clear()
        refused.update(result.refused)
        if refused and not result.edits:
            return Unusable(f"none of the edits is tried: of the first, {next(iter(refused.values()))}")
        named = (replace(edit, id=f"{group.id}#{number}") for number, edit in enumerate(result.edits, start=1))
        return replace(reply, proposals=tuple(named), patterns=())

    def left_out() -> str:
        return "; ".join(f"an edit was left out: {why}" for why in refused.values())

    request = _request(group, asked.shown, asked.failing, passing, state, config, evidence)
    reader = placed_in(asked.skill, read) if config.optimizer.ask_again else read
    return patch_asked(group, step.number, request, reader, left_out)


def asked_about(group: Minibatch, state: SearchState, config: RunConfig, evidence: RecordedTexts) -> Asked:
    """What the question about a group is about, and what its answer is read by."""
    failing, _ = parted(state, config, group)
    rows, skill = state.rollouts[group.place], ground(state, config, len(open_step(state).rounds) - 1)
    old, form = replaced_by(state.algorithm, group), asked_form(state)
    tasks = {item: unpacked(rows[item], evidence).task for item in group.items if rows[item].trajectory}
    return Asked(
        skill=skill,
        shown=skill if old is None else without(old.edit, skill),
        failing=failing,
        tasks=tasks,
        known=solved_tasks(state, config, evidence),
        kept=(*state.algorithm.kept, *_kept_in_step(state, config)),
        old=old,
        told=_tried_about(group, state, config),
        form=form,
        prompt=system_prompt(_PROMPTS[form]),
        close_gaps=not config.follows("leave_gaps"),
    )


def taken_from(text: str, group: Minibatch, asked: Asked) -> tuple[PatchReply, Taken] | Unusable:
    """An answer as it was given, and what of its edits is tried."""
    failing = asked.failing
    said = as_json(text) if asked.form == "text" else text
    most = most_edits(len(failing))
    found = read_patch(said, patch=group.id, kind="failure", support=len(failing), most=most, claimable=failing)
    if isinstance(found, Unusable):
        return found
    return found, taken(found.edits, asked)


def _kept_in_step(state: SearchState, config: RunConfig) -> tuple[Kept, ...]:
    """What earlier rounds of the open step have kept, as if it were in the skill already."""
    step = open_step(state)
    won = {index: each for index, each in screened(state, config, earlier=len(step.rounds) - 1).items() if each.won}
    groups = {index: step.group_of(step.changes[index]) for index in won}
    return tuple(
        Kept(
            step=step.number,
            edit=step.changes[index][-1],
            items=each.better,
            place=Place(groups[index].place),
            types=types_of(state, groups[index].place, each.better),
        )
        for index, each in won.items()
        if not each.deletes
    )


def without(edit: Edit, skill: SkillTree) -> SkillTree:
    """The skill without what an edit brought."""
    return apply_edits(skill, [replace(edit, op="delete", target=edit.content.strip(), content="")])[0]


def _request(
    group: Minibatch,
    skill: SkillTree,
    failing: Sequence[str],
    passing: Sequence[str],
    state: SearchState,
    config: RunConfig,
    evidence: RecordedTexts,
) -> ChatRequest:
    rows, form = state.rollouts[group.place], asked_form(state)
    most = config.gradient.max_trajectory_chars

    def blocks(title: str, shown_rows: Sequence[RolloutCompleted]) -> str:
        texts = [shown(row, evidence, most_chars=most, skill=skill.text, config=config) for row in shown_rows]
        return f"## {title} trajectories ({len(texts)})\n" + "\n\n".join(texts) if texts else ""

    beside = [state.rollouts[each.place][item] for each in open_step(state).beside(group) for item in each.items]
    return question(
        config,
        slot=group.id,
        stage="analyst",
        prompt=_PROMPTS[form],
        sections=(
            skill_section(skill),
            helped_section(state.algorithm.kept[-_MOST_HELPED:]),
            tried_section(_tried_about(group, state, config)),
            guide_section(state.started.guide),
            steering_section(state.steering),
            blocks("Successful", [*(rows[item] for item in passing), *beside]),
            blocks("Failed", [rows[item] for item in failing]),
            f"At most {most_edits(len(failing))} edits: one for each kind of failure.",
        ),
        schema=naming_files(CLAIMED_SCHEMA, skill) if form == "json" else None,
    )


def _tried_about(group: Minibatch, state: SearchState, config: RunConfig) -> list[Tried]:
    """The refused edits for these tasks, others of their types, or any: the latest of them."""
    types = types_of(state, group.place, group.items)
    old = replaced_by(state.algorithm, group)
    given_up = [] if old is None else [Tried(step=old.step, edit=old.edit, why=TOO_NARROW)]
    about = [
        each
        for each in (*state.algorithm.tried, *_lost_before(state, config))
        if not each.edit.claims or each.types & types or set(each.edit.claims) & set(group.items)
    ]
    return [*about[-_MOST_TOLD:], *given_up]


def _lost_before(state: SearchState, config: RunConfig) -> list[Tried]:
    """What earlier rounds of the step have dropped."""
    step = open_step(state)
    found = screened(state, config, earlier=len(step.rounds) - 1)
    tried = {index: each for index, each in found.items() if each.results}
    return [
        Tried(step=step.number, edit=edit, why=why_dropped(each.better, each.worse))
        for index, each in tried.items()
        if not each.won
        for edit in step.changes[index]
    ]


def most_edits(failing: int) -> int:
    """How many edits an answer about so many failing tasks may have."""
    return max(2, failing)


def helped_section(kept: Sequence[Kept]) -> str:
    """What is in the skill because it helped, and what it has fixed; or nothing."""
    lines = [
        f"- step {each.step}: {described(each.edit)}\n  fixed alone: {', '.join(each.items) or 'nothing'}"
        for each in kept
        if each.edit.source != "examples"
    ]
    if not lines:
        return ""
    return "## Edits that helped before\nThey are in the skill.\n" + fenced("helped", "\n".join(lines))


def tried_section(tried: Sequence[Tried]) -> str:
    """What did not get into the skill, and why; or nothing."""
    if not tried:
        return ""
    lines = [f"- step {each.step}: {described(each.edit)}\n  refused: {each.why}" for each in tried]
    return "## Edits that were refused before\nDo not give them again as they are.\n" + fenced(
        "refused", "\n".join(lines)
    )
