"""
Questions that wait for an answer from outside: `handoff/` in the run folder, one file a question for each reader.

The files can be made again: a session removes those it finds and leaves what it has to ask. What counts is the journal;
an answer is recorded there as any other call is, and the resumed run finds it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.errors import DataError, NotInRun
from skillopt_es.events.journal import FinishedCall, Journal
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import clean_text, text_digest
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatRequest, Message
from skillopt_es.runs.reading import whole_log

FOLDER = "handoff"
_NAMED = 12  # hexadecimal digits: of a million questions two have the same once in 500 runs, and file names stay short
_CALL = ("slot", "role", "stage", "model")


@frozen(kw_only=True)
class Question:
    """A question that waits: the call that its answer will finish, and the messages."""

    call: FinishedCall
    messages: tuple[Message, ...]
    key: str = field(init=False)

    @key.default
    def _(self) -> str:
        return text_digest(f"{self.call.slot}\n{self.call.request_digest}")[:_NAMED]


@frozen
class Desk:
    """Where a session leaves its questions."""

    folder: Path

    def clear(self) -> None:
        """Takes away what another session left: this one leaves what it has to ask."""
        shutil.rmtree(self.folder / FOLDER, ignore_errors=True)

    def leave(self, call: FinishedCall, request: ChatRequest) -> None:
        """Leaves a question, for programs as JSON and for people as text."""
        question = Question(call=call, messages=request.messages)
        place = self.folder / FOLDER
        place.mkdir(exist_ok=True)
        facts = {**{name: getattr(call, name) for name in _CALL}, "request": call.request.text}
        messages = [{"role": each.role, "content": each.content} for each in question.messages]
        _replace(place / f"{question.key}.json", json.dumps({**facts, "messages": messages}, indent=1))
        _replace(place / f"{question.key}.md", _page(question))


def _replace(file: Path, text: str) -> None:
    """Writes a file so that nobody ever reads half of it."""
    new = file.with_suffix(f"{file.suffix}.new")
    new.write_text(text, encoding="utf-8", newline="\n")
    new.replace(file)


def _page(question: Question) -> str:
    head = f"# {question.key}: the {question.call.role}, {question.call.stage}, {question.call.slot}"
    return "\n\n".join([head, *(f"## {each.role}\n\n{each.content}" for each in question.messages)]) + "\n"


def questions(folder: Path) -> list[Question]:
    """The questions of a run that wait for an answer, in the order of their slots."""
    found = [_read(file) for file in sorted((folder / FOLDER).glob("*.json"))]
    with whole_log(folder) as log:
        journal = Journal(log.reader)
        waiting = [each for each in found if not _answered(each, journal)]
    return sorted(waiting, key=lambda each: (each.call.slot, each.key))


def _read(file: Path) -> Question:
    hint = "`skillopt-es resume` writes it again"
    try:
        row = json.loads(file.read_text(encoding="utf-8"))
        request = RecordedRequest(row["request"])
        call = FinishedCall(**{name: row[name] for name in _CALL}, request=request, outcome="answered")
        messages = tuple(Message(each["role"], each["content"]) for each in row["messages"])
        asked = tuple((each.role, text_digest(each.content)) for each in messages)
        whole = request.messages == asked
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{file} is not a question as it was written", hint=hint) from error
    question = Question(call=call, messages=messages)
    if not whole or question.key != file.stem:
        raise DataError(f"{file} was changed: it is not the question that the run asks", hint=hint)
    return question


def _answered(question: Question, journal: Journal) -> bool:
    rows = journal.answers(question.call.slot)
    return any(row.call.request_digest == question.call.request_digest for row in rows)


def record_answer(folder: Path, key: str, text: str, now: Callable[[], datetime]) -> Question:
    """Commits an answer to the journal; raises NotInRun when no such question waits, RunBusy while others write."""
    # Editors end a file with a line break that nobody means.
    answer = clean_text(text.rstrip("\r\n"))
    if not answer.strip():
        raise DataError("an answer must not be empty", hint="to let the question wait, do not answer it")
    question = _named(key, questions(folder), folder)
    writer = RunWriter.open(folder, now=now)
    try:
        call = evolve(question.call, response=text_digest(answer), finish="stop")
        asyncio.run(_record(writer, call, [*(each.content for each in question.messages), answer]))
    finally:
        writer.close()
    for suffix in ("json", "md"):
        (folder / FOLDER / f"{question.key}.{suffix}").unlink(missing_ok=True)
    return question


async def _record(writer: RunWriter, call: FinishedCall, texts: Sequence[str]) -> None:
    await writer.record(call, texts)


def _named(key: str, waiting: Sequence[Question], folder: Path) -> Question:
    found = [each for each in waiting if each.key.startswith(key)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotInRun(f"{key} is the beginning of {len(found)} keys", hint=f"such as {found[0].key}")
    raise NotInRun(
        f"no question {key} waits in {folder.name}", hint=f"`skillopt-es handoff list {folder}` shows those that do"
    )
