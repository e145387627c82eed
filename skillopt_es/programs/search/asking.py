"""The question of a search: failing tasks beside a few that pass, and which edits were refused; edits that say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve as replace
from attrs import frozen

from skillopt_es.engine.programs import Asking, Consulted
from skillopt_es.engine.rollout import RecordedTexts, fenced, shown, unpacked
from skillopt_es.engine.tasks import RunData
from skillopt_es.events.catalog import PatchProposed, RolloutCompleted
from skillopt_es.events.values import Edit, Minibatch, SkillTree
from skillopt_es.ports import ChatRequest
from skillopt_es.programs.optimizer import (
    described,
    edits_proposed,
    guide_section,
    question,
    skill_section,
    steering_section,
)
from skillopt_es.programs.search.credit import spoken_of
from skillopt_es.programs.search.placing import only_new, placed
from skillopt_es.programs.search.refusing import refusal
from skillopt_es.programs.search.results import ground, parted, screened, solved_tasks
from skillopt_es.programs.search.state import (
    EARNED_NOTHING,
    TOO_NARROW,
    Kept,
    ReplyForm,
    SearchState,
    Tried,
    better_form,
    open_step,
    replaced_by,
    types_of,
)
from skillopt_es.prompts import system_prompt
from skillopt_es.replies.answers import CLAIMED_SCHEMA, PatchReply, naming_files, read_patch
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.plain import as_json
from skillopt_es.replies.proposals import placed_in
from skillopt_es.skill.edits import apply_edits

_MOST_TOLD = 16  # refused edits in one question
_MOST_HELPED = 8
_WITH_TEXT = 5  # the first version of the prompts that has one for replies in plain text
_FORMS: Mapping[str, ReplyForm] = {"json": "json", "text": "text", "auto": "json"}
_PROMPTS: Mapping[ReplyForm, str] = {"json": "search", "text": "search_text"}


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
    old = replaced_by(state.program, group)
    tasks = {item: unpacked(rows[item], evidence).task for item in group.items if rows[item].trajectory}
    known = solved_tasks(state, run, evidence) if run.config.search.version > 2 else {}

    form, told = reply_form(state, run), _tried_about(group, state, run)
    prompt = system_prompt(_PROMPTS[form], run.started.prompts)
    refused: dict[str, str] = {}

    def in_its_place(edit: Edit) -> tuple[Edit, ...]:
        if run.config.search.version < 3:
            return moved(edit, skill)
        new = only_new(edit, skill)
        again = moved(new, skill)
        kept = (each.edit for each in state.program.kept)
        return again if len(again) > 1 else (placed(new, kept, skill, {**known, **tasks}),)

    def read(text: str) -> PatchReply | Unusable:
        most, said = most_edits(len(failing)), as_json(text) if form == "text" else text
        found = read_patch(said, patch=group.id, kind="failure", support=len(failing), most=most, claimable=failing)
        if isinstance(found, Unusable):
            return found
        whys = {edit: refusal(edit, prompt=prompt, skill=skill.text, tried=told) for edit in found.edits}
        refused.clear()
        refused.update({edit.content: why for edit, why in whys.items() if why})
        if refused and all(whys.values()):
            return Unusable(f"none of the edits is tried: of the first, {next(iter(refused.values()))}")
        kept = (edit for edit, why in whys.items() if not why)
        given = (edit if old is None else in_place_of(old.edit, edit) for edit in kept)
        claimed = with_claims if run.config.search.version > 1 else with_claims_as_named
        edits = (claimed(each, failing, tasks) for edit in given for each in in_its_place(edit))
        named = tuple(replace(edit, id=f"{group.id}#{number}") for number, edit in enumerate(edits, start=1))
        return replace(found, edits=named)

    def answered(consulted: Consulted[PatchReply]) -> PatchProposed:
        left_out = "; ".join(f"an edit was left out: {why}" for why in refused.values())
        return edits_proposed(group, step.number, consulted, left_out)

    return Asking(
        request=_request(
            group, skill if old is None else without(old.edit, skill), failing, passing, state, run, evidence
        ),
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


def without(edit: Edit, skill: SkillTree) -> SkillTree:
    """The skill without what an edit brought."""
    return apply_edits(skill, [replace(edit, op="delete", target=edit.content.strip(), content="")])[0]


def in_place_of(old: Edit, new: Edit) -> Edit:
    """What is appended takes the place of what an older edit brought."""
    return replace(new, op="replace", target=old.content.strip(), file=old.file) if new.op == "append" else new


def with_claims_as_named(edit: Edit, failing: Sequence[str], tasks: Mapping[str, str]) -> Edit:
    """An edit that names no task claims those that it speaks of."""
    if edit.claims:
        return edit
    spoken = _spoken(edit, failing, tasks)
    return replace(edit, claims=spoken, claims_assumed=bool(spoken))


def with_claims(edit: Edit, failing: Sequence[str], tasks: Mapping[str, str]) -> Edit:
    """
    What an edit claims, and of that first what it speaks of.

    One that speaks of none of the tasks that it names was mixed up, or is more general than its words: it is tried on
    those that it speaks of, and then on the first one that it names.
    """
    spoken = _spoken(edit, failing, tasks)
    named = tuple(item for item in edit.claims if item in spoken)
    others = tuple(item for item in edit.claims if item not in spoken)
    if named or not spoken:
        return replace(edit, claims=(*named, *others))
    return replace(edit, claims=(*spoken, *others[:1]), claims_assumed=True)


def _spoken(edit: Edit, failing: Sequence[str], tasks: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(item for item in spoken_of(edit.content or edit.target, tasks) if item in failing)


def _request(
    group: Minibatch,
    skill: SkillTree,
    failing: Sequence[str],
    passing: Sequence[str],
    state: SearchState,
    run: RunData,
    evidence: RecordedTexts,
) -> ChatRequest:
    rows, form = state.rollouts[group.place], reply_form(state, run)
    most = run.config.gradient.max_trajectory_chars

    def blocks(title: str, shown_rows: Sequence[RolloutCompleted]) -> str:
        texts = [shown(row, evidence, most_chars=most, skill=skill.text, run=run) for row in shown_rows]
        return f"## {title} trajectories ({len(texts)})\n" + "\n\n".join(texts) if texts else ""

    beside = [state.rollouts[each.place][item] for each in open_step(state).beside(group) for item in each.items]
    return question(
        run,
        slot=group.id,
        stage="analyst",
        prompt=_PROMPTS[form],
        sections=(
            skill_section(skill),
            helped_section(state.program.kept[-_MOST_HELPED:]),
            tried_section(_tried_about(group, state, run)),
            guide_section(run.started.guide),
            steering_section(state.steering),
            blocks("Successful", [*(rows[item] for item in passing), *beside]),
            blocks("Failed", [rows[item] for item in failing]),
            f"At most {most_edits(len(failing))} edits: one for each kind of failure.",
        ),
        schema=naming_files(CLAIMED_SCHEMA, skill) if form == "json" else None,
    )


def _tried_about(group: Minibatch, state: SearchState, run: RunData) -> list[Tried]:
    """The refused edits for these tasks, others of their types, or any: the latest of them."""
    types = types_of(state, group.place, group.items)
    old = replaced_by(state.program, group)
    given_up = [] if old is None else [Tried(step=old.step, edit=old.edit, why=TOO_NARROW)]
    about = [
        each
        for each in (*state.program.tried, *_lost_before(state, run))
        if not each.edit.claims or each.types & types or set(each.edit.claims) & set(group.items)
    ]
    return [*about[-_MOST_TOLD:], *given_up]


def _lost_before(state: SearchState, run: RunData) -> list[Tried]:
    """What earlier rounds of the step have dropped."""
    step = open_step(state)
    found = screened(state, run, earlier=len(step.rounds) - 1)
    tried = {index: each for index, each in found.items() if each.results or run.config.search.version == 1}
    lost = [edit for index, each in tried.items() if not each.won for edit in step.changes[index]]
    return [Tried(step=step.number, edit=edit, why=EARNED_NOTHING) for edit in lost]


def reply_form(state: SearchState, run: RunData) -> ReplyForm:
    """In which form this step's questions want their answers; with `auto`, in what has earned more so far."""
    wish = run.config.search.reply
    return better_form(state.program) if wish == "auto" and run.started.prompts >= _WITH_TEXT else _FORMS[wish]


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
