"""The DocVQA environment: show the page, ask, perhaps ask again for an answer, grade its text."""

from __future__ import annotations

import asyncio
from pathlib import Path

from attrs import field, frozen

from skillopt_es.adapters.environments.benchmark import Benchmark, Graded, unmeasured, untagged
from skillopt_es.adapters.environments.docvqa.evaluator import WHOLE, Scoring, anls, extract, tagged_answer
from skillopt_es.adapters.environments.docvqa.items import SUFFIXES, DocVQAItem, Shelf
from skillopt_es.adapters.environments.docvqa.pictures import Picture, UnusableImageError, shown
from skillopt_es.adapters.environments.docvqa.prompt import GUIDE, RECHECK, system_prompt, user_prompt
from skillopt_es.adapters.environments.episodes import TASK_LIMIT, records_of, without_answer
from skillopt_es.adapters.environments.options import one_of, parsed_by, positive_int, text
from skillopt_es.adapters.environments.splits import load_splits
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import Json, SkillTree
from skillopt_es.ports import (
    Ask,
    EnvironmentSettings,
    Episode,
    Image,
    ImageDetail,
    Item,
    Message,
    Splits,
    TrajectoryRecord,
)


def _detail(value: Json) -> object:
    """The value, when it says how closely to look; blank is `auto`, as in the original."""
    return one_of("auto", "low", "high")("auto" if value == "" else value)


@frozen(kw_only=True)
class DocVQAOptions:
    """DocVQA's own keys under `env:`."""

    max_turns: int = field(default=1, metadata=parsed_by(positive_int))
    image_detail: ImageDetail = field(default="auto", metadata=parsed_by(_detail))
    data_root: str = field(default="", metadata=parsed_by(text))
    max_image_bytes: int = field(default=20_000_000, metadata=parsed_by(positive_int))
    scoring: Scoring = field(default="skillopt", metadata=parsed_by(one_of("skillopt", "extended")))


class DocVQA(Benchmark[DocVQAOptions]):
    """Questions about document pages: soft is ANLS, hard is 1 when that is 1."""

    regrades = True
    """A recorded answer is all that its grade depends on."""
    guide = GUIDE

    def __init__(self, settings: EnvironmentSettings, options: DocVQAOptions) -> None:
        super().__init__(settings, options, system_prompt)

    @property
    def requires(self) -> frozenset[str]:
        """What the target has to be able to do."""
        seeing = {"text", "images"}
        return frozenset(seeing if self._options.image_detail == "auto" else {*seeing, "image_detail"})

    def load(self) -> Splits:
        """The items; raises DataError with file, line and what to do."""
        shelf = Shelf(self._root(), self._options.max_image_bytes, self._options.scoring)
        return load_splits(self._settings.data, shelf.item, read=shelf.read, suffixes=SUFFIXES)

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Ask one question under one skill and grade the answer."""
        assert isinstance(item, DocVQAItem)
        options, task = self._options, shorten(item.question, TASK_LIMIT)
        try:
            images = await asyncio.to_thread(_images, item, options)
        except UnusableImageError as error:
            return unmeasured("data", str(error), task)
        messages = self._opening(Message("user", user_prompt(item.question), images=images), skill)
        again = Message("user", RECHECK)
        talk = await self._checked(messages, ask, again, most=options.max_turns, due=untagged)
        records = [*_told(talk.messages, item.pictures), TrajectoryRecord("reply", talk.reply.text)]
        unanswered = without_answer(talk.reply, task, records, turns=talk.turns)
        return unanswered or _graded(item, talk.reply.text, options.scoring).episode(task, records, talk.turns)

    def _root(self) -> Path | None:
        """Where paths of images start: as configured, else the folder of the splits; None for that of the file."""
        data = self._settings.data
        if self._options.data_root:
            return Path(self._settings.folder, self._options.data_root)
        return Path(data.split_dir) if data.split_mode in ("split_dir", "file") and data.split_dir else None


def _images(item: DocVQAItem, options: DocVQAOptions) -> tuple[Image, ...]:
    return tuple(shown(each, options.image_detail, most=options.max_image_bytes) for each in item.pictures)


def _told(messages: list[Message], pictures: tuple[Picture, ...]) -> list[TrajectoryRecord]:
    """The conversation for readers of text: the pictures by their names."""
    names = "\n".join(f"[image] {picture.name}" for picture in pictures)
    system, asked, *rest = records_of(messages)
    return [system, TrajectoryRecord(asked.kind, f"{asked.text}\n\n{names}"), *rest]


def _graded(item: DocVQAItem, reply: str, scoring: Scoring) -> Graded:
    prediction = extract(reply)
    score = anls(prediction, item.answers, scoring)
    right = score >= WHOLE
    return Graded(
        hard=float(right),
        soft=score,
        why=("", "") if right else _failure(item, reply, prediction, score),
        said=[
            f"Question: {item.question}",
            f"Predicted answer: {prediction!r}",
            f"Gold answers: {list(item.answers)!r}",
            f"ANLS: {score:.4f}",
        ],
        prediction=prediction,
        answers=item.answers,
    )


def _failure(item: DocVQAItem, reply: str, prediction: str, score: float) -> tuple[str, str]:
    expected = f"expected one of {list(item.answers)!r}"
    if not prediction:
        return "no_answer", f"the reply holds no answer, {expected}"
    detail = f"predicted {shorten(prediction, TASK_LIMIT)!r}, {expected}"
    if tagged_answer(reply) is None:
        return "format", f"{detail}; the answer is not inside <answer> tags"
    return ("near_miss", f"{detail}; ANLS {score:.4f}") if score > 0 else ("wrong_answer", detail)
