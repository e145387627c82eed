"""What a crew makes of workers that die, are refused or are late: leases, and what was asked under them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from attrs import evolve
from support.pretend_crew import Fate, PretendExecutor

from skillopt_es.adapters.environments.tasks import open_environment
from skillopt_es.adapters.executors.crew import Worker, WorkerLost
from skillopt_es.adapters.executors.travels import Lease, Place
from skillopt_es.errors import BackendError
from skillopt_es.events.values import Failed, Json, Measured
from skillopt_es.ports import ChatReply, Elsewhere, ExecutorSettings, Hands, Item, Message, NotStarted
from skillopt_es.testing.executors import EXECUTOR_CHECKS, SKILL, ExecutorCase, Target, target, workplace

Scene = Callable[[PretendExecutor, Hands, list[Item]], Awaitable[None]]


@pytest.mark.parametrize("name", EXECUTOR_CHECKS)
def test_a_crew_keeps_to_what_every_executor_has_to(name: str) -> None:
    """Everything that travels is pickled."""
    EXECUTOR_CHECKS[name](ExecutorCase(open=PretendExecutor))


def play(folder: Path, executor: PretendExecutor, scene: Scene) -> None:
    """A scene with four items."""

    async def played() -> None:
        place = workplace(folder)
        splits = place.environment.load()
        hands = executor.hands(evolve(place, digests=splits.digests))
        await scene(executor, hands, [*splits.train, *splits.val, *splits.test])
        await executor.aclose()

    asyncio.run(asyncio.wait_for(played(), 20))


def crew(fate: Fate = lambda when, lease: None, *, workers: int = 1, **more: object) -> PretendExecutor:
    """An executor of one worker that meets this fate."""
    settings = ExecutorSettings(stopping=lambda: False, workers=workers, options={})
    return PretendExecutor(settings, fate, **more)  # type: ignore[arg-type]


def deaths(*when: tuple[str, int], by_itself: bool = True) -> Fate:
    """A worker dies of these messages under the lease of that try."""

    def fate(message: str, lease: Lease) -> WorkerLost | None:
        return WorkerLost("it died", by_itself=by_itself) if (message, lease.attempt) in when else None

    return fate


@pytest.mark.parametrize("when", ["begin", "answered"])
def test_a_worker_that_dies_is_replaced(tmp_path: Path, when: str) -> None:
    """Before it has asked anything, and after: the attempt comes to the same."""

    async def scene(executor: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        found = await hands.attempt(items[0], SKILL, target, seed=1, slot="s")
        assert found.outcome == Measured(1.0, 1.0)
        assert executor.crew is not None
        assert (executor.crew.tally.attempts, executor.crew.tally.deaths) == (2, 1)
        assert len(executor.hired) == 2
        assert executor.hired[0].dismissed

    play(tmp_path, crew(deaths((when, 1))), scene)


def test_each_try_has_a_target_of_its_own(tmp_path: Path) -> None:
    """It counts its questions from the first one, so the second try asks at the places of the first."""
    targets: list[Target] = []

    def asking(_: Elsewhere | None) -> Target:
        targets.append(Target())
        return targets[-1]

    async def scene(_: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        await hands.attempt(items[0], SKILL, asking, seed=1, slot="s")
        assert len(targets) == 2
        assert targets[0].asked == targets[1].asked

    play(tmp_path, crew(deaths(("answered", 1))), scene)


def test_an_item_that_kills_its_workers_is_not_measured(tmp_path: Path) -> None:
    """Twice is enough: it is no 0, and the other items go on."""

    async def scene(executor: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        found = await hands.attempt(items[0], SKILL, target, seed=1, slot="s")
        assert found.outcome == Failed("worker", "2 workers died while they tried it")
        assert (found.failure, found.records) == ("worker", ())
        assert executor.crew is not None
        assert executor.crew.tally.poisoned == 1

    play(tmp_path, crew(deaths(("begin", 1), ("answered", 2))), scene)


def test_a_lost_machine_is_no_fault_of_the_item(tmp_path: Path) -> None:
    """However often that happens."""

    async def scene(_: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        found = await hands.attempt(items[0], SKILL, target, seed=1, slot="s")
        assert found.outcome == Measured(1.0, 1.0)

    play(tmp_path, crew(deaths(*(("answered", n) for n in range(1, 5)), by_itself=False)), scene)


def test_a_call_that_has_begun_is_let_finish(tmp_path: Path) -> None:
    """It is paid for: also where its worker is gone by then, and the attempt ends elsewhere."""
    ended: list[str] = []

    class Slow(Target):
        async def __call__(self, *args: object, **options: object) -> object:  # type: ignore[override]
            await asyncio.sleep(0.01)
            reply = await super().__call__(*args, **options)  # type: ignore[arg-type]
            ended.append(reply.text)
            return reply

    async def scene(_: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        await hands.attempt(items[0], SKILL, lambda _: Slow(), seed=1, slot="s")
        assert ended == ["YES 0", "YES 0"]

    play(tmp_path, crew(deaths(("answered", 1))), scene)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda place: evolve(place, software="skillopt-es 0.0.1"), "it has skillopt-es"),
        (lambda place: evolve(place, code="0"), "its code of the environment tasks differs"),
        (lambda place: evolve(place, digests={"train": "0"}), "its train items are not those of the run"),
        (
            lambda place: evolve(place, settings=evolve(place.settings, options={"grader": "none"})),
            "it cannot open the environment",
        ),
        (lambda place: evolve(place, settings=evolve(place.settings, name="golf")), "it has no environment golf"),
    ],
)
def test_a_worker_that_differs_is_refused_by_name(tmp_path: Path, change: Callable[[Place], Place], said: str) -> None:
    """Another release, other code, other data, another environment: the run pauses and says which."""

    async def scene(_: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        with pytest.raises(BackendError, match="a worker cannot be used: the one on node-1") as raised:
            await hands.attempt(items[0], SKILL, target, seed=1, slot="s")
        assert said in raised.value.message
        assert "docs/scale.md" in raised.value.hint

    play(tmp_path, crew(change=change), scene)


def test_data_comes_along_where_a_worker_does_not_see_it(tmp_path: Path) -> None:
    """The files go there as they are here, and their digests are those of the run."""
    moved = tmp_path / "elsewhere" / "tasks.jsonl"

    def there(place: Place) -> Place:
        data = evolve(place.settings.data, data_path=str(moved))
        return evolve(place, settings=evolve(place.settings, data=data))

    async def scene(_: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        found = await hands.attempt(items[0], SKILL, target, seed=1, slot="s")
        assert found.outcome == Measured(1.0, 1.0)

    play(tmp_path, crew(change=there), scene)


def test_nobody_waits_for_workers_when_the_run_stops(tmp_path: Path) -> None:
    """A cluster that has no room would otherwise keep a run from ending."""
    stop: list[bool] = []
    settings = ExecutorSettings(stopping=lambda: bool(stop), workers=0, options={})

    async def scene(_: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        waiting = asyncio.ensure_future(hands.attempt(items[0], SKILL, target, seed=1, slot="s"))
        await asyncio.sleep(0)
        stop.append(True)
        with pytest.raises(NotStarted):
            await waiting

    play(tmp_path, PretendExecutor(settings), scene)


def test_a_worker_is_used_again_and_again(tmp_path: Path) -> None:
    """Its environment stays open from one attempt to the next."""

    async def scene(executor: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        work = [hands.attempt(item, SKILL, target, seed=1, slot=f"{n}/{item.id}") for n in range(5) for item in items]
        found = await asyncio.gather(*work)
        assert Counter(each.outcome for each in found) == {Measured(1.0, 1.0): 20}
        assert len(executor.hired) == 2

    play(tmp_path, crew(workers=2), scene)


@pytest.mark.parametrize("by_itself", [True, False])
def test_workers_that_never_start_end_the_wait(tmp_path: Path, by_itself: bool) -> None:
    """Ten in a row have a cause that stays; machines that come and go are waited for."""
    started: list[int] = []

    async def scene(executor: PretendExecutor, hands: Hands, items: list[Item]) -> None:
        assert executor.crew is not None
        hire = executor.crew._hire

        async def never() -> Worker:
            started.append(1)
            if len(started) > 20:
                return await hire()
            raise WorkerLost("it died", by_itself=by_itself)

        executor.crew._hire = never
        if by_itself:
            with pytest.raises(BackendError, match="no worker stays: it died"):
                await hands.attempt(items[0], SKILL, target, seed=1, slot="s")
            assert len(started) == 10
        else:
            await hands.attempt(items[0], SKILL, target, seed=1, slot="s")

    play(tmp_path, crew(), scene)


class Judged(Target):
    """A target with a judge beside it, which gives half of the points."""

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        self.asked.append((tuple(messages), {"max_tokens": max_tokens}))
        return ChatReply(text='{"reasoning": "so so", "points": {"correct": 2}}', finish="stop")


def test_a_workers_attempt_asks_the_judge_through_the_writer(tmp_path: Path) -> None:
    """Who alone has its key and its journal."""

    async def played() -> None:
        place = workplace(tmp_path)
        settings = evolve(place.settings, options={"grader": "judge"})
        environment = open_environment(settings)
        splits = environment.load()
        executor = crew()
        judged = evolve(place, environment=environment, settings=settings, digests=splits.digests)
        ask = Judged()
        found = await executor.hands(judged).attempt(splits.train[0], SKILL, lambda _: ask, seed=1, slot="s")
        assert found.outcome == Measured(0.0, 0.5)
        assert len(ask.asked) == 2
        await executor.aclose()

    asyncio.run(asyncio.wait_for(played(), 20))
