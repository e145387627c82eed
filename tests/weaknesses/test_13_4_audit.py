"""Audit, configuration and surroundings: who changed the skill, what it cost, and that runs do not touch each other."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.logs import events_of, rows_of
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.engine.algorithms import evolve
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    Event,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    RunStarted,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepSkipped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatRequest
from skillopt_es.projections.usage import usage_of
from skillopt_es.prompts import system_prompt
from skillopt_es.sessions.session import start


def train(folder: Path, *overrides: str, world: ScriptedWorld | None = None) -> list[Event]:
    """The events of a scripted run."""
    asyncio.run(start(config(folder, overrides), folder / "run", (world or ScriptedWorld()).session()))
    return events_of(folder / "run")


def test_every_change_of_a_skill_has_its_event_and_its_text(tmp_path: Path) -> None:
    """Nothing else changes what is current or best, a step and a slow update are told apart, and no text is lost."""
    events = train(tmp_path)
    state = None
    texts: dict[str, str] = {}
    origins: set[str] = set()
    for event in events:
        before, state = state, evolve(state, event)
        match event:
            case RunStarted(skill=skill) | CandidateBuilt(candidate=skill) | SlowUpdateApplied(skill=skill):
                texts[skill.hash] = skill.text
        for old, new in () if before is None else ((before.current, state.current), (before.best, state.best)):
            if old.skill != new.skill:
                assert isinstance(event, CandidateGated | SlowUpdateApplied | BestPromoted)
                assert texts[new.skill.hash] == new.skill.text
                origins.add(str(new.origin).rstrip("0123456789"))
    assert origins == {"step_", "slow_update_placeholder_epoch_", "slow_update_epoch_"}


def test_a_skipped_step_and_the_end_of_an_epoch_have_their_usage(tmp_path: Path) -> None:
    """What was spent without a candidate is counted at its own place, and the parts add up."""

    def idle(request: ChatRequest) -> str:
        return '{"patch": {"edits": []}}' if request.stage == "analyst" else optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", idle))
    events = train(tmp_path, "train.num_epochs=2", world=world)
    skipped = {event.step for event in events if isinstance(event, StepSkipped)}
    with EventLog.open(tmp_path / "run") as log:
        usage = usage_of(Journal(log.reader).read())
    assert skipped == {1, 2, 3, 4, 5, 6}
    assert all(usage.by_step[step].calls == 6 and usage.by_step[step].input.known for step in skipped)
    places = {place: part.calls for place, part in usage.by_place.items()}
    assert (places["baseline"], places["e2/slow/advice"], places["e2/meta"]) == (12, 1, 1)
    assert sum(places.values()) == usage.total.calls == world.calls


def test_an_empty_skill_init_starts_from_nothing_and_says_so(tmp_path: Path) -> None:
    """It is a choice, not a path."""
    [started, *_] = train(tmp_path, "env.skill_init=", "train.num_epochs=1")
    assert isinstance(started, RunStarted)
    assert started.skill.text == ""
    assert "env.skill_init is empty: started from an empty skill" in started.notes


def test_runs_in_one_process_do_not_touch_each_other(tmp_path: Path) -> None:
    """Two runs of different configs side by side have the logs that they have alone."""
    settings = {
        "a": ["train.num_epochs=2", "optimizer.lr_control_mode=autonomous"],
        "b": ["train.num_epochs=2", "evaluation.use_gate=false", "train.seed=7"],
    }

    def run(folder: str, name: str) -> Path:
        return tmp_path / folder / name

    async def together() -> None:
        await asyncio.gather(
            *(
                start(
                    config(tmp_path / "together" / f"of-{name}", own), run("together", name), ScriptedWorld().session()
                )
                for name, own in settings.items()
            )
        )

    asyncio.run(together())
    for name, own in settings.items():
        asyncio.run(
            start(config(tmp_path / "alone" / f"of-{name}", own), run("alone", name), ScriptedWorld().session())
        )
        assert rows_of(run("together", name)) == rows_of(run("alone", name))


def test_an_item_is_tried_alike_whatever_for(demo_run: Path) -> None:
    """In training, comparison and gate the same task under the same skill is the same conversation."""
    seen: dict[tuple[str, str], dict[str, str]] = {}
    for event in events_of(demo_run):
        if isinstance(event, RolloutCompleted):
            seen.setdefault((event.item, event.skill), {})[event.purpose] = event.trajectory
    both = [tried for tried in seen.values() if len(tried) > 1]
    assert {purpose for tried in both for purpose in tried} >= {"train", "slow_current"}
    assert all(len(set(tried.values())) == 1 for tried in both)


def test_every_proposal_leads_to_its_question_and_its_raw_answer(tmp_path: Path) -> None:
    """Which model was asked, with which prompt and how much effort, and what it said, word for word."""
    said: dict[str, str] = {}

    def noting(request: ChatRequest) -> str:
        said[request.slot] = optimizer_reply(request)
        return said[request.slot]

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", noting))
    events = train(tmp_path, "model.optimizer_reasoning_effort=high", "train.batch_size=6", world=world)
    prompts = {
        PatchProposed: {system_prompt("analyst_failure"), system_prompt("analyst_success")},
        PatchesMerged: {system_prompt(f"merge_{group}") for group in ("failure", "success", "final")},
        EditsRanked: {system_prompt("ranking")},
        SlowUpdateProposed: {system_prompt("slow_update")},
    }
    found = set()
    with EventLog.open(tmp_path / "run") as log:
        journal = Journal(log.reader)
        evidence = RecordedTexts(log, journal)
        for event in events:
            if not isinstance(event, PatchProposed | PatchesMerged | EditsRanked | SlowUpdateProposed):
                continue
            for ref in event.calls:
                [row] = journal.attempts(ref.slot)
                exchange = evidence.exchange(ref)
                assert (row.call.model, '"effort":"high"' in row.call.request.text) == ("scripted optimizer", True)
                assert exchange.sent[0] in prompts[type(event)]
                assert exchange.answer == said[ref.slot]
                found.add(type(event))
    assert found == set(prompts)


def test_a_step_is_counted_however_it_ends(tmp_path: Path) -> None:
    """Verdicts and skips together are all steps, also where edits could not be applied."""

    def mixed(request: ChatRequest) -> str:
        reply = optimizer_reply(request)
        return reply.replace('"append"', '"delete"') if request.slot.startswith(("e1/s2", "e2/s5")) else reply

    environment = ScriptedEnvironment(train=24)
    world = ScriptedWorld(environment=environment, optimizer=ScriptedModel("scripted optimizer", mixed))
    events = train(tmp_path, "train.num_epochs=2", world=world)
    ended = [event.step for event in events if isinstance(event, CandidateGated | StepSkipped)]
    assert ended == list(range(1, 13))
    assert {event.step: event.reason for event in events if isinstance(event, StepSkipped)}[2] == "no_usable_patch"
