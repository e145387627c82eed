"""A user's own small project, and the endpoint that both its models are reached at."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, cast

import yaml
from attrs import define, evolve, field

from skillopt_es.adapters.models.simulated.optimizer import advise
from skillopt_es.adapters.models.simulated.target import respond
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.codec import encode
from skillopt_es.events.values import Stage
from skillopt_es.ports import ChatRequest, Message
from support.logs import decisions_of
from support.model_server import Answer, ModelServer

KEY_NAME = "ACCEPTANCE_KEY"
KEY = "sk-acceptance-0123456789abcdef"
_EVERY = {"train": 4, "val": 5, "test": 10}

Change = Callable[[ChatRequest, Answer], Answer]


def unchanged(_: ChatRequest, answer: Answer) -> Answer:
    """The models' own answer."""
    return answer


@define
class Endpoint:
    """The simulated models behind a real HTTP endpoint; `change` sees each answer before it is sent."""

    change: Change = unchanged
    optimizer: Callable[[ChatRequest], str] = advise
    delay: float = 0.0
    server: ModelServer = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.server = ModelServer(self._answer)

    @property
    def base_url(self) -> str:
        """Its address."""
        return self.server.base_url

    @property
    def asked(self) -> Counter[str]:
        """How often each place of the algorithm was asked about, by the request id that names it."""
        return Counter(request.headers["x-client-request-id"] for request in self.server.requests)

    def _answer(self, body: Any, _: Mapping[str, str]) -> Answer:
        request = request_of(body)
        answer = Answer(text=(self.optimizer if body["model"] == "big" else respond)(request), delay=self.delay)
        return self.change(request, answer)


def request_of(body: Any) -> ChatRequest:
    """The question that a body on the wire asks."""
    stage = body.get("response_format", {}).get("json_schema", {}).get("name", "rollout")
    messages = tuple(Message(message["role"], message["content"]) for message in body["messages"])
    return ChatRequest(slot="", stage=cast(Stage, stage), messages=messages, max_tokens=1)


def request_ids(slots: Sequence[str]) -> Counter[str]:
    """The request ids under which these slots are asked about."""
    return Counter(hashlib.sha256(slot.encode()).hexdigest()[:16] for slot in slots)


def files_of(folder: Path) -> set[str]:
    """What lies in a run folder, but for what SQLite keeps beside a log that was read."""
    return {path.name for path in folder.iterdir()} - {"log.db-wal", "log.db-shm"}


def told(folder: Path) -> list[tuple[str, Any]]:
    """A log's decisions, without what names the endpoint that was asked and how often it was."""
    return [
        (type(event).__name__, _without_calls(json.loads(encode(event).data)))
        for event in decisions_of(folder)
        if not isinstance(event, RunStarted)
    ]


def _without_calls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_calls(inner) for key, inner in value.items() if key != "calls"}
    if isinstance(value, list):
        return [_without_calls(inner) for inner in value]
    return value


def demo_rows() -> list[dict[str, Any]]:
    """A part of the demo's tasks: 12 to train with, 8 to validate, 4 to test."""
    text = (resources.files("skillopt_es.configs") / "demo" / "tasks.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [row for split, every in _EVERY.items() for row in [r for r in rows if r["split"] == split][::every]]


def plain_config(base_url: str) -> dict[str, dict[str, Any]]:
    """What config.yaml says, unless a test changes it."""
    return {
        "model": {
            "backend": "openai",
            "base_url": base_url,
            "api_key_env": KEY_NAME,
            "optimizer": "big",
            "target": "small",
            "attempts": 2,
            "backoff_seconds": 0.01,
            "backoff_cap_seconds": 0.02,
            "patience_seconds": 0.1,
        },
        "train": {"num_epochs": 2, "batch_size": 6, "seed": 47},
        "gradient": {"minibatch_size": 3, "merge_batch_size": 2, "analyst_workers": 4},
        "optimizer": {
            "learning_rate": 2,
            "min_learning_rate": 1,
            "slow_update_samples": 6,
            "slow_update_gate_with_selection": True,
        },
        "env": {
            "name": "tasks",
            "grader": "exact",
            "data_path": "tasks.jsonl",
            "split_mode": "field",
            "skill_init": "SKILL.md",
            "workers": 4,
        },
    }


@define
class Project:
    """config.yaml, tasks.jsonl and SKILL.md in a folder; change them, then `write`."""

    folder: Path
    config: dict[str, dict[str, Any]]
    rows: list[dict[str, Any]] = field(factory=demo_rows)
    skill: bytes = b"# Office answers\n\nAnswer with the value alone.\n"

    def set(self, **sections: Mapping[str, Any]) -> Project:
        """Other values for some keys, written to disk."""
        for name, values in sections.items():
            self.config[name] = {**self.config.get(name, {}), **values}
        return self.write()

    def write(self) -> Project:
        """Puts the three files on disk."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "config.yaml").write_text(yaml.safe_dump(self.config), encoding="utf-8")
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)
        (self.folder / "tasks.jsonl").write_text(lines, encoding="utf-8")
        (self.folder / "SKILL.md").write_bytes(self.skill)
        return self

    def run_folder(self, name: str = "one") -> Path:
        """Where a run of this project lies."""
        return self.folder / "runs" / name


def failing(status: int, message: str, **more: Any) -> Change:
    """An endpoint that answers everything with an error."""
    return lambda _, answer: evolve(answer, status=status, error={"message": message, **more})
