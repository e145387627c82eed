"""An environment's own keys become typed options; a wrong one is named with what is allowed."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from attrs import field, frozen
from support.environments import data_settings

from skillopt_es.adapters.environments.options import (
    non_negative_int,
    one_of,
    parsed_by,
    positive_int,
    positive_number,
    read_options,
    text,
    yes_or_no,
)
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json
from skillopt_es.ports import EnvironmentSettings

SETTINGS = partial(
    EnvironmentSettings, name="e", folder="", data=data_settings(), timeout_seconds=1, max_completion_tokens=1
)


@frozen
class Options:
    """One of each kind."""

    name: str = field(default="n", metadata=parsed_by(text))
    loud: bool = field(default=False, metadata=parsed_by(yes_or_no))
    turns: int = field(default=3, metadata=parsed_by(positive_int))
    spare: int = field(default=0, metadata=parsed_by(non_negative_int))
    seconds: float = field(default=1.5, metadata=parsed_by(positive_number))
    way: str = field(default="a", metadata=parsed_by(one_of("a", "b")))


def read(**options: Json) -> Options:
    """The options of an environment."""
    return read_options(Options, SETTINGS(options=options))


def test_what_is_said_counts_and_null_is_the_default() -> None:
    """A whole number is a number of seconds, too."""
    assert read() == Options()
    assert read(name="x", loud=True, turns=1, spare=0, seconds=2, way="b") == Options("x", True, 1, 0, 2.0, "b")
    assert read(turns=None) == Options()


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [("name", 1, "text"), ("loud", 1, "true or false"), ("turns", 0, "at least 1"), ("turns", True, "at least 1"),
     ("spare", -1, "at least 0"), ("seconds", 0, "above 0"), ("seconds", float("inf"), "above 0"),
     ("way", "c", "a, b")],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_what_is_allowed(key: str, value: Any, allowed: str) -> None:
    """By the name of its key."""
    with pytest.raises(ConfigError, match=f"env.{key}: must be .*{allowed}"):
        read(**{key: value})


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    """And all there are."""
    with pytest.raises(ConfigError, match="no such option") as refused:
        read(turn=3)
    assert refused.value.hint is not None
    assert "did you mean env.turns?" in refused.value.hint
