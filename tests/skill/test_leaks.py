"""What copies an item is refused, what is a rule is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.skill.leaks import LeakGuard, Shown

BRIDGE = Shown(
    item="q1",
    question="Who designed the harbour bridge of Kelvik in the north?",
    answers=("Orla Belford",),
    text="[DOC] The harbour bridge of Kelvik was designed by Dame Orla Belford after the great fire of 1845, they say.",
)
MILL = Shown(
    item="q2",
    question="Is the old mill of Dunmere open on Sundays?",
    answers=("yes",),
    text="[DOC] The old mill of Dunmere is open on all days but Monday.",
)
COUNT = Shown(
    item="q3", question="How many arms has a common starfish, counted from above?", answers=("4",), text="four"
)
LONG = Shown(item="q4", question="Which inequality is sharp?", answers=("f is at most g with equality",), text="")
KNOWN = "Answer briefly. The harbour bridge of Kelvik was designed by Dame Orla Belford after the great fire of 1845."


def guard(*shown: Shown, known: str = "", span: int = 12) -> LeakGuard:
    return LeakGuard(shown or (BRIDGE, MILL, COUNT, LONG), known=known, span=span)


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("- The harbour bridge of Kelvik was designed by Dame Orla Belford after the great fire.", "q1"),
        ("THE HARBOUR-BRIDGE of Kelvik\nwas designed by *Dame* Orla Belford; after the great... fire", "q1"),
        ("When asked about the harbour bridge of Kelvik, say Orla Belford.", "q1"),
        ("For the old mill of Dunmere the answer is yes.", "q2"),
        ("A common starfish, counted from above, has 4.", "q3"),
        ("Prefer: f is at most g, with equality.", "q4"),
    ],
)
def test_what_tells_an_item_is_refused(text: str, item: str) -> None:
    """Whatever its case and signs; the item is named."""
    assert guard().leak(text).startswith(f"item {item}: ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Answer yes or no when the question can be answered so.",
        "Write counts as digits: 4, not four.",
        "Give the designer's name without Dame or Sir, such as Orla Belford.",
        "For questions that begin with Who designed the bridge, name one person.",
        "Is the place open on a day? Then say yes.",
        "The harbour bridge of Kelvik was designed by somebody.",
    ],
)
def test_a_rule_is_no_leak(text: str) -> None:
    """Short answers are everywhere, and a question may be named without its answer."""
    assert guard().leak(text) == ""


def test_what_the_skill_says_already_is_no_leak() -> None:
    """An edit may take up lines that it moves or mends."""
    copied = "The harbour bridge of Kelvik was designed by Dame Orla Belford after the great fire of 1845."
    assert guard().leak(copied)
    assert guard(known=KNOWN).leak(copied) == ""


def test_what_most_items_have_in_common_is_no_item() -> None:
    """A form that all tasks are put in may be quoted, once there are enough items to tell."""
    form = "Answer the question from the note below and from nothing else, in one line, without a greeting."
    items = [Shown(item=str(n), question=f"{n}?", answers=(), text=f"{form} Note {n}") for n in range(3)]
    assert guard(*items).leak(f"The tasks say: {form}") == ""
    assert guard(*items[:2]).leak(f"The tasks say: {form}").startswith("item 0: ")


def test_what_half_of_the_items_have_in_common_is_still_theirs() -> None:
    """Most is more than half."""
    form = "Answer the question from the note below and from nothing else, in one line, without a greeting."
    items = [Shown(item=str(n), question="?", answers=(), text=form if n < 2 else f"Note {n}") for n in range(4)]
    assert guard(*items).leak(form).startswith("item 0: ")


def test_a_copy_within_a_long_text_is_found() -> None:
    """However much stands around it."""
    around = " ".join(f"word{number}" for number in range(200))
    assert guard(BRIDGE).leak(f"{around} {BRIDGE.text} {around}").startswith("item q1: 12 of its words")
    assert guard(BRIDGE).leak(f"{around} {around}") == ""


@pytest.mark.parametrize(
    ("answer", "told"),
    [("one two three four five six", True), ("one two three four five", False)],
    ids=["half a span", "less"],
)
def test_an_answer_half_as_long_as_a_span_is_a_leak_by_itself(answer: str, told: bool) -> None:
    """A shorter one needs its question beside it; both are told in the words that were found."""
    shown = Shown(item="1", question="What is counted?", answers=(answer,), text="")
    assert guard(shown).leak(f"Always say {answer}!") == (f"item 1: its answer: “{answer}”" if told else "")


def test_a_long_answer_that_stands_elsewhere_is_no_leak_by_itself() -> None:
    """In the skill, or in one of the other items."""
    answer = "one two three four five six"
    shown = Shown(item="1", question="What is counted?", answers=(answer,), text="")
    other = Shown(item="2", question="What is read?", answers=(), text=f"A page says: {answer}.")
    silent = Shown(item="3", question="What is sung?", answers=(), text="A song.")
    assert guard(shown, known=f"Count: {answer}").leak(f"Always say {answer}") == ""
    assert guard(shown, other, silent).leak(f"Always say {answer}") == ""
    assert guard(shown, silent).leak(f"Always say {answer}") != ""


def test_four_words_of_a_question_tell_which_it_is() -> None:
    """Three do not; what is told names the answer and the words of the question."""
    shown = Shown(item="1", question="How many arms has a starfish?", answers=("5",), text="")
    assert guard(shown).leak("How many arms has it: 5") == (
        "item 1: its answer (“5”) with its question: “how many arms has”"
    )
    assert guard(shown).leak("How many arms: 5") == ""


def test_a_copied_run_is_quoted_up_to_twelve_words() -> None:
    """Enough to find it."""
    words = [f"w{number}" for number in range(20)]
    shown = Shown(item="1", question="", answers=(), text=" ".join(words))
    assert guard(shown, span=15).leak(shown.text) == f"item 1: 15 of its words in a row: “{' '.join(words[:12])}”"


def test_an_answer_without_words_tells_nothing() -> None:
    """Signs alone are in no line."""
    shown = Shown(item="1", question="How many arms has a starfish?", answers=("—", ""), text="")
    assert guard(shown, span=1).leak("\n\nno word of it\n") == ""


def test_an_answer_that_several_items_have_is_a_label() -> None:
    """A rule has to be able to name it beside what it is for."""
    first = Shown(item="1", question="A parcel came back from the sorting centre", answers=("returns desk",), text="")
    other = Shown(item="2", question="Nobody was at home twice", answers=("returns desk",), text="")
    rule = "A parcel came back from anywhere: returns desk."
    assert guard(first).leak(rule).startswith("item 1: its answer")
    assert guard(first, other).leak(rule) == ""


def test_scripts_without_spaces_are_read_by_signs() -> None:
    """Twelve signs in a row are as many words."""
    shown = Shown(item="1", question="", answers=(), text="港の橋は大火の後に女性技師が設計した")
    assert guard(shown).leak("規則: 橋は大火の後に女性技師が設計した").startswith("item 1: 12 of its words")
    assert guard(shown).leak("橋は設計された") == ""


def test_a_span_of_0_checks_nothing() -> None:
    """As in the original."""
    assert guard(span=0).leak(BRIDGE.text) == ""


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=30)


@given(WORDS, WORDS, st.integers(1, 6))
def test_a_run_is_found_exactly_when_both_have_it(item: list[str], text: list[str], span: int) -> None:
    """Against a plain search."""
    runs = {tuple(item[at : at + span]) for at in range(len(item) - span + 1)}
    copied = any(tuple(text[at : at + span]) in runs for at in range(len(text) - span + 1))
    shown = Shown(item="1", question="", answers=(), text=" ".join(item))
    assert bool(guard(shown, span=span).leak(", ".join(text))) == copied


@given(st.text(), st.text())
def test_any_text_can_be_checked(text: str, other: str) -> None:
    """Whatever signs it has; what a text knows of itself is no leak."""
    shown = Shown(item="1", question=text, answers=(other, text), text=other)
    assert isinstance(guard(shown, span=1).leak(other + text), str)
    assert guard(shown, known=other, span=1).leak(other) == ""
