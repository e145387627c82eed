"""
An agent of the user's as a model: each question is one attempt, bounded, with a deadline, and journaled as one effect.

What is no answer says what it is instead:

    late      timeout         it had no answer by its deadline          scores 0, as with any model
    empty     empty           its answer is an empty text               scores 0
    crashed   crash           it raised, ended badly, or said so        tried again, at most twice
    garbled   invalid_reply   what it returned is not the contract      not measured
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from attrs import evolve, field, frozen

from skillopt_es.adapters.agent_output import bounded
from skillopt_es.adapters.agents.contract import AgentAnswer
from skillopt_es.adapters.agents.trajectories import UnreadableError
from skillopt_es.adapters.environments.episodes import skill_body, skill_section
from skillopt_es.adapters.models.crashes import despite_crashes, policy_of, tries_of
from skillopt_es.adapters.models.endpoint import refused, setting
from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.limits import Limiter
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.adapters.models.retry import PastTries
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import (
    ALONE,
    AgentTask,
    AttemptLost,
    CallFailed,
    ChatReply,
    ChatRequest,
    Course,
    Elsewhere,
    Gateway,
    ModelSettings,
    OwnCall,
    SkillFiles,
    Try,
    Usage,
    Wait,
)

_NO_SKILL = SkillTree({"SKILL.md": ""})


class AttemptFailedError(Exception):
    """An attempt without an answer, and whether it may be made again: only where it had not begun."""

    def __init__(self, failed: Failure) -> None:
        super().__init__(failed.message)
        self.failed = failed


class Way(Protocol):
    """How an agent is reached."""

    @property
    def identity(self) -> str:
        """Names the agent, whatever its code says today; no secret."""
        ...

    async def answer(self, task: AgentTask) -> AgentAnswer:
        """The agent's answer; raises AttemptFailedError, UnreadableError or TimeoutError."""
        ...

    async def within_reach(self) -> str:
        """What of the user's keys a program of the agent's can reach, and why; nothing where there is none."""
        ...


@frozen(eq=False)
class OwnAgent:
    """The target's role, done by an agent of the user's; `spent` is what is known of an attempt without an answer."""

    way: Way
    settings: ModelSettings
    secrets: tuple[str, ...] = field(repr=False)
    spent: Usage = field(factory=Usage)
    _limiter: Limiter = field(init=False, repr=False, eq=False)
    _pace: Limiter = field(init=False, repr=False, eq=False)
    _redactor: Redactor = field(init=False, repr=False, eq=False)

    @_limiter.default
    def _(self) -> Limiter:
        assert self.settings.agent is not None
        most = self.settings.agent.processes if self.settings.backend == "command" else self.settings.concurrency
        return _limiter(self.settings, min(most, self.settings.concurrency))

    @_pace.default
    def _(self) -> Limiter:
        return _limiter(self.settings, self.settings.concurrency)  # its processes are elsewhere, one for each worker

    @_redactor.default
    def _(self) -> Redactor:
        return Redactor(self.secrets)

    @property
    def identity(self) -> str:
        """Names the agent and how it is reached."""
        return self.way.identity

    @property
    def unbounded(self) -> bool:
        """Whether it may spend as much as it likes: nobody sees what it asks."""
        return True

    async def within_reach(self) -> str:
        """What of the user's keys its program can reach, and why."""
        return await self.way.within_reach()

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """Its answer and its steps; raises CallFailed."""
        return await despite_crashes(
            request, course, lambda attempt: self._once(attempt, course), policy_of(self.settings)
        )

    async def _once(self, request: ChatRequest, course: Course) -> ChatReply:
        if request.elsewhere is not None:
            return await self.elsewhere(request, request.elsewhere, None)
        return await self.attempted(request, course, None)

    async def elsewhere(self, request: ChatRequest, worker: Elsewhere, own: OwnCall | None) -> ChatReply:
        """The same, where the worker that makes the attempt does it; what it asks a model itself comes to `own`."""
        refusal = await self._pace.enter(0)
        if refusal is not None:
            raise self._failed(refusal, 0, ())
        began = time.monotonic()
        try:
            reply = await worker.answer(request, own)
        except AttemptLost as error:
            error.latency_ms, error.tries = _since(began), (self._last_try(failure("transport", error.message)),)
            raise
        except CallFailed as error:
            self._clean(error)
            raise
        finally:
            self._pace.leave()
        return self._redactor.answer(reply)

    async def attempted(self, request: ChatRequest, course: Course, gateway: Gateway | None) -> ChatReply:
        """The same, where it may ask a model through a gateway."""
        refusal = await self._limiter.enter(0)
        if refusal is not None:
            raise self._failed(refusal, 0, ())
        began = time.monotonic()
        tries: list[Try] = []
        try:
            answer = await self._attempts(request, course, gateway, tries)
        except AttemptFailedError as error:
            raise self._failed(error.failed, _since(began), tuple(tries)) from error
        except CallFailed as error:  # raised by the user's own function
            self._clean(error)
            raise
        finally:
            self._limiter.leave()
        return self._reply(answer, _since(began), tuple(tries))

    async def aclose(self) -> None:
        """Nothing to give back: an attempt leaves nothing behind."""

    async def _attempts(
        self, request: ChatRequest, course: Course, gateway: Gateway | None, tries: list[Try]
    ) -> AgentAnswer:
        """One attempt; it is asked for again where the agent was not there, so that nothing had begun."""
        policy = policy_of(self.settings)
        past = PastTries()
        while True:
            try:
                return await self._attempt(request, gateway)
            except AttemptFailedError as error:
                begun = error.failed.kind == "crash"
                wait = None if begun else policy.wait_after(error.failed, request.slot, past)
                if wait is None:
                    raise
                past = past.and_then(error.failed, wait)
                tried = _tried(error.failed, wait)
                tries.append(tried)
                told = Wait(kind=tried.kind, seconds=wait, message=tried.message, holds=True)
                if not await course.may_try_again(tried) or not await course.rest(told, partial(asyncio.sleep, wait)):
                    raise

    async def _attempt(self, request: ChatRequest, gateway: Gateway | None) -> AgentAnswer:
        with _laid_out(request.skill or _NO_SKILL) as files:
            task = evolve(task_of(request, files, self.settings.timeout_seconds), gateway=gateway)
            try:
                return _placeless(await self._answered(task), files.folder)
            except AttemptFailedError as error:
                message = error.failed.message.replace(files.folder, "/skill")
                raise AttemptFailedError(evolve(error.failed, message=message)) from error

    async def _answered(self, task: AgentTask) -> AgentAnswer:
        """The answer of an attempt that has one; raises AttemptFailedError for any other."""
        try:
            answer = await self.way.answer(task)
        except UnreadableError as error:
            raise AttemptFailedError(failure("invalid_reply", f"the agent's answer: {error}")) from error
        except TimeoutError as error:
            said = f": {error}" if str(error) else ""
            message = f"the agent had no answer after {task.deadline_seconds:g} seconds{said}"
            raise AttemptFailedError(evolve(failure("timeout", message), retry=False)) from error
        if answer.error:
            raise AttemptFailedError(failure("crash", f"the agent says: {answer.error}"))
        if not answer.text.strip():
            raise AttemptFailedError(evolve(failure("empty", "the agent's answer is empty"), retry=False))
        return answer

    def _reply(self, answer: AgentAnswer, latency_ms: int, tries: tuple[Try, ...]) -> ChatReply:
        reply = self._redactor.answer(
            ChatReply(
                text=answer.text,
                finish="stop",
                usage=answer.usage,
                model=answer.model,
                latency_ms=latency_ms,
                tries=tries,
                steps=answer.steps,
                cost=answer.cost,
            )
        )
        return evolve(reply, steps=bounded(reply.steps))

    def _clean(self, error: CallFailed) -> None:
        clean = self._redactor.error
        error.message, error.hint = clean(error.message), clean(error.hint)
        error.args = (error.message,)
        tries = tries_of(error, self.spent) if error.kind == "crash" else error.tries
        error.tries = tuple(evolve(each, message=clean(each.message)) for each in tries)

    def _last_try(self, failed: Failure) -> Try:
        return evolve(_tried(failed, 0), usage=self.spent)

    def _failed(self, failed: Failure, latency_ms: int, tries: tuple[Try, ...]) -> CallFailed:
        last = () if failed.kind in ("config", "auth") else (self._last_try(failed),)
        return CallFailed(
            failed.kind,
            self._redactor.error(failed.message),
            status=failed.status,
            hint=_hint(failed, self.settings),
            latency_ms=latency_ms,
            tries=tuple(evolve(each, message=self._redactor.error(each.message)) for each in (*tries, *last)),
        )


def _limiter(settings: ModelSettings, at_once: int) -> Limiter:
    return Limiter(
        concurrency=at_once,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=0,  # what an agent takes cannot be told before it
        clock=time.monotonic,
        sleep=asyncio.sleep,
    )


def task_of(request: ChatRequest, files: SkillFiles, seconds: float) -> AgentTask:
    """A question as an agent gets it: what was asked last, and what stands before it without the skill."""
    section = skill_section(request.skill) if request.skill is not None else ""
    before = [message.content for message in request.messages if message.role == "system"]
    own = [text.replace(section, "").strip() if section else text for text in before]
    asked = [message.content for message in request.messages if message.role == "user"]
    return AgentTask(
        item=request.item,
        task=asked[-1] if asked else "",
        instructions="\n\n".join(filter(None, own)),
        messages=request.messages,
        fields=request.fields,
        skill=files,
        seed=request.seed,
        deadline_seconds=seconds,
    )


@contextmanager
def _laid_out(skill: SkillTree) -> Iterator[SkillFiles]:
    """The skill's files in a folder of this attempt's own, which is gone after it."""
    base = Path(tempfile.mkdtemp(prefix="skillopt-attempt-")).resolve()
    try:
        home = base / "skill"
        for path, each in skill.contents.items():
            file = (home / path).resolve()
            if not file.is_relative_to(home):
                raise CallFailed("config", f"the skill's file {path!r} would be outside the skill's folder")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(each.content)
            if each.executable:
                file.chmod(0o755)
        yield SkillFiles(text=skill_body(skill), main=skill.main, files=dict(skill.files), folder=str(home))
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _placeless(answer: AgentAnswer, folder: str) -> AgentAnswer:
    """The answer with a fixed name for the skill's folder: the same doings are the same record."""

    def plain(text: str) -> str:
        return text.replace(folder, "/skill")

    steps = tuple(evolve(step, text=plain(step.text), output=plain(step.output)) for step in answer.steps)
    return evolve(answer, text=plain(answer.text), steps=steps)


def _since(began: float) -> int:
    return round(1000 * (time.monotonic() - began))


def _tried(failed: Failure, wait: float) -> Try:
    return Try(kind=failed.kind, status=failed.status, message=failed.message, waited_ms=round(1000 * wait))


def _hint(failed: Failure, settings: ModelSettings) -> str:
    role = settings.role
    hints: Mapping[str, str] = {
        "timeout": f"{setting(role, 'timeout_seconds')} is {settings.timeout_seconds:g}",
        "invalid_reply": _form(settings),
        "transport": f"is it running? {setting(role, 'url')} says where it is asked",
        "config": f"check {setting(role, 'url')}" if settings.backend == "http" else "",
        "auth": f"check the key in the environment variable {settings.api_key_env}"
        if settings.api_key_env
        else f"if it needs a key, {setting(role, 'api_key_env')} names the variable that holds it",
    }
    return hints.get(failed.kind, "")


def _form(settings: ModelSettings) -> str:
    text = "text" if settings.backend.startswith("python") else 'JSON text ("Paris")'
    return f"an answer is an object with `answer`, or {text} alone (docs/agents.md)"


def check_settings(settings: ModelSettings) -> None:
    """Raises ConfigError for what an agent of the user's cannot be given."""
    if settings.role == "optimizer":
        raise refused(
            settings,
            "backend",
            f" is {settings.backend!r}, which is for agents that do tasks; the optimizer is a model",
            hint="name the agent as model.target_backend, and a model's backend as model.optimizer_backend",
        )
    for name in ("temperature", "reasoning_effort"):
        if getattr(settings, name) not in (None, ""):
            raise refused(
                settings,
                name,
                f" is {getattr(settings, name)!r}, but an agent decides that itself",
                hint=f"leave it out, or write it as model.optimizer_{name} if it is meant for the other role",
            )
