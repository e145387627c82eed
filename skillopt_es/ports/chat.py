"""Chat models: what one is asked and what it answers, how a call fails or waits, and what a model can do."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from attrs import evolve, field, frozen

from skillopt_es.events.places import Place
from skillopt_es.events.values import Json, SkillTree, Stage, clean_text, digest_of

MessageRole = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tools", "refused", "filtered", "other"]
ImageType = Literal["image/png", "image/jpeg"]
ImageDetail = Literal["auto", "low", "high"]
FailureKind = Literal[
    "config",
    "auth",
    "quota",
    "rate_limit",
    "server",
    "transport",
    "timeout",
    "context_length",
    "empty",
    "invalid_reply",
    "bad_request",
    "crash",
]
SYSTEMIC: frozenset[str] = frozenset({"config", "auth", "quota"})


@frozen
class Tool:
    """Something the model may ask for; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Json]


@frozen
class ToolCall:
    """The model asks for a tool; `arguments` is JSON text as the model wrote it, so it may not parse."""

    id: str = field(converter=clean_text)
    name: str = field(converter=clean_text)
    arguments: str = field(converter=clean_text)


@frozen
class Image:
    """A picture as it is sent; `detail` is how closely the model should look, where its wire format can say that."""

    media_type: ImageType
    data: bytes = field(repr=False)
    detail: ImageDetail = "auto"
    digest: str = field(init=False)

    @digest.default
    def _(self) -> str:
        return digest_of(self.data)


@frozen
class Message:
    """
    One message; an assistant's may ask for tools, a tool's answers the request that `tool_call_id` names.

    A user's may show images, which come after its text; raises ValueError for those of anybody else.
    """

    role: MessageRole
    content: str = field(converter=clean_text)
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    images: tuple[Image, ...] = field(default=(), kw_only=True)

    @images.validator
    def _(self, _attribute: object, images: tuple[Image, ...]) -> None:
        if images and self.role != "user":
            raise ValueError(f"no wire format has images in a message of role {self.role!r}")


@frozen(kw_only=True)
class ChatRequest:
    """
    One question to a model; all but its place (`slot`, `item`, `seed`) and `elsewhere` reaches the wire and is part of
    the request's digest.

    `skill` is what a target works under. The messages show all of it, so that the digest covers it; a model that is an
    agent finds it among its skills instead. An agent is also told `item` and `seed`, which follow from the slot, and
    `fields`, what its item has besides the question.
    `extra` are further fields of OpenAI's format, as an agent has sent them. `elsewhere` is the worker that makes the
    attempt, where an agent is to work there.
    """

    slot: str
    stage: Stage
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    effort: str = ""
    schema: Mapping[str, Json] | None = None
    tools: tuple[Tool, ...] = ()
    extra: Mapping[str, Json] = field(factory=dict)
    tool_choice: str = ""  # auto, none, required or a tool's name; empty: the endpoint's default
    skill: SkillTree | None = None
    item: str = ""
    fields: Mapping[str, Json] = field(factory=dict)
    seed: int = 0
    elsewhere: Elsewhere | None = field(default=None, eq=False, repr=False)


def another_attempt(request: ChatRequest, number: int) -> ChatRequest:
    """The n-th attempt at a question: another draw, with a place of its own for the calls that an agent makes in it."""
    draw = random.Random(f"{request.seed}/{number}")  # noqa: S311 -- a seed, not a secret
    return evolve(request, slot=Place(request.slot).tried(number), seed=draw.getrandbits(32))


@frozen(kw_only=True)
class Usage:
    """Tokens of one call; what the provider did not report is None, never 0."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@frozen(kw_only=True)
class Try:
    """
    One attempt on the wire that did not give the answer, what it used, and how long was waited after it.

    `own_calls`: it is an agent's, which made calls of its own in it; these say what it took.
    """

    kind: str
    status: int | None
    message: str
    waited_ms: int
    usage: Usage = field(factory=Usage)
    own_calls: bool = False


@frozen(kw_only=True)
class Wait:
    """
    Why a call waits before it is sent, or sent again, and for how many seconds at most.

    `holds` says that it has something meanwhile that other calls wait for, such as a slot of the model's own: then it
    keeps its place in the run, too, for it might not get another one before they had what it holds.
    """

    kind: str
    seconds: float
    message: str = ""
    holds: bool = False


class Course(Protocol):
    """What a model asks the run while it makes a call; where the answer is no, it gives up as if after its last try."""

    async def may_try_again(self, failed: Try) -> bool:
        """Whether another try may be made after this one; has to be asked before each. No: a budget is used up."""
        ...

    async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        """
        Sleeps, and says whether it could; no: the run is stopping.

        Every wait before a try goes through here: the run may use the call's place meanwhile, and tell the user.
        """
        ...


class Alone:
    """The course of a call that belongs to no run: nothing limits it."""

    async def may_try_again(self, failed: Try) -> bool:
        """Always."""
        return True

    async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Sleeps to the end."""
        await sleep()
        return True


ALONE = Alone()


StepKind = Literal["message", "reasoning", "command", "file", "tool", "error", "score"]


@frozen(kw_only=True)
class AgentStep:
    """
    One thing that an agent did or said on its way to the answer; `ok` is None where it does not say.

    A `score` is what it says of its own answer: JSON with `hard`, `soft` and perhaps a `note`.
    """

    kind: StepKind
    text: str = field(converter=clean_text)
    output: str = field(default="", converter=clean_text)
    exit_code: int | None = None
    ok: bool | None = None


@frozen(kw_only=True)
class ChatReply:
    """
    What a model answered; `finish` is `tools` when it asks for some before it goes on.

    `cost` is what an agent says that it spent, where it says so. `own_calls`: it is the answer of an agent that made
    calls of its own in this attempt; these say what it took. `truncated` says that the answer ends where the user has
    limited it: it is graded as it stands.
    """

    text: str = field(converter=clean_text)
    finish: FinishReason
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(factory=Usage)
    model: str = ""
    request_id: str = ""
    latency_ms: int = 0
    tries: tuple[Try, ...] = ()
    steps: tuple[AgentStep, ...] = ()
    cost: Decimal | None = None
    own_calls: bool = False
    truncated: bool = False


class CallFailed(Exception):
    """
    The model gave no answer, after all tries that make sense.

    A systemic kind (`SYSTEMIC`) will hit every later call too, so the run pauses; any other is this unit's own failure.
    `perhaps_request` says of a systemic one that it may be about this very request (a plain HTTP 400 or 422): where the
    model answers other questions, it is a `bad_request` and this unit's own. `closed` says of any kind that the
    endpoint takes nobody for longer than the config has patience: systemic, too.
    Let it pass through an environment: the trainer turns it into a failed outcome.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        request_id: str = "",
        hint: str = "",
        latency_ms: int = 0,
        tries: tuple[Try, ...] = (),
        perhaps_request: bool = False,
        closed: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.request_id = request_id
        self.hint = hint
        self.latency_ms = latency_ms
        self.tries = tries
        self.perhaps_request = perhaps_request
        self.closed = closed

    @property
    def systemic(self) -> bool:
        """Whether every later call to this backend would fail the same way."""
        return self.closed or self.kind in SYSTEMIC


class AttemptLost(CallFailed):
    """An agent that worked elsewhere is gone with its worker: what it did may have been paid for, and is done again."""


class NotStarted(BaseException):  # control flow, not an error
    """
    A call was not started because the run is stopping: the job that wanted it has no result.

    Derives from BaseException, so that an environment's `except Exception` cannot turn it into an outcome.
    """


class Unanswered(BaseException):  # control flow, not an error
    """
    So many questions wait for an answer that somebody outside will give: the jobs that asked them have no result yet.

    Derives from BaseException, so that an environment's `except Exception` cannot turn it into an outcome.
    """

    def __init__(self, questions: int = 1) -> None:
        super().__init__(questions)
        self.questions = questions


class Elsewhere(Protocol):
    """The worker that makes an attempt, as the target's agent sees it: it can do its work there."""

    async def answer(self, request: ChatRequest, own: OwnCall | None) -> ChatReply:
        """
        What the agent answers there; the calls that it makes itself, where it may, come back to `own`.

        Raises CallFailed, what `own` has raised, and AttemptLost when the worker is gone.
        """
        ...


OwnCall = Callable[[ChatRequest], Awaitable[ChatReply]]


AnswerFunction = Callable[[ChatRequest], str | ChatReply | Awaitable[str | ChatReply]]
"""A function that is a model: from a request to its answer."""


@runtime_checkable
class ChatModel(Protocol):
    """A model behind some wire format; safe to call concurrently."""

    @property
    def identity(self) -> str:
        """Names wire format, endpoint and model; part of each request's digest, no secret."""
        ...

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The answer, after whatever retries make sense; raises CallFailed."""
        ...

    async def aclose(self) -> None:
        """Give back connections."""
        ...


TEXT_ONLY = frozenset({"text"})


@runtime_checkable
class Able(Protocol):
    """
    A model that says what it can do: text, messages, tools, images, image_detail. One that does not can do text.

    An agent that can do `skills` finds those of a folder among its own, and opens them in its own way.
    """

    @property
    def provides(self) -> frozenset[str]:
        """All of it."""
        ...


@runtime_checkable
class Unbounded(Protocol):
    """A model that may ask another one as often as it likes, as coding agents do: no budget of tokens holds for it."""

    @property
    def unbounded(self) -> bool:
        """Whether it does."""
        ...


def provided(model: ChatModel) -> frozenset[str]:
    """What a model can do."""
    return model.provides if isinstance(model, Able) else TEXT_ONLY


def is_unbounded(model: ChatModel) -> bool:
    """Whether nobody can say how much one question to it comes to."""
    return isinstance(model, Unbounded) and model.unbounded


@runtime_checkable
class Examined(Protocol):
    """A model that can say, before it is asked anything, whether it is there: a program on this machine."""

    async def examine(self) -> str:
        """What is there, with its version; raises CallFailed when it does not run or nobody is signed in."""
        ...


@frozen(kw_only=True)
class Answers:
    """
    Where answers lie on this machine: the `places` themselves, and `around` them folders that may hold copies.

    A folder `around` is hidden as far as the model that they are hidden from needs nothing in it.
    """

    places: tuple[Path, ...]
    around: tuple[Path, ...]


@runtime_checkable
class Isolated(Protocol):
    """A model that may be a program on this machine, which is kept from the keys that are in reach of its user."""

    async def within_reach(self) -> str:
        """What of them it can reach all the same, and why; nothing where there is none."""
        ...


@runtime_checkable
class Onlooker(Protocol):
    """A model that is a program on this machine and reads its files, so that answers have to be hidden from it."""

    async def hide(self, answers: Answers) -> str:
        """From now on it does not see these; returns why that cannot be done, nothing when it is."""
        ...
