"""`compare`: runs and forks side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option
from skillopt_es.cli.printing import folded_width, print_json, print_table, table_width
from skillopt_es.cli.terminal import print_error, print_hanging, say, width
from skillopt_es.events.values import Json, Score
from skillopt_es.presenting.documents import (
    by_hand_json,
    plain,
    plain_judged,
    plain_origin,
    plain_part_score,
    plain_score,
    some_of,
)
from skillopt_es.presenting.sides import against_words, column, first_words, interval_words, scores_of

if TYPE_CHECKING:
    from skillopt_es.audit.side_by_side import Side
    from skillopt_es.projections.intervals import Judged


_Column = tuple[str, Sequence[str]]
_WIDE = 120
"""How wide a table may be where nobody says how wide the page is."""
_ALONE, _BY_TYPE = "test best, 95 %", "95 % by type"
_TEXTS = ("status", "fork of", "changed", "steered by hand", "gate metric", "initial over", "best over")
_USED = ("calls", "calls of parent", "tokens in", "tokens out", "cost", "time")


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@directory_option
@json_option
def compare_command(runs: tuple[str, ...], directory: Path, as_json: bool) -> int:
    """
    Runs and forks side by side: scores, steps and verdicts, calls, tokens, money and time.

    What a fork shares with its parent counts for its steps and scores, not for what it used. Each further run's best
    skill is set against that of the first run, by the test tasks of both, corrected for how many are compared.
    """
    from skillopt_es.audit.side_by_side import against_first, side
    from skillopt_es.runs.folders import find_run

    found = [side(folder) for folder in dict.fromkeys(find_run(run, directory) for run in runs)]
    code = 1 if any(each.problem is not None for each in found) else 0
    judgments = against_first(found)
    if as_json:
        print_json([_as_json(each, judgments.get(each.folder)) for each in found])
        return code
    _print(found)
    _print_tests(found, judgments)
    metrics = {each.metric for each in found if each.metric is not None}
    if len(metrics) > 1:
        say()
        print_hanging(
            "The gates' values are by different rules and cannot be compared; hard and soft scores can.", hang=2
        )
    for each in found:
        if each.problem is not None:
            print_error(f"{each.name}: {each.problem}; it is shown as far as it can be read")
    return code


def _print(found: Sequence[Side]) -> None:
    """A column a run where that fits, else a row a run."""
    columns = [
        {**column(each), _ALONE: interval_words(each.interval), _BY_TYPE: interval_words(each.by_type)}
        for each in found
    ]
    by_label = {label: [each[label] for each in columns] for label in columns[0]}
    by_label = {label: cells for label, cells in by_label.items() if any(cell not in ("", "-") for cell in cells)}
    headers = ("run", *(each.name for each in found))
    rows = [(label, *cells) for label, cells in by_label.items()]
    if table_width(headers, rows) <= (width() or _WIDE):
        print_table(headers, rows)
    else:
        _print_rows([each.name for each in found], by_label)


def _print_tests(found: Sequence[Side], judgments: Mapping[Path, Judged | None]) -> None:
    """Each further run's best skill against the first run's, by the test items of both, where anything was tested."""
    if not any(judgments.values()):
        return
    say()
    for each in found[1:]:
        if (seen := judgments[each.folder]) is not None:
            against = f"On test, best of {each.name} against best of {found[0].name}"
            print_hanging(f"{against}: {against_words(seen)}.", hang=2)
    if len(judgments) > 1:
        print_hanging(first_words(judgments.values()), hang=2)


def _print_rows(names: Sequence[str], by_label: Mapping[str, Sequence[str]]) -> None:
    """What is the same for all is said once; a column that says the same as another is only named."""
    same = {label: cells[0] for label, cells in by_label.items() if len(set(cells)) == 1}
    twins: dict[tuple[str, ...], list[str]] = {}
    for label, cells in by_label.items():
        if label not in same:
            twins.setdefault(tuple(cells), []).append(label)
    for used in (False, True):
        columns = [(label, cells) for cells, (label, *_) in twins.items() if (label in _USED) == used]
        while columns:
            count = _fitting(names, columns)
            print_table(*_table(names, columns[:count]), right=_numbers(columns[:count]))
            say()
            columns = columns[count:]
    for label, *others in twins.values():
        if others:
            print_hanging(f"the same as {label} in each run: {', '.join(others)}", hang=2)
    if same:
        said = ", ".join(f"{label} {cell}" for label, cell in same.items())
        print_hanging(f"the same for all {len(names)} runs: {said}", hang=2)


def _fitting(names: Sequence[str], columns: Sequence[_Column]) -> int:
    """How many of the columns stand beside each other without a broken word: at least one."""
    wide = width() or _WIDE
    for count in range(len(columns), 1, -1):
        beside = columns[:count]
        if folded_width(*_table(names, beside), right=_numbers(beside)) <= wide:
            return count
    return 1


def _numbers(columns: Sequence[_Column]) -> list[int]:
    """Where numbers stand in rows that begin with a run's name."""
    return [at for at, (label, _) in enumerate(columns, 1) if label not in _TEXTS]


def _table(names: Sequence[str], columns: Sequence[_Column]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headers and the rows, a row a run."""
    rows = list(zip(names, *(cells for _, cells in columns), strict=True))
    return ("run", *(label for label, _ in columns)), rows


def _as_json(each: Side, seen: Judged | None) -> Json:
    return {
        "run": each.name,
        "folder": str(each.folder),
        "status": each.status,
        "forked_from": plain_origin(each.forked),
        "changed": {} if each.forked is None else {setting.key: setting.value for setting in each.forked.overrides},
        "by_hand": by_hand_json(each.by_hand),
        **some_of(each, "step", "steps", "accepted", "rejected", "indecisive", "skipped", "unknown"),
        "gate_metric": each.metric,
        "best_value": each.value,
        "scores": {
            name.replace(" ", "_"): None if score is None else _score_json(each, name, score)
            for name, score in scores_of(each).items()
        },
        "test_interval": plain(each.interval),
        "test_interval_by_type": plain(each.by_type),
        "against_first": None if seen is None else plain_judged(seen),
        "usage": _usage_json(each),
        "problem": None if each.problem is None else str(each.problem),
        "seconds": each.seconds,
    }


def _score_json(each: Side, name: str, score: Score) -> Json:
    return plain_score(score) if name.startswith("test ") else plain_part_score(score, each.over.get(name))


def _usage_json(each: Side) -> Json:
    from skillopt_es.projections.usage import together

    if each.spent is not None:
        return plain(each.spent)
    if each.there is None:
        return None
    counts = together(each.there.by_stage.values())
    tokens: dict[str, Json] = {"input_tokens": counts.input_tokens, "output_tokens": counts.output_tokens}
    return {"imported": True, "whole_run": each.there.whole, "calls": counts.calls, **tokens}
