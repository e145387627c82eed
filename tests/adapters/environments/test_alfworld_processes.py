"""Games in child processes: one that dies, hangs or babbles measures nothing and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import appendix_world
from support.environments import SKILL, data_settings, open_on, write_lines
from support.ready import PATIENCE

from skillopt_es.adapters.environments.alfworld.games import Game, game_text
from skillopt_es.adapters.environments.alfworld.textworld_process import TextWorldProcess
from skillopt_es.adapters.environments.alfworld.world import View, WorldError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import CallFailed, ChatReply, Environment, Item, Message

SIMPLE = "pick_and_place_simple"
HEAD = "import json, os, sys, time\nprint('noise', file=sys.stderr)\nsys.stdin.readline()\n"
TELL = 'print(json.dumps({"observation": %s, "commands": ["look"], "won": %s, "over": %s}))\n'
VIEW = TELL % ("'Your task is to: wait.'", False, False)
WON = TELL % ("'Well done.'", True, True)
NEXT = "sys.stdout.flush()\nsys.stdin.readline()\n"
BROKEN = {
    "dies at once": ("sys.exit('the game is bad')", "died: the game is bad"),
    "dies later": (VIEW + NEXT + "sys.exit('out of luck')", "died: out of luck"),
    "is killed": (VIEW + NEXT + "os.kill(os.getpid(), 9)", "died: noise"),
    "hangs": (VIEW + NEXT + "time.sleep(900)", "no answer in 1.5 seconds"),
    "babbles": (VIEW + NEXT + "print('hello')", "said something that is no view"),
    "is cut in a line": (VIEW + NEXT + "print('{', end='')", "died: noise"),
    "never stops talking": (VIEW + NEXT + "print('x' * 5_000_000)", "broke off: noise"),
}


def world(script: str, *, seconds: float = 1.5) -> TextWorldProcess:
    """A world whose child runs this script."""
    game = Game(text=game_text(appendix_world.game(SIMPLE)))
    return TextWorldProcess(game, seconds=seconds, command=(sys.executable, "-c", HEAD + script))


def children() -> set[int]:
    """The processes that this one has started and that are still there."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[1]) == os.getpid():
                found.add(int(entry.name))
    return found


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary folders are made in a place of the test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def play(script: str) -> str:
    """What the broken world is said to have done."""

    async def through() -> None:
        each = world(script)
        try:
            await each.reset()
            await each.step("look")
        finally:
            await each.aclose()

    with pytest.raises(WorldError) as caught:
        asyncio.run(through())
    return str(caught.value)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_game_says_how_and_leaves_nothing(how: str, tmp_path: Path, nothing_left: None) -> None:
    """An error that names what happened; no process, no folder."""
    script, said = BROKEN[how]
    before = children()
    assert said in play(script)
    assert children() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_cancelled_game_takes_its_descendants_along(tmp_path: Path, nothing_left: None) -> None:
    """Also one that waits, and what it has started itself."""
    mark = tmp_path / "grandchild"
    script = (
        "import subprocess\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(900)'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n" + VIEW + NEXT + "time.sleep(900)"
    )
    before = children()

    async def cancelled() -> None:
        each = world(script, seconds=PATIENCE)
        try:
            await each.reset()
            await each.step("look")
        finally:
            await each.aclose()

    async def main() -> None:
        task = asyncio.create_task(cancelled())
        await asyncio.to_thread(written, mark)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert children() == before
    assert ended(int(mark.read_text()))
    mark.unlink()
    assert list(tmp_path.iterdir()) == []


def written(path: Path) -> None:
    """Returns when a file holds something."""
    until = time.monotonic() + PATIENCE
    while not path.exists() or not path.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)


def ended(process: int, *, within: float = PATIENCE) -> bool:
    """Whether a process is gone, or only waits to be buried by whoever adopted it."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_the_child_has_no_keys_and_a_home_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game file may run code of its own: it finds no secret in its environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    script = TELL % ("json.dumps(dict(os.environ))", False, False)

    async def through() -> View:
        each = world(script, seconds=30)
        try:
            return await each.reset()
        finally:
            await each.aclose()

    seen = asyncio.run(through()).observation
    assert "sk-secret" not in seen
    assert "skillopt-es-alfworld-" in seen


# --- through the environment, with the worlds' own choice of a child -------------------------------------------------


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Environment, Item]:
    """An environment that plays in child processes, whether or not TextWorld is installed."""
    monkeypatch.setattr("skillopt_es.adapters.environments.alfworld.worlds.textworld_is_installed", lambda: True)
    game = appendix_world.game(SIMPLE)
    path = write_lines(
        tmp_path / "items.jsonl", [{"id": each, "split": each, "game": game} for each in ("train", "val")]
    )
    data = data_settings(split_mode="field", data_path=str(path))
    environment = open_on(tmp_path, "alfworld", data, world="textworld")
    return environment, environment.load().train[0]


def use_child(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Games of the environment run this script."""
    start = TextWorldProcess.__init__

    def scripted(self: TextWorldProcess, game: Game, *, seconds: float) -> None:
        start(self, game, seconds=seconds, command=(sys.executable, "-c", HEAD + script))

    monkeypatch.setattr(TextWorldProcess, "__init__", scripted)


async def looks(messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
    return ChatReply(text="<think>x</think><action>look</action>", finish="stop")


async def is_down(messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
    raise CallFailed("server", "no answer")


def test_a_dead_child_is_a_failed_sandbox_and_no_zero(
    opened: tuple[Environment, Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome is failed under the code `sandbox`, and what was played until then is kept."""
    use_child(monkeypatch, VIEW + NEXT + "sys.exit('out of luck')")
    environment, item = opened
    episode = asyncio.run(environment.attempt(item, SKILL, looks, seed=1))
    assert episode.outcome == Failed("sandbox", "the game's process died: out of luck")
    assert (episode.failure, episode.task) == ("sandbox", "wait.")
    assert [record.kind for record in episode.records] == ["system", "user", "feedback"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_outage_ends_the_child(opened: tuple[Environment, Item], monkeypatch: pytest.MonkeyPatch) -> None:
    """The failed call passes through, the process does not stay."""
    use_child(monkeypatch, VIEW + NEXT + "time.sleep(900)")
    environment, item = opened
    before = children()

    async def main() -> None:
        with pytest.raises(CallFailed):
            await environment.attempt(item, SKILL, is_down, seed=1)
        assert children() == before

    asyncio.run(main())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_closing_the_environment_ends_every_game(
    opened: tuple[Environment, Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game that waits for the model has no process any more; whoever plays it is told."""
    use_child(monkeypatch, VIEW + NEXT + "time.sleep(900)")
    environment, item = opened
    before = children()

    async def main() -> None:
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def waits(messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
            asked.set()
            await go_on.wait()
            return ChatReply(text="<action>look</action>", finish="stop")

        game = asyncio.create_task(environment.attempt(item, SKILL, waits, seed=1))
        await asked.wait()
        await environment.aclose()
        assert children() == before
        go_on.set()
        assert isinstance((await game).outcome, Failed)

    asyncio.run(main())


def test_so_many_games_are_open_at_once_as_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`max_api_workers` bounds the processes, whatever number of games is asked for."""
    monkeypatch.setattr("skillopt_es.adapters.environments.alfworld.worlds.textworld_is_installed", lambda: True)
    use_child(monkeypatch, VIEW + NEXT + WON + NEXT)
    path = write_lines(
        tmp_path / "items.jsonl",
        [{"id": each, "split": each, "game": appendix_world.game(SIMPLE)} for each in ("train", "val")],
    )
    data = data_settings(split_mode="field", data_path=str(path))
    environment = open_on(tmp_path, "alfworld", data, world="textworld", max_api_workers=2)
    item = environment.load().train[0]
    now = most = 0
    two = asyncio.Event()

    async def counted(messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 2:
            two.set()
        await asyncio.wait_for(two.wait(), 60)  # however long a second one takes to start here
        await asyncio.sleep(0.05)
        now -= 1
        return ChatReply(text="<action>look</action>", finish="stop")

    async def main() -> None:
        episodes = await asyncio.gather(*(environment.attempt(item, SKILL, counted, seed=1) for _ in range(5)))
        assert all(episode.outcome == Measured(1.0, 1.0) for episode in episodes)

    asyncio.run(main())
    assert most == 2
