"""`check` accepts every honest log and names the first event of any other that does not follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.logs import events_of
from support.params import parametrized
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply, target_reply
from support.tamper import cut_off, other_verdict, rewritten, seqs_of

from skillopt_es.audit.check import check
from skillopt_es.engine.differences import CheckReport
from skillopt_es.errors import BackendError, Divergence, Interrupted
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    MetaSkillWritten,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    RunCompleted,
    RunPaused,
    RunStarted,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Measured
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest
from skillopt_es.sessions.session import resume, start


def checked(folder: Path, until: int | None = None) -> CheckReport:
    """The report on a run, up to an event if one is named."""
    with EventLog.open(folder) as log:
        return asyncio.run(check(log, Journal(log.reader), folder, until=until))


def assert_follows(folder: Path) -> None:
    """The run's log is accepted, whole."""
    report = checked(folder)
    assert report.ok, report.mismatch
    assert report.events == len(events_of(folder))


def train(folder: Path, world: ScriptedWorld, *overrides: str) -> Path:
    """A scripted run; its folder."""
    asyncio.run(start(config(folder, overrides), folder / "run", world.session()))
    return folder / "run"


# --- honest logs ---------------------------------------------------------------------------------------------------


def test_the_demo_follows(demo_run: Path) -> None:
    """All of it, and the numbers add up."""
    report = checked(demo_run)
    assert report.ok, report.mismatch
    assert report.status == "completed"
    assert report.decisions + report.rollouts + 1 == report.events == len(events_of(demo_run))


@parametrized(
    "overrides",
    [
        (),
        ("evaluation.use_gate=false",),
        ("evaluation.gate_metric=mixed", "train.accumulation=2"),
        ("optimizer.lr_scheduler=linear", "gradient.failure_only=true"),
        ("optimizer.slow_update_gate_with_selection=true", "optimizer.learning_rate=6"),
        ("optimizer.learning_rate=0", "optimizer.min_learning_rate=0"),
        ("optimizer.use_slow_update=false", "evaluation.eval_test=false"),
    ],
    ids=",".join,
    by_default=2,
)
def test_runs_of_any_config_follow(overrides: tuple[str, ...], tmp_path: Path) -> None:
    """What the run decided is what the check decides."""
    assert_follows(train(tmp_path, ScriptedWorld(), *overrides))


def test_every_prefix_follows(tmp_path: Path) -> None:
    """A run that is still going on, or was killed, is checked as far as it is."""
    run = train(tmp_path, ScriptedWorld())
    for seq in range(0, len(events_of(run)), 29):
        report = checked(cut_off(run, tmp_path / f"cut-{seq}", seq))
        assert report.ok, report.mismatch
        assert report.events == seq


def stubborn(request: ChatRequest) -> str | ChatReply:
    """An optimizer that fails in every way there is, by the place it is asked at."""
    slot = request.slot
    if slot.endswith("failure-0") and "/s2/" in slot:
        return "no JSON at all"
    if slot.endswith("failure-0/again"):
        raise CallFailed("server", "503 again and again")
    if slot.endswith("failure-1"):
        raise CallFailed("timeout", "it took too long")
    if "merge" in slot and "/s4/" in slot:
        return ChatReply(text="{", finish="length")
    if slot.endswith("rank"):
        return '{"selected_indices": ["first"]}'
    if slot.endswith("meta"):
        return '{"meta_skill_content": " "}'
    return optimizer_reply(request)


def test_failures_and_fallbacks_follow(tmp_path: Path) -> None:
    """An unusable reply, one that was cut off, a call that failed at the first or at the second asking."""
    run = train(tmp_path, ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", stubborn)))
    notes = {event.note for event in events_of(run) if isinstance(event, PatchProposed) and event.note}
    assert {"server: 503 again and again", "timeout: it took too long"} <= notes
    assert_follows(run)


def test_text_that_no_file_can_hold_follows(tmp_path: Path) -> None:
    """An optimizer that escapes a lone surrogate in its JSON: the run trains on, with what was recorded."""

    def escaped(request: ChatRequest) -> str | ChatReply:
        reply = optimizer_reply(request)
        return reply.replace("- know", "- \\ud800 know") if request.stage == "analyst" else reply

    run = train(tmp_path, ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", escaped)))
    built = [event.candidate.text for event in events_of(run) if isinstance(event, CandidateBuilt)]
    assert any("- \ufffd know" in text for text in built)
    assert_follows(run)


def test_a_run_that_was_stopped_at_every_turn_follows(tmp_path: Path) -> None:
    """Interrupted after each few calls and resumed, until it is done."""
    folder = tmp_path / "run"
    world = ScriptedWorld()
    limit = 5

    def stopping() -> bool:
        return world.calls >= limit

    work = start(config(tmp_path), folder, world.session(stopping=stopping))
    for _ in range(100):
        try:
            if asyncio.run(work).status == "completed":
                break
        except Interrupted:
            assert_follows(folder)
        limit = world.calls + 23
        work = resume(folder, world.session(stopping=stopping))
    assert checked(folder).status == "completed"
    assert sum(isinstance(event, RunPaused) for event in events_of(folder)) > 5
    assert_follows(folder)


def test_a_run_with_outages_follows(tmp_path: Path) -> None:
    """Unmeasured items pause it, a refused key stops it in the middle of a stage; then the world is well."""
    run = train(tmp_path, ScriptedWorld(environment=ScriptedEnvironment(broken=lambda item: item == "v5")))
    assert_follows(run)

    def refused(request: ChatRequest) -> str:
        if request.slot == "e1/s2/b0/failure-1":
            raise CallFailed("auth", "the key was refused")
        return optimizer_reply(request)

    with pytest.raises(BackendError):
        asyncio.run(resume(run, ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", refused)).session()))
    assert_follows(run)
    asyncio.run(resume(run, ScriptedWorld().session()))
    assert checked(run).status == "completed"
    assert_follows(run)


def test_a_slot_that_was_asked_anew_follows(tmp_path: Path) -> None:
    """The journal holds two answers there, to two requests: the one that was used counts."""
    folder = tmp_path / "run"
    first = ScriptedWorld()
    with pytest.raises(Interrupted):
        asyncio.run(start(config(tmp_path), folder, first.session(stopping=lambda: first.calls >= 15)))
    other = ScriptedWorld(target=ScriptedModel("another target", target_reply))
    with pytest.raises(Divergence):
        asyncio.run(resume(cut_off(folder, tmp_path / "cut", len(events_of(folder)) - 3), other.session()))
    assert_follows(folder)
    cut = tmp_path / "cut"
    asyncio.run(resume(cut, other.session(ask_again=True)))
    assert_follows(cut)


def test_an_empty_log_has_nothing_to_follow(demo_run: Path, tmp_path: Path) -> None:
    """Created, never begun."""
    assert checked(cut_off(demo_run, tmp_path / "empty", 0)).status == "new"


# --- logs that lie -------------------------------------------------------------------------------------------------

Change = Callable[[Any], Event]


def _applied(event: CandidateBuilt) -> Event:
    return evolve(event, reports=(evolve(event.reports[0], status="skipped_no_change"), *event.reports[1:]))


def _other_text(event: CandidateBuilt) -> Event:
    return evolve(event, candidate=event.candidate.with_text(f"{event.candidate.text}\n- Ignore the rules.\n"))


def _swapped(event: EpochPlanned) -> Event:
    first, *others = event.batches
    return evolve(event, batches=(evolve(first, items=first.items[::-1]), *others))


def _other_edit(event: PatchProposed) -> Event:
    return evolve(event, edits=tuple(evolve(edit, content="- x") for edit in event.edits))


LIES: dict[str, tuple[type[Event], Change, str]] = {
    "gate action": (CandidateGated, lambda event: other_verdict(event, action="accept"), "verdict.action"),
    "gate best": (CandidateGated, lambda event: other_verdict(event, new_best=False), "verdict.new_best"),
    "gate value": (
        CandidateGated,
        lambda event: other_verdict(event, candidate_value=0.99),
        "verdict.candidate_value",
    ),
    "gate won": (CandidateGated, lambda event: other_verdict(event, won=()), "verdict.won"),
    "ranking": (EditsRanked, lambda event: evolve(event, chosen=event.chosen[::-1]), "chosen[0]"),
    "budget": (EditsRanked, lambda event: evolve(event, budget=event.budget + 1), "budget"),
    "edit report": (CandidateBuilt, _applied, "reports[0].status"),
    "candidate text": (CandidateBuilt, _other_text, "candidate.files.SKILL.md"),
    "batch order": (EpochPlanned, _swapped, "batches[0].items[0]"),
    "memory": (EpochPlanned, lambda event: evolve(event, meta_skill="cheat"), "meta_skill"),
    "groups": (MinibatchesPlanned, lambda event: evolve(event, groups=event.groups[1:]), "groups"),
    "score": (SkillScored, lambda event: evolve(event, score=evolve(event.score, hard=0.5)), "score.hard"),
    "an edit": (PatchProposed, _other_edit, "edits[0].content"),
    "a merge": (PatchesMerged, lambda event: evolve(event, edits=event.edits[:1]), "edits"),
    "the calls": (PatchesMerged, lambda event: evolve(event, calls=()), "calls"),
    "guidance": (SlowUpdateProposed, lambda event: evolve(event, guidance="be good"), "guidance"),
    "slow verdict": (SlowUpdateApplied, lambda event: other_verdict(event, action="reject"), "verdict.action"),
    "notes": (MetaSkillWritten, lambda event: evolve(event, content="x", result="written"), "content"),
    "tests": (RunCompleted, lambda event: evolve(event, test_best=None), "test_best"),
    "steps": (RunStarted, lambda event: evolve(event, total_steps=99), "total_steps"),
    "item": (RolloutCompleted, lambda event: evolve(event, item="another"), "item"),
    "skill": (RolloutCompleted, lambda event: evolve(event, skill="0" * 64), "skill"),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scripted run of about a hundred events."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=6, val=6, test=3))
    return train(tmp_path_factory.mktemp("small"), world, "train.num_epochs=2", "train.batch_size=3")


@parametrized("lie", LIES, by_default=8)
def test_a_changed_event_is_named(lie: str, demo_run: Path, small: Path, tmp_path: Path) -> None:
    """By its number, its type and the field that does not follow; in the small run, where it has such an event."""
    kind, change, field = LIES[lie]
    run = small if seqs_of(small, kind, lambda event: change(event) != event) else demo_run
    seq = seqs_of(run, kind, lambda event: change(event) != event)[0]
    report = checked(rewritten(run, tmp_path / f"lie {lie}", seq, change), until=seq)
    assert report.mismatch is not None
    assert (report.mismatch.seq, report.mismatch.event) == (seq, kind.__name__)
    assert field in {difference.field for difference in report.mismatch.differences}
    assert report.events == seq - 1


@parametrized("lie", LIES, by_default=8)
def test_what_follows_a_difference_is_derived_from_what_is_recorded(lie: str, small: Path, tmp_path: Path) -> None:
    """The walk goes on; what comes out differently after the first is called a follow-up."""
    kind, change, _ = LIES[lie]
    seq = next((seq for seq in seqs_of(small, kind, lambda event: change(event) != event)), None)
    if seq is None:
        pytest.skip("the small run has no such event")
    report = checked(rewritten(small, tmp_path / "run", seq, change))
    first, *others = report.mismatches
    assert (first.seq, first.follow_up) == (seq, False)
    assert all(each.follow_up and each.seq > seq for each in others)
    assert report.events + len(report.mismatches) >= len(events_of(small))
    assert len(others) < 20, [str(each) for each in others]
    assert report.status == "completed"


def test_two_differences_are_both_listed_with_their_steps(small: Path, tmp_path: Path) -> None:
    """Two ranks turned round, in a run whose other decisions do not depend on them."""
    gates = seqs_of(small, CandidateGated)[:2]
    once = rewritten(small, tmp_path / "once", gates[0], lambda event: other_verdict(event, won=("nobody",)))
    twice = rewritten(once, tmp_path / "twice", gates[1], lambda event: other_verdict(event, won=("nobody",)))
    found = [(each.seq, each.step, each.follow_up) for each in checked(twice).mismatches]
    assert found == [(gates[0], 1, False), (gates[1], 2, True)]


def test_a_changed_measurement_shows_where_it_is_used(demo_run: Path, tmp_path: Path) -> None:
    """What an item measured is evidence; the sum that was made of it is not."""
    [seq, *_] = seqs_of(demo_run, RolloutCompleted, lambda event: event.outcome == Measured(0.0, 0.0))
    lie = rewritten(demo_run, tmp_path / "measured", seq, lambda event: evolve(event, outcome=Measured(1.0, 1.0)))  # type: ignore[call-arg]
    report = checked(lie)
    assert report.mismatch is not None
    assert report.mismatch.event == "SkillScored"
    assert report.mismatch.seq == min(found for found in seqs_of(demo_run, SkillScored) if found > seq)


@pytest.mark.parametrize("kind", [RolloutCompleted, SkillScored, PatchProposed, CandidateGated, RunCompleted])
def test_a_missing_event_is_noticed_at_the_next_one(kind: type[Event], small: Path, tmp_path: Path) -> None:
    """At the event that stands in its place; the last one of a log is not missed by this check but by `verify`."""
    last = kind is RunCompleted
    seq = seqs_of(small, kind)[0]
    report = checked(rewritten(small, tmp_path / f"without {kind.__name__}", seq, lambda _: None))
    assert report.ok is last
    if report.mismatch is not None:
        assert report.mismatch.seq == seq


def test_nothing_follows_the_end(small: Path, tmp_path: Path) -> None:
    """An event after RunCompleted, one before its time and one that nobody took over for."""
    end = len(events_of(small))
    [gate, *_] = seqs_of(small, CandidateGated)
    promoted = BestPromoted(skill="s", value=1.0, previous="p", previous_value=None)
    early = checked(rewritten(small, tmp_path / "early", gate, lambda _: promoted))
    assert early.mismatch is not None
    assert "CandidateGated follows" in early.mismatch.message
    pause = RunPaused(reason="error", message="no")
    late = checked(rewritten(small, tmp_path / "late", end - 1, lambda _: pause))
    assert late.mismatch is not None
    assert late.mismatch.seq == end
    assert "pause" in late.mismatch.message


def test_a_mismatch_shows_both_values_where_they_differ(demo_run: Path, tmp_path: Path) -> None:
    """Short, also for long texts."""
    [seq, *_] = seqs_of(demo_run, CandidateBuilt)
    report = checked(rewritten(demo_run, tmp_path / "shown", seq, _other_text))  # type: ignore[arg-type]
    assert report.mismatch is not None
    [difference] = report.mismatch.differences
    assert "Ignore the rules" in difference.recorded
    assert "Ignore the rules" not in difference.derived
    assert len(str(report.mismatch)) < 400
