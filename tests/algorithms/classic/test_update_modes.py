"""The modes that rewrite the skill: they train, agree at any concurrency, survive crashes and can be derived again."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from support.crashes import KillAt, in_child
from support.logs import call_slots, decisions_of, events_of, rows_of
from support.params import parametrized
from support.protected import protected_parts
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, target_reply, unreachable
from support.scripted_modes import FRONT, MODES, SKILL, rewriting_reply, rewriting_world

from skillopt_es.algorithms.classic.candidate import built_candidate
from skillopt_es.algorithms.classic.state import StepState
from skillopt_es.audit.check import check
from skillopt_es.config import load_config
from skillopt_es.engine.algorithms import fold
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    Event,
    LearningRateChosen,
    PatchesMerged,
    PatchProposed,
    RunPaused,
    SkillRewritten,
    StepSkipped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Draft, SkillTree
from skillopt_es.events.verify import verify
from skillopt_es.ports import ChatReply, ChatRequest, Usage
from skillopt_es.presenting.event_lines import event_line
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.tables import rebuild_tables
from skillopt_es.sessions.session import read_state, resume, start
from skillopt_es.skill.alignment import Origin, carried, changes, lines_of
from skillopt_es.skill.appendix import appendix_notes
from skillopt_es.skill.leaks import LeakGuard
from skillopt_es.skill.regions import SLOW_START

SUGGEST, FULL = MODES
UNGUARDED = LeakGuard((), known="", span=0)


def options(folder: Path, mode: str, *more: str) -> list[str]:
    """A skill with frontmatter, notes and guidance, in a mode."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(SKILL)
    return [f"optimizer.skill_update_mode={mode}", "env.skill_init=SKILL.md", *more]


def train(folder: Path, mode: str, *more: str, world: ScriptedWorld | None = None) -> list[Event]:
    """The events of a whole run in a mode."""
    settings = config(folder, options(folder, mode, *more))
    asyncio.run(start(settings, folder / "run", (world or rewriting_world()).session()))
    return events_of(folder / "run")


def of(events: list[Event], kind: type[Event]) -> list:  # type: ignore[type-arg]
    """The events of one type."""
    return [event for event in events if isinstance(event, kind)]


def checked(folder: Path) -> None:
    """Derives every decision of a run again."""
    with EventLog.open(folder) as log:
        report = asyncio.run(check(log, Journal(log.reader), folder))
    assert report.mismatch is None
    assert verify(folder).ok


# --- the modes train -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_run_improves_and_every_decision_is_derived_again(mode: str, tmp_path: Path) -> None:
    """The score rises, candidates come from whole texts, and the check repeats alignment and repair."""
    events = train(tmp_path, mode)
    state = read_state(tmp_path / "run")
    assert state.best is not None
    assert state.best.value is not None
    assert state.best.value >= 0.5
    built = of(events, CandidateBuilt)
    assert built
    assert all(event.rewrite is not None for event in built)
    checked(tmp_path / "run")


@pytest.mark.parametrize("mode", MODES)
def test_protected_parts_survive_every_rewrite_and_repairs_are_recorded(mode: str, tmp_path: Path) -> None:
    """The scripted optimizer drops and alters them; the texts are whole, and the events say what was done."""
    events = train(tmp_path, mode, "train.seed=46")
    skills = {event.candidate.hash: event.candidate for event in of(events, CandidateBuilt)}
    assert all(skill.text.startswith(FRONT) for skill in skills.values())
    repairs = [each for event in of(events, CandidateBuilt) for each in event.rewrite.repairs]
    assert {each.action for each in repairs} == {"put_back", "restored"}
    assert {each.part for each in repairs} == {"frontmatter", "appendix", "slow_update"}
    assert of(events, CandidateBuilt)
    state = None
    for event in events:
        if isinstance(event, CandidateBuilt):
            assert state is not None
            assert state.current is not None
            assert protected_parts(event.candidate.text) == protected_parts(state.current.skill.text)
        state = fold([event], state)


def test_suggestions_are_ranked_within_the_budget_and_rewritten_once(tmp_path: Path) -> None:
    """The learning rate limits suggestions as it limits edits; only the chosen ones reach the rewriter."""
    world = rewriting_world()
    asked: dict[str, ChatRequest] = {}

    def answer(request: ChatRequest) -> str:
        asked[request.slot] = request
        return rewriting_reply(request)

    world = rewriting_world(answer)
    events = train(tmp_path, SUGGEST, "optimizer.rewrite_reasoning_effort=high", world=world)
    ranked = of(events, EditsRanked)
    assert all(len(event.chosen) <= event.budget for event in ranked)
    assert any(len(event.pool) > len(event.chosen) for event in ranked)
    rewrites = {slot: request for slot, request in asked.items() if request.stage == "rewrite"}
    assert len(rewrites) == len(of(events, SkillRewritten))
    for event in of(events, SkillRewritten):
        (request,) = [each for slot, each in rewrites.items() if f"/s{event.step}/" in slot]
        assert (request.max_tokens, request.effort) == (64000, "high")
        (choice,) = [each for each in ranked if each.step == event.step]
        assert request.messages[1].content.count('"instruction"') == len(choice.chosen)
        assert "## Your notes" not in request.messages[1].content
    assert {request.max_tokens for request in asked.values() if request.stage != "rewrite"} == {16384}


def test_the_autonomous_learning_rate_counts_suggestions(tmp_path: Path) -> None:
    """It is asked in their terms."""
    asked: list[ChatRequest] = []

    def answer(request: ChatRequest) -> str:
        asked.append(request)
        return rewriting_reply(request)

    events = train(tmp_path, SUGGEST, "optimizer.lr_control_mode=autonomous", world=rewriting_world(answer))
    assert of(events, LearningRateChosen)
    question = next(each for each in asked if each.stage == "learning_rate")
    assert "proposed suggestions:" in question.messages[1].content
    checked(tmp_path / "run")


def test_drafts_have_no_learning_rate(tmp_path: Path) -> None:
    """One draft a step, never ranked, whatever the learning rate is; replies may be long."""
    asked: list[ChatRequest] = []

    def answer(request: ChatRequest) -> str:
        asked.append(request)
        return rewriting_reply(request)

    more = ("optimizer.lr_control_mode=autonomous", "optimizer.learning_rate=0", "optimizer.min_learning_rate=0")
    events = train(tmp_path, FULL, *more, world=rewriting_world(answer))
    assert {"ranking", "learning_rate", "rewrite"}.isdisjoint(each.stage for each in asked)
    assert {each.max_tokens for each in asked if each.stage in ("analyst", "merge")} == {64000}
    assert {(event.budget, len(event.chosen)) for event in of(events, EditsRanked)} == {(1, 1)}
    assert of(events, CandidateGated)


@pytest.mark.parametrize("mode", MODES)
def test_what_was_rejected_is_told_to_later_steps(mode: str, tmp_path: Path) -> None:
    """With its title and what it asked for, in the words of the mode."""
    told: list[str] = []

    def answer(request: ChatRequest) -> str:
        told.append(request.messages[1].content)
        said = rewriting_reply(request)
        return said.replace("know ", "spoil ") if request.slot.startswith("e1/s1/") else said

    events = train(tmp_path, mode, "train.num_epochs=1", world=rewriting_world(answer))
    assert "reject" in {event.verdict.action for event in of(events, CandidateGated)}
    heading = "Rejected suggestions (score" if mode == SUGGEST else "Rejected drafts (score"
    lines = "\n".join(told)
    assert heading in lines
    assert ("  instruction='- " if mode == SUGGEST else "  changes='- ") in lines


@pytest.mark.parametrize("mode", MODES)
def test_a_candidate_can_be_walked_back_to_its_proposals(mode: str, tmp_path: Path) -> None:
    """Every new line has a maker that was chosen, and its ancestry leads to an analyst's group."""
    events = train(tmp_path, mode)
    made = {
        each.id: each for event in of(events, PatchProposed) + of(events, PatchesMerged) for each in _proposals(event)
    }
    assert of(events, CandidateBuilt)
    state = None
    for event in events:
        if isinstance(event, CandidateBuilt):
            assert state is not None
            assert state.current is not None
            assert state.algorithm.step is not None
            draft = made[event.reports[0].edit]
            written = state.algorithm.step.rewritten.text if state.algorithm.step.rewritten else draft.text
            origin = Origin(reports=event.reports, proposals=made, rewrite=event.rewrite, written=written)
            walked = changes(state.current.skill, event.candidate, origin)
            assert all(change.after == event.candidate.text for change in walked)
            for name in (name for change in walked for name in change.made_by):
                origin = made[name]
                while origin.origins[0] in made:
                    origin = made[origin.origins[0]]
                assert "/failure-" in origin.origins[0]
        state = fold([event], state)


@pytest.mark.parametrize("mode", MODES)
def test_tables_and_words_know_what_was_proposed(mode: str, tmp_path: Path) -> None:
    """The table of edits has every suggestion and draft with its fate; no line calls them edits."""
    events = train(tmp_path, mode)
    with EventLog.open(tmp_path / "run") as log:
        tables = rebuild_tables([log], tmp_path / "run.db")
        lines = [event_line(recorded) for recorded in log.read()]
    with closing(sqlite3.connect(tables)) as database:
        rows = database.execute("select op, status, verdict from applied_edits").fetchall()
        (proposed,) = database.execute("select sum(proposed) from steps").fetchone()
    assert {(op, status) for op, status, _ in rows} == {("add_rule" if mode == SUGGEST else "draft", "applied_rewrite")}
    assert "accept_new_best" in {verdict for *_, verdict in rows}
    assert proposed == sum(len(_proposals(event)) for event in of(events, PatchProposed))
    assert not [line for line in lines if " edit" in line and "EditsRanked" not in line]


def _proposals(event: PatchProposed | PatchesMerged) -> tuple:  # type: ignore[type-arg]
    return event.edits or event.suggestions or event.drafts


def test_a_rewrite_leaves_other_files_alone() -> None:
    """Only the main file is written anew."""
    parent = SkillTree(files={"SKILL.md": SKILL, "extra.md": "more\n"})
    draft = Draft(id="p#1", text="# New\n\n- rule\n", support=2, origins=("p",))
    patch = PatchProposed(patch="p", step=1, kind="failure", items=("t",), result="draft", drafts=(draft,))
    ranked = EditsRanked(step=1, budget=1, pool=("p#1",), chosen=("p#1",))
    step = StepState(number=1, batches=(), patches=Ledger().put("p", patch), ranked=ranked)
    built = built_candidate(step, parent, UNGUARDED)
    assert built.candidate.files["extra.md"] == "more\n"
    assert built.candidate.text.startswith(f"{FRONT}\n# New\n\n- rule\n\n<!-- APPENDIX_START -->")


def test_another_end_of_the_file_is_no_change() -> None:
    """Blank lines after the last one are not worth an evaluation."""
    parent = SkillTree(files={"SKILL.md": "# A\n\n\n"})
    draft = Draft(id="p#1", text="# A\n", support=2, origins=("p",))
    patch = PatchProposed(patch="p", step=1, kind="failure", items=("t",), result="draft", drafts=(draft,))
    ranked = EditsRanked(step=1, budget=1, pool=("p#1",), chosen=("p#1",))
    built = built_candidate(
        StepState(number=1, batches=(), patches=Ledger().put("p", patch), ranked=ranked), parent, UNGUARDED
    )
    assert (built.candidate, built.reports[0].status) == (parent, "skipped_no_change")


# --- with reminder notes -------------------------------------------------------------------------------------------

NOTES = "optimizer.use_skill_aware_reflection=true"


def noting(request: ChatRequest) -> str:
    """Every analyst of the first step has a note, too."""
    said = json.loads(rewriting_reply(request))
    if request.stage == "analyst" and request.slot.startswith("e1/s1/"):
        said["appendix_notes"] = ["Mind the gap."]
    return json.dumps(said)


def test_notes_join_what_a_rewrite_came_to(tmp_path: Path) -> None:
    """They follow those that the rewrite kept, and the walk tells their lines from the rewriter's."""
    events = train(tmp_path, SUGGEST, NOTES, world=rewriting_world(noting))
    (built, *_) = of(events, CandidateBuilt)
    assert (built.step, built.notes) == (1, 1)
    assert built.rewrite is not None
    assert appendix_notes(built.candidate.text) == ("note: old", "Mind the gap.")
    rewritten, *_ = of(events, SkillRewritten)
    origin = Origin(
        reports=built.reports, proposals={}, rewrite=built.rewrite, written=rewritten.text, noted_by=("an analyst",)
    )
    parent = SkillTree(files={"SKILL.md": SKILL})
    *_, last = changes(parent, built.candidate, origin)
    makers = carried(tuple("rewriter" for _ in lines_of(last.before)), last, "analyst")
    assert makers[lines_of(built.candidate.text).index("- Mind the gap.")] == "analyst"
    checked(tmp_path / "run")


def test_without_a_rewrite_the_notes_are_the_candidate(tmp_path: Path) -> None:
    """And the suggestions say what became of them."""

    def answer(request: ChatRequest) -> str:
        return "no" if request.stage == "rewrite" else noting(request)

    events = train(tmp_path, SUGGEST, NOTES, "train.num_epochs=1", world=rewriting_world(answer))
    (built,) = of(events, CandidateBuilt)
    assert {report.status for report in built.reports} == {"skipped_no_rewrite"}
    assert (built.rewrite, built.notes) == (None, 1)
    assert built.candidate.text == SKILL.replace(
        "- note: old", "## Execution Notes Appendix\n- note: old\n- Mind the gap."
    )
    checked(tmp_path / "run")


def test_analysts_who_draft_are_not_asked_for_notes(tmp_path: Path) -> None:
    """Nor is a note read that one volunteers."""
    seen: list[str] = []

    def answer(request: ChatRequest) -> str:
        seen.extend(message.content for message in request.messages)
        return noting(request)

    events = train(tmp_path, FULL, NOTES, "train.num_epochs=1", world=rewriting_world(answer))
    assert not [text for text in seen if "reminder note" in text]
    assert not [event for event in of(events, PatchProposed) if event.notes]


# --- the same log, always ------------------------------------------------------------------------------------------


def rows_at(folder: Path, mode: str, *, workers: int, seed: int | None) -> list[tuple[object, ...]]:
    """The event table of a run whose calls end in a shuffled order, without what names the number of workers."""
    shuffle = None if seed is None else random.Random(seed)
    world = ScriptedWorld(
        target=ScriptedModel("scripted target", target_reply, shuffle=shuffle),
        optimizer=ScriptedModel("scripted optimizer", rewriting_reply, shuffle=shuffle),
    )
    train(folder, mode, f"env.workers={workers}", f"gradient.analyst_workers={workers}", world=world)
    return [(*row[:5], "" if row[0] == 1 else row[-1]) for row in rows_of(folder / "run")]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_logs_are_equal_at_any_concurrency(mode: str, tmp_path: Path) -> None:
    """1, 8 and 64 workers with shuffled completion."""
    first = rows_at(tmp_path / "1", mode, workers=1, seed=None)
    for workers, seed in ((8, 1), (64, 2)):
        assert rows_at(tmp_path / str(workers), mode, workers=workers, seed=seed) == first


SMALL = ("train.num_epochs=2", "train.batch_size=3")


def small_world() -> ScriptedWorld:
    """A short run."""
    return rewriting_world(environment=ScriptedEnvironment(train=6, val=6, test=3))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [MODES[0], *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[1:])])
def test_killed_anywhere_a_run_ends_like_an_undisturbed_one(mode: str, tmp_path: Path) -> None:
    """After the last event of each kind that a rewrite is made of, and after answers nobody has used yet."""
    events = train(tmp_path / "whole", mode, *SMALL, world=small_world())
    whole = tmp_path / "whole" / "run"
    last = {type(event): seq for seq, event in enumerate(events, 1) if isinstance(event, _DECIDED)}
    rewrites = [at for at, slot in enumerate(call_slots(whole), 1) if "/rewrite" in slot or "/merge" in slot]
    moments = [*(KillAt(event=seq) for seq in last.values()), *(KillAt(call=call) for call in rewrites[:2])]
    for number, killer in enumerate(moments):
        folder = tmp_path / str(number)
        settings = config(folder, options(folder, mode, *SMALL))

        def begin(settings: object = settings, folder: Path = folder, killer: KillAt = killer) -> None:
            asyncio.run(start(settings, folder / "run", small_world().session(observers=(killer,))))  # type: ignore[arg-type]

        assert in_child(begin) == signal.SIGKILL
        recorded = set(call_slots(folder / "run"))
        world = small_world()
        asyncio.run(resume(folder / "run", world.session()))
        assert decisions_of(folder / "run") == decisions_of(whole)
        assert recorded.isdisjoint([*world.target.asked, *world.optimizer.asked])


_DECIDED = (PatchProposed, PatchesMerged, EditsRanked, SkillRewritten, CandidateBuilt)


# --- replies that cannot be used -----------------------------------------------------------------------------------


def saying(stage: str, said: object) -> Callable[[ChatRequest], str | ChatReply]:
    """An optimizer that always says the same at one stage."""

    def answer(request: ChatRequest) -> str | ChatReply:
        if request.stage != stage:
            return rewriting_reply(request)
        if isinstance(said, ChatReply):
            return said
        return said if isinstance(said, str) else json.dumps(said)

    return answer


CUT = ChatReply(text='{"new_skill": "# A', finish="length", usage=Usage(input=1, output=1))
USELESS = {
    "prose": "I would rather not.",
    "empty": {"new_skill": ""},
    "blank but for its markers": {"new_skill": f"{FRONT}\n{SLOW_START}\nall of it"},
    "no text": {"new_skill": 7},
    "cut": CUT,
}


@parametrized("said", USELESS.values(), ids=USELESS, by_default=2)
def test_a_rewrite_that_cannot_be_used_is_asked_again_and_then_skipped(said: object, tmp_path: Path) -> None:
    """Two calls, an event that says why, and a step that ends without a candidate."""
    world = rewriting_world(saying("rewrite", said))  # type: ignore[arg-type]
    events = train(tmp_path, SUGGEST, "train.num_epochs=1", world=world)
    rewritten = of(events, SkillRewritten)
    assert rewritten
    assert {event.result for event in rewritten} == {"unusable"}
    assert all(event.note and len(event.calls) == 2 for event in rewritten)
    skipped = of(events, StepSkipped)
    assert [event.reason for event in skipped] == ["no_rewrite"] * len(rewritten)
    assert [event.detail for event in skipped] == [event.note for event in rewritten]
    assert not of(events, CandidateBuilt)
    checked(tmp_path / "run")


def test_a_second_try_can_still_be_used(tmp_path: Path) -> None:
    """The model is told what was wrong with its first reply."""

    def answer(request: ChatRequest) -> str:
        if request.stage == "rewrite" and not request.slot.endswith("/again"):
            return "{}"
        return rewriting_reply(evolve(request, messages=request.messages[:2]))

    events = train(tmp_path, SUGGEST, world=rewriting_world(answer))
    assert {(event.result, len(event.calls)) for event in of(events, SkillRewritten)} == {("written", 2)}
    checked(tmp_path / "run")


def test_an_outage_at_the_rewrite_pauses_the_run(tmp_path: Path) -> None:
    """It is told apart from a useless reply, and decides nothing."""

    def answer(request: ChatRequest) -> str:
        return unreachable(request) if request.stage == "rewrite" else rewriting_reply(request)

    events = train(tmp_path, SUGGEST, "train.num_epochs=1", world=rewriting_world(answer))
    assert {event.result for event in of(events, SkillRewritten)} == {"failed"}
    assert not of(events, StepSkipped)
    (paused,) = of(events, RunPaused)
    assert paused.reason == "optimizer"
    assert "the rewrite of step 1" in paused.message
    checked(tmp_path / "run")


@pytest.mark.parametrize("mode", MODES)
def test_the_same_text_again_ends_the_step_without_an_evaluation(mode: str, tmp_path: Path) -> None:
    """Every line is kept, and nothing is measured a second time."""
    same = SKILL.rstrip()

    def answer(request: ChatRequest) -> str:
        if request.stage == "rewrite":
            return json.dumps({"new_skill": same})
        if mode == FULL and request.stage in ("analyst", "merge"):
            rows = [{"title": "t", "change_summary": ["none"], "new_skill": same}]
            return json.dumps({"skill_candidates": rows, "patch": {"skill_candidates": rows}})
        return rewriting_reply(request)

    more = ("train.num_epochs=1", "optimizer.use_slow_update=false")
    events = train(tmp_path, mode, *more, world=rewriting_world(answer))
    assert {event.reason for event in of(events, StepSkipped)} == {"unchanged"}
    (built, *_) = of(events, CandidateBuilt)
    assert {report.status for report in built.reports} == {"skipped_no_change"}
    assert [run.length for run in built.rewrite.kept] == [len(SKILL.splitlines())]
    assert not of(events, CandidateGated)


DRAFTS = {
    "prose": "no",
    "no list": {"patch": {"skill_candidates": {}}},
    "blank drafts": {"patch": {"skill_candidates": [{"new_skill": " \n"}, "x", {"new_skill": None}]}},
    "cut": CUT,
}


@pytest.mark.parametrize("said", DRAFTS.values(), ids=DRAFTS)
def test_drafts_that_cannot_be_used_end_the_step(said: object, tmp_path: Path) -> None:
    """As edits that cannot be used do."""
    events = train(tmp_path, FULL, "train.num_epochs=1", world=rewriting_world(saying("analyst", said)))  # type: ignore[arg-type]
    assert {event.result for event in of(events, PatchProposed)} == {"unusable"}
    assert {event.reason for event in of(events, StepSkipped)} == {"no_usable_patch"}


@parametrized("mode", MODES, by_default=1)
@pytest.mark.parametrize(
    "said", ["no", '{"skill_candidates": [], "revise_suggestions": 3}', CUT], ids=["prose", "wrong lists", "cut"]
)
def test_a_merge_that_cannot_be_used_joins_its_inputs(mode: str, said: object, tmp_path: Path) -> None:
    """With the reason; of several drafts, the first is taken."""
    events = train(tmp_path, mode, world=rewriting_world(saying("merge", said)))  # type: ignore[arg-type]
    merges = of(events, PatchesMerged)
    assert merges
    assert all(event.fallback for event in merges)
    assert {event.drafts != () for event in merges} == {mode == FULL}
    if mode == FULL:
        joined = {event.step: event for event in merges}
        ranked = [event for event in of(events, EditsRanked) if event.step in joined]
        assert all(event.chosen == event.pool[:1] and len(event.pool) > 1 for event in ranked)
    checked(tmp_path / "run")


# --- the key -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("patch", "patch"),
        ("edits", "patch"),
        ("", "patch"),
        ("Rewrite", SUGGEST),
        ("suggestions", SUGGEST),
        ("rewrite_suggestions", SUGGEST),
        (" FULL_REWRITE ", FULL),
        ("minibatch_full_rewrite", FULL),
        ("skill_rewrite_minibatch", FULL),
    ],
)
def test_a_mode_has_the_names_of_the_original(written: str, mode: str, tmp_path: Path) -> None:
    """In any case, with spaces around them."""
    assert config(tmp_path, [f"optimizer.skill_update_mode={written}"]).optimizer.skill_update_mode == mode


def test_an_unknown_mode_is_refused_with_those_there_are() -> None:
    """It never becomes another mode without a word."""
    with pytest.raises(ConfigError, match="one of patch, rewrite_from_suggestions, full_rewrite_minibatch"):
        load_config(None, ["optimizer.skill_update_mode=rewritten"])
