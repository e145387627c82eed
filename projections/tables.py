"""
Ordinary tables of one or several runs for SQL and spreadsheets: sqlite-utils and Datasette find keys, views and texts.

They go into a file of their own, never into a log: delete them whenever you like. A run that is added to a file takes
the place of its earlier rows. Every table has a column `run`, but for `skills`, which name themselves by their content.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib import resources
from itertools import chain, starmap
from pathlib import Path
from typing import TypeVar

import cattrs
import yaml
from attrs import frozen
from sqlite_utils import Database

from skillopt_es.events.catalog import SKILL_TYPES, Event, Recorded, RolloutCompleted, RunSteered, SkillScored
from skillopt_es.events.log import EventLog
from skillopt_es.projections.summary import summarize
from skillopt_es.projections.table_rows import (
    EDIT_TYPES,
    WRITTEN_TYPES,
    Row,
    call_rows,
    edit_rows,
    evaluation_row,
    rollout_row,
    run_row,
    skill_rows,
    skill_texts,
    steering_row,
    step_row,
    trajectory_row,
    written_texts,
)

E = TypeVar("E", bound=Event)


@frozen(kw_only=True)
class _Table:
    columns: Mapping[str, str]
    key: tuple[str, ...]
    refers: tuple[tuple[str, str, str], ...] = ()


@frozen
class _Schema:
    tables: Mapping[str, _Table]
    views: Mapping[str, str]


@cache
def _schema() -> _Schema:
    text = resources.files(__package__).joinpath("tables.yaml").read_text(encoding="utf-8")
    return cattrs.structure(yaml.safe_load(text), _Schema)


Trajectories = Callable[[EventLog], Iterable[tuple[int, RolloutCompleted, str]]]
"""The rollouts of a run, each with its number and the text of its trajectory."""


def no_trajectories(log: EventLog) -> Iterable[tuple[int, RolloutCompleted, str]]:
    """None of them: they are most of what a log holds."""
    return ()


Sweep = Callable[[EventLog], tuple[str, str]]
"""The sweep that a run is part of, and its setting in it; two empty texts where it is part of none."""


def no_sweep(log: EventLog) -> tuple[str, str]:
    """A run of its own."""
    return "", ""


def rebuild_tables(
    logs: Sequence[EventLog], path: Path, trajectories: Trajectories = no_trajectories, sweep: Sweep = no_sweep
) -> Path:
    """Writes the tables of logs to a file, replacing it, with the trajectories that are wanted; the file."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            # The draft is nothing that has to survive a crash.
            connection.execute("pragma journal_mode = off")
            connection.execute("pragma synchronous = off")
            # What a user's plugins do must not change the tables.
            database = Database(connection, execute_plugins=False)
            _create(database)
            for name, log in zip(_names(logs), logs, strict=True):
                _fill(database, name, log, trajectories, sweep)
            database.index_foreign_keys()
            for name, sql in _schema().views.items():
                database.create_view(name, sql)
            database.table("texts").enable_fts(["text"], tokenize="porter")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def are_tables(path: Path) -> bool:
    """Whether a file has these very tables and views, as an export of this version writes them."""
    schema = _schema()
    tables = {name: [*table.columns] for name, table in schema.tables.items()}
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            found = {name: [row[1] for row in connection.execute(f"pragma table_info([{name}])")] for name in tables}
            views = dict(connection.execute("select name, sql from sqlite_master where type = 'view'"))
    except sqlite3.DatabaseError:
        return False
    return found == tables and set(views) == set(schema.views)


def add_to_tables(
    logs: Sequence[EventLog], path: Path, trajectories: Trajectories = no_trajectories, sweep: Sweep = no_sweep
) -> None:
    """
    Writes the rows of logs into a file with these tables; those of a run that is there already are replaced.

    The file is a draft of the caller's: what is begun here may be half done.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        there = {str(run_id): str(name) for name, run_id in connection.execute("select run, run_id from runs")}
        database = Database(connection, execute_plugins=False)
        for log in logs:
            name = there.get(log.run.run_id)
            if name is None:
                name = log.run.name if log.run.name not in there.values() else f"{log.run.name} {log.run.run_id}"
                there[log.run.run_id] = name
            for table in reversed([*_schema().tables]):  # rows before the run that they are of
                if table != "skills":
                    connection.execute(f"delete from [{table}] where run = ?", [name])  # noqa: S608 - our own names
            _fill(database, name, log, trajectories, sweep)
        database.table("texts").rebuild_fts()


def _create(database: Database) -> None:
    for name, table in _schema().tables.items():
        key = table.key[0] if len(table.key) == 1 else table.key
        database.table(name).create(dict(table.columns), pk=key, foreign_keys=list(table.refers))


def _names(logs: Sequence[EventLog]) -> list[str]:
    """What each run is called in the tables: by its name, and where two have the same by its id, too."""
    times = Counter(log.run.name for log in logs)
    return [log.run.name if times[log.run.name] == 1 else f"{log.run.name} {log.run.run_id}" for log in logs]


def _fill(database: Database, run: str, log: EventLog, trajectories: Trajectories, sweep: Sweep) -> None:
    part_of, setting = sweep(log)
    searched = starmap(trajectory_row, trajectories(log))
    contents: Mapping[str, Iterable[Row]] = {
        "runs": [{**run_row(log.run, log.read()), "sweep": part_of or None, "setting": setting or None}],
        "steering": _rows(steering_row, RunSteered, log),
        "steps": map(step_row, summarize(recorded.event for recorded in log.read()).step_lines),
        "evaluations": _rows(evaluation_row, SkillScored, log),
        "rollouts": _rows(rollout_row, RolloutCompleted, log),
        "edits": edit_rows(log.read(types=EDIT_TYPES)),
        "calls": call_rows(log),
        "texts": chain(
            skill_texts(log.read(types=SKILL_TYPES)), written_texts(log.read(types=WRITTEN_TYPES)), searched
        ),
    }
    # Several runs may have the same skill.
    database.table("skills").insert_all(skill_rows(log.read(types=SKILL_TYPES)), ignore=True)
    for name, rows in contents.items():
        database.table(name).insert_all(({"run": run, **row} for row in rows), batch_size=500)


def _rows(row: Callable[[Recorded, E], Row], kind: type[E], log: EventLog) -> Iterable[Row]:
    """A row for each event of a type."""
    records = log.read(types={kind.__name__})
    return (row(recorded, recorded.event) for recorded in records if isinstance(recorded.event, kind))
