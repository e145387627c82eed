"""Whether the best skill is better than the first one: in a word, as far as test items say it."""

from __future__ import annotations

import pytest
from attrs import evolve

from skillopt_es.audit.headlines import Difference, Headline, Headlines, Name, Split
from skillopt_es.presenting.claims import answer
from skillopt_es.projections.intervals import Paired

ITEMS = tuple(f"x{number}" for number in range(20))


def headline(names: tuple[Name, ...], hard: float, split: Split = "test") -> Headline:
    """A score on 20 items."""
    return Headline(split=split, names=names, skill=names[0], hard=hard, soft=hard, items=20, unmeasured=0,
                    draws=(1, 1), exact=True)  # fmt: skip


FIRST, BEST = headline(("initial",), 0.5), headline(("best", "final"), 0.8)


def found(change: Difference | None, *scores: Headline) -> Headlines:
    """All that is to be said."""
    return Headlines(scores=scores, differences=() if change is None else (change,), accepted=(), judged=3)


@pytest.mark.parametrize(
    ("won", "lost", "kind"),
    [(10, 0, "better"), (0, 10, "worse"), (6, 5, "noise"), (1, 0, "noise"), (None, 0, "unknown")],
)
def test_the_items_that_turned_decide(won: int | None, lost: int, kind: str) -> None:
    """Not the height of the score; and what it rests on is said."""
    pair = None if won is None else Paired(items=20, won=ITEMS[:won], lost=ITEMS[10 : 10 + lost])
    after = evolve(BEST, hard=0.5 + ((won or 0) - lost) / 20)
    said = answer(found(Difference(split="test", before=FIRST, after=after, paired=pair), FIRST, after))
    assert said is not None
    assert said.kind == kind
    assert said.why.startswith("On test, best and final against initial")


def test_what_did_not_change_is_the_same_and_what_was_not_tested_is_no_answer() -> None:
    """Validation items chose the skill: they say nothing here."""
    same = answer(found(None, headline(("initial", "best"), 0.5)))
    assert same is not None
    assert same.kind == "same"
    first, best = headline(("initial",), 0.5, "validation"), headline(("best",), 0.8, "validation")
    pair = Paired(items=20, won=ITEMS[:10], lost=())
    assert answer(found(Difference(split="validation", before=first, after=best, paired=pair), first, best)) is None
