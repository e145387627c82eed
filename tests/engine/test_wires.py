"""A whole training run over each wire format: what it decides depends on the answers, not on how they travelled."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.logs import events_of
from support.model_server import Answer, Handler, ModelServer, with_faults
from support.params import parametrized
from support.project import told
from support.scripted import NOON, ScriptedEnvironment, ScriptedWorld, config, here, optimizer_reply, target_reply
from support.wires import FORMATS, Format, Said

from skillopt_es.config import RunConfig
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Role
from skillopt_es.ports import ChatModel, ChatRequest
from skillopt_es.replies import answers as replies
from skillopt_es.replies.proposals import EDITS, merge_schema, patch_schema
from skillopt_es.sessions.opening import open_model
from skillopt_es.sessions.session import start
from skillopt_es.sessions.wiring import Session, World

KEY = {"TEST_KEY": "sk-canary-0123456789abcdef"}
ROLES: tuple[Role, ...] = ("target", "optimizer")
FAULTS = {"429": 0.2, "500": 0.05, "garbage": 0.05, "cut": 0.02}
STAGES = {
    "analyst": (patch_schema(EDITS, "failure"), patch_schema(EDITS, "success")),
    "merge": (merge_schema(EDITS),),
    "ranking": (replies.RANKING_SCHEMA,),
    "learning_rate": (replies.LEARNING_RATE_SCHEMA,),
    "slow_update": (replies.SLOW_UPDATE_SCHEMA,),
    "meta_skill": (replies.META_SKILL_SCHEMA,),
}
BY_SCHEMA = {json.dumps(schema, sort_keys=True): stage for stage, all_ in STAGES.items() for schema in all_}


def scripted(spoken: Format, *, stream: bool = False) -> Handler:
    """The scripted models behind one wire format."""

    def handler(body: Any, _headers: Mapping[str, str]) -> Answer:
        request: ChatRequest = spoken.reads(body)
        if request.schema is None:
            return spoken.answer(Said(text=target_reply(request)), stream=stream)
        stage = BY_SCHEMA[json.dumps(request.schema, sort_keys=True)]
        return spoken.answer(Said(text=optimizer_reply(evolve(request, stage=stage))), stream=stream)  # type: ignore[arg-type]

    return handler


def overrides(spoken: Format, base_url: str, prefix: str = "", **more: Any) -> list[str]:
    """What a config says to use this format."""
    keys = {"base_url": spoken.base_url(base_url), "api_key_env": "TEST_KEY", **spoken.changes, **more}
    both = {} if prefix else {f"{role}_backend": spoken.changes["backend"] for role in ROLES}
    return [f"model.{prefix}{name}={json.dumps(value)}" for name, value in {**keys, **both}.items()]


SMALL = ScriptedEnvironment(train=6, val=4, test=2)


def trained(
    folder: Path, words: list[str], environ: Mapping[str, str] = KEY, environment: ScriptedEnvironment | None = None
) -> list[tuple[str, Any]]:
    """The decisions of a run with these models."""

    def model(given: RunConfig, role: Role) -> ChatModel:
        return open_model(given, role, environ)

    world = World(model=model, environment=lambda _: environment or ScriptedEnvironment(), executor=here)

    async def scenario() -> None:
        await start(config(folder, words), folder / "run", Session(now=lambda: NOON, clock=lambda: 0.0, world=world))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    return told(folder / "run")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any]]:
    """The decisions of the same run without any wire."""
    folder = tmp_path_factory.mktemp("expected")
    asyncio.run(start(config(folder), folder / "run", ScriptedWorld().session()))
    return told(folder / "run")


@pytest.fixture(scope="module")
def expected_of_small(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any]]:
    """The decisions of a smaller one."""
    folder = tmp_path_factory.mktemp("small")
    asyncio.run(start(config(folder), folder / "run", ScriptedWorld(environment=SMALL).session()))
    return told(folder / "run")


@parametrized("name", FORMATS, by_default=4)
def test_every_format_decides_the_same(name: str, tmp_path: Path, expected_of_small: list[tuple[str, Any]]) -> None:
    """Event by event."""
    spoken = FORMATS[name]
    with ModelServer(scripted(spoken)) as server:
        assert trained(tmp_path, overrides(spoken, server.base_url), environment=SMALL) == expected_of_small


@pytest.mark.parametrize("stream", [False, pytest.param(True, marks=pytest.mark.slow)])
@parametrized("name", ["openai", "openai-responses", "anthropic"], by_default=1)
def test_faults_change_no_decision(name: str, stream: bool, tmp_path: Path, expected: list[tuple[str, Any]]) -> None:
    """A fifth 429 with Retry-After, 5 % 500, 5 % no JSON, 2 % cut; each try is in the journal."""
    spoken = FORMATS[name]
    patience = {"attempts": 10, "backoff_seconds": 0.001, "backoff_cap_seconds": 0.01, "stream": stream}
    with ModelServer(with_faults(scripted(spoken, stream=stream), FAULTS)) as server:
        assert trained(tmp_path, overrides(spoken, server.base_url, **patience)) == expected
    tries = [json.loads(tries) for (tries,) in _rows(tmp_path / "run", "select tries from calls")]
    kinds = {one["kind"] for row in tries for one in row}
    assert kinds == {"rate_limit", "server", "transport"}
    assert all(one["waited_ms"] >= 0 for row in tries for one in row)


def _rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with EventLog.open(folder) as log:
        return [tuple(row) for row in log.reader.rows(query)]


def test_each_role_has_its_own_everything(tmp_path: Path, expected: list[tuple[str, Any]]) -> None:
    """Another format, address, key, model, effort and temperature; neither sees anything of the other's."""
    target, optimizer = FORMATS["qwen"], FORMATS["anthropic"]
    environ = {"TARGET_KEY": "sk-target-0123456789", "OPTIMIZER_KEY": "sk-optimizer-0123456789"}
    with ModelServer(scripted(target)) as first, ModelServer(scripted(optimizer)) as second:
        words = [
            *overrides(target, first.base_url, "target_", api_key_env="TARGET_KEY", temperature=0.25),
            *overrides(optimizer, second.base_url, "optimizer_", api_key_env="OPTIMIZER_KEY", reasoning_effort="high"),
        ]
        assert trained(tmp_path, words, environ) == expected
    assert {r.headers["authorization"] for r in first.requests} == {"Bearer sk-target-0123456789"}
    assert {r.headers["x-api-key"] for r in second.requests} == {"sk-optimizer-0123456789"}
    assert all("x-api-key" not in r.headers for r in first.requests)
    assert {(r.body["model"], r.body["temperature"]) for r in first.requests} == {("t", 0.25)}
    assert {(r.body["model"], r.body["output_config"]["effort"]) for r in second.requests} == {("o", "high")}


def test_two_runs_in_one_process_do_not_touch_each_other(tmp_path: Path, expected: list[tuple[str, Any]]) -> None:
    """At the same time, over two formats; the process's environment is as it was."""
    before = dict(os.environ)
    one, two = FORMATS["openai"], FORMATS["anthropic"]
    with ModelServer(scripted(one)) as first, ModelServer(scripted(two)) as second:

        async def run(spoken: Format, server: ModelServer) -> None:
            given = config(tmp_path / spoken.name, overrides(spoken, server.base_url))

            def model(given: RunConfig, role: Role) -> ChatModel:
                return open_model(given, role, KEY)

            world = World(
                model=model,
                environment=lambda _: ScriptedEnvironment(),
                executor=here,
            )
            await start(
                given, tmp_path / spoken.name / "run", Session(now=lambda: NOON, clock=lambda: 0.0, world=world)
            )

        async def both() -> None:
            await asyncio.gather(run(one, first), run(two, second))

        asyncio.run(both())
    assert told(tmp_path / "openai" / "run") == expected
    assert told(tmp_path / "anthropic" / "run") == expected
    assert dict(os.environ) == before


def test_an_environment_that_needs_more_than_a_target_offers_is_refused_before_anything(tmp_path: Path) -> None:
    """One sentence with both names; no log is begun."""

    class Looking(ScriptedEnvironment):
        requires = frozenset({"text", "images"})

    world = ScriptedWorld(environment=Looking())
    with pytest.raises(ConfigError, match=r"env\.name is 'scripted', which needs images"):
        asyncio.run(start(config(tmp_path), tmp_path / "run", world.session()))
    assert not (tmp_path / "run").exists()
    assert world.calls == 0


def test_the_recorded_config_has_no_key(tmp_path: Path) -> None:
    """Only the variable's name."""
    spoken = FORMATS["azure-v1"]
    with ModelServer(scripted(spoken)) as server:
        trained(tmp_path, overrides(spoken, server.base_url))
    [started] = [event for event in events_of(tmp_path / "run") if isinstance(event, RunStarted)]
    assert KEY["TEST_KEY"] not in repr(started)
    assert KEY["TEST_KEY"].encode() not in (tmp_path / "run" / "log.db").read_bytes()
