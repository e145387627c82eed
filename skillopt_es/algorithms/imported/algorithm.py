"""
A run that the original trained, as an algorithm: it folds as a classic one does, and can be read but not continued.

`replay --check` derives again what its evidence still decides, and counts the rest. There is no journal and there are
no splits, so batches, proposals, merges and rankings cannot be made again. Verdicts follow from scores, scores from
results, candidates from edits, and guidance from its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from attrs import define, field
from attrs import evolve as replace

from skillopt_es.algorithms.classic.algorithm import CLASSIC
from skillopt_es.algorithms.classic.phases import open_step
from skillopt_es.algorithms.classic.state import Classic, ClassicState, classic, proposals_of
from skillopt_es.algorithms.imported.original_edits import (
    applied_by_original,
    guided_by_original,
    rewritten_by_original,
)
from skillopt_es.engine.algorithm import Algorithm, Refusal
from skillopt_es.engine.algorithms import evolve
from skillopt_es.engine.differences import ILLEGAL, CheckReport, Mismatch, all_of, came_out_otherwise, cannot_go_on
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    Event,
    GapFound,
    LearningRateChosen,
    MetaSkillWritten,
    PatchesMerged,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    RunCompleted,
    RunStarted,
    SkillRewritten,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepSkipped,
)
from skillopt_es.events.values import Draft, Edit, Proposal, Score, text_digest
from skillopt_es.skill.appendix import appendix_notes, with_appendix
from skillopt_es.skill.edits import apply_edits
from skillopt_es.skill.regions import with_slow_guidance, with_slow_placeholder
from skillopt_es.skill.rewriting import repaired

# Two sums of one column in another order differ far less; a score that is not of these rows differs by more.
_NEAR = 1e-6
_UNKNOWABLE: Mapping[type[Event], str] = {
    PatchProposed: "proposals",
    AppendixExtended: "lists of reminder notes",
    AppendixConsolidated: "lists of reminder notes",
    PatchesMerged: "merges",
    EditsRanked: "rankings",
    LearningRateChosen: "learning rates",
    StepSkipped: "skipped steps",
    SlowUpdateProposed: "guidance texts",
    MetaSkillWritten: "meta skills",
    SkillRewritten: "rewritten skills",
}


def check_imported(started: RunStarted, others: Iterator[Recorded], folder: Path) -> CheckReport:
    """Walks a log; nothing in its folder is needed for that."""
    walk = Recheck(classic(evolve(None, started)))
    walk.run(others)
    return CheckReport(
        events=walk.events,
        decisions=walk.derived,
        rollouts=walk.rollouts,
        status=walk.state.status,
        mismatches=all_of(walk.problems),
        unchecked=walk.unchecked,
    )


@define
class Recheck:
    """The walk over an imported run's events, after the first one."""

    state: ClassicState
    events: int = 1
    derived: int = 0
    rollouts: int = 0
    unchecked: dict[str, int] = field(factory=dict)
    problems: list[Mismatch] = field(factory=list)

    def run(self, log: Iterable[Recorded]) -> None:
        """Walks to the end; what does not follow is noted and taken as it is recorded."""
        for recorded in log:
            try:
                problem = self._checked(recorded.event)
                if problem:
                    self.problems.append(came_out_otherwise(recorded, said=problem))
                self.state = classic(evolve(self.state, recorded.event))
            except ILLEGAL as error:
                if not self.problems:  # in a log whose events all followed so far, it is ours to fix
                    raise
                self.problems.append(cannot_go_on(recorded, error))
                return
            self.events += not problem

    def _checked(self, event: Event) -> str:
        """What is wrong with an event, if anything."""
        if isinstance(event, RolloutCompleted):
            self.rollouts += 1
        elif isinstance(event, GapFound):
            self._skip("gaps")
        elif type(event) in _UNKNOWABLE:
            self._skip(_UNKNOWABLE[type(event)])
        check = _CHECKS.get(type(event))
        return "" if check is None else check(self, event)

    def _skip(self, what: str) -> str:
        self.unchecked[what] = self.unchecked.get(what, 0) + 1
        return ""

    def _same(self, what: str, recorded: object, wanted: object) -> str:
        self.derived += 1
        return "" if recorded == wanted else f"{what} is {recorded}, not {wanted}"

    def _same_text(self, recorded: str, *wanted: str) -> str:
        """That a text is one of those that follow, by our rules or by the original's."""
        self.derived += 1
        return "" if recorded in wanted else unlike(recorded, wanted[-1])

    def _scored(self, event: SkillScored) -> str:
        rows = self.state.rollouts.get(event.place)
        if not rows:
            return self._skip("scores without results")
        mean = mean_score([row.outcome for row in rows.values()])
        self.derived += 1
        if abs(mean.hard - event.score.hard) < _NEAR and abs(mean.soft - event.score.soft) < _NEAR:
            return ""
        return f"the results at {event.place} have {_means(mean)}, recorded is {_means(event.score)}"

    def _built(self, event: CandidateBuilt) -> str:
        step = open_step(self.state).step
        if step.ranked is None:
            return self._skip("candidates without their edits")
        known, parent, text = proposals_of(step), self.state.current.skill, event.candidate.text
        chosen = [known[name] for name in step.ranked.chosen]
        edits = [each for each in chosen if isinstance(each, Edit)]
        if len(edits) == len(chosen):
            texts = [apply_edits(parent, edits, close_gaps=close)[0].text for close in (True, False)]
            texts.append(applied_by_original(parent.text, edits))
        else:
            written = whole_text(step.rewritten, chosen)
            if written is None or text == parent.text:
                return self._skip("candidates of rewrites")
            texts = [repaired(parent.text, written).text, rewritten_by_original(written)]
        if event.notes:
            texts = [with_appendix(each, step.notes) for each in texts]
        elif appendix_notes(text) != appendix_notes(parent.text) and text not in texts:
            return self._skip("candidates with reminder notes")
        return self._same_text(text, *texts)

    def _gated(self, event: CandidateGated) -> str:
        verdict = event.verdict
        if verdict.action == "force_accept":
            return self._skip("forced verdicts")
        value, current, best = verdict.candidate_value, verdict.current_value, verdict.best_value
        if current is None or value is None:
            return self._skip("verdicts without the score to beat")
        if value > current and best is None:
            return self._skip("verdicts without the best score")
        return self._same("the verdict", verdict.action, _by_values(value, current, best))

    def _slow(self, event: SlowUpdateApplied) -> str:
        text = self.state.current.skill.text
        match event.verdict.action:
            case "placeholder":
                return self._same_text(event.skill.text, with_slow_placeholder(text))
            case "no_content" | "reject":
                wrong = self._same_text(event.skill.text, text)
            case _:
                ours, theirs = with_slow_guidance(text, event.guidance), guided_by_original(text, event.guidance)
                wrong = self._same_text(event.skill.text, ours, theirs)
        return wrong or self._slow_verdict(event)

    def _slow_verdict(self, event: SlowUpdateApplied) -> str:
        verdict = event.verdict
        if verdict.action in ("no_content", "force_accept"):
            return ""
        value, current, best = verdict.candidate_value, verdict.current_value, verdict.best_value
        if value is None or current is None or best is None:
            return self._skip("verdicts without the score to beat")
        return self._same("the verdict", verdict.action, _by_values(value, current, best))

    def _notes_written(self, event: AppendixWritten) -> str:
        return self._same_text("\n".join(appendix_notes(event.skill.text)), "\n".join(event.notes))

    def _promoted(self, event: BestPromoted) -> str:
        if event.previous_value is None:
            return self._skip("verdicts without the best score")
        return self._same("that the final skill is better", True, event.value > event.previous_value)

    def _completed(self, event: RunCompleted) -> str:
        return self._same("the best skill", event.best, self.state.best.skill.hash)


def _by_values(value: float, current: float, best: float | None) -> str:
    """The verdict that these values lead to."""
    if value <= current:
        return "reject"
    return "accept_new_best" if best is not None and value > best else "accept"


def whole_text(rewritten: SkillRewritten | None, chosen: Sequence[Proposal]) -> str | None:
    """The whole text that takes the skill's place; None when it is not there."""
    if rewritten is not None:
        return rewritten.text
    return next((each.text for each in chosen if isinstance(each, Draft)), None)


def unlike(recorded: str, wanted: str) -> str:
    """Two texts by name, and the first line that is not the same in both: whole skills are too long to read."""
    ours, theirs = recorded.split("\n"), wanted.split("\n")
    pairs = zip_longest(ours, theirs)
    number = next(index for index, (one, other) in enumerate(pairs) if one != other)
    lines = [f"{each[number]!r:.60}" if number < len(each) else "not there" for each in (ours, theirs)]
    names = [text_digest(text)[:12] for text in (recorded, wanted)]
    return f"the text is {names[0]}, not {names[1]}: line {number + 1} is {lines[0]}, not {lines[1]}"


def _means(score: Score) -> str:
    return f"hard {score.hard:.6f}, soft {score.soft:.6f}"


_CHECKS: Mapping[type[Event], Callable[..., str]] = {
    SkillScored: Recheck._scored,
    CandidateBuilt: Recheck._built,
    CandidateGated: Recheck._gated,
    SlowUpdateApplied: Recheck._slow,
    AppendixWritten: Recheck._notes_written,
    BestPromoted: Recheck._promoted,
    RunCompleted: Recheck._completed,
}


_READ_ONLY = Refusal(
    "was imported from results of skillopt: it can be read, but not continued",
    hint="`skillopt-es export` writes its skill, from which a new run can start",
)

IMPORTED: Algorithm[Classic] = replace(
    CLASSIC,
    name="imported",
    commands=replace(
        CLASSIC.commands,
        check=check_imported,
        refuses={
            "start": Refusal("is what the original trained", hint="`skillopt-es import` reads its results"),
            "resume": _READ_ONLY,
            "fork": _READ_ONLY,
            "score": Refusal(
                "was imported: its settings are another trainer's, so its target cannot be asked from here",
                hint="`skillopt-es export` writes its skill, and `skillopt-es eval CONFIG --skill FILE` scores that",
            ),
            "calibrate": Refusal(
                "was imported: which items are for validation is not in its log",
                hint="`skillopt-es eval` scores its skill on your own data",
            ),
            "regate": Refusal("was imported: its verdicts are not this trainer's, so its gate cannot be asked anew"),
            "rescore": Refusal("was imported: its log has no answers that could be graded again"),
            "erase": Refusal(
                "was imported, and its log has no calls from which an item's texts could be told",
                hint="delete it, and import a folder from which they were removed",
            ),
        },
    ),
)
