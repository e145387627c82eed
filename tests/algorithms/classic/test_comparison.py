"""The comparison of an epoch's first and last skill: which pairs the optimizer sees, and when more are drawn."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.logs import events_of
from support.params import parametrized
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, target_reply

from skillopt_es.audit.check import check
from skillopt_es.engine.draws import comparison_candidates, shuffled
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    ComparisonDrawn,
    ComparisonExtended,
    Event,
    RolloutCompleted,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatRequest
from skillopt_es.sessions.session import start
from skillopt_es.skill.density import semantic_density
from skillopt_es.skill.regions import SLOW_END, SLOW_START


def train(folder: Path, *overrides: str) -> list[Event]:
    """The events of a scripted run of two epochs whose decisions have been derived again."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=12))
    settings = config(folder, ["train.num_epochs=2", "optimizer.slow_update_samples=6", *overrides])
    asyncio.run(start(settings, folder / "run", world.session()))
    with EventLog.open(folder / "run") as log:
        assert asyncio.run(check(log, Journal(log.reader), folder / "run")).mismatch is None
    return events_of(folder / "run")


def categories(events: list[Event]) -> list[set[str]]:
    """The categories of each epoch's pairs."""
    return [{pair.category for pair in event.pairs} for event in events if isinstance(event, SlowUpdateProposed)]


@parametrized(
    ("policy", "allowed"),
    [
        ("mixed", {"improved", "regressed", "persistent_fail", "stable_success"}),
        ("unchanged", {"persistent_fail", "stable_success"}),
        ("10_01", {"improved", "regressed"}),
    ],
    by_default=1,
)
def test_the_optimizer_sees_the_pairs_of_the_policy(policy: str, allowed: set[str], tmp_path: Path) -> None:
    """Also under the original's other names."""
    [seen] = categories(train(tmp_path, f"optimizer.longitudinal_pair_policy={policy}"))
    assert seen
    assert seen <= allowed


def test_too_few_turned_pairs_draw_more_items(tmp_path: Path) -> None:
    """In the drawn order, without repeats, until there are enough or none are left; each is rolled out twice."""
    events = train(tmp_path, "optimizer.longitudinal_pair_policy=changed")
    [drawn] = [event for event in events if isinstance(event, ComparisonDrawn)]
    more = [item for event in events if isinstance(event, ComparisonExtended) for item in event.items]
    ids = [f"t{index}" for index in range(12)]
    expected = [item for item in shuffled(ids, 42 + 2 * 2000) if item not in drawn.items]
    assert more
    assert more == expected[: len(more)]
    for place in ("e2/slow/previous", "e2/slow/current"):
        tried = [event.item for event in events if isinstance(event, RolloutCompleted) and event.place == place]
        assert tried == [*drawn.items, *more]
    [proposed] = [event for event in events if isinstance(event, SlowUpdateProposed)]
    assert len(proposed.pairs) == 6 or len(more) == len(expected)


def test_candidates_are_those_not_yet_compared() -> None:
    """In the order of the epoch's own seed."""
    ids = [str(index) for index in range(10)]
    order = shuffled(ids, 42 + 2 * 2000)
    assert comparison_candidates(ids, epoch=2, seed=42, compared=order[:4]) == tuple(order[4:])


def test_a_bonus_for_directive_words_is_part_of_every_gate_value(tmp_path: Path) -> None:
    """The recorded scores stay raw; only the compared values have the bonus of their text, once."""
    events = train(
        tmp_path, "evaluation.gate_metric=soft", "evaluation.use_semantic_density=true",
        "evaluation.semantic_density_weight=1", "evaluation.leading_words=know",
    )  # fmt: skip
    texts = {event.candidate.hash: event.candidate.text for event in events if isinstance(event, CandidateBuilt)}
    gates = [event for event in events if isinstance(event, CandidateGated)]
    bonuses = [semantic_density(texts[gate.candidate], ["know"]) for gate in gates]
    assert max(bonuses) > 0
    for gate, bonus in zip(gates, bonuses, strict=True):
        assert gate.verdict.candidate_value == pytest.approx(gate.verdict.candidate_score.soft + bonus)


def test_a_target_does_not_read_the_empty_place_for_guidance(tmp_path: Path) -> None:
    """It stands in the skill after the first epoch, and differs from no text that a gate has seen."""
    read: list[str] = []

    def follow(request: ChatRequest) -> str:
        read.extend(message.content for message in request.messages)
        return target_reply(request)

    world = ScriptedWorld(environment=ScriptedEnvironment(train=12), target=ScriptedModel("reader", follow))
    asyncio.run(start(config(tmp_path, ["train.num_epochs=2"]), tmp_path / "run", world.session()))
    skills = [event.skill.text for event in events_of(tmp_path / "run") if isinstance(event, SlowUpdateApplied)]
    assert SLOW_START in skills[0]
    assert read
    assert not any(f"{SLOW_START}\n{SLOW_END}" in text for text in read)
