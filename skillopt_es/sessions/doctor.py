"""
What has to be in place before a run, one check each: ok, a warning, or a problem with its fix.

A check that fails does not keep the others from being made, as long as they make sense without it. Each model is asked
one tiny question: its answer, or the lack of one, says much about key, endpoint and model.
"""

from __future__ import annotations

import asyncio
import json
import platform
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from attrs import evolve, frozen

from skillopt_es.config import RoleConfig, RunConfig, load_config
from skillopt_es.config.backends import is_own_agent
from skillopt_es.config.dotenv import with_dotenv
from skillopt_es.config.draft import heeds, origins
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.places import checked
from skillopt_es.events.values import Json, Role
from skillopt_es.ports import CallFailed, ChatModel, ChatReply, ChatRequest, Examined, Message, Onlooker, Unanswered
from skillopt_es.sessions.accounts import check_bounded
from skillopt_es.sessions.checks import (
    Check,
    check_data,
    check_folder,
    check_skill,
    check_space,
    check_sqlite,
    problem,
    problems,
)
from skillopt_es.sessions.grading import grades
from skillopt_es.sessions.hiding import hide_answers, keys_within_reach
from skillopt_es.sessions.opening import open_environment, open_executor, open_model, provider_of
from skillopt_es.sessions.trying import try_agent
from skillopt_es.sessions.wiring import BOTH_ROLES, check_target, judging_roles
from skillopt_es.version import software_version

_KINDS = {"transport": "no usable reply"}
_UNREACHED = ("transport", "timeout")
_LONGEST_WAIT = 60.0  # seconds: who asks a doctor sits there; a model that is being loaded takes about as long
# Enough for a model that thinks a little before it says one word; one that thinks more is cut, which is an answer too.
_TOKENS = 256
_ISOLATING = "allow user name spaces on this machine, or run the agent in a separate container (model.target_url)"
_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}


@frozen(kw_only=True)
class Examination:
    """What is to be examined; without `calls` nothing is sent anywhere. With `grade`, the grader is tried at length."""

    config: Path | None
    overrides: Sequence[str]
    directory: Path
    environ: Mapping[str, str]
    calls: bool
    grade: bool = False


async def examine(what: Examination) -> AsyncIterator[Check]:
    """All checks, each as soon as it is made."""
    yield Check("python", "ok", f"Python {platform.python_version()}, {software_version()}")
    yield check_sqlite(sqlite3.sqlite_version_info)
    yield check_folder(what.directory)
    yield check_space(what.directory)
    try:
        config = load_config(what.config, what.overrides, what.environ)
    except SkillOptError as error:
        for check in problems("config", error):
            yield check
        return
    yield Check("config", "ok", "the bundled demo" if what.config is None else str(what.config))
    for notice in config.notices:
        yield Check("config", "warning", notice)
    for note in config.notes:
        yield Check("config", "ok", note)
    for role in config.roles:
        for each in origins(config, role):
            yield Check("setting", "ok", f"{role} {each.setting}: {each.value} ({each.where})")
    for check in _check_simulated(config, own=what.config is not None):
        yield check
    async for check in _check_config(config, what):
        yield check


def _check_simulated(config: RunConfig, *, own: bool) -> Iterator[Check]:
    """Simulated models know the demos alone, and a run of other tasks is in vain."""
    for role in BOTH_ROLES:
        if own and config.role(role).backend == "simulated":
            said = "a simulated model can only do tasks like the demo's, and learns nothing from others"
            yield Check(role, "warning", said, f"name a real one in model.{role}_backend for your own tasks")


async def _check_config(config: RunConfig, what: Examination) -> AsyncIterator[Check]:
    yield check_skill(config)
    async for check in check_data(config, runs=what.directory, try_grader=what.calls):  # a grader may ask somebody, too
        yield check
    environ = with_dotenv(config, what.environ)
    async for check in _check_models(config, environ, runs=what.directory, calls=what.calls):
        yield check
    if what.grade:
        async for check in grades(config, environ):
            yield check


# --- the models -------------------------------------------------------------------------------------------------------


async def _check_models(
    config: RunConfig, environ: Mapping[str, str], *, runs: Path, calls: bool
) -> AsyncIterator[Check]:
    """Keys, endpoints and models of all roles; without `calls` they are only opened."""
    for check in _check_keys(config, environ):
        yield check
    models: dict[Role, ChatModel] = {}
    for check in _open_all(config, environ, models):
        yield check
    async for check in _check_programs(config, models, runs):
        yield check
    for check in [*await _check_target(config, models), *_check_budget(config, models), *_check_executor(config)]:
        yield check
    if calls:
        async for check in _check_calls(config, models):
            yield check
    else:
        for role in models:
            yield Check(role, "ok", f"{config.role(role).model} was not called")


def _open_all(config: RunConfig, environ: Mapping[str, str], models: dict[Role, ChatModel]) -> Iterator[Check]:
    """Puts the models of all roles into `models`, but for those whose key is missing, which was said already."""
    for role in _in_order(config):
        if _key_is_missing(config, role, environ):
            continue
        try:
            models[role] = open_model(_impatient(config, role), role, environ)
        except ConfigError as error:
            yield problem(role, error)
            continue
        yield from _check_thinking(config, role)


async def _check_calls(config: RunConfig, models: dict[Role, ChatModel]) -> AsyncIterator[Check]:
    """What the models say: an agent of the user's own to a task, the others to a tiny question."""
    async for check in _check_attempt(config, models):
        yield check
    for check in _verdicts(config, await _ask_all(config, models)):
        yield check


async def _check_programs(config: RunConfig, models: dict[Role, ChatModel], runs: Path) -> AsyncIterator[Check]:
    """What is special about models that are programs on this machine."""
    async for check in _check_answers(config, models, runs):
        yield check
    for role, said in await keys_within_reach(models, config):
        fix = _ISOLATING if config.role(role).agent_isolated else "set model.agent_isolated: true"
        yield Check(role, "warning", said, fix)
    async for check in _examine_all(config, models):
        yield check


async def _check_attempt(config: RunConfig, models: dict[Role, ChatModel]) -> AsyncIterator[Check]:
    """A real attempt by an agent of the user's own, which is asked nothing else."""
    own = config.target_model
    if "target" not in models or not is_own_agent(own.backend):
        return
    model = models.pop("target")
    try:
        tried = await try_agent(config, model)
    finally:
        await model.aclose()
    if isinstance(tried, CallFailed):
        tried = Check("target", "problem", said_of(tried), fix_for(tried, "target", own))
    yield tried


def _check_budget(config: RunConfig, models: Mapping[Role, ChatModel]) -> Iterator[Check]:
    try:
        check_bounded(config, models)
    except ConfigError as error:
        yield problem("config", error)


def _check_executor(config: RunConfig) -> Iterator[Check]:
    try:
        open_executor(config, lambda: False)
    except ConfigError as error:
        yield problem("config", error)


def _check_thinking(config: RunConfig, role: Role) -> Iterator[Check]:
    own = config.role(role)
    special = provider_of(own.backend)
    if special is not None and special.may_think and own.thinking == "server_default":
        said = f"model.{role}_thinking is server_default: whether {own.model} thinks is up to the server"
        yield Check(role, "warning", said, "set it to enabled or disabled, so that results can be repeated")


async def _check_target(config: RunConfig, models: Mapping[Role, ChatModel]) -> list[Check]:
    """Whether the target can do what the environment needs; an environment that does not open was said already."""
    try:
        environment = open_environment(config)
    except SkillOptError:
        return []
    try:
        if "target" in models:
            check_target(models["target"], environment)
        environment.load()  # an item may name a judge by itself
        judging_roles(config, environment)
    except DataError:
        return []  # was said already
    except ConfigError as error:
        return [problem("target" if "target" in error.message else "judge", error)]
    finally:
        await environment.aclose()
    return []


async def _check_answers(config: RunConfig, models: Mapping[Role, ChatModel], runs: Path) -> AsyncIterator[Check]:
    """Whether the answers can be hidden from models that are programs on this machine."""
    for role, model in models.items():
        notes: list[str] = []
        try:
            await hide_answers({role: model}, config, runs / "a-run", warn=notes.append)
        except ConfigError as error:
            yield problem(role, error)
            continue
        for note in notes:
            yield Check(role, "warning", note, "set model.agent_answers: hidden")
        if isinstance(model, Onlooker) and not notes:
            yield Check(role, "ok", "cannot see the data, the runs, or anything beside them")


async def _examine_all(config: RunConfig, models: dict[Role, ChatModel]) -> AsyncIterator[Check]:
    """Whether the programs that are used as models are there and ready; one that is not is asked nothing more."""
    for role, model in list(models.items()):
        if isinstance(model, Examined):
            try:
                yield Check(role, "ok", await model.examine())
            except CallFailed as failure:
                del models[role]
                yield Check(role, "problem", said_of(failure), fix_for(failure, role, config.role(role)))


def _check_keys(config: RunConfig, environ: Mapping[str, str]) -> Iterator[Check]:
    """One check for each variable that holds a key."""
    users: dict[str, list[str]] = {}
    for role in _in_order(config):
        if _has_a_key(config, role):
            users.setdefault(config.role(role).api_key_env, []).append(role)
    for name, roles in users.items():
        who = " and ".join(roles)
        if not name:
            signs_in = any(config.role(cast(Role, role)).backend == "azure_openai" for role in roles)
            how = "signs in to Azure without a key" if signs_in else "no key is sent (model.api_key_env is empty)"
            yield Check("key", "ok", f"{who}: {how}")
        elif environ.get(name, "").strip():
            yield Check("key", "ok", f"{who}: {name} is set")
        else:
            unset = f"{who}: the environment variable {name} is not set"
            yield Check("key", "problem", unset, f"export {name}=..., or write it into a file .env beside the config")


def _in_order(config: RunConfig) -> tuple[Role, ...]:
    return (*BOTH_ROLES, *(role for role in config.roles if role not in BOTH_ROLES))


def _has_a_key(config: RunConfig, role: Role) -> bool:
    """Whether it is worth saying that a role has a key, or none."""
    own = config.role(role)
    if _is_offline(own) or not heeds(config, role, "api_key_env"):
        return False
    return bool(own.api_key_env) or not is_own_agent(own.backend)


def _is_offline(role: RoleConfig) -> bool:
    return role.backend in ("simulated", "handoff")


def _key_is_missing(config: RunConfig, role: Role, environ: Mapping[str, str]) -> bool:
    own = config.role(role)
    return bool(own.api_key_env) and _has_a_key(config, role) and not environ.get(own.api_key_env, "").strip()


def _impatient(config: RunConfig, role: Role) -> RunConfig:
    """The same config, but its model gives up soon: a doctor is waited for."""
    own = config.role(role)
    # An agent is given a real task, which may take its time.
    seconds = own.timeout_seconds if is_own_agent(own.backend) else min(own.timeout_seconds, _LONGEST_WAIT)
    quick = evolve(own, attempts=min(own.attempts, 2), timeout_seconds=seconds)
    if role == "judge":
        return evolve(config, judge_model=quick)
    return evolve(config, target_model=quick) if role == "target" else evolve(config, optimizer_model=quick)


@frozen
class _Asked:
    """A role and what came of asking its model."""

    role: Role
    answer: ChatReply | CallFailed | Unanswered


async def _ask_all(config: RunConfig, models: Mapping[Role, ChatModel]) -> list[_Asked]:
    try:
        return list(await asyncio.gather(*(_ask(config, role, model) for role, model in models.items())))
    finally:
        for model in models.values():
            await model.aclose()


async def _ask(config: RunConfig, role: Role, model: ChatModel) -> _Asked:
    own = config.role(role)
    words = 'Reply with this JSON object: {"ready": true}' if role != "target" else "Reply with one word: ready"
    request = ChatRequest(
        slot=checked(role),
        stage="probe",
        messages=(Message("user", words),),
        max_tokens=_TOKENS,
        temperature=own.temperature,
        effort=own.reasoning_effort,
        schema=_SCHEMA if role != "target" else None,
    )
    try:
        return _Asked(role, await model.complete(request))
    except (CallFailed, Unanswered) as without:
        return _Asked(role, without)


def _verdicts(config: RunConfig, asked: list[_Asked]) -> Iterator[Check]:
    reached: dict[str, bool] = {}
    for each in asked:
        own = config.role(each.role)
        base_url = "" if _is_offline(own) else own.base_url or own.backend
        unreached = isinstance(each.answer, CallFailed) and each.answer.kind in _UNREACHED
        if unreached and reached.get(base_url) is False:
            continue  # one endpoint that is down is one problem
        if base_url and base_url not in reached:
            reached[base_url] = not unreached
            if not unreached:
                yield Check("endpoint", "ok", f"{urlsplit(base_url).hostname or base_url} answers")
        if isinstance(each.answer, Unanswered):
            yield Check(each.role, "ok", "somebody has to answer its questions (`skillopt-es handoff`)")
        elif isinstance(each.answer, CallFailed):
            name = "endpoint" if unreached else each.role
            yield Check(name, "problem", said_of(each.answer), fix_for(each.answer, each.role, own))
        elif not each.answer.text.strip() and each.answer.finish != "length":
            said = f"{own.model} answers, but with an empty text"
            yield Check(each.role, "problem", said, f"is model.{each.role} (now {own.model!r}) a chat model?")
        else:
            yield Check(each.role, "ok", f"{own.model} {_measures(each.answer)}")
            if each.role != "target" and base_url:
                yield _structured(each.role, own, each.answer)


def said_of(failure: CallFailed) -> str:
    """What went wrong with a call, in one line; where there was a status, its message says it."""
    kind = _KINDS.get(failure.kind, failure.kind.replace("_", " "))
    said = failure.message or (f"HTTP {failure.status}" if failure.status else "")
    return f"{kind}: {said}" if said else kind


def _measures(reply: ChatReply) -> str:
    read, written = reply.usage.input, reply.usage.output
    tokens = "tokens are not reported" if None in (read, written) else f"{read} tokens in, {written} out"
    cut = f"; cut at {_TOKENS} tokens, as is usual for models that think" if reply.finish == "length" else ""
    return f"answered in {reply.latency_ms} ms, {tokens}{cut}"


def _structured(role: Role, own: RoleConfig, reply: ChatReply) -> Check:
    """Whether the endpoint of a role that answers in JSON takes a schema."""
    off = f"set model.{role}_structured_output: off"
    if own.structured_output == "off":
        return Check("json", "ok", "structured output is off: replies are read as text")
    if any(each.kind == "downgrade" for each in reply.tries):
        return Check(
            "json", "ok", f"the endpoint refuses JSON schemas: replies are read as text ({off} spares the try)"
        )
    if reply.finish == "stop" and not _is_object(reply.text):
        return Check("json", "warning", "the endpoint takes a JSON schema, but does not keep to it", off)
    return Check("json", "ok", "the endpoint takes JSON schemas")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def fix_for(failure: CallFailed, role: Role, own: RoleConfig) -> str:
    """What to do about a model that did not answer, in terms of the config."""
    where = f"model.{role}_base_url (or model.base_url)"
    key = f"the environment variable {own.api_key_env}" if own.api_key_env else f"model.{role}_api_key_env"
    fixes = {
        "auth": f"check the key in {key}" if own.api_key_env else f"name the variable that holds the key in {key}",
        "config": f"check model.{role} (now {own.model!r}) and {where}",
        "quota": "the account has no credit left: top it up",
        "rate_limit": "wait a little, or set model.requests_per_minute",
        "server": "the endpoint has a problem: try again later",
        "transport": f"is the endpoint up? check {where}",
        "timeout": f"is the endpoint up? check {where}, and model.timeout_seconds",
        "empty": f"is model.{role} (now {own.model!r}) a chat model?",
        "invalid_reply": f"{where} must be an endpoint of {own.backend}",
        "bad_request": "the endpoint accepts other questions, but not this one: its message says why",
        "crash": "its message says what went wrong, and where: fix the agent, or try it by hand",
        "context_length": f"model.{role} (now {own.model!r}) accepts too little text for this work",
    }
    return failure.hint or fixes[failure.kind]
