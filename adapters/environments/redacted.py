"""An environment whose words have lost the keys of the run: graders and environments are code that may say any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Unpack

from attrs import evolve, frozen

from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.errors import SkillOptError
from skillopt_es.events.values import Failed, Json, Outcome, SkillTree
from skillopt_es.ports import (
    Answers,
    Ask,
    Asking,
    AskOptions,
    AsksJudge,
    CallFailed,
    ChatReply,
    Elsewhere,
    Environment,
    Episode,
    Hands,
    Item,
    Message,
    Splits,
    TrajectoryRecord,
    can_regrade,
    guide_of,
    judge_calls,
    opens_skills,
    required,
    seen_by_code,
    worked_of,
)


@contextmanager
def without_secrets(clean: Redactor) -> Iterator[None]:
    """Errors that are raised inside quote no secret, nor does what they came from."""
    try:
        yield
    except (SkillOptError, CallFailed) as error:
        message, hint = clean.remark(error.message), clean.remark(error.hint)
        if (message, hint) == (error.message, error.hint):
            raise
        error.message, error.hint, error.args = message, hint, (message,)
        raise error.with_traceback(None) from None
    except Exception as error:
        said = str(error)
        if clean.remark(said) == said:
            raise
        raise RuntimeError(f"{type(error).__name__}: {clean.remark(said)}") from None


class RedactedEnvironment:
    """Another environment, with what it says redacted; what it can do, needs and tells is what it was."""

    def __init__(self, inner: Environment, clean: Redactor) -> None:
        self._inner = inner
        self._clean = clean

    @property
    def name(self) -> str:
        """The registry name."""
        return self._inner.name

    @property
    def requires(self) -> frozenset[str]:
        """What it needs of the target."""
        return required(self._inner)

    @property
    def guide(self) -> str:
        """What it tells analysts: recorded, shown and asked, so it quotes no secret."""
        return self._clean.reply(guide_of(self._inner))

    @property
    def worked(self) -> str:
        """How its accepted answers look as right replies."""
        return worked_of(self._inner)

    @property
    def regrades(self) -> bool:
        """Whether recorded answers can be graded again."""
        return can_regrade(self._inner)

    @property
    def opens_skills(self) -> bool:
        """Whether the target may open skills on the way."""
        return opens_skills(self._inner)

    @property
    def judge_calls(self) -> int:
        """How many questions to the judge one attempt needs."""
        return judge_calls(self._inner)

    def seen_by_code(self, answers: Answers) -> str:
        """Why code behind its walls could read some of these."""
        return self._clean.remark(seen_by_code(self._inner, answers))

    def load(self) -> Splits:
        """The items; notes and errors quote no secret."""
        with without_secrets(self._clean):
            splits = self._inner.load()
        notes, told = (tuple(map(self._clean.remark, said)) for said in (splits.notes, splits.told))
        return evolve(splits, notes=notes, told=told)

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """The same attempt; nothing that is recorded, shown or asked because of it quotes a secret."""
        with without_secrets(self._clean):
            episode = await self._inner.attempt(item, skill, _clean_ask(ask, self._clean), seed=seed)
        return _clean_episode(episode, self._clean)

    async def aclose(self) -> None:
        """Give back processes and files."""
        with without_secrets(self._clean):
            await self._inner.aclose()


class RedactedHands:
    """Attempts made elsewhere, with what is said of them redacted: whoever makes them has no key to know one by."""

    def __init__(self, inner: Hands, clean: Redactor) -> None:
        self._inner = inner
        self._clean = clean

    async def attempt(self, item: Item, skill: SkillTree, asking: Asking, *, seed: int, slot: str) -> Episode:
        """The same attempt, as `RedactedEnvironment` gives it."""

        def clean(elsewhere: Elsewhere | None) -> Ask:
            return _clean_ask(asking(elsewhere), self._clean)

        with without_secrets(self._clean):
            episode = await self._inner.attempt(item, skill, clean, seed=seed, slot=slot)
        return _clean_episode(episode, self._clean)


@frozen
class _CleanAsk:
    """The target, which is not told a secret either: what is asked is recorded."""

    ask: Ask
    clean: Redactor

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        return await self.ask(_told(messages, self.clean), **options)


@frozen
class _CleanJudge(_CleanAsk):
    """The target and the judge, of whom the same holds."""

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        assert isinstance(self.ask, AsksJudge)
        return await self.ask.judge(_told(messages, self.clean), max_tokens=max_tokens, schema=schema)


def _told(messages: Sequence[Message], clean: Redactor) -> list[Message]:
    """The messages as they may be sent."""
    return [evolve(each, content=clean.reply(each.content)) for each in messages]


def _clean_ask(ask: Ask, clean: Redactor) -> Ask:
    """The target, with the judge where it has one."""
    return (_CleanJudge if isinstance(ask, AsksJudge) else _CleanAsk)(ask, clean)


def _clean_episode(episode: Episode, clean: Redactor) -> Episode:
    """What graders and environments themselves say loses pieces, too; texts that others wrote lose whole secrets."""
    return evolve(
        episode,
        outcome=_clean_outcome(episode.outcome, clean),
        task=clean.reply(episode.task),
        records=tuple(_clean_record(each, clean) for each in episode.records),
        failure=clean.remark(episode.failure),
        detail=clean.remark(episode.detail),
        prediction=clean.reply(episode.prediction),
        answers=tuple(map(clean.reply, episode.answers)),
    )


def _clean_outcome(outcome: Outcome, clean: Redactor) -> Outcome:
    return Failed(clean.remark(outcome.kind), clean.remark(outcome.message)) if isinstance(outcome, Failed) else outcome


def _clean_record(record: TrajectoryRecord, clean: Redactor) -> TrajectoryRecord:
    said = clean.remark if record.kind in ("feedback", "tool") else clean.reply
    return TrajectoryRecord(record.kind, said(record.text))
