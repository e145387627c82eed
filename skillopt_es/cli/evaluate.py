"""`eval`: score any skill on a split, or on all."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.algorithms.evaluation.scoring import SplitResult
from skillopt_es.cli.options import (
    OFFLINE_DEMO,
    budget_options,
    budget_settings,
    config_here,
    json_option,
    place_option,
    set_option,
    which_option,
)
from skillopt_es.cli.printing import print_json, tell_of
from skillopt_es.cli.score_tables import print_by_type
from skillopt_es.cli.terminal import say_for_now, tell
from skillopt_es.counting import counted
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.errors import BackendError
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import Failed, Json, Measured, Score
from skillopt_es.logs import logger
from skillopt_es.presenting.documents import plain, plain_score, some_of
from skillopt_es.presenting.numbers import shown_usage
from skillopt_es.projections.prices import prices_in
from skillopt_es.projections.state import is_silent
from skillopt_es.sessions.evaluation import Evaluated, EvaluationRequest

if TYPE_CHECKING:
    from skillopt_es.config import RunConfig
    from skillopt_es.events.values import SkillTree, Split
    from skillopt_es.sessions.seal import Seal

    _Skill = tuple[SkillTree, tuple[str, ...]]
    _Asked = tuple[RunConfig, _Skill, str, Seal | None]


_TASKS_OF_THE_DEMO = "No CONFIG is named, so the tasks are those of the offline demo."
_SPLITS: dict[str, tuple[Split, ...]] = {
    "train": ("train",),
    "val": ("val",),
    "test": ("test",),
    "all": (),
    "selection": ("val",),
    "valid_seen": ("val",),
    "valid_unseen": ("test",),
}


@click.command("eval")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--skill", "skill_file", type=click.Path(path_type=Path), help="The skill file; by default the config's.")
@click.option(
    "--split",
    type=click.Choice(list(_SPLITS)),
    metavar="SPLIT",
    help="train, val, test or all (also: selection, valid_seen, valid_unseen); by default each that is not sealed.",
)
@click.option("--run", "run", help="Take config and skill from this run: a name in runs/, or a folder.")
@which_option("best", "current", "certified", "initial", what="With --run.")
@set_option("Set a config key, such as env.workers=8.")
@budget_options
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N items of the split.")
@click.option("--again", is_flag=True, help="A new repeat: ask everything again, in addition to what is recorded.")
@click.option(
    "--open-test",
    is_flag=True,
    help="Look at sealed test items (env.seal_test); the look is recorded for good, with --run in that run.",
)
@click.option(
    "--accept-loss", is_flag=True, help="Continue with what is left of an evaluation whose log lacks its end."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write one JSON line an item.")
@place_option(Path("evals"), "Where evaluations are recorded.")
@json_option
def eval_command(
    config: Path | None,
    skill_file: Path | None,
    split: str | None,
    run: str | None,
    which: str,
    overrides: tuple[str, ...],
    limit: int | None,
    again: bool,
    open_test: bool,
    accept_loss: bool,
    out: Path | None,
    directory: Path,
    as_json: bool,
    **budget: float | None,
) -> None:
    """
    Score any skill with the target of CONFIG or of a run: on one split, or on each and on all together.

    Without --split a sealed test split is left out (env.seal_test), and a line says so.

    Calls are journaled under --dir: what was interrupted goes on where it stopped, and a score that is recorded stays.
    A budget (--max-calls and the like) holds for all calls of an evaluation, those of earlier commands included.

    Exit codes: 0 scored, 1 failed or too much was not measured to be a score, 2 usage, config or data, 3 waits for
    answers (`handoff`) or has reached a budget, 130 interrupted.
    """

    if config is not None and run is not None:
        raise click.UsageError("name a CONFIG or a --run, not both")
    if out is not None and not out.resolve().parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {out.parent}")
    overrides = (*overrides, *budget_settings(budget))
    base, (skill, notes), stem, seal = (
        _of_config(config or config_here(""), overrides, skill_file, opens=open_test)
        if run is None
        else _of_run(run, which, overrides, skill_file, opens=open_test)
    )
    request = EvaluationRequest(
        config=base,
        skill=skill,
        notes=notes,
        splits=() if split is None else _SPLITS[split],
        leave_sealed=split is None,
        limit=limit or 0,
        directory=directory,
        stem=stem,
        seal=seal,
        again=again,
    )
    evaluated = asyncio.run(_evaluate(request, accept_loss=accept_loss))
    if out is not None:
        write_rows(evaluated, out)
    (print_json_results if as_json else print_results)(evaluated, request)
    refuse_problems(evaluated)


def _of_config(path: Path | None, overrides: Sequence[str], skill_file: Path | None, *, opens: bool) -> _Asked:
    """The config of a file, the skill that is asked for, what to call them, and the seal."""
    from skillopt_es.config import load_config
    from skillopt_es.sessions.evaluation import ASKED_ROLES
    from skillopt_es.sessions.seal import seal_of
    from skillopt_es.sessions.skills import load_skill

    config = load_config(path, overrides, os.environ, asks=ASKED_ROLES)
    tell_of(config)
    if path is None:
        tell("note", OFFLINE_DEMO if config.target_model.backend == "simulated" else _TASKS_OF_THE_DEMO)
    stem = "demo" if path is None else real_path(path).stem
    if stem == "config" and path is not None:
        stem = real_path(path).parent.name
    skill = load_skill(config) if skill_file is None else _skill_of(config, skill_file)
    return config, skill, stem, seal_of(config, opens=opens)


def _of_run(name: str, which: str, overrides: Sequence[str], skill_file: Path | None, *, opens: bool) -> _Asked:
    """The config of a run, the skill that is asked for, what to call them, and the run's seal."""
    from skillopt_es.config import with_overrides
    from skillopt_es.runs.folders import find_run
    from skillopt_es.sessions.evaluation import OWN_BUDGET, scorable_run
    from skillopt_es.sessions.seal import seal_of_run

    of = scorable_run(find_run(name, Path("runs")))
    config = with_overrides(of.config, (*OWN_BUDGET, *overrides), os.environ)
    tell_of(config)
    skill = (of.skill(which), ()) if skill_file is None else _skill_of(config, skill_file)
    return (
        config,
        skill,
        of.folder.resolve().name,
        seal_of_run(of.state.started, of.config, of.folder, config, opens=opens),
    )


def _skill_of(config: RunConfig, file: Path) -> _Skill:
    """The skill in a file, read as a run reads its first one, and notes about it."""
    from attrs import evolve

    from skillopt_es.errors import DataError
    from skillopt_es.sessions.skills import load_skill

    if not file.exists():
        raise DataError(f"--skill {file}: no such file", hint="name the file or the folder of the skill")
    return load_skill(evolve(config, env=evolve(config.env, skill_init=str(file.absolute()))))


async def _evaluate(request: EvaluationRequest, *, accept_loss: bool) -> Evaluated:
    from attrs import evolve

    from skillopt_es.cli.process import command_watch
    from skillopt_es.cli.summary import limit_option
    from skillopt_es.errors import BudgetReached, Interrupted
    from skillopt_es.sessions.evaluation import evaluate

    try:
        async with command_watch() as watch:
            session = watch.session()
            return await evaluate(request, evolve(session, accept_loss=accept_loss), _progress)
    except BudgetReached as reached:
        hint = f"the same command with a higher `{limit_option(reached.key)}` continues where this one stopped"
        raise BudgetReached(reached.message, key=reached.key, hint=hint) from None
    except BackendError as failed:
        first = f"{failed.hint}, then" if failed.hint else "when the cause is gone,"
        failed.hint = f"{first} the same command continues where this one stopped"
        raise
    except Interrupted as stopped:
        raise Interrupted(stopped.message, hint="the same command continues where this one stopped") from None


def _progress(split: Split, done: int, total: int) -> None:
    logger().info("progress", split=split, done=done, total=total)
    if sys.stderr.isatty():
        say_for_now(f"{split} {done}/{total}", last=done == total)


_SHARES = {
    "unmeasured": "rollout.max_failed_share says how much may be",
    "unanswered": "rollout.max_unanswered_share says how much may be without an answer",
}


def print_results(evaluated: Evaluated, request: EvaluationRequest) -> None:
    """Scores, types and tokens of each split, for people."""
    from skillopt_es.presenting.words import skill_named

    click.echo(f"skill     {skill_named(request.skill)} ({request.skill.hash[:12]})")
    for note in request.notes:
        click.echo(f"note      {note}")
    click.echo(f"target    {request.config.target_model.model}")
    click.echo(f"recorded  {evaluated.folder}")
    if evaluated.look is not None:
        click.echo(f"look      {evaluated.look.look} at the sealed test items")
    if evaluated.left_out:
        names = " and ".join(evaluated.left_out)
        click.echo(f"left out  {names}: sealed (env.seal_test); `--open-test` looks, and the log keeps a record of it")
    for result in evaluated.results:
        click.echo("")
        _print_split(result, prices_in(request.config.resolved).currency)
    if len(evaluated.results) > 1:
        click.echo("")
        name = " and ".join(result.split for result in evaluated.results) if evaluated.left_out else "all"
        click.echo(_line(name, _together(evaluated.results), evaluated.results))


def _together(results: Sequence[SplitResult]) -> Score | None:
    """The mean over every item of every split; None where a split has no score."""
    if any(result.score is None for result in results):
        return None
    return mean_score([row.outcome for result in results for row in result.rows])


def _line(name: str, score: Score | None, results: Sequence[SplitResult]) -> str:
    missing = sum(result.unmeasured for result in results)
    measured = [row for result in results for row in result.rows if isinstance(row.outcome, Measured)]
    items = f"{len(measured)} measured, {missing} not measured"
    if score is not None:
        return f"{name}: hard {score.hard:.4f}, soft {score.soft:.4f} ({items})"
    silent = sum(map(is_silent, measured))
    if silent:
        items = f"{len(measured) - silent} answered, {silent} without an answer, {missing} not measured"
    return f"{name}: no score ({items})"


def _print_split(result: SplitResult, currency: str) -> None:
    repeat = Place(result.place).repeat
    name = result.split if repeat == 1 else f"{result.split}, repeat {repeat}"
    click.echo(_line(name, result.score, [result]))
    print_by_type(result.by_type)
    click.echo(f"{shown_usage(result.usage, currency)} ({counted(result.made, 'call')} made now)")


def print_json_results(evaluated: Evaluated, request: EvaluationRequest) -> None:
    """The same for programs; a split without a score has null in its place."""
    print_json(
        {
            "skill": request.skill.hash,
            "notes": list(request.notes),
            "target": request.config.target_model.model,
            "folder": str(evaluated.folder),
            "left_out": list(evaluated.left_out),
            "look": None if evaluated.look is None else evaluated.look.look,
            "currency": prices_in(request.config.resolved).currency or None,
            "splits": [_split_json(result) for result in evaluated.results],
            "all": _together_json(evaluated.results),
        }
    )


def _together_json(results: Sequence[SplitResult]) -> Json:
    """The score over all splits; null where one of them has none."""
    return {
        **_means_json(_together(results)),
        "measured": sum(result.measured for result in results),
        "unmeasured": sum(result.unmeasured for result in results),
    }


def _means_json(score: Score | Measured | None) -> dict[str, Json]:
    return {"hard": None, "soft": None} if score is None else some_of(score, "hard", "soft")


def _split_json(result: SplitResult) -> Json:

    return {
        "split": result.split,
        "repeat": Place(result.place).repeat,
        **_means_json(result.score),
        **some_of(result, "measured", "unmeasured"),
        "problem": result.problem or None,
        "by_type": {name: plain_score(score) for name, score in result.by_type.items()},
        "calls_made_now": result.made,
        "usage": plain(result.usage),
    }


def write_rows(evaluated: Evaluated, file: Path) -> None:
    """One JSON line an item, in the order of the data."""
    from skillopt_es.deploy.files import write_file

    lines = [
        json.dumps({"split": result.split, **_item_json(row)}, ensure_ascii=False)
        for result in evaluated.results
        for row in result.rows
    ]
    write_file(file, "".join(f"{line}\n" for line in lines))


def _item_json(row: RolloutCompleted) -> dict[str, Json]:
    outcome = row.outcome
    measured = outcome if isinstance(outcome, Measured) else None
    kind = "measured" if measured else "failed" if isinstance(outcome, Failed) else "not_run"
    return {
        "id": row.item,
        "type": row.task_type,
        "outcome": kind,
        **_means_json(measured),
        **some_of(row, "prediction", "failure"),
        "detail": outcome.message if isinstance(outcome, Failed) else row.detail,
    }


def refuse_problems(evaluated: Evaluated) -> None:
    """Raises BackendError unless every result is a score."""
    pauses = [result.pause for result in evaluated.results if result.pause is not None]
    if pauses:
        keys = dict.fromkeys(_SHARES[pause.reason] for pause in pauses)
        raise BackendError(
            f"this is not a score: {'; '.join(pause.message for pause in pauses)}",
            kind=pauses[0].reason,
            hint=f"the same command asks again for what is missing; {' and '.join(keys)}",
        )
