"""`run` and `resume`: train, show progress, and say what to do next."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.estimate import print_estimate
from skillopt_es.cli.notify import Ending, note_ending, notify_option, told_at_end
from skillopt_es.cli.options import (
    OFFLINE_DEMO,
    budget_options,
    budget_settings,
    config_here,
    directory_option,
    json_option,
    run_argument,
    set_option,
)
from skillopt_es.cli.printing import tell_of
from skillopt_es.config import RunConfig
from skillopt_es.events.plain import real_path

if TYPE_CHECKING:
    from skillopt_es.door.run import Run
    from skillopt_es.door.work import Watch
    from skillopt_es.engine.work import Work
    from skillopt_es.events.catalog import Event
    from skillopt_es.events.journal import CallRow
    from skillopt_es.projections.state import AnyState

_SIMULATED = "The models are simulated: they can only do tasks like the demo's, and learn nothing from others."
Training = Callable[["Watch"], Awaitable["Run"]]


@click.command("run")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--demo", metavar="NAME", help="Train a bundled demo: demo, or a benchmark's name.")
@click.option("--again", metavar="RUN", help="Train as this run was, with the settings that it has recorded.")
@click.option("--name", "--run", "name", help="The new run's name; by default the config's name and the time.")
@set_option("Set a config key, such as train.seed=7.")
@budget_options
@click.option("--dry-run", is_flag=True, help="Print an estimate, as `estimate` does, and start nothing.")
@notify_option
@click.option("--quiet", is_flag=True, help="No progress.")
@directory_option
@json_option
def run_command(
    config: Path | None,
    demo: str | None,
    again: str | None,
    name: str | None,
    overrides: tuple[str, ...],
    dry_run: bool,
    notify: tuple[str, ...],
    quiet: bool,
    directory: Path,
    as_json: bool,
    **budget: float | None,
) -> int:
    """
    Train a skill. Without CONFIG, uses config.yaml of the current folder; without that, the bundled offline demo with
    simulated models.

    Exit codes: 0 done, 1 failed or paused by an error, 2 usage, config or data, 3 waits for answers
    (`handoff`) or has reached a budget, 130 interrupted.
    """
    from skillopt_es.cli.process import prepare_process, too_few_files
    from skillopt_es.config import demo_config, load_config
    from skillopt_es.door.work import atrain
    from skillopt_es.runs.folders import new_run_folder

    if sum(each is not None for each in (config, demo, again)) > 1:
        raise click.UsageError("give a CONFIG, a --demo or --again, one of them")
    texts = (*overrides, *budget_settings(budget))
    if demo is None and again is None:
        config = config or config_here()
    if again is not None:
        loaded = _as_before(again, directory, texts)
    else:
        loaded = load_config(config if demo is None else demo_config(demo), texts, os.environ)
    tell_of(loaded)
    if dry_run:
        print_estimate(loaded, directory, as_json=as_json)
        return 0
    stem = again or demo or "demo" if config is None else real_path(config).stem
    if stem == "config" and config is not None:
        stem = real_path(config).parent.name
    backends = {loaded.target_model.backend, loaded.optimizer_model.backend}
    demonstrates = config is None and again is None and backends == {"simulated"}
    prepare_process()
    notice = _SIMULATED if "simulated" in backends else too_few_files(loaded.env.workers, len(loaded.roles))
    notice = OFFLINE_DEMO if demonstrates else notice
    with new_run_folder(name, stem, datetime.now(UTC), directory) as folder:
        work: Training = lambda watch: atrain(  # noqa: E731
            loaded, name=folder.name, runs=folder.parent, watch=watch, progress=False
        )
        opening = ground_rules(loaded)
        with told_at_end(notify, folder) as ending:
            return _drive(work, folder, ending, quiet=quiet, as_json=as_json, notice=notice, opening=opening)


def _as_before(again: str, directory: Path, texts: tuple[str, ...]) -> RunConfig:
    """The config that a run has recorded, as forks and resumes have changed it, with these settings over it."""
    from skillopt_es.config import with_overrides
    from skillopt_es.engine.algorithms import check_allowed
    from skillopt_es.engine.run_config import config_of_run
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading
    from skillopt_es.sessions.session import recorded_settings

    folder = find_run(again, directory)
    with Reading.of(folder) as reading:
        started = reading.started
        check_allowed("resume", started, folder.name)
        recorded = config_of_run(started, folder, recorded_settings(reading))
    return with_overrides(recorded, texts, os.environ)


@click.command("resume")
@run_argument
@click.option(
    "--ask-again", is_flag=True, help="Ask again where the recorded answer belongs to another request, or was cut off."
)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Continue with what is left of a log whose end is missing; the rest is asked again.",
)
@set_option("Change a setting that decides nothing, such as a limit.")
@budget_options
@notify_option
@click.option("--quiet", is_flag=True, help="No progress.")
@directory_option
@json_option
def resume_command(
    run: str | None,
    ask_again: bool,
    accept_loss: bool,
    overrides: tuple[str, ...],
    notify: tuple[str, ...],
    quiet: bool,
    directory: Path,
    as_json: bool,
    **budget: float | None,
) -> int:
    """Continue a run that stopped, from exactly where it stopped. RUN defaults to the newest."""
    from skillopt_es.door.work import aresume
    from skillopt_es.runs.folders import find_run

    folder = find_run(run, directory)
    texts = (*overrides, *budget_settings(budget))
    work: Training = lambda watch: aresume(  # noqa: E731
        folder, settings=texts, ask_again=ask_again, accept_loss=accept_loss, watch=watch, progress=False
    )
    with told_at_end(notify, folder) as ending:
        return _drive(work, folder, ending, quiet=quiet, as_json=as_json)


@click.command("continue")
@run_argument
@click.option("--name", "name", help="The new run's name; by default RUN's, with -on behind it.")
@set_option("What is to differ: train.num_epochs=2.")
@budget_options
@notify_option
@click.option("--quiet", is_flag=True, help="No progress.")
@directory_option
@json_option
def continue_command(
    run: str | None,
    name: str | None,
    overrides: tuple[str, ...],
    notify: tuple[str, ...],
    quiet: bool,
    directory: Path,
    as_json: bool,
    **budget: float | None,
) -> int:
    """
    Train on: a new run that begins with RUN's best skill and with what was learned there.

    The edits that the last epoch refused are not proposed again, and the optimizer keeps its notes. The data is the
    same; everything else may be set anew. RUN stays as it is, and defaults to the newest.

    \b
    skillopt-es continue my-run --set train.num_epochs=2
    """
    from skillopt_es.door.work import atrain_on
    from skillopt_es.runs.folders import continued_folder, find_run

    parent = find_run(run, directory)
    texts = (*overrides, *budget_settings(budget))
    with continued_folder(name, parent) as folder:
        work: Training = lambda watch: atrain_on(  # noqa: E731
            parent, settings=texts, name=folder.name, watch=watch, progress=False
        )
        with told_at_end(notify, folder) as ending:
            return _drive(work, folder, ending, quiet=quiet, as_json=as_json, notice=f"continues {parent.name}")


def _drive(
    work: Training, folder: Path, ending: Ending, *, quiet: bool, as_json: bool, notice: str = "", opening: str = ""
) -> int:
    """Runs a session with progress and signals; the exit code."""
    from attrs import evolve

    from skillopt_es.cli.process import command_watch, prepare_process
    from skillopt_es.cli.progress import open_progress, words_for
    from skillopt_es.cli.summary import print_outcome, resume_hint
    from skillopt_es.errors import BackendError, Interrupted
    from skillopt_es.runs.run_log import RunLog, ahead_gave_up, logged_to

    prepare_process()
    with open_progress(folder, quiet=quiet) as progress, logged_to(folder):
        progress.notice, progress.opening = notice, opening

        last = _Last()

        async def go() -> Run:
            async with command_watch() as watch:
                observers = (progress, RunLog(words_for), last)
                return await work(evolve(watch, observers=observers, ahead_gave_up=ahead_gave_up))

        try:
            run = asyncio.run(go())
        except (BackendError, Interrupted) as error:
            if last.state is not None:
                note_ending(ending, last.state)
            error.hint = ", then ".join(filter(None, (error.hint, resume_hint(folder))))
            raise
        finally:
            _keep_overview(folder)
    # Nothing happens in a run that is complete already: then its log has to be read.
    state = run.state() if last.state is None else last.state
    note_ending(ending, state)
    return print_outcome(state, folder, as_json=as_json)


class _Last:
    """An observer that has the run's last state at hand: folding a long log again takes seconds."""

    state: AnyState | None = None

    def planned(self, work: Work, state: AnyState) -> None:
        """Nothing: a plan changes no state."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """One more event."""
        self.state = state

    def called(self, row: CallRow) -> None:
        """Nothing: the state has no calls."""


def _keep_overview(folder: Path) -> None:
    """Leaves what a list of runs shows of this one beside its log, so that a thousand are listed at once."""
    from skillopt_es.events.errors import LogError
    from skillopt_es.runs.overview import read_and_kept

    with suppress(LogError):  # there is no log yet, or who lists the runs is told
        read_and_kept(folder)


def ground_rules(config: RunConfig) -> str:
    """What a candidate has to win by, and what becomes of guidance at an epoch's end, if an algorithm asks for any."""
    from skillopt_es.engine.algorithms import algorithm_named
    from skillopt_es.events.catalog import SlowUpdateProposed

    guided = SlowUpdateProposed in algorithm_named(config.train.algorithm).answers
    return f"{_candidates(config)}; {_guidance(config)}." if guided else f"{_candidates(config)}."


def _candidates(config: RunConfig) -> str:
    from skillopt_es.engine.algorithms import algorithm_named
    from skillopt_es.events.values import TAKES_TIES

    evaluation = config.evaluation
    if not evaluation.use_gate:
        return "Every candidate is taken (evaluation.use_gate is false)"
    may_tie = evaluation.gate_rule in TAKES_TIES
    first = algorithm_named(config.train.algorithm).words.before_the_gate
    metric = evaluation.gate_metric
    share = f", {evaluation.gate_mixed_weight:g} of it soft" if metric == "mixed" else ""
    how = "must not lose" if may_tie else "has to win"
    by = f"{metric} score{share} (gate_metric) and the {evaluation.gate_rule} rule (gate_rule)"
    return f"{first}A candidate {how} on validation tasks by {by}"


def _guidance(config: RunConfig) -> str:
    if not config.optimizer.use_slow_update:
        return "there is no guidance at an epoch's end (use_slow_update is false)"
    gated = config.optimizer.slow_update_gate_with_selection
    how = "has to win, too" if gated else "is taken without a test"
    return f"guidance at an epoch's end {how} (slow_update_gate_with_selection: {str(gated).lower()})"
