"""
What another rule, or other grades, would have decided for every candidate that a run recorded; nobody is asked.

The run's events are folded once more, with the verdicts of the other rule in the place of the recorded ones. Up to the
first verdict that differs, or the first other grade that analysts would have read, that is what would have happened.
After it, the recorded candidates are those of another history: what the rule would say of them is an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from attrs import define, evolve, field

from skillopt_es.audit.regated import AS_RECORDED, Kind, Regated, Regraded, Rescored, Verdict
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Judging
from skillopt_es.engine.algorithms import algorithm_at
from skillopt_es.engine.algorithms import evolve as after
from skillopt_es.engine.evaluations import mean_score, most_score
from skillopt_es.engine.steering import values_without
from skillopt_es.engine.work import Contest
from skillopt_es.events.catalog import (
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    CertificateWagered,
    EditsRanked,
    Event,
    EvidenceRetracted,
    Recorded,
    RolloutCompleted,
    RunCompleted,
    RunForked,
    RunResumed,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
    skills_in,
)
from skillopt_es.events.values import GateVerdict, Outcome, SkillTree
from skillopt_es.gate.comparing import MoreDraws
from skillopt_es.gate.course import final_contest
from skillopt_es.gate.forks import gate_values
from skillopt_es.gate.verdicts import (
    candidate_contest,
    candidate_gated,
    counts_as_measured,
    is_better,
    judged,
    too_large,
)
from skillopt_es.projections.core import waiting
from skillopt_es.projections.state import AnyState

Judgement = CandidateGated | SlowUpdateApplied
ConfigAt = Callable[[AnyState], RunConfig]


def regate(records: Iterator[Recorded], config_at: ConfigAt, graded: Regraded = AS_RECORDED) -> Regated:
    """
    The verdicts of the rule in `config_at(state)`, which answers with the other rule's run for the settings so far.

    The first of the records is the start of the run.
    """
    first = next(records).event
    begun = after(None, first)
    walk = _Walk(config_at, graded, begun, begun, config_at(begun), {skill.hash: skill for skill in skills_in(first)})
    for recorded in records:
        walk.step(recorded)
    return Regated(
        verdicts=tuple(walk.verdicts),
        best_recorded=walk.recorded.best.skill.hash,
        best_derived=walk.other.best.skill.hash,
        told=walk.told,
        read=walk.read,
        evaluations=tuple(walk.evaluations),
    )


_SEEN = ("train", "slow_previous", "slow_current")
"""What results are for that the optimizer reads one by one."""

_NONE: Mapping[str, RolloutCompleted] = {}


@define
class _Walk:
    """The run as recorded, and as the other rule would have it; equal but for values until the two part."""

    config_at: ConfigAt
    graded: Regraded
    recorded: AnyState
    other: AnyState
    config: RunConfig
    texts: dict[str, SkillTree]
    verdicts: list[Verdict] = field(factory=list)
    parted: bool = False
    settled: bool = False
    whole: int | None = None
    told: int | None = None
    read: int | None = None
    evaluations: list[Rescored] = field(factory=list)

    def step(self, recorded: Recorded) -> None:
        """One more event."""
        event = recorded.event
        self.texts.update({skill.hash: skill for skill in skills_in(event)})
        followed = self._followed(recorded.seq, event)
        self.recorded = after(self.recorded, event)
        if followed is not None:
            self.other = after(self.other, followed)
        if isinstance(event, RunResumed | RunForked | EvidenceRetracted):
            self.config = self.config_at(self.recorded)

    def _followed(self, seq: int, event: Event) -> Event | None:
        """What the other history has in an event's place; None when it has nothing there."""
        match event:
            case RolloutCompleted():
                return self._tried(seq, event)
            case SkillScored():
                return self._added_up(seq, event)
            case RunForked() | EvidenceRetracted(place=""):
                return self._revalued(event)
            case CertificateWagered() | BestPromoted() | RunCompleted():
                return self._ended(seq, event)
            case CandidateBuilt(step=step) | CandidateGated(step=step) if step == self.whole:
                return None  # the other history has no candidate of a part
            case _:
                return self._decided(seq, event)

    def _decided(self, seq: int, event: Event) -> Event:
        """What another rule decides in an event's place, or the algorithm makes of it in another history."""
        match event:
            case CandidateGated():
                return self._gated(seq, event)
            case EditsRanked(together=GateVerdict() as together):
                return self._together(seq, event, together)
            case StepSkipped(reason="too_large" | "untrusted_only"):
                return self._was_refused(seq, event)
            case _:
                return self._elsewhere(seq, event)

    def _revalued(self, event: RunForked | EvidenceRetracted) -> Event:
        """What measured skills count from here on, by the other rule."""
        if isinstance(event, EvidenceRetracted):
            return evolve(event, values=values_without(event.items, self.other, self.config))
        old, new = self.config.evaluation, self.config_at(after(self.recorded, event))
        return evolve(event, values=gate_values(self.other, self.texts, old, new))

    def _tried(self, seq: int, event: RolloutCompleted) -> Event:
        """The result by the other grades."""
        other = evolve(event, outcome=self.graded.outcomes.get(seq, event.outcome))
        seen = event.purpose in _SEEN and other != event
        if self.read is None and (seen or seq in self.graded.unknown):
            self.read, self.parted = seq, True
        return other

    def _added_up(self, seq: int, event: SkillScored) -> Event:
        """The score that follows from the other grades, and what it counts by the other rule."""
        recorded, derived = _outcomes(self.recorded, event), _outcomes(self.other, event)
        anew = most_score(derived, len(event.not_run)) if event.not_run else mean_score(derived)
        score = event.score if recorded == derived else anew
        self.evaluations.append(
            Rescored(seq=seq, place=event.place, purpose=event.purpose, skill=event.skill,
                     recorded=event.score, derived=score, bound=not event.exact)
        )  # fmt: skip
        if event.purpose != "selection":
            return evolve(event, score=score)
        return evolve(event, score=score, value=self.config.gate_value(score, self.texts[event.skill]))

    def _ended(self, seq: int, event: CertificateWagered | BestPromoted | RunCompleted) -> Event | None:
        """Whether the final skill is the best is decided once: where it was promoted, or else where the run is over."""
        if isinstance(event, CertificateWagered):  # a text that the other history does not have has no certificate
            held = {self.other.standings[name].skill.hash for name in ("current", "best")}
            return event if event.challenger in held else None
        if not self.settled:
            self._promoted(seq, "promote" if isinstance(event, BestPromoted) else "keep")
        return event if isinstance(event, RunCompleted) else None

    def _was_refused(self, seq: int, event: StepSkipped) -> Event:
        """A candidate that was refused untried: a rule that would try it misses its result."""
        refused = self._refusal()
        why = "" if refused else "the candidate was never measured"
        changed = False if refused else None
        self._say(Verdict(seq, "candidate", event.step, event.reason, refused or None, changed, why=why))
        return event

    def _refusal(self) -> Literal["", "too_large", "untrusted_only"]:
        """Why the rule refuses the open step's candidate untried; empty when it does not."""
        built = self.other.built
        if built is None or not self.config.evaluation.use_gate:
            return ""
        if self._as_current(built.candidate):
            return ""
        if too_large(self.config, built.candidate):
            return "too_large"
        return "untrusted_only" if self._doubts() else ""

    def _doubts(self) -> str:
        return algorithm_at(self.other).gate.doubts(self.other, self.config)

    def _as_current(self, candidate: SkillTree) -> bool:
        return counts_as_measured(self.other, self.config, self.other.current, candidate)

    def _gated(self, seq: int, event: CandidateGated) -> Event:
        refusal = self._refusal()
        if refusal:
            return self._refused(seq, event, refusal)
        why = self._missing(event.candidate)
        if why:
            return self._unknown(seq, "candidate", event.step, event, why)
        derived = candidate_gated(self.other, self.config, waiting(self.other), algorithm_at(self.other).gate)
        changed = _outcome(event) != _outcome(derived)
        self._say(_beside(seq, "candidate", event.step, event.verdict, derived.verdict, changed))
        if self.told is None and event.verdict.action == "reject" and _shown(event) != _shown(derived):
            self.told = event.step
        return derived

    def _together(self, seq: int, event: EditsRanked, together: GateVerdict) -> Event:
        """The verdict on all changes of a step, before some of them were tried: one that takes them ends it."""
        candidate = waiting(self.other).candidate.hash
        followed = self._gated(seq, CandidateGated(step=event.step, candidate=candidate, verdict=together))
        if isinstance(followed, CandidateGated) and not followed.verdict.taken:
            return event
        self.whole = event.step
        return followed

    def _refused(self, seq: int, event: CandidateGated, reason: Literal["too_large", "untrusted_only"]) -> Event:
        """What the rule refuses untried is no candidate of the other history."""
        recorded = event.verdict
        self._say(Verdict(seq, "candidate", event.step, recorded.action, reason, recorded.taken))
        size = too_large(self.config, self.texts[event.candidate])
        detail = size if reason == "too_large" else self._doubts()
        return StepSkipped(step=event.step, reason=reason, detail=detail)

    def _elsewhere(self, seq: int, event: Event) -> Event:
        """Any other event: a verdict of the algorithm's own is judged anew; else the algorithm says what stays."""
        judging = algorithm_at(self.other).gate.judging(self.other, self.config, event)
        if judging is None or not isinstance(event, Judgement):
            return _in_another_history(event, self.other, same=self._same_current())
        why = self._missing(event.candidate, judging)
        if why:
            return self._unknown(seq, "guidance", judging.number, event, why)
        derived = judging.decide(self.config)
        changed = event.verdict.action != derived.verdict.action
        self._say(_beside(seq, "guidance", judging.number, event.verdict, derived.verdict, changed))
        return derived

    def _same_current(self) -> bool:
        """Whether the texts in which something is put are one; what follows an accepted candidate may be in another."""
        return self.other.current.skill.hash == self.recorded.current.skill.hash

    def _missing(self, candidate: str, judging: Judging | None = None) -> str:
        """Which result the other rule would need and the run never had; empty when it has all."""
        current = self.other.current
        built = None if judging is not None else self.other.built
        if judging is not None and judging.refused(self.config):
            return ""
        if built is not None and self._as_current(built.candidate):
            return ""
        compares = judging is not None or self.config.evaluation.use_gate
        in_part = compares and not current.stale_from and (candidate, 1) in self.other.partial
        if candidate not in self.other.measured and not in_part:
            return "the candidate was never measured"
        if compares and (current.stale_from or current.skill.hash) not in self.other.measured:
            return "the skill that would be current was never measured"
        return "" if not compares or current.stale_from else self._undrawn_of(judging)

    def _undrawn_of(self, judging: Judging | None) -> str:
        """The same for a verdict of the algorithm's own, or the one on the open step's candidate."""
        if judging is not None:
            return self._undrawn(judging.contest, self.config)
        policy = algorithm_at(self.other).gate
        contest = candidate_contest(self.other, self.config, waiting(self.other), policy)
        return self._undrawn(contest, policy.terms(self.other, self.config).config)

    def _undrawn(self, contest: Contest, config: RunConfig) -> str:
        """Which draws the other rule would want that the run never made; empty when it has all."""
        found = judged(self.other, config, contest)
        if not isinstance(found, MoreDraws):
            return ""
        if found.candidate and (contest.candidate.hash, found.candidate) in self.other.partial:
            return "the candidate was never measured on all items"
        sides = (("candidate", found.candidate), ("current skill", found.current))
        wanted = [f"draw {draw} of the {name}" for name, draw in sides if draw]
        return f"{' and '.join(wanted)} {'was' if len(wanted) == 1 else 'were'} never made"

    def _promoted(self, seq: int, recorded: str) -> None:
        """Whether the final skill takes the best one's place, by either rule."""
        current, best, config = self.other.current, self.other.best, self.config
        contest = final_contest(self.other, config, algorithm_at(self.other).gate)
        self.settled = True
        derived: str | None = "keep"
        why = ""
        may_promote = config.evaluation.eval_test or not config.follows("promote_if_tested")
        if may_promote and current.skill.hash != best.skill.hash:
            if current.skill.hash not in self.other.measured and (current.skill.hash, 1) not in self.other.partial:
                derived = None
                why = "the final skill was never measured"
            elif why := self._undrawn(contest, config):
                derived = None
            elif is_better(self.other, config, contest):
                derived = "promote"
                self.other = evolve(self.other, best=current)
        changed = None if derived is None else derived != recorded
        verdict = Verdict(seq, "promotion", self.other.steps_done, recorded, derived, changed, why=why)
        self._say(evolve(verdict, value=current.value, against=best.value))

    def _unknown(self, seq: int, kind: Kind, number: int, event: Judgement, why: str) -> Event:
        """Without the result, the other history follows the recorded verdict; from here on it is a guess."""
        known = self.other.measured.get(event.candidate)
        verdict = Verdict(seq, kind, number, event.verdict.action, None, None, why=why)
        value = None if known is None else known.value
        self._say(evolve(verdict, value=value, against=self.other.current.value))
        return event

    def _say(self, verdict: Verdict) -> None:
        # One that cannot be told is an estimate itself; one that differs is still exact, and only what follows is not.
        self.parted = self.parted or verdict.changed is None
        self.verdicts.append(evolve(verdict, zone="estimate" if self.parted else "exact"))
        self.parted = self.parted or verdict.changed is True


def _beside(seq: int, kind: Kind, number: int, recorded: GateVerdict, derived: GateVerdict, changed: bool) -> Verdict:
    """A recorded verdict and the derived one, whose values are shown."""
    said = Verdict(seq, kind, number, recorded.action, derived.action, changed, bound=not derived.exact)
    return evolve(said, value=derived.candidate_value, against=derived.current_value)


def _in_another_history(event: Event, state: AnyState, *, same: bool) -> Event:
    """
    What nobody judged, in another history: guidance that met no gate, and notes that came after a verdict.

    Where its current text is not the `same`, that text stays as it is; what was to be put in counts as settled.
    """
    match event:
        case SlowUpdateApplied(verdict=verdict) if not same:
            settled = evolve(verdict, action="unchanged", stale_from="")
            return evolve(event, skill=state.current.skill, verdict=settled)
        case SlowUpdateApplied(verdict=verdict):
            known = state.measured.get(event.candidate)
            value = None if known is None or verdict.candidate_value is None else known.value
            return evolve(event, verdict=evolve(verdict, candidate_value=value))
        case AppendixWritten() if not same:
            return evolve(event, skill=state.current.skill)
        case AppendixWritten():
            known = state.measured.get(event.skill.hash)
            value = None if known is None or event.value is None else known.value
            return evolve(event, value=value, previous_value=state.current.value)
        case _:
            return event


def _outcomes(state: AnyState, event: SkillScored) -> list[Outcome]:
    """What was run of an evaluation, here and where the same draw was begun."""
    begun = state.partial.get((event.skill, event.repeat)) if event.begun_at else None
    rows = {**(_NONE if begun is None else begun.rows), **state.rollouts.get(event.place, _NONE)}
    return [row.outcome for row in rows.values()]


def _shown(event: CandidateGated) -> tuple[str, str]:
    """The scores of a refused candidate as later analysts of its epoch read them."""
    values = (event.verdict.current_value, event.verdict.candidate_value)
    before, after = ("" if each is None else f"{each:.4f}" for each in values)
    return before, after


def _outcome(event: CandidateGated) -> tuple[bool, bool]:
    """Whether a verdict takes the candidate, and as the best; what a rule calls it is no difference."""
    return event.verdict.taken, event.verdict.new_best
