"""Coding agents as models, against processes that behave like the real command lines on good and on bad days."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from support.agents import AGENTS, InstalledAgent, installed
from support.chat import question
from support.environments import CONFINED
from support.params import parametrized
from support.ready import PATIENCE

from skillopt_es.adapters.harnesses import harness as harness_module
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import Answers, CallFailed, ChatReply, ChatRequest, Message

SKILL = SkillTree({"SKILL.md": "- know apple\n", "references/more.md": "Apples are fruit.\n"})
OTHERS = ("cursor", "copilot")
SHOWN = "## Skill\n- know apple\n\n### references/more.md\nApples are fruit."
QUESTION = question(
    messages=(Message("system", f"Answer with one word.\n\n{SHOWN}"), Message("user", "kind: apple id: t1")),
    skill=SKILL,
)


@pytest.fixture(params=["codex", "claude_code", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> InstalledAgent:
    """Each of the agents; two of them for what all go through."""
    return installed(request.param, tmp_path / "agent")


@pytest.fixture
def any_agent(tmp_path: Path) -> InstalledAgent:
    """One of them, for what the process has to go through whoever it is."""
    return installed("codex", tmp_path / "agent")


@pytest.fixture
def claude(tmp_path: Path) -> InstalledAgent:
    """Claude Code."""
    return installed("claude_code", tmp_path / "agent")


def asked(agent: InstalledAgent, request: ChatRequest = QUESTION, **changes: object) -> ChatReply:
    """The answer to one question."""
    return asyncio.run(agent.opened(**changes).complete(request))


def failed(agent: InstalledAgent, request: ChatRequest = QUESTION, **changes: object) -> CallFailed:
    """The failure of one question."""
    with pytest.raises(CallFailed) as caught:
        asked(agent, request, **changes)
    return caught.value


@pytest.mark.parametrize("agent", AGENTS, indirect=True)
def test_the_last_message_is_the_answer_and_what_came_before_are_steps(agent: InstalledAgent) -> None:
    """One form for every agent: steps with their output, tokens, the session."""
    reply = asked(agent)
    assert (reply.text, reply.finish) == ("right", "stop")
    [step] = reply.steps
    assert step.kind in ("command", "tool")
    assert "trained-skill/SKILL.md" in step.text
    assert "know apple" in step.output
    assert step.ok
    assert reply.request_id in ("session-1", "thread-1")
    tokens = (None, None, None) if agent.name == "cursor" else (100, 7, 40)
    assert (reply.usage.input, reply.usage.output, reply.usage.cached) == tokens


def test_the_skill_lies_where_the_agent_looks_for_skills_and_is_named(agent: InstalledAgent) -> None:
    """Its files as they are, with front matter; the prompt has the task and the skill's place, not its text."""
    asked(agent)
    [run] = agent.runs
    place = f"{AGENTS[agent.name]().skills}/trained-skill"
    assert run["files"] == [f"{place}/SKILL.md", f"{place}/references/more.md"]
    assert f"{place}/SKILL.md" in run["prompt"]
    assert "kind: apple id: t1" in run["prompt"]
    assert "Answer with one word." in run["prompt"]
    assert "know apple" not in run["prompt"]


def test_a_skill_with_a_name_of_its_own_keeps_it(any_agent: InstalledAgent) -> None:
    """The file that is trained is the file that will be used."""
    text = "---\nname: fruit-names\ndescription: Knows fruit.\n---\n- know apple\n"
    asked(any_agent, question(messages=(Message("user", "kind: apple"),), skill=SkillTree({"SKILL.md": text})))
    [run] = any_agent.runs
    assert run["files"] == [f"{AGENTS[any_agent.name]().skills}/fruit-names/SKILL.md"]


def test_a_folder_of_skills_lies_where_the_agent_looks_for_skills(any_agent: InstalledAgent) -> None:
    """Each in its own folder, as it is; the prompt names none of them, for the agent finds them itself."""
    tree = SkillTree({"dates/SKILL.md": "d", "money/SKILL.md": "m", "money/references/codes.md": "EUR"}, main="")
    asked(any_agent, question(messages=(Message("user", "kind: apple"),), skill=tree))
    [run] = any_agent.runs
    place = AGENTS[any_agent.name]().skills
    assert run["files"] == [f"{place}/{path}" for path in tree.files]
    assert "money" not in run["prompt"]


def test_what_codex_reads_because_a_task_names_it_is_among_its_steps(agent: InstalledAgent) -> None:
    """It shows its model a skill that is called `$name`, and says nothing of it; the others need asking."""
    tree = SkillTree({"dates/SKILL.md": "d", "money/SKILL.md": "m", "cash/SKILL.md": "c"}, main="")
    reply = asked(agent, question(messages=(Message("user", "Pay $money. Not $cash-only, $gold, dates"),), skill=tree))
    read = [step.text for step in reply.steps if step.text.startswith("skill ")]
    assert read == (['skill {"name": "money"} (the task names it)'] if agent.name == "codex" else [])


def test_without_a_skill_the_workspace_is_empty(any_agent: InstalledAgent) -> None:
    """A blank skill is none."""
    asked(any_agent, question(messages=(Message("user", "kind: apple"),), skill=SkillTree({"SKILL.md": " \n"})))
    [run] = any_agent.runs
    assert run["files"] == []
    assert "skill" not in run["prompt"]


def test_the_workspace_is_private_and_gone_afterwards(any_agent: InstalledAgent) -> None:
    """Two runs share nothing; nothing is left."""
    asked(any_agent)
    asked(any_agent)
    first, second = (Path(run["cwd"]) for run in any_agent.runs)
    assert first != second
    assert not first.parent.exists()
    assert not second.parent.exists()


def test_records_do_not_depend_on_where_the_workspace_was(agent: InstalledAgent) -> None:
    """Equal doings are equal records."""
    agent.behaves(answer="done")
    one, other = asked(agent), asked(agent)
    assert one.steps == other.steps
    assert "skillopt-agent-" not in repr(one.steps)


def test_an_agent_gets_few_variables_and_no_key_of_anybody_else(agent: InstalledAgent) -> None:
    """The list of what is passed is short; the key comes under the name that the agent knows."""
    key = {"MY_KEY": "sk-canary-very-secret", "EXTRA": "yes-this-one", "AWS_SECRET_ACCESS_KEY": "no"}
    reply = asyncio.run(
        agent.opened({**agent.environ, **key}, api_key_env="MY_KEY", agent_env=("EXTRA",)).complete(QUESTION)
    )
    assert reply.text == "right"
    [run] = agent.runs
    names = set(run["env"])
    assert not names & {"OPENAI_API_KEY", "MY_KEY", "AWS_SECRET_ACCESS_KEY"}
    assert run["env"][AGENTS[agent.name]().key_variables[0]] == "sk-canary-very-secret"
    assert run["env"]["EXTRA"] == "yes-this-one"
    assert run["env"]["HOME"] != agent.environ["HOME"]
    assert "sk-canary" not in repr(run["argv"]) + run["prompt"]


def test_who_signed_in_by_hand_is_found_in_the_users_home(any_agent: InstalledAgent) -> None:
    """Without a key of ours the agent's own sign-in is used."""
    asked(any_agent)
    [run] = any_agent.runs
    assert run["env"]["HOME"] == any_agent.environ["HOME"]


def test_a_key_that_the_agent_quotes_is_redacted(agent: InstalledAgent) -> None:
    """In the answer, in steps and in errors."""
    environ = {**agent.environ, "MY_KEY": "sk-canary-very-secret"}
    agent.behaves(answer="it is sk-canary-very-secret")
    reply = asyncio.run(agent.opened(environ, api_key_env="MY_KEY").complete(QUESTION))
    assert reply.text == "it is [redacted]"
    agent.behaves(mode="fails", message="HTTP 401 Unauthorized: wrong key sk-canary-very-secret", status=401)
    with pytest.raises(CallFailed) as caught:
        asyncio.run(agent.opened(environ, api_key_env="MY_KEY").complete(QUESTION))
    assert caught.value.kind == "auth"
    assert "canary" not in caught.value.message + repr(caught.value.tries)
    assert "MY_KEY" in caught.value.hint


def test_a_missing_answer_is_missing_and_asked_for_once_more(agent: InstalledAgent) -> None:
    """What the agent printed on the way is never the answer."""
    agent.behaves(mode="silent")
    failure = failed(agent)
    assert failure.kind == "empty"
    assert len(agent.runs) == 2
    assert "ended without an answer" in agent.runs[1]["prompt"]
    assert "ended without an answer" not in agent.runs[0]["prompt"]


def test_an_answer_at_the_second_try_counts(any_agent: InstalledAgent) -> None:
    """And the first try is on record."""
    any_agent.behaves(mode="empty_once")
    reply = asked(any_agent)
    assert reply.text == "right"
    assert [each.kind for each in reply.tries] == ["empty"]


def test_an_agent_that_hangs_without_a_word_was_not_there(any_agent: InstalledAgent) -> None:
    """It never reached its model: an outage, no result of the skill."""
    any_agent.behaves(mode="hang")
    failure = failed(any_agent, timeout_seconds=0.7)
    assert failure.kind == "transport"
    assert "no sign of life in 0.7 seconds" in failure.message
    assert len(any_agent.runs) == 1


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "authentication_failed", "auth"),
        (403, "oauth_org_not_allowed", "auth"),
        (402, "billing_error", "quota"),
        (404, "model_not_found", "config"),
    ],
)
def test_claude_is_not_left_asking_with_a_key_that_is_refused(
    claude: InstalledAgent, status: int, message: str, kind: str
) -> None:
    """It would ask ten times, for minutes: the second refusal is enough, so no third one is reported here."""
    claude.behaves(mode="asks_again", status=status, message=message, tries=2)
    failure = failed(claude, timeout_seconds=PATIENCE)
    assert (failure.kind, failure.status, failure.systemic, len(claude.runs)) == (kind, status, True, 1)
    assert f"HTTP {status} ({message.replace('_', ' ')}), try 2 of 10" in failure.message
    assert claude.gone


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [(429, "rate_limit", "rate_limit"), (529, "overloaded", "rate_limit"), (500, "server_error", "server"),
     (None, "unknown", "transport")],
)  # fmt: skip
def test_claude_says_what_its_provider_said_until_its_time_was_over(
    claude: InstalledAgent, status: int | None, message: str, kind: str
) -> None:
    """Too many requests, and errors of the server, are what they are; it may repeat those as long as it has time."""
    claude.behaves(mode="asks_again", status=status, message=message)
    failure = failed(claude, timeout_seconds=2)
    assert (failure.kind, failure.status, failure.systemic) == (kind, status, False)
    assert "try 10 of 10" in failure.message


def test_one_that_worked_too_long_is_late_and_leaves_no_process(any_agent: InstalledAgent) -> None:
    """It ignores SIGTERM and has a child: both are gone after the grace."""
    any_agent.behaves(mode="stubborn")
    began = time.monotonic()
    failure = failed(any_agent, timeout_seconds=1.5)
    assert failure.kind == "timeout"
    assert "timeout_seconds" in failure.hint
    assert time.monotonic() - began < PATIENCE
    assert (any_agent.folder / "child").exists()
    assert any_agent.gone


def test_a_child_that_is_left_behind_holds_nobody_up(any_agent: InstalledAgent) -> None:
    """The agent has answered and gone; its child is ended."""
    any_agent.behaves(mode="leaves_child")
    began = time.monotonic()
    assert asked(any_agent).text == "right"
    assert time.monotonic() - began < PATIENCE
    assert (any_agent.folder / "child").exists()
    assert any_agent.gone


def test_one_that_does_not_leave_after_its_answer_has_answered(any_agent: InstalledAgent) -> None:
    """Its stream says that it is done; only the process stayed."""
    any_agent.behaves(mode="slow_to_leave")
    assert asked(any_agent, timeout_seconds=1).text == "right"


def wait_for(file: Path) -> None:
    """Until the file has something in it."""
    for _ in range(1000):
        if file.exists() and file.read_text():
            return
        time.sleep(0.01)
    raise AssertionError(f"{file} never came")


def test_cancelling_ends_the_agent_at_once(any_agent: InstalledAgent) -> None:
    """The second Ctrl-C."""
    any_agent.behaves(mode="stubborn")

    async def go() -> None:
        task = asyncio.create_task(any_agent.opened().complete(QUESTION))
        await asyncio.to_thread(wait_for, any_agent.folder / "child")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert (any_agent.folder / "child").exists()
    assert any_agent.gone


def test_huge_output_ends_the_run(any_agent: InstalledAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that prints without end does not fill the memory."""
    monkeypatch.setattr(harness_module, "MOST_STREAM", 2**20)
    any_agent.behaves(mode="flood")
    failure = failed(any_agent)
    assert failure.kind == "invalid_reply"
    assert "far more than" in failure.message


def test_a_garbage_line_hides_nothing(agent: InstalledAgent) -> None:
    """Bytes that are no text, JSON that is no object, events of unknown kinds: read on."""
    agent.behaves(mode="garbage")
    reply = asked(agent)
    assert reply.text == "right"
    assert [step.text for step in reply.steps if step.kind == "message"] == ["on my way"]


@parametrized(
    ("mode", "kind", "words"),
    [
        ("killed", "server", "signal 9"),
        ("crashed", "server", "exit code 3: error: something broke inside"),
        ("cut", "server", "ends before its result"),
        ("prose", "invalid_reply", "printed no events: Hello! I am not an agent."),
    ],
    by_default=1,
)
def test_a_breakdown_is_no_answer(agent: InstalledAgent, mode: str, kind: str, words: str) -> None:
    """Even when it had said something before."""
    agent.behaves(mode=mode)
    failure = failed(agent, attempts=2, patience_seconds=0.2)
    assert failure.kind == kind
    assert words in failure.message
    assert len(agent.runs) == (2 if kind == "server" else 1)


def test_who_is_not_signed_in_is_told_how(agent: InstalledAgent) -> None:
    """A systemic failure: every later call would fail, so none is made."""
    agent.behaves(mode="signed_out")

    async def go() -> None:
        model = agent.opened()
        for _ in range(2):
            with pytest.raises(CallFailed) as caught:
                await model.complete(QUESTION)
            assert caught.value.kind == "auth"
            assert "login" in caught.value.hint
            assert "api_key_env" in caught.value.hint

    asyncio.run(go())
    assert len(agent.runs) == 1


def test_a_refused_option_is_a_matter_of_versions(agent: InstalledAgent) -> None:
    """Not retried, and the hint says what to install."""
    refused = {"codex": "--ephemeral", "claude_code": "--strict-mcp-config", "copilot": "-C", "cursor": "--trust"}
    agent.behaves(refuses=refused[agent.name])
    failure = failed(agent)
    assert failure.kind == "config"
    assert refused[agent.name] in failure.message
    assert AGENTS[agent.name]().install in failure.hint


@parametrized(
    ("message", "status", "kind"),
    [
        ("HTTP 429 Too Many Requests", 429, "rate_limit"),
        ("API Error: 529 Overloaded", 529, "rate_limit"),
        ("HTTP 500 Internal Server Error", 500, "server"),
        ("You've hit your usage limit. Upgrade your plan.", None, "quota"),
        ("The model `nope` does not exist", None, "config"),
        ("stream disconnected before completion", None, "transport"),
        ("Prompt is too long", None, "context_length"),
    ],
    by_default=3,
)
def test_what_the_agent_says_is_understood(agent: InstalledAgent, message: str, status: int | None, kind: str) -> None:
    """The kinds are those of every other model."""
    if agent.name == "cursor" and kind in ("context_length", "transport", "rate_limit"):
        pytest.skip("says nothing but a line on stderr: a breakdown, which is retried as well")
    agent.behaves(mode="fails", message=message, status=status)
    failure = failed(agent, attempts=2, patience_seconds=0.02)
    assert failure.kind == kind
    assert message.split(maxsplit=1)[0] in failure.message


def test_at_most_so_many_run_at_once(tmp_path: Path) -> None:
    """The bound is the agent's own, whatever the trainer asks for."""
    agent = installed("codex", tmp_path / "agent", mode="stubborn")

    async def go() -> list[BaseException | ChatReply]:
        model = agent.opened(agent_processes=2, timeout_seconds=0.5)
        return await asyncio.gather(*(model.complete(QUESTION) for _ in range(4)), return_exceptions=True)

    assert all(isinstance(each, CallFailed) for each in asyncio.run(go()))
    began = sorted(int(file.name.split("-")[1]) for file in agent.folder.glob("run-*.json"))
    assert began[2] - began[0] > 0.5e9


def test_a_temperature_is_refused(any_agent: InstalledAgent) -> None:
    """No agent has a way to keep it, and it would be wrong to ignore it."""
    failure = failed(any_agent, question(temperature=0.5))
    assert failure.kind == "config"
    assert "model.target_temperature" in failure.hint


@pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
def test_an_agent_is_not_asked_while_hidden_answers_lie_elsewhere(any_agent: InstalledAgent, tmp_path: Path) -> None:
    """One of its runs may have moved them, and put a copy of the rest in their place."""
    data = tmp_path / "project" / "data" / "tasks.jsonl"
    data.parent.mkdir(parents=True)
    data.write_text("gold")

    async def scenario() -> CallFailed:
        model = any_agent.opened()
        assert await model.hide(Answers(places=(data,), around=(data.parents[1],))) == ""
        assert (await model.complete(QUESTION)).text == "right"
        data.parents[1].rename(tmp_path / "elsewhere")
        data.parents[1].mkdir()
        with pytest.raises(CallFailed) as caught:
            await model.complete(QUESTION)
        return caught.value

    failure = asyncio.run(scenario())
    assert (failure.kind, failure.systemic) == ("config", True)
    assert f"has to be hidden, but it was moved during the run and is now {tmp_path / 'elsewhere'}" in failure.message
    assert len(any_agent.runs) == 1
