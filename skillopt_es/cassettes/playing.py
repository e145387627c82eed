"""
A cassette in use: a world in which models say what they said then, and all else is as it is.

Where a test may record, what the cassette has no answer to is asked of the config's own models, and added to it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from attrs import define, evolve, field

from skillopt_es.cassettes.file import Cassette, packed, read_cassette
from skillopt_es.cassettes.freezing import Redactor, left_in, redacted_call, redactions_of, thaw
from skillopt_es.config import RunConfig, load_config
from skillopt_es.engine.call_records import (
    Asked,
    answered_call,
    read_answer,
    recorded_answer,
    recorded_request,
    steps_of,
    steps_text,
)
from skillopt_es.errors import CassetteMiss
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.journal import FinishedCall
from skillopt_es.events.places import Place
from skillopt_es.events.portable import PortableCall
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Role, SkillTree, Split, digest_of
from skillopt_es.ports import (
    ALONE,
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    Course,
    FailureKind,
    FinishReason,
    Usage,
)
from skillopt_es.sessions.evaluation import ASKED_ROLES, Evaluated, EvaluationRequest, evaluate
from skillopt_es.sessions.opening import open_model
from skillopt_es.sessions.session import start
from skillopt_es.sessions.skills import load_skill
from skillopt_es.sessions.wiring import Session

_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)


@define(eq=False)
class Playing:
    """
    One cassette for one test; `folder` is where the runs of the test are written.

    `misses` are the sentences of what was asked and is not in the cassette. The plugin fails a test that has some,
    also where an environment caught the error; `misses.clear()` says that a test expects them. With `records`, it is
    asked of the config's models instead, and `save` writes the answers into the file.
    """

    cassette: Cassette
    path: Path
    folder: Path
    recordings: Recordings = field(repr=False)

    @classmethod
    def of(cls, path: Path, folder: Path, *, records: bool = False) -> Playing:
        """The cassette in a file; raises CassetteDamaged for a file that is none."""
        cassette = read_cassette(path)
        return cls(cassette, path, folder, Recordings(cassette, path.name, records=records))

    def save(self) -> tuple[str, ...]:
        """Writes the file with what was recorded; the places of the calls that are new."""
        recorded = self.recordings
        if not recorded.added:
            return ()
        redactor = Redactor()
        calls = tuple(redacted_call(PortableCall(call, _BEGAN.isoformat()), redactor) for call in recorded.added)
        new = {digest: raw for digest, raw in recorded.texts.items() if digest not in self.cassette.texts}
        whole = evolve(
            self.cassette,
            texts={**self.cassette.texts, **new},
            redactions=_sum(self.cassette.redactions, redactions_of(redactor)),
            left=_sum(self.cassette.left, left_in(new.values(), redactor)),
            added=(*self.cassette.added, *sorted(calls, key=lambda each: (each.call.slot, each.call.digest))),
        )
        draft = self.path.with_name(f".{self.path.name}.new")
        draft.write_bytes(packed(whole))
        draft.replace(self.path)
        return tuple(sorted(call.slot for call in recorded.added))

    @property
    def misses(self) -> list[str]:
        """What was asked in vain."""
        return self.recordings.misses

    def open_model(self, config: RunConfig, role: Role, environ: Mapping[str, str]) -> RecordedModel:
        """The model of a role, whatever the config says: no key and no network are needed unless it records."""
        ask = (lambda: open_model(config, role, environ)) if self.recordings.records else None
        return self.recordings.model(role, ask)

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

    def evaluate(
        self,
        config: Path | None = None,
        split: Split = "val",
        overrides: Sequence[str] = (),
        skill: SkillTree | None = None,
    ) -> Evaluated:
        """Scores a skill, by default the config's, on a split as `skillopt-es eval` does."""
        loaded = load_config(config, overrides, asks=ASKED_ROLES)
        request = EvaluationRequest(
            config=loaded,
            skill=load_skill(loaded)[0] if skill is None else skill,
            splits=(split,),
            limit=0,
            directory=self.folder / "evals",
            stem=self.cassette.log.run.name,
        )
        return asyncio.run(evaluate(request, _session(), lambda *_: None))


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The counts of both, by name."""
    return dict(Counter(one) + Counter(other))


def _session() -> Session:
    return Session(now=lambda: _BEGAN, clock=lambda: 0.0)


RECORD = "--skillopt-record"
WHAT_TO_DO = f"freeze a run that was made with this change, or let `pytest {RECORD}` ask the models and add the answers"
_SHOWN = 60  # characters of a line that differs


@define(eq=False)
class Recordings:
    """
    The calls of a cassette, by place and by request.

    The same request at another place has the same answer: an evaluation may ask what a training run has asked.
    `misses` are the sentences of what was asked in vain, also when somebody caught the error; `added` are the calls
    that were made where it `records`, and `texts` what they name.
    """

    cassette: Cassette
    name: str
    records: bool = False
    misses: list[str] = field(factory=list)
    added: list[FinishedCall] = field(factory=list, init=False)
    texts: dict[str, bytes] = field(factory=dict, init=False)
    _by_slot: dict[tuple[str, str], list[FinishedCall]] = field(factory=dict, init=False)
    _by_request: dict[tuple[str, RecordedRequest], list[FinishedCall]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for each in (*self.cassette.log.calls, *self.cassette.added):
            self._know(each.call)

    def _know(self, call: FinishedCall) -> None:
        self._by_slot.setdefault((call.role, call.slot), []).append(call)
        self._by_request.setdefault((call.role, call.request), []).append(call)

    def model(self, role: Role, ask: Callable[[], ChatModel] | None = None) -> RecordedModel:
        """The model of a role; `ask` opens the one that is asked for what is new."""
        return RecordedModel(role, self, ask)

    def add(self, role: Role, request: ChatRequest, reply: ChatReply, model: str) -> None:
        """One more call, with its answer."""
        call = answered_call(Asked(role, request, model, recorded_request(request)), reply, ahead=False)
        texts = [*(message.content for message in request.messages), recorded_answer(reply)]
        texts += [steps_text(reply.steps)] if reply.steps else []
        texts += [canonical_json(dict(request.fields))] if request.fields else []
        images = [image.data for message in request.messages for image in message.images]
        self.texts |= {digest_of(raw): raw for raw in (*(text.encode() for text in texts), *images)}
        self.added.append(call)
        self._know(call)

    def identity(self, role: Role) -> str:
        """What the cassette calls the role's model."""
        calls = (each.call for each in self.cassette.log.calls)
        own = (call.model for call in calls if call.role == role and not Place(call.slot).is_own_call)
        return next(own, f"cassette {role}")

    def reply(self, role: Role, request: ChatRequest) -> ChatReply:
        """The recorded answer, or the recorded failure; raises CassetteMiss where there is neither."""
        same = self._same(role, request)
        if not same:
            here = self._by_slot.get((role, request.slot), [])
            self.misses.append(self._difference(role, request, recorded_request(request), here))
            raise CassetteMiss(self.misses[-1], hint=WHAT_TO_DO)
        answered = [call for call in same if call.outcome == "answered"]
        if answered:
            return self._read(answered[-1])
        raise CallFailed(cast(FailureKind, same[-1].error_kind), same[-1].error_message)

    def knows(self, role: Role, request: ChatRequest) -> bool:
        """Whether there is an answer to a request, or the failure that it had."""
        return bool(self._same(role, request))

    def _same(self, role: Role, request: ChatRequest) -> list[FinishedCall]:
        """The calls of this request, those of the same place before all others."""
        asked = recorded_request(request)
        here = [call for call in self._by_slot.get((role, request.slot), []) if call.request == asked]
        return here or self._by_request.get((role, asked), [])

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
        raw = self.cassette.texts.get(digest)
        return (self.texts[digest] if raw is None else raw).decode()

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
    ask: Callable[[], ChatModel] | None = None
    provides: frozenset[str] = frozenset({"text", "messages", "tools", "images", "image_detail"})
    _asked: ChatModel | None = field(default=None, init=False)

    @property
    def identity(self) -> str:
        """The name of the model that answered then."""
        return self.recordings.identity(self.role)

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The recorded answer; where it records, also a new one."""
        if self.ask is None or self.recordings.knows(self.role, request):
            return self.recordings.reply(self.role, request)
        if self._asked is None:
            self._asked = self.ask()
        reply = await self._asked.complete(request, course)
        self.recordings.add(self.role, request, reply, self._asked.identity)
        return reply

    async def aclose(self) -> None:
        """Closes the model that was asked for what is new."""
        if self._asked is not None:
            await self._asked.aclose()
