"""A cassette in use: a world in which models say what they said then, and all else is as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from attrs import define, field

from skillopt_es.cassettes.file import Cassette, read_cassette
from skillopt_es.cassettes.freezing import thaw
from skillopt_es.config import RunConfig, load_config
from skillopt_es.engine.call_records import read_answer, recorded_request, steps_of
from skillopt_es.errors import CassetteMiss
from skillopt_es.events.journal import FinishedCall
from skillopt_es.events.places import Place
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Role, Split
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, FailureKind, FinishReason, Usage
from skillopt_es.sessions.evaluation import Evaluated, EvaluationRequest, evaluate
from skillopt_es.sessions.session import start
from skillopt_es.sessions.skills import load_skill
from skillopt_es.sessions.wiring import Session

_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)


@define(eq=False)
class Playing:
    """
    One cassette for one test; `folder` is where the runs of the test are written.

    `misses` are the sentences of what was asked and is not in the cassette. The fixture fails a test that has some,
    also where an environment caught the error; `misses.clear()` says that a test expects them.
    """

    cassette: Cassette
    folder: Path
    recordings: Recordings = field(repr=False)

    @classmethod
    def of(cls, path: Path, folder: Path) -> Playing:
        """The cassette in a file; raises CassetteDamaged for a file that is none."""
        cassette = read_cassette(path)
        return cls(cassette, folder, Recordings(cassette, path.name))

    @property
    def misses(self) -> list[str]:
        """What was asked in vain."""
        return self.recordings.misses

    def open_model(self, config: RunConfig, role: Role, environ: Mapping[str, str]) -> RecordedModel:
        """The model of a role, whatever the config says: no key and no network are needed."""
        return self.recordings.model(role)

    def run_folder(self) -> Path:
        """The frozen run itself, laid out as a folder for every reading command."""
        folder = self.folder / "runs" / self.cassette.log.run.name
        if not folder.exists():
            thaw(self.cassette, folder)
        return folder

    def train(self, config: Path | None = None, overrides: Sequence[str] = (), name: str = "replayed") -> Path:
        """Trains as `skillopt-es run` does, under a clock that stands still; the new run's folder."""
        folder = self.folder / "runs" / name
        asyncio.run(start(load_config(config, overrides), folder, _session()))
        return folder

    def evaluate(self, config: Path | None = None, split: Split = "val", overrides: Sequence[str] = ()) -> Evaluated:
        """Scores the config's skill on a split as `skillopt-es eval` does."""
        loaded = load_config(config, overrides)
        request = EvaluationRequest(
            config=loaded,
            skill=load_skill(loaded)[0],
            splits=(split,),
            limit=0,
            directory=self.folder / "evals",
            stem=self.cassette.log.run.name,
        )
        return asyncio.run(evaluate(request, _session(), lambda *_: None))


def _session() -> Session:
    return Session(now=lambda: _BEGAN, clock=lambda: 0.0)


_SHOWN = 60  # characters of a line that differs


@define(eq=False)
class Recordings:
    """
    The calls of a cassette, by place and by request.

    The same request at another place has the same answer: an evaluation may ask what a training run has asked.
    `misses` are the sentences of what was asked in vain, also when somebody caught the error.
    """

    cassette: Cassette
    name: str
    misses: list[str] = field(factory=list)
    _by_slot: dict[tuple[str, str], list[FinishedCall]] = field(factory=dict, init=False)
    _by_request: dict[tuple[str, RecordedRequest], list[FinishedCall]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for each in self.cassette.log.calls:
            call = each.call
            self._by_slot.setdefault((call.role, call.slot), []).append(call)
            self._by_request.setdefault((call.role, call.request), []).append(call)

    def model(self, role: Role) -> RecordedModel:
        """The model of a role."""
        return RecordedModel(role, self)

    def identity(self, role: Role) -> str:
        """What the cassette calls the role's model."""
        calls = (each.call for each in self.cassette.log.calls)
        own = (call.model for call in calls if call.role == role and not Place(call.slot).is_own_call)
        return next(own, f"cassette {role}")

    def reply(self, role: Role, request: ChatRequest) -> ChatReply:
        """The recorded answer, or the recorded failure; raises CassetteMiss where there is neither."""
        asked = recorded_request(request)
        here = self._by_slot.get((role, request.slot), [])
        same = [call for call in here if call.request == asked] or self._by_request.get((role, asked), [])
        if not same:
            self.misses.append(self._difference(role, request, asked, here))
            raise CassetteMiss(
                self.misses[-1], hint="a prompt, the data or a setting changed: freeze a run that was made with it"
            )
        answered = [call for call in same if call.outcome == "answered"]
        if answered:
            return self._read(answered[-1])
        raise CallFailed(cast(FailureKind, same[-1].error_kind), same[-1].error_message)

    def _read(self, call: FinishedCall) -> ChatReply:
        text, tool_calls = read_answer(self._text(call.response), call.finish)
        return ChatReply(
            text=text,
            finish=cast(FinishReason, call.finish),
            tool_calls=tool_calls,
            usage=Usage(
                input=call.input_tokens,
                output=call.output_tokens,
                cached=call.cached_tokens,
                reasoning=call.reasoning_tokens,
            ),
            model=call.reply_model,
            request_id=call.request_id,
            latency_ms=call.latency_ms,
            steps=steps_of(self._text(call.trace)) if call.trace is not None else (),
        )

    def _text(self, digest: str | None) -> str:
        assert digest is not None
        return self.cassette.texts[digest].decode()

    def _difference(
        self, role: Role, request: ChatRequest, asked: RecordedRequest, here: Sequence[FinishedCall]
    ) -> str:
        """What is asked that the cassette does not know, in one sentence."""
        if not here:
            count = sum(1 for each in self.cassette.log.calls if each.call.role == role)
            return f"{self.name} has no call at {request.slot}, and none of its {count:,} {role} calls asked the same"
        recorded = here[-1].request
        differs = self._message_difference(request, recorded) or _part_difference(asked, recorded)
        return f"{self.name} was asked something else at {request.slot}: {differs}"

    def _message_difference(self, request: ChatRequest, recorded: RecordedRequest) -> str:
        then = [(role, self._text(digest)) for role, digest in recorded.messages]
        now = [(message.role, message.content) for message in request.messages]
        for number, (old, new) in enumerate(zip(then, now, strict=False), 1):
            if old[0] != new[0]:
                return f"message {number} is of the {new[0]} and was of the {old[0]}"
            if old[1] != new[1]:
                return f"message {number} ({new[0]}), {_line_difference(old[1], new[1])}"
        return "" if len(then) == len(now) else f"there are {len(now)} messages and there were {len(then)}"


def _line_difference(old: str, new: str) -> str:
    then, now = old.splitlines(), new.splitlines()
    for number, (before, after) in enumerate(zip(then, now, strict=False), 1):
        if before != after:
            start = next(at for at in range(len(before) + len(after)) if before[at : at + 1] != after[at : at + 1])
            begin = max(0, start - _SHOWN // 3)
            shown, was = (line[begin : begin + _SHOWN] for line in (after, before))
            return f"line {number}, is {shown!r} and was {was!r}"
    return f"has {len(now)} lines and had {len(then)}"


def _part_difference(asked: RecordedRequest, recorded: RecordedRequest) -> str:
    """Which parameter or other part of the request differs."""
    now, then = asked.params, recorded.params
    for name in sorted({*now, *then}):
        if now.get(name) != then.get(name):
            return f"{name} is {str(now.get(name))[:_SHOWN]} and was {str(then.get(name))[:_SHOWN]}"
    return "" if asked.images == recorded.images else "its images differ"


@define(eq=False)
class RecordedModel:
    """A role's model that says what it said then; it can do whatever was asked of it."""

    role: Role
    recordings: Recordings
    provides: frozenset[str] = frozenset({"text", "messages", "tools", "images", "image_detail"})

    @property
    def identity(self) -> str:
        """The name of the model that answered then."""
        return self.recordings.identity(self.role)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The recorded answer."""
        return self.recordings.reply(self.role, request)

    async def aclose(self) -> None:
        """Nothing to give back."""
