"""The OfficeQA environment: ask, let the target read or search, grade."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from skillopt_es.adapters.environments.benchmark import Benchmark, Graded, unmeasured
from skillopt_es.adapters.environments.episodes import (
    TASK_LIMIT,
    records_with_tools,
    without_answer,
)
from skillopt_es.adapters.environments.officeqa.documents import Corpus, UnreadableError, open_corpus
from skillopt_es.adapters.environments.officeqa.evaluator import Grade, Scoring, grade
from skillopt_es.adapters.environments.officeqa.items import SUFFIXES, Library, OfficeItem
from skillopt_es.adapters.environments.officeqa.options import OfficeOptions
from skillopt_es.adapters.environments.officeqa.pages import oracle_text
from skillopt_es.adapters.environments.officeqa.prompt import (
    GUIDE,
    plain_prompt,
    search_prompt,
    tools_prompt,
    user_prompt,
)
from skillopt_es.adapters.environments.officeqa.search import SearchEngine, SearchFailed, open_search
from skillopt_es.adapters.environments.officeqa.talk import Talk, asked_once, with_search, with_tools
from skillopt_es.adapters.environments.officeqa.tools import Desk
from skillopt_es.adapters.environments.splits import load_splits
from skillopt_es.adapters.environments.text import last_tagged, shorten
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import Ask, EnvironmentSettings, Episode, Item, Message, Splits, TrajectoryRecord


class OfficeQA(Benchmark[OfficeOptions]):
    """Questions over Treasury bulletins: hard is an exact match, soft is token F1."""

    guide = GUIDE

    def __init__(self, settings: EnvironmentSettings, options: OfficeOptions) -> None:
        searches = options.search_mode == "custom_search"
        without_tools = search_prompt if searches else plain_prompt
        super().__init__(settings, options, tools_prompt if options.with_tools else without_tools)
        self._engine: SearchEngine | None = open_search(options, os.environ) if searches else None
        self._corpus: Corpus | None = None

    @property
    def regrades(self) -> bool:
        """Whether a recorded answer is all that its grade depends on: what the web finds today is another matter."""
        return self._engine is None

    @property
    def requires(self) -> frozenset[str]:
        """What the target has to be able to do."""
        return frozenset({"text", "tools"}) if self._options.with_tools else frozenset({"text"})

    def load(self) -> Splits:
        """The items; raises ConfigError for folders that are not there, DataError with file, line and what to do."""
        options = self._options
        if options.with_tools or options.oracle_pages:
            self._corpus = open_corpus(options.folders, Path(self._settings.folder), os.environ)
        library = Library(self._corpus, options.oracle_pages)
        return load_splits(self._settings.data, library.item, read=library.read, suffixes=SUFFIXES)

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Ask one question under one skill and grade the answer."""
        assert isinstance(item, OfficeItem)
        task = shorten(item.question, TASK_LIMIT)
        try:
            talk = await self._talk(item, await asyncio.to_thread(self._asked, item), skill, ask)
        except UnreadableError as error:
            return unmeasured("data", str(error), task)
        except SearchFailed as error:
            return unmeasured("search", str(error), task)
        records = records_with_tools(talk.messages)
        if not talk.exhausted:
            records.append(TrajectoryRecord("reply", talk.reply.text))
        unanswered = without_answer(talk.reply, task, records, turns=talk.turns)
        return unanswered or graded(item, talk, self._options.scoring).episode(task, records, talk.turns)

    async def aclose(self) -> None:
        """Close connections to the search engine."""
        if self._engine:
            await self._engine.aclose()

    def _asked(self, item: OfficeItem) -> str:
        """The user message; it may read files."""
        pages = oracle_text(self._corpus.roots, item.pages) if self._corpus else ""
        names = [document.name for document in item.documents] if self._options.with_tools else None
        return user_prompt(item.question, pages=pages, documents=names, sources=item.sources)

    async def _talk(self, item: OfficeItem, asked: str, skill: SkillTree, ask: Ask) -> Talk:
        messages = self._opening(Message("user", asked), skill)
        most = self._settings.max_completion_tokens
        if self._options.with_tools:
            desk = Desk(item.documents)
            return await with_tools(messages, ask, desk, most=self._options.max_tool_turns, max_tokens=most)
        if self._engine:
            rounds, queries = self._options.max_tool_turns, self._options.max_queries_per_turn
            return await with_search(messages, ask, self._engine, most=rounds, queries=queries, max_tokens=most)
        return await asked_once(messages, ask, max_tokens=most)


_WRONG = Grade(False, 0.0)


def graded(item: OfficeItem, talk: Talk, scoring: Scoring) -> Graded:
    """What a conversation came to; an answer counts inside answer tags only, the last one."""
    prediction = "" if talk.exhausted else (last_tagged(talk.reply.text, "answer") or "")
    result = grade(prediction, item.answer, scoring) if prediction else _WRONG
    failure, detail = ("", "") if result.right else _failure(item, talk, prediction, result)
    return Graded(
        hard=float(result.right),
        soft=result.f1,
        why=(failure, detail),
        said=[
            *([detail] if detail else []),
            f"Predicted answer: {prediction!r}",
            f"Expected answer: {item.answer!r}",
            f"Exact Match: {int(result.right)}",
            f"F1: {result.f1:.4f}",
        ],
        prediction=prediction,
    )


def _failure(item: OfficeItem, talk: Talk, prediction: str, result: Grade) -> tuple[str, str]:
    expected = f"expected {item.answer!r}"
    if talk.exhausted:
        return "budget_exhausted", f"{talk.exhausted}; {expected}"
    if prediction:
        code = "near_miss" if result.f1 > 0 else "wrong_answer"
        return code, f"predicted {shorten(prediction, TASK_LIMIT)!r}, {expected}"
    if not talk.reply.text.strip() or last_tagged(talk.reply.text, "answer") is not None:
        return "no_answer", f"the reply holds no answer, {expected}"
    return "format", f"the answer is not inside <answer> tags, {expected}"
