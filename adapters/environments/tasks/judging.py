"""The judge: a model that reads an answer by a rubric, or compares two of them; and the grader that asks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.tasks.options import TaskOptions
from skillopt_es.adapters.environments.tasks.rubrics import (
    BETTER,
    CORRECT,
    PASS_COMPARED,
    PASS_SCORE,
    Criterion,
    Judged,
    better_question,
    better_schema,
    points_question,
    points_schema,
    read_better,
    read_points,
    turned,
    verdict_from,
)
from skillopt_es.adapters.environments.tasks.verdicts import Attempt, GraderError, Verdict
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import UNREADABLE, Json
from skillopt_es.ports import AsksJudge, CallFailed, Message

_TRIES = 2  # the second one says what was wrong; a judge that fails again is not worth a third call
Read = Callable[[str, Sequence[Criterion]], Judged]


@frozen(kw_only=True)
class Judge:
    """Asks the judge about answers to one item."""

    criteria: tuple[Criterion, ...]
    task: Json
    reference: Json
    instructions: str
    max_tokens: int

    async def points(self, ask: object, answer: str) -> list[Judged]:
        """What it makes of one answer; raises GraderError where it cannot be asked or understood."""
        asked = points_question(self.criteria, self.instructions, self.task, self.reference, answer)
        return [await self._judged(ask, asked, read_points, points_schema(self.criteria))]

    async def better(self, ask: object, answer: str, other: str) -> list[Judged]:
        """How far the answer is better than the other one; raises the same."""
        # In both orders, one after the other: judges like what they read first, and slots are counted in order.
        ahead = await self._compared(ask, (answer, other))
        behind = await self._compared(ask, (other, answer))
        return [ahead, turned(behind)]

    async def _compared(self, ask: object, pair: tuple[str, str]) -> Judged:
        asked = better_question(self.criteria, self.instructions, self.task, self.reference, pair)
        return await self._judged(ask, asked, read_better, better_schema(self.criteria))

    async def _judged(self, ask: object, messages: Sequence[Message], read: Read, schema: Mapping[str, Json]) -> Judged:
        if not isinstance(ask, AsksJudge):
            raise GraderError("nobody is there to judge")
        asked, why, room = list(messages), "", self.max_tokens
        for _ in range(_TRIES):
            try:
                reply = await ask.judge(asked, max_tokens=room, schema=schema)
            except CallFailed as failure:
                raise GraderError(f"the judge gave no answer ({failure.kind}): {failure.message}") from failure
            try:
                return read(reply.text, self.criteria)
            except ValueError as error:
                cut = reply.finish == "length"
                why, room = ("it was cut off", 2 * room) if cut else (str(error), room)
                said = [Message("assistant", reply.text)] if reply.text else []
                asked = [*messages, *said, Message("user", f"That cannot be read: {why}. Reply with the JSON alone.")]
        raise GraderError(f"the judge's reply cannot be read: {shorten(why, 300)}", code=UNREADABLE)


@frozen(kw_only=True)
class JudgeGrader:
    """Grades by what the judge says; `other` is an answer that all answers are compared with."""

    judge: Judge
    other: str | None
    pass_score: float

    async def __call__(self, attempt: Attempt) -> Verdict:
        """The judge's verdict; raises GraderError where it cannot be asked or understood."""
        if self.other is None:
            judged = await self.judge.points(attempt.ask, attempt.answer)
        else:
            judged = await self.judge.better(attempt.ask, attempt.answer, self.other)
        return verdict_from(self.judge.criteria, judged, self.pass_score)


def judge_of(raw: RawItem, options: TaskOptions, rubric: tuple[Criterion, ...]) -> Judge:
    """Who is asked about an item's answers: by its rubric, its reference, or else by what it asks for."""
    expected = raw.fields.get("expected")
    return Judge(
        criteria=rubric or (BETTER if expected is None else CORRECT),
        task=raw.fields["input"] if "input" in raw.fields else raw.fields.get("messages"),
        reference=None if options.compare_with == "expected" else expected,
        instructions=options.judge_instructions,
        max_tokens=options.judge_max_completion_tokens,
    )


def judge_grader(raw: RawItem, options: TaskOptions, rubric: tuple[Criterion, ...]) -> JudgeGrader:
    """The judge as an item's grader; raises DataError for an item that has nothing to be judged by."""
    other = None
    if options.compare_with:
        given = raw.fields.get(options.compare_with)
        if not isinstance(given, str) or not given.strip():
            raise raw.refusal(
                f"`{options.compare_with}` must be a text, as env.compare_with says that answers are compared with it",
                f'add "{options.compare_with}": "…"',
            )
        other = given
    if not rubric and raw.fields.get("expected") is None:
        raise raw.refusal("it has neither `expected` nor a `rubric`", "say what a judge is to look for: env.rubric")
    return JudgeGrader(
        judge=judge_of(raw, options, rubric), other=other, pass_score=PASS_SCORE if other is None else PASS_COMPARED
    )
