"""Whether a candidate has anything that only untrusted attempts support: pure functions of the state."""

from __future__ import annotations

from itertools import chain

from skillopt_es.algorithms.classic.appendix import notes_for_candidate
from skillopt_es.algorithms.classic.phases import open_step
from skillopt_es.algorithms.classic.state import ClassicState, StepState, proposals_of
from skillopt_es.algorithms.steps import doubts_about
from skillopt_es.config import RunConfig
from skillopt_es.events.catalog import SlowUpdateProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import Trust
from skillopt_es.projections.core import waiting
from skillopt_es.projections.trust import patches_behind, support_of


def untrusted_parts(state: ClassicState, config: RunConfig) -> str:
    """What of the open step's candidate no trusted attempt supports; empty for none, or where that is no reason."""
    step, built = open_step(state).step, waiting(state)
    proposals, patches = proposals_of(step), tuple(step.patches)
    edits = ((name, patches_behind(name, proposals, patches)) for name in built.applied)
    notes = ((f"a note of {patch}", (patch,)) for patch in _noting(step))
    return doubts_about(state, config, chain(edits, notes), step.planned)


def _noting(step: StepState) -> tuple[str, ...]:
    """The patches whose reminder notes the candidate adds."""
    if step.extended is None or not notes_for_candidate(step):
        return ()
    return tuple(dict.fromkeys(report.patch for report in step.extended.reports if report.status == "added"))


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
