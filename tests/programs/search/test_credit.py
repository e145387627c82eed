"""Credit: what came out better or worse under an edit, and of which tasks it speaks."""

from skillopt_es.events.values import Measured
from skillopt_es.programs.search.credit import Screened, screened, spoken_of

PASS, FAIL = Measured(1.0, 1.0), Measured(0.0, 0.0)


def hard(value: float, soft: float) -> float:
    """The hard metric."""
    return value


def test_what_turned_is_counted_among_the_tasks_that_were_measured_under_both() -> None:
    """One that was never tried under the current skill says nothing."""
    found = screened({"a": FAIL, "b": PASS, "c": FAIL}, {"a": PASS, "b": FAIL, "c": FAIL, "new": PASS}, hard)
    assert found == Screened(better=frozenset({"a"}), worse=frozenset({"b"}))
    assert not found.won


def test_as_many_worse_as_better_is_no_win() -> None:
    """Nor is nothing at all."""
    assert not Screened(better=frozenset("a"), worse=frozenset("b")).won
    assert not Screened(better=frozenset(), worse=frozenset()).won
    assert Screened(better=frozenset("ac"), worse=frozenset("b")).won


def test_a_text_speaks_of_the_tasks_that_share_a_rare_word_with_it() -> None:
    """Words that half of the tasks have tell none from another."""
    tasks = {"t1": "Tag for the parcel to Rome", "t2": "Mark of the invoice", "t3": "Stamp of the letter"}
    assert spoken_of("Parcel: the town in small letters", tasks) == ("t1",)
    assert spoken_of("Read the task twice", tasks) == ()
