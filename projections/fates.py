"""What became of everything that was proposed: taken, or why not."""

from __future__ import annotations

from collections import deque
from typing import Literal

from attrs import frozen

from skillopt_es.events.catalog import CandidateBuilt, EditsRanked
from skillopt_es.events.places import Place
from skillopt_es.events.values import AppendixOrder, Credit, Edit, Effect, GateVerdict
from skillopt_es.projections.chains import Chain
from skillopt_es.projections.wording import same_words

Reason = Literal[
    "taken",  # it is in the candidate that became the current skill
    "open",  # the run has not come that far
    "merged_away",  # a merge saw it, and nothing that the merge wrote goes back to it
    "ranked_out",  # the budget was spent on others
    "screened_out",  # tried alone, it earned nothing
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

    `assumed` where a merge on the way did not say which of its inputs it used: the proposal was matched by its wording.
    `same_as` is what the skill has in the very words of a proposal that itself went another way.
    """

    path: tuple[str, ...]
    reason: Reason
    detail: str = ""
    assumed: bool = False
    same_as: str = ""


@frozen(kw_only=True)
class NoteFate:
    """What became of one reminder note."""

    patch: str
    note: str
    reason: Reason
    detail: str = ""


def fates_of(chain: Chain, proposal: str) -> tuple[Fate, ...]:
    """Every end of a proposal, each by its shortest way; more than one where several edits go back to it."""
    ends = tuple(_fate(chain, path) for path in _ways(chain, proposal))
    same = chain.in_skill.get(same_words(chain.proposals[proposal]))
    if same is None or any(fate.reason == "taken" for fate in ends):
        return ends
    reason, detail = verdict_of(chain)
    return (Fate(path=(proposal,), reason=reason, detail=detail, same_as=same),)


def _ways(chain: Chain, proposal: str) -> tuple[tuple[str, ...], ...]:
    """From a proposal to each of those that were merged no further."""
    ways: list[tuple[str, ...]] = []
    met = {proposal}
    waiting: deque[tuple[str, ...]] = deque([(proposal,)])
    while waiting:
        path = waiting.popleft()
        into = chain.merged_into.get(path[-1], ())
        if not into:
            ways.append(path)
        for name in into:
            if name not in met:
                met.add(name)
                waiting.append((*path, name))
    return tuple(ways)


def _fate(chain: Chain, path: tuple[str, ...]) -> Fate:
    reason, detail = _end(chain, path[-1])
    assumed = any(chain.proposals[name].origins_assumed for name in path[1:])
    return Fate(path=path, reason=reason, detail=detail, assumed=assumed)


def _end(chain: Chain, name: str) -> tuple[Reason, str]:
    """What became of a proposal that was merged no further."""
    merge = chain.ends_in.get(chain.maker_of[name])
    if merge is not None:
        said = "is worded like it" if merge in chain.unsaid else "goes back to it"
        return "merged_away", f"nothing that {merge} wrote {said}"
    ranked = None if chain.ranked is None else chain.ranked.event
    if ranked is not None and name in ranked.pool and name not in ranked.chosen:
        return "screened_out" if ranked.credits else "ranked_out", _why_not_chosen(chain, ranked, name)
    report = chain.left_out.get(name) or chain.reports.get(name)
    if report is None:
        return _without_verdict(chain)
    if not report.applied:
        return "not_applied", f"{report.status}: {report.note}" if report.note else report.status
    return verdict_of(chain)


def values_of(verdict: GateVerdict) -> str:
    """The current text's value and the candidate's; `-` for what was never measured."""
    values = (verdict.current_value, verdict.candidate_value)
    before, after = ("-" if each is None else f"{each:.4f}" for each in values)
    return f"{before} -> {'' if verdict.exact else 'at most '}{after}"


def reason_of(verdict: GateVerdict) -> str:
    """What the verdict rests on, to be said after its values; empty where they say it."""
    return f", {verdict.reason.replace('_', ' ')}" if verdict.reason else ""


def verdict_of(chain: Chain) -> tuple[Reason, str]:
    """What became of everything in a step's candidate."""
    verdict = chain.verdict
    if verdict is None:
        return _without_verdict(chain)
    turned = "not compared" if verdict.alone else f"won {len(verdict.won)}, lost {len(verdict.lost)}"
    values = f"{values_of(verdict)}, {turned}{reason_of(verdict)}"
    if verdict.action == "indecisive":
        return "indecisive", f"step {chain.step}: {values}, {verdict.repeats} repeats"
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
        reason, detail = _note_end(chain, report.note, report.status, chain.extended.event.order)
        fates.append(NoteFate(patch=report.patch, note=report.note, reason=reason, detail=detail))
    return tuple(fates)


def _note_end(chain: Chain, note: str, status: str, order: AppendixOrder) -> tuple[Reason, str]:
    if status != "added":
        return "not_applied", status
    if chain.consolidated is not None and note not in chain.consolidated.event.notes:
        return "consolidated", f"{len(chain.consolidated.event.before)} notes to {len(chain.consolidated.event.notes)}"
    if order == "measured":
        return verdict_of(chain)
    if chain.written is not None:
        return "taken", f"written after the verdict of step {chain.step}"
    return "open", f"the notes of step {chain.step} are not written yet"


def _why_not_chosen(chain: Chain, ranked: EditsRanked, name: str) -> str:
    credit = next((each for each in ranked.credits if each.edit == name), None)
    if credit is not None:
        return _what_it_did(chain, credit)
    effect = next((each for each in ranked.effects if name in each.edits), None)
    if effect is not None:
        return effect_words(effect)
    budget = "" if ranked.budget is None else f", budget {ranked.budget}"
    return f"{len(ranked.chosen)} of {len(ranked.pool)} were chosen{budget}"


def _what_it_did(chain: Chain, credit: Credit) -> str:
    why = why_untried(chain, credit)
    if why:
        return f"it was never tried: {why}"
    if is_removal(chain, credit.edit) and credit.broke:
        return f"it is needed by {', '.join(sorted(credit.broke))}"
    return f"alone it {earned(credit)}"


def is_removal(chain: Chain, name: str) -> bool:
    """Whether an edit takes out a line on trial: its tasks passed with the line, so that there is nothing to fix."""
    edit = chain.proposals.get(name)
    return isinstance(edit, Edit) and edit.source == "pruning"


def why_untried(chain: Chain, credit: Credit) -> str:
    """Why the screen knows nothing of an edit: it was never tried alone, or in vain; empty for one that was."""
    if credit.tries or credit.fixed or credit.broke or chain.ranked is None:
        return ""
    ranked = chain.ranked.event
    index = ranked.credits.index(credit)
    built = chain.alone[index].event if index < len(chain.alone) else None
    if built is not None and built.candidate.hash == built.parent:
        return _why_unchanged(built, credit.edit)
    name = f"edit-{index + 1}"
    if any(Place(tries.place).name == name for seen in chain.tries for tries in seen.event.tries):
        return "no result of it could be measured"
    if credit.edit in ranked.chosen:
        return "no task was left that could tell"
    return "its step had no tries left for it"


def _why_unchanged(built: CandidateBuilt, name: str) -> str:
    report = next((each for each in built.reports if each.edit == name), None)
    if report is None or report.applied:
        return "it changes nothing"
    status = report.status.removeprefix("skipped_").replace("_", " ")
    return f"{status}: {report.note}" if report.note else status


def effect_words(effect: Effect) -> str:
    """What a change was found to do, where it was refused together with others."""
    items = "1 item notices it" if effect.items == 1 else f"{effect.items} items notice it"
    return f"its effect is {effect.effect:+.2f} an item; {items}"


def earned(credit: Credit) -> str:
    """What an edit has done alone: the tasks that it fixed and broke, and those that told nothing."""
    fixed = f"fixed {', '.join(sorted(credit.fixed))}" if credit.fixed else "fixed nothing"
    broke = f", broke {', '.join(sorted(credit.broke))}" if credit.broke else ""
    varied = f"; {', '.join(sorted(credit.varied))} came out otherwise when drawn again" if credit.varied else ""
    nearer = f"; wrong answers came nearer to right ones by {credit.nearer:.2f}" if credit.nearer > 0 else ""
    return f"{fixed}{broke}{varied}{nearer}"
