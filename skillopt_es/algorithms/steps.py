"""
What the steps of all algorithms share that ask the optimizer: answers without edits, candidates of edits, support.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Answered
from skillopt_es.engine.work import Decide
from skillopt_es.events.catalog import CandidateBuilt, Event, PatchProposed, RunPaused
from skillopt_es.events.values import REFUSED_LEAK, Edit, EditReport, Minibatch
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.trust import attempts_of, support_of
from skillopt_es.skill.edits import apply_edits_but
from skillopt_es.skill.leaks import LeakGuard

Patches = Mapping[str, PatchProposed]
"""The answers of a step, by id."""

PATCH_ANSWERS: Mapping[type[Event], Answered] = {
    PatchProposed: Answered(
        names=("patch", "step", "items", "kind"),
        nothing={"edits": (), "suggestions": (), "drafts": (), "notes": ()},
    )
}
"""How an answer with edits says that the optimizer could not be reached."""


# --- answers ---------------------------------------------------------------------------------------------------------


def all_failed(patches: Iterable[PatchProposed]) -> bool:
    """Whether no question of several was answered; without any question none failed."""
    results = [patch.result for patch in patches]
    return bool(results) and all(result == "failed" for result in results)


def without_edits(patches: Patches, unasked: str) -> Decide:
    """The end of a step whose answers have no edits; `unasked` is the reason where there was no question."""
    # An answer that could not be read is no proof that there is nothing to fix.
    if any(patch.result in ("unusable", "failed") for patch in patches.values()):
        return Decide("skip:no_usable_patch")
    return Decide("skip:nothing_proposed" if patches else f"skip:{unasked}")


def noted(patches: Patches) -> str:
    """Why answers could not be used."""
    return "; ".join(f"{patch.patch}: {patch.note}" for patch in patches.values() if patch.note)


def optimizer_away(patches: Patches) -> RunPaused:
    """That no question of a step was answered: an outage, not a step with nothing to fix."""
    notes = [patch.note for patch in patches.values()]
    return RunPaused(
        reason="optimizer", message=f"none of the {len(notes)} questions of the step was answered; first, {notes[0]}"
    )


# --- candidates ------------------------------------------------------------------------------------------------------


def leaking(edits: Iterable[Edit], guard: LeakGuard) -> dict[str, EditReport]:
    """The edits that copy a tried item, each with the report that refuses it."""
    return {edit.id: EditReport(edit.id, REFUSED_LEAK, leak) for edit in edits if (leak := guard.leak(edit.content))}


def candidate_of(
    state: AnyState, config: RunConfig, step: int, edits: Sequence[Edit], refused: Mapping[str, EditReport]
) -> CandidateBuilt:
    """The current skill with these edits, but for those that are refused."""
    current, close_gaps = state.current.skill, not config.follows("leave_gaps")
    candidate, reports = apply_edits_but(refused, current, edits, close_gaps=close_gaps, pins=state.steering.pins)
    return CandidateBuilt(step=step, parent=current.hash, candidate=candidate, reports=reports, gaps_closed=close_gaps)


# --- support ---------------------------------------------------------------------------------------------------------

Origins = Iterable[tuple[str, Iterable[str]]]
"""Parts of a candidate by name, each with the patches that it goes back to."""


def unsupported(state: AnyState, origins: Origins, groups: Sequence[Minibatch]) -> tuple[str, ...]:
    """Those parts that no trusted attempt supports."""
    return tuple(
        name
        for name, patches in origins
        if support_of(state.rollouts[at][item].trust for at, item in attempts_of(patches, groups)) == "untrusted"
    )


def doubts_about(state: AnyState, config: RunConfig, origins: Origins, groups: Sequence[Minibatch]) -> str:
    """What of a candidate no trusted attempt supports; empty for none, or where that is no reason."""
    found = unsupported(state, origins, groups) if config.evaluation.no_untrusted_only else ()
    return f"only untrusted attempts support {', '.join(found)}" if found else ""
