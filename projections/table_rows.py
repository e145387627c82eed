"""What the tables of a run hold, row by row: folds over its events and its journal, without the run's own column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from skillopt_es.events.catalog import (
    AppendixExtended,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    Event,
    MetaSkillWritten,
    PatchesMerged,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    RunForked,
    RunSteered,
    SkillScored,
    SlowUpdateProposed,
    StepSkipped,
    names_of,
    only,
    skills_in,
)
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog, RunInfo
from skillopt_es.events.places import Place
from skillopt_es.events.values import (
    Draft,
    Edit,
    Failed,
    GateVerdict,
    Measured,
    NotRun,
    Proposal,
    SkillTree,
    Suggestion,
)
from skillopt_es.projections.core import core_after
from skillopt_es.projections.lines import StepLine
from skillopt_es.projections.state import AnyState, proposals_in

Cell = str | int | float | None
Row = dict[str, Cell]


def _said(values: object, *names: str) -> Row:
    """The columns that a value has fields for, by the same names."""
    return {name: getattr(values, name) for name in names}


def steering_row(recorded: Recorded, event: RunSteered) -> Row:
    """What somebody ordered while the run was open."""
    settings = {each.key: each.value for each in event.settings}
    return {
        **_said(recorded, "seq", "recorded_at"),
        "name": event.name,
        "command": event.order,
        "given_by": event.by,
        **_said(event, "why", "text"),
        "settings": json.dumps(settings, sort_keys=True) if settings else None,
    }


def step_row(line: StepLine) -> Row:
    """A finished step."""
    train: Row = {"train_hard": line.train.hard, "train_soft": line.train.soft} if line.train else {}
    names = ("step", "epoch", "proposed", "merged", "chosen", "applied", "notes")
    values = ("candidate", "current", "verdict", "best", "bound")
    return {"train_hard": None, "train_soft": None, **train, **_said(line, *names, *values)}


def evaluation_row(recorded: Recorded, event: SkillScored) -> Row:
    """A whole evaluation of one skill."""
    return {
        "seq": recorded.seq,
        "place": event.place,
        **_said(Place(event.place), "epoch", "step"),
        **_said(event, "purpose", "split", "skill", "value", "repeat", "exact"),
        **_said(event.score, "hard", "soft", "measured", "unmeasured"),
        "not_run": len(event.not_run),
    }


def rollout_row(recorded: Recorded, event: RolloutCompleted) -> Row:
    """One item tried under one skill."""
    measured = event.outcome if isinstance(event.outcome, Measured) else None
    return {
        "seq": recorded.seq,
        "place": event.place,
        **_said(Place(event.place), "epoch", "step"),
        **_said(event, "purpose", "item", "task_type", "skill"),
        "outcome": _KINDS[type(event.outcome)],
        "hard": measured.hard if measured else None,
        "soft": measured.soft if measured else None,
        **_said(event, "turns", "failure", "detail", "prediction", "trajectory"),
    }


def call_rows(log: EventLog) -> Iterator[Row]:
    """Every call; those of a fork's parent are marked."""
    # The fork of a fork has its parent's inherited calls, too.
    inherited = max((fork.inherited for _, fork in only(RunForked, log.read(types={"RunForked"}))), default=0)
    for row in Journal(log.reader).read():
        yield {**_call(row), "inherited": int(row.n <= inherited)}


def _call(row: CallRow) -> Row:
    call = row.call
    where = Place(call.slot)
    tokens = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    return {
        **_said(row, "n", "attempt", "recorded_at"),
        "place": where.site,
        **_said(where, "epoch", "step"),
        **_said(call, "slot", "role", "stage", "outcome", "finish", "reply_model", *tokens, "latency_ms", "ahead"),
        "error": call.error_kind,
        "repeats": bool(call.repeats),
    }


_KINDS: Mapping[type, str] = {Measured: "measured", Failed: "failed", NotRun: "not_run"}
EDIT_TYPES = names_of((PatchProposed, PatchesMerged, EditsRanked, CandidateBuilt, CandidateGated, StepSkipped))


def edit_rows(events: Iterable[Recorded]) -> Iterator[Row]:
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
            **_said(proposal, "support", "source"),
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
            return _said(proposal, "op", "target", "content", "file")
        case Suggestion():
            return {"op": proposal.kind, "target": "", "content": proposal.instruction, "file": ""}
        case Draft():
            return {"op": "draft", "target": "", "content": proposal.text, "file": ""}


def run_row(run: RunInfo, events: Iterable[Recorded]) -> Row:
    """A run as a whole: how it began, where it stands, and its best skill."""
    state: AnyState | None = None
    for recorded in events:
        state = core_after(state, recorded.event)
    started, best = (None, None) if state is None else (state.started, state.best)
    return {
        "run_id": run.run_id,
        "parent_id": run.parent_run,
        "created_at": run.created_at,
        "status": "new" if state is None else state.status,
        "software": started.software if started else None,
        "initial": started.skill.hash if started else None,
        "best": best.skill.hash if best else None,
        "best_value": best.value if best else None,
        "config": json.dumps(started.config, sort_keys=True) if started else None,
    }


def skill_rows(events: Iterable[Recorded]) -> Iterator[Row]:
    """Every skill that events hold whole, once."""
    for _, skill in _skills(events):
        characters = sum(map(len, skill.files.values()))
        yield {"hash": skill.hash, "main": skill.main, "files": len(skill.files), "characters": characters}


def _skills(events: Iterable[Recorded]) -> Iterator[tuple[Event, SkillTree]]:
    """Each skill with the first event that holds it."""
    seen = set()
    for recorded in events:
        for skill in skills_in(recorded.event):
            if skill.hash not in seen:
                seen.add(skill.hash)
                yield recorded.event, skill


def skill_texts(events: Iterable[Recorded]) -> Iterator[Row]:
    """The files of every skill, to be searched."""
    for event, skill in _skills(events):
        for path, text in skill.files.items():
            ref = skill.hash if path == skill.main else f"{skill.hash}/{path}"
            yield {"kind": "skill", "ref": ref, **_when(event), "item": None, "text": text}


WRITTEN_TYPES = names_of((PatchProposed, PatchesMerged, AppendixExtended, SlowUpdateProposed, MetaSkillWritten))


def written_texts(events: Iterable[Recorded]) -> Iterator[Row]:
    """What the optimizer wrote besides whole skills: proposals, notes, guidance and meta skills."""
    for recorded in events:
        for kind, ref, text in _written(recorded):
            yield {"kind": kind, "ref": ref, **_when(recorded.event), "item": None, "text": text}


def _written(recorded: Recorded) -> Iterator[tuple[str, str, str]]:
    seq = str(recorded.seq)
    match recorded.event:
        case PatchProposed() | PatchesMerged() as made:
            yield from (("edit", each.id, str(_what(each)["content"])) for each in proposals_in(made))
        case AppendixExtended(added=notes):
            yield from (("note", seq, note) for note in notes)
        case SlowUpdateProposed(guidance=guidance) if guidance:
            yield "guidance", seq, guidance
        case MetaSkillWritten(content=meta_skill) if meta_skill:
            yield "memory", seq, meta_skill  # a name on disk stays


def trajectory_row(seq: int, event: RolloutCompleted, text: str) -> Row:
    """What an agent did on one item, whole."""
    when = _said(Place(event.place), "epoch", "step")
    return {"kind": "trajectory", "ref": str(seq), **when, "item": event.item, "text": text}


def _when(event: Event) -> Row:
    return {"epoch": getattr(event, "epoch", None), "step": getattr(event, "step", None)}
