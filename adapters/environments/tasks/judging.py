"""The judge as a grader: a model that reads an answer by a rubric, or compares it with another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.tasks.options import TaskOptions
from skillopt_es.adapters.environments.tasks.rubrics import (
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

_TRIES = 2
Read = Callable[[str, Sequence[Criterion]], Judged]


@frozen(kw_only=True)
class JudgeGrader:
    """Asks the judge about the answers to one item; `other` is the answer that they are compared with."""

    criteria: tuple[Criterion, ...]
    task: Json
    reference: Json
    other: str | None
    instructions: str
    max_tokens: int
    pass_score: float
    schema: Mapping[str, Json] = field(init=False)

    @schema.default
    def _(self) -> Mapping[str, Json]:
        return points_schema(self.criteria) if self.other is None else better_schema(self.criteria)

    async def __call__(self, attempt: Attempt) -> Verdict:
        """What the judge says; raises GraderError where it cannot be asked or understood."""
        if self.other is None:
            asked = points_question(self.criteria, self.instructions, self.task, self.reference, attempt.answer)
            judged = [await self._judged(attempt, asked, read_points)]
        else:
            # In both orders, one after the other: judges like what they read first, and slots are counted in order.
            ahead = await self._compared(attempt, (attempt.answer, self.other))
            behind = await self._compared(attempt, (self.other, attempt.answer))
            judged = [ahead, turned(behind)]
        return verdict_from(self.criteria, judged, self.pass_score)

    async def _compared(self, attempt: Attempt, pair: tuple[str, str]) -> Judged:
        asked = better_question(self.criteria, self.instructions, self.task, self.reference, pair)
        return await self._judged(attempt, asked, read_better)

    async def _judged(self, attempt: Attempt, messages: Sequence[Message], read: Read) -> Judged:
        ask = attempt.ask
        if not isinstance(ask, AsksJudge):
            raise GraderError("nobody is there to judge")
        asked, why, room = list(messages), "", self.max_tokens
        for _ in range(_TRIES):
            try:
                reply = await ask.judge(asked, max_tokens=room, schema=self.schema)
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


def judge_of(raw: RawItem, options: TaskOptions, rubric: tuple[Criterion, ...]) -> JudgeGrader:
    """The judge of an item; raises DataError for an item that has nothing to be judged by."""
    expected, other = raw.fields.get("expected"), None
    if options.compare_with:
        given = raw.fields.get(options.compare_with)
        if not isinstance(given, str) or not given.strip():
            raise raw.refusal(
                f"`{options.compare_with}` must be a text, as env.compare_with says that answers are compared with it",
                f'add "{options.compare_with}": "…"',
            )
        other = given
    reference = None if options.compare_with == "expected" else expected
    if not rubric and expected is None:
        raise raw.refusal("it has neither `expected` nor a `rubric`", "say what a judge is to look for: env.rubric")
    return JudgeGrader(
        criteria=rubric or CORRECT,
        task=raw.fields["input"] if "input" in raw.fields else raw.fields.get("messages"),
        reference=reference,
        other=other,
        instructions=options.judge_instructions,
        max_tokens=options.judge_max_completion_tokens,
        pass_score=PASS_SCORE if other is None else PASS_COMPARED,
    )
