"""What an evaluation came to: for people, for programs, and one line an item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from skillopt_es.cli.options import print_json
from skillopt_es.cli.score_tables import print_by_type, score_json
from skillopt_es.counting import counted
from skillopt_es.engine.scores import mean_score
from skillopt_es.errors import BackendError, ConfigError
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Failed, Json, Measured, Score
from skillopt_es.presenting.documents import usage_json
from skillopt_es.presenting.numbers import shown_usage
from skillopt_es.projections.prices import prices_in
from skillopt_es.projections.state import is_silent
from skillopt_es.sessions.evaluation import Evaluated, EvaluationRequest
from skillopt_es.sessions.recorded_scores import draw_of
from skillopt_es.sessions.scoring import SplitResult

_SHARES = {
    "unmeasured": "rollout.max_failed_share says how much may be",
    "unanswered": "rollout.max_unanswered_share says how much may be without an answer",
}


def print_results(evaluated: Evaluated, request: EvaluationRequest) -> None:
    """Scores, types and tokens of each split, for people."""
    click.echo(f"skill     {request.skill.main} ({request.skill.hash[:12]})")
    for note in request.notes:
        click.echo(f"note      {note}")
    click.echo(f"target    {request.config.target_model.model}")
    click.echo(f"recorded  {evaluated.folder}")
    if evaluated.look is not None:
        click.echo(f"look      {evaluated.look.look} at the sealed test items")
    if evaluated.left_out:
        names = " and ".join(evaluated.left_out)
        click.echo(f"left out  {names}: sealed (env.seal_test); `--open-test` looks, and the log says so for ever")
    for result in evaluated.results:
        click.echo("")
        _print_split(result, prices_in(request.config.resolved).currency)
    if len(evaluated.results) > 1:
        click.echo("")
        click.echo(_line(_name_of_all(evaluated), _together(evaluated.results), evaluated.results))


def _name_of_all(evaluated: Evaluated) -> str:
    """What the score over every item is a score of."""
    return " and ".join(result.split for result in evaluated.results) if evaluated.left_out else "all"


def _together(results: Sequence[SplitResult]) -> Score:
    """The mean over every item of every split."""
    return mean_score([row.outcome for result in results for row in result.rows])


def _line(name: str, score: Score, results: Sequence[SplitResult]) -> str:
    items = f"{score.measured} measured, {score.unmeasured} not measured"
    if not any(result.problem for result in results):
        return f"{name}: hard {score.hard:.4f}, soft {score.soft:.4f} ({items})"
    measured = [row for result in results for row in result.rows if isinstance(row.outcome, Measured)]
    silent = sum(map(is_silent, measured))
    if silent:
        items = f"{len(measured) - silent} answered, {silent} without an answer, {score.unmeasured} not measured"
    return f"{name}: no score ({items})"


def _print_split(result: SplitResult, currency: str) -> None:
    draw = draw_of(result.place)
    name = result.split if draw == 1 else f"{result.split}, draw {draw}"
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
    score, problem = _together(results), any(result.problem for result in results)
    return {
        "hard": None if problem else score.hard,
        "soft": None if problem else score.soft,
        "measured": score.measured,
        "unmeasured": score.unmeasured,
    }


def _split_json(result: SplitResult) -> Json:
    return {
        "split": result.split,
        "draw": draw_of(result.place),
        "hard": None if result.problem else result.score.hard,
        "soft": None if result.problem else result.score.soft,
        "measured": result.score.measured,
        "unmeasured": result.score.unmeasured,
        "problem": result.problem or None,
        "by_type": {name: score_json(score) for name, score in result.by_type.items()},
        "calls_made_now": result.made,
        "usage": usage_json(result.usage),
    }


def write_rows(evaluated: Evaluated, file: Path) -> None:
    """One JSON line an item, in the order of the data."""
    lines = [
        json.dumps({"split": result.split, **_item_json(row)}, ensure_ascii=False)
        for result in evaluated.results
        for row in result.rows
    ]
    try:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {file}: cannot be written: {error.strerror}") from error


def _item_json(row: RolloutCompleted) -> dict[str, Json]:
    outcome = row.outcome
    measured = outcome if isinstance(outcome, Measured) else None
    kind = "measured" if measured else "failed" if isinstance(outcome, Failed) else "not_run"
    return {
        "id": row.item,
        "type": row.task_type,
        "outcome": kind,
        "hard": measured.hard if measured else None,
        "soft": measured.soft if measured else None,
        "prediction": row.prediction,
        "failure": row.failure,
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
