"""The exact command line of every agent and access: what it may do is decided here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve
from support.agents import AGENTS, installed
from support.chat import question

from skillopt_es.adapters.harnesses.agent import Access, Run
from skillopt_es.adapters.harnesses.claude_code import ClaudeCode
from skillopt_es.adapters.harnesses.codex import Codex
from skillopt_es.adapters.harnesses.copilot import Copilot
from skillopt_es.errors import ConfigError

RUN = Run(
    model="big",
    access="read",
    network=False,
    web=False,
    thinking_tokens=None,
    effort="",
    schema=None,
    base_url="",
    has_key=False,
    workspace=Path("/w"),
    notes=Path("/n"),
)
CODEX = (
    "exec --json --ephemeral --ignore-user-config --ignore-rules --skip-git-repo-check --color never --cd /w "
    '--sandbox {} -c approval_policy="never" -c web_search="{}"'
)
CLAUDE = (
    "-p --output-format stream-json --verbose --no-session-persistence --setting-sources project --strict-mcp-config "
    "--permission-mode {}"
)
CURSOR = "-p --output-format stream-json --trust --workspace /w --sandbox {}"
COPILOT = (
    "--output-format json --stream off --no-color --log-level none -C /w --disallow-temp-dir --disable-builtin-mcps "
    "--no-custom-instructions --no-auto-update --no-ask-user --usage-output-file /n/usage.json"
)
EDIT = (
    f"{CODEX.format('workspace-write', '{}')} -c sandbox_workspace_write.network_access={{}} "
    "-c sandbox_workspace_write.exclude_slash_tmp=true --model big -"
)


@pytest.mark.parametrize(
    ("name", "access", "network", "expected"),
    [
        ("codex", "none", True, CODEX.format("read-only", "disabled") + " --model big -"),
        ("codex", "read", False, CODEX.format("read-only", "disabled") + " --model big -"),
        ("codex", "read", True, CODEX.format("read-only", "live") + " --model big -"),
        ("codex", "edit", False, EDIT.format("disabled", "false")),
        ("codex", "edit", True, EDIT.format("live", "true")),
        ("codex", "full", False, CODEX.format("danger-full-access", "disabled") + " --model big -"),
        ("claude_code", "none", True, CLAUDE.format("dontAsk") + " --tools  --model big"),
        (
            "claude_code",
            "read",
            False,
            CLAUDE.format("dontAsk") + " --tools Skill,Read,Grep,Glob --allowedTools Skill --model big",
        ),
        (
            "claude_code",
            "read",
            True,
            CLAUDE.format("dontAsk")
            + " --tools Skill,Read,Grep,Glob,WebFetch,WebSearch --allowedTools Skill,WebFetch,WebSearch --model big",
        ),
        (
            "claude_code",
            "edit",
            False,
            CLAUDE.format("acceptEdits") + " --tools Skill,Read,Grep,Glob,Edit,Write --allowedTools Skill --model big",
        ),
        (
            "claude_code",
            "full",
            False,
            CLAUDE.format("bypassPermissions") + " --disallowedTools WebFetch,WebSearch --model big",
        ),
        ("cursor", "read", False, CURSOR.format("enabled") + " --mode ask --model big"),
        ("cursor", "edit", False, CURSOR.format("enabled") + " --force --model big"),
        ("cursor", "full", False, CURSOR.format("disabled") + " --force --model big"),
        ("copilot", "none", True, COPILOT + " --available-tools none --model big"),
        ("copilot", "read", False, COPILOT + " --available-tools view,grep,glob,skill --model big"),
        (
            "copilot",
            "read",
            True,
            COPILOT + " --available-tools view,grep,glob,skill,web_fetch --allow-all-urls --model big",
        ),
        (
            "copilot",
            "edit",
            False,
            COPILOT
            + " --available-tools view,grep,glob,skill,create,edit,apply_patch --allow-tool write --model big",
        ),
        ("copilot", "full", False, COPILOT + " --allow-all-tools --excluded-tools web_fetch --model big"),
    ],
)  # fmt: skip
def test_an_agent_may_do_what_its_access_says(name: str, access: Access, network: bool, expected: str) -> None:
    """Nothing more, and the prompt is never an argument."""
    assert " ".join(AGENTS[name]().arguments(evolve(RUN, access=access, network=network, web=network))) == expected


def test_searching_the_web_is_not_the_network_of_commands() -> None:
    """One may be had without the other, where the agent tells them apart."""
    run = evolve(RUN, access="edit", web=True)
    assert " ".join(Codex().arguments(run)) == EDIT.format("live", "false")
    assert "WebSearch" in " ".join(ClaudeCode().arguments(run))
    assert "web_fetch" in " ".join(Copilot().arguments(run))


def test_claude_code_is_told_how_long_to_think() -> None:
    """By its own variable."""
    assert "MAX_THINKING_TOKENS" not in ClaudeCode().environment(RUN, None)
    assert ClaudeCode().environment(evolve(RUN, thinking_tokens=16384), None)["MAX_THINKING_TOKENS"] == "16384"


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("codex", ["-c", 'model_reasoning_effort="high"']),
        ("claude_code", ["--effort", "high"]),
        ("copilot", ["--reasoning-effort", "high"]),
    ],
)
def test_effort_is_passed_on(name: str, option: list[str]) -> None:
    """And left out when it is not set."""
    agent = AGENTS[name]()
    assert " ".join(option) in " ".join(agent.arguments(evolve(RUN, effort="high")))
    assert option[-1] not in agent.arguments(RUN)


def test_a_schema_reaches_those_that_take_one(tmp_path: Path) -> None:
    """As a file, as an argument; Copilot takes none and is asked in words, as every optimizer is."""
    schema = {"type": "object", "properties": {}}
    run = evolve(RUN, access="none", schema=schema, notes=tmp_path)
    codex = list(AGENTS["codex"]().arguments(run))
    assert json.loads(Path(codex[codex.index("--output-schema") + 1]).read_text()) == schema
    claude = list(AGENTS["claude_code"]().arguments(run))
    assert json.loads(claude[claude.index("--json-schema") + 1]) == schema


def test_an_endpoint_of_the_users_own() -> None:
    """For those that can be sent elsewhere; the key's name is passed, never the key."""
    run = evolve(RUN, base_url="http://127.0.0.1:9/v1", has_key=True)
    arguments = " ".join(AGENTS["codex"]().arguments(run))
    assert '-c model_provider="skillopt" -c model_providers.skillopt={name = "skillopt", base_url = ' in arguments
    assert 'wire_api = "responses", env_key = "CODEX_API_KEY"}' in arguments
    assert AGENTS["claude_code"]().environment(run, None)["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9/v1"
    assert AGENTS["copilot"]().environment(run, None)["COPILOT_PROVIDER_BASE_URL"] == "http://127.0.0.1:9/v1"


def test_no_model_means_the_agents_own_choice() -> None:
    """`default` in the config."""
    for make in AGENTS.values():
        assert "--model" not in make().arguments(evolve(RUN, model=""))


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("cursor", {"role": "optimizer"}, "cursor can only be a target: set model.optimizer_backend"),
        ("cursor", {"base_url": "http://h/v1"}, "cursor takes no endpoint: set model.target_base_url"),
        ("cursor", {"agent_network": True}, "set model.target_agent_network"),
        ("cursor", {"agent_web_search": True}, "set model.target_agent_web_search"),
        ("codex", {"agent_thinking_tokens": 9}, "model.target_agent_thinking_tokens (or model.agent_thinking_tokens)"),
        ("copilot", {"base_url": "http://h/v1", "model": "default"}, "set model.target"),
        ("codex", {"base_url": "h:80"}, "model.target_base_url (or model.base_url) must be like http"),
        ("codex", {"api_key_env": "NOT_SET"}, "the environment variable NOT_SET is not set"),
        (
            "codex",
            {"agent_env": ("NOT_SET",)},
            "the environment variable NOT_SET is not set, but model.target_agent_env",
        ),
        ("codex", {"agent_env": ("sk-a secret",)}, "is not the name of an environment variable"),
        ("codex", {"agent_command": "/no/such/codex"}, "codex is not installed: there is no executable /no/such/codex"),
    ],
)
def test_what_cannot_work_is_refused_before_a_run(
    tmp_path: Path, name: str, changes: dict[str, object], words: str
) -> None:
    """One sentence with the setting, and what to do."""
    agent = installed(name, tmp_path / "agent")
    with pytest.raises(ConfigError) as caught:
        agent.opened(**changes)
    assert words in caught.value.message
    assert "a secret" not in caught.value.message


def test_an_agent_that_is_not_installed_says_how(tmp_path: Path) -> None:
    """With the command to type."""
    agent = installed("claude_code", tmp_path / "agent")
    with pytest.raises(ConfigError) as caught:
        agent.opened({"PATH": str(tmp_path)})
    assert "npm install -g @anthropic-ai/claude-code" in caught.value.hint
    assert "model.target_agent_command" in caught.value.hint


async def _asked(tmp_path: Path, name: str) -> tuple[str, dict[str, object]]:
    agent = installed(name, tmp_path / name, answer='{"ready": true}')
    schema = {"type": "object", "properties": {"ready": {"type": "boolean"}}}
    reply = await agent.opened(role="optimizer").complete(question(stage="analyst", schema=schema))
    return reply.text, agent.runs[0]


@pytest.mark.parametrize("name", ["codex", "claude_code", "copilot"])
def test_an_optimizer_has_an_empty_folder_and_no_tools(tmp_path: Path, name: str) -> None:
    """The question is the whole of what it gets; a schema is kept where the agent has one."""
    import asyncio

    text, run = asyncio.run(_asked(tmp_path, name))
    assert json.loads(text) == {"ready": True}
    assert run["files"] == []
    assert "2+2?" in str(run["prompt"])
    assert "use no tools" in str(run["prompt"])
