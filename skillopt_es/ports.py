"""
The doors to the world: what the trainer asks of models, environments, executors and clocks.

The trainer knows nothing else about them; adapters implement these Protocols and are opened by `sessions/opening.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Generic, Literal, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, runtime_checkable

from attrs import field, frozen

from skillopt_es.events.codec import clean_text
from skillopt_es.events.values import Json, Outcome, Role, SkillTree, Stage, Trust, digest_of

T = TypeVar("T")
P = ParamSpec("P")

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
Thinking = Literal["server_default", "enabled", "disabled", "adaptive"]
AuthMode = Literal["auto", "api_key", "azure_cli", "managed_identity", "workload_identity", "service_principal"]
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
    One question to a model; all but its place (`slot`, `item`, `seed`), `further` and `rest` reaches the wire and is
    part of the request's digest.

    A model that tries more than once has to ask `further` with each failed try before the next one: where the answer is
    no, a budget is used up, and it gives up as if that had been its last try. Where it waits before a try, for whatever
    reason, it does so through `rest`: the run may use the call's place meanwhile, and tell the user.
    `skill` is what a target works under. The messages show all of it, so that the digest covers it; a model that is an
    agent finds it among its skills instead. An agent is also told `item` and `seed`, which follow from the slot, and
    `fields`, what its item has besides the question.
    `extra` are further fields of OpenAI's format, as an agent has sent them.
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
    further: Further | None = field(default=None, eq=False, repr=False)
    rest: Rest | None = field(default=None, eq=False, repr=False)


@frozen(kw_only=True)
class Usage:
    """Tokens of one call; what the provider did not report is None, never 0."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@frozen(kw_only=True)
class Try:
    """One attempt on the wire that did not give the answer, what it used, and how long was waited after it."""

    kind: str
    status: int | None
    message: str
    waited_ms: int
    usage: Usage = field(factory=Usage)


Further = Callable[[Try], Awaitable[bool]]


async def may_try_again(request: ChatRequest, failed: Try) -> bool:
    """Whether there is something left for another try of a question after this one."""
    return request.further is None or await request.further(failed)


@frozen(kw_only=True)
class Wait:
    """
    Why a call waits before it is sent, or sent again, and for how many seconds at most.

    `holds` says that it has something meanwhile that other calls wait for (a slot of the model's own): then it keeps
    its place in the run, too, for it might not get another one before they had what it holds.
    """

    kind: str
    seconds: float
    message: str = ""
    holds: bool = False


Rest = Callable[[Wait, Callable[[], Awaitable[object]]], Awaitable[bool]]


async def rest(request: ChatRequest, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
    """Has a call sleep; false when the run is stopping, and the call gives up as if its last try had been made."""
    if request.rest is not None:
        return await request.rest(wait, sleep)
    await sleep()
    return True


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
class SkillFiles:
    """The skill as an agent gets it: all of its `text`, and its files by their paths, which also lie in `folder`."""

    text: str
    main: str
    files: Mapping[str, str]
    folder: str


@frozen(kw_only=True)
class Gateway:
    """Where an agent may ask the run's model, in OpenAI's format; the key is this attempt's alone."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


@frozen(kw_only=True)
class AgentTask:
    """
    One attempt, as an agent of the user's gets it.

    `task` is the last thing that is asked, `instructions` what stands before it but for the skill. `messages` are what
    a chat model would be sent, the skill among them. `fields` are those of the item that `env.agent_fields` names.
    With the same `seed` an attempt should be the same.
    """

    item: str
    task: str
    instructions: str
    messages: tuple[Message, ...]
    skill: SkillFiles
    seed: int
    deadline_seconds: float
    fields: Mapping[str, Json] = field(factory=dict)
    gateway: Gateway | None = None


@frozen(kw_only=True)
class ChatReply:
    """
    What a model answered; `finish` is `tools` when it asks for some before it goes on.

    `cost` is what an agent says that it spent, where it says so.
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


HANDED_OVER = "python"
"""The backend of a model that a Python caller handed over: a log has its name, and no config can name it."""
AnswerFunction = Callable[[ChatRequest], str | ChatReply | Awaitable[str | ChatReply]]
"""A function that is a model: from a request to its answer."""
GraderFunction = Callable[[str, dict[str, Json]], object]
"""A function that grades: from an answer and its item to a bool, a number from 0 to 1, or hard, soft and note."""


@runtime_checkable
class ChatModel(Protocol):
    """A model behind some wire format; safe to call concurrently."""

    @property
    def identity(self) -> str:
        """Names wire format, endpoint and model; part of each request's digest, no secret."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
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


class OwnCalls(Protocol):
    """Where the calls go that an agent makes itself: each is journaled, priced and limited like any other."""

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The answer to a question of the attempt at `request.slot`; raises what a call of that model raises."""
        ...

    def over(self, slot: str) -> None:
        """The attempt at this slot asks no more."""
        ...


@runtime_checkable
class Fronting(Protocol):
    """An agent that asks a model through the run: what it spends is spent by its calls, never by itself."""

    @property
    def upstream(self) -> ChatModel:
        """The model that it asks."""
        ...

    def route(self, calls: OwnCalls) -> None:
        """From now on its calls go there."""
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
class Onlooker(Protocol):
    """A model that is a program on this machine and reads its files, so that answers have to be hidden from it."""

    async def hide(self, answers: Answers) -> str:
        """From now on it does not see these; returns why that cannot be done, nothing when it is."""
        ...


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
    The items of a run, in file order, and notes about the data worth keeping.

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


class Notifier(Protocol):
    """A way to tell somebody outside that a run or a sweep has paused or ended."""

    def tell(self, notice: Mapping[str, Json]) -> str:
        """Hands the notice over; why that failed, or nothing. It never raises: the run has ended already."""
        ...


AsyncCall = Callable[[], Awaitable[T]]


Asking = Callable[[], Ask]
"""The target for one try of an attempt, counting from its first question; what an earlier try was answered is known."""


class Hands(Protocol):
    """Whoever makes attempts: this process, or workers elsewhere."""

    async def attempt(self, item: Item, skill: SkillTree, asking: Asking, *, seed: int, slot: str) -> Episode:
        """
        What `Environment.attempt` gives, made wherever; `slot` names the attempt among all of the run.

        `asking` gives the target, anew for each try. It is asked in this process alone, which has keys, limits, journal
        and budget. What it raises, an environment elsewhere meets, too, and what an attempt raises is raised here.
        """
        ...


@frozen(kw_only=True)
class Workplace:
    """
    What attempts are made with: the `environment` that is open here, and what opens the same one elsewhere.

    `digests` are those of the items of each split; `software` is what this process runs.
    """

    environment: Environment
    settings: EnvironmentSettings
    digests: Mapping[str, str]
    software: str


class Executor(Protocol):
    """Runs many jobs at once and hands results back in the order of the plan; knows who makes the attempts in them."""

    def stream(self, jobs: Sequence[AsyncCall[T]], *, workers: int) -> AsyncGenerator[list[T], None]:
        """Results in the jobs' order, in lists as the next ones become ready; at most `workers` run at once."""
        ...

    def hands(self, workplace: Workplace) -> Hands:
        """Who makes attempts in this environment; nothing is started before the first one."""
        ...

    async def aclose(self) -> None:
        """Give back whoever works elsewhere; what is under way there is lost."""
        ...


@runtime_checkable
class ChecksFirst(Protocol):
    """An executor that can tell, before a run begins, that nobody could ever make its attempts."""

    async def check(self) -> None:
        """Raises ConfigError or BackendError where that is so."""
        ...


@frozen(kw_only=True)
class ExecutorSettings:
    """
    What an executor is given.

    Once `stopping` answers true no further job begins. `workers` is how many attempts may be made at once; `options`
    are those of the config's section with the executor's name. `secrets` names the environment variables that hold
    the models' keys, which nobody elsewhere may see. `warn` tells the user something that is worth knowing.
    """

    stopping: Callable[[], bool]
    workers: int
    options: Mapping[str, Json]
    secrets: frozenset[str] = frozenset()
    warn: Callable[[str], None] = lambda message: None


@frozen(kw_only=True)
class AgentSettings:
    """
    What an agent may do and what it is given; `command` is empty for the usual name, `env` names variables.

    `web_search` is as `network` says where it is None; `thinking_tokens` are left to the agent where they are None.
    An agent of the user's own is started as `argv` or asked at `url`; its files are seen from `folder`.
    """

    command: str
    access: Literal["read", "edit", "full"]
    network: bool
    env: tuple[str, ...]
    processes: int
    web_search: bool | None = None
    thinking_tokens: int | None = None
    argv: tuple[str, ...] = ()
    url: str = ""
    folder: str = ""

    @property
    def web(self) -> bool:
        """Whether it may search the web."""
        return self.network if self.web_search is None else self.web_search


@frozen(kw_only=True)
class RoleSettings:
    """What a config says of one role's model, whatever its backend; the key itself stays in the variable named here."""

    backend: str
    model: str
    base_url: str
    api_key_env: str
    temperature: float | None
    reasoning_effort: str
    timeout_seconds: float
    attempts: int
    backoff_seconds: float
    backoff_cap_seconds: float
    patience_seconds: float
    max_reply_bytes: int
    concurrency: int
    requests_per_minute: int
    tokens_per_minute: int
    token_field: Literal["auto", "max_completion_tokens", "max_tokens"]
    structured_output: Literal["auto", "on", "off"]
    extra_body: Mapping[str, Json]
    extra_headers: Mapping[str, str]
    protocol: Literal["auto", "chat_completions", "responses"]
    stream: bool
    deadline_seconds: float
    max_output_tokens: int
    unsupported_fields: Literal["error", "drop"]
    thinking: Thinking
    region: str
    api_version: str
    auth_mode: AuthMode
    ad_scope: str
    managed_identity_client_id: str
    allow_hosts: str


@frozen(kw_only=True)
class ModelSettings(RoleSettings):
    """What a provider is given to open one role's model."""

    role: Role
    seed: int
    patience_seconds: float = 900.0
    max_reply_bytes: int = 32 * 2**20
    agent: AgentSettings | None = None


@frozen(kw_only=True)
class DataSettings:
    """Where the items come from and how they are split; paths are absolute."""

    split_mode: Literal["ratio", "split_dir", "field", "file"]
    split_ratio: str
    split_seed: int
    split_field: str
    split_dir: str
    data_path: str
    limit: int


@frozen(kw_only=True)
class EnvironmentSettings:
    """One environment as configured; `options` are its own keys under `env:`, as written, `shared_keys` the others."""

    name: str
    folder: str
    data: DataSettings
    timeout_seconds: float
    max_completion_tokens: int
    options: Mapping[str, Json]
    shared_keys: tuple[str, ...] = ()


@frozen(kw_only=True)
class ToolUse:
    """One tool that a coding agent called on its way to an answer, with what it was given and what came back."""

    name: str
    given: str = ""
    result: str = ""


@frozen(kw_only=True)
class Turn:
    """What a person asked a coding agent, and what it did and answered."""

    asked: str
    answered: str = ""
    tools: tuple[ToolUse, ...] = ()


@frozen(kw_only=True)
class Conversation:
    """One conversation of a person with a coding agent, as the agent's own files have it; `when` as they write it."""

    agent: str
    id: str
    folder: str
    when: str
    turns: tuple[Turn, ...]


@frozen
class Unreadable:
    """A file of an agent that could not be read, or a part of it, and why."""

    agent: str
    file: str
    why: str


MODELS = "skillopt_es.models"
"""The entry points of providers."""

OpenModel = Callable[[ModelSettings, Mapping[str, str]], ChatModel]


@frozen(kw_only=True)
class Provider(Generic[P]):
    """
    What an entry point of `skillopt_es.models` names: a function that opens a model, and what is special about it.

    `takes` are the settings that other backends refuse, such as `thinking`. `may_think` says that it is up to the
    server whether a model thinks, where nobody says so. `system` is its name in traces, if it is not the backend's; an
    `agent` is asked once and asks its model as often as it likes. A bare function is a provider without any of these.
    """

    open: Callable[P, ChatModel]
    takes: frozenset[str] = frozenset()
    may_think: bool = False
    system: str = ""
    agent: bool = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ChatModel:
        """The model, ready to be asked."""
        return self.open(*args, **kwargs)


def provider(
    *, takes: Iterable[str] = (), may_think: bool = False, system: str = "", agent: bool = False
) -> Callable[[Callable[P, ChatModel]], Provider[P]]:
    """Makes a provider of the function that opens its models."""

    def made(opener: Callable[P, ChatModel]) -> Provider[P]:
        return Provider(open=opener, takes=frozenset(takes), may_think=may_think, system=system, agent=agent)

    return made


OpenEnvironment = Callable[[EnvironmentSettings], Environment]
OpenExecutor = Callable[[ExecutorSettings], Executor]
