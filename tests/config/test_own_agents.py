"""What a config says of an agent of one's own: its name, what it is reached by, and which key it never sees."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.chat import question

from skillopt_es.config import RunConfig, load_config
from skillopt_es.config.draft import heeds, origins
from skillopt_es.errors import ConfigError
from skillopt_es.sessions.opening import open_model
from skillopt_es.testing.endpoint import Endpoint, Reply

KEY = "sk-of-the-provider-0123456789"


def loaded(folder: Path, *settings: str, **model: Any) -> RunConfig:
    """A config with this target."""
    given = {"optimizer_backend": "simulated", "optimizer": "big", **model}
    tree = {"model": given, "env": {"name": "tasks", "data_path": "tasks.jsonl"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(tree))
    return load_config(folder / "config.yaml", settings)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"target_backend": "python:My_Agent.py:answer"}, "My_Agent.py:answer"),
        ({"target_backend": "command", "target_command": ["node", "agent.js"]}, "node agent.js"),
        ({"target_backend": "command", "target_command": "node 'my agent.js'"}, "node 'my agent.js'"),
        ({"target_backend": "http", "target_url": "http://127.0.0.1:8000/answer"}, "127.0.0.1:8000/answer"),
        ({"target_backend": "http", "target_url": "http://h/x", "target": "shop"}, "shop"),
    ],
)
def test_it_is_called_after_what_is_run(model: dict[str, Any], name: str, tmp_path: Path) -> None:
    """No name of a model is asked for, and its files keep their capital letters."""
    config = loaded(tmp_path, **model)
    assert config.target_model.model == name
    assert config.target_model.backend == model["target_backend"]


def test_what_only_says_something_to_a_model_is_told_and_not_listed(tmp_path: Path) -> None:
    """An address for both roles is the optimizer's; with a gateway it is the agent's model's, too."""
    shared = {"base_url": "http://a/v1", "api_key_env": "THE_KEY"}
    plain = loaded(tmp_path, "model.target_base_url=http://b/v1", target_backend="python:a.py:b", **shared)
    assert plain.notices == (
        "no effect on python:a.py:b, which asks no model of this run (target_gateway): model.target_base_url",
    )
    assert [each.setting for each in origins(plain, "target")] == ["backend", "model"]
    assert not heeds(plain, "target", "api_key_env")
    asking = loaded(tmp_path, target_backend="python:a.py:b", target_gateway="openai", target="m", **shared)
    assert not asking.notices
    assert {"base_url", "api_key_env"} < {each.setting for each in origins(asking, "target")}


@pytest.mark.parametrize(("backend", "count"), [("openai", 1), ("simulated", 0), ("python:a.py:b", 0)])
def test_fields_for_an_agent_are_told_to_be_idle_where_there_is_none(backend: str, count: int, tmp_path: Path) -> None:
    """A chat model gets the question alone; a simulated one stands in for whatever a config is for."""
    model = {"target_backend": backend, **({} if ":" in backend else {"target": "m"})}
    config = loaded(tmp_path, 'env.agent_fields=["customer"]', **model)
    assert len([each for each in config.notices if "env.agent_fields has no effect" in each]) == count


def test_a_command_is_words_or_a_line_for_a_shell(tmp_path: Path) -> None:
    """Nothing is run by a shell."""
    config = loaded(tmp_path, target_backend="command", target_command="node 'my agent.js'")
    assert config.target_model.argv == ("node", "my agent.js")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"target_backend": "command"}, "target_command is None, but must be set"),
        ({"target_backend": "http"}, "target_url is '', but must be set"),
        ({"target_backend": "command", "target_command": "node 'x"}, "must be a command as for a shell"),
        ({"target_backend": "command", "target_command": 7}, "must be a command: a list of texts"),
        (
            {"target_backend": "openai", "target": "x", "target_url": "http://h/x"},
            "left out: it is for the backend http",
        ),
        ({"target_backend": "openai", "target": "x", "target_gateway": "simulated"}, "it is for the backend python or"),
        ({"target_backend": "python:a.py:f", "target_gateway": "openai"}, "model.target is '', but must be the name"),
    ],
)
def test_a_mistake_is_named_with_its_key(model: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigError, match=said):
        loaded(tmp_path, **model)


def test_a_key_for_both_roles_is_not_sent_to_an_agent(tmp_path: Path) -> None:
    """It is the provider's; one that is named for the target alone is meant for it."""
    heads: list[bytes] = []

    class Listening(Endpoint):
        async def _talk(self, reader: Any, writer: Any) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            heads.append(head)
            body = b'"x"'
            writer.write(b"HTTP/1.1 200 -\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
            await writer.drain()

    with Listening(lambda _: Reply()) as endpoint:
        for name in ("api_key_env", "target_api_key_env"):
            model = {"target_backend": "http", "target_url": f"{endpoint.url}/answer", name: "KEY"}
            opened = open_model(loaded(tmp_path, **model), "target", {"KEY": KEY})
            assert asyncio.run(opened.complete(question())).text == "x"
    shared, own = heads
    assert KEY.encode() not in shared
    assert KEY.encode() in own


def test_money_is_bounded_by_a_gateway_alone(tmp_path: Path) -> None:
    """No price of an agent's name would help; with a gateway its model's is asked for."""
    unit = ("prices.unit=USD per 1M tokens", "prices.models={big: {input: 1, output: 1}}", "budget.max_cost=5")
    assert loaded(tmp_path, *unit, target_backend="python:a.py:f").budget.max_cost == 5
    with pytest.raises(ConfigError, match="needs the price of every model, and small has none"):
        loaded(tmp_path, *unit, target_backend="python:a.py:f", target_gateway="simulated", target="small")
