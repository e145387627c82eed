"""Which validation items a verdict takes: a few at first, all once steps earn nothing, and what is told of that."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from algorithms.search.test_search import KINDS, agent, of_type, searched, teacher
from attrs import evolve as replace
from support.command import Done, command
from support.params import parametrized

import skillopt_es as so
from skillopt_es.algorithms.search.sample import judged_items, widening
from skillopt_es.engine.algorithms import fold
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.events.catalog import SkillScored
from skillopt_es.events.places import Place
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.summary import summarize

_BETWEEN = re.compile(r"\s{2,}")
FEW = {"search.first_gates": 5}


def selections(run: so.Run) -> list[SkillScored]:
    """The evaluations on validation items, in their order."""
    return [event for event in of_type(run, SkillScored) if event.purpose == "selection"]


def items_of(event: SkillScored) -> int:
    """How many items an evaluation is over."""
    return event.score.measured or 0


def test_verdicts_take_few_items_until_a_step_has_earned_nothing(tmp_path: Path) -> None:
    """Then the current text meets the others, those that it knows are not tried again, and verdicts take all."""
    run = searched(tmp_path, **FEW)
    found = selections(run)
    wider = [event for event in found if "wider" in Place(event.place).name]
    [event] = wider
    at = found.index(event)
    assert {items_of(each) for each in found[:at]} == {5}
    assert {items_of(each) for each in found[at:]} == {12}
    assert len(event.carried) == 5
    assert event.goes_on
    tried = [each.event.item for each in run.events(["RolloutCompleted"]) if each.event.place == event.place]
    assert sorted([*tried, *event.carried]) == sorted(f"val{number}" for number in range(12))
    state = fold(each.event for each in run.events())
    assert state.measured[event.skill].items.keys() == {f"val{number}" for number in range(12)}
    assert state.best is not None
    assert state.best.score is not None
    assert state.best.score.measured == 12
    step = Place(event.place).step
    page = command("explain", "search", "step", str(step), "--dir", ".", cwd=tmp_path).out.splitlines()
    [line] = [line for line in page if line.startswith("wider")]
    assert line == page[-1]
    met = f"skill {event.skill[:8]} met 7 more validation items; hard {event.score.hard:.4f} over 12 items now"
    assert line.endswith(met)


@pytest.mark.slow
def test_summary_and_state_tell_the_same_of_a_text_that_met_more_items(tmp_path: Path) -> None:
    """The score over all items takes the place of the one over few; it is not averaged with it."""

    def half(request: so.ChatRequest) -> str:
        """Fails half of the kinds whatever the skill says, so that scores over few and over all items differ."""
        kind = request.messages[-1].content.split()[-2]
        return "never" if KINDS.index(kind) % 3 == 0 else agent(request)

    run = searched(tmp_path, agent=half, **FEW, **{"train.patience": 4})
    state = fold(each.event for each in run.events())
    summary = summarize(each.event for each in run.events())
    assert state.best is not None
    assert state.current is not None
    assert summary.best.value == state.best.value == 8 / 12
    assert summary.current.value == state.current.value
    assert any(event.goes_on for event in selections(run))
    said = command("status", "search", "--dir", ".", cwd=tmp_path).out
    assert "initial 0.0000 over 5 of 12 items" in said
    assert "current 0.6667, best 0.6667 over all 12 items, before that 0.8000 over 5 (chosen" in said
    shown = command("report", "search", "--dir", ".", cwd=tmp_path)
    assert shown.code == 0
    page = (tmp_path / "search" / "report.html").read_text()
    assert "0.6667" in page
    assert command("replay", "search", "--dir", ".", "--check", cwd=tmp_path).code == 0
    assert command("verify", "search", "--dir", ".", cwd=tmp_path).code == 0


@parametrized(
    ("settings", "least"),
    [
        ({"search.first_gates": 0}, 12),
        ({"search.first_gates": 4, "evaluation.min_items": 9}, 9),
        ({"search.first_gates": 4, "evaluation.sel_env_num": 7}, 4),
    ],
    ids=["all from the beginning", "as many as a win needs", "of those that are used at all"],
    by_default=1,
)
def test_who_wants_more_items_gets_them(tmp_path: Path, settings: dict[str, object], least: int) -> None:
    run = searched(tmp_path, **settings)
    assert min(map(items_of, selections(run))) == least
    most = settings.get("evaluation.sel_env_num", 12)
    assert max(map(items_of, selections(run))) == most


def test_without_calls_for_it_the_score_stays_over_few_items(tmp_path: Path) -> None:
    """And `status` and the run's last words say over how many."""
    run = searched(tmp_path, **FEW, **{"budget.max_calls": 40})
    assert not any(event.goes_on for event in selections(run))
    assert " over 5 of 12 items" in command("status", "search", "--dir", ".", cwd=tmp_path).out
    assert run.usage().usage.total.calls <= 40


def test_whatever_tells_a_score_says_over_how_many_items_where_these_are_not_all(tmp_path: Path) -> None:
    """In the same words; and of a score over all items nothing is said."""
    few, whole = tmp_path / "few", tmp_path / "whole"
    for folder, settings in ((few, {"budget.max_calls": 40}), (whole, {})):
        folder.mkdir()
        searched(folder, **FEW, **settings)
        (folder / "search").rename(tmp_path / f"{folder.name}-run")

    def said(*words: str) -> str:
        return command(*words, "--dir", ".", cwd=tmp_path).out

    words, part = "5 of 12 items", {"measured": 5, "of": 12}
    rows = said("runs").splitlines()
    assert "over" in rows[0].split()
    assert [words in row for row in rows[1:]] == [row.startswith("few-run") for row in rows[1:]]
    found = {each["run"]: each for each in json.loads(said("runs", "--json"))}
    assert {name: found[name]["best"]["over_items"] for name in found} == {"few-run": part, "whole-run": None}
    assert found["few-run"]["current"]["over_items"] == part
    assert json.loads(said("status", "few-run", "--json"))["best"]["over_items"] == part
    compared = {row[0]: row[1:] for row in map(_BETWEEN.split, said("compare", "few-run", "whole-run").splitlines())}
    assert (compared["initial over"], compared["best over"]) == ([words, words], [f"{words}, chosen on these"])
    one, other = json.loads(said("compare", "few-run", "whole-run", "--json"))
    assert (one["scores"]["best"]["over_items"], other["scores"]["best"]["over_items"]) == (part, None)
    again = json.loads(said("resume", "few-run", "--json"))
    assert (again["baseline"]["over_items"], again["best"]["over_items"]) == (part, part)
    numbers = json.loads(said("report", "few-run", "--json"))
    assert "The validation scores of initial, best and final are over 5 of 12 items." in numbers["said"]
    assert {json.dumps(each["over_items"]) for each in numbers["scores"]} == {json.dumps(part)}
    said("report", "few-run")
    assert "are over 5 of 12 items." in (tmp_path / "few-run" / "report.html").read_text()
    assert "initial → best, 5 of 12 items<" in (tmp_path / "few-run" / "report.html").read_text()
    said("report", "whole-run")
    assert "initial, 5 of 12 items → best, 12 items<" in (tmp_path / "whole-run" / "report.html").read_text()
    numbers = json.loads(said("report", "whole-run", "--json"))
    assert "The validation score of initial is over 5 of 12 items." in numbers["said"]


def test_a_text_that_nobody_has_measured_is_not_widened_before_it_is(tmp_path: Path) -> None:
    """A line that was struck leaves such a text; until it is measured there is nothing to go on from."""
    run = searched(tmp_path, **FEW, **{"budget.max_calls": 44})
    state = fold(each.event for each in run.events())
    assert state.started is not None
    data = config_of_run(state.started, tmp_path)
    assert widening(state, data)
    assert widening(replace(state, measured=Ledger()), data) == []


def test_of_what_was_retracted_nothing_else_is_drawn_in_its_place(tmp_path: Path) -> None:
    """The current text has not met it, and a verdict would be over fewer items than it costs."""
    run = searched(tmp_path, **FEW, **{"budget.max_calls": 40})
    state = fold(each.event for each in run.events())
    assert state.started is not None
    data = config_of_run(state.started, tmp_path)
    first = judged_items(state, data)
    gone, splits = first[:2], state.started.splits
    splits = replace(splits, val=tuple(item for item in splits.val if item not in gone))
    assert judged_items(replace(state, started=replace(state.started, splits=splits)), data) == first[2:]


@parametrized("change", ["search.first_gates=0", "search.first_gates=8", "evaluation.min_items=9"], by_default=1)
def test_a_fork_takes_other_items_only_where_they_can_be_compared(tmp_path: Path, change: str) -> None:
    """The current text has met five: a verdict over more would cost more and say no more. Later it has met all."""
    run = searched(tmp_path, **FEW)

    def forked(seq: int, name: str) -> Done:
        words = ("search", "--until", "seq", str(seq), "--set", change, "--name", name, "--dir", ".")
        return command("fork", *words, cwd=tmp_path)

    first, *_ = run.events(["CandidateGated"])
    [last] = run.events(["RunCompleted"])
    refused = forked(first.seq, "refused")
    assert refused.code == 2
    assert "were measured on 5 of 12 validation items, and verdicts would take" in refused.err
    assert "`--until seq 1` is the last moment before" in refused.err
    assert forked(1, "early").code == 0
    assert forked(last.seq - 1, "late").code == 0
    assert command("replay", "late", "--check", "--dir", ".", cwd=tmp_path).code == 0


def test_a_fork_of_a_run_that_has_met_all_takes_all(tmp_path: Path) -> None:
    """The error says how."""
    run = searched(tmp_path, **{"search.first_gates": 0, "budget.max_calls": 90})
    seq = next(each.seq for each in run.events(["CandidateGated"]))
    fork = ("fork", "search", "--dir", ".", "--until", "seq", str(seq))
    few = command(*fork, "--set", "search.first_gates=5", "--name", "few", cwd=tmp_path)
    assert "measured on all 12 validation items, and verdicts would take 5; `--set search.first_gates=0`" in few.err
    assert command(*fork, "--set", "search.first_gates=0", "--name", "whole", cwd=tmp_path).code == 0


def test_a_target_score_is_believed_of_all_items_only(tmp_path: Path) -> None:
    """Five items that pass by what they ask are no reason to end."""

    def once(request: so.ChatRequest) -> str:
        return teacher(claims=True)(request)

    run = searched(tmp_path, teach=once, **FEW, **{"train.target_score": 0.9})
    assert items_of(selections(run)[-1]) == 12
    assert run.summary().best.value == 1.0
