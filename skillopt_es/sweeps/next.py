"""What a sweep does next, decided from its facts alone: what begins, what is dropped, when it is complete. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from attrs import frozen

from skillopt_es.sweeps.facts import Outcome, RunEntry, SettingDropped, SweepState


@frozen(kw_only=True)
class Hope:
    """The lowest and the highest mean that a setting can end with: each run that is left counts 0 or 1."""

    lowest: float
    highest: float


_LAST_WORDS: frozenset[Outcome] = frozenset({"completed", "paused", "failed"})


def to_begin(state: SweepState, *, ended_now: Collection[str], live: Collection[str]) -> list[RunEntry]:
    """
    The runs that may begin or continue now, in their order; those that were begun come first.

    What ended in this process (`ended_now`) without being killed is not tried again before somebody asks.
    """
    left = [
        run
        for run in state.runs
        if not state.done(run.name)
        and run.name not in live
        and not (run.name in ended_now and state.ended[run.name].outcome in _LAST_WORDS)
        and (run.setting not in state.dropped or run.name in state.launches)
    ]
    return sorted(left, key=lambda run: run.name not in state.launches)


def is_complete(state: SweepState) -> bool:
    """Whether every run has completed, or will not begin."""
    return all(
        state.done(run.name) or (run.setting in state.dropped and run.name not in state.launches) for run in state.runs
    )


def hopes(state: SweepState) -> dict[str, Hope]:
    """What each setting's mean over all its seeds can still be."""
    scores = state.scores()
    found = {}
    for setting in state.settings:
        own = [run for run in state.runs if run.setting == setting]
        known = sum(scores[setting].values())
        # A run that completed without a score has none to add: it can be neither 0 nor 1.
        left = sum(not state.done(run.name) for run in own)
        measured = len(scores[setting]) + left
        if measured:
            found[setting] = Hope(lowest=known / measured, highest=(known + left) / measured)
    return found


def drops(state: SweepState) -> Iterator[SettingDropped]:
    """The settings that cannot come first any more, whatever their other runs would score; none that was restored."""
    found = hopes(state)
    if not found:
        return
    leader = max(found, key=lambda setting: found[setting].lowest)
    waiting = {run.setting for run in state.runs if run.name not in state.launches}
    for setting, hope in found.items():
        if setting in state.dropped or setting in state.restored or setting not in waiting:
            continue
        if hope.highest < found[leader].lowest:
            yield SettingDropped(setting=setting, highest=hope.highest, by=leader, lowest=found[leader].lowest)
