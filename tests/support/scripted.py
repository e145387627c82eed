"""
A small scripted world: items that pass once the skill names their kind, and an optimizer that names kinds.

Everything answers from the request text alone, so the same run has the same log at any concurrency.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from attrs import field, frozen

from skillopt_es.adapters.executors.local import LocalExecutor
from skillopt_es.config import RunConfig, load_config
from skillopt_es.events.values import Failed, Measured, Role, SkillTree, digest_of
from skillopt_es.ports import (
    ALONE,
    Ask,
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    Course,
    Episode,
    Item,
    Message,
    Splits,
    TrajectoryRecord,
    Usage,
)
from skillopt_es.sessions.wiring import Session, World

KINDS = ("apple", "birch", "cedar", "daisy", "elder", "fern")


@frozen
class ScriptedItem:
    """An item that passes when the skill contains `know <kind>`."""

    id: str
    task_type: str


def items(prefix: str, count: int) -> list[ScriptedItem]:
    """Items of all kinds in turn."""
    return [ScriptedItem(f"{prefix}{index}", KINDS[index % len(KINDS)]) for index in range(count)]


@frozen
class ScriptedEnvironment:
    """Asks the target to name its item's kind, and grades it."""

    train: int = 12
    val: int = 12
    test: int = 6
    name: str = "scripted"
    broken: Callable[[str], bool] = field(default=lambda item: False)
    regrades: bool = True

    def load(self) -> Splits:
        """The splits."""
        splits = {"train": items("t", self.train), "val": items("v", self.val), "test": items("x", self.test)}
        digests = {name: digest_of(repr(rows).encode()) for name, rows in splits.items()}
        return Splits(splits["train"], splits["val"], splits["test"], digests)

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """One call; right when the target says `right`."""
        if self.broken(item.id):
            return Episode(outcome=Failed("sandbox", "it is broken"), task=item.id, records=(), failure="sandbox")
        system, user = (
            Message("system", f"## Skill\n{skill.text}"),
            Message("user", f"kind: {item.task_type} id: {item.id}"),
        )
        reply = await ask([system, user])
        right = reply.text == "right"
        records = (
            TrajectoryRecord("system", system.content),
            TrajectoryRecord("user", user.content),
            TrajectoryRecord("reply", reply.text),
            TrajectoryRecord("feedback", f"kind: {item.task_type}, wanted: right, got: {reply.text}"),
        )
        outcome = Measured(float(right), 1.0 if right else 0.25)
        failure = "" if right else "wrong_answer"
        return Episode(outcome=outcome, task=user.content, records=records, failure=failure, prediction=reply.text)

    async def aclose(self) -> None:
        """Nothing to give back."""


@frozen
class PartialEnvironment(ScriptedEnvironment):
    """Gives a tenth of a point for a wrong answer and nine tenths for a right one."""

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Never quite solved."""
        episode = await ScriptedEnvironment.attempt(self, item, skill, ask, seed=seed)
        assert isinstance(episode.outcome, Measured)
        hard = 0.9 if episode.outcome.hard else 0.1
        return Episode(outcome=Measured(hard, hard), task="", records=episode.records, failure="partial")


def chance(text: str) -> float:
    """A number from 0 to 1 that only depends on the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def target_reply(request: ChatRequest) -> str:
    """`right` when the skill knows the item's kind (and does not say `spoil` it)."""
    skill, user = request.messages[0].content, request.messages[-1].content
    kind = re.search(r"kind: (\w+)", user)
    assert kind is not None
    known = f"know {kind[1]}" in skill and f"spoil {kind[1]}" not in skill
    return "right" if known else "wrong"


def optimizer_reply(request: ChatRequest) -> str:
    """What the optimizer says at each stage."""
    user = request.messages[1].content
    return json.dumps(_STAGES[request.stage](user))


def _analyst(user: str) -> dict[str, object]:
    skill = user.split("~~~~")[1]
    kinds = re.findall(r"kind: (\w+), wanted: right, got: wrong", user)
    missing = sorted(
        {kind for kind in kinds if f"know {kind}" not in skill}, key=lambda kind: (-kinds.count(kind), kind)
    )
    word = "spoil" if chance(user) < 0.25 else "know"
    edits: list[dict[str, object]] = [
        {"op": "append", "target": "", "content": f"- {word} {kind}"} for kind in missing[:3]
    ]
    summary = [{"failure_type": "unknown_kind", "count": len(kinds), "description": "the kind is not in the skill"}]
    return {"failure_summary": summary, "patch": {"reasoning": "kinds are missing", "edits": edits}}


def _merge(user: str) -> dict[str, object]:
    proposals = json.loads(user[user.index("\n[\n") :])
    merged: dict[str, dict[str, object]] = {}
    for edit in (edit for proposal in proposals for edit in proposal["edits"]):
        row = merged.setdefault(
            edit["content"], {"op": "append", "target": "", "content": edit["content"], "from": [], "support_count": 0}
        )
        row["from"] = [*row["from"], edit["label"]]  # type: ignore[misc]
        row["support_count"] = int(row["support_count"]) + edit["support_count"]  # type: ignore[call-overload]
    return {"reasoning": "joined", "edits": list(merged.values())}


def _ranking(user: str) -> dict[str, object]:
    rows = re.findall(r"\[(\d+)\] .*support=(\d+)", user)
    order = sorted(rows, key=lambda row: (-int(row[1]), int(row[0])))
    return {"reasoning": "by support", "selected_indices": [int(index) for index, _ in order]}


_STAGES: dict[str, Callable[[str], dict[str, object]]] = {
    "analyst": _analyst,
    "merge": _merge,
    "ranking": _ranking,
    "learning_rate": lambda user: {"learning_rate": 1 + int(chance(user) * 3), "confidence": "high", "risk_notes": []},
    "slow_update": lambda user: {"reasoning": "seen", "slow_update_content": f"- note {chance(user):.3f}"},
    "meta_skill": lambda user: {"reasoning": "seen", "meta_skill_content": f"short rules work ({chance(user):.3f})"},
}

Answer = Callable[[ChatRequest], str | ChatReply]


class ScriptedModel:
    """A model that answers from a function; counts its calls and can be slow in a shuffled way."""

    def __init__(self, identity: str, answer: Answer, *, shuffle: random.Random | None = None) -> None:
        self.identity = identity
        self._answer = answer
        self._shuffle = shuffle
        self.asked: list[str] = []
        self.now_running = 0
        self.most_running = 0

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The scripted answer."""
        self.asked.append(request.slot)
        self.now_running += 1
        self.most_running = max(self.most_running, self.now_running)
        try:
            for _ in range(self._shuffle.randrange(20) if self._shuffle else 0):
                await asyncio.sleep(0)
            answer = self._answer(request)
        finally:
            self.now_running -= 1
        if isinstance(answer, ChatReply):
            return answer
        words = sum(len(message.content) for message in request.messages) // 4
        return ChatReply(text=answer, finish="stop", usage=Usage(input=words, output=len(answer) // 4 + 1))

    async def aclose(self) -> None:
        """Nothing to give back."""


def here(
    config: RunConfig, stopping: Callable[[], bool], warn: Callable[[str], None] = lambda _: None
) -> LocalExecutor:
    """The executor of this process, without looking for those that are installed."""
    return LocalExecutor(stopping)


@frozen(kw_only=True)
class ScriptedWorld:
    """The scripted environment and models, and the sessions over them."""

    environment: ScriptedEnvironment = field(factory=ScriptedEnvironment)
    target: ScriptedModel = field(factory=lambda: ScriptedModel("scripted target", target_reply))
    optimizer: ScriptedModel = field(factory=lambda: ScriptedModel("scripted optimizer", optimizer_reply))

    def session(self, **more: object) -> Session:
        """A session in this world, under a clock that stands still."""
        models: Mapping[Role, ChatModel] = {"target": self.target, "optimizer": self.optimizer}
        world = World(
            model=lambda _, role: models[role],
            environment=lambda _: self.environment,
            executor=here,
        )
        return Session(now=lambda: NOON, clock=lambda: 0.0, world=world, **more)  # type: ignore[arg-type]

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return len(self.target.asked) + len(self.optimizer.asked)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ticking(step: float = 1.0) -> Callable[[], datetime]:
    """A clock that moves on a little each time it is read."""
    now = [NOON]

    def read() -> datetime:
        now[0] += timedelta(seconds=step)
        return now[0]

    return read


CONFIG: dict[str, dict[str, object]] = {
    "model": {"backend": "simulated", "optimizer": "o", "target": "t"},
    "train": {"num_epochs": 3, "batch_size": 4},
    "gradient": {"minibatch_size": 2, "merge_batch_size": 2},
    "optimizer": {"learning_rate": 2, "min_learning_rate": 1, "slow_update_samples": 5},
    "env": {"name": "tasks"},
}


def config(folder: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """The scripted run's config, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(CONFIG))
    return load_config(file, overrides)


def unreachable(request: ChatRequest) -> str:
    """An endpoint that is down."""
    raise CallFailed("transport", "connection refused")
