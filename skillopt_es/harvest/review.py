"""
A harvest: candidate tasks and what a person decided about each, in one file that only grows.

Each line is a candidate, what a model made of one, or a decision; the last one about a candidate holds. Nothing but
what was kept becomes a task, and what was decided once is not asked again when later conversations are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin

from attrs import evolve, frozen
from cattrs.preconf.json import make_converter

from skillopt_es.errors import DataError
from skillopt_es.events.plain import read_plain
from skillopt_es.events.values import Json
from skillopt_es.harvest.mining import Candidate

Word = Literal["kept", "left", "open"]
Task = dict[str, Json]
_HEEDS = "It heeds what was said of an earlier answer"
_CONVERTER = make_converter(forbid_extra_keys=True)


def _as_it_is(value: Json, _kind: object) -> Json:
    """A task is JSON of any depth, as a person or a model left it."""
    if not isinstance(value, dict):
        raise ValueError("a task is an object")
    return value


def _is_json(kind: object) -> bool:
    return get_origin(kind) is dict and get_args(kind)[1] is not int


_CONVERTER.register_structure_hook_func(_is_json, _as_it_is)


@frozen(kw_only=True)
class Decision:
    """What a person decided about a candidate; a kept one has its task, as they may have changed it."""

    id: str
    decision: Word
    at: str
    task: Task | None = None


@frozen(kw_only=True)
class Proposal:
    """What a model (`by`) made of a candidate: a task, or why there is none; `dropped` says what rules took out."""

    id: str
    by: str
    at: str
    proposed: Task | None
    why: str = ""
    dropped: tuple[str, ...] = ()


@frozen
class Reviewed:
    """A candidate with what a model made of it, and what was last decided about it."""

    candidate: Candidate
    decision: Word = "open"
    task: Task | None = None
    proposal: Proposal | None = None

    @property
    def draft(self) -> Task:
        """The task as it is now: decided, proposed, or by the rules."""
        proposed = None if self.proposal is None else self.proposal.proposed
        return self.task or proposed or task_of(self.candidate)


def task_of(candidate: Candidate) -> Task:
    """
    The task that a candidate becomes, unless a person changes it; nobody vouches for its text.

    Without a check, an answer that nobody corrected is what others are compared with; a corrected one has its rubric.
    """
    task: Task = {"id": f"harvest-{candidate.id}", "type": candidate.kind, "input": candidate.asked}
    if candidate.checks:
        task |= {"grader": "checks", "checks": [dict(check) for check in candidate.checks]}
    elif candidate.accepted:
        task |= {"grader": "f1", "expected": candidate.answered}
    else:
        task |= {"grader": "judge"}
    if candidate.rubric:
        task["rubric"] = {f"said-{number}": f"{_HEEDS}: {line}" for number, line in enumerate(candidate.rubric, 1)}
    return {**task, "trust": "untrusted"}


def read_harvest(file: Path) -> dict[str, Reviewed]:
    """The candidates of a file by id, in its order; none where there is no file. Raises DataError for another file."""
    if not file.exists():
        return {}
    found: dict[str, Reviewed] = {}
    try:
        text = read_plain(file, follow=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DataError(f"{file} cannot be read: {why}", hint="name a file of `skillopt-es harvest scan`") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            if "decision" in value:
                said = _CONVERTER.structure(value, Decision)
                if said.decision not in get_args(Word) or said.id not in found:
                    raise ValueError
                found[said.id] = evolve(found[said.id], decision=said.decision, task=said.task)
            elif "proposed" in value:
                proposal = _CONVERTER.structure(value, Proposal)
                found[proposal.id] = evolve(found[proposal.id], proposal=proposal)
            else:
                candidate = _CONVERTER.structure(value, Candidate)
                found[candidate.id] = Reviewed(candidate)
        except Exception as error:
            raise DataError(
                f"{file}:{number}: neither a candidate nor a decision",
                hint="name a file that `skillopt-es harvest scan` has written, or a new one",
            ) from error
    return found


def appended(file: Path, lines: Iterable[Candidate | Proposal | Decision]) -> int:
    """Appends to a harvest's file; how many lines."""
    texts = [json.dumps(_plain(each), ensure_ascii=False) + "\n" for each in lines]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8", newline="\n") as out:
        out.write("".join(texts))
    return len(texts)


def kept_tasks(harvest: Mapping[str, Reviewed]) -> list[Task]:
    """The tasks that a person has kept, in the order of the candidates."""
    return [each.draft for each in harvest.values() if (each.decision == "kept")]


def _plain(each: Candidate | Proposal | Decision) -> Json:
    plain: dict[str, Json] = _CONVERTER.unstructure(each)
    if isinstance(each, Decision) and each.task is None:
        del plain["task"]
    return plain
