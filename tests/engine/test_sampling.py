"""Draws are those of the original for the same seed."""

from __future__ import annotations

from skillopt_es.engine.draws import chunks, comparison_sample, draw_seed, epoch_batches, shuffled

ITEMS = [str(index) for index in range(10)]


def drawn(items: list[str], *, epoch: int, size: int, batches: int) -> list[tuple[int, str]]:
    return [
        (b.seed, " ".join(b.items))
        for b in epoch_batches(items, epoch=epoch, seed=42, batch_size=size, batches=batches)
    ]


def test_epoch_batches_are_slices_of_the_shuffled_items() -> None:
    """Ten items in batches of four, two epochs."""
    assert drawn(ITEMS, epoch=1, size=4, batches=3) == [(1043, "6 4 1 9"), (1044, "7 8 0 5"), (1045, "2 3")]
    assert drawn(ITEMS, epoch=2, size=4, batches=3) == [(2043, "1 4 6 9"), (2044, "8 0 7 2"), (2045, "3 5")]


def test_an_empty_slice_is_drawn_anew() -> None:
    """Accumulation can ask for more batches than there are items."""
    assert drawn(ITEMS, epoch=1, size=4, batches=4)[3] == (1046, "9 8 6 7")
    assert drawn(["0", "1", "2"], epoch=1, size=2, batches=4) == [
        (1043, "1 2"),
        (1044, "0"),
        (1045, "2 1"),
        (1046, "1 0"),
    ]
    five = [str(index) for index in range(5)]
    assert drawn(five, epoch=1, size=2, batches=4) == [(1043, "2 0"), (1044, "3 4"), (1045, "1"), (1046, "3 0")]
    assert drawn(five, epoch=2, size=2, batches=4) == [(2043, "3 0"), (2044, "4 1"), (2045, "2"), (2046, "3 0")]


def test_the_comparison_sample_has_its_own_seed() -> None:
    """Epoch 2 draws with seed 4042."""
    assert comparison_sample(ITEMS, epoch=2, seed=42, count=5) == tuple("67534")


def test_minibatches_are_shuffled_by_the_batch_seed() -> None:
    """Failures by the batch's seed, successes by the next one."""
    assert shuffled(list("012345"), 1043) == list("301524")
    assert shuffled(list("012345"), 1044) == list("054321")


def test_a_first_draw_has_the_seed_of_the_run_and_the_others_one_of_their_own() -> None:
    """Those of recorded runs, which name them."""
    assert [draw_seed(42, draw) for draw in (1, 2, 3)] == [42, 10_000_042, 20_000_042]


def test_groups_hold_every_item_in_order() -> None:
    """The last one has what is left."""
    assert chunks(list("abcde"), 2) == [("a", "b"), ("c", "d"), ("e",)]
    assert chunks([], 2) == []
