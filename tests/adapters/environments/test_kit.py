"""Our environments pass the checks that we give to authors of others, and a broken one is caught by the right check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from support.environments import OPEN
from support.kit_cases import MADE, case_of

from skillopt_es.events.values import Measured, SkillTree, digest_of
from skillopt_es.ports import (
    Ask,
    CallFailed,
    Environment,
    EnvironmentSettings,
    Episode,
    Item,
    Message,
    Splits,
    TrajectoryRecord,
)
from skillopt_es.sessions.opening import ENVIRONMENTS
from skillopt_es.testing.environments import ENVIRONMENT_CHECKS
from skillopt_es.version import installed_for

# Each script of a workbook is two processes that import openpyxl.
MANY_SCRIPTS = {
    ("spreadsheetbench", "the_same_answers_give_the_same_episodes"),
    ("spreadsheetbench", "every_episode_is_whole"),
}


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case in MANY_SCRIPTS else ())
        for case in product(sorted(MADE), ENVIRONMENT_CHECKS)
    ],
)
def test_our_environments_pass(tmp_path: Path, name: str, check: str) -> None:
    """Each of them each check."""
    ENVIRONMENT_CHECKS[check](case_of(name), tmp_path)


def test_each_of_our_environments_is_checked() -> None:
    """Whatever is registered."""
    assert set(MADE) == set(OPEN) == set(installed_for(ENVIRONMENTS))


@frozen
class Wrapped:
    """An environment with something put in the place of its parts."""

    inner: Environment
    name: str
    loads: Callable[[Splits], Splits] = lambda splits: splits
    attempts: Callable[[Episode], Episode] = lambda episode: episode
    skill: SkillTree | None = None
    hint: str = ""
    swallows: bool = False
    goes_on: bool = False
    writes: Path | None = None

    def load(self) -> Splits:
        return self.loads(self.inner.load())

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        async def asked(messages: Sequence[Message], **options: Any) -> Any:
            return await ask([*messages, *([Message("user", self.hint)] if self.hint else [])], **options)

        if self.writes:
            (self.writes / f"{len(item.id)}.txt").write_text("x")
        if self.goes_on:
            self.__class__.task = asyncio.ensure_future(asyncio.sleep(60))  # type: ignore[attr-defined]
        try:
            return self.attempts(await self.inner.attempt(item, self.skill or skill, asked, seed=seed))
        except CallFailed:
            if not self.swallows:
                raise
            records = (TrajectoryRecord("reply", "none"),)
            return Episode(outcome=Measured(0.0, 0.0), task="", records=records, failure="no_answer")

    async def aclose(self) -> None:
        await self.inner.aclose()


def _splits(**changes: Any) -> Callable[[Splits], Splits]:
    return lambda splits: evolve(splits, **{key: value(splits) for key, value in changes.items()})


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "another name": ("it_knows_its_name", {"name": "mine"}),
    "an item lost": ("items_keep_their_ids_and_order", {"loads": _splits(train=lambda splits: splits.train[1:])}),
    "files left": ("items_keep_their_ids_and_order", {"writes": "folder"}),
    "one digest for all": (
        "data_is_told_apart_by_its_digest",
        {"loads": _splits(digests=lambda _: {split: digest_of(b"") for split in ("train", "val", "test")})},
    ),
    "a score beyond 1": (
        "every_episode_is_whole",
        {"attempts": lambda episode: evolve(episode, outcome=Measured(1.5, 1.0))},
    ),
    "a miss without a code": ("every_episode_is_whole", {"attempts": lambda episode: evolve(episode, failure="")}),
    "no trajectory": ("a_reply_without_an_answer_is_an_episode", {"attempts": lambda each: evolve(each, records=())}),
    "chance": (
        "the_same_answers_give_the_same_episodes",
        {"attempts": lambda episode: evolve(episode, detail=str(id(episode)))},
    ),
    "no skill": ("the_skill_is_put_before_the_target", {"skill": SkillTree({"SKILL.md": "# Another\n"})}),
    "the answer told": ("no_accepted_answer_reaches_the_target", {"hint": "Think of tungsten."}),
    "an outage scored": ("what_the_trainer_must_know_passes_through", {"swallows": True}),
    "a task left": ("a_cancelled_attempt_leaves_nothing", {"goes_on": True}),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_environment_is_caught(tmp_path: Path, fault: str) -> None:
    """By the check that is about its fault."""
    check, parts = BROKEN[fault]
    case = case_of("tasks")

    def opened(settings: EnvironmentSettings) -> Environment:
        changes = {**parts, **({"writes": Path(settings.folder)} if "writes" in parts else {})}
        return Wrapped(**{"inner": case.open(settings), "name": settings.name, **changes})

    with pytest.raises(AssertionError) as caught:
        ENVIRONMENT_CHECKS[check](evolve(case, open=opened), tmp_path)
    assert str(caught.value)


def test_an_option_that_is_ignored_is_caught(tmp_path: Path) -> None:
    """A typing error in a config would go unnoticed."""
    case = case_of("tasks")
    lenient = evolve(case, open=lambda settings: case.open(evolve(settings, options={})))
    with pytest.raises(AssertionError, match="no_such_option is ignored"):
        ENVIRONMENT_CHECKS["an_unknown_option_is_refused"](lenient, tmp_path)
