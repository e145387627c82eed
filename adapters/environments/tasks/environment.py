"""The `tasks` environment: anybody's own tasks, put as they are and graded by a chosen grader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import asdict, evolve

from skillopt_es.adapters.environments.data import SUFFIXES, RawItem
from skillopt_es.adapters.environments.episodes import SystemPrompts, records_of, without_answer
from skillopt_es.adapters.environments.splits import load_splits
from skillopt_es.adapters.environments.tasks.graders import JUDGE, Graders
from skillopt_es.adapters.environments.tasks.items import TaskItem, kind_of, task_item
from skillopt_es.adapters.environments.tasks.options import BuiltIn, Command, TaskOptions
from skillopt_es.adapters.environments.tasks.tables import TABLES, TableReader
from skillopt_es.adapters.environments.tasks.verdicts import Attempt, GraderError, Verdict
from skillopt_es.adapters.environments.text import last_tagged, shorten
from skillopt_es.adapters.sandboxes.places import visible_answers
from skillopt_es.errors import DataError, SettingRefused
from skillopt_es.events.values import Failed, Json, Measured, SkillTree
from skillopt_es.ports import (
    Answers,
    Ask,
    ChatReply,
    EnvironmentSettings,
    Episode,
    Item,
    Message,
    Splits,
    TrajectoryRecord,
)

_SHOWN = 2000  # characters of an answer that analysts read; a minibatch has eight of them


class Tasks:
    """Items of input and expected answer, with the skill in the system message."""

    regrades = True
    """A recorded answer is all that its grade depends on."""
    opens_skills = True
    compares = True

    def __init__(self, settings: EnvironmentSettings, options: TaskOptions) -> None:
        self.name = settings.name
        self._settings = settings
        self._options = options
        if options.compare_with and options.compare_with in options.agent_fields:
            raise SettingRefused(
                "env.agent_fields",
                f" names {options.compare_with!r}, with which the judge compares answers (env.compare_with)",
                hint="leave it out: an agent must not see what it is graded by",
            )
        self._graders = Graders(options, Path(settings.folder))
        self._judged_items = False
        self._unseen = set(options.agent_fields)
        self._sections = SystemPrompts(lambda section: section)

    @property
    def worked(self) -> str:
        """What is expected is a right answer, inside the tag where one is asked for."""
        tag = self._options.answer_tag
        return f"<{tag}>{{answer}}</{tag}>" if tag else "{answer}"

    def load(self) -> Splits:
        """The items; raises DataError with file, line and what to do."""
        reader = TableReader(self._options.named_fields)
        suffixes = (*SUFFIXES, *TABLES)
        splits = load_splits(self._settings.data, self._item, read=reader.read, suffixes=suffixes, kind=kind_of)
        splits = evolve(splits, told=tuple(reader.told))
        if self._unseen:
            raise DataError(
                f"no item has a field {min(self._unseen)!r}, which env.agent_fields names",
                hint="correct the name, or leave it out",
            )
        return splits

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Put one task under one skill and grade the answer."""
        assert isinstance(item, TaskItem)
        system = "\n\n".join(
            part for part in (self._options.system.strip(), item.system, self._sections.under(skill)) if part
        )
        messages = [Message("system", system), *item.messages] if system else list(item.messages)
        reply = await ask(messages, max_tokens=self._settings.max_completion_tokens)
        records = [*records_of(messages), TrajectoryRecord("reply", reply.text)]
        return without_answer(reply, item.task, records) or await self._graded(item, reply, records, ask)

    @property
    def judge_calls(self) -> int:
        """How many questions to the judge one attempt needs; an item may name the judge by itself."""
        judges = any(grader == BuiltIn(JUDGE) for grader, _ in self._options.graders)
        once = 2 if self._options.compare_with else 1
        return once if judges or self._judged_items else 0

    def seen_by_code(self, answers: Answers) -> str:
        """Why a grader behind walls could read some of these."""
        commands = any(isinstance(grader, Command) for grader, _ in self._options.graders)
        walled = commands and self._options.sandbox == "confined"
        return visible_answers((*answers.places, *answers.around)) if walled else ""

    async def aclose(self) -> None:
        """Nothing to give back: a grader's process ends with its grading."""

    def _item(self, raw: RawItem) -> TaskItem:
        name, grade = self._graders.of(raw)
        self._judged_items = self._judged_items or JUDGE in name.split(" + ")
        self._unseen -= raw.fields.keys()
        return task_item(raw, told=self._options.agent_fields, grader=name, grade=grade)

    def _answer(self, reply: str) -> tuple[str, bool]:
        """The answer in a reply, and whether it stands inside the tag."""
        tag = self._options.answer_tag
        tagged = last_tagged(reply, tag) if tag else None
        return (reply if tagged is None else tagged).strip(), tagged is not None

    async def _graded(self, item: TaskItem, reply: ChatReply, records: Sequence[TrajectoryRecord], ask: Ask) -> Episode:
        tag = self._options.answer_tag
        answer, tagged = self._answer(reply.text)
        if not answer:
            return _episode(item, answer, records, Verdict(0.0, 0.0, "there is no answer", "no_answer"))
        try:
            steps = tuple(_steps(records, reply))
            verdict = await item.grade(Attempt(answer, ask, steps, _reported(reply), reply.truncated))
        except GraderError as error:
            return _ungraded(item, answer, records, error)
        if tag and not tagged and verdict.hard < 1:
            note = f"the answer is not inside <{tag}> tags" + (f"; {verdict.note}" if verdict.note else "")
            verdict = Verdict(verdict.hard, verdict.soft, note, "format")
        return _episode(item, answer, records, verdict)


def _reported(reply: ChatReply) -> Json:
    """What an agent said of its own answer; None where it said nothing."""
    scores = [step.text for step in reply.steps if step.kind == "score"]
    said: Json = json.loads(scores[-1]) if scores else None
    return said


def _steps(records: Sequence[TrajectoryRecord], reply: ChatReply) -> Iterator[Mapping[str, Json]]:
    """What the target saw and did, in order, its reply last."""
    *before, last = records
    yield from ({"kind": each.kind, "text": each.text} for each in before)
    for step in reply.steps:
        yield {name: value for name, value in asdict(step).items() if value is not None}
    yield {"kind": last.kind, "text": last.text}


def _episode(item: TaskItem, answer: str, records: Sequence[TrajectoryRecord], verdict: Verdict) -> Episode:
    failure = detail = ""
    if verdict.hard < 1:
        failure = verdict.code or ("near_miss" if verdict.soft > 0 else "wrong_answer")
        detail = f"got {shorten(answer, 300)!r}, expected {_shown(item)}" + (
            f"; {verdict.note}" if verdict.note else ""
        )
    lines = [
        "[EVALUATION RESULT]",
        *_once(answer, records),
        *_expected(item),
        f"Grader: {item.grader}",
        *([f"Note: {verdict.note}"] if verdict.note else []),
    ]
    return Episode(
        outcome=Measured(verdict.hard, verdict.soft),
        task=item.task,
        records=(*records, TrajectoryRecord("feedback", "\n".join(lines))),
        failure=failure,
        detail=detail,
        prediction=answer,
        answers=item.answers,
    )


def _ungraded(item: TaskItem, answer: str, records: Sequence[TrajectoryRecord], error: GraderError) -> Episode:
    why = str(error)
    feedback = f"[EVALUATION RESULT]\nThe {item.grader} grader gave no grade: {why}"
    return Episode(
        outcome=Failed(error.code, why),
        task=item.task,
        records=(*records, TrajectoryRecord("feedback", feedback)),
        failure=error.code,
        detail=why,
        prediction=answer,
    )


def _once(answer: str, records: Sequence[TrajectoryRecord]) -> list[str]:
    """The answer where it is not the whole reply, word for word: quotes and escapes would be learned as part of it."""
    return [] if records[-1].text.strip() == answer else [f"Answer: {shorten(answer, _SHOWN)}"]


def _expected(item: TaskItem) -> list[str]:
    """What was expected, word for word where it is text, one line for each accepted answer."""
    listed = item.expected if isinstance(item.expected, list) else [item.expected]
    if listed and all(isinstance(each, str) for each in listed):
        first, *others = (shorten(str(each), _SHOWN) for each in listed)
        return [f"Expected: {first}", *(f"Expected as well: {other}" for other in others)]
    return [f"Expected: {_shown(item)}"]


def _shown(item: TaskItem) -> str:
    return shorten(json.dumps(item.expected, ensure_ascii=False), _SHOWN)
