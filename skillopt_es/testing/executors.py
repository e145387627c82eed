"""
What every executor keeps to, one check each; a check that fails raises an AssertionError that says what is wrong.

Jobs come back in the order of the plan; attempts give what the environment itself would have given, wherever they are
made: the target is asked in this process, what it raises comes back, and nothing of an attempt is lost or added.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar, Unpack

from attrs import evolve, field, frozen

from skillopt_es.events.values import Json, Measured, SkillTree
from skillopt_es.ports import (
    AskOptions,
    CallFailed,
    ChatReply,
    DataSettings,
    Elsewhere,
    Environment,
    EnvironmentSettings,
    Executor,
    ExecutorSettings,
    Hands,
    Item,
    Message,
    NotStarted,
    OpenExecutor,
    Workplace,
)
from skillopt_es.version import software_version

T = TypeVar("T")
SKILL = SkillTree(files={"SKILL.md": "Answer in upper case.\n"})
_ROWS = [
    {"id": f"task-{number}", "input": f"Question {number}?", "expected": f"YES {number}", "split": split}
    for number, split in enumerate(("train", "train", "val", "test"))
]


@frozen(kw_only=True)
class ExecutorCase:
    """An executor and how to open it; `patience` is for what never comes, in seconds."""

    open: OpenExecutor
    options: Mapping[str, Json] = field(factory=dict)
    workers: int = 2
    patience: float = 60.0

    def executor(self, stopping: Callable[[], bool] = lambda: False) -> Executor:
        """The executor, opened."""
        return self.open(ExecutorSettings(stopping=stopping, workers=self.workers, options=self.options))

    def run(self, work: Awaitable[T]) -> T:
        """What the work comes to, but not for ever."""

        async def bounded() -> T:
            return await asyncio.wait_for(work, self.patience)

        return asyncio.run(bounded())


# --- jobs ------------------------------------------------------------------------------------------------------------


def results_come_in_the_order_of_the_plan(case: ExecutorCase) -> None:
    """Whichever job ends first."""

    async def scene() -> None:
        executor = case.executor()

        def job(number: int) -> Callable[[], Awaitable[int]]:
            async def work() -> int:
                await asyncio.sleep(0.01 if number == 0 else 0)
                return number

            return work

        found = [each async for done in executor.stream([job(n) for n in range(6)], workers=3) for each in done]
        assert found == [*range(6)], f"the jobs' results came as {found}"
        await executor.aclose()

    case.run(scene())


def no_more_jobs_run_at_once_than_may(case: ExecutorCase) -> None:
    """A run's limit of work in flight is everybody's."""

    async def scene() -> None:
        executor, now, most = case.executor(), 0, 0

        async def work() -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

        async for _ in executor.stream([work] * 9, workers=2):
            pass
        assert most == 2, f"{most} jobs ran at once, where 2 may"
        await executor.aclose()

    case.run(scene())


def nothing_begins_once_the_run_stops(case: ExecutorCase) -> None:
    """What has begun is finished, and its results are given."""

    async def scene() -> None:
        begun: list[int] = []
        executor = case.executor(lambda: len(begun) >= 2)

        async def work() -> int:
            begun.append(1)
            return len(begun)

        found = [each async for done in executor.stream([work] * 9, workers=1) for each in done]
        assert found == [1, 2], f"of 9 jobs, {len(begun)} began after the run was to stop at 2"
        await executor.aclose()

    case.run(scene())


# --- attempts --------------------------------------------------------------------------------------------------------


def an_attempt_gives_what_the_environment_gives(case: ExecutorCase) -> None:
    """To the last record, for every item."""

    async def scene(place: Workplace, hands: Hands, items: Sequence[Item]) -> None:
        for item in items:
            expected = await place.environment.attempt(item, SKILL, Target(), seed=7)
            found = await hands.attempt(item, SKILL, target, seed=7, slot=f"s/{item.id}")
            assert found == expected, f"{item.id} gave {found}, and {expected} in this process"

    _with_hands(case, scene)


def the_target_is_asked_what_the_environment_asks(case: ExecutorCase) -> None:
    """The same messages and options, in this process."""

    async def scene(place: Workplace, hands: Hands, items: Sequence[Item]) -> None:
        here, there = Target(), Target()
        await place.environment.attempt(items[0], SKILL, here, seed=7)
        await hands.attempt(items[0], SKILL, lambda _: there, seed=7, slot="s")
        assert there.asked == here.asked, f"the target was asked {there.asked}, and {here.asked} in this process"

    _with_hands(case, scene)


def what_the_target_raises_comes_back(case: ExecutorCase) -> None:
    """A failed call with all that it says, and a call that was not started: they are what the writer decides by."""

    async def scene(_: Workplace, hands: Hands, items: Sequence[Item]) -> None:
        failed = CallFailed("rate_limit", "too many", status=429, hint="wait", closed=True)
        for error in (failed, NotStarted(), KeyError("odd")):
            raised: BaseException | None = None
            try:
                await hands.attempt(items[0], SKILL, partial(_raising, error), seed=7, slot="s")
            except BaseException as caught:  # noqa: BLE001 -- that it is this very one is what is checked
                raised = caught
            assert raised is error, f"the target raised {error!r}, and the attempt {raised!r}"

    _with_hands(case, scene)


def attempts_are_made_at_once(case: ExecutorCase) -> None:
    """Two of them can be in the middle of their question at the same time."""

    async def scene(_: Workplace, hands: Hands, items: Sequence[Item]) -> None:
        both = asyncio.Barrier(2)

        class Meeting(Target):
            async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
                await both.wait()
                return await super().__call__(messages, **options)

        work = [hands.attempt(item, SKILL, lambda _: Meeting(), seed=7, slot=item.id) for item in items[:2]]
        found = await asyncio.gather(*work)
        assert all(isinstance(each.outcome, Measured) for each in found), f"two attempts at once gave {found}"

    _with_hands(case, scene)


def after_a_failed_attempt_others_are_made(case: ExecutorCase) -> None:
    """More of them than there are workers."""

    async def scene(_: Workplace, hands: Hands, items: Sequence[Item]) -> None:
        for number in range(case.workers + 1):
            try:
                await hands.attempt(items[0], SKILL, lambda _: Target(NotStarted()), seed=7, slot=f"attempt-{number}")
            except NotStarted:
                continue
        found = await hands.attempt(items[0], SKILL, target, seed=7, slot="last")
        assert isinstance(found.outcome, Measured), f"after attempts that came to nothing, one gave {found}"

    _with_hands(case, scene)


class Target:
    """A target that keeps what it is asked, and knows the answer or raises an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.asked: list[tuple[tuple[Message, ...], AskOptions]] = []
        self._error = error

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        """YES, and the number in the question."""
        self.asked.append((tuple(messages), options))
        if self._error is not None:
            raise self._error
        return ChatReply(text=f"YES {messages[-1].content.split()[-1].rstrip('?')}", finish="stop")


def _raising(error: BaseException, _: Elsewhere | None) -> Target:
    return Target(error)


def target(_: Elsewhere | None) -> Target:
    """A new one for each try."""
    return Target()


Scene = Callable[[Workplace, Hands, Sequence[Item]], Awaitable[None]]


def _with_hands(case: ExecutorCase, scene: Scene) -> None:
    """Plays a scene in the environment `tasks`, with four made items."""

    async def played(folder: Path) -> None:
        place = workplace(folder)
        splits = place.environment.load()
        executor = case.executor()
        hands = executor.hands(evolve(place, digests=splits.digests))
        try:
            await scene(place, hands, [*splits.train, *splits.val, *splits.test])
        finally:
            await executor.aclose()
            await place.environment.aclose()

    with TemporaryDirectory() as folder:
        case.run(played(Path(folder)))


def workplace(folder: Path) -> Workplace:
    """The environment `tasks` over four made items in a folder."""
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _ROWS), encoding="utf-8")
    data = DataSettings(
        split_mode="field",
        split_ratio="",
        split_seed=1,
        split_field="split",
        split_dir="",
        data_path=str(folder / "tasks.jsonl"),
        limit=0,
    )
    settings = EnvironmentSettings(
        name="tasks",
        folder=str(folder),
        data=data,
        timeout_seconds=10.0,
        max_completion_tokens=100,
        options={"grader": "exact"},
    )
    [point] = entry_points(group="skillopt_es.environments", name="tasks")
    environment: Environment = point.load()(settings)
    return Workplace(environment=environment, settings=settings, digests={}, software=software_version())


EXECUTOR_CHECKS: Mapping[str, Callable[[ExecutorCase], None]] = {
    check.__name__: check
    for check in (
        results_come_in_the_order_of_the_plan,
        no_more_jobs_run_at_once_than_may,
        nothing_begins_once_the_run_stops,
        an_attempt_gives_what_the_environment_gives,
        the_target_is_asked_what_the_environment_asks,
        what_the_target_raises_comes_back,
        attempts_are_made_at_once,
        after_a_failed_attempt_others_are_made,
    )
}
