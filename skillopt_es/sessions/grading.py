"""
`doctor --grade`: what the grader says of answers that cost nothing, and how far a judge agrees with itself.

For an item of each type it grades the expected answer, none, a wrong one (what another item expects) and, where a
judge grades, half of the expected one: that is where judges waver. Nothing is recorded: this is before any run.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Literal, Unpack

from attrs import define, frozen

from skillopt_es.config import RunConfig
from skillopt_es.counting import counted
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.places import checked
from skillopt_es.events.values import Failed, Json, Measured, Outcome
from skillopt_es.ports import (
    AgentStep,
    AskOptions,
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    Environment,
    Item,
    Message,
    Splits,
)
from skillopt_es.sessions.checks import MADE_UP, NO_SKILL, Check, one_of_each_type, problem
from skillopt_es.sessions.opening import open_environment, open_model
from skillopt_es.sessions.wiring import judging_roles

REPEATS = 3  # the fewest that tell a judge who wavers from one who slipped; each is paid for
_MOST_TYPES = 12  # one item of each type: with more types a trial costs as much as a step
_SECONDS = 300.0  # a judge may think, and wait for its endpoint's limits
_SURE = 1e-9  # above what rounding makes of equal grades

Kind = Literal["expected", "empty", "wrong", "half"]
_WORDS: Mapping[Kind, str] = {"expected": "expected answer", "empty": "none", "wrong": "wrong", "half": "half of it"}


@define
class _Says:
    """A target that gives one answer, and the judge beside it, whose calls are counted."""

    config: RunConfig
    text: str
    judge_model: ChatModel | None
    asked: int = 0

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        return ChatReply(text=self.text, finish="stop", steps=(AgentStep(kind="score", text='{"hard":0,"soft":0}'),))

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        if self.judge_model is None:
            raise CallFailed("config", "no judge was opened")
        self.asked += 1
        role = self.config.judge_model
        request = ChatRequest(
            slot=checked("judge").turn(self.asked),
            stage="judge",
            messages=tuple(messages),
            max_tokens=max_tokens,
            temperature=role.temperature,
            effort=role.reasoning_effort,
            schema=schema,
        )
        return await self.judge_model.complete(request)


@frozen(kw_only=True)
class _Graded:
    """What one answer to an item was given, each time that it was graded."""

    item: str
    task_type: str
    kind: Kind
    outcomes: tuple[Outcome, ...]
    calls: int

    @property
    def measured(self) -> list[Measured]:
        return [each for each in self.outcomes if isinstance(each, Measured)]

    @property
    def said(self) -> str:
        """All of it, in words."""
        failed = next((each for each in self.outcomes if isinstance(each, Failed)), None)
        if failed is not None:
            return f"no grade ({failed.message})"
        return ", ".join(dict.fromkeys(f"{each.hard:g}/{each.soft:.2f}" for each in self.measured))


async def grades(config: RunConfig, environ: Mapping[str, str]) -> AsyncIterator[Check]:
    """What the grader says, item by item, and what is to be made of it."""
    try:
        environment = open_environment(config, environ)
    except SkillOptError as error:
        yield problem("grade", error)
        return
    judge: ChatModel | None = None
    try:
        splits = environment.load()
        if judging_roles(config, environment):
            judge = open_model(config, "judge", environ)
        async for check in _all(config, environment, splits, judge):
            yield check
    except SkillOptError as error:
        yield problem("grade", error)
    finally:
        await environment.aclose()
        if judge is not None:
            await judge.aclose()


async def _all(
    config: RunConfig, environment: Environment, splits: Splits, judge: ChatModel | None
) -> AsyncIterator[Check]:
    items = list(one_of_each_type(splits, _MOST_TYPES))
    known = {item.id: await _expected(config, environment, item) for item in (*items, *splits.train[:_MOST_TYPES])}
    found: list[_Graded] = []
    for item in items:
        answers = list(_answers(item, known, judge))
        # What a grader prints is none of the caller's output; one redirection for all, as they overlap.
        with redirect_stdout(sys.stderr):
            rows = await asyncio.gather(
                *(_graded(config, environment, item, kind, text, judge) for kind, text in answers)
            )
        found += rows
        for check in _verdicts(item, rows):
            yield check
    if judge is not None:
        yield _own_noise(config, found)


async def _expected(config: RunConfig, environment: Environment, item: Item) -> str:
    """The answer that an item accepts; empty where it does not say one as a text."""
    said = getattr(item, "expected_answer", None)
    if isinstance(said, str):
        return said
    # Environments of one's own say it in what they make of an attempt.
    episode = await environment.attempt(item, NO_SKILL, _Says(config, MADE_UP, None), seed=0)
    return episode.answers[0] if episode.answers else ""


def _answers(item: Item, known: Mapping[str, str], judge: ChatModel | None) -> Iterator[tuple[Kind, str]]:
    right = known[item.id]
    yield "empty", ""
    yield "wrong", next((text for text in known.values() if text and text != right), MADE_UP)
    if right:
        yield "expected", right
        words = right.split()
        if judge is not None and len(words) > 1:
            yield "half", " ".join(words[: len(words) // 2])


async def _graded(
    config: RunConfig, environment: Environment, item: Item, kind: Kind, text: str, judge: ChatModel | None
) -> _Graded:
    ask = _Says(config, text, judge)
    outcomes = []
    for _ in range(1 if judge is None or kind == "empty" else REPEATS):
        outcomes.append(await _outcome(environment, item, ask))
        if isinstance(outcomes[-1], Failed):
            break  # whatever it is, paying for it again does not help
    return _Graded(item=item.id, task_type=item.task_type, kind=kind, outcomes=tuple(outcomes), calls=ask.asked)


async def _outcome(environment: Environment, item: Item, ask: _Says) -> Outcome:
    try:
        episode = await asyncio.wait_for(environment.attempt(item, NO_SKILL, ask, seed=0), _SECONDS)
    except TimeoutError:
        return Failed("grader", f"no grade came within {_SECONDS:g} seconds")
    except Exception as error:  # noqa: BLE001 - whatever somebody's environment raises is what is wrong with it
        return Failed("grader", f"{type(error).__name__}: {error}")
    return episode.outcome


def _verdicts(item: Item, rows: Sequence[_Graded]) -> Iterator[Check]:
    """One line for each type, and a problem for each answer whose grade cannot be right."""
    kind = f" ({item.task_type})" if item.task_type else ""
    said = "; ".join(f"{_WORDS[row.kind]} {row.said}" for row in rows)
    yield Check("grade", "ok", f"{item.id}{kind}: {said}")
    by_kind = {row.kind: row for row in rows}
    for row in rows:
        if any(isinstance(each, Failed) for each in row.outcomes):
            fix = "fix this first: until then, no answer like this gets a score"
            yield Check("grade", "problem", f"{item.id}: {_WORDS[row.kind]}: {row.said}", fix)
    expected = by_kind.get("expected")
    if expected is not None and any(each.hard < 1 for each in expected.measured):
        fix = "look at `expected`, the grader and env.pass_score: nobody can solve what its own answer does not"
        yield Check("grade", "problem", f"{item.id}: the expected answer is not always solved ({expected.said})", fix)
    for name in ("empty", "wrong"):
        row = by_kind[name]
        if any(each.hard >= 1 for each in row.measured):
            fix = "a grader that takes this teaches nothing, unless it happens to be right for this item"
            yield Check("grade", "warning", f"{item.id}: {_WORDS[row.kind]} answer counts as solved", fix)


def _own_noise(config: RunConfig, rows: Sequence[_Graded]) -> Check:
    """How far the grades of one answer lie apart, in what the gate compares."""
    evaluation = config.evaluation
    weight = {"hard": 0.0, "soft": 1.0}.get(evaluation.gate_metric, evaluation.gate_mixed_weight)
    repeated = [row for row in rows if len(row.measured) > 1]
    calls = sum(row.calls for row in rows)
    if not repeated:
        return Check("judge", "warning", "its noise is not known: no answer was graded twice", "see the problems above")
    scatters = [_scatter([(1 - weight) * each.hard + weight * each.soft for each in row.measured]) for row in repeated]
    noise = math.sqrt(math.fsum(scatters) / len(scatters))
    turned = sum(len({each.hard for each in row.measured}) > 1 for row in repeated)
    said = (
        f"its noise is {noise:.3f} (standard deviation of one {evaluation.gate_metric} grade; "
        f"{counted(len(repeated), 'answer')}, {REPEATS} times each, {counted(calls, 'call')}); "
        f"{turned} turned between solved and not"
    )
    if noise > evaluation.judge_noise + _SURE:
        fix = f"set evaluation.judge_noise: {math.ceil(noise * 1000) / 1000:g}, so that the gate takes no gain for more"
        return Check("judge", "warning", said, fix)
    return Check("judge", "ok", said)


def _scatter(values: Sequence[float]) -> float:
    middle = math.fsum(values) / len(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
