"""What is said of a run's scores: with items, intervals and draws, and which differences are noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from skillopt_es.audit.headlines import headlines
from skillopt_es.events.catalog import SkillScored
from skillopt_es.events.values import Measured, Outcome, Score
from skillopt_es.presenting.claims import answer, said
from skillopt_es.projections.intervals import Paired, judged
from skillopt_es.projections.item_results import ItemResults
from skillopt_es.projections.lineage import Lineage
from skillopt_es.projections.summary import Holder, Summary

SUMMARY = Summary(
    status="running", total_steps=4, initial="old", best=Holder(skill="new", value=1.0), current=Holder(skill="new")
)

NONE = Lineage(nodes=(), current="", best="")


def scored(skill: str, passed: int, items: int, *, exact: bool = True) -> SkillScored:
    """A test of a skill."""
    score = Score(hard=passed / items, soft=passed / items, measured=items)
    return SkillScored(
        place=f"final/{skill}", purpose="test", split="test", skill=skill, score=score, by_type={}, exact=exact
    )


def results_of(types: Mapping[str, str] | None = None, /, **passed: Sequence[int]) -> ItemResults:
    """Results on test items, one draw each at the place of its skill: 1 for passed."""
    rows = {skill: {f"x{at}": _outcome(each) for at, each in enumerate(row)} for skill, row in passed.items()}
    tests = {skill: {item: (each,) for item, each in row.items()} for skill, row in rows.items()}
    at = {f"final/{skill}": row for skill, row in rows.items()}
    return ItemResults(validation={}, test=tests, train={}, types=types or {}, at=at)


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
    assert judged(difference.paired).within_noise
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
    assert "within noise: with so few items, any difference would be" in "".join(said(found))


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
    whole = Summary(status="running", algorithm="evaluation", initial="old")
    rows = [scored("old", 1, 2), evolve(scored("old", 2, 4), split="val")]
    found = headlines(whole, rows, results_of(old=[1, 0]), {}, NONE)
    assert [(each.split, each.names, each.items) for each in found.scores] == [
        ("test", ("skill",), 2), ("validation", ("skill",), 4)
    ]  # fmt: skip
    assert found.differences == ()


def test_a_difference_is_told_by_type_where_items_have_types() -> None:
    """One rule turned six items of one type at once: by item that is much, by type it is one."""
    types = {f"x{at}": "date" if at < 6 else f"t{at % 6}" for at in range(18)}
    results = results_of(types, old=[0] * 18, new=[1] * 6 + [0] * 12)
    found = headlines(SUMMARY, [scored("old", 0, 18), scored("new", 6, 18)], results, {}, NONE)
    better = "6 won and 0 lost of 18 items: better on these tasks, perhaps by one or two types"
    assert f"{better} (p = 0.031 by item, p = 1 by type)." in "".join(_plain(said(found)))
    asked = answer(found)
    assert asked is not None
    assert (asked.kind, asked.words) == ("better", "The best skill is better than the first one on these tasks.")
    few = {item: f"t{int(item[1:]) % 3}" for item in types}
    found = headlines(SUMMARY, [scored("old", 0, 18), scored("new", 6, 18)], evolve(results, types=few), {}, NONE)
    [difference] = found.differences
    assert difference.paired is not None
    assert judged(difference.paired).claim == "few_types"
    few_types = (
        "6 won and 0 lost of 18 items: better on tasks of these types (p = 0.031). Every type that could win did "
        "(3 of 3); so few types cannot tell about other types."
    )
    assert few_types in "".join(_plain(said(found)))
    asked = answer(found)
    assert asked is not None
    words = "The best skill is better than the first one on tasks of these types."
    assert (asked.kind, asked.words) == ("better", words)


def validated(skill: str, passed: Sequence[int], *, place: str, draw: int = 1, begun_at: str = "") -> SkillScored:
    """One evaluation on validation items."""
    share = sum(passed) / len(passed)
    return SkillScored(
        place=place, purpose="selection", split="val", skill=skill, by_type={}, repeat=draw, begun_at=begun_at,
        score=Score(hard=share, soft=share, measured=len(passed)),
    )  # fmt: skip


def drawn(*rows: tuple[SkillScored, Sequence[int]]) -> tuple[list[SkillScored], ItemResults]:
    """Evaluations with what their items came to."""
    at = {event.place: {f"x{n}": _outcome(each) for n, each in enumerate(row)} for event, row in rows}
    return [event for event, _ in rows], ItemResults(validation={}, test={}, train={}, types={}, at=at)


def test_the_best_on_validation_has_no_interval_there_and_no_claim() -> None:
    """However large the gain: it is the highest of many on these very items."""
    old, new = [0] * 12, [1] * 9 + [0] * 3
    rows, results = drawn(
        (validated("old", old, place="a"), old),
        (validated("refused", old, place="b"), old),
        (validated("new", new, place="c"), new),
    )
    found = headlines(SUMMARY, rows, results, {}, NONE)
    first, best = found.scores
    assert (first.chosen, first.interval is None) == (False, False)
    assert (best.chosen, best.interval, best.by_family) == (True, None, None)
    assert _plain(said(found))[0] == (
        "On validation, best and current against initial: +0.7500, 9 won and 0 lost of 12 items. "
        "These items chose it among 3 texts, so no test of chance on them says anything about it."
    )


def test_a_told_draw_is_the_whole_of_what_is_told() -> None:
    """What decided is in no score, no count of draws and no comparison."""
    told, lucky = [1, 0, 0, 0], [1, 1, 1, 1]
    rows, results = drawn(
        (validated("old", told, place="a"), told),
        (validated("old", told, place="a0", draw=0), told),
        (validated("new", lucky, place="b"), lucky),
        (validated("new", lucky, place="b2", draw=2), lucky),
        (validated("new", told, place="b0", draw=0), told),
    )
    found = headlines(SUMMARY, rows, results, {}, NONE)
    assert [(each.hard, each.draws) for each in found.scores] == [(0.25, (1, 1)), (0.25, (1, 1))]
    [difference] = found.differences
    assert difference.paired == Paired(items=4, won=(), lost=(), could_win=("x1", "x2", "x3"), could_lose=("x0",))


def test_a_draw_that_was_begun_elsewhere_has_the_items_of_both_places() -> None:
    """It ended early, and was completed when the text came back."""
    rest = validated("old", [1, 0, 1, 1], place="b", begun_at="a")
    results = ItemResults(
        validation={}, test={}, train={}, types={},
        at={"a": {"x0": _outcome(1), "x1": _outcome(0)}, "b": {"x2": _outcome(1), "x3": _outcome(1)}},
    )  # fmt: skip
    [first] = headlines(evolve(SUMMARY, best=Holder(), current=Holder()), [rest], results, {}, NONE).scores
    assert (first.hard, first.draws) == (0.75, (1, 1))
