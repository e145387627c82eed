"""Whole runs with a certificate: what meets the certified skill, what is bet on, and that a log cannot lie about it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from support.command import command
from support.params import parametrized
from support.tamper import rewritten, seqs_of

import skillopt_es as so
from skillopt_es.audit.check import check
from skillopt_es.engine.algorithms import fold
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.engine.work import Evaluation
from skillopt_es.events.catalog import CertificateWagered, EpochPlanned, Event, MinibatchesPlanned, RolloutCompleted
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.events.values import Bets
from skillopt_es.gate.certifying import beside
from skillopt_es.projections.held_out import HeldOut

KINDS = [f"kind{number:02d}" for number in range(8)]
RULE = re.compile(r"RULE (\w+) (\w+)")


def agent(request: so.ChatRequest) -> str:
    """Follows the rule of a task's kind, if there is one."""
    kind, word = request.messages[-1].content.split()[-2:]
    return f"{word}-{dict(RULE.findall(request.messages[0].content)).get(kind, 'none')}"


def teacher(request: so.ChatRequest) -> str:
    """Finds the rule of each kind that failed."""
    kinds = sorted(set(re.findall(r"Task (kind\d+)", request.messages[-1].content)))
    edits = [{"op": "append", "target": "", "content": f"RULE {kind} {kind[::-1]}"} for kind in kinds]
    return json.dumps({"reasoning": "seen", "edits": edits, "patch": {"edits": edits}})


def grader(answer: str, item: dict[str, str]) -> bool:
    """By the word."""
    return answer == item["expected"]


def trained(
    folder: Path,
    *,
    algorithm: str = "search",
    types: bool = False,
    target: Callable[[so.ChatRequest], str] = agent,
    teach: Callable[[so.ChatRequest], str] = teacher,
    **settings: object,
) -> so.Run:
    """A run in a small world of hidden rules."""
    rows = []
    for split, many in (("train", 80), ("val", 16), ("test", 2)):
        for number in range(many):
            kind = KINDS[number * 5 % 8]
            row = {"id": f"{split}{number}", "split": split, "input": f"Task {kind} w{number}"}
            rows.append({**row, "expected": f"w{number}-{kind[::-1]}", **({"type": kind} if types else {})})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "SKILL.md").write_text("# Skill\n")
    env = {"name": "tasks", "data_path": str(folder / "tasks.jsonl"), "split_mode": "field"}
    config = {
        "env": {**env, "skill_init": str(folder / "SKILL.md")},
        "train": {"algorithm": algorithm, "num_epochs": 2, "batch_size": 10},
        "evaluation": {"eval_test": False, "certificate": True},
    }
    return so.train(
        config,
        name="run",
        runs=folder,
        settings=settings,
        target=so.ChatFunction(target),
        optimizer=teach,
        grader=grader,
    )


def wagers(run: so.Run) -> list[CertificateWagered]:
    """The bets that were settled."""
    return [recorded.event for recorded in run.events(["CertificateWagered"])]  # type: ignore[misc]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> so.Run:
    """A search of a few steps."""
    return trained(tmp_path_factory.mktemp("certified"), **{"optimizer.learning_rate": 2})


def problems(folder: Path) -> list[str]:
    """What `replay --check` finds."""
    with EventLog.open(folder) as log:
        report = asyncio.run(check(log, Journal(log.reader), folder))
    return [str(each) for each in report.mismatches]


@parametrized("algorithm", ["search", "classic"], by_default=1)
def test_a_better_text_is_certified(algorithm: str, tmp_path: Path) -> None:
    """By items that the run had not met before; and all of it follows from the log."""
    found = trained(tmp_path, algorithm=algorithm)
    state = fold(recorded.event for recorded in found.events())
    assert state.certified is not None
    moved = [wager for wager in wagers(found) if wager.moved]
    assert moved
    assert state.certified.skill.hash == moved[-1].challenger
    assert all(wager.least is not None and 0 <= wager.least < wager.gain for wager in moved)
    bet_on = [item for wager in wagers(found) for item in wager.by_item.gains]
    assert len(bet_on) == len(set(bet_on))
    assert not problems(found.folder)


def test_the_certificate_decides_nothing_else(run: so.Run, tmp_path: Path) -> None:
    """Without it the same texts are taken; it takes no more calls than it says."""
    other = trained(tmp_path, **{"optimizer.learning_rate": 2, "evaluation.certificate": False})
    assert other.skill("best").hash == run.skill("best").hash
    assert not wagers(other)
    extra = run.usage().usage.total.calls - other.usage().usage.total.calls
    events = [recorded.event for recorded in run.events(["RolloutCompleted"])]
    assert extra == sum(Place(each.place).stage == "certified" or each.place.startswith("final/") for each in events)


def test_only_what_was_measured_under_both_is_bet_on(run: so.Run) -> None:
    """Each item beside itself, in a batch that was the first to meet it."""
    rows = [recorded.event for recorded in run.events(["RolloutCompleted"])]
    bets = [(wager, item) for wager in wagers(run) for item in wager.by_item.gains]
    assert bets
    for wager, item in bets:
        places = [row.place for row in rows if isinstance(row, RolloutCompleted) and row.item == item]
        assert Place(places[0]).is_batch_at(wager.place)


def test_types_have_to_win_as_well(tmp_path: Path) -> None:
    """Where tasks have types, each type's mean is one bet, and both bets have to be enough."""
    found = wagers(trained(tmp_path, types=True))
    assert all(wager.by_type is not None and set(wager.by_type.gains) <= set(KINDS) for wager in found)
    for wager in found:
        assert wager.by_type is not None
        assert wager.moved == (min(wager.by_item.wealth, wager.by_type.wealth) >= 20)


def useless(request: so.ChatRequest) -> str:
    """A line that says nothing, another one each time."""
    edits = [{"op": "append", "target": "", "content": f"Note {request.slot.replace('/', ' ')}."}]
    return json.dumps({"reasoning": "seen", "edits": edits, "patch": {"edits": edits}})


def test_what_was_met_in_an_earlier_epoch_is_not_bet_on(tmp_path: Path) -> None:
    """Two epochs over the same items: only the first has bets, and none certifies a text that is no better."""
    settings = {"evaluation.gate_rule": "not_worse", "train.batch_size": 20}
    found = trained(tmp_path, algorithm="classic", teach=useless, **settings)
    assert [wager.place for wager in wagers(found)] == ["e1/s2", "e1/s3", "e1/s4"]
    assert not any(wager.moved or any(wager.by_item.gains.values()) for wager in wagers(found))
    tried = {row.event.place for row in found.events(["RolloutCompleted"])}  # type: ignore[attr-defined]
    assert not any(Place(place).epoch == 2 and Place(place).stage == "certified" for place in tried)


def test_of_a_mixed_batch_the_fresh_items_meet_the_certified_skill(run: so.Run) -> None:
    """What an earlier step has met stays out; what comes in two batches of a step is bet on once."""
    planned = seqs_of(run.folder, EpochPlanned)[1]
    state = fold(recorded.event for recorded in run.events() if recorded.seq <= planned)
    assert state.started is not None
    assert state.current is not None
    assert state.certified is not None
    old, new = list(state.exposure.met), [item for item in state.started.splits.train if item not in state.exposure.met]
    first = Evaluation(
        place=Place("e2/s2/b0"),
        purpose="train",
        split="train",
        items=(old[0], *new[:3]),
        skill=state.current.skill,
        seed=1,
    )
    second = evolve(first, place=Place("e2/s2/b1"), items=(new[2], new[3], old[1]))
    found = beside(state, config_of_run(state.started, run.folder), Place("e2/s2"), [first, second])
    assert [(each.place, each.items) for each in found] == [
        ("e2/s2/certified/b0", tuple(new[:3])),
        ("e2/s2/certified/b1", (new[3],)),
    ]
    assert {each.skill.hash for each in found} == {state.certified.skill.hash}


def test_nothing_is_called_where_too_few_items_are_left(tmp_path: Path) -> None:
    """Seven items prove nothing, whatever they come to."""
    found = trained(tmp_path, **{"env.limit": 15})
    assert fold(recorded.event for recorded in found.events()).counts.accepted
    assert not wagers(found)


def test_what_was_not_measured_under_both_is_no_lost_bet(tmp_path: Path) -> None:
    """A call that failed under one text leaves its item out; the others count."""

    def moody(request: so.ChatRequest) -> str:
        task = request.messages[-1].content
        if "/certified/" in request.slot and int(task.rpartition("w")[2]) % 4 == 0:
            raise KeyError("gone")
        return agent(request)

    found = trained(tmp_path, target=moody)
    bet_on = {item for wager in wagers(found) for item in wager.by_item.gains}
    rows = [recorded.event for recorded in found.events(["RolloutCompleted"])]
    failed = {row.item for row in rows if isinstance(row, RolloutCompleted) and isinstance(row.outcome, so.Failed)}
    assert failed
    assert bet_on
    assert not failed & bet_on
    assert not problems(found.folder)


def freshly_claimed(event: Event, item: str) -> Event:
    """The same wager, with a bet on this item, too."""
    assert isinstance(event, CertificateWagered)
    return evolve(event, by_item=evolve(event.by_item, gains={**event.by_item.gains, item: 1.0}))


def test_a_log_that_claims_a_shown_item_as_fresh_is_found_out(run: so.Run, tmp_path: Path) -> None:
    """By its id, and where it was shown; the planner is not asked."""
    seq = seqs_of(run.folder, CertificateWagered)[-1]
    first = next(recorded.event for recorded in run.events(["MinibatchesPlanned"]))
    assert isinstance(first, MinibatchesPlanned)
    item = first.groups[0].items[0]
    lie = rewritten(run.folder, tmp_path / "lie", seq, lambda event: freshly_claimed(event, item))
    assert any(f"claims {item} as fresh, which the optimizer was shown before" in each for each in problems(lie))


def test_what_is_not_fresh_is_named() -> None:
    """What was tried before, and what was never tried under both texts."""
    row = {"purpose": "train", "outcome": so.Measured(1.0, 1.0), "task_type": "", "turns": 1}
    held = HeldOut()
    for place, skill in (("e1/s1/b0", "a"), ("e2/s2/b0", "b"), ("e2/s2/certified/b0", "a")):
        assert not held.problem(RolloutCompleted(place=place, item="x", skill=skill, **row))  # type: ignore[arg-type]
    wager = CertificateWagered(
        place="e2/s2", certified="a", challenger="b", pairs=1, gain=1.0,
        by_item=Bets(stake=1.0, gains={"x": 1.0}, wealth=1.0),
    )  # fmt: skip
    assert held.problem(wager) == "claims x as fresh, which was tried at e1/s1/b0 before"
    other = evolve(wager, by_item=evolve(wager.by_item, gains={"y": 1.0}))
    assert held.problem(other) == "bets on y, which was not tried under both texts at e2/s2"


@pytest.mark.slow
def test_everything_that_shows_a_run_says_what_is_certified(run: so.Run, tmp_path: Path) -> None:
    """`status`, the report and an export's provenance; and which score chose the best skill."""
    arguments = [run.folder.name, "--dir", str(run.folder.parent)]
    status = command("status", *arguments, cwd=tmp_path).out
    assert "certified   the best skill: +" in status
    assert "(chosen by this score, which flatters it)" in status
    found = json.loads(command("status", *arguments, "--json", cwd=tmp_path).out)["certificate"]
    assert found["is_best"]
    command("report", *arguments, "--out", str(tmp_path / "page.html"), cwd=tmp_path)
    assert "Certified: the best skill" in (tmp_path / "page.html").read_text()
    command("export", *arguments, f"{tmp_path}/my-skill/", cwd=tmp_path)
    facts = json.loads((tmp_path / "my-skill" / "PROVENANCE.json").read_text())["facts"]
    assert facts["certificate"]["is_this"]
    assert facts["certificate"]["least"] == found["moves"][-1]["least"]
    assert {each["decided"] for each in facts["scores"] if each["split"] == "val"} == {True}
    verified = command("verify", *arguments, "--export", str(tmp_path / "my-skill"), cwd=tmp_path)
    assert verified.code == 0


def test_a_step_and_an_item_are_explained_with_their_bets(run: so.Run, tmp_path: Path) -> None:
    """Which items were fresh, what each won, and against whom."""
    arguments = [run.folder.name, "--dir", str(run.folder.parent)]
    wager = wagers(run)[-1]
    won = next(item for item, gain in wager.by_item.gains.items() if gain > 0)
    step = command("explain", *arguments, "step", str(Place(wager.place).step), cwd=tmp_path).out
    assert "certificate, event" in step
    assert won in next(line for line in step.splitlines() if line.startswith("  won: "))
    item = command("explain", *arguments, "--item", won, cwd=tmp_path).out
    assert f"fresh at {wager.place}, event" in item
    assert f"+1.0000 for {wager.challenger[:8]} against certified {wager.certified[:8]}" in item
    found = json.loads(command("explain", *arguments, "--item", won, "--json", cwd=tmp_path).out)
    assert [bet["gain"] for bet in found["bets"]] == [1.0]


def test_the_certified_skill_can_be_shipped_and_scored(run: so.Run, tmp_path: Path) -> None:
    """By its name, wherever a skill of a run is named."""
    arguments = [run.folder.name, "--dir", str(run.folder.parent)]
    done = command("export", *arguments, "--which", "certified", f"{tmp_path}/proved/", cwd=tmp_path)
    assert done.code == 0, done.err
    facts = json.loads((tmp_path / "proved" / "PROVENANCE.json").read_text())["facts"]
    assert facts["skill"]["hash"] == run.skill("certified").hash == wagers(run)[-1].challenger
    assert facts["lines"]
    assert command("verify", *arguments, "--export", str(tmp_path / "proved"), cwd=tmp_path).code == 0


@pytest.mark.parametrize("algorithm", ["search", "classic"])
def test_what_the_optimizer_was_sent_is_what_counts_as_shown(algorithm: str, tmp_path: Path) -> None:
    """Each task that stands in a request, and no other: questions, comparisons, memories, refused edits."""
    found = trained(tmp_path, algorithm=algorithm)
    with EventLog.open(found.folder) as log:
        rows = [row.call.request for row in Journal(log.reader).read() if row.call.role == "optimizer"]
        texts = [log.text(digest) for row in rows for _, digest in row.messages]
    sent = {item for text in texts for item in re.findall(r"\b(?:train|val|test)\d+\b", text)}
    shown = fold(recorded.event for recorded in found.events()).exposure.shown
    assert sent == set(shown) != set()
