"""A judge grades by a rubric or compares two answers; what it does not say is no grade."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from support.environments import Target, attempt, open_rows

from skillopt_es.adapters.environments.tasks.rubrics import (
    MOST_POINTS,
    Criterion,
    points_schema,
    read_better,
    read_points,
    read_rubric,
)
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.values import Failed, Json, Measured
from skillopt_es.ports import CallFailed, ChatReply, Episode, Message, judge_calls

NOTHING: Mapping[str, Any] = {}
RUBRIC: dict[str, Json] = {"right": {"text": "It is right.", "weight": 3}, "brief": "It is brief."}


@define
class Judged(Target):
    """A target whose attempts have a judge, which gives these replies in turn."""

    says: Sequence[str | CallFailed] = ()
    questions: list[list[Message]] = field(factory=list)
    schemas: list[Mapping[str, Json]] = field(factory=list)

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        self.questions.append(list(messages))
        self.schemas.append(schema)
        said = self.says[len(self.questions) - 1]
        if isinstance(said, CallFailed):
            raise said
        return ChatReply(text=said, finish="stop")


def points(**given: Json) -> str:
    return json.dumps({"reasoning": "as it is", "points": given})


def better(**given: str) -> str:
    return json.dumps({"reasoning": "as it is", "better": given})


def judged(
    folder: Path, *says: str | CallFailed, row: Mapping[str, Any] = {}, **options: Any
) -> tuple[Episode, Judged]:
    filled = {"id": "1", "input": "What?", "expected": "gold", **row}
    environment, splits = open_rows(folder, "tasks", [filled], **{"grader": "judge", "rubric": RUBRIC, **options})
    assert judge_calls(environment) == (2 if "compare_with" in options else 1)
    target = Judged(["my answer"], says=says)
    return attempt(environment, splits.train[0], target), target


def test_points_are_weighed_and_a_note_says_why(tmp_path: Path) -> None:
    """The judge is told neither weights nor skill; the optimizer reads its reasons."""
    episode, target = judged(tmp_path, points(right=4, brief=0))
    assert episode.outcome == Measured(1.0, 0.75)
    assert "brief 0.00, right 1.00: as it is" in episode.records[-1].text
    system, user = target.questions[0]
    assert json.loads(user.content) == {"task": "What?", "reference": "gold", "answer": "my answer"}
    assert "- right: It is right." in system.content
    assert "3" not in system.content
    assert "Answer briefly" not in system.content


def test_from_a_threshold_on_an_answer_is_solved(tmp_path: Path) -> None:
    """Three quarters, unless the config says otherwise."""
    assert judged(tmp_path, points(right=2, brief=4))[0].outcome == Measured(0.0, 0.625)
    assert judged(tmp_path, points(right=2, brief=4), pass_score=0.6)[0].outcome == Measured(1.0, 0.625)


def test_two_answers_are_compared_in_both_orders(tmp_path: Path) -> None:
    """A judge that always likes the first one says nothing."""
    first = better(right="first", brief="first")
    row = {"baseline": "old answer"}
    episode, target = judged(tmp_path, first, first, row=row, compare_with="baseline")
    assert episode.outcome == Measured(1.0, 0.5)
    given = [json.loads(question[1].content) for question in target.questions]
    assert [(each["first"], each["second"]) for each in given] == [
        ("my answer", "old answer"),
        ("old answer", "my answer"),
    ]
    worse = judged(tmp_path, first, better(right="first", brief="second"), row=row, compare_with="baseline")
    assert worse[0].outcome == Measured(1.0, 0.625)


def test_the_reference_is_not_shown_twice_where_answers_are_compared_with_it(tmp_path: Path) -> None:
    """It is one of the two."""
    same = better(right="equal", brief="equal")
    _, target = judged(tmp_path, same, same, compare_with="expected")
    assert "reference" not in json.loads(target.questions[0][1].content)


@pytest.mark.parametrize(
    "reply",
    ["", "fine!", "[]", '{"points": 3}', points(right=4), points(right=5, brief=0), points(right=True, brief=0)],
)
def test_what_cannot_be_read_is_asked_for_once_more(tmp_path: Path, reply: str) -> None:
    """And told what was wrong with it; a second such reply leaves the answer without a grade."""
    episode, target = judged(tmp_path, reply, points(right=4, brief=4))
    assert episode.outcome == Measured(1.0, 1.0)
    assert "cannot be read" in target.questions[1][-1].content
    broken, _ = judged(tmp_path, reply, reply)
    assert isinstance(broken.outcome, Failed)
    assert broken.failure == "unreadable"


@pytest.mark.parametrize("kind", ["timeout", "empty", "server"])
def test_a_judge_that_does_not_answer_measures_nothing(tmp_path: Path, kind: Any) -> None:
    """A late target is a 0, a late judge is not."""
    episode, _ = judged(tmp_path, CallFailed(kind, "nobody there"))
    assert isinstance(episode.outcome, Failed)
    assert "the judge gave no answer" in episode.outcome.message


def test_an_item_may_have_a_rubric_of_its_own(tmp_path: Path) -> None:
    """It may name the judge itself, too."""
    row = {"grader": "judge", "rubric": {"polite": "It says please."}}
    episode, target = judged(tmp_path, points(polite=1), row=row, grader="exact")
    assert episode.outcome == Measured(0.0, 0.25)
    assert [*target.schemas[0]["properties"]["points"]["properties"]] == ["polite"]  # type: ignore[index, call-overload]


def test_an_item_needs_something_to_be_judged_by(tmp_path: Path) -> None:
    """A reference alone is enough: is it met?"""
    rows = [{"id": "1", "input": "?"}]
    with pytest.raises(DataError, match="neither `expected` nor a `rubric`"):
        open_rows(tmp_path, "tasks", rows, grader="judge")
    with pytest.raises(DataError, match="`baseline` must be a text"):
        open_rows(
            tmp_path, "tasks", [{"id": "1", "input": "?", "expected": "x"}], grader="judge", compare_with="baseline"
        )
    open_rows(tmp_path, "tasks", [{"id": "1", "input": "?", "expected": "x"}], grader="judge")


@pytest.mark.parametrize(
    "rubric",
    [[], {}, "polite", {"a b": "x"}, {"a": ""}, {"a": {"text": "x", "wieght": 1}}, {"a": {"text": "x", "weight": 0}}],
)
def test_a_rubric_that_is_none_is_refused(tmp_path: Path, rubric: Any) -> None:
    """Where it is written, before anything is asked."""
    with pytest.raises(ConfigError, match="rubric"):
        open_rows(tmp_path, "tasks", [{"id": "1", "input": "?", "expected": "x"}], grader="judge", rubric=rubric)


def test_criteria_come_in_the_order_of_their_names() -> None:
    """A log keeps a config with its keys sorted: a resumed run must not ask something else."""
    assert [each.name for each in read_rubric({"b": "x", "a": "y"})] == ["a", "b"]


def test_replies_are_read_with_text_around_them() -> None:
    """Many models fence their JSON; the form that is asked for is closed."""
    criteria = (Criterion("a", "x"),)
    assert read_points(f"Well:\n```json\n{points(a=MOST_POINTS)}\n```", criteria).shares == {"a": 1.0}
    assert read_better(better(a="second"), criteria).shares == {"a": 0.0}
    with pytest.raises(ValueError, match="third"):
        read_better(better(a="third"), criteria)
    assert points_schema(criteria)["additionalProperties"] is False
