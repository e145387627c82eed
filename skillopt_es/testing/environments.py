"""
What every environment keeps to, one check each; a check that fails raises an AssertionError that says what is wrong.

Each check gets a case and an empty folder of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from attrs import evolve, frozen

from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Failed, Measured, SkillTree
from skillopt_es.ports import (
    Ask,
    CallFailed,
    ChatReply,
    Environment,
    EnvironmentSettings,
    Episode,
    FinishReason,
    Item,
    Message,
    NotStarted,
    OpenEnvironment,
    Splits,
)

T = TypeVar("T")
SKILL = SkillTree({"SKILL.md": "# Skill\n\nKeep to the point.\n"})
OTHER_SKILL = SkillTree({"SKILL.md": "# Skill\n\nThink of the zebra crossing.\n"})
# Ids that make trouble as file names, in a shell or side by side.
HOSTILE = ("../x", "/etc/passwd", "a/b", "CON", "x" * 3000, "ü🙂", "a:b", "A:b", "..", "a\nb")
_PATIENCE = 20.0  # an environment that waits for ever fails its test instead of hanging the suite


@frozen(kw_only=True)
class EnvironmentCase:
    """
    An environment, and how to make items for it.

    `made` writes training items with these ids into a folder, and at least one for each other split, and returns the
    settings to open them. `replies` are what a target may answer: one must be right and one wrong for every item.
    `secret` is a text that only accepted answers have; leave it empty where the target may see them, as among choices.
    `many` is how many items are tried at once; fewer will do where each starts programs.
    """

    open: OpenEnvironment
    made: Callable[[Path, Sequence[str]], EnvironmentSettings]
    replies: Sequence[str]
    secret: str = ""
    many: int = 24

    @property
    def ids(self) -> Sequence[str]:
        """As many plain ids."""
        return [f"item-{number}" for number in range(self.many)]

    def opened(self, folder: Path, ids: Sequence[str]) -> tuple[Environment, Splits]:
        """The environment over made items, loaded."""
        folder.mkdir(exist_ok=True)
        environment = self.open(self.made(folder, ids))
        return environment, environment.load()


class Target:
    """Answers from the case's replies: which one depends on what was asked and on nothing else."""

    def __init__(self, replies: Sequence[str], *, finish: FinishReason = "stop", late: bool = False) -> None:
        self._replies = replies
        self._finish: FinishReason = finish
        self._late = late
        self.asked: list[tuple[Message, ...]] = []

    async def __call__(self, messages: Sequence[Message], **options: object) -> ChatReply:
        """One reply, whatever tools or limits come with the question."""
        self.asked.append(tuple(messages))
        digest = hashlib.sha256(repr(messages).encode()).digest()
        if self._late:
            await asyncio.sleep(digest[1] / 10_000)
        text = "" if self._finish == "refused" else self._replies[digest[0] % len(self._replies)]
        return ChatReply(text=text, finish=self._finish)


# --- data -----------------------------------------------------------------------------------------------------------


def it_knows_its_name(case: EnvironmentCase, folder: Path) -> None:
    """The one that it was opened under."""
    settings = evolve(case.made(folder, ["1"]), name="another-name")
    name = case.open(settings).name
    assert name == "another-name", f"it was opened as 'another-name', and calls itself {name!r}"


def an_unknown_option_is_refused(case: EnvironmentCase, folder: Path) -> None:
    """With the key in the message."""
    settings = case.made(folder, ["1"])
    said = None
    try:
        case.open(evolve(settings, options={**settings.options, "no_such_option": 1}))
    except ConfigError as error:
        said = error.message
    assert said is not None, "env.no_such_option is ignored; a typing error would go unnoticed"
    assert "no_such_option" in said, f"the error does not name the key: {said}"


def items_keep_their_ids_and_order(case: EnvironmentCase, folder: Path) -> None:
    """Also ids that look like paths; nothing but the data is on disk afterwards."""
    environment, splits = case.opened(folder, HOSTILE)
    before = _files(folder)
    assert [item.id for item in splits.train] == [*HOSTILE], "ids are changed, lost or in another order"
    every = [item.id for split in (splits.train, splits.val, splits.test) for item in split]
    assert len(set(every)) == len(every), "an id is there twice"
    _episodes(environment, splits.train, Target(case.replies))
    _run(environment.aclose())
    assert _files(folder) == before, f"it left files: {sorted(_files(folder) - before)}"


def data_is_told_apart_by_its_digest(case: EnvironmentCase, folder: Path) -> None:
    """The same items give the same digests anywhere, other items others: a run is not resumed on changed data."""
    first = case.opened(folder / "1", ["1", "2"])[1]
    same = case.opened(folder / "2", ["1", "2"])[1]
    other = case.opened(folder / "3", ["1", "3"])[1]
    assert set(first.digests) == {"train", "val", "test"}, f"digests are of {sorted(first.digests)}"
    assert first.digests == same.digests, "the same data in another folder has other digests"
    assert first.digests["train"] != other.digests["train"], "other items have the same digest"


# --- attempts -------------------------------------------------------------------------------------------------------


def every_episode_is_whole(case: EnvironmentCase, folder: Path) -> None:
    """Scores from 0 to 1, a failure code exactly where something is missing, and always a trajectory."""
    environment, splits = case.opened(folder, case.ids)
    rounds = _rounds(environment, splits.train, [Target([reply]) for reply in case.replies])
    for tries in zip(*rounds, strict=True):  # one item under each reply
        for episode in tries:
            _check_episode(episode)
            assert isinstance(episode.outcome, Measured), f"an answered item was not measured: {episode.outcome}"
        assert any(isinstance(e.outcome, Measured) and e.outcome.passed for e in tries), "no reply is ever right"
        assert any(episode.failure for episode in tries), "no reply is ever wrong"


def a_reply_without_an_answer_is_an_episode(case: EnvironmentCase, folder: Path) -> None:
    """A refusal, a cut reply and an empty one: no error, and never a pass."""
    environment, splits = case.opened(folder, ["1"])
    endings: tuple[tuple[FinishReason, Sequence[str]], ...] = (("refused", [""]), ("length", ["cut"]), ("stop", [""]))
    for finish, replies in endings:
        (episode,) = _episodes(environment, splits.train, Target(replies, finish=finish))
        _check_episode(episode)
        passed = isinstance(episode.outcome, Measured) and episode.outcome.passed
        assert not passed, f"a reply that ended with {finish!r} and says {replies[0]!r} passes"


def the_same_answers_give_the_same_episodes(case: EnvironmentCase, folder: Path) -> None:
    """Neither the folder, nor the order in which answers come, nor an earlier attempt changes one."""
    found = []
    for number, late in enumerate((False, True)):
        environment, splits = case.opened(folder / str(number), case.ids)
        found += _rounds(environment, splits.train, [Target(case.replies, late=late) for _ in range(2)])
        assert str(folder) not in repr(found[-1]), "an episode holds a path of this machine"
    for other in found[1:]:
        assert other == found[0], "the same answers gave other episodes"


def the_skill_is_put_before_the_target(case: EnvironmentCase, folder: Path) -> None:
    """Another skill is another question; nothing of an earlier one is left."""
    environment, splits = case.opened(folder, ["1"])
    for skill in (SKILL, OTHER_SKILL, SKILL):
        target = Target(case.replies)
        _episodes(environment, splits.train, target, skill)
        said = "\n".join(message.content for message in target.asked[0])
        assert skill.text.splitlines()[-1] in said, "the target was not shown the skill"
        other = OTHER_SKILL if skill is SKILL else SKILL
        assert other.text.splitlines()[-1] not in said, "the target was shown another skill"


def no_accepted_answer_reaches_the_target(case: EnvironmentCase, folder: Path) -> None:
    """In no message of any turn."""
    environment, splits = case.opened(folder, case.ids)
    target = Target([reply for reply in case.replies if case.secret not in reply] or [""])
    _episodes(environment, splits.train, target)
    for messages in target.asked if case.secret else ():
        for message in messages:
            assert case.secret not in message.content, f"the target was told the answer: {message.content[:200]!r}"


# --- when the world does not answer ----------------------------------------------------------------------------------


def what_the_trainer_must_know_passes_through(case: EnvironmentCase, folder: Path) -> None:
    """An outage is no score, and neither is a call that was not started."""
    environment, splits = case.opened(folder, ["1"])
    for trouble in (CallFailed("server", "no answer"), NotStarted()):

        async def down(messages: Sequence[Message], *, trouble: BaseException = trouble, **_: object) -> ChatReply:
            raise trouble

        seen: BaseException | None = None
        try:
            _episodes(environment, splits.train, down)
        except (CallFailed, NotStarted) as passed:
            seen = passed
        assert seen is trouble, f"{type(trouble).__name__} was turned into an episode"


def a_cancelled_attempt_leaves_nothing(case: EnvironmentCase, folder: Path) -> None:
    """No task goes on, and no file changes."""
    environment, splits = case.opened(folder, ["1"])

    async def never(messages: Sequence[Message], **_: object) -> ChatReply:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario() -> None:
        before = asyncio.all_tasks()
        attempt = asyncio.ensure_future(environment.attempt(splits.train[0], SKILL, never, seed=1))
        await asyncio.sleep(0.01)
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)
        assert attempt.cancelled(), "an attempt went on although it was cancelled"
        left = asyncio.all_tasks() - before
        assert not left, f"tasks are left: {left}"

    files = _files(folder)
    _run(scenario())
    assert _files(folder) == files, f"it left files: {sorted(_files(folder) - files)}"


def closing_twice_is_closing(case: EnvironmentCase, folder: Path) -> None:
    """Also when nothing was tried."""
    environment, _ = case.opened(folder, ["1"])

    async def scenario() -> None:
        await environment.aclose()
        await environment.aclose()

    _run(scenario())


# --- helpers --------------------------------------------------------------------------------------------------------


def _episodes(environment: Environment, items: Sequence[Item], ask: Ask, skill: SkillTree = SKILL) -> list[Episode]:
    return _rounds(environment, items, [ask], skill)[0]


def _rounds(
    environment: Environment, items: Sequence[Item], asks: Sequence[Ask], skill: SkillTree = SKILL
) -> list[list[Episode]]:
    """All items at once, once for each of these targets, in one event loop: an environment belongs to one."""

    async def gather() -> list[list[Episode]]:
        return [
            await asyncio.gather(*(environment.attempt(item, skill, ask, seed=1) for item in items)) for ask in asks
        ]

    return _run(gather())


def _check_episode(episode: Episode) -> None:
    outcome = episode.outcome
    if isinstance(outcome, Measured):
        for score in (outcome.hard, outcome.soft):
            assert math.isfinite(score), f"a score is {score}"
            assert 0 <= score <= 1, f"a score is {score}"
        assert bool(episode.failure) == (outcome.hard < 1), f"hard is {outcome.hard}, and failure {episode.failure!r}"
    else:
        assert isinstance(outcome, Failed), f"the outcome is a {type(outcome).__name__}"
        assert episode.failure, "a failed attempt has no failure code"
    assert "\n" not in episode.failure, f"a failure code is short and stable, not {episode.failure!r}"
    assert len(episode.failure) <= 40, f"a failure code is short and stable, not {episode.failure!r}"
    assert episode.records, "there is no trajectory: analysts would not see this item"
    assert episode.turns >= 1, f"turns is {episode.turns}"


def _files(folder: Path) -> set[str]:
    return {f"{path.relative_to(folder)}" for path in folder.rglob("*")}


def _run(scenario: Awaitable[T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(scenario, _PATIENCE)

    return asyncio.run(bounded())


ENVIRONMENT_CHECKS: Mapping[str, Callable[[EnvironmentCase, Path], None]] = {
    check.__name__: check
    for check in (
        it_knows_its_name,
        an_unknown_option_is_refused,
        items_keep_their_ids_and_order,
        data_is_told_apart_by_its_digest,
        every_episode_is_whole,
        a_reply_without_an_answer_is_an_episode,
        the_same_answers_give_the_same_episodes,
        the_skill_is_put_before_the_target,
        no_accepted_answer_reaches_the_target,
        what_the_trainer_must_know_passes_through,
        a_cancelled_attempt_leaves_nothing,
        closing_twice_is_closing,
    )
}
