"""`sweep`: many runs under shared limits, and the one table that compares their settings."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.notify import notify_option, notifying
from skillopt_es.cli.options import json_option, place_option
from skillopt_es.cli.printing import print_json, print_table
from skillopt_es.cli.terminal import field, print_error, print_hanging, print_next, say, tell
from skillopt_es.counting import counted
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import some_of

if TYPE_CHECKING:
    from skillopt_es.projections.seeds import Against, Mean
    from skillopt_es.sweeps.facts import Fact, SettingDropped, SweepState
    from skillopt_es.sweeps.table import Row, Table

_USUAL = Path("sweeps")
# As `run` ends: 130 is what shells say of Ctrl-C, 3 means that nothing is wrong and a person is waited for.
_CODES = {"interrupt": 130, "error": 1, "handoff": 3, "budget": 3}


class _SweepGroup(click.Group):
    """`sweep FILE` is `sweep run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the command in where a file stands in its place."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("sweep", cls=_SweepGroup)
def sweep_command() -> None:
    """
    Train many settings and seeds, and compare them in one table.

    \b
    skillopt-es sweep SWEEP.yaml          begins a sweep, or continues it
    skillopt-es sweep status SWEEP.yaml   shows where it stands
    """


_directory_option = place_option(_USUAL, "Where the folders of sweeps are.")


@sweep_command.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="The sweep's name; by default that of the file.")
@click.option("--restore", multiple=True, metavar="SETTING", help="Train a setting to its end that was dropped.")
@notify_option
@click.option("--quiet", is_flag=True, help="No progress.")
@_directory_option
@json_option
def run_command(
    file: Path,
    name: str | None,
    restore: tuple[str, ...],
    notify: tuple[str, ...],
    quiet: bool,
    directory: Path,
    as_json: bool,
) -> int:
    """
    Begin the sweep that FILE describes, or continue it from where it stopped.

    Each run is a process of its own. Ctrl-C pauses them all. Exit codes: 0 complete, 1 a run failed, 2 usage or
    config, 3 a budget is reached or questions wait, 130 interrupted.
    """
    from skillopt_es.cli.process import prepare_process
    from skillopt_es.cli.terminal import shown_by
    from skillopt_es.runs.folders import checked_name
    from skillopt_es.sweeps.drive import Outside, drive
    from skillopt_es.sweeps.plan import read_plan

    folder = directory / checked_name("--name", file.stem if name is None else name)
    plan = read_plan(file)
    prepare_process()
    told = notifying(notify, "sweep", folder.name, str(folder))
    with told as ending, shown_by(quiet=quiet), _signals() as asked:
        outside = Outside(now=lambda: datetime.now(UTC), tell=_tell, asked_to_stop=asked)
        state = drive(plan, folder, outside, restore)
        ending.status = "completed" if state.paused is None else "paused"
        if state.paused is not None:
            ending.reason, ending.message = state.paused.reason, state.paused.message
    _print(state, folder, as_json=as_json)
    if state.paused is None:
        return 0
    again = f"skillopt-es {_again(str(file), folder)}"
    if state.paused.reason == "error":
        own = f"each run's own words are in {folder / 'output'}"
        print_error(state.paused.message, f"{own}; `{again}` tries again")
    else:
        tell("paused", state.paused.message, hint=f"`{again}` continues it")
    return _CODES[state.paused.reason]


@sweep_command.command("status")
@click.argument("what", metavar="[FILE|NAME]", required=False)
@_directory_option
@json_option
def status_command(what: str | None, directory: Path, as_json: bool) -> int:
    """Where a sweep stands: its table, and the runs that are not done. Without a name, the newest sweep."""
    from skillopt_es.sweeps.log import read_sweep

    folder = _found(what, directory)
    _print(read_sweep(folder), folder, as_json=as_json, runs=True)
    return 0


def _again(file: str, folder: Path) -> str:
    """What to type to continue a sweep, after `skillopt-es`."""
    more = "" if folder.name == Path(file).stem else f" --name {shlex.quote(folder.name)}"
    where = "" if folder.parent == _USUAL else f" --dir {shlex.quote(str(folder.parent))}"
    return f"sweep {shlex.quote(file)}{more}{where}"


def _found(what: str | None, directory: Path) -> Path:
    """The folder of a sweep that is named by its file, its name or its folder."""
    from skillopt_es.errors import ConfigError
    from skillopt_es.sweeps.log import LOG_FILE, is_sweep

    known = [each for each in directory.iterdir() if is_sweep(each)] if directory.is_dir() else []
    if what is None:
        if not known:
            raise ConfigError(f"there is no sweep in {directory}", hint="`skillopt-es sweep SWEEP.yaml` begins one")
        return max(known, key=lambda each: (each / LOG_FILE).stat().st_mtime)
    for folder in (directory / what, directory / Path(what).stem, Path(what)):
        if is_sweep(folder):
            return folder
    names = ", ".join(sorted(each.name for each in known)) or "none"
    raise ConfigError(f"there is no sweep {what} in {directory}", hint=f"there: {names}")


@contextmanager
def _signals() -> Iterator[Callable[[], int]]:
    """How often somebody has asked to stop: once, and runs finish their calls; twice, and they do not wait."""
    from skillopt_es.cli.process import StopRequests, heard_signals

    asked = StopRequests()

    def on_signal(number: int, _: object) -> None:
        if not asked.times:
            tell("stopping", "stopping: the runs finish their calls in flight (Ctrl-C once more to stop at once)")
        asked.hear(number)

    before = {number: signal.signal(number, on_signal) for number in heard_signals()}
    try:
        yield lambda: asked.times
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(fact: Fact) -> None:
    """A line for what has just happened."""
    from skillopt_es.presenting.numbers import shown_value
    from skillopt_es.sweeps import facts

    match fact:
        case facts.RunLaunched():
            tell("run_launched", f"{fact.run}: {'continues' if fact.resumes else 'begins'}")
        case facts.RunEnded(outcome="completed"):
            scores = f"hard score on validation {shown_value(fact.validation)}, on test {shown_value(fact.test)}"
            tell("run_ended", f"{fact.run}: completed, {scores}, {counted(fact.calls, 'call')}")
        case facts.RunEnded():
            tell("run_ended", f"{fact.run}: {fact.outcome}, {fact.message}")
        case facts.SettingDropped():
            tell("setting_dropped", _dropped(fact))
        case facts.SettingRestored():
            tell("setting_restored", f"{fact.setting}: restored; it is trained to its end")
        case _:
            return


def _dropped(fact: SettingDropped) -> str:
    return (
        f"{fact.setting}: dropped. Its mean can reach {fact.highest:.4f} at most, and that of {fact.by} cannot end "
        f"below {fact.lowest:.4f}"
    )


# --- the table -------------------------------------------------------------------------------------------------------


def _print(state: SweepState, folder: Path, *, as_json: bool, runs: bool = False) -> None:
    from skillopt_es.sweeps.table import table_of

    table = table_of(state)
    if as_json:
        print_json(_as_json(state, table, folder))
        return
    field("sweep", f"{folder.name} ({_status(state, folder)})")
    field("folder", str(folder))
    done = sum(state.done(run.name) for run in state.runs)
    field("runs", f"{done} of {len(state.runs)} completed")
    say()
    _print_table(table)
    _print_notes(table)
    if runs:
        _print_open_runs(state, folder)


def _status(state: SweepState, folder: Path) -> str:
    from skillopt_es.runs.folders import is_written

    if is_written(folder):
        return "running"
    return "completed" if state.completed else "paused" if state.paused is not None else "stopped"


def _print_table(table: Table) -> None:
    score = table.scored_by
    headers = ["setting", "runs", score, f"± {score}", "behind", "± behind", "p", "", "calls", "tokens", "cost"]
    rows = [_cells(each) for each in table.rows]
    if not any(each.currency for each in table.rows):
        headers, *rows = (row[:-1] for row in (headers, *rows))
    print_table(headers, rows, right=[*range(1, 7), *range(8, len(headers))])


def _cells(row: Row) -> list[str]:
    from skillopt_es.presenting.numbers import shown_amount

    compared = row.against
    tokens = None if row.input_tokens is None or row.output_tokens is None else row.input_tokens + row.output_tokens
    more = "" if row.whole else "+"
    return [
        row.setting,
        f"{row.done}/{row.planned}",
        "-" if row.score is None else f"{row.score.value:.4f}",
        _reach(row.score),
        "" if compared is None or compared.difference is None else _number(-compared.difference.value),
        "" if compared is None else _reach(compared.difference),
        "" if compared is None or compared.chance is None else _chance(compared.chance),
        _verdict(row),
        f"{row.calls:,}",
        "-" if tokens is None else f"{tokens:,}{more}",
        "-" if row.cost is None else f"{row.currency} {shown_amount(row.cost, least=not row.whole)}",
    ]


def _reach(mean: Mean | None) -> str:
    """How far the true mean may lie from this one, with 95 % confidence; nothing where one seed cannot say."""
    if mean is None or mean.interval is None:
        return ""
    return _number(max(mean.value - mean.interval.low, mean.interval.high - mean.value))


def _number(value: float) -> str:
    # What floats leave of 0 has a sign, and would be read as one.
    return f"{0.0 if abs(value) < 5e-5 else value:.4f}"


def _chance(probability: float) -> str:
    return "< 0.0001" if probability < 0.0001 else f"{probability:.2g}"


def _verdict(row: Row) -> str:
    """What can be said of a setting against the leading one."""
    said = "leads" if row.leads else _compared(row)
    return f"{said}, dropped" if said and row.dropped is not None else "dropped" if row.dropped is not None else said


def _compared(row: Row) -> str:
    if row.score is None:
        return "no score yet" if row.done < row.planned else "no score"
    if row.against is None or row.against.within_noise is None:
        return "one seed: not known"
    return "within noise" if row.against.within_noise else "more than noise"


def _print_notes(table: Table) -> None:
    say()
    if table.scored_by == "validation":
        print_hanging(
            "Each run's best skill was chosen by these validation scores, so they flatter it; `score: test` does not.",
            hang=2,
        )
    if sum(each.score is not None for each in table.rows) > 1:
        print_hanging(
            "± is how far the true mean may lie away, with 95 % confidence. “behind” is paired: over the seeds that "
            "both have completed. p is that of a paired t test, corrected (Holm) for all pairs of settings, "
            "because the leader was picked. A difference with p above 0.05 is within noise.",
            hang=2,
        )
    for each in table.rows:
        if each.dropped is not None:
            print_hanging(_dropped(each.dropped), hang=2)


def _print_open_runs(state: SweepState, folder: Path) -> None:
    from skillopt_es.runs.folders import is_written

    rows = [
        (run.name, *_standing(state, run.name, folder))
        for run in state.runs
        if not state.done(run.name) and (run.setting not in state.dropped or run.name in state.launches)
    ]
    if rows:
        say()
        print_table(("run", "status", "why"), rows)
    if state.began is not None and not state.completed and not is_written(folder):
        print_next([(_again(state.began.file, folder), "continues it")])


def _standing(state: SweepState, run: str, folder: Path) -> tuple[str, str]:
    """Where a run that has not completed stands, and why."""
    from skillopt_es.runs.folders import is_written
    from skillopt_es.sweeps.children import RUNS

    ended = state.ended.get(run)
    if is_written(folder / RUNS / run):
        return "running", ""
    if ended is None:
        return ("stopped" if run in state.launches else "waits"), ""
    return ended.outcome, ended.message


def _as_json(state: SweepState, table: Table, folder: Path) -> Json:
    return {
        "sweep": folder.name,
        "folder": str(folder),
        "status": _status(state, folder),
        "paused": None if state.paused is None else {"reason": state.paused.reason, "message": state.paused.message},
        "score": table.scored_by,
        "settings": [_row_json(each) for each in table.rows],
        "runs": [_run_json(state, run.name, run.setting, run.seed) for run in state.runs],
    }


def _row_json(row: Row) -> Json:
    compared = row.against
    return {
        "setting": row.setting,
        "planned": row.planned,
        "completed": row.done,
        "score": _mean_json(row.score),
        "leads": row.leads,
        "against_leader": None if compared is None else _against_json(compared),
        "dropped": None if row.dropped is None else {**some_of(row.dropped, "highest", "by", "lowest")},
        **some_of(row, "calls", "input_tokens", "output_tokens"),
        "cost": None if row.cost is None else float(row.cost),
        "currency": row.currency or None,
        "usage_is_whole": row.whole,
        "seconds": row.seconds,
    }


def _against_json(compared: Against) -> Json:
    said = {"difference": _mean_json(compared.difference), "p": compared.chance}
    return {**said, "within_noise": compared.within_noise}


def _mean_json(mean: Mean | None) -> Json:

    if mean is None:
        return None
    interval: Json = None if mean.interval is None else [mean.interval.low, mean.interval.high]
    return {"mean": mean.value, "interval": interval, "seeds": mean.seeds}


def _run_json(state: SweepState, name: str, setting: str, seed: int) -> Json:
    ended = state.ended.get(name)
    return {
        "run": name,
        "setting": setting,
        "seed": seed,
        "launches": state.launches.get(name, 0),
        "outcome": None if ended is None else ended.outcome,
        "message": None if ended is None else ended.message or None,
        "validation": None if ended is None else ended.validation,
        "test": None if ended is None else ended.test,
    }
