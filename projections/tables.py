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
from itertools import chain, starmap
from pathlib import Path

from sqlite_utils import Database

from skillopt_es.events.catalog import SKILL_TYPES, Recorded
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

_COLUMNS: Mapping[str, Mapping[str, type]] = {
    "skills": {"hash": str, "main": str, "files": int, "characters": int},
    "runs": {
        "run": str,
        "run_id": str,
        "parent_id": str,
        "created_at": str,
        "status": str,
        "software": str,
        "initial": str,
        "best": str,
        "best_value": float,
        "config": str,
        "sweep": str,
        "setting": str,
    },
    "steering": {
        "run": str,
        "seq": int,
        "recorded_at": str,
        "name": str,
        "command": str,
        "given_by": str,
        "why": str,
        "text": str,
        "settings": str,
    },
    "steps": {
        "run": str,
        "step": int,
        "epoch": int,
        "train_hard": float,
        "train_soft": float,
        "proposed": int,
        "merged": int,
        "chosen": int,
        "applied": int,
        "notes": int,
        "candidate": float,
        "current": float,
        "verdict": str,
        "best": float,
        "bound": int,
    },
    "evaluations": {
        "run": str,
        "seq": int,
        "place": str,
        "epoch": int,
        "step": int,
        "purpose": str,
        "split": str,
        "skill": str,
        "hard": float,
        "soft": float,
        "measured": int,
        "unmeasured": int,
        "value": float,
        "repeat": int,
        "exact": int,
        "not_run": int,
    },
    "rollouts": {
        "run": str,
        "seq": int,
        "place": str,
        "epoch": int,
        "step": int,
        "purpose": str,
        "item": str,
        "task_type": str,
        "skill": str,
        "outcome": str,
        "hard": float,
        "soft": float,
        "turns": int,
        "failure": str,
        "detail": str,
        "prediction": str,
        "trajectory": str,
    },
    "edits": {
        "run": str,
        "id": str,
        "step": int,
        "made_by": str,
        "op": str,
        "target": str,
        "content": str,
        "file": str,
        "support": int,
        "source": str,
        "origins": str,
        "chosen": int,
        "status": str,
        "note": str,
        "verdict": str,
    },
    "calls": {
        "run": str,
        "n": int,
        "slot": str,
        "place": str,
        "epoch": int,
        "step": int,
        "attempt": int,
        "role": str,
        "stage": str,
        "outcome": str,
        "finish": str,
        "reply_model": str,
        "input_tokens": int,
        "output_tokens": int,
        "cached_tokens": int,
        "reasoning_tokens": int,
        "latency_ms": int,
        "error": str,
        "ahead": int,
        "repeats": int,
        "inherited": int,
        "recorded_at": str,
    },
    "texts": {
        "id": int,
        "run": str,
        "kind": str,
        "ref": str,
        "epoch": int,
        "step": int,
        "item": str,
        "text": str,
    },
}
_KEYS = {
    "skills": ("hash",),
    "runs": ("run",),
    "steps": ("run", "step"),
    "evaluations": ("run", "seq"),
    "rollouts": ("run", "seq"),
    "edits": ("run", "id"),
    "calls": ("run", "n"),
    "steering": ("run", "seq"),
    "texts": ("id",),
}
_RUN = ("run", "runs", "run")
_SKILL = ("skill", "skills", "hash")
_FOREIGN = {
    "runs": (("initial", "skills", "hash"), ("best", "skills", "hash")),
    "steps": (_RUN,),
    "evaluations": (_RUN, _SKILL),
    "rollouts": (_RUN, _SKILL),
    "edits": (_RUN,),
    "calls": (_RUN,),
    "steering": (_RUN,),
    "texts": (_RUN,),
}
_VIEWS = {
    # A section of a config holds settings; what lies deeper is JSON.
    "settings": "select run, section.key || '.' || setting.key as key, setting.value as value"
    " from runs, json_each(runs.config) as section, json_each(section.value) as setting where section.type = 'object'"
    " union all select run, section.key, section.value"
    " from runs, json_each(runs.config) as section where section.type <> 'object'",
    "items": "select run, item, purpose, count(*) as tries, avg(hard) as hard, avg(soft) as soft,"
    " sum(outcome <> 'measured') as unmeasured from rollouts group by run, item, purpose",
    "applied_edits": "select * from edits where chosen and status like 'applied%' order by run, step, id",
    "run_scores": "select run, place, split, repeat, hard, soft, value, measured, unmeasured from evaluations"
    " where place = 'baseline' or place like 'final/%' or place like 'eval/%' order by run, seq",
    "spending": "select run, role, stage, count(*) as calls, sum(input_tokens) as input_tokens,"
    " sum(output_tokens) as output_tokens, sum(outcome = 'failed') as failed"
    " from calls where not inherited and not repeats group by run, role, stage",
}

Trajectories = Callable[[EventLog], Iterable[tuple[Recorded, str]]]
"""The rollouts of a run, each with the text of its trajectory."""


def no_trajectories(log: EventLog) -> Iterable[tuple[Recorded, str]]:
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
            for name, sql in _VIEWS.items():
                database.create_view(name, sql)
            database.table("texts").enable_fts(["text"], tokenize="porter")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def are_tables(path: Path) -> bool:
    """Whether a file has these very tables and views, as an export of this version writes them."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            found = {name: [row[1] for row in connection.execute(f"pragma table_info([{name}])")] for name in _COLUMNS}
            views = dict(connection.execute("select name, sql from sqlite_master where type = 'view'"))
    except sqlite3.DatabaseError:
        return False
    return found == {name: [*columns] for name, columns in _COLUMNS.items()} and set(views) == set(_VIEWS)


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
            for table in reversed([*_COLUMNS]):  # rows before the run that they are of
                if table != "skills":
                    connection.execute(f"delete from [{table}] where run = ?", [name])  # noqa: S608 - our own names
            _fill(database, name, log, trajectories, sweep)
        database.table("texts").rebuild_fts()


def _create(database: Database) -> None:
    for name, columns in _COLUMNS.items():
        key = _KEYS[name]
        database.table(name).create(
            dict(columns), pk=key[0] if len(key) == 1 else key, foreign_keys=list(_FOREIGN.get(name, ()))
        )


def _names(logs: Sequence[EventLog]) -> list[str]:
    """What each run is called in the tables: by its name, and where two have the same by its id, too."""
    times = Counter(log.run.name for log in logs)
    return [log.run.name if times[log.run.name] == 1 else f"{log.run.name} {log.run.run_id}" for log in logs]


def _fill(database: Database, run: str, log: EventLog, trajectories: Trajectories, sweep: Sweep) -> None:
    part_of, setting = sweep(log)
    searched = starmap(trajectory_row, trajectories(log))
    contents: Mapping[str, Iterable[Row]] = {
        "runs": [{**run_row(log.run, log.read()), "sweep": part_of or None, "setting": setting or None}],
        "steering": map(steering_row, log.read(types={"RunSteered"})),
        "steps": map(step_row, summarize(recorded.event for recorded in log.read()).step_lines),
        "evaluations": map(evaluation_row, log.read(types={"SkillScored"})),
        "rollouts": map(rollout_row, log.read(types={"RolloutCompleted"})),
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
