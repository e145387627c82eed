"""Agents of the user's own that work where the attempt is made: their calls are the run's, wherever they come from."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import define, evolve, field
from support.logs import events_of
from support.pretend_crew import Fate, PretendExecutor
from support.project import Project, plain_config

from skillopt_es.adapters.executors.crew import WorkerLost
from skillopt_es.adapters.executors.local import LocalExecutor
from skillopt_es.adapters.executors.travels import Lease, Place
from skillopt_es.config import RunConfig, load_config
from skillopt_es.errors import BackendError
from skillopt_es.events.catalog import RolloutCompleted, RunCompleted, RunPaused
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Failed
from skillopt_es.events.verify import verify
from skillopt_es.ports import Executor, ExecutorSettings
from skillopt_es.sessions.session import start
from skillopt_es.sessions.wiring import REAL_WORLD, Session

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ASKS_TWICE = """
import json
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit


def answer(task):
    said = [asked(task, [each.content for each in task.messages] + [more])  for more in ("Look.", "Answer.")]
    return {"answer": said[-1]}


def asked(task, texts):
    messages = [{"role": "system" if number == 0 else "user", "content": text} for number, text in enumerate(texts)]
    body = json.dumps({"model": task.gateway.model, "messages": messages}).encode()
    headers = {"Authorization": f"Bearer {task.gateway.api_key}", "Content-Type": "application/json"}
    there = urlsplit(task.gateway.base_url)
    with closing(HTTPConnection(there.netloc)) as connection:
        connection.request("POST", f"{there.path}/chat/completions", body, headers)
        return json.load(connection.getresponse())["choices"][0]["message"]["content"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Seven tasks for an agent that asks a simulated model twice; one step."""
    made = Project(tmp_path / "project", plain_config(""))
    made.rows = [next(row for row in made.rows if row["split"] == split) for split in ("train", "val", "test")]
    made.rows = [{**row, "id": f"{row['id']}-{n}"} for n in range(2) for row in made.rows]
    made.set(
        model={
            "backend": "simulated",
            "api_key_env": "",
            "target_backend": "python:mine.py:answer",
            "target_gateway": "simulated",
        },
        train={"num_epochs": 1, "batch_size": 2},
    )
    (made.folder / "mine.py").write_text(ASKS_TWICE)
    return made


@define
class Crew:
    """An executor whose workers are in this process and meet a fate; and what became of it."""

    fate: Fate = lambda when, lease: None
    change: Callable[[Place], Place] = lambda place: place
    opened: list[PretendExecutor] = field(factory=list)

    def open(self, config: RunConfig, stopping: Callable[[], bool], warn: Callable[[str], None]) -> Executor:
        """As a session opens it."""
        settings = ExecutorSettings(stopping=stopping, workers=2, options={})
        self.opened.append(PretendExecutor(settings, self.fate, change=self.change))
        return self.opened[-1]

    @property
    def deaths(self) -> int:
        """How many workers have died."""
        return sum(each.crew.tally.deaths for each in self.opened if each.crew is not None)


def here(config: RunConfig, stopping: Callable[[], bool], warn: Callable[[str], None]) -> Executor:
    """This process."""
    return LocalExecutor(stopping)


def trained(project: Project, folder: Path, crew: Crew | None, *more: str) -> Path:
    """A run of the project."""
    world = evolve(REAL_WORLD, executor=here if crew is None else crew.open)
    config = load_config(project.folder / "config.yaml", more)
    asyncio.run(start(config, folder, Session(now=lambda: NOON, clock=lambda: 0.0, world=world)))
    assert verify(folder).ok
    return folder


def rows(folder: Path) -> list[CallRow]:
    """The journal."""
    with EventLog.open(folder) as log:
        return list(Journal(log.reader).read())


def dies_once(when: str, item: int) -> Fate:
    """The worker that makes the first try of the so manieth attempt dies of its first such message."""
    seen: dict[str, int] = {}

    def fate(message: str, lease: Lease) -> WorkerLost | None:
        if lease.attempt > 1 or message != when:
            return None
        seen.setdefault(lease.slot, len(seen))
        return WorkerLost("it died", by_itself=True) if seen[lease.slot] == item else None

    return fate


def test_the_log_is_that_of_agents_beside_the_writer(tmp_path: Path, project: Project) -> None:
    """And so is the journal, with every call that an agent has made itself."""
    errands: list[str] = []

    def counted(when: str, lease: Lease) -> WorkerLost | None:
        errands.extend([lease.slot] if when == "errand" else [])
        return None

    there = trained(project, tmp_path / "there" / "run", Crew(counted))
    local = trained(project, tmp_path / "here" / "run", None)
    assert events_of(there) == events_of(local)
    assert Counter(row.ref for row in rows(there)) == Counter(row.ref for row in rows(local))
    attempts = [event for event in events_of(there) if isinstance(event, RolloutCompleted)]
    assert len(errands) == len(attempts) > 5
    own = [row for row in rows(there) if row.call.role == "target" and not row.call.model.startswith("agent ")]
    assert len(own) == 2 * len(attempts)


@pytest.mark.parametrize("when", ["errand", "answered"])
def test_an_agent_that_is_lost_is_counted_and_asked_again(tmp_path: Path, project: Project, when: str) -> None:
    """At its first message, and once a call of its own was answered, which is not paid for twice."""
    crew = Crew(dies_once(when, 2))
    there = trained(project, tmp_path / "there" / "run", crew)
    local = trained(project, tmp_path / "here" / "run", None)
    assert crew.deaths == 1
    assert events_of(there) == events_of(local)
    lost = [row.call for row in rows(there) if row.call.outcome == "failed"]
    assert [(each.error_kind, each.error_message) for each in lost] == [
        ("transport", "the agent is gone with the worker on which it was at work")
    ]
    answered = Counter(row.call.slot for row in rows(there) if row.call.outcome == "answered")
    assert set(answered.values()) == {1}
    assert answered[lost[0].slot] == 1


def test_an_item_whose_agent_kills_its_workers_is_not_measured(tmp_path: Path, project: Project) -> None:
    """Twice is enough, and the run goes on."""
    slots: list[str] = []

    def fate(message: str, lease: Lease) -> WorkerLost | None:
        slots.append(lease.slot)
        return WorkerLost("it died", by_itself=True) if message == "errand" and lease.slot == slots[0] else None

    there = trained(project, tmp_path / "run", Crew(fate), "rollout.max_failed_share=1")
    outcomes = [event.outcome for event in events_of(there) if isinstance(event, RolloutCompleted)]
    assert Failed("worker", "2 workers died while they tried it") in outcomes
    assert isinstance(events_of(there)[-1], RunCompleted)


def test_a_budget_that_is_used_up_ends_an_agent_there(tmp_path: Path, project: Project) -> None:
    """The call that does not fit is refused, the attempt has no result, and the run pauses."""
    there = trained(project, tmp_path / "run", Crew(), "budget.max_calls=3")
    last = events_of(there)[-1]
    assert isinstance(last, RunPaused)
    assert "max_calls" in last.reason + last.message
    assert not [row for row in rows(there) if row.call.outcome == "failed"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda place: evolve(place, agent_code="0"), "its files of the agent python:mine.py:answer differ"),
        (
            lambda place: evolve(
                place,
                agent=evolve(place.agent, settings=evolve(place.agent.settings, backend="python:mine.py:gone")),
            ),
            "it cannot open the agent",
        ),
    ],
)
def test_a_worker_with_another_agent_is_refused(
    tmp_path: Path, project: Project, change: Callable[[Place], Place], said: str
) -> None:
    """By name, before anything is asked."""
    with pytest.raises(BackendError, match="a worker cannot be used: the one on node-1") as raised:
        trained(project, tmp_path / "run", Crew(change=change))
    assert said in raised.value.message
    assert not rows(tmp_path / "run")


def test_what_an_agent_does_wrong_is_told_as_beside_the_writer(tmp_path: Path, project: Project) -> None:
    """One that raises, and one whose answer is none: the same failures with the same words."""
    (project.folder / "mine.py").write_text(
        "def answer(task):\n    if task.item.endswith('0'):\n        raise ValueError('odd')\n    return {'answr': 1}\n"
    )
    there = trained(project, tmp_path / "there" / "run", Crew(), "rollout.max_failed_share=1")
    local = trained(project, tmp_path / "here" / "run", None, "rollout.max_failed_share=1")
    assert events_of(there) == events_of(local)
    said = [str(event.outcome) for event in events_of(there) if isinstance(event, RolloutCompleted)]
    assert any("raised ValueError: odd" in each for each in said), said
