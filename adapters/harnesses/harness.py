"""
A coding agent as a model: each question is one run of its command line in a private folder.

One deadline holds over all tries of a question. The answer is the agent's last message and nothing else: an agent that
gave none has not answered, whatever it printed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.adapters.agent_output import bounded
from skillopt_es.adapters.harnesses.agent import DEFAULT_MODEL, Access, Agent, Run, Transcript
from skillopt_es.adapters.harnesses.child_environment import ChildEnvironment, child_environment
from skillopt_es.adapters.harnesses.failures import failure_in, hint_for, meant_by
from skillopt_es.adapters.harnesses.hiding import CannotHideError, covered, hide, needed
from skillopt_es.adapters.harnesses.installation import command_of, own_settings
from skillopt_es.adapters.harnesses.stream import read_stream
from skillopt_es.adapters.harnesses.workspace import (
    Rooms,
    make_rooms,
    mentioned,
    place_skill,
    place_skills,
    prompt_for,
    remove_rooms,
    skill_name,
    without_skill,
    wording,
)
from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.limits import Clock, Limiter, Sleep
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.adapters.models.retry import PastTries, RetryPolicy
from skillopt_es.adapters.processes import Ended, NotStartedError, Program
from skillopt_es.adapters.sandboxes.apart import distance, run_apart
from skillopt_es.adapters.sandboxes.covers import Covers
from skillopt_es.ports import (
    ALONE,
    Answers,
    CallFailed,
    ChatReply,
    ChatRequest,
    Course,
    FailureKind,
    ModelSettings,
    Try,
    Wait,
)

# Bytes: an agent that prints for ever would fill the memory; what it says is kept until it ends.
MOST_STREAM = 64 * 2**20
GRACE_SECONDS = 5.0  # after a SIGTERM, to end its children and say its last lines; a late run takes so much longer
_VERSION_SECONDS = 30.0  # an agent that is not up by then would not answer either
_MOST_EMPTY_TRIES = 2  # a run of an agent takes minutes: one that says nothing twice is not worth a third
_REFUSED_ENOUGH = 2  # once is not enough: some renew what they signed in with
# With less of its time left an agent only begins: it would be late, and hide why it was asked again.
_SHORTEST_SHARE = 0.1


@frozen
class _Tried:
    """One run of the agent: its failure, if it is one, else what it said."""

    failure: Failure | None
    transcript: Transcript


class Harness:
    """One role's agent; time is a parameter, for tests."""

    unbounded = True  # an agent asks its model as often as it likes
    provides = frozenset({"text", "skills"})

    def __init__(
        self,
        agent: Agent,
        settings: ModelSettings,
        environ: Mapping[str, str],
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._agent = agent
        self._settings = settings
        self._own = own_settings(agent, settings)
        self._child: ChildEnvironment = child_environment(agent, settings, environ)
        self._command = command_of(agent, settings, self._own, environ)
        self._redactor = Redactor(self._child.secrets)
        self._version = ""
        self._hidden = Covers(self._own.keys)
        self._clock = clock
        self._sleep = sleep
        self._grace = grace
        self._retry = RetryPolicy(
            attempts=settings.attempts,
            base=settings.backoff_seconds,
            cap=settings.backoff_cap_seconds,
            patience=settings.patience_seconds,
            seed=settings.seed,
        )
        self._limiter = Limiter(
            concurrency=min(self._own.processes, settings.concurrency),
            requests_per_minute=settings.requests_per_minute,
            # What an agent takes in a run cannot be estimated before it.
            tokens_per_minute=0,
            clock=clock,
            sleep=sleep,
        )

    def __repr__(self) -> str:
        return f"<{self.identity}>"

    @property
    def identity(self) -> str:
        """Names agent, model, endpoint, what it may do, and the wording of its prompts; not its version."""
        where = f" {self._settings.base_url.strip().rstrip('/')}" if self._settings.base_url else ""
        own = self._own
        may = " network" if own.network else ""
        may += "" if own.web == own.network else " web" if own.web else " no web"
        may += "" if own.thinking_tokens is None else f" thinking={own.thinking_tokens}"
        return f"{self._agent.name}{where} {self._settings.model} {self._access}{may} +{wording()}"

    @property
    def _access(self) -> Access:
        return self._own.access if self._settings.role == "target" else "none"

    async def hide(self, answers: Answers) -> str:
        """Runs of the agent do not see these any more; returns why that cannot be done."""
        try:
            paths = covered(answers, needed(self._command, self._child.variables))
            self._hidden = await hide(paths, self._own.keys, isolated=self._own.isolated)
        except (CannotHideError, OSError) as error:
            return str(error)
        return ""

    async def within_reach(self) -> str:
        """What of the user's keys the agent can reach all the same."""
        return (await distance(isolated=self._own.isolated)).said

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The agent's last message and the steps before it; raises CallFailed."""
        self._check(request)
        refused = await self._limiter.enter(0)
        if refused is not None:
            raise self._call_failed(refused, 0, [])
        start = self._clock()
        tries: list[Try] = []
        try:
            tried = await self._attempts(request, course, start + self._settings.timeout_seconds, tries)
        finally:
            self._limiter.leave()
        latency_ms = round(1000 * (self._clock() - start))
        if tried.failure is not None:
            raise self._call_failed(tried.failure, latency_ms, tries)
        return self._reply(tried.transcript, latency_ms, tries)

    async def examine(self) -> str:
        """The agent's version, once it is clear that it runs and that somebody is signed in; raises CallFailed."""
        rooms = await asyncio.to_thread(make_rooms)
        try:
            version = await self._version_in(rooms)
            if self._agent.signed_in and not self._child.private:
                await self._asked(self._agent.signed_in, rooms, kind="auth")
        finally:
            await asyncio.to_thread(remove_rooms, rooms)
        return f"{version} ({self._command})"

    async def aclose(self) -> None:
        """Nothing to give back: a run leaves no process."""

    async def _version_in(self, rooms: Rooms) -> str:
        """What the agent calls itself, asked once; it is recorded with every answer."""
        if not self._version:
            said = await self._asked(["--version"], rooms)
            first = next(iter(said.strip().splitlines()), "")
            self._version = self._redactor.error(first[:80].rstrip("."))
        return self._version

    def _check(self, request: ChatRequest) -> None:
        role = self._settings.role
        if request.temperature is not None:
            raise CallFailed(
                "config",
                f"{self._agent.name} takes no temperature",
                hint=f"set {setting(role, 'temperature')} to null for this role",
            )

    async def _attempts(self, request: ChatRequest, course: Course, deadline: float, tries: list[Try]) -> _Tried:
        past = PastTries()
        while True:
            tried = await self._try(request, deadline - self._clock(), emptied="empty" in past.kinds)
            failed = tried.failure
            if failed is None:
                return tried
            wait = self._retry.wait_after(failed, request.slot, past)
            past = past.and_then(failed, wait or 0.0)
            soonest = self._clock() + (wait or 0.0) + _SHORTEST_SHARE * self._settings.timeout_seconds
            if past.kinds.count("empty") >= _MOST_EMPTY_TRIES or soonest >= deadline:
                wait = None
            self._limiter.learn(failed, final=wait is None)
            waited_ms = round(1000 * (wait or 0.0))
            tries.append(Try(kind=failed.kind, status=failed.status, message=failed.message, waited_ms=waited_ms))
            if wait is None or not await course.may_try_again(tries[-1]):
                return tried
            told = Wait(kind=failed.kind, seconds=wait, message=failed.message, holds=True)
            if not await course.rest(told, partial(self._sleep, wait)):
                return tried

    async def _try(self, request: ChatRequest, seconds: float, *, emptied: bool) -> _Tried:
        rooms = await asyncio.to_thread(make_rooms)
        try:
            await self._version_in(rooms)
            run, prompt = await asyncio.to_thread(self._prepared, request, rooms, emptied)
            ended = await self._ran(self._agent.arguments(run), rooms, prompt.encode(), seconds, run)
            stream = read_stream(ended.output)
            transcript = _without_places(self._agent.read(stream.events, run), rooms)
            if request.skill is not None and request.skill.is_folder:
                read = mentioned(prompt, request.skill, self._agent.mention)
                transcript = evolve(transcript, steps=(*read, *transcript.steps))
            failed = failure_in(ended, transcript, stream, self._settings.timeout_seconds)
            if failed is not None:
                failed = self._redacted(evolve(failed, message=_placeless(failed.message, rooms)))
            return _Tried(failed, transcript)
        except NotStartedError as error:
            return _Tried(failure("config", str(error)), Transcript())
        except TimeoutError:
            # Not even killing it ended it in time.
            return _Tried(failure("server", "the agent cannot be ended"), Transcript())
        finally:
            # Shielded: a cancelled call leaves no folder behind, either.
            await asyncio.shield(asyncio.to_thread(remove_rooms, rooms))

    def _prepared(self, request: ChatRequest, rooms: Rooms, emptied: bool) -> tuple[Run, str]:
        settings = self._settings
        run = Run(
            model="" if settings.model == DEFAULT_MODEL else settings.model,
            access=self._access,
            network=self._own.network,
            web=self._own.web,
            thinking_tokens=self._own.thinking_tokens,
            effort=request.effort,
            schema=None if settings.structured_output == "off" else request.schema,
            base_url=settings.base_url.strip().rstrip("/"),
            has_key=bool(settings.api_key_env),
            workspace=rooms.workspace,
            notes=rooms.notes,
        )
        messages, skill = list(request.messages), request.skill
        placed = None
        if skill is not None and skill.is_folder:
            place_skills(skill, rooms, self._agent.skills)
        elif skill is not None and skill.text.strip():
            place = place_skill(skill, rooms, self._agent.skills)
            messages = without_skill(messages, skill, place)
            placed = (skill_name(skill), place)
        return run, prompt_for(messages, access=self._access, skill=placed, emptied=emptied)

    async def _ran(
        self, arguments: Sequence[str], rooms: Rooms, stdin: bytes, seconds: float, run: Run | None = None
    ) -> Ended:
        variables = {**self._child.variables, "TMPDIR": str(rooms.temporary), "NO_COLOR": "1"}
        home = rooms.home if self._child.private else None
        if home is not None:
            variables["HOME"] = str(home)
        if run is not None:
            variables.update(self._agent.environment(run, home))
        program = Program(
            argv=[self._command, *arguments],
            folder=rooms.workspace,
            environment=variables,
            stdin=stdin,
            seconds=max(seconds, 0.0),
            most_output=MOST_STREAM,
            grace=self._grace,
            hopeless=self._hopeless(run) if run is not None and self._agent.retrying else None,
        )
        return await run_apart(program, hidden=self._hidden, isolated=self._own.isolated)

    def _hopeless(self, run: Run) -> Callable[[bytes], bool]:
        """Whether the agent goes on asking where no later request can do better: a refused key, say."""
        refused = 0

        def hopeless(line: bytes) -> bool:
            nonlocal refused
            if self._agent.retrying not in line:
                return False
            complaint = self._agent.read(read_stream(line).events, run).complaint
            # Refusals in a row: one that got through in between shows that asking on makes sense.
            refused = refused + 1 if complaint is not None and meant_by(complaint).systemic else 0
            return refused >= _REFUSED_ENOUGH

        return hopeless

    async def _asked(self, arguments: Sequence[str], rooms: Rooms, *, kind: FailureKind = "config") -> str:
        """What the command prints for some harmless arguments; raises CallFailed when it refuses them."""
        try:
            ended = await self._ran(arguments, rooms, b"", _VERSION_SECONDS)
        except (NotStartedError, TimeoutError) as error:
            raise self._call_failed(failure("config", str(error) or "the agent cannot be ended"), 0, []) from error
        if ended.how == "exited" and ended.code == 0:
            return ended.output.decode(errors="replace")
        said = ended.errors.strip() or ended.output.decode(errors="replace").strip()
        what = f"`{Path(self._command).name} {' '.join(arguments)}` failed" + (f": {said}" if said else "")
        raise self._call_failed(self._redacted(failure(kind, what)), 0, [])

    def _reply(self, transcript: Transcript, latency_ms: int, tries: list[Try]) -> ChatReply:
        reply = self._redactor.answer(
            ChatReply(
                text=transcript.answer or "",
                finish="stop",
                usage=transcript.usage,
                model=transcript.model,
                request_id=transcript.session,
                latency_ms=latency_ms,
                tries=tuple(tries),
                steps=transcript.steps,
            )
        )
        model = ", ".join(filter(None, (reply.model, self._version)))
        return evolve(reply, model=model, steps=bounded(reply.steps))

    def _redacted(self, failed: Failure) -> Failure:
        return evolve(failed, message=self._redactor.error(failed.message))

    def _call_failed(self, failed: Failure, latency_ms: int, tries: list[Try]) -> CallFailed:
        return CallFailed(
            failed.kind,
            failed.message,
            status=failed.status,
            hint=hint_for(failed, self._agent, self._settings),
            latency_ms=latency_ms,
            tries=tuple(tries),
        )


def _placeless(text: str, rooms: Rooms) -> str:
    """The text with fixed names for its private folders: the same doings are the same record."""
    return text.replace(str(rooms.workspace), "/workspace").replace(str(rooms.base), "/private")


def _without_places(transcript: Transcript, rooms: Rooms) -> Transcript:
    steps = tuple(
        evolve(step, text=_placeless(step.text, rooms), output=_placeless(step.output, rooms))
        for step in transcript.steps
    )
    answer = None if transcript.answer is None else _placeless(transcript.answer, rooms)
    return evolve(transcript, steps=steps, answer=answer)
