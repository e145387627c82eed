"""Adding up an evaluation: its means, by type and as a bound, and when it is paused instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from attrs import evolve
from support.at_gate import state_of
from support.scripted import config

from skillopt_es.engine.evaluations import mean_score, most_score, score
from skillopt_es.engine.work import Evaluation
from skillopt_es.events.catalog import Event, RolloutCompleted, RunPaused, SkillScored
from skillopt_es.events.values import Failed, Measured, NotRun, Outcome, Score, SkillTree
from skillopt_es.projections.state import Partial

SKILL = SkillTree(files={"SKILL.md": "# A\n"})
DOWN = Failed("transport", "connection refused")
WHOLE, PART, NONE = Measured(1.0, 1.0), Measured(0.0, 0.5), Measured(0.0, 0.0)
Scored = Callable[..., Event]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Scored:
    """What becomes of an evaluation of items `a`, `b`, … with these outcomes; None: not run."""
    folder = tmp_path_factory.mktemp("scores")
    metric = ("evaluation.gate_metric=mixed", "evaluation.gate_mixed_weight=0.25")
    settings = config(folder, ("rollout.max_failed_share=0.25", "rollout.max_unanswered_share=0.5", *metric))

    def add_up(*outcomes: Outcome | None, **how: object) -> Event:
        evaluation = evolve(
            Evaluation(
                place="e1/s1/gate", purpose="selection", split="val", items=tuple("abcdefgh")[: len(outcomes)],
                skill=SKILL, seed=7, repeat=1,
            ), **{name: value for name, value in how.items() if name not in ("fields", "partial")},
        )  # fmt: skip
        fields: Mapping[str, Mapping[str, str]] = how.get("fields", {})  # type: ignore[assignment]
        rows = {
            item: evolve(row(evaluation.place, item, outcome), **fields.get(item, {}))
            for item, outcome in zip(evaluation.items, outcomes, strict=True)
            if outcome is not None
        }
        partial: dict[tuple[str, int], Partial] = how.get("partial", {})  # type: ignore[assignment]
        return score(evaluation, evolve(state_of({}), rollouts={evaluation.place: rows}, partial=partial), settings)  # type: ignore[dict-item]

    return add_up


def row(place: str, item: str, outcome: Outcome, task_type: str = "") -> RolloutCompleted:
    """One item, tried once."""
    return RolloutCompleted(
        place=place, purpose="selection", item=item, skill=SKILL.hash, outcome=outcome, task_type=task_type, turns=1,
        trajectory="t",
    )  # fmt: skip


def test_a_score_is_the_means_over_what_was_measured() -> None:
    """What failed is counted, and is no 0; nothing measured comes to nothing."""
    assert mean_score([WHOLE, PART, DOWN, NotRun("why")]) == Score(hard=0.5, soft=0.75, measured=2, unmeasured=2)
    assert mean_score([DOWN]) == Score(hard=0.0, soft=0.0, measured=0, unmeasured=1)
    assert mean_score([]) == Score(hard=0.0, soft=0.0, measured=0, unmeasured=0)


def test_items_that_were_not_run_count_as_solved_in_a_bound() -> None:
    """And not as measured."""
    assert most_score([PART, NONE, DOWN], 2) == Score(hard=0.5, soft=0.625, measured=2, unmeasured=1)
    assert most_score([], 2) == Score(hard=1.0, soft=1.0, measured=0, unmeasured=0)


def test_a_whole_evaluation_is_added_up(scored: Scored) -> None:
    """By type, too, in alphabetical order; what the gate compares is the mixed score."""
    types = {"a": {"task_type": "sums"}, "c": {"task_type": "dates"}, "d": {"task_type": "dates"}}
    found = scored(WHOLE, PART, NONE, WHOLE, fields=types)
    assert found == SkillScored(
        place="e1/s1/gate",
        purpose="selection",
        split="val",
        skill=SKILL.hash,
        score=Score(hard=0.5, soft=0.625, measured=4, unmeasured=0),
        value=0.75 * 0.5 + 0.25 * 0.625,
        by_type={
            "dates": Score(hard=0.5, soft=0.5, measured=2, unmeasured=0),
            "other": Score(hard=0.0, soft=0.5, measured=1, unmeasured=0),
            "sums": Score(hard=1.0, soft=1.0, measured=1, unmeasured=0),
        },
        seed=7,
    )
    assert isinstance(found, SkillScored)
    assert list(found.by_type) == ["dates", "other", "sums"]


def test_only_what_a_gate_compares_has_a_value(scored: Scored) -> None:
    """Each states its seed."""
    train = scored(WHOLE, purpose="train", split="train")
    assert isinstance(train, SkillScored)
    assert (train.value, train.seed) == (None, 7)
    again = scored(WHOLE, repeat=2)
    assert isinstance(again, SkillScored)
    assert (again.repeat, again.seed, again.value) == (2, 7, 1.0)


def test_an_evaluation_that_ended_early_states_a_bound(scored: Scored) -> None:
    """What was not run is named; types would say nothing of it."""
    found = scored(PART, None, NONE, None, stopped=True)
    assert isinstance(found, SkillScored)
    assert (found.exact, found.not_run, found.by_type) == (False, ("b", "d"), {})
    assert found.score == Score(hard=0.5, soft=0.625, measured=2, unmeasured=0)


def test_an_evaluation_of_which_nothing_had_to_be_run_is_no_failure(scored: Scored) -> None:
    """Nothing was tried, so nothing failed."""
    found = scored(None, None, stopped=True)
    assert isinstance(found, SkillScored)
    assert (found.not_run, found.score.hard) == (("a", "b"), 1.0)


def test_a_draw_that_was_begun_elsewhere_names_that_place(scored: Scored) -> None:
    """Its items there count."""
    begun = Partial(place="e1/s1/gate", rows={"a": row("e1/s1/gate", "a", WHOLE)})
    found = scored(None, NONE, place="e2/s4/gate", partial={(SKILL.hash, 1): begun})
    assert isinstance(found, SkillScored)
    assert (found.begun_at, found.exact, found.score.hard) == ("e1/s1/gate", True, 0.5)


@pytest.mark.parametrize(
    ("outcomes", "how", "paused"),
    [
        ((WHOLE, WHOLE, WHOLE, DOWN), {}, False),
        ((WHOLE, WHOLE, DOWN, DOWN), {}, True),
        ((WHOLE, WHOLE, DOWN, DOWN), {"split": "train", "purpose": "train"}, False),
        ((WHOLE, DOWN, DOWN, DOWN), {"split": "train", "purpose": "train"}, True),
        ((DOWN,), {"split": "train", "purpose": "train"}, True),
        ((WHOLE, DOWN, None, None), {"stopped": True}, False),
        ((WHOLE, DOWN, DOWN, None), {"stopped": True}, True),
    ],
)
def test_more_failures_than_a_share_of_the_items_pause_the_run(
    scored: Scored, outcomes: tuple[Outcome | None, ...], how: dict[str, object], paused: bool
) -> None:
    """Training items may fail more often: what was not measured is only left out there."""
    assert isinstance(scored(*outcomes, **how), RunPaused) is paused


def test_a_pause_says_how_many_items_failed_of_what_and_the_first_of_them(scored: Scored) -> None:
    """The kinds in alphabetical order."""
    found = scored(WHOLE, Failed("timeout", "late"), DOWN, DOWN, NotRun("no key"))
    assert found == RunPaused(
        reason="unmeasured",
        message="4 of 5 items at e1/s1/gate could not be measured (1 not_run, 1 timeout, 2 transport); first, b: late",
        hint="with `--set rollout.max_failed_share=N` (now 0.25) a larger share of the items may be without a grade",
    )
    nothing = scored(NotRun("no key"))
    assert isinstance(nothing, RunPaused)
    assert nothing.message.endswith("(1 not_run); first, a: ")


SILENT = {"trajectory": "", "failure": "no_answer"}


@pytest.mark.parametrize(
    ("silent", "paused"), [("a", False), ("ab", False), ("abc", True), ("abcd", True)], ids=["1", "half", "more", "all"]
)
def test_more_silence_than_a_share_of_the_items_pauses_the_run(scored: Scored, silent: str, paused: bool) -> None:
    """An item without a word is the model's 0, unless nobody can tell it from a broken endpoint."""
    found = scored(NONE, NONE, NONE, NONE, fields=dict.fromkeys(silent, SILENT))
    assert isinstance(found, RunPaused) is paused


def test_one_silent_item_is_no_broken_endpoint(scored: Scored) -> None:
    """Even where it is all there is; two are."""
    assert isinstance(scored(NONE, fields={"a": SILENT}), SkillScored)
    late = {**SILENT, "failure": "timeout"}
    found = scored(NONE, NONE, fields={"a": late, "b": {**SILENT, "detail": "not a word"}})
    assert isinstance(found, RunPaused)
    assert found.reason == "unanswered"
    assert found.message.startswith(
        "2 of 2 items at e1/s1/gate had no answer in them (first, a: timeout): the endpoint does not work"
    )
    told = scored(NONE, NONE, fields={"a": {**SILENT, "detail": "not a word"}, "b": SILENT})
    assert isinstance(told, RunPaused)
    assert "(first, a: not a word)" in told.message
