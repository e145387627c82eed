"""What a skill reaches on whole splits: tried, recorded as a pass unless the log has it already, and added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.attempts import run_rollouts
from skillopt_es.engine.budget import Reached
from skillopt_es.engine.evaluations import mean_score, score, units_of
from skillopt_es.engine.evidence import RecordedCalls
from skillopt_es.engine.loop import Running, waiting_for
from skillopt_es.engine.work import Evaluation, Rollouts
from skillopt_es.errors import AwaitingAnswers, BackendError, BudgetReached, Interrupted
from skillopt_es.events.catalog import RolloutCompleted, RunPaused, SkillScored
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Measured, Score, Split
from skillopt_es.ports import Unanswered
from skillopt_es.projections.prices import prices_in
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.usage import UsageSums, usage_of

Progress = Callable[[Split, int, int], None]


@frozen(kw_only=True)
class SplitResult:
    """
    One split: its score, or None and the `pause` that says why there is none; and every item's row.

    `usage` is of the calls behind the result, those included that failed just now; `made` of them were made just now.
    """

    split: Split
    place: str
    score: Score | None
    by_type: Mapping[str, Score]
    pause: RunPaused | None
    rows: tuple[RolloutCompleted, ...]
    usage: UsageSums
    made: int

    @property
    def problem(self) -> str:
        """Why there is no score; empty when there is one."""
        return "" if self.pause is None else self.pause.message

    @property
    def measured(self) -> int:
        """How many items were measured."""
        return sum(isinstance(row.outcome, Measured) for row in self.rows)

    @property
    def unmeasured(self) -> int:
        """How many items could not be measured."""
        return len(self.rows) - self.measured


class Scoring:
    """Scores a skill on splits and records what was found."""

    def __init__(self, config: RunConfig, work: Running) -> None:
        self._config = config
        self._trainer = work.trainer
        self._rollouts = work.rollouts
        self._writer = work.writer
        self._reached = work.reached

    async def results(self, evaluations: Sequence[Evaluation], progress: Progress) -> list[SplitResult]:
        """One result an evaluation; what stops the work, or keeps a result from being a score, is recorded."""
        try:
            found = [await self._result(evaluation, progress) for evaluation in evaluations]
        except (BackendError, Interrupted) as error:
            reached = self._reached() if isinstance(error, Interrupted) else None
            await self._trainer.append([_paused(error, reached)])
            await self._trainer.settled()
            if reached is not None:
                # The pause is on the disk by now: the error may end the process.
                raise BudgetReached(reached.message, key=reached.key) from None
            raise
        except Unanswered as waiting:
            message = waiting_for(waiting.questions)
            await self._trainer.append([RunPaused(reason="handoff", message=message)])
            await self._trainer.settled()
            raise AwaitingAnswers(message) from None
        pauses = [result.pause for result in found if result.pause is not None]
        if pauses:
            message = "; ".join(pause.message for pause in pauses)
            await self._trainer.append([RunPaused(reason=pauses[0].reason, message=message)])
        await self._trainer.settled()
        return found

    async def _result(self, evaluation: Evaluation, progress: Progress) -> SplitResult:
        journaled, first = len(self._writer.journal), evaluation.place
        standing = standing_rows(self._trainer.state, self._config, evaluation)
        rows, texts = await (self._graded(evaluation, standing) if standing else self._tried(evaluation, progress))
        evaluation = evolve(evaluation, place=await self._recorded(evaluation.place, rows, texts))
        state = self._trainer.state
        event = score(evaluation, state, self._config)
        scored = isinstance(event, SkillScored)
        if scored and evaluation.place not in state.scored:
            await self._trainer.append([event])
        used = self._calls(rows, journaled, first)
        return SplitResult(
            split=evaluation.split,
            place=first,
            score=mean_score([row.outcome for row in rows]) if scored else None,
            by_type=event.by_type if isinstance(event, SkillScored) else {},
            pause=event if isinstance(event, RunPaused) else None,
            rows=tuple(rows),
            usage=usage_of(used, prices_in(self._config.resolved)).total,
            made=sum(row.n > journaled for row in used),
        )

    async def _graded(
        self, evaluation: Evaluation, standing: Sequence[RolloutCompleted]
    ) -> tuple[list[RolloutCompleted], list[str]]:
        """The rows of a score that stands, their recorded answers graded anew; nobody is asked."""
        measured = evolve(evaluation, items=tuple(row.item for row in standing if isinstance(row.outcome, Measured)))
        calls = RecordedCalls(self._writer.journal, self._writer.log)
        texts: list[str] = []
        graded: dict[str, RolloutCompleted] = {}
        async for emission in run_rollouts(
            Rollouts(tuple(units_of(self._trainer.state, measured, measured.items))),
            self._config,
            evolve(self._rollouts, calls=calls),
        ):
            graded |= {event.item: event for event in emission.events if isinstance(event, RolloutCompleted)}
            texts += emission.texts
        # Fewer results than were asked for mean that the run was stopped.
        if len(graded) < len(measured.items):
            raise Interrupted("stopped as asked; everything that was answered is recorded")
        rows = [graded.get(row.item, row) for row in standing]
        kept = zip(rows, standing, strict=True)
        # An answer that cannot be graded again keeps its grade.
        return [new if isinstance(new.outcome, Measured) else old for new, old in kept], texts

    async def _tried(self, evaluation: Evaluation, progress: Progress) -> tuple[list[RolloutCompleted], list[str]]:
        """Every item's row; the journal answers what was asked before."""
        units = tuple(units_of(self._trainer.state, evaluation, evaluation.items))
        rows: list[RolloutCompleted] = []
        texts: list[str] = []
        async for emission in run_rollouts(Rollouts(units), self._config, self._rollouts):
            rows += [event for event in emission.events if isinstance(event, RolloutCompleted)]
            texts += emission.texts
            progress(evaluation.split, len(rows), len(units))
        # Fewer results than were asked for mean that the run was stopped.
        if len(rows) < len(units):
            raise Interrupted("stopped as asked; everything that was answered is recorded")
        return rows, texts

    async def _recorded(self, first: Place, rows: Sequence[RolloutCompleted], texts: Sequence[str]) -> str:
        """The place at which the log has exactly these rows; they are appended if there is none."""
        known = self._trainer.state.rollouts
        places = passes(self._trainer.state, first)
        for place in places:
            if list(known[place].values()) == [evolve(row, place=place) for row in rows]:
                return place
        place = first.graded(len(places) + 1)
        await self._trainer.append([evolve(row, place=place) for row in rows], texts)
        return place

    def _calls(self, rows: Sequence[RolloutCompleted], journaled: int, place: str) -> list[CallRow]:
        journal = self._writer.journal
        used = {row.n: row for ref in _refs(rows) for row in journal.attempts(ref.slot) if row.digest == ref.digest}
        if self._config.target_model.gateway:  # what its agent has asked is spent there, and no event names it
            attempts = {row.call.slot for row in used.values()}
            used.update({row.n: row for row in journal.read() if Place(row.call.slot).attempt in attempts})
        failed = (row for row in journal.read(journaled) if row.call.outcome == "failed")
        used.update({row.n: row for row in failed if Place(row.call.slot).evaluation == place})
        return list(used.values())


def _paused(error: BackendError | Interrupted, reached: Reached | None) -> RunPaused:
    if reached is not None:
        return RunPaused(reason="budget", message=reached.message, key=reached.key)
    if isinstance(error, Interrupted):
        return RunPaused(reason="interrupt", message=error.message)
    return RunPaused(reason="error", message=error.message, hint=error.hint)


def _refs(rows: Sequence[RolloutCompleted]) -> list[CallRef]:
    return [ref for row in rows for ref in row.calls]


# --- which scores a log has: of which draw, graded how often, and the one that stands ---------------------------------


def passes(state: AnyState, first: Place) -> list[Place]:
    """Where the results of a draw are recorded: at its own place, and again when graded otherwise."""
    return [place for place in map(Place, state.rollouts) if place.is_grading_of(first)]


def standing_rows(state: AnyState, config: RunConfig, evaluation: Evaluation) -> tuple[RolloutCompleted, ...]:
    """The rows behind the newest score of this evaluation; none unless there is one, by the settings of now."""
    for place in reversed(passes(state, evaluation.place)):
        rows = state.rollouts[place]
        if place in state.scored and tuple(rows) == evaluation.items:
            found = score(evolve(evaluation, place=place), state, config)
            return tuple(rows.values()) if isinstance(found, SkillScored) else ()
    return ()


def next_draw(state: AnyState, journal: Journal, evaluation: Evaluation) -> Evaluation:
    """A draw of its own: the newest one as long as it has no score, else one that nobody has begun."""
    first = evaluation.place
    names = [*state.rollouts, *(row.call.slot for row in journal.read())]
    newest = max((Place(name).repeat for name in names if first.holds(name)), default=1)
    if any(place in state.scored for place in passes(state, first.drawn(newest))):
        newest += 1
    return evolve(evaluation, place=first.drawn(newest))
