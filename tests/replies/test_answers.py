"""Replies become typed values; what cannot is refused in words that help the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.replies.answers import read_epoch_text, read_learning_rate, read_ranking
from skillopt_es.replies.json_reader import Unusable


def test_a_ranking_takes_valid_indices_once_up_to_the_budget() -> None:
    """Booleans are no indices; out of range, repeated and surplus ones are dropped."""
    reply = read_ranking('{"selected_indices": [true, 7, 2, 2, -1, 0, "1", 1]}', pool=3, budget=2)
    assert reply.chosen == (2, 0)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ['{"selected_indices": []}', '{"selected_indices": [9]}', '{"selected_indices": 1}', "[0]"]
)
def test_a_ranking_without_a_valid_index_is_unusable(text: str) -> None:
    """There is no silent choice."""
    assert isinstance(read_ranking(text, pool=3, budget=2), Unusable)


def test_advice_must_not_be_empty() -> None:
    """A blank guidance is no guidance."""
    assert isinstance(read_epoch_text('{"k": "  "}', key="k"), Unusable)
    assert isinstance(read_epoch_text('{"k": 5}', key="k"), Unusable)
    assert read_epoch_text('{"k": " do "}', key="k").content == "do"  # type: ignore[union-attr]


@given(st.text())
def test_no_reply_makes_a_reader_raise(text: str) -> None:
    """Whatever a model says is a value or Unusable."""
    read_ranking(text, pool=2, budget=1)
    read_learning_rate(text)
    read_epoch_text(text, key="k")
