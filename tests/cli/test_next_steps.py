"""What a command says at its end fits what was done: next steps, hints, notes."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest
from attrs import evolve
from support.audited import Audited, records_of
from support.command import Clerk, edit, project
from support.in_process import Cli
from support.model_server import ModelServer
from support.scripted import NOON
from support.tamper import cut_off

from skillopt_es.cli.options import OFFLINE_DEMO
from skillopt_es.config import demo_config
from skillopt_es.events.catalog import CandidateGated, RunPaused, RunResumed
from skillopt_es.events.writer import RunWriter
from skillopt_es.presenting.event_lines import in_words


def steps_after(out: str) -> list[str]:
    """The commands that are named as next."""
    return [line[12:].partition("   (")[0].strip() for line in out[out.index("next        ") :].splitlines() if line]


def test_a_demo_of_one_step_does_not_name_a_second(cli: Cli, tmp_path: Path) -> None:
    """And leads to tasks of one's own; what is named can be typed."""
    where = ("--dir", tmp_path / "my runs")
    done = cli("run", "--run", "one", *where, "--set", "train.num_epochs=1", "--set", "train.batch_size=48")
    steps = steps_after(done.out)
    place = f" --dir '{tmp_path / 'my runs'}'"
    assert steps[:2] == [f"skillopt-es report one{place}", f"skillopt-es replay one --until step 1{place}"]
    assert steps[-1] == "skillopt-es init my-project"
    assert cli("replay", "one", "--until", "step", 1, *where).code == 0
    again = cli("run", "--run", "one", *where)
    assert f"`skillopt-es resume one{place}` continues it" in again.err
    assert f"`skillopt-es runs{place}` lists them" in cli("status", "two", *where).err


def test_a_run_of_ones_own_project_leads_to_its_report_to_agents_and_to_a_score(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never to `init`; each step can be typed as it stands."""
    config = project(tmp_path / "p")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-house-0123456789abcdef")
    monkeypatch.chdir(tmp_path)
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        learned = steps_after(cli("run", config, "--run", "one").out)
        assert [step.split()[1] for step in learned] == ["report", "install", "eval"]
        scored = cli(*shlex.split(learned[2])[1:])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for step in learned[:2]:
        assert cli(*shlex.split(step)[1:]).code == 0, step
    assert (tmp_path / "home/.claude/skills/my-skill/SKILL.md").exists()
    assert scored.code == 0


def test_scoring_on_the_demo_is_said(cli: Cli, tmp_path: Path) -> None:
    """On stderr, as `run` says it: whoever forgot the config is told whose tasks these are. With one, it is not."""
    few = ("--split", "val", "--limit", 1, "--dir", tmp_path / "evals")
    done = cli("eval", *few, "--json")
    assert (done.code, done.err.splitlines()[0]) == (0, OFFLINE_DEMO)
    assert done.json["all"]["measured"] == 1
    other = cli("eval", *few, "--set", "model.target_backend=handoff")
    assert "No CONFIG is named, so the tasks are those of the offline demo." in other.err
    assert "offline demo" not in cli("eval", demo_config(), *few).err


def test_a_plus_is_told_only_where_there_is_one(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """A kill adds nothing to a number that could end in +; it is told all the same."""
    cut_off(demo_run, tmp_path / "killed", 30)
    with RunWriter.open(tmp_path / "killed", now=lambda: NOON) as writer:
        asyncio.run(writer.append([RunResumed(software="skillopt-es 0.1.0")], expected=30))
    for by in ("stage", "improvement"):
        done = cli("usage", tmp_path / "killed", "--by", by)
        assert "the run was killed once; calls that were in flight then are not counted" in done.lines
        assert "+" not in done.out.replace("+0", "").replace("+1", "")


def test_a_verdict_says_its_reason_whole(audited: Audited) -> None:
    """In words, and nothing of it is cut, however long the line."""
    gated = next(each.event for each in records_of(audited("plain")) if isinstance(each.event, CandidateGated))
    verdict = evolve(gated.verdict, rule="paired", reason="not_better", repeats=1, current_repeats=3, error=0.0123)
    weighed = evolve(gated, verdict=verdict)
    reason = "not better than current (candidate drawn once, current 3 times; noise 0.0123)"
    assert in_words(weighed).endswith(f"; paired: {reason}")
    failed = RunPaused(reason="error", message="x" * 300)
    assert in_words(failed).endswith("x" * 300)


def test_calls_that_pay_for_no_step_and_no_test_are_told_so(cli: Cli, tmp_path: Path) -> None:
    """When the run ends, and whenever somebody looks; more calls would help, and another model would not."""
    where = ("--dir", tmp_path / "runs")
    done = cli("run", "--run", "r", *where, "--set", "train.algorithm=search", "--set", "budget.max_calls=20")
    assert "simulated" not in done.out
    assert "no edit was tried: the calls ended first" in done.out
    untested = "test        not made: the calls that were left do not pay for it; `eval` makes it\n"
    assert untested in done.out
    assert untested in cli("status", "r", *where).out
    assert (
        cli("fork", "r", "--until", "seq", 14, "--name", "f", *where, "--set", "evaluation.eval_test=false").code == 0
    )
    resumed = cli("resume", "f", *where)
    assert "not made" not in resumed.out + cli("status", "f", *where).out, "nobody wanted a test of the fork"
