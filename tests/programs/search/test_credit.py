"""Credit: which edits have earned what came out better."""

from skillopt_es.events.values import Edit, Measured
from skillopt_es.programs.search.credit import Screened, earned, screened, spoken_of

PASS, FAIL = Measured(1.0, 1.0), Measured(0.0, 0.0)


def hard(value: float, soft: float) -> float:
    """The hard metric."""
    return value


def edit(name: str, *claims: str) -> Edit:
    """An edit that claims these tasks."""
    return Edit(id=name, op="append", content=name, claims=claims)


def test_what_turned_is_counted_among_the_tasks_that_were_measured_under_both() -> None:
    """One that was never tried under the current skill says nothing."""
    found = screened({"a": FAIL, "b": PASS, "c": FAIL}, {"a": PASS, "b": FAIL, "c": FAIL, "new": PASS}, hard)
    assert found == Screened(better=frozenset({"a"}), worse=frozenset({"b"}))
    assert not found.won


def test_an_edit_earns_the_tasks_that_it_claims_and_that_came_out_better() -> None:
    """One that fixed nothing has earned nothing, though the candidate it is part of has won."""
    found = Screened(better=frozenset({"a", "b"}), worse=frozenset())
    edits = (edit("good", "a", "b"), edit("useless", "c"))
    shown = {"good": ("a", "b", "c"), "useless": ("a", "b", "c")}
    assert earned(edits, shown, found) == {"good": ("a", "b"), "useless": ()}


def test_an_edit_that_claims_nothing_earns_what_no_other_claims() -> None:
    """It does not live on what others have fixed."""
    found = Screened(better=frozenset({"a", "b"}), worse=frozenset())
    edits = (edit("good", "a"), edit("vague"))
    shown = {"good": ("a", "b"), "vague": ("a", "b")}
    assert earned(edits, shown, found) == {"good": ("a",), "vague": ("b",)}
    assert earned(edits, shown, Screened(better=frozenset({"a"}), worse=frozenset()))["vague"] == ()


def test_a_text_speaks_of_the_tasks_that_share_a_rare_word_with_it() -> None:
    """Words that half of the tasks have tell none from another."""
    tasks = {"t1": "Tag for the parcel to Rome", "t2": "Mark of the invoice", "t3": "Stamp of the letter"}
    assert spoken_of("Parcel: the town in small letters", tasks) == ("t1",)
    assert spoken_of("Read the task twice", tasks) == ()
