"""Credit: what came out better or worse under an edit, by luck or for good, and of which tasks it speaks."""

import pytest

from skillopt_es.algorithms.search.credit import Results, Screened, luck, share_of_luck, spoken_of


def results(before: str, after: str) -> Results:
    """The draws under both texts, a digit each."""
    return Results(before=tuple(map(float, before)), after=tuple(map(float, after)))


def test_an_edit_has_won_with_more_better_than_worse() -> None:
    """As many worse as better is no win, nor is nothing at all."""
    better, worse, same = results("000", "111"), results("111", "000"), results("0", "0")
    assert Screened(results={"a": better, "b": same}).better == ("a",)
    assert Screened(results={"a": better, "b": worse, "c": better}).won
    assert not Screened(results={"a": better, "b": worse}).won
    assert not Screened(results={"a": same}).won


def test_what_turned_once_is_not_enough_while_nobody_knows_whether_the_target_varies() -> None:
    """Then it is; and of a target that varies much even more draws are not."""
    once = {"a": results("0", "1")}
    assert not Screened(results=once, share=share_of_luck(0, 0)).won
    assert Screened(results=once, share=share_of_luck(6, 0)).won
    assert not Screened(results={"a": results("00", "11")}, share=share_of_luck(6, 3)).won


def test_further_draws_that_stay_speak_against_luck_and_one_that_does_not_for_it() -> None:
    """By how much: the ratio of two beta integrals."""
    assert results("0", "1").evidence == pytest.approx(2.5)
    assert results("00", "11").evidence == pytest.approx(19 / 3)
    assert results("01", "1").evidence < results("0", "1").evidence
    assert results("1", "0").evidence == pytest.approx(2.5)  # worse, as certain as better
    assert luck(1 / 3, 2.5) == pytest.approx(1 / 6)


def test_a_task_that_came_out_in_two_ways_before_gives_no_credit() -> None:
    """However the share of luck is."""
    once = {"a": results("0", "1")}
    assert not Screened(results=once, share=0.01, fickle=frozenset("a")).won
    assert results("01", "1").varied
    assert not results("00", "11").varied


def test_a_task_came_out_both_ways_where_two_draws_of_one_text_differ() -> None:
    """That the two texts differ is what it was tried for."""
    assert results("10", "0").both_ways
    assert results("1", "010").both_ways
    assert not results("11", "000").both_ways


def test_parts_of_a_point_turn_like_whole_ones() -> None:
    """A draw is nearer to the one or to the other first result."""
    found = Results(before=(0.2, 0.3), after=(0.6, 0.25))
    assert found.turned
    assert found.varied


def test_a_text_speaks_of_the_tasks_that_share_a_rare_word_with_it() -> None:
    """Words that half of the tasks have tell none from another."""
    tasks = {"t1": "Tag for the parcel to Rome", "t2": "Mark of the invoice", "t3": "Stamp of the letter"}
    assert spoken_of("Parcel: the town in small letters", tasks) == ("t1",)
    assert spoken_of("Read the task twice", tasks) == ()
