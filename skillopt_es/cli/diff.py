"""`diff`: what differs between two moments of a run, or between two runs: skill, state, config, scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, two_words
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import print_diff, print_error, print_hanging
from skillopt_es.counting import counted
from skillopt_es.errors import NotInRun
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import some_of
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.words import names, short

if TYPE_CHECKING:
    from skillopt_es.audit.targets import Side, SkillName
    from skillopt_es.projections.state import AnyState, Measurement
    from skillopt_es.runs.state_diff import Changed, ScoreDiff, SkillDiff, StateDiff

_LEAD = 30  # characters before the first difference: a key and its quotes say where it is


@click.command("diff")
@click.argument("words", nargs=-1, required=True, metavar="[RUN] A B")
@directory_option
@json_option
def diff_command(words: tuple[str, ...], directory: Path, as_json: bool) -> int:
    """
    What differs between two moments of a run, or between two runs: skills, scores, state and config.

    A and B are moments (`step 3`, `epoch 1`, `seq 40`); without B, the moment is compared with now. They may be skills
    of the run, too: `initial`, `best`, `current`. Two names of runs compare those. RUN defaults to the newest.

    \b
    skillopt-es diff step 3 step 7
    skillopt-es diff initial best
    skillopt-es diff my-run epoch 1
    skillopt-es diff one-run another-run
    skillopt-es diff one-run step 3 another-run step 3
    """
    from skillopt_es.audit.targets import sides_of, skills_of
    from skillopt_es.runs.state_diff import state_diff

    problems: list[str] = []
    if named := skills_of(words):
        old_name, new_name, found = _skills(*named, directory, problems)
    else:
        sides = sides_of(two_words(words))
        if sides is None:
            raise click.UsageError(
                "diff takes two moments of a run, or two runs: diff [RUN] A B, with A and B as `step 3`"
            )
        (old_name, old), (new_name, new), known = _states(sides, directory, problems)
        found = state_diff(old, new, known)
    if as_json:
        print_json({"before": old_name, "after": new_name, "problems": list(problems), **_json(found)})
    else:
        click.echo(f"--- {old_name}\n+++ {new_name}")
        _print(found, whole=named is None)
    for problem in problems:
        print_error(problem)
    return 1 if problems else 0


def _skills(
    run: str | None, before: SkillName, after: SkillName, directory: Path, problems: list[str]
) -> tuple[str, str, StateDiff]:
    """Two skills of a run with their names, and what differs between them."""
    from skillopt_es.audit.targets import Side
    from skillopt_es.projections.state import Standing
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.state_diff import standing_diff

    folder = find_run(run, directory)
    _, state, _ = _state(Side(run, None), folder, problems)
    skills = {"initial": Standing(skill=state.started.skill), "best": state.best, "current": state.current}
    found = standing_diff(after, skills[before], skills[after], state)
    return f"{folder.name}, {before} skill", f"{folder.name}, {after} skill", found


def _states(
    sides: tuple[Side, Side], directory: Path, problems: list[str]
) -> tuple[tuple[str, AnyState], tuple[str, AnyState], Mapping[str, Measurement]]:
    """
    Both states with their names, and all measurements of their runs, also those made afterwards.

    A log that both sides share is read once where that can be.
    """
    from skillopt_es.runs.folders import find_run

    folders = [find_run(side.run, directory) for side in sides]
    shared = folders[0] == folders[1]
    said: list[str] = []
    first = _state(sides[0], folders[0], said)
    last = _state(sides[1], folders[1], said, after=first if shared else None)
    # Of one log both sides say the same; the longer sentence has where it ends.
    problems.extend([max(said, key=len)] if shared and said else said)
    if shared:
        known = _measured(folders[0], max(first, last, key=lambda side: side[2]))
    else:
        known = {**_measured(folders[0], first), **_measured(folders[1], last)}
    return first[:2], last[:2], known


def _measured(folder: Path, side: tuple[str, AnyState, int]) -> Mapping[str, Measurement]:
    """What a run has measured up to its end, as far as it can be read; `side` is a state of it."""
    from skillopt_es.engine.algorithms import fold
    from skillopt_es.runs.reading import Reading

    _, state, seq = side
    with Reading.of(folder, framed=True) as reading:
        return fold((recorded.event for recorded in reading.read(after=seq)), state).measured


def _state(
    side: Side, folder: Path, problems: list[str], after: tuple[str, AnyState, int] | None = None
) -> tuple[str, AnyState, int]:
    """A side's name, its state and the number of its last event; `after` is an earlier state of the same log."""
    from skillopt_es.engine.algorithms import fold
    from skillopt_es.runs.lookup import seq_of
    from skillopt_es.runs.reading import Reading

    with Reading.of(folder) as reading:
        seq = reading.until if side.moment is None else seq_of(reading, side.moment)
        begin = after if after is not None and after[2] <= seq else None
        records = reading.read(after=begin[2] if begin else 0, until=seq)
        state = fold((recorded.event for recorded in records), begin[1] if begin else None)
        if state is None:
            raise reading.problem or NotInRun(
                f"{reading.run.name} has not begun", hint="there is nothing to compare yet"
            )
        reached = min(seq, reading.until)
        if reading.problem is not None:
            ends = f"; its state is that after event {reached}" if reached < seq or side.moment is None else ""
            problems.append(f"{reading.run.name}: {reading.problem}{ends}")
        moment = "now" if side.moment is None else f"{side.moment[0]} {side.moment[1]}"
        return f"{reading.run.name}, {moment} (event {reached:,})", state, reached


def _print(found: StateDiff, *, whole: bool) -> None:
    for score in found.scores:
        click.echo(f"\n{score.which} skill  {_score(score)}")
        for how, items in (("won", score.won), ("lost", score.lost)):
            if items:
                print_hanging(f"  {how}: {names(items)}", hang=4)
        [skill] = [skill for skill in found.skills if skill.which == score.which]
        if skill.before == skill.after:
            click.echo(f"  the same text, {skill.after[:12]}")
        elif skill.which == "best" and _as_current(skill, found):
            click.echo("  the same two texts as above")
        else:
            click.echo(f"  {skill.before[:12]} -> {skill.after[:12]}")
            print_diff(skill.lines)
    if whole:
        _print_changed("state", found.state)
        _print_changed("config", found.config)


def _as_current(skill: SkillDiff, found: StateDiff) -> bool:
    texts = (skill.before, skill.after)
    return any(other.which == "current" and (other.before, other.after) == texts for other in found.skills)


def _score(score: ScoreDiff) -> str:
    (one, other), (few, many) = score.metrics, score.items
    before, after = shown_value(score.before), shown_value(score.after)
    if few != many and few is not None and many is not None:
        before, after = f"{before} over {counted(few, 'item')}", f"{after} over {many} (not the same items)"
    then = "" if one == other else f"{other} score "
    values = f"{one + ' ' if one else ''}score {before} -> {then}{after}"
    if not score.compared:
        return f"{values}; no item was measured under both"
    return f"{values}; won {len(score.won)}, lost {len(score.lost)} of {score.compared} items measured under both"


def _print_changed(title: str, rows: tuple[Changed, ...]) -> None:
    click.echo(f"\n{title}: {'nothing differs' if not rows else ''}".rstrip())
    for row in rows:
        before, after = (json.dumps(value, ensure_ascii=False) for value in (row.before, row.after))
        same = max(0, _shared(before, after) - _LEAD)  # a long common beginning says nothing
        shown = [
            f"{'…' if same else ''}{short(text[same:])}" if there else "(not there)"
            for text, there in ((before, row.was_there), (after, row.is_there))
        ]
        print_hanging(f"  {row.key}: {' -> '.join(shown)}", hang=4)


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)


def _json(found: StateDiff) -> dict[str, Json]:
    return {
        "skills": {
            skill.which: {"before": skill.before, "after": skill.after, "diff": list(skill.lines)}
            for skill in found.skills
        },
        "scores": {
            score.which: {
                **some_of(score, "before", "after"),
                "gate_metrics": list(score.metrics),
                **some_of(score, "items", "compared", "won", "lost"),
            }
            for score in found.scores
        },
        "state": {row.key: [row.before, row.after] for row in found.state},
        "config": {row.key: [row.before, row.after] for row in found.config},
    }
