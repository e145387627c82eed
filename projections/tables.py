"""
Ordinary tables of a run for SQL and spreadsheets: steps, evaluations, rollouts, edits, calls, and two views.

They go into a file of their own, never into the log, and are made anew each time: delete them whenever you like.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from sqlite_utils import Database

from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    PatchesMerged,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    RunForked,
    SkillScored,
    StepSkipped,
)
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.events.values import Draft, Edit, Failed, GateVerdict, Measured, NotRun, Proposal, Suggestion
from skillopt_es.projections.lines import StepLine
from skillopt_es.projections.state import proposals_in
from skillopt_es.projections.summary import summarize

TABLES_FILE = "projections.db"

Cell = str | int | float | None
Row = dict[str, Cell]

_COLUMNS: Mapping[str, Mapping[str, type]] = {
    "steps": {
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
        "draw": int,
        "exact": int,
        "not_run": int,
    },
    "rollouts": {
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
}
_KEYS = {"steps": "step", "evaluations": "seq", "rollouts": "seq", "edits": "id", "calls": "n"}
_VIEWS = {
    "items": "select item, purpose, count(*) as tries, avg(hard) as hard, avg(soft) as soft,"
    " sum(outcome <> 'measured') as unmeasured from rollouts group by item, purpose",
    "applied_edits": "select * from edits where chosen and status like 'applied%' order by step, id",
}


def rebuild_tables(log: EventLog, path: Path | None = None) -> Path:
    """Writes the tables of a log to a file (default: `projections.db` beside the log), replacing it; the file."""
    path = log.path.with_name(TABLES_FILE) if path is None else path
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("pragma journal_mode = off")
            connection.execute("pragma synchronous = off")
            _fill(Database(connection, execute_plugins=False), log)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def _fill(database: Database, log: EventLog) -> None:
    contents: Mapping[str, Iterable[Row]] = {
        "steps": map(_step, summarize(recorded.event for recorded in log.read()).step_lines),
        "evaluations": map(_evaluation, log.read(types={"SkillScored"})),
        "rollouts": map(_rollout, log.read(types={"RolloutCompleted"})),
        "edits": _edits(log.read(types=_EDIT_TYPES)),
        "calls": _calls(log),
    }
    for name, rows in contents.items():
        database.table(name).create(dict(_COLUMNS[name]), pk=_KEYS[name])
        database.table(name).insert_all(rows, batch_size=500)
    for name, sql in _VIEWS.items():
        database.create_view(name, sql)


def _step(line: StepLine) -> Row:
    return {
        "step": line.step,
        "epoch": line.epoch,
        "train_hard": line.train.hard if line.train else None,
        "train_soft": line.train.soft if line.train else None,
        "proposed": line.proposed,
        "merged": line.merged,
        "chosen": line.chosen,
        "applied": line.applied,
        "notes": line.notes,
        "candidate": line.candidate,
        "current": line.current,
        "verdict": line.verdict,
        "best": line.best,
        "bound": int(line.bound),
    }


def _evaluation(recorded: Recorded) -> Row:
    event = recorded.event
    assert isinstance(event, SkillScored)
    where = Place(event.place)
    return {
        "seq": recorded.seq,
        "place": event.place,
        "epoch": where.epoch,
        "step": where.step,
        "purpose": event.purpose,
        "split": event.split,
        "skill": event.skill,
        "hard": event.score.hard,
        "soft": event.score.soft,
        "measured": event.score.measured,
        "unmeasured": event.score.unmeasured,
        "value": event.value,
        "draw": event.draw,
        "exact": int(event.exact),
        "not_run": len(event.not_run),
    }


def _rollout(recorded: Recorded) -> Row:
    event = recorded.event
    assert isinstance(event, RolloutCompleted)
    where, outcome = Place(event.place), event.outcome
    measured = outcome if isinstance(outcome, Measured) else None
    return {
        "seq": recorded.seq,
        "place": event.place,
        "epoch": where.epoch,
        "step": where.step,
        "purpose": event.purpose,
        "item": event.item,
        "task_type": event.task_type,
        "skill": event.skill,
        "outcome": _KINDS[type(outcome)],
        "hard": measured.hard if measured else None,
        "soft": measured.soft if measured else None,
        "turns": event.turns,
        "failure": event.failure,
        "detail": event.detail,
        "prediction": event.prediction,
        "trajectory": event.trajectory,
    }


def _calls(log: EventLog) -> Iterator[Row]:
    """Every call; those of a fork's parent are marked."""
    forks = [recorded.event for recorded in log.read(types={"RunForked"})]
    inherited = max((event.inherited for event in forks if isinstance(event, RunForked)), default=0)
    for row in Journal(log.reader).read():
        yield {**_call(row), "inherited": int(row.n <= inherited)}


def _call(row: CallRow) -> Row:
    call = row.call
    where = Place(call.slot)
    return {
        "n": row.n,
        "slot": call.slot,
        "place": where.site,
        "epoch": where.epoch,
        "step": where.step,
        "attempt": row.attempt,
        "role": call.role,
        "stage": call.stage,
        "outcome": call.outcome,
        "finish": call.finish,
        "reply_model": call.reply_model,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cached_tokens": call.cached_tokens,
        "reasoning_tokens": call.reasoning_tokens,
        "latency_ms": call.latency_ms,
        "error": call.error_kind,
        "ahead": int(call.ahead),
        "repeats": int(bool(call.repeats)),
        "recorded_at": row.recorded_at,
    }


_KINDS: Mapping[type, str] = {Measured: "measured", Failed: "failed", NotRun: "not_run"}
_EDIT_TYPES = frozenset(
    {"PatchProposed", "PatchesMerged", "EditsRanked", "CandidateBuilt", "CandidateGated", "StepSkipped"}
)


def _edits(events: Iterable[Recorded]) -> Iterator[Row]:
    """Every proposal of analysts and merges, with its fate; those of an open step have no verdict yet."""
    rows: dict[str, Row] = {}
    for recorded in events:
        match recorded.event:
            case PatchProposed(patch=maker) | PatchesMerged(merge=maker) as made:
                rows.update(_edit_rows(maker, made))
            case EditsRanked(chosen=chosen):
                for edit in chosen:
                    rows[edit]["chosen"] = 1
            case CandidateBuilt(reports=reports):
                for report in reports:
                    rows[report.edit].update(status=report.status, note=report.note)
            case CandidateGated(verdict=GateVerdict(action=verdict)) | StepSkipped(reason=verdict):
                yield from ({**row, "verdict": verdict} for row in rows.values())
                rows = {}
    yield from rows.values()


def _edit_rows(maker: str, made: PatchProposed | PatchesMerged) -> dict[str, Row]:
    return {
        proposal.id: {
            "id": proposal.id,
            "step": made.step,
            "made_by": maker,
            **_what(proposal),
            "support": proposal.support,
            "source": proposal.source,
            "origins": json.dumps(proposal.origins),
            "chosen": 0,
            "status": None,
            "note": None,
            "verdict": None,
        }
        for proposal in proposals_in(made)
    }


def _what(proposal: Proposal) -> Row:
    """What a proposal asks for; a suggestion or a draft has no target."""
    match proposal:
        case Edit():
            return {
                "op": proposal.op,
                "target": proposal.target,
                "content": proposal.content,
                "file": proposal.file,
            }
        case Suggestion():
            return {"op": proposal.kind, "target": "", "content": proposal.instruction, "file": ""}
        case Draft():
            return {"op": "draft", "target": "", "content": proposal.text, "file": ""}
