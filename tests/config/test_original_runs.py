"""Every shipped config of the original, unchanged but for endpoint and key, trains a step with each of its backends."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from support.agents import AGENTS, InstalledAgent, installed
from support.environments import CONFINED
from support.model_server import Answer, ModelServer
from support.original_checkout import BENCHMARKS, CONFIGS, VERSIONS, checkout
from support.params import parametrized
from support.scripted import ticking

from skillopt_es.cli.original_commands import train_words
from skillopt_es.config import RunConfig, load_config
from skillopt_es.errors import Interrupted
from skillopt_es.events.catalog import CandidateBuilt, CandidateGated, Event
from skillopt_es.events.journal import CallRow
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.session import start
from skillopt_es.sessions.wiring import Session

_EDITS = [{"op": "append", "target": "", "content": "- Give the name alone.", "from": ["1.1"], "support_count": 1}]
# What every question of the optimizer takes for an answer; as the target's it is wrong.
REPLY = json.dumps(
    {
        "reasoning": "r",
        "failure_summary": [],
        "patch": {"reasoning": "r", "edits": _EDITS},
        "edits": _EDITS,
        "selected_indices": [0],
    }
)
MESSAGES = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": REPLY}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 7, "output_tokens": 3},
}


def answer(body: Any, headers: Mapping[str, str]) -> Answer:
    """The same answer to everything, in the asker's format."""
    return Answer(raw=json.dumps(MESSAGES)) if "anthropic-version" in headers else Answer(text=REPLY)


@define
class OneStep:
    """Stops a run once its first step is over."""

    seen: Counter[str] = field(factory=Counter)

    def planned(self, task: object, state: AnyState) -> None:
        """A task is about to begin."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """An event is on disk."""
        self.seen[type(event).__name__] += 1

    def called(self, row: CallRow) -> None:
        """A call is on disk."""

    def over(self) -> bool:
        """Whether the first step has its verdict."""
        return bool(self.seen["CandidateGated"] + self.seen["StepSkipped"])


def one_step(config: RunConfig, folder: Path) -> Counter[str]:
    """Trains until the first step is over; how often each event was recorded."""
    watch = OneStep()
    session = Session(now=ticking(), clock=lambda: 0.0, observers=(watch,), stopping=watch.over)
    with pytest.raises(Interrupted):
        asyncio.run(start(config, folder, session))
    return watch.seen


def trained(words: str, folder: Path) -> tuple[RunConfig, Counter[str]]:
    """One step of what the original's command with these words starts, from the folder one stands in."""
    name, config, *settings = train_words(words.split())
    assert name == "run"
    overrides = [setting for setting in settings if setting != "--set"]
    loaded = load_config(Path(config), overrides, os.environ)
    return loaded, one_step(loaded, folder)


# --- endpoints -------------------------------------------------------------------------------------------------------

AZURE = "--azure_openai_endpoint {url} --azure_openai_auth_mode openai_compatible"
ENDPOINTS: Mapping[str, tuple[str, dict[str, str], tuple[str, str]]] = {
    "azure with a key": (
        "--azure_openai_endpoint {root} --azure_openai_auth_mode api_key",
        {"AZURE_OPENAI_API_KEY": "sk-azure-0123456789"},
        ("azure_openai", "azure_openai"),
    ),
    "azure's names, compatible": (AZURE, {"AZURE_OPENAI_API_KEY": "sk-compat-0123456789"}, ("openai", "openai")),
    "azure by the environment": (
        "",
        {"AZURE_OPENAI_ENDPOINT": "{url}", "AZURE_OPENAI_AUTH_MODE": "openai_compatible"},
        ("openai", "openai"),
    ),
    "compatible": (
        "--backend openai_compatible",
        {"OPENAI_COMPATIBLE_BASE_URL": "{url}", "OPENAI_COMPATIBLE_API_KEY": "sk-compat-0123456789"},
        ("openai", "openai"),
    ),
    "qwen": (
        "--target_backend qwen_chat --qwen_chat_base_url {url} " + AZURE,
        {"QWEN_CHAT_API_KEY": "sk-qwen-0123456789"},
        ("openai", "qwen_chat"),
    ),
    "qwen by the environment": (
        "--backend qwen --optimizer_backend qwen_chat",
        {"QWEN_CHAT_BASE_URL": "{url}", "QWEN_CHAT_MODEL": "Qwen/mine"},
        ("qwen_chat", "qwen_chat"),
    ),
    "minimax": (
        "--backend minimax --minimax_base_url {url} " + AZURE,
        {"MINIMAX_API_KEY": "sk-minimax-0123456789"},
        ("openai", "minimax_chat"),
    ),
    "minimax for both": (
        "--optimizer_backend minimax_chat --target_backend minimax_chat",
        {"MINIMAX_API_KEY": "sk-minimax-0123456789", "MINIMAX_BASE_URL": "{url}"},
        ("minimax_chat", "minimax_chat"),
    ),
    "anthropic": (
        "--backend anthropic --cfg-options model.base_url={root}",
        {"ANTHROPIC_API_KEY": "sk-ant-0123456789"},
        ("anthropic", "anthropic"),
    ),
}
AGENT_FLAGS: Mapping[str, tuple[str, str, str]] = {
    "codex": ("codex", "--backend codex", "codex"),
    "codex as a target": ("codex", "--target_backend codex_exec " + AZURE, "openai"),
    "claude chat": ("claude_code", "--backend claude_chat", "claude_code"),
    "claude code": ("claude_code", "--backend claude_code_exec " + AZURE, "openai"),
    "cursor": ("cursor", "--backend cursor " + AZURE, "openai"),
    "copilot": ("copilot", "--backend copilot_exec " + AZURE, "openai"),
    "copilot chat": ("copilot", "--backend copilot", "copilot"),
}
_COMPATIBLE = "azure's names, compatible"
SMALL = " --cfg-options train.batch_size=4 train.train_size=0 env.limit=4"
# Games of the original's own files need an extra, made ones come with their world; walls need a system that has them.
_EXTRAS = {
    "alfworld": " --cfg-options env.world=builtin",
    "spreadsheetbench": "" if CONFINED else " --cfg-options env.sandbox=unconfined",
}


def spelled(flags: str, server: ModelServer) -> str:
    """The flags with the server's address."""
    return flags.format(url=server.base_url, root=server.base_url.removesuffix("/v1"))


def step_with(
    endpoint: str, benchmark: str, version: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, whole: bool
) -> tuple[RunConfig, Counter[str], ModelServer]:
    """One step of a benchmark's shipped config with an endpoint."""
    place = checkout(folder / "checkout", version, benchmark, whole=whole)
    monkeypatch.chdir(place)
    flags, variables, _ = ENDPOINTS[endpoint]
    with ModelServer(answer) as server:
        for name, value in variables.items():
            monkeypatch.setenv(name, spelled(value, server))
        words = f"--config configs/{benchmark}/default.yaml {spelled(flags, server)}{_EXTRAS.get(benchmark, '')}"
        config, seen = trained(words + ("" if whole else SMALL), folder / "run")
    return config, seen, server


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_step_is_trained_with_each_endpoint(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both roles have the backend that the original gives them, and every call gets there."""
    config, seen, server = step_with(endpoint, "searchqa", "0.2.0", tmp_path, monkeypatch, whole=False)
    assert (config.optimizer_model.backend, config.target_model.backend) == ENDPOINTS[endpoint][2]
    assert seen["CandidateGated"] == 1
    keys = {value for name, value in ENDPOINTS[endpoint][1].items() if name.endswith("API_KEY")}
    sent = {request.headers.get("authorization", "").removeprefix("Bearer ") for request in server.requests}
    sent |= {request.headers.get(name, "") for request in server.requests for name in ("api-key", "x-api-key")}
    assert sent - {""} == keys


@pytest.mark.parametrize("version", VERSIONS)
@parametrized(
    "benchmark",
    [pytest.param(name, marks=pytest.mark.slow if name == "spreadsheetbench" else ()) for name in BENCHMARKS],
    by_default=1,
)
def test_every_shipped_config_trains_a_step(
    benchmark: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, as it is shipped: its batch size, its number of items, its paths from the checkout's root."""
    _skip_without_workbooks(benchmark)
    whole = benchmark != "spreadsheetbench"  # whose eighty workbooks take minutes
    config, seen, _ = step_with(_COMPATIBLE, benchmark, version, tmp_path, monkeypatch, whole=whole)
    assert (config.env.name, seen["RolloutCompleted"] > 0) == (benchmark, True)
    assert seen["CandidateGated"] == 1
    assert any("working folder" in note for note in config.notes)


SEARCHQA = (
    "--env searchqa --skill_init skillopt/envs/searchqa/skills/initial.md "
    "--split_mode split_dir --split_dir data/searchqa_split"
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("config", "metric"), [("_base_/default.yaml", "hard"), ("features/soft_gate.yaml", "soft")])
def test_configs_of_no_benchmark_train_a_step_of_the_one_that_is_named(
    config: str, metric: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base file alone, and the one with a feature: the flags say the rest."""
    monkeypatch.chdir(checkout(tmp_path / "checkout", version, "searchqa"))
    with ModelServer(answer) as server:
        words = f"--config configs/{config} {SEARCHQA} {spelled(AZURE, server)}{SMALL}"
        loaded, seen = trained(words, tmp_path / "run")
    assert (loaded.evaluation.gate_metric, seen["CandidateGated"]) == (metric, 1)


def test_a_flat_config_trains_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older form, with every key at the top."""
    place = checkout(tmp_path / "checkout", "0.2.0", "searchqa")
    flat = (CONFIGS / "flat.yaml").read_text().replace("0.2.0/configs/", "configs/")
    (place / "flat.yaml").write_text(flat)
    monkeypatch.chdir(place)
    with ModelServer(answer) as server:
        _, seen = trained(f"--config flat.yaml {spelled(AZURE, server)}{SMALL}", tmp_path / "run")
    assert seen["CandidateGated"] == 1


def _skip_without_workbooks(benchmark: str) -> None:
    if benchmark == "spreadsheetbench":
        pytest.importorskip("openpyxl", reason="workbooks need the extra `spreadsheet`")


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("benchmark", ["searchqa", "livemathematicianbench", "alfworld"])
def test_every_text_benchmark_with_every_endpoint(
    benchmark: str, version: str, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pair of them."""
    _, seen, _ = step_with(endpoint, benchmark, version, tmp_path, monkeypatch, whole=False)
    assert seen["CandidateGated"] == 1


# --- agents ----------------------------------------------------------------------------------------------------------


def agent_step(
    case: str, version: str, folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = ""
) -> tuple[RunConfig, Counter[str], InstalledAgent]:
    """One step with a coding agent, of which a stand-in is on PATH."""
    name, flags, _ = AGENT_FLAGS[case]
    monkeypatch.chdir(checkout(folder / "checkout", version, "searchqa"))
    agent = installed(name, folder / "agent", answer=REPLY)
    monkeypatch.setenv("PATH", agent.environ["PATH"])
    small = " --cfg-options train.batch_size=2 train.train_size=0 env.limit=2 evaluation.sel_env_num=1 "
    with ModelServer(answer) as server:
        words = f"--config configs/searchqa/default.yaml {spelled(flags, server)}{small}{more}"
        config, seen = trained(words, folder / "run")
    return config, seen, agent


@pytest.mark.parametrize("version", ["0.2.0", pytest.param("2026-08", marks=pytest.mark.slow)])
@parametrized("case", AGENT_FLAGS, by_default=1)
def test_a_step_is_trained_with_each_agent(
    case: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options that the original's files set for it, in this agent's own words."""
    config, seen, agent = agent_step(case, version, tmp_path, monkeypatch)
    name, _, optimizer = AGENT_FLAGS[case]
    assert (config.target_model.backend, config.optimizer_model.backend) == (name, optimizer)
    assert seen[CandidateBuilt.__name__] == seen[CandidateGated.__name__] == 1
    assert len(agent.runs) >= 3
    assert set(AGENTS) >= {name}
