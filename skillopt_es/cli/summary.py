"""What a session ends with: the best skill as a file, the scores, and what to type next."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from skillopt_es.cli.options import print_json, shown_value
from skillopt_es.cli.score_tables import Scored, print_test_types, print_tests, score_json, scored_json, tests_by_name
from skillopt_es.cli.usage import shown_usage, total_json
from skillopt_es.events.values import Json, Score
from skillopt_es.overview import Spent, spent
from skillopt_es.projections.snapshot import counted_verdicts
from skillopt_es.projections.state import TrainerState

_PAUSED = {"interrupt": 130, "error": 1, "unmeasured": 1, "unanswered": 1, "optimizer": 1, "handoff": 3, "budget": 3}


def print_outcome(state: TrainerState, folder: Path, *, as_json: bool) -> int:
    """Writes the best skill beside the log and prints the outcome; the exit code."""
    best = write_best(state, folder)
    used = spent(folder)
    if as_json:
        print_json(_as_json(state, folder, best, used))
    else:
        _print(state, folder, best, used)
    if state.paused is None:
        return 0
    if state.paused.reason == "handoff":
        click.echo(f"{state.paused.message}: `skillopt-es handoff list {folder}` shows what is asked", err=True)
        click.echo(f"  when it is answered, {resume_hint(folder)}", err=True)
        return _PAUSED["handoff"]
    if state.paused.reason == "budget":
        click.echo(f"paused: {state.paused.message}", err=True)
        option = state.paused.message.split()[0].removeprefix("budget.").replace("_", "-")
        click.echo(f"  {resume_hint(folder, f' --{option} N')} with a higher limit", err=True)
        return _PAUSED["budget"]
    click.echo(f"error: {state.paused.message}", err=True)
    click.echo(f"  when the cause is gone, {resume_hint(folder)}", err=True)
    return _PAUSED[state.paused.reason]


def resume_hint(folder: Path, more: str = "") -> str:
    """What to type to go on with a run, with more options."""
    return f"`skillopt-es resume {folder.name}{_where(folder)}{more}` goes on"


def _where(folder: Path) -> str:
    return "" if folder.parent == Path("runs") else f" --dir {shlex.quote(str(folder.parent))}"


def write_best(state: TrainerState, folder: Path) -> Path:
    """The best skill's files under `best/`; the path of the main one."""
    assert state.best is not None
    for path, text in state.best.skill.files.items():
        file = folder / "best" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return folder / "best" / state.best.skill.main


def _nothing_learned(state: TrainerState) -> str:
    """Why a run came to nothing, where that can be told."""
    assert state.started is not None
    model = state.started.config.get("model")
    backends = {value for key, value in model.items() if key.endswith("backend")} if isinstance(model, dict) else set()
    if state.completed is None or state.counts.accepted or "simulated" not in backends:
        return ""
    return (
        "no edit was kept: simulated models can only do tasks like the demo's, and learn nothing from others; "
        "name a real endpoint in model.backend"
    )


def _tests(state: TrainerState) -> dict[str, Scored]:
    assert state.started is not None
    assert state.best is not None
    assert state.current is not None
    named = {"initial": state.started.skill, "best": state.best.skill, "final": state.current.skill}
    return tests_by_name(state.tests.values(), **{name: skill.hash for name, skill in named.items()})


def _as_json(state: TrainerState, folder: Path, best: Path, used: Spent) -> Json:
    assert state.best is not None
    tests = _tests(state)
    return {
        "run": folder.name,
        "folder": str(folder),
        "status": state.status,
        "steps": state.steps_done,
        "accepted": state.counts.accepted,
        "rejected": state.counts.rejected,
        "indecisive": state.counts.indecisive,
        "skipped": state.counts.skipped,
        "stopped": None if state.stopped is None else state.stopped.reason,
        "baseline": score_json(_baseline(state)),
        "best": {
            "file": str(best),
            "hash": state.best.skill.hash,
            "value": state.best.value,
            "origin": state.best.origin,
        },
        **{f"test_{name}": scored_json(tests.get(name)) for name in ("initial", "best", "final")},
        "usage": total_json(used),
        "note": _nothing_learned(state) or None,
        "paused": state.paused.message if state.paused else None,
    }


def _baseline(state: TrainerState) -> Score | None:
    assert state.started is not None
    measured = state.measured.get(state.started.skill.hash)
    return measured.stated if measured else None


def _print(state: TrainerState, folder: Path, best: Path, used: Spent) -> None:
    assert state.best is not None
    counts = state.counts
    click.echo(f"run         {folder.name} ({state.status})")
    stopped = "" if state.stopped is None else f"; stopped by {state.stopped.reason} after step {state.stopped.step}"
    click.echo(f"steps       {counted_verdicts(counts)}{stopped}")
    baseline = _baseline(state)
    before = shown_value(baseline.hard if baseline else None)
    after = shown_value(state.best.score.hard if state.best.score else None)
    click.echo(f"validation  {before} -> {after}")
    print_tests(_tests(state))
    click.echo(f"used        {shown_usage(used.usage.total, used.currency)}")
    click.echo(f"best skill  {best} (from {state.best.origin})")
    print_test_types(_tests(state))
    note = _nothing_learned(state)
    if note:
        click.echo(f"\nnote        {note}")
    click.echo()
    where = _where(folder)
    if state.completed is not None:
        click.echo(f"next        skillopt-es replay {folder.name} --until step 2{where}")
        click.echo(f"            skillopt-es log {folder.name}{where}")
        click.echo("            skillopt-es init my-project   (your own tasks)")
    else:
        click.echo(f"next        skillopt-es resume {folder.name}{where}")
