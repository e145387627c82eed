"""Whether an endpoint counts the calls that it is asked at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.adapters.models.limits import Seen, ceiling

LEVELS = st.lists(st.integers(1, 64), min_size=32, max_size=32)


@given(LEVELS, st.integers(1, 64))
def test_an_endpoint_that_counts_is_seen_to(levels: list[int], most: int) -> None:
    """What is found lets all through that were let through; with a few of each kind it is found."""
    seen = [Seen(level, level > most) for level in levels]
    refused, found = sum(one.refused for one in seen), ceiling(seen)
    if min(refused, len(seen) - refused) < 4:
        assert found is None
    else:
        assert found is not None
        assert (
            max(one.level for one in seen if not one.refused) <= found < min(one.level for one in seen if one.refused)
        )


@given(LEVELS, st.randoms(use_true_random=False))
def test_what_is_found_explains_nearly_everything(levels: list[int], chance: object) -> None:
    """Refusals by chance are hardly ever taken for a limit, and never for one that explains little."""
    seen = [Seen(level, chance.random() < 0.2) for level in levels]  # type: ignore[attr-defined]
    found = ceiling(seen)
    if found is not None:
        assert sum(one.refused != (one.level > found) for one in seen) <= 0.1 * len(seen) + 1


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_an_endpoint_that_refuses_at_any_level_has_no_ceiling(share: float) -> None:
    """One in twenty, every other, all."""
    seen = [Seen(1 + number % 16, number % 20 < 20 * share) for number in range(0, 320, 7)][:32]
    assert ceiling(seen) is None
