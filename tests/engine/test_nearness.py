"""How near a wrong answer came to a right one."""

import pytest

from skillopt_es.engine.attempts import nearness


@pytest.mark.parametrize(
    ("said", "accepted", "near"),
    [
        ("B1-PH", ["B2-PH"], 0.8),
        (" B1-PH\n", ["nothing like it", "B2-PH"], 0.8),
        ("The code is unknown", ["B2-PH"], 0.0),
        ("", ["B2-PH"], 0.0),
        ("B2-PH", ["B2-PH"], 0.99),
        ("B2-PH", [], None),
    ],
    ids=[
        "one sign is wrong",
        "the nearest counts",
        "another form",
        "nothing said",
        "equal, yet wrong",
        "none known",
    ],
)
def test_a_wrong_answer_is_held_against_the_accepted_ones(said: str, accepted: list[str], near: float | None) -> None:
    """It is a hint: even one that reads the same is not right, for the grade has said so."""
    assert nearness(said, accepted) == near


def test_long_texts_are_compared_by_their_beginning() -> None:
    assert nearness("x" * 1_000 + "y" * 100_000, ["x" * 1_000 + "z" * 100_000]) == 0.99
