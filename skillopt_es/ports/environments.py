"""Environments: items, one attempt at one of them, and what a benchmark may say of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypedDict, Unpack, runtime_checkable

from attrs import field, frozen

from skillopt_es.events.values import Json, Outcome, SkillTree, Trust, clean_text
from skillopt_es.ports.chat import TEXT_ONLY, Answers, ChatReply, Message, Tool

GraderFunction = Callable[[str, dict[str, Json]], object]
"""A function that grades: from an answer and its item to a bool, a number from 0 to 1, or hard, soft and note."""

RecordKind = Literal["system", "user", "reply", "tool", "feedback"]


@frozen
class TrajectoryRecord:
    """One thing the agent saw or did."""

    kind: RecordKind
    text: str = field(converter=clean_text)


class Item(Protocol):
    """One scored task."""

    @property
    def id(self) -> str:
        """Unique within the data, as text."""
        ...

    @property
    def task_type(self) -> str:
        """A name to group scores by; empty when there is only one."""
        ...


@runtime_checkable
class TellsAgents(Protocol):
    """An item with fields that an agent gets besides what is asked; never one that its grader goes by."""

    @property
    def fields(self) -> Mapping[str, Json]:
        """Each by its name."""
        ...


def told_agents(item: Item) -> Mapping[str, Json]:
    """What an agent gets of an item besides what is asked."""
    return item.fields if isinstance(item, TellsAgents) else {}


@frozen(kw_only=True)
class Episode:
    """
    The result of one attempt at an item; a failure `code` is short and stable, `detail` says more.

    `answers` are the accepted answers as texts, where there are any: no edit may put one beside its question. An
    attempt that met texts from outside the data, such as pages of the web, is `untrusted`: their authors may want
    something of whoever reads them.
    """

    outcome: Outcome
    task: str
    records: tuple[TrajectoryRecord, ...]
    turns: int = 1
    failure: str = ""
    detail: str = ""
    prediction: str = ""
    answers: tuple[str, ...] = ()
    trust: Trust = "trusted"


@frozen
class Splits:
    """
    The items of a run, in file order, and notes about the data worth keeping; `told` says how they were read.

    `untrusted` are the ids of items whose own text nobody vouches for. `inputs` are digests of what is asked, by id:
    two items with the same one are the same task under two names.
    """

    train: Sequence[Item]
    val: Sequence[Item]
    test: Sequence[Item]
    digests: Mapping[str, str]
    notes: tuple[str, ...] = ()
    untrusted: frozenset[str] = frozenset()
    inputs: Mapping[str, str] = field(factory=dict)
    told: tuple[str, ...] = ()


class AskOptions(TypedDict, total=False):
    """What may be asked for beside the messages; by default the config's length, and no tools."""

    max_tokens: int | None
    tools: Sequence[Tool]
    tool_choice: str


class Ask(Protocol):
    """The target model, bound to one unit of work: journaled, limited, asked again when its reply was cut."""

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        """The target's answer; a recorded one costs nothing. With tools it may ask for some of them first."""
        ...


@runtime_checkable
class AsksJudge(Protocol):
    """An `ask` through which the run's judge can be asked, too: journaled, limited and priced like the target."""

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        """The judge's reply, by a JSON schema where its endpoint takes one; raises CallFailed."""
        ...


@runtime_checkable
class Environment(Protocol):
    """A benchmark: items, how a skill is put before the target, and how an answer is graded."""

    @property
    def name(self) -> str:
        """The registry name."""
        ...

    def load(self) -> Splits:
        """The items; raises DataError with file, line and what to do."""
        ...

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """
        Try one item under one skill and grade the answer; lets CallFailed pass.

        Whatever is drawn for an attempt (the order of choices) is drawn from the seed, which is its batch's.
        """
        ...

    async def aclose(self) -> None:
        """Give back processes and files."""
        ...


@runtime_checkable
class Walled(Protocol):
    """An environment that runs code behind walls, through which some of this machine's files are to be read."""

    def seen_by_code(self, answers: Answers) -> str:
        """Why that code could read some of these; nothing when it cannot, or may do what it likes by the config."""
        ...


@runtime_checkable
class Demanding(Protocol):
    """An environment that says what it needs of the target, in the words of `Able`. One that does not needs text."""

    @property
    def requires(self) -> frozenset[str]:
        """All of it."""
        ...


@runtime_checkable
class Guiding(Protocol):
    """An environment that tells analysts of its tasks."""

    @property
    def guide(self) -> str:
        """What a run records when it starts, and analysts are shown."""
        ...


@runtime_checkable
class Working(Protocol):
    """An environment whose accepted answers, put in a certain form, are right replies: its items can be examples."""

    @property
    def worked(self) -> str:
        """That form, with `{answer}` in it."""
        ...


@runtime_checkable
class Regrading(Protocol):
    """An environment that says whether a recorded answer is all that its grade depends on."""

    @property
    def regrades(self) -> bool:
        """Whether answers can be graded again from the log alone. One that does not say is taken to act in a world."""
        ...


@runtime_checkable
class Judging(Protocol):
    """An environment that asks the run's judge."""

    @property
    def judge_calls(self) -> int:
        """How many questions to it one attempt needs as a rule; known once the items are loaded."""
        ...


def judge_calls(environment: Environment) -> int:
    """How many questions to a judge one attempt needs; one that does not say asks none."""
    return environment.judge_calls if isinstance(environment, Judging) else 0


@runtime_checkable
class Opening(Protocol):
    """
    An environment that says whether the target may open skills while it attempts an item.

    It may where `ask` is all that stands between the two: the trainer then offers the tools and answers them, and the
    environment sees the replies that ask for none. One that does not say is taken to show a skill in its own way.
    """

    @property
    def opens_skills(self) -> bool:
        """Whether it may."""
        ...


def opens_skills(environment: Environment) -> bool:
    """Whether a target may open skills while it attempts an item."""
    return isinstance(environment, Opening) and environment.opens_skills


def required(environment: Environment) -> frozenset[str]:
    """What an environment needs of the target."""
    return environment.requires if isinstance(environment, Demanding) else TEXT_ONLY


def guide_of(environment: Environment) -> str:
    """What an environment tells analysts of its tasks; nothing where it does not say."""
    return environment.guide if isinstance(environment, Guiding) else ""


def worked_of(environment: Environment) -> str:
    """How an accepted answer looks as a right reply; empty where the environment does not say."""
    return environment.worked if isinstance(environment, Working) else ""


def can_regrade(environment: Environment) -> bool:
    """Whether recorded answers can be graded again."""
    return isinstance(environment, Regrading) and environment.regrades


def seen_by_code(environment: Environment, answers: Answers) -> str:
    """Why code behind an environment's walls could read some of these; nothing where it cannot, or there is none."""
    return environment.seen_by_code(answers) if isinstance(environment, Walled) else ""
