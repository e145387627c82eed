"""`train.reuse: identical`: at temperature 0 the same request is made once in a run."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from support.logs import decisions_of
from support.params import parametrized
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply, target_reply

from skillopt_es.audit.check import check
from skillopt_es.errors import ConfigError, Interrupted
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.gate.calibration import attempts
from skillopt_es.runs.overview import overview, spent
from skillopt_es.sessions.session import resume, start

LONG = ["train.num_epochs=4", "model.temperature=0"]
REUSE = [*LONG, "train.reuse=identical"]
AHEAD = ["train.batch_size=2", "optimizer.learning_rate=1", "train.seed=1"]


def world_of(seed: int) -> ScriptedWorld:
    """The scripted world, whose calls end in a shuffled order."""
    shuffle = random.Random(seed)
    return ScriptedWorld(
        target=ScriptedModel("scripted target", target_reply, shuffle=shuffle),
        optimizer=ScriptedModel("scripted optimizer", optimizer_reply, shuffle=shuffle),
    )


def trained(folder: Path, overrides: list[str], *, workers: int = 8, seed: int = 1) -> tuple[Path, int]:
    """The folder of a run, and how many calls its models had to answer."""
    world = world_of(seed)
    run = folder / "same-name"
    limits = [f"env.workers={workers}", f"gradient.analyst_workers={workers}"]
    asyncio.run(start(config(folder, [*overrides, *limits]), run, world.session()))
    return run, world.calls


def journal(run: Path) -> list[CallRow]:
    """All calls of a run."""
    with EventLog.open(run) as log:
        return list(Journal(log.reader).read())


def test_a_request_that_was_answered_before_is_not_made_again(tmp_path: Path) -> None:
    """Fewer calls, the same skills and scores, every saved call in the journal with what it repeats."""
    plain, all_calls = trained(tmp_path / "plain", LONG)
    run, made = trained(tmp_path / "reuse", REUSE)
    rows = journal(run)
    repeats = [row for row in rows if row.call.repeats]
    assert made == len(rows) - len(repeats) < all_calls == len(rows)
    first = {row.call.slot: row.call for row in rows if not row.call.repeats}
    assert all(any(row.call.request_digest == call.request_digest for call in first.values()) for row in repeats)
    skills = [[e.skill for e in decisions_of(each) if hasattr(e, "skill")] for each in (plain, run)]
    assert skills[0] == skills[1]
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None


def test_the_log_is_the_same_at_any_concurrency(tmp_path: Path) -> None:
    """Which of two calls ends first does not decide which one is the repeat."""
    first, _ = trained(tmp_path / "1", REUSE, workers=1)
    for workers, seed in ((8, 2), (64, 3)):
        other, _ = trained(tmp_path / str(workers), REUSE, workers=workers, seed=seed)
        assert decisions_of(other)[1:] == decisions_of(first)[1:]
        saved = [
            {row.call.slot: row.call.repeats for row in journal(run) if row.call.repeats} for run in (first, other)
        ]
        assert saved[0] == saved[1]


def test_an_interrupted_run_repeats_the_same(tmp_path: Path) -> None:
    """What was recorded before counts after resuming, too."""
    whole, _ = trained(tmp_path / "whole", REUSE)
    world = world_of(2)
    run = tmp_path / "cut" / "same-name"
    settings = config(tmp_path / "cut", [*REUSE, "env.workers=8"])
    with pytest.raises(Interrupted):
        asyncio.run(start(settings, run, world.session(stopping=lambda: world.calls >= 90)))
    asyncio.run(resume(run, world.session()))
    assert decisions_of(run)[1:] == decisions_of(whole)[1:]
    assert sum(bool(row.call.repeats) for row in journal(run)) == sum(bool(row.call.repeats) for row in journal(whole))


def test_a_repeat_costs_nothing_and_is_counted(tmp_path: Path) -> None:
    """No call, no tokens, no try on the wire, and a number of its own; in a listing of runs, too."""
    run, made = trained(tmp_path, REUSE)
    used, rows = spent(run), journal(run)
    assert used.ahead.repeats == sum(bool(row.call.repeats) for row in rows) > 0
    assert used.usage.total.calls == used.usage.total.tries == overview(run).calls == made
    tokens = Counter[str]()
    for row in rows:
        tokens["repeats" if row.call.repeats else "made"] += row.call.input_tokens or 0
    assert tokens["repeats"] == 0
    assert used.usage.total.input.known == tokens["made"]


@pytest.mark.parametrize("temperature", ["null", "0.7"])
def test_where_an_answer_is_a_draw_every_call_is_made(temperature: str, tmp_path: Path) -> None:
    """Without temperature 0 the same request may have another answer."""
    run, _ = trained(tmp_path, [*REUSE, "model.target_temperature=0.7"])
    assert not any(row.call.repeats for row in journal(run) if row.call.role == "target")
    with pytest.raises(ConfigError, match="neither model is asked at temperature 0"):
        trained(tmp_path / "refused", [*REUSE, f"model.temperature={temperature}"])


@pytest.mark.parametrize(
    ("workers", "seed"),
    [(64, 3), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 1), (8, 2)))],
)
@parametrized("rule", ["strict", "paired"], by_default=1)
def test_what_was_tried_ahead_in_vain_is_never_repeated(rule: str, workers: int, seed: int, tmp_path: Path) -> None:
    """A run that tries ahead repeats exactly what one repeats that does not."""
    more = [*REUSE, *AHEAD, f"evaluation.gate_rule={rule}"]
    plain, _ = trained(tmp_path / "plain", more)
    ahead, _ = trained(tmp_path / "ahead", [*more, "train.speculate=true"], workers=workers, seed=seed)
    assert any(row.call.ahead for row in journal(ahead))
    assert decisions_of(ahead)[1:] == decisions_of(plain)[1:]
    saved = [{row.call.slot: row.call.repeats for row in journal(run) if row.call.repeats} for run in (plain, ahead)]
    assert saved[0] == saved[1]


@pytest.mark.parametrize(
    "calls", [pytest.param(60, marks=pytest.mark.slow), 90, pytest.param(120, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_that_tries_ahead_repeats_the_same(calls: int, tmp_path: Path) -> None:
    """Also where it stopped while it was ahead."""
    plain, _ = trained(tmp_path / "plain", [*REUSE, *AHEAD])
    world = world_of(2)
    run = tmp_path / "cut" / "same-name"
    settings = config(tmp_path / "cut", [*REUSE, *AHEAD, "train.speculate=true", "env.workers=64"])
    with pytest.raises(Interrupted):
        asyncio.run(start(settings, run, world.session(stopping=lambda: world.calls >= calls)))
    asyncio.run(resume(run, world.session()))
    assert decisions_of(run)[1:] == decisions_of(plain)[1:]


def test_a_copied_answer_is_no_repeat_for_calibration(tmp_path: Path) -> None:
    """It would look as if no item ever flipped."""
    run, _ = trained(tmp_path, REUSE)
    copied = frozenset(row.ref for row in journal(run) if row.call.repeats)
    rollouts = [event for event in decisions_of(run) if isinstance(event, RolloutCompleted)]
    resting = sum(any(call in copied for call in event.calls) for event in rollouts)
    counted = [sum(each.tried for each in attempts(rollouts, refs).values()) for refs in ((), copied)]
    assert counted[0] - counted[1] == resting > 0


def test_a_gate_that_draws_again_is_given_no_answer_of_an_earlier_draw(tmp_path: Path) -> None:
    """Also where the same text was tried on the same items before, in another part of the run."""
    rule = ["evaluation.gate_rule=paired", "evaluation.fresh_score=true", "train.num_epochs=2"]
    run, _ = trained(tmp_path, [*REUSE, *rule])
    again = [row.call for row in journal(run) if "/reported/" in row.call.slot or "/repeat-2/" in row.call.slot]
    places = {call.slot.split("/item/")[0] for call in again}
    assert "baseline/reported" in places
    assert any(place.endswith("/gate/repeat-2") for place in places)
    assert not any(call.repeats for call in again)
