"""Semantic density: directive words over all words, protected blocks left out."""

from __future__ import annotations

import pytest

from skillopt_es.skill.density import semantic_density
from skillopt_es.skill.regions import SLOW_END, SLOW_START


@pytest.mark.parametrize(
    ("text", "density"),
    [
        ("", 0.0),
        ("  \n", 0.0),
        ("plain words here now", 0.0),
        ("You MUST answer. Never guess!", 0.4),
        ("must-have", 0.5),
        (f"only this\n{SLOW_START}\nMUST MUST MUST\n{SLOW_END}\n", 0.5),
        (f"only this\n{SLOW_START}\nnever closed MUST", 0.5),
    ],
)
def test_density_is_the_share_of_leading_words(text: str, density: float) -> None:
    """Whole words in any case."""
    assert semantic_density(text) == pytest.approx(density)


def test_other_words_may_lead() -> None:
    """The configured list replaces the built-in one."""
    assert semantic_density("must be brief", ["brief"]) == pytest.approx(1 / 3)
