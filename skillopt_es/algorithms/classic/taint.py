"""Whether a candidate has anything that only untrusted attempts support: pure functions of the state."""

from __future__ import annotations

from collections.abc import Iterable

from skillopt_es.algorithms.classic.appendix import notes_for_candidate
from skillopt_es.algorithms.classic.state import ClassicState, StepState, proposals_of
from skillopt_es.config import RunConfig
from skillopt_es.events.catalog import CandidateBuilt, SlowUpdateProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import Trust
from skillopt_es.projections.trust import attempts_of, patches_behind, support_of


def untrusted_parts(state: ClassicState, step: StepState, built: CandidateBuilt, config: RunConfig) -> str:
    """What of a step's candidate no trusted attempt supports; empty for none, or where that is no reason."""
    if not config.evaluation.no_untrusted_only:
        return ""
    proposals = proposals_of(step)
    applied = [report.edit for report in built.reports if report.status.startswith("applied")]
    behind = {name: patches_behind(name, proposals, tuple(step.patches)) for name in applied}
    behind |= {f"a note of {patch}": (patch,) for patch in _noting(step)}
    doubtful = [name for name, patches in behind.items() if _support(state, step, patches) == "untrusted"]
    return f"only untrusted attempts support {', '.join(doubtful)}" if doubtful else ""


def _noting(step: StepState) -> tuple[str, ...]:
    """The patches whose reminder notes the candidate adds."""
    if step.extended is None or not notes_for_candidate(step):
        return ()
    return tuple(dict.fromkeys(report.patch for report in step.extended.reports if report.status == "added"))


def _support(state: ClassicState, step: StepState, patches: Iterable[str]) -> str:
    attempts = attempts_of(patches, step.planned)
    return support_of(state.rollouts[place][item].trust for place, item in attempts)


def untrusted_guidance(state: ClassicState, proposed: SlowUpdateProposed, config: RunConfig) -> bool:
    """Whether no trusted pair stands behind an epoch's guidance, and that is a reason to refuse it."""
    if not config.evaluation.no_untrusted_only:
        return False
    place = Place.of_epoch(proposed.epoch).slow
    rows = [done for at, done in state.rollouts.items() if place.holds(at)]
    labels: list[Trust] = []
    for pair in proposed.pairs:
        # A pair is read as a whole: one doubtful side of it is enough.
        seen = {done[pair.item].trust for done in rows if pair.item in done}
        labels.append("untrusted" if "untrusted" in seen else "trusted")
    return support_of(labels) == "untrusted"
