"""The SpreadsheetBench environment: show the workbook, ask for a script, run it, compare the cells."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

from attrs import define, evolve, field, frozen

from skillopt_es.adapters.environments.benchmark import Benchmark, Talk, unmeasured
from skillopt_es.adapters.environments.episodes import TASK_LIMIT, records_with_tools, without_answer
from skillopt_es.adapters.environments.options import one_of, parsed_by, positive_int, text, yes_or_no
from skillopt_es.adapters.environments.splits import load_splits
from skillopt_es.adapters.environments.spreadsheetbench.books import UnreadableError
from skillopt_es.adapters.environments.spreadsheetbench.cells import Scoring
from skillopt_es.adapters.environments.spreadsheetbench.grading import Result, compare, episode, wrong_cells
from skillopt_es.adapters.environments.spreadsheetbench.items import Case, SheetItem, Shelf
from skillopt_es.adapters.environments.spreadsheetbench.prompt import (
    GUIDE,
    NO_CODE,
    code_in,
    failed_prompt,
    react_prompt,
    system_prompt,
    user_prompt,
    wrong_prompt,
)
from skillopt_es.adapters.environments.spreadsheetbench.ranges import Range
from skillopt_es.adapters.environments.spreadsheetbench.react import (
    TOOLS,
    Desk,
    seconds_for_tools,
)
from skillopt_es.adapters.environments.spreadsheetbench.workshop import (
    Opened,
    open_workbooks,
    run_script,
    sandbox_for,
)
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.adapters.sandboxes.launch import Sandbox, SandboxError
from skillopt_es.adapters.sandboxes.opening import Mode as SandboxMode
from skillopt_es.adapters.sandboxes.places import visible_answers
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import (
    Answers,
    Ask,
    EnvironmentSettings,
    Episode,
    Item,
    Message,
    Splits,
    TrajectoryRecord,
)

Mode = Literal["single", "multi", "react"]


@frozen(kw_only=True)
class SpreadsheetOptions:
    """
    How tasks are put, where code is run and how cells are compared.

    `use_eval_feedback` tells the target in `multi` mode which cells of a training item are wrong (not what they should
    be); an item that is only scored never gets it.
    """

    mode: Mode = field(default="single", metadata=parsed_by(one_of("single", "multi", "react")))
    max_turns: int = field(default=30, metadata=parsed_by(positive_int))
    data_root: str = field(default="", metadata=parsed_by(text))
    sandbox: SandboxMode = field(default="confined", metadata=parsed_by(one_of("confined", "unconfined")))
    scoring: Scoring = field(default="skillopt", metadata=parsed_by(one_of("skillopt", "extended")))
    use_eval_feedback: bool = field(default=False, metadata=parsed_by(yes_or_no))


_Key = tuple[tuple[Case, ...], tuple[Range, ...]]


@define
class Conversation(Talk):
    """What was said so far in one attempt, and what came of the newest script on the first case."""

    code: str = ""
    first: Result | None = None


class SpreadsheetBench(Benchmark[SpreadsheetOptions]):
    """Hard is 1 when every case passes, soft the share of cases that do."""

    guide = GUIDE

    def __init__(self, settings: EnvironmentSettings, options: SpreadsheetOptions) -> None:
        super().__init__(settings, options, react_prompt if options.mode == "react" else system_prompt)
        self._sandbox: Sandbox | None = None
        self._opened: dict[_Key, Opened] = {}
        self._locks: dict[_Key, asyncio.Lock] = {}

    @property
    def requires(self) -> frozenset[str]:
        """What the target has to be able to do."""
        return frozenset({"text", "tools"}) if self._options.mode == "react" else frozenset({"text"})

    def load(self) -> Splits:
        """The items; raises ConfigError where code cannot be confined, DataError with file, line and what to do."""
        self._sandbox = sandbox_for(self._options.sandbox)
        root = self._options.data_root
        shelf = Shelf(Path(self._settings.folder, root) if root else None, self._options.scoring)
        splits = load_splits(self._settings.data, shelf.item, read=shelf.read)
        if not self._options.use_eval_feedback:
            return splits
        return evolve(splits, train=[evolve(_own(item), helped=True) for item in splits.train])

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Have the target write a script for one item, run it on every case, and compare."""
        mine = _own(item)
        task = shorten(mine.instruction, TASK_LIMIT)
        try:
            opened = await self._open(mine)
            if self._options.mode == "react":
                talk = await self._with_tools(mine, opened, skill, ask)
            else:
                talk = await self._talk(mine, opened, skill, ask)
            records = records_with_tools(talk.messages)
            if talk.reply.finish != "tools":  # else it is among the messages: no turn was left to answer it
                records.append(TrajectoryRecord("reply", talk.reply.text))
            unanswered = without_answer(talk.reply, task, records, turns=talk.turns)
            return unanswered or episode(task, talk.turns, records, await self._results(mine, opened, talk))
        except SandboxError as error:
            return unmeasured("sandbox", str(error), task)
        except UnreadableError as error:
            return unmeasured("data", str(error), task)

    def seen_by_code(self, answers: Answers) -> str:
        """Why a script behind walls could read some of these."""
        walled = self._options.sandbox == "confined"
        return visible_answers((*answers.places, *answers.around)) if walled else ""

    async def _talk(self, item: SheetItem, opened: Opened, skill: SkillTree, ask: Ask) -> Conversation:
        """The conversation up to its last reply: one call, or in `multi` as many as the script needs."""
        most = self._options.max_turns if self._options.mode == "multi" else 1
        messages = self._asked(item, opened, skill)
        talk = Conversation(messages, await ask(messages, max_tokens=self._settings.max_completion_tokens))
        while True:
            said = code_in(talk.reply.text, self._options.scoring)
            if said:
                talk.code, talk.first = said, None
            if talk.turns >= most or talk.reply.finish not in ("stop", "other"):
                return talk
            if said:
                talk.first = await self._result(item, opened, 0, said)
            complaint = _complaint(item, talk.first) if said else NO_CODE
            if not complaint:
                return talk
            talk.messages = [*talk.messages, Message("assistant", talk.reply.text), Message("user", complaint)]
            talk.reply = await ask(talk.messages, max_tokens=self._settings.max_completion_tokens)
            talk.turns += 1

    async def _with_tools(self, item: SheetItem, opened: Opened, skill: SkillTree, ask: Ask) -> Conversation:
        """The conversation up to a reply that asks for no tool; what is in solution.py then is the script."""
        assert self._sandbox is not None
        desk = Desk(
            sandbox=self._sandbox,
            given=item.cases[0].given.read_bytes(),
            seconds=seconds_for_tools(self._settings.timeout_seconds),
        )
        most = self._settings.max_completion_tokens
        messages = self._asked(item, opened, skill)
        talk = Conversation(messages, await ask(messages, max_tokens=most, tools=TOOLS, tool_choice="auto"))
        while talk.reply.tool_calls and talk.reply.finish == "tools":
            said = Message("assistant", talk.reply.text, tool_calls=talk.reply.tool_calls)
            found = [Message("tool", await desk.use(call), tool_call_id=call.id) for call in talk.reply.tool_calls]
            talk.messages = [*talk.messages, said, *found]
            if talk.turns >= self._options.max_turns:
                break
            talk.reply = await ask(talk.messages, max_tokens=most, tools=TOOLS, tool_choice="auto")
            talk.turns += 1
        talk.code = desk.solution
        return talk

    def _asked(self, item: SheetItem, opened: Opened, skill: SkillTree) -> list[Message]:
        asked = user_prompt(item.instruction, item.instruction_type, item.position, opened.preview)
        return self._opening(Message("user", asked), skill)

    async def _results(self, item: SheetItem, opened: Opened, talk: Conversation) -> list[Result]:
        """The last script on every case; none when there is no script."""
        if not talk.code:
            return []
        numbers = range(0 if talk.first is None else 1, len(item.cases))
        rest = await asyncio.gather(*(self._result(item, opened, number, talk.code) for number in numbers))
        return [*([] if talk.first is None else [talk.first]), *rest]

    async def _result(self, item: SheetItem, opened: Opened, number: int, code: str) -> Result:
        assert self._sandbox is not None
        case, scoring = item.cases[number], self._options.scoring
        ran = await run_script(self._sandbox, code, case, opened.ranges, seconds=self._settings.timeout_seconds)
        verdict = None if ran.book is None else compare(opened.golds[number], ran.book, opened.ranges, scoring)
        return Result(case=case, ran=ran, verdict=verdict)

    async def _open(self, item: SheetItem) -> Opened:
        """The item's workbooks, read once for all attempts at it and at others that share them."""
        if self._sandbox is None:
            raise ConfigError("the items have to be loaded before they can be tried")
        key = (item.cases, item.ranges)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._opened:
                self._opened[key] = await open_workbooks(self._sandbox, item)
        return self._opened[key]


def _own(item: Item) -> SheetItem:
    assert isinstance(item, SheetItem)
    return item


def _complaint(item: SheetItem, first: Result | None) -> str:
    """What the target is told about its script; nothing when it may stay as it is."""
    if first is None or first.passed:
        return ""
    if first.verdict is None:
        return failed_prompt(first.ran.output if first.ran.problem == "exec_error" else first.ran.detail)
    return wrong_prompt(wrong_cells(first.verdict)) if item.helped else ""
