"""What became of everything that was proposed: taken, or why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from skillopt_es.projections.chains import Chain

Reason = Literal[
    "taken",  # it is in the candidate that became the current skill
    "open",  # the run has not come that far
    "merged_away",  # a merge saw it, and nothing that the merge wrote goes back to it
    "ranked_out",  # the budget was spent on others
    "not_applied",  # the text had no place for it, or has it already
    "consolidated",  # a note that the optimizer said again in other words, or dropped, to have fewer
    "not_judged",  # the step ended without a verdict on it
    "rejected",  # the gate refused the candidate that it was in
    "indecisive",  # the gate could not tell whether the candidate that it was in is better
]


@frozen(kw_only=True)
class Fate:
    """
    Where one proposal ended; `path` begins with it and goes on with what it was merged into.

    `assumed` where it is not recorded which of its inputs a merge on the way used: the proposal may not be in there.
    """

    path: tuple[str, ...]
    reason: Reason
    detail: str = ""
    assumed: bool = False


@frozen(kw_only=True)
class NoteFate:
    """What became of one reminder note."""

    patch: str
    note: str
    reason: Reason
    detail: str = ""


def fates_of(chain: Chain, proposal: str) -> tuple[Fate, ...]:
    """Every end that a proposal came to; more than one where several merged edits go back to it."""
    return tuple(_ends(chain, (proposal,)))


def _ends(chain: Chain, path: tuple[str, ...]) -> Iterator[Fate]:
    into = [name for name in chain.merged_into.get(path[-1], ()) if name not in path]
    for name in into:
        yield from _ends(chain, (*path, name))
    if not into:
        reason, detail = _end(chain, path[-1])
        assumed = any(chain.proposals[name].origins_assumed for name in path[1:])
        yield Fate(path=path, reason=reason, detail=detail, assumed=assumed)


def _end(chain: Chain, name: str) -> tuple[Reason, str]:
    """What became of a proposal that was merged no further."""
    maker = chain.maker_of[name]
    merge = next((merge for merge, made in chain.merges.items() if maker in made.event.inputs), "")
    if merge:
        return "merged_away", f"nothing that {merge} wrote goes back to it"
    if chain.ranked is None or name not in chain.ranked.event.pool:
        return _without_verdict(chain)
    ranked = chain.ranked.event
    if name not in ranked.chosen:
        budget = "" if ranked.budget is None else f", budget {ranked.budget}"
        return "ranked_out", f"{len(ranked.chosen)} of {len(ranked.pool)} were chosen{budget}"
    report = next((each for each in chain.built.event.reports if each.edit == name), None) if chain.built else None
    if report is None:
        return _without_verdict(chain)
    if not report.status.startswith("applied"):
        return "not_applied", f"{report.status}: {report.note}" if report.note else report.status
    return verdict_of(chain)


def verdict_of(chain: Chain) -> tuple[Reason, str]:
    """What became of everything in a step's candidate."""
    if chain.gated is None:
        return _without_verdict(chain)
    event = chain.gated.event
    before = "-" if event.current_value is None else f"{event.current_value:.4f}"
    most = "" if event.exact else "at most "
    values = f"{before} -> {most}{event.candidate_value:.4f}, won {len(event.won)}, lost {len(event.lost)}"
    values += f", {event.reason.replace('_', ' ')}" if event.reason else ""
    if event.action == "indecisive":
        return "indecisive", f"step {chain.step}: {values}, {event.draws} draws"
    return ("taken" if chain.taken else "rejected"), f"step {chain.step}: {values}"


def _without_verdict(chain: Chain) -> tuple[Reason, str]:
    if chain.gap is not None:
        return "not_judged", f"how step {chain.step} ended is unknown: {chain.gap.event.why}"
    if chain.skipped is None:
        return "open", f"step {chain.step} is not over"
    event = chain.skipped.event
    return "not_judged", f"step {chain.step} ended without a candidate: {event.reason}"


def note_fates(chain: Chain) -> tuple[NoteFate, ...]:
    """What became of each reminder note of a step, in the order in which they were looked at."""
    if chain.extended is None:
        return ()
    fates = []
    for report in chain.extended.event.reports:
        reason, detail = _note_end(chain, report.note, report.status)
        fates.append(NoteFate(patch=report.patch, note=report.note, reason=reason, detail=detail))
    return tuple(fates)


def _note_end(chain: Chain, note: str, status: str) -> tuple[Reason, str]:
    assert chain.extended is not None
    if status != "added":
        return "not_applied", status
    if chain.consolidated is not None and note not in chain.consolidated.event.notes:
        return "consolidated", f"{len(chain.consolidated.event.before)} notes to {len(chain.consolidated.event.notes)}"
    if chain.extended.event.order == "measured":
        return verdict_of(chain)
    if chain.written is not None:
        return "taken", f"written after the verdict of step {chain.step}"
    return "open", f"the notes of step {chain.step} are not written yet"
