"""A run as spans: the tree, the times, the tokens, and what is never in one."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve
from support.in_process import Cli

from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.exports.metrics import RunNumbers, numbers_of
from skillopt_es.exports.spans import Span, spans_of
from skillopt_es.runs.overview import spent
from skillopt_es.sessions.opening import provider_of


def spans(run: Path) -> tuple[Span, ...]:
    """Those of a run."""
    with EventLog.open(run) as log:
        return spans_of(log.run, log.read(), Journal(log.reader).read(), provider_of)


def numbers(run: Path) -> RunNumbers:
    """What a tracker is told."""
    with EventLog.open(run) as log:
        return numbers_of(list(log.read()), Journal(log.reader).read())


def test_a_run_is_a_tree_of_epochs_steps_stages_and_calls(demo_run: Path) -> None:
    """Parents come first, and last as long as their children."""
    seen: dict[str, Span] = {}
    above = {"epoch": {"run"}, "step": {"epoch"}, "stage": {"run", "epoch", "step"}, "call": {"stage"}}
    for span in spans(demo_run):
        if span.path:
            parent = seen[span.parent]
            assert parent.level in above[span.level]
            assert parent.start <= span.start <= span.end <= parent.end
        seen[span.path] = span
    counts = Counter(span.level for span in seen.values())
    assert (counts["run"], counts["epoch"], counts["step"]) == (1, 3, 12)
    assert counts["call"] == spent(demo_run).usage.total.calls


def test_a_step_says_how_it_ended(demo_run: Path) -> None:
    """The verdict and what was compared."""
    by_path = {span.path: span for span in spans(demo_run)}
    step = by_path["epoch 1/step 3"].attributes
    assert (step["skillopt.verdict"], step["skillopt.gate.candidate"], step["skillopt.gate.lost"]) == (
        "reject",
        0.0,
        19,
    )
    assert by_path["epoch 3/step 10"].attributes["skillopt.verdict"] == "nothing_proposed"
    assert by_path["epoch 2"].attributes["skillopt.slow_update"] == "accept_new_best"
    assert by_path[""].attributes["skillopt.test.best"] == 0.975


def test_a_call_speaks_the_genai_conventions(demo_run: Path) -> None:
    """Tokens add up to the run's."""
    calls = [span for span in spans(demo_run) if span.level == "call"]
    usage = spent(demo_run).usage.total
    for kind, tally in (("input", usage.input), ("output", usage.output)):
        assert sum(int(str(call.attributes[f"gen_ai.usage.{kind}_tokens"])) for call in calls) == tally.reported
    assert calls[0].name == "chat simulated-target"
    assert calls[0].attributes["gen_ai.provider.name"] == calls[0].attributes["gen_ai.system"] == "simulated"
    assert calls[0].attributes["gen_ai.request.model"] == "simulated-target"


@pytest.mark.parametrize(
    ("backend", "recorded", "model", "version"),
    [
        ("openai", "gpt-x-2026-08, eu", "gpt-x-2026-08, eu", None),
        ("claude_code", "claude-x, 2.1.197 (Claude Code)", "claude-x", "2.1.197 (Claude Code)"),
        ("codex", "codex-cli 0.169.0", None, "codex-cli 0.169.0"),
    ],
)
def test_a_model_is_a_models_name(
    demo_run: Path, backend: str, recorded: str, model: str | None, version: str | None
) -> None:
    """What a coding agent calls itself is its version, and goes where versions go."""
    with EventLog.open(demo_run) as log:
        first, *records = log.read()
        row = next(iter(Journal(log.reader).read()))
        info = log.run
    assert isinstance(first.event, RunStarted)
    settings = first.event.config["model"]
    assert isinstance(settings, dict)
    config = {**first.event.config, "model": {**settings, f"{row.call.role}_backend": backend}}
    begun = evolve(first, event=evolve(first.event, config=config))
    answered = evolve(row, call=evolve(row.call, reply_model=recorded))
    [call] = [span for span in spans_of(info, [begun, *records], [answered], provider_of) if span.level == "call"]
    assert call.attributes.get("gen_ai.response.model") == model
    assert call.attributes.get("gen_ai.agent.version") == version
    assert call.attributes.get("gen_ai.agent.name") == (backend if version else None)


def test_a_fork_has_its_own_spans_only(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """What was inherited was paid for elsewhere, and is in the parent's trace."""
    shutil.copytree(demo_run, tmp_path / "runs" / "demo")
    words = ("--until", "step", 10, "--name", "other", "--dir", tmp_path / "runs")
    assert cli("fork", "demo", *words).code == 0
    assert cli("resume", "other", "--dir", tmp_path / "runs").code == 0
    other = tmp_path / "runs" / "other"
    found = spans(other)
    assert {span.path for span in found if span.level == "step"} == {"epoch 3/step 11", "epoch 3/step 12"}
    assert sum(span.level == "call" for span in found) == spent(other).usage.total.calls
    with EventLog.open(demo_run) as log:
        assert found[0].attributes["skillopt.run.forked_from"] == log.run.run_id
    points = numbers(other).points
    assert sum(point.value for point in points if point.key == "total/calls") == spent(other).usage.total.calls
    assert len([point for point in points if point.key == "gate/accepted"]) == 12


def test_points_are_what_was_measured(demo_run: Path) -> None:
    """One a step; a step without a candidate has no value for one."""
    found = {(point.key, point.step): point.value for point in numbers(demo_run).points}
    assert (found["gate/candidate", 3], found["gate/accepted", 3], found["gate/best", 3]) == (0.0, 0.0, 0.475)
    assert ("gate/candidate", 10) not in found
    assert (found["gate/best", 0], found["gate/best", 12], found["test/best_hard", 12]) == (0.15, 1.0, 0.975)
    usage = spent(demo_run).usage
    assert found["usage/input_tokens", 1] == usage.by_step[1].input.reported
    assert found["total/output_tokens", 12] == usage.total.output.reported
