"""The installed command under a budget, against a real endpoint that counts what it is asked."""

from __future__ import annotations

import signal
from itertools import count
from pathlib import Path

import pytest
from attrs import evolve
from support.desk import Desk
from support.model_server import Answer
from support.params import parametrized
from support.project import Endpoint, Project, told
from support.ready import PATIENCE

from skillopt_es.events.catalog import RunResumed
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.ports import ChatRequest
from skillopt_es.sessions.accounts import FILE

PRICES = {"unit": "USD per 1M tokens", "models": {"big": {"input": 2, "output": 8}, "small": {"input": 1, "output": 4}}}


def test_a_run_stops_at_so_many_calls_and_goes_on(
    desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path
) -> None:
    """At 64 calls at once, with exit code 3 and what to type; the whole log is that of a run without a budget."""
    project.set(env={"workers": 64}, gradient={"analyst_workers": 64})
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet", "--max-calls", "20")
    assert (done.code, len(endpoint.server.requests)) == (3, 20)
    assert "paused: budget.max_calls is 20, with 20 requests sent so far" in done.err
    assert "`skillopt-es resume one --max-calls N` continues with a higher limit" in done.err
    assert not (project.run_folder() / FILE).exists()
    assert "budget: budget.max_calls is 20" in desk.run("log", "one", "--type", "RunPaused").out
    assert desk.run("resume", "one", "--quiet").code == 3
    assert len(endpoint.server.requests) == 20
    assert desk.run("resume", "one", "--quiet", "--max-calls", "50").code == 3
    assert len(endpoint.server.requests) == 50
    assert desk.run("resume", "one", "--quiet", "--set", "budget.max_calls=null").code == 0
    assert told(project.run_folder()) == told(undisturbed)
    assert desk.run("replay", "one", "--check").code == 0
    assert verify(project.run_folder()).ok


def test_tries_count_as_calls(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """Every request that was sent, refused ones too; the endpoint never sees one more."""
    number = count()

    def often_down(_: ChatRequest, answer: Answer) -> Answer:
        down = next(number) % 3 == 0
        return evolve(answer, status=503, error={"message": "overloaded"}) if down else answer

    endpoint.change = often_down
    project.set(model={"attempts": 5}, env={"workers": 16})
    assert desk.run("run", "config.yaml", "--run", "one", "--quiet", "--max-calls", "25").code == 3
    assert len(endpoint.server.requests) == 25
    used = desk.run("usage", "one", "--json").json["total"]
    assert used["tries"] == 25
    endpoint.change = lambda _, answer: answer
    assert desk.run("resume", "one", "--quiet", "--max-calls", "1000").code == 0


def test_money_and_tokens_hold_where_nothing_is_reported(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """What the endpoint does not say counts at its most, and the pause says so."""
    endpoint.change = lambda _, answer: evolve(answer, usage=None)
    project.set(prices=PRICES, env={"max_completion_tokens": 100})
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet", "--max-cost", "0.05")
    assert done.code == 3
    assert "(calls whose usage was not reported count at their worst: " in done.err
    assert "budget.max_cost is USD 0.0500" in done.err
    asked = len(endpoint.server.requests)
    assert 5 < asked < 25
    refused = desk.run("resume", "one", "--quiet", "--max-cost", "0.01")
    assert refused.code == 3
    assert "budget.max_cost is 0.01, with 0.0" in refused.err
    assert len(endpoint.server.requests) == asked


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-calls", "0"], "0 is not a whole number above 0"),
        (["--max-calls", "1.5"], "1.5 is not a whole number above 0"),
        (["--max-tokens", "-3"], "-3 is not a whole number above 0"),
        (["--max-cost", "inf"], "inf is not a number above 0"),
        (["--max-minutes", "soon"], "soon is not a number above 0"),
        (["--max-cost", "5"], "budget.max_cost needs the price of every model, and big has none"),
        (
            ["--set", "budget.max_calls=no"],
            "budget.max_calls is False, but must be a whole number of at least 1, or null",
        ),
        (["--set", "budget.max_cals=5"], "did you mean budget.max_calls?"),
    ],
)
def test_a_limit_that_is_none_is_refused(words: list[str], said: str, desk: Desk, project: Project) -> None:
    """In one sentence, before anything begins."""
    done = desk.run("run", "config.yaml", "--quiet", *words)
    assert done.code == 2
    assert said in done.err
    assert not (project.folder / "runs").exists()


@parametrized("limit", [("--max-cost", "0.02"), ("--max-calls", "16")], ids=lambda words: words[0], by_default=1)
def test_calls_that_were_lost_may_use_up_the_budget(
    desk: Desk, endpoint: Endpoint, project: Project, limit: tuple[str, str]
) -> None:
    """Counted at their worst: each `resume` ends with 3 until the limit is raised."""
    project.set(prices=PRICES, env={"workers": 16, "max_completion_tokens": 100})
    endpoint.delay = 2 * PATIENCE
    with desk.start("run", "config.yaml", "--run", "one", *limit) as running:
        running.until(lambda: endpoint.server.in_flight >= 2)
        running.send(signal.SIGKILL)
        running.wait()
    endpoint.delay = 0.0
    for words in ((), limit, (limit[0], "0.001" if limit[0] == "--max-cost" else "1"), limit):
        for _ in range(2):
            done = desk.run("resume", "one", "--quiet", *words)
            assert done.code == 3, done.err
    higher = "9" if limit[0] == "--max-cost" else "1000"
    assert desk.run("resume", "one", "--quiet", limit[0], higher).code == 0


def test_a_killed_run_keeps_to_its_budget(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """What was in flight is in no journal, but on record: over both processes the endpoint sees no call too many."""
    project.set(env={"workers": 16})
    endpoint.delay = 0.05
    with desk.start("run", "config.yaml", "--run", "one", "--max-calls", "30") as running:
        running.until(lambda: len(endpoint.server.requests) >= 12)
        running.send(signal.SIGKILL)
        running.wait()
    endpoint.delay = 0.0
    assert desk.run("resume", "one", "--quiet").code == 3
    assert len(endpoint.server.requests) <= 30
    with EventLog.open(project.run_folder()) as log:
        resumed = [each.event for each in log.read(types=("RunResumed",))]
    assert isinstance(resumed[0], RunResumed)
    assert resumed[0].lost
    assert desk.run("resume", "one", "--quiet", "--max-calls", "1000").code == 0
