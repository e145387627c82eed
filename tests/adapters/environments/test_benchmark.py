"""What benchmarks' environments share: a grade as an episode, and an attempt that the world kept from its end."""

from __future__ import annotations

from skillopt_es.adapters.environments.benchmark import Graded, Talk, unmeasured, untagged
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import ChatReply, TrajectoryRecord


def test_a_grade_tells_analysts_of_it_last() -> None:
    grade = Graded(hard=0.0, soft=0.5, why=("format", "no tag"), said=["Gold: 5"], prediction="five", answers=("5",))
    episode = grade.episode("How many?", [TrajectoryRecord("reply", "five")], 2)
    assert [each.text for each in episode.records] == ["five", "[EVALUATION RESULT]\nGold: 5"]
    assert (episode.outcome, episode.failure, episode.detail) == (Measured(0.0, 0.5), "format", "no tag")
    assert (episode.turns, episode.prediction, episode.answers) == (2, "five", ("5",))


def test_what_the_world_prevented_is_no_measurement() -> None:
    episode = unmeasured("data", "the page is gone", "How many?")
    assert (episode.outcome, episode.turns) == (Failed("data", "the page is gone"), 0)


def test_an_answer_tag_counts_in_any_letter_case() -> None:
    talks = [Talk([], ChatReply(text=text, finish="stop")) for text in ("<ANSWER>5</ANSWER>", "5")]
    assert [*map(untagged, talks)] == [False, True]
