"""What a run's training items have met, and which of them the optimizer was shown."""

from __future__ import annotations

from attrs import evolve

from skillopt_es.events.catalog import ComparisonDrawn, MinibatchesPlanned, RolloutCompleted, SlowUpdateProposed
from skillopt_es.events.values import Measured, Minibatch, Pair
from skillopt_es.projections.exposure import Exposure, after_rollouts, after_showing


def tried(place: str, item: str, purpose: str = "train") -> RolloutCompleted:
    """A result of an item."""
    return RolloutCompleted(
        place=place, purpose=purpose, item=item, skill="s", outcome=Measured(1.0, 1.0), task_type="", turns=1
    )


def test_an_item_is_met_where_it_was_first_tried() -> None:
    """Whatever comes later; results on validation and test items are not met."""
    rows = [tried("e1/s1/b0", "a"), tried("e2/s2/b0", "a"), tried("e1/s1/gate", "v", "selection")]
    found = after_rollouts(Exposure(), rows)
    assert dict(found.met) == {"a": "e1/s1/b0"}
    assert after_rollouts(found, rows) is found


def test_fresh_is_what_only_the_batches_at_a_place_have_met() -> None:
    """Not what was tried in an earlier step, nor what was screened in this one."""
    rows = [tried("e1/s1/b0", "a"), tried("e2/s2/b0", "b"), tried("e2/s2/b1", "c"), tried("e2/s2/screen/edit-1", "d")]
    found = after_rollouts(Exposure(), rows)
    assert found.fresh("abcde", "e2/s2") == ("b", "c", "e")
    assert found.fresh("abcde", "final/fresh") == ("e",)
    assert found.fresh(["f"], "e2/s2") == ("f",)


def test_shown_is_what_a_question_or_a_comparison_drew() -> None:
    """By the first of them."""
    group = Minibatch(id="e1/s1/b0/failure-0", kind="failure", place="e1/s1/b0", items=("a", "b"))
    found = after_showing(Exposure(), MinibatchesPlanned(step=1, groups=(group, evolve(group, id="x"))))
    found = after_showing(found, ComparisonDrawn(epoch=2, items=("b", "c"), previous="p", current="q"))
    later = after_showing(found, SlowUpdateProposed(epoch=2, result="failed", pairs=(Pair("d", "improved"),)))
    assert dict(later.shown) == {"a": group.id, "b": group.id, "c": "e2/slow", "d": "e2/slow"}
    assert "d" not in found.shown
    assert after_showing(found, tried("e1/s1/b0", "z")) is found
