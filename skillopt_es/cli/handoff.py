"""`handoff`: the questions of a run that wait for an answer from outside, and their answers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json, print_table
from skillopt_es.cli.terminal import tell
from skillopt_es.presenting.documents import some_of

if TYPE_CHECKING:
    from skillopt_es.events.values import Json
    from skillopt_es.sessions.handoff import Question

# An answer is recorded in far less; who holds the log for longer is at work on the run.
_PATIENCE_SECONDS = 10.0


@click.group("handoff")
def handoff_command() -> None:
    """
    Questions that wait for an answer, where a model's backend is `handoff`.

    The run pauses with exit code 3 once all that can be asked is asked. Any agent or person answers; `resume` goes on.
    """


@handoff_command.command("list")
@run_argument
@directory_option
@json_option
def list_command(run: str | None, directory: Path, as_json: bool) -> None:
    """
    The questions that wait, each with its key. RUN is a name or a folder; the newest run when left out.

    Each one also lies in the run's folder `handoff/`: KEY.md to be read, KEY.json for programs.
    """
    from skillopt_es.runs.folders import find_run
    from skillopt_es.sessions.handoff import FOLDER, questions

    folder = find_run(run, directory)
    waiting = questions(folder)
    place = folder / FOLDER
    if as_json:
        print_json({"run": folder.name, "folder": str(place), "questions": [_plain(each) for each in waiting]})
        return
    if not waiting:
        tell("handoff", "no question waits")
        return
    rows = [(each.key, each.call.role, each.call.stage, each.call.slot) for each in waiting]
    print_table(("key", "role", "stage", "slot"), rows)
    tell("handoff", f"read {place}/KEY.md; `skillopt-es handoff answer {folder} KEY FILE` answers")


@handoff_command.command("answer")
@click.argument("words", nargs=-1, required=True, metavar="[RUN] KEY FILE")
@directory_option
@json_option
def answer_command(words: tuple[str, ...], directory: Path, as_json: bool) -> None:
    """
    Answer a question with the text of FILE (`-`: of standard input).

    KEY may be cut short. The answer is recorded at once and cannot be taken back; `resume` goes on with it.
    """
    from skillopt_es.runs.folders import find_run
    from skillopt_es.sessions.handoff import questions

    if len(words) not in (2, 3):
        raise click.UsageError("name a KEY and a FILE, and before them a RUN if it is not the newest")
    *named, key, file = words
    folder = find_run(named[0] if named else None, directory)
    question = _recorded(folder, key, _text_of(file))
    left = len(questions(folder))
    if as_json:
        print_json({"run": folder.name, "key": question.key, "slot": question.call.slot, "left": left})
    else:
        waiting = f"{left} more wait{'' if left > 1 else 's'}"
        click.echo(
            f"{question.key} is answered; {waiting if left else f'`skillopt-es resume {folder}` continues the run'}"
        )


def _recorded(folder: Path, key: str, text: str) -> Question:
    """Records the answer; others who answer at the same time are waited for."""
    from datetime import UTC, datetime

    from skillopt_es.events.errors import RunBusy
    from skillopt_es.sessions.handoff import record_answer

    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return record_answer(folder, key, text, lambda: datetime.now(UTC))
        except RunBusy:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _text_of(file: str) -> str:
    from skillopt_es.errors import DataError

    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        # Some editors put a byte-order mark first; it is no part of an answer.
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def _plain(question: Question) -> Json:
    call = question.call
    messages: list[Json] = [{"role": each.role, "content": each.content} for each in question.messages]
    return {
        "key": question.key,
        **some_of(call, "role", "stage", "slot", "model"),
        "params": dict(call.request.params),
        "messages": messages,
    }
