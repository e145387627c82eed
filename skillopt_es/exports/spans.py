"""
A run as a tree of spans with the recorded times: run, epochs, steps, stages, and calls of models. Pure.

A span lasts from the first to the last thing that was recorded in it. Of a fork only what it did itself is there. No
text of a prompt, an answer or a skill and no address is in a span: a call has its place (with the item's id), its
model, its tokens and how it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Literal

from attrs import define, field, frozen

from skillopt_es.events.catalog import (
    CandidateGated,
    EpochPlanned,
    Event,
    Recorded,
    RunCompleted,
    RunForked,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.journal import CallRow
from skillopt_es.events.log import RunInfo
from skillopt_es.events.places import Place
from skillopt_es.ports import Provider
from skillopt_es.runs.run_settings import Settings, backend_of, model_of, settings_in

Value = str | int | float | bool | tuple[str, ...]
Level = Literal["run", "epoch", "step", "stage", "call"]

ProviderOf = Callable[[str], Provider[...] | None]
"""What a backend says is special about it; nothing for one that says nothing, or is not installed."""


@frozen(kw_only=True)
class Span:
    """One span: a path that names it within its run, the path of its parent, and when it began and ended."""

    path: str
    parent: str
    level: Level
    name: str
    start: datetime
    end: datetime
    attributes: Mapping[str, Value]
    error: str = ""


def spans_of(
    run: RunInfo, records: Iterable[Recorded], calls: Iterable[CallRow], provider_of: ProviderOf
) -> tuple[Span, ...]:
    """All spans of a run, parents before their children."""
    growing = _Growing(run)
    kept: list[Recorded] = []
    for recorded in records:
        if isinstance(recorded.event, RunForked):
            growing = _Growing(run, skipped=recorded.event.inherited, epoch=growing.epoch)
            growing.at("").attributes["skillopt.run.forked_from"] = recorded.event.parent_id
        growing.add_event(recorded)
        if type(recorded.event).__name__ in ("RunStarted", "RunResumed", "RunForked"):
            kept.append(recorded)
    settings, asked = settings_in(kept), cache(provider_of)
    for row in calls:
        if row.n > growing.skipped:
            growing.add_call(row, settings, asked)
    return tuple(growing.spans())


def moment(recorded_at: str) -> datetime:
    """When something was recorded."""
    return datetime.fromisoformat(recorded_at)


@define
class _Open:
    """A span that still grows."""

    parent: str
    level: Level
    name: str
    start: datetime | None = None
    end: datetime | None = None
    attributes: dict[str, Value] = field(factory=dict)
    error: str = ""

    def holds(self, start: datetime, end: datetime) -> None:
        """Something in it lasted that long."""
        self.start = start if self.start is None else min(self.start, start)
        self.end = end if self.end is None else max(self.end, end)


@define
class _Growing:
    """The tree while it is read; the run's own path is empty."""

    run: RunInfo
    skipped: int = 0
    epoch: int | None = None
    open: dict[str, _Open] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        named: dict[str, Value] = {"skillopt.run.id": self.run.run_id, "skillopt.run.name": self.run.name}
        self.open[""] = _Open(parent="", level="run", name=f"run {self.run.name}", attributes=named)

    def at(self, path: str) -> _Open:
        """The span of a path that is there."""
        return self.open[path]

    def inside(self, epoch: int | None, step: int | None) -> str:
        """The path of the innermost of run, epoch and step that something lies in; they are made where missing."""
        path = ""
        for level, number in (("epoch", epoch), ("step", step)):
            if number is None:
                continue
            parent, path = path, f"{path}/{level} {number}".removeprefix("/")
            if path not in self.open:
                kind: Level = "epoch" if level == "epoch" else "step"
                attributes: dict[str, Value] = {f"skillopt.{level}": number}
                self.open[path] = _Open(parent=parent, level=kind, name=f"{level} {number}", attributes=attributes)
        return path

    def add_event(self, recorded: Recorded) -> None:
        """An event makes the spans that it lies in last to its moment, and says something about one of them."""
        event = recorded.event
        if isinstance(event, EpochPlanned):
            self.epoch = event.epoch
        path = self.inside(*self._where(event))
        self._lasts(path, moment(recorded.recorded_at), moment(recorded.recorded_at))
        self.at(path).attributes.update(_said(event))

    def _where(self, event: Event) -> tuple[int | None, int | None]:
        place = Place(getattr(event, "place", ""))
        step = getattr(event, "step", None) if not isinstance(event, RunForked) else None
        if step is not None:
            return self.epoch, step
        return getattr(event, "epoch", place.epoch), place.step

    def add_call(self, row: CallRow, settings: Settings, provider_of: ProviderOf) -> None:
        """A call is a span in its stage, which is one in its step, epoch or run."""
        call = row.call
        where = Place(call.slot)
        parent = self.inside(where.epoch, where.step)
        stage = f"{parent}/{call.stage} {where.site}".removeprefix("/")
        if stage not in self.open:
            named: dict[str, Value] = {"skillopt.stage": call.stage, "skillopt.place": where.site}
            self.open[stage] = _Open(parent=parent, level="stage", name=f"{call.stage} {where.site}", attributes=named)
        end = moment(row.recorded_at)
        start = end - timedelta(milliseconds=call.latency_ms)
        path = f"{stage}/call {row.n}"
        self.open[path] = _Open(
            parent=stage,
            level="call",
            name=f"chat {model_of(settings, call.role)}".strip(),
            attributes=_call_attributes(row, settings, provider_of),
            error=(call.error_kind or "failed") if call.outcome == "failed" else "",
        )
        self._lasts(path, start, end)

    def _lasts(self, path: str, start: datetime, end: datetime) -> None:
        while True:
            at = self.open[path]
            at.holds(start, end)
            if not path:
                return
            path = at.parent

    def spans(self) -> Iterator[Span]:
        """What has grown, parents first; a span that nothing happened in is none."""
        for path, at in self.open.items():
            if at.start is not None and at.end is not None:
                yield Span(
                    path=path,
                    parent=at.parent,
                    level=at.level,
                    name=at.name,
                    start=at.start,
                    end=at.end,
                    attributes=at.attributes,
                    error=at.error,
                )


def _said(event: Event) -> dict[str, Value]:
    """What an event says about the span that it lies in; numbers that were not measured are left out."""
    numbers: dict[str, float | int | None] = {}
    words: dict[str, str] = {}
    match event:
        case CandidateGated(verdict=verdict):
            words = {"verdict": verdict.action, "gate.metric": str(verdict.metric), "candidate": event.candidate}
            numbers = {
                "gate.candidate" if verdict.exact else "gate.candidate_at_most": verdict.candidate_value,
                "gate.current": verdict.current_value,
                "gate.best": verdict.best_value,
                "gate.won": len(verdict.won),
                "gate.lost": len(verdict.lost),
            }
        case StepSkipped():
            words = {"verdict": event.reason}
        case SlowUpdateApplied(verdict=verdict):
            words = {"slow_update": verdict.action}
            candidate = "slow_update.candidate" if verdict.exact else "slow_update.candidate_at_most"
            numbers = {candidate: verdict.candidate_value, "slow_update.current": verdict.current_value}
            if verdict.compared is not None:
                numbers |= {"slow_update.won": len(verdict.won), "slow_update.lost": len(verdict.lost)}
        case RunCompleted():
            words = {"best": event.best, "final": event.final}
            scores = {"initial": event.test_initial, "best": event.test_best, "final": event.test_final}
            numbers = {f"test.{name}": score.hard for name, score in scores.items() if score is not None}
        case _:
            pass
    said: dict[str, Value] = {f"skillopt.{key}": value for key, value in numbers.items() if value is not None}
    return {**{f"skillopt.{key}": word for key, word in words.items()}, **said}


def _call_attributes(row: CallRow, settings: Settings, provider_of: ProviderOf) -> dict[str, Value]:
    """A call by the GenAI conventions; `gen_ai.system` is the older name of the provider."""
    call = row.call
    backend = backend_of(settings, call.role)
    special = provider_of(backend)
    system = special.system if special is not None and special.system else backend
    is_agent = special is not None and special.agent
    model, agent = _answered_by(call.reply_model, is_agent)
    said: dict[str, Value | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": system or None,
        "gen_ai.system": system or None,
        "gen_ai.request.model": model_of(settings, call.role) or None,
        "gen_ai.response.model": model or None,
        "gen_ai.agent.name": backend if is_agent else None,
        "gen_ai.agent.version": agent or None,
        "gen_ai.response.finish_reasons": (call.finish,) if call.finish else None,
        "gen_ai.usage.input_tokens": call.input_tokens,
        "gen_ai.usage.output_tokens": call.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": call.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": call.reasoning_tokens,
        "error.type": (call.error_kind or "failed") if call.outcome == "failed" else None,
        "skillopt.role": call.role,
        "skillopt.slot": call.slot,
        "skillopt.attempt": row.attempt,
        "skillopt.ahead": call.ahead or None,
        "skillopt.repeats": bool(call.repeats) or None,
    }
    return {key: value for key, value in said.items() if value is not None}


def _answered_by(recorded: str, is_agent: bool) -> tuple[str, str]:
    """The model and the agent's version: an agent's calls record both, or its version alone where it names no model."""
    if not is_agent:
        return recorded, ""
    model, comma, version = recorded.partition(", ")
    return (model, version) if comma else ("", recorded)
