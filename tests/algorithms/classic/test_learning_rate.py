"""The textual learning rate: by schedule, by the optimizer's own decision, or without a cap."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.logs import events_of
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.audit.check import check
from skillopt_es.config import load_config
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import EditsRanked, Event, LearningRateChosen, StepSkipped
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import CallFailed, ChatRequest
from skillopt_es.replies.answers import read_learning_rate
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.sessions.session import start


def train(folder: Path, *overrides: str, world: ScriptedWorld | None = None) -> list[Event]:
    """The events of a scripted run whose decisions have been derived again."""
    asyncio.run(start(config(folder, overrides), folder / "run", (world or ScriptedWorld()).session()))
    with EventLog.open(folder / "run") as log:
        assert asyncio.run(check(log, Journal(log.reader), folder / "run")).mismatch is None
    return events_of(folder / "run")


def test_the_optimizer_decides_how_many_edits_to_apply(tmp_path: Path) -> None:
    """Each step's budget is the recorded decision, at most what there is."""
    events = train(tmp_path, "optimizer.lr_control_mode=autonomous")
    chosen = {event.step: event for event in events if isinstance(event, LearningRateChosen)}
    ranked = [event for event in events if isinstance(event, EditsRanked)]
    assert chosen
    for event in ranked:
        decision = chosen[event.step]
        assert decision.asked is not None
        assert decision.budget == min(decision.asked, decision.available)
        assert (event.budget, len(event.chosen)) == (decision.budget, decision.budget)


def test_a_decision_that_cannot_be_had_applies_nothing_and_says_so(tmp_path: Path) -> None:
    """Upstream's fallback is 0; ours says why in the event, and no edit slips through."""

    def silent(request: ChatRequest) -> str:
        if request.stage == "learning_rate":
            raise CallFailed("server", "500")
        return optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", silent))
    events = train(tmp_path, "optimizer.lr_control_mode=autonomous", world=world)
    chosen = [event for event in events if isinstance(event, LearningRateChosen)]
    assert {(event.result, event.budget, event.note) for event in chosen} == {("failed", 0, "server: 500")}
    assert all(isinstance(e, StepSkipped) is False or e.reason in ("no_edit_chosen", "nothing_to_fix") for e in events)
    assert not any(event.chosen for event in events if isinstance(event, EditsRanked))


def test_without_a_cap_every_edit_of_the_pool_is_applied(tmp_path: Path) -> None:
    """`none` really is no cap, and asks nobody."""
    events = train(tmp_path, "optimizer.lr_control_mode=none")
    ranked = [event for event in events if isinstance(event, EditsRanked)]
    assert ranked
    assert all(event.chosen == event.pool and not event.calls for event in ranked)


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("4", 4),
        ("0", 0),
        ("-2", 0),
        ("3.7", 3),
        ('"5 edits"', 5),
        ("[4]", 4),
        ("true", None),
        ('"none"', None),
        ("null", None),
    ],
)
def test_a_number_is_found_in_what_was_said(said: str, number: int | None) -> None:
    """The original's coercion, but true and false are no numbers."""
    reply = read_learning_rate(f'{{"learning_rate": {said}}}')
    assert (None if isinstance(reply, Unusable) else reply.learning_rate) == number


@pytest.mark.parametrize(
    ("written", "mode"),
    [("auto", "autonomous"), (" Optimizer ", "autonomous"), ("off", "none"), ("no_lr", "none"), ("manual", "fixed"),
     ("null", "fixed"), ("scheduled", "fixed")],
)  # fmt: skip
def test_the_originals_names_for_the_mode_are_understood(written: str, mode: str, tmp_path: Path) -> None:
    """In any case, with spaces, and when YAML makes something else of them."""
    assert config(tmp_path, [f"optimizer.lr_control_mode={written}"]).optimizer.lr_control_mode == mode


def test_another_mode_is_refused() -> None:
    """The error names the key and what is allowed."""
    with pytest.raises(ConfigError, match=r"optimizer.lr_control_mode is 'warm', .* one of fixed, autonomous, none"):
        load_config(None, ["optimizer.lr_control_mode=warm"])
