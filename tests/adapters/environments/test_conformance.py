"""What our environments keep to beyond the checks that authors of others get (test_kit.py)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.environments import SKILL, data_settings, open_on
from support.kit_cases import MADE, case_of

from skillopt_es.errors import ConfigError
from skillopt_es.testing.environments import Target

CODES = {"", "wrong_answer", "wrong_choice", "near_miss", "format", "no_answer", "refused"}
CODES |= {"exec_error", "no_output", "eval_mismatch", "step_limit"}


@pytest.mark.parametrize("name", sorted(MADE))
def test_every_trajectory_tells_the_whole_story(tmp_path: Path, name: str) -> None:
    """What the target was told and said, the evaluation last; the task is its item's, and a miss has a known code."""
    case = case_of(name)
    environment, splits = case.opened(tmp_path, ["some item"])
    item = splits.train[0]

    async def attempts() -> None:
        for reply in case.replies:
            episode = await environment.attempt(item, SKILL, Target([reply]), seed=1)
            assert episode.failure in CODES
            kinds = [record.kind for record in episode.records]
            assert (kinds[:3], kinds[-1]) == (["system", "user", "reply"], "feedback")
            assert item.id in episode.task

    asyncio.run(attempts())


@pytest.mark.parametrize(
    ("name", "key", "near"), [("tasks", "gradr", "grader"), ("searchqa", "max_turn", "max_turns"), ("tasks", "qq", "")]
)
def test_an_unknown_option_is_refused_with_the_nearest(tmp_path: Path, name: str, key: str, near: str) -> None:
    """The error names the key, and the hint the ones there are."""
    options: dict[str, Any] = {key: 1}
    with pytest.raises(ConfigError, match=f"^env.{key}: environment '{name}' has no such option") as caught:
        open_on(tmp_path, name, data_settings(), **options)
    assert ("did you mean" in caught.value.hint) == bool(near)
    assert near in caught.value.hint
