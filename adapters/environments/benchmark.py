"""What the environments of benchmarks share: one question is put, perhaps checked again, and its answer graded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from attrs import define, frozen

from skillopt_es.adapters.environments.episodes import SystemPrompts
from skillopt_es.events.values import Failed, Measured, SkillTree
from skillopt_es.ports import Ask, ChatReply, EnvironmentSettings, Episode, Message, TrajectoryRecord

Options = TypeVar("Options")


@define
class Talk:
    """What was said so far in one attempt, and how many turns it took."""

    messages: list[Message]
    reply: ChatReply
    turns: int = 1


class Benchmark(Generic[Options]):
    """Its name, its options and its system prompts; `guide` is what analysts are told about its tasks."""

    opens_skills = True
    guide: ClassVar[str]

    def __init__(self, settings: EnvironmentSettings, options: Options, system_prompt: Callable[[str], str]) -> None:
        self.name = settings.name
        self._settings = settings
        self._options = options
        self._systems = SystemPrompts(system_prompt)

    async def aclose(self) -> None:
        """Nothing to give back."""

    def _opening(self, asked: Message, skill: SkillTree) -> list[Message]:
        return [Message("system", self._systems.under(skill)), asked]

    async def _checked(
        self, messages: list[Message], ask: Ask, again: Message, *, most: int, due: Callable[[Talk], bool]
    ) -> Talk:
        """The conversation after at most so many turns: while a further one is due, the target is asked again."""
        most_tokens = self._settings.max_completion_tokens
        talk = Talk(messages, await ask(messages, max_tokens=most_tokens))
        while talk.turns < most and talk.reply.finish in ("stop", "other") and due(talk):
            talk.messages += [Message("assistant", talk.reply.text), again]
            talk.reply = await ask(talk.messages, max_tokens=most_tokens)
            talk.turns += 1
        return talk


def untagged(talk: Talk) -> bool:
    """Whether the last reply has no answer tag."""
    return "<answer>" not in talk.reply.text.lower()


@frozen(kw_only=True)
class Graded:
    """What an answer is worth, why it is not right (a short code and a detail) and what analysts are told of it."""

    hard: float
    soft: float
    why: tuple[str, str]
    said: Sequence[str]
    prediction: str
    answers: tuple[str, ...] = ()

    def episode(self, task: str, records: Sequence[TrajectoryRecord], turns: int) -> Episode:
        """The episode that ends with this grade."""
        failure, detail = self.why
        return Episode(
            outcome=Measured(self.hard, self.soft),
            task=task,
            records=(*records, TrajectoryRecord("feedback", "\n".join(["[EVALUATION RESULT]", *self.said]))),
            turns=turns,
            failure=failure,
            detail=detail,
            prediction=self.prediction,
            answers=self.answers,
        )


def unmeasured(kind: str, why: str, task: str) -> Episode:
    """The episode of an attempt that the world, not the target, kept from its end."""
    return Episode(outcome=Failed(kind, why), task=task, records=(), turns=0, failure=kind, detail=why)
