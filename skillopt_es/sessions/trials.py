"""Trying the grader before a run: answers that are made up, for an item of each type, without any model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout

from attrs import frozen

from skillopt_es.events.values import Failed, SkillTree
from skillopt_es.ports import ChatReply, Environment, Episode, Item, Message, Splits, Tool

_MADE_UP = "42"
_MOST_ITEMS = 5
_SECONDS = 120.0
_NO_SKILL = SkillTree({"SKILL.md": "\n"})


@frozen
class _Says:
    """A target that gives one answer, whatever it is asked."""

    text: str

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: str = "",
    ) -> ChatReply:
        return ChatReply(text=self.text, finish="stop")


async def why_not_graded(environment: Environment, splits: Splits) -> str:
    """Why an answer to one of these items gets no grade; nothing when all do."""
    for item in _one_of_each_type(splits):
        try:
            with redirect_stdout(sys.stderr):  # what a grader prints is none of the caller's output
                why = await asyncio.wait_for(_tried(environment, item), _SECONDS)
        except TimeoutError:
            why = f"no grade came within {_SECONDS:g} seconds"
        except Exception as error:  # noqa: BLE001 - whatever somebody's environment raises is what is wrong with it
            why = f"{type(error).__name__}: {error}"
        if why:
            return f"item {item.id!r}: {why}"
    return ""


def _one_of_each_type(splits: Splits) -> Iterator[Item]:
    """Items that are used for training; each type of tasks may have its own fields."""
    seen: set[str] = set()
    for item in (*splits.train, *splits.val):
        if item.task_type not in seen and len(seen) < _MOST_ITEMS:
            seen.add(item.task_type)
            yield item


async def _tried(environment: Environment, item: Item) -> str:
    """Why a wrong or a right answer to an item has no grade; nothing when both have one."""
    episode = await _attempt(environment, item, _MADE_UP)
    if not isinstance(episode.outcome, Failed) and episode.answers:
        episode = await _attempt(environment, item, episode.answers[0])
    return episode.outcome.message if isinstance(episode.outcome, Failed) else ""


async def _attempt(environment: Environment, item: Item, answer: str) -> Episode:
    return await environment.attempt(item, _NO_SKILL, _Says(answer), seed=0)
