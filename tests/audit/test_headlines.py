"""What is said of a run's scores: with items, intervals and draws, and which differences are noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from skillopt_es.audit.headlines import headlines
from skillopt_es.events.catalog import SkillScored
from skillopt_es.events.values import Measured, Outcome, Score
from skillopt_es.projections.item_results import ItemResults
from skillopt_es.projections.lineage import Lineage
from skillopt_es.projections.summary import Place, Summary
from skillopt_es.report.scores import said

SUMMARY = Summary(
    status="running", steps=4, initial="old", best=Place(skill="new", value=1.0), current=Place(skill="new")
)

NONE = Lineage(nodes=(), current="", best="")


def scored(skill: str, passed: int, items: int, *, exact: bool = True) -> SkillScored:
    """A test of a skill."""
    score = Score(hard=passed / items, soft=passed / items, measured=items)
    return SkillScored(place="final", purpose="test", split="test", skill=skill, score=score, by_type={}, exact=exact)


def results_of(**passed: Sequence[int]) -> ItemResults:
    """Results on test items, one draw each: 1 for passed."""
    tests = {skill: {f"x{at}": (_outcome(each),) for at, each in enumerate(row)} for skill, row in passed.items()}
    return ItemResults(validation={}, test=tests, train={}, types={})


def _plain(sentences: Iterable[str]) -> list[str]:
    """Sentences with spaces that may break."""
    return [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in sentences]


def _outcome(passed: int) -> Outcome:
    return Measured(float(passed), float(passed))


def test_a_difference_that_chance_explains_is_within_noise() -> None:
    """Five of twelve items won and none lost would happen once in sixteen."""
    results = results_of(old=[0] * 12, new=[1] * 5 + [0] * 7)
    found = headlines(SUMMARY, [scored("old", 0, 12), scored("new", 5, 12)], results, {}, NONE)
    [difference] = found.differences
    assert difference.paired is not None
    assert difference.paired.within_noise
    assert [(each.names, each.items, each.grid) for each in found.scores] == [
        (("initial",), 12, 1 / 12), (("best", "current"), 12, 1 / 12)
    ]  # fmt: skip
    assert _plain(said(found)) == [
        "On test, best and current against initial: +0.4167, 5 won and 0 lost of 12 items: within noise (p = 0.062)."
    ]


def test_a_difference_that_chance_does_not_explain_is_more() -> None:
    """Six of twelve."""
    results = results_of(old=[0] * 12, new=[1] * 6 + [0] * 6)
    found = headlines(SUMMARY, [scored("old", 0, 12), scored("new", 6, 12)], results, {}, NONE)
    assert "more than noise (p = 0.031)" in "".join(_plain(said(found)))


def test_with_too_few_items_everything_is_noise() -> None:
    """And that is said."""
    results = results_of(old=[0] * 5, new=[1] * 5)
    found = headlines(SUMMARY, [scored("old", 0, 5), scored("new", 5, 5)], results, {}, NONE)
    assert "within noise, as anything would be with so few items" in "".join(said(found))


def test_without_single_results_nothing_is_claimed() -> None:
    """An imported run may have scores only."""
    nothing = ItemResults(validation={}, test={}, train={}, types={})
    found = headlines(SUMMARY, [scored("old", 0, 12), scored("new", 12, 12)], nothing, {}, NONE)
    assert found.differences[0].paired is None
    assert "cannot be told" in "".join(said(found))
    unknown = evolve(scored("new", 1, 2), score=Score(hard=0.5, soft=0.5, measured=None, unmeasured=None))
    [each] = headlines(SUMMARY, [unknown], nothing, {}, NONE).scores
    assert (each.items, each.grid, each.interval) == (None, None, None)


def test_a_bound_has_no_interval() -> None:
    """It is no score yet."""
    found = headlines(SUMMARY, [scored("new", 5, 12, exact=False)], results_of(new=[1] * 5), {}, NONE)
    assert found.scores[0].interval is None
    assert "upper bound" in "".join(said(found))


def test_what_was_not_measured_at_all_is_no_score() -> None:
    """Not a 0."""
    lost = evolve(scored("new", 0, 1), score=Score(hard=0.0, soft=0.0, measured=0, unmeasured=12))
    assert headlines(SUMMARY, [lost], results_of(), {}, NONE).scores == ()


def test_an_evaluation_tells_each_split_by_its_name() -> None:
    """One text, a score on each, no difference."""
    whole = Summary(status="running", initial="old")
    rows = [scored("old", 1, 2), evolve(scored("old", 2, 4), split="val")]
    found = headlines(whole, rows, results_of(old=[1, 0]), {}, NONE)
    assert [(each.split, each.names, each.items) for each in found.scores] == [
        ("test", ("skill",), 2), ("validation", ("skill",), 4)
    ]  # fmt: skip
    assert found.differences == ()
