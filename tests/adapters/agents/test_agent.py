"""Agents of one's own as models: a function, a process, an address; on good days and on bad ones."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.agents import all_gone
from support.chat import question, settings
from support.ready import PATIENCE

from skillopt_es.adapters.agents import command, http, python_code
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import AgentSettings, AgentStep, CallFailed, ChatModel, ChatReply, Message
from skillopt_es.testing.endpoint import Endpoint, Reply
from skillopt_es.testing.models import MODEL_CHECKS, ModelCase

SKILL = SkillTree({"SKILL.md": "- know tea\n", "references/more.md": "Tea is green."})
SHOWN = "## Skill\n- know tea\n\n### references/more.md\nTea is green."
QUESTION = question(
    messages=(Message("system", f"Be brief.\n\n{SHOWN}"), Message("user", "Which tea?")),
    skill=SKILL,
    item="t/1",
    seed=7,
)
OWN = AgentSettings(command="", access="read", network=False, env=(), processes=4)
SECRET = "sk-a-secret-of-the-shop-0123456789"


def python(folder: Path, code: str, **changes: object) -> ChatModel:
    """An agent in a file."""
    (folder / "mine.py").write_text(code)
    agent = evolve(OWN, folder=str(folder))
    given = {"backend": "python:mine.py:answer", "agent": agent, "backoff_seconds": 0.001, **changes}
    return python_code.open_model(settings("", **given), {})


def program(folder: Path, code: str, *, env: Mapping[str, str] | None = None, **changes: object) -> ChatModel:
    """An agent as a shell script, with one variable of the user's."""
    script = folder / "agent.sh"
    script.write_text(f"#!/bin/sh\n{code}\n")
    script.chmod(0o755)
    named = env or {}
    agent = evolve(OWN, folder=str(folder), argv=("./agent.sh",), env=tuple(named))
    environ = {"PATH": os.environ["PATH"], "OTHER_KEY": "sk-not-its-business", **named}
    given = {"backend": "command", "agent": agent, "backoff_seconds": 0.001, **changes}
    return command.open_model(settings("", **given), environ)


def address(url: str, **changes: object) -> ChatModel:
    """An agent behind an address."""
    agent = evolve(OWN, url=f"{url}/answer")
    given = {"backend": "http", "agent": agent, "backoff_seconds": 0.001, **changes}
    return http.open_model(settings("", **given), {"SHOP_KEY": SECRET})


def asked(model: ChatModel) -> ChatReply:
    """The answer to one question."""
    return asyncio.run(model.complete(QUESTION))


def failed(model: ChatModel) -> CallFailed:
    """The failure of one question."""
    with pytest.raises(CallFailed) as caught:
        asked(model)
    return caught.value


def test_a_function_gets_the_task_as_a_value(tmp_path: Path) -> None:
    """The skill as text and in a folder of the attempt's own; it may be async."""
    code = """
from pathlib import Path

async def answer(task):
    folder = Path(task.skill.folder)
    assert (folder / "references" / "more.md").read_text() == task.skill.files["references/more.md"]
    assert task.instructions == "Be brief." and task.messages[0].content.startswith("Be brief.")
    said = f"{task.item} {task.task} {task.skill.text.splitlines()[0]} {task.seed} {task.deadline_seconds:g}"
    return {"answer": said, "steps": [f"read {folder}"], "usage": {"input": 1, "output": 2}, "cost": 0.5}
"""
    reply = asked(python(tmp_path, code))
    assert reply.text == "t/1 Which tea? - know tea 7 5"
    assert reply.steps == (AgentStep(kind="message", text="read /skill"),)
    assert (reply.usage.input, reply.usage.output, reply.cost, reply.finish) == (1, 2, Decimal("0.5"), "stop")


def test_a_program_gets_the_task_on_stdin_and_a_clean_environment(tmp_path: Path) -> None:
    """It starts in the config's folder; of our variables it has those that are named, and no key of ours."""
    code = 'cat > task.json; env > env.txt; ls "$HOME" > /dev/null 2>&1; echo \'{"answer": "green"}\''
    assert asked(program(tmp_path, code, env={"SHOP": "open"})).text == "green"
    task = json.loads((tmp_path / "task.json").read_text())
    assert (task["task"], task["skill"]["text"].splitlines()[0]) == ("Which tea?", "- know tea")
    assert not Path(task["skill"]["folder"]).exists()
    variables = (tmp_path / "env.txt").read_text()
    assert "SHOP=open" in variables
    assert "sk-not-its-business" not in variables


def test_an_address_gets_the_task_as_a_post(tmp_path: Path) -> None:
    """With its key in a header, where one is named."""
    with Endpoint(lambda _: Reply(body=b'{"answer": "green", "score": 0.5}')) as endpoint:
        reply = asked(address(endpoint.url, api_key_env="SHOP_KEY"))
    assert (reply.text, reply.steps[-1].kind) == ("green", "score")


NO_ANSWERS: Mapping[str, tuple[str, str]] = {
    "crash": (
        "echo oh >&2; echo 'the till is empty' >&2; exit 3",
        "exit code 3; its last words on stderr: oh",
    ),
    "invalid_reply": ("echo Hello", "'Hello', which is not a JSON object"),
    "empty": ('echo \'{"answer": "  "}\'', "the agent's answer is empty"),
    "timeout": ("echo thinking >&2; sleep 60", "the agent had no answer after 0.2 seconds"),
}


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_a_program_without_an_answer_says_what_happened(kind: str, tmp_path: Path) -> None:
    """A crash is tried again twice; whatever else has begun is not begun again."""
    code, said = NO_ANSWERS[kind]
    failure = failed(program(tmp_path, code, timeout_seconds=0.2 if kind == "timeout" else PATIENCE))
    assert (failure.kind, len(failure.tries)) == (kind, 3 if kind == "crash" else 1)
    assert said in failure.message
    assert not failure.systemic


def test_secrets_are_taken_out_of_what_a_program_says(tmp_path: Path) -> None:
    """On stderr, in its answer and in its steps."""
    failure = failed(program(tmp_path, 'echo "no access with $SHOP_KEY" >&2; exit 1', env={"SHOP_KEY": SECRET}))
    assert "no access with [redacted]" in failure.message
    reply = asked(program(tmp_path, 'echo "{\\"answer\\": \\"$SHOP_KEY\\"}"', env={"SHOP_KEY": SECRET}))
    assert reply.text == "[redacted]"


def test_what_a_late_program_has_started_ends_with_it(tmp_path: Path) -> None:
    """The whole process group is killed at the deadline."""
    failed(program(tmp_path, "exec 9> held; flock -s 9; sleep 900 & echo $! > child; wait", timeout_seconds=1))
    assert (tmp_path / "child").read_text()
    assert all_gone(tmp_path / "held")


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("def answer(task): return task.skil", "crash", "mine.py:answer raised AttributeError"),
        ("import sys\ndef answer(task): sys.exit('closed')", "crash", "raised SystemExit: closed"),
        ("def answer(task): raise TimeoutError('upstream')", "crash", "raised TimeoutError: upstream"),
        ("def answer(task): return 7", "invalid_reply", "7 is neither a text"),
        ("def answer(task): return ''", "empty", "is empty"),
        ("import asyncio\nasync def answer(task): await asyncio.sleep(60)", "timeout", "after 0.2 seconds"),
        ("def answer(task): return {'error': 'sold out'}", "crash", "the agent says: sold out"),
    ],
)
def test_a_function_without_an_answer_says_what_happened(tmp_path: Path, code: str, kind: str, said: str) -> None:
    """Whatever it raises; a timeout of its own is not ours."""
    failure = failed(python(tmp_path, code, timeout_seconds=0.2 if kind == "timeout" else PATIENCE))
    assert (failure.kind, said in failure.message) == (kind, True), failure.message


@pytest.mark.parametrize(
    ("reply", "kind", "systemic", "tries"),
    [
        (Reply(status=500, body=b'{"error": "the till is empty"}'), "crash", False, 3),
        (Reply(status=401, body=b"no"), "auth", True, 0),
        (Reply(status=404), "config", True, 0),
        (Reply(status=504), "timeout", False, 1),
        (Reply(body=b"<html>"), "invalid_reply", False, 1),
        (Reply(body=b'{"answer": ""}'), "empty", False, 1),
        (Reply(body=b'{"answer": "green"}', cut=True), "crash", False, 3),
        (Reply(body=b'{"answer": "green"}', delay=5), "timeout", False, 1),
    ],
)
def test_an_address_without_an_answer_says_what_happened(reply: Reply, kind: str, systemic: bool, tries: int) -> None:
    """What every later attempt would meet, too, pauses the run."""
    with Endpoint(lambda _: reply) as endpoint:
        failure = failed(address(endpoint.url, timeout_seconds=0.2 if reply.delay else PATIENCE))
        late_before_asked = bool(reply.delay) and not endpoint.requests
        assert endpoint.requests == max(1, tries) or late_before_asked
    assert (failure.kind, failure.systemic, len(failure.tries)) == (kind, systemic, tries), failure.message


def test_an_address_that_wants_a_key_says_where_to_name_one() -> None:
    """Which is all that can be done about it."""
    with Endpoint(lambda _: Reply(status=401)) as endpoint:
        hint = failed(address(endpoint.url)).hint
    assert "names the variable that holds it" in hint
    assert "target_api_key_env" in hint


def test_only_an_attempt_that_never_began_is_made_again() -> None:
    """An address that says "not now" is asked once more; one that is not there, as often as configured."""
    with Endpoint(lambda number: Reply(status=503) if number == 1 else Reply(body=b'"green"')) as endpoint:
        assert [each.kind for each in asked(address(endpoint.url)).tries] == ["rate_limit"]
    failure = failed(address("http://127.0.0.1:9", attempts=3))
    assert (failure.kind, len(failure.tries)) == ("transport", 3)


def test_no_more_programs_run_at_once_than_configured(tmp_path: Path) -> None:
    """`agent_processes` is a limit, whatever is asked."""
    code = "echo x >> begun; sleep 0.05; wc -l < begun > seen.$$; echo '\"green\"'"
    model = program(tmp_path, code, concurrency=2)

    async def many() -> None:
        await asyncio.gather(*(model.complete(QUESTION) for _ in range(6)))

    asyncio.run(many())
    seen = sorted(int(file.read_text()) for file in tmp_path.glob("seen.*"))
    assert len(seen) == 6
    assert seen[0] <= 2
    assert seen[2] <= 4


MISTAKES: Mapping[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "optimizer": (
        python_code.open_model,
        {"backend": "python:m.py:f", "role": "optimizer"},
        "optimizer is a model",
    ),
    "temperature": (python_code.open_model, {"backend": "python:m.py:f", "temperature": 0.0}, "decides that itself"),
    "no function": (python_code.open_model, {"backend": "python:m.py"}, "must name a file or a module"),
    "no file": (python_code.open_model, {"backend": "python:m.py:f"}, "cannot be imported"),
    "no command": (command.open_model, {"backend": "command"}, "is not set"),
    "no program": (command.open_model, {"backend": "command", "argv": ("nothing-like-it",)}, "there is no program"),
    "no address": (http.open_model, {"backend": "http"}, "is not set"),
    "bad address": (http.open_model, {"backend": "http", "url": "127.0.0.1:80/x"}, "must be like http://"),
    "no key": (http.open_model, {"backend": "http", "url": "http://h/x", "api_key_env": "KEY"}, "KEY is not set"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_work_is_refused_at_opening(name: str, tmp_path: Path) -> None:
    """Before anything is paid for."""
    opener, changes, said = MISTAKES[name]
    own = {key: changes[key] for key in ("argv", "url") if key in changes}
    others = {key: value for key, value in changes.items() if key not in own}
    given = settings("", agent=evolve(OWN, folder=str(tmp_path), **own), **others)
    with pytest.raises(ConfigError, match=said):
        opener(given, {})


@pytest.mark.parametrize("check", MODEL_CHECKS)
def test_a_function_keeps_to_what_every_adapter_keeps_to(check: str, tmp_path: Path) -> None:
    """Many at once, in one loop after another, cancelled anywhere."""
    (tmp_path / "mine.py").write_text("def answer(task): return 'four'")
    given = settings("", backend="python:mine.py:answer", agent=evolve(OWN, folder=str(tmp_path)))
    MODEL_CHECKS[check](ModelCase(open=python_code.open_model, settings=given))
