"""The sealed test split as an evaluation meets it: refused, or opened by an event that stays in the run's log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path

from attrs import field, frozen

from skillopt_es.config import RunConfig
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunStarted, SealedTestOpened
from skillopt_es.events.log import EventLog
from skillopt_es.events.writer import RunWriter
from skillopt_es.projections.seal import LOOK_TYPES, Looks, looks_in
from skillopt_es.runs.reading import whole_log


@frozen(kw_only=True)
class Seal:
    """
    Whose test items are sealed: those of the run in `run`, or (None) of the evaluation's own config.

    `items` are the sealed ones where a run has recorded them; `opens` says that whoever asks means to look.
    """

    run: Path | None = None
    items: frozenset[str] | None = None
    opens: bool = False

    def touched(self, test: Collection[str], asked: Iterable[str]) -> bool:
        """Whether a sealed item is asked for, in whichever split other settings would put it."""
        sealed = frozenset(test) if self.items is None else self.items
        return not sealed.isdisjoint(asked)


@frozen
class Look:
    """Which evaluation of which skill looks."""

    evaluation: str
    skill: str
    now: Callable[[], datetime] = field(repr=False)

    def event(self, number: int) -> SealedTestOpened:
        """The look as it is recorded."""
        return SealedTestOpened(look=number, by="eval", skill=self.skill, evaluation=self.evaluation)


def seal_of(config: RunConfig, *, opens: bool) -> Seal | None:
    """The seal that a config asks for, if it does."""
    return Seal(opens=opens) if config.env.seal_test else None


def seal_of_run(started: RunStarted, config: RunConfig, folder: Path, asked: RunConfig, *, opens: bool) -> Seal | None:
    """The seal of a run as it was recorded; raises ConfigError for settings that would lift it."""
    if not config.env.seal_test:
        return seal_of(asked, opens=opens)
    if not asked.env.seal_test:
        raise ConfigError(
            f"env.seal_test: {folder.name} was sealed when it started, and stays so",
            hint="`--open-test` looks at its test items, and the run's log keeps a record of it",
        )
    return Seal(run=folder, items=frozenset(started.splits.test), opens=opens)


async def opened(seal: Seal, look: Look, own: Looks) -> SealedTestOpened:
    """
    The look's event, once it stands in the run whose items they are; the same evaluation again is the same look.

    `own` are the looks in the evaluation's log. Raises ConfigError where nobody said that the seal is to be opened.
    """
    if seal.run is None:
        known = own.of_evaluation(look.evaluation, look.skill)
        if known is None and not seal.opens:
            raise ConfigError(
                "the test items are sealed (env.seal_test), and no run is named that could record the look",
                hint="`--split val` needs no seal; `--open-test` looks, and with `--run NAME` records it in that run",
            )
        return known or look.event(own.count + 1)
    with whole_log(seal.run) as log:
        before = _looks(log)
    known = before.of_evaluation(look.evaluation, look.skill)
    if known is None and not seal.opens:
        raise ConfigError(f"the test items of {seal.run.name} are sealed: {_so_far(before)}", hint=_HINT)
    return known or await _recorded(seal.run, look)


_HINT = "`--split val` needs no seal; `--open-test` looks at them, and the run's log keeps a record of it"


def _so_far(looks: Looks) -> str:
    if not looks.count:
        return "nobody has looked at them yet, and its final evaluation is to be the first"
    return f"they were looked at {'once' if looks.count == 1 else f'{looks.count} times'}"


async def _recorded(folder: Path, look: Look) -> SealedTestOpened:
    """The look, durable in the run's log; another writer that is at work is named in the error."""
    writer = await asyncio.to_thread(RunWriter.open, folder, now=look.now)
    try:
        # Counted again, now that nobody else can write.
        event = look.event(_looks(writer.log).count + 1)
        await writer.append([event], expected=writer.log.head().seq)
        return event
    finally:
        await asyncio.to_thread(writer.close)


def _looks(log: EventLog) -> Looks:
    return looks_in(recorded.event for recorded in log.read(types=LOOK_TYPES))
