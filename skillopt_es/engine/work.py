"""
What a run is given and what it can be asked to do next: its recorded facts, its work, and evaluations.

Pure functions of the state say what is missing of an evaluation, and its sum; one of which too little was measured has
none, and then the run pauses.

Random draws, each from its own seed: batches, minibatches and comparison samples. Python's Mersenne Twister and its
shuffle, so that the same seed draws the same items as the original trainer. What is drawn goes into an event; nothing
is drawn twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.config import EMPTY, RunConfig, recorded_config
from skillopt_es.config.places import config_folder
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import Event, RolloutCompleted, RunPaused, RunStarted, SkillScored
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.places import BASELINE, FINAL_TEST, Place
from skillopt_es.events.values import (
    RETESTS,
    UNREADABLE,
    Batch,
    CallRef,
    Failed,
    Json,
    Measured,
    Outcome,
    Purpose,
    Role,
    Score,
    SkillTree,
    Split,
)
from skillopt_es.projections.state import AnyState, Partial, Standing, is_silent
from skillopt_es.skill.density import semantic_density


@frozen(kw_only=True)
class RunData:
    """A run's config and what was fixed when it started."""

    config: RunConfig
    started: RunStarted

    @property
    def selection_items(self) -> tuple[str, ...]:
        """The validation items that every gate uses."""
        return _first(self.started.splits.val, self.config.evaluation.sel_env_num)

    @property
    def test_items(self) -> tuple[str, ...]:
        """The test items, none when tests are off."""
        if not self.config.evaluation.eval_test:
            return ()
        return _first(self.started.splits.test, self.config.evaluation.test_env_num)

    @property
    def workers(self) -> Mapping[Role, int]:
        """How many calls of each role may be in flight."""
        workers = self.config.env.workers
        return {"target": workers, "optimizer": self.config.gradient.analyst_workers, "judge": workers}

    def passes(self, outcome: Measured) -> bool:
        """Whether a task counts as solved: the whole of it, or any part where partial ones pass."""
        # Any part of the task, but not what rounding leaves of nothing.
        return outcome.hard >= 1e-9 if self.config.evaluation.partial_passes else outcome.passed

    def gate_value(self, score: Score, skill: SkillTree) -> float:
        """The number that the gate compares: the chosen score, and the text's own bonus where that is on."""
        return self.worth(score.hard, score.soft) + self.bonus(skill)

    def worth(self, hard: float, soft: float) -> float:
        """What a hard and a soft score count together."""
        evaluation = self.config.evaluation
        if evaluation.gate_metric == "hard":
            return hard
        if evaluation.gate_metric == "soft":
            return soft
        weight = evaluation.gate_mixed_weight
        return (1 - weight) * hard + weight * soft

    def bonus(self, skill: SkillTree) -> float:
        """What a text itself adds to its value."""
        evaluation = self.config.evaluation
        if not evaluation.use_semantic_density:
            return 0.0
        return evaluation.semantic_density_weight * semantic_density(skill.text, evaluation.words)


def _first(items: tuple[str, ...], count: int) -> tuple[str, ...]:
    return items[:count] if count else items


def recorded_run(started: RunStarted, folder: Path, overrides: Mapping[str, Json] = EMPTY) -> RunData:
    """The run that a log's first event describes, with the settings that resuming it has changed."""
    place = config_folder(started.folder, folder)
    try:
        config = recorded_config(dict(started.config), place, limit_chosen=started.limit_chosen)
    except ConfigError as error:
        raise LogDamaged(f"the recorded config cannot be read by this version: {error.message}") from error
    if overrides:  # a wrong one is the user's mistake, not the log's
        config = recorded_config(dict(started.config), place, overrides, limit_chosen=started.limit_chosen)
    return RunData(config=config, started=started)


@frozen(kw_only=True)
class Evaluation:
    """
    A skill tried on a list of items, to be added up when all are there, or when it is `stopped`.

    Where it is to be told how `near` wrong answers came to right ones, each result says it.
    `draw` counts tries of the whole list. The `carried` items are not tried: they would see what they saw under another
    skill, so they have the results that are `carried_from` that one. One that decides `by_item`, by no mean, goes on
    without a few items that fail for a reason of their own.
    """

    place: Place = field(converter=Place)
    purpose: Purpose
    split: Split
    items: tuple[str, ...]
    skill: SkillTree
    seed: int
    repeat: int = 1
    stopped: bool = False
    carried: tuple[str, ...] = ()
    carried_from: str = ""
    by_item: bool = False
    near: bool = False


@frozen(kw_only=True)
class Unit:
    """
    One item to be tried under one skill; what is drawn for it is drawn from the seed.

    The first `judged` questions to the judge about its answer were of no use, and are not put again.
    """

    place: Place = field(converter=Place)
    purpose: Purpose
    item: str
    skill: SkillTree
    seed: int
    judged: int = 0
    near: bool = False


@frozen
class Rollouts:
    """Units that may all run at once; their results are recorded in this order."""

    units: tuple[Unit, ...]


@frozen(kw_only=True)
class Rivals:
    """Two skills' answers to one item, to be compared by a judge; None where an attempt gave none."""

    place: Place = field(converter=Place)
    item: str
    candidate: str
    current: str
    answer: CallRef | None
    other: CallRef | None
    judged: int = 0


@frozen
class Comparisons:
    """Answers that may all be compared at once; what the judge says is recorded in this order."""

    pairs: tuple[Rivals, ...]


@frozen
class Questions:
    """Questions to the optimizer that do not depend on each other: jobs whose types the algorithm knows."""

    jobs: tuple[object, ...]


@frozen
class AddUp:
    """Add up a finished evaluation."""

    evaluation: Evaluation


@frozen
class Decide:
    """A decision of the algorithm, by its name; one that reads trajectories back waits until they are written."""

    name: str
    reads_back: bool = False


Work = Rollouts | Comparisons | Questions | AddUp | Decide


@frozen(kw_only=True)
class Contest:
    """A candidate and who it has to beat, and the places of what is drawn of each for this comparison."""

    candidate: SkillTree
    standing: Standing
    candidate_place: Place = field(converter=Place)
    current_place: Place = field(converter=Place)

    @property
    def current(self) -> SkillTree:
        """The text that it has to beat."""
        return self.standing.skill

    def against(self, standing: Standing) -> Contest:
        """The same candidate against the best text; what is drawn of that has a place below this one."""
        return evolve(self, standing=standing, current_place=self.current_place.best)


def selection(run: RunData, place: Place, skill: SkillTree, *, repeat: int = 1) -> Evaluation:
    """The evaluation of a skill on the selection items; a further draw has a place and a seed of its own."""
    return Evaluation(
        place=place.drawn(repeat),
        purpose="selection",
        split="val",
        items=run.selection_items,
        skill=skill,
        seed=draw_seed(run.config.train.seed, repeat),
        repeat=repeat,
    )


def measure(state: AnyState, evaluations: Sequence[Evaluation]) -> Work | None:
    """The missing rollouts of all these evaluations at once, then their sums one by one; None when all are scored."""
    units = tuple(unit for evaluation in evaluations for unit in missing(state, evaluation))
    if units:
        return Rollouts(units)
    # All are run before the first is added up, so that evaluations run side by side.
    for evaluation in evaluations:
        if evaluation.place not in state.scored:
            return AddUp(evaluation)
    return None


def missing(state: AnyState, evaluation: Evaluation) -> list[Unit]:
    """The rollouts of an evaluation that the state does not hold yet."""
    if evaluation.place in state.scored:
        return []
    done = rows_of(state, evaluation)
    return units_of(
        state, evaluation, [item for item in evaluation.items if item not in done and item not in evaluation.carried]
    )


def units_of(state: AnyState, evaluation: Evaluation, items: Sequence[str]) -> list[Unit]:
    """These items of an evaluation, to be tried."""
    return [
        Unit(
            place=evaluation.place,
            purpose=evaluation.purpose,
            item=item,
            skill=evaluation.skill,
            seed=evaluation.seed,
            judged=state.misjudged.get(evaluation.place.of_item(item), 0),
            near=evaluation.near,
        )
        for item in items
    ]


def rows_of(state: AnyState, evaluation: Evaluation) -> Mapping[str, RolloutCompleted]:
    """What was run of an evaluation: here, and where the same draw was begun."""
    here: Mapping[str, RolloutCompleted] = state.rollouts.get(evaluation.place, {})
    begun = begun_draw(state, evaluation)
    return here if begun is None else {**begun.rows, **here}


def begun_draw(state: AnyState, evaluation: Evaluation) -> Partial | None:
    """The part of an evaluation that was run at another place, where it ended early."""
    if evaluation.purpose != "selection":
        return None
    return state.partial.get((evaluation.skill.hash, evaluation.repeat))


def unmeasured(state: AnyState, run: RunData, skills: Sequence[tuple[Place, SkillTree]]) -> list[Evaluation]:
    """Selection evaluations for those of the skills (by place) that have never been measured."""
    return [selection(run, place, skill) for place, skill in skills if skill.hash not in state.measured]


def fresh_evaluation(state: AnyState, run: RunData) -> list[Evaluation]:
    """
    The draw of the current text that decides nothing, where it is wanted and missing: it states the text's score.

    By a rule that draws again only what varies none is made while nothing ever has: it would say the same once more.
    """
    current = state.current
    assert current is not None
    known = state.measured.get(current.skill.hash)
    if not run.config.evaluation.fresh_score or known is None or known.fresh is not None or current.stale_from:
        return []
    if run.config.evaluation.gate_rule in RETESTS and not state.flipped:
        return []
    at = _origin_place(current, run).reported
    # One that was made of fewer items tells nothing of all of them.
    return [selection(run, Place(known.place).reported if at in state.scored else at, current.skill, repeat=0)]


def _origin_place(current: Standing, run: RunData) -> Place:
    """The place at which a text became the current one."""
    if current.origin.kind == "initial_skill":
        return BASELINE
    if current.origin.kind in ("slow_update", "slow_update_placeholder"):
        return Place.of_epoch(current.origin.epoch).slow
    return Place.of_step((current.step - 1) // run.started.steps_per_epoch + 1, current.step)


def test_evaluations(state: AnyState, run: RunData) -> list[Evaluation]:
    """The initial, best and final skill on the test items, each text once."""
    if not run.test_items:
        return []
    assert state.best is not None
    assert state.current is not None
    named = (("initial", run.started.skill), ("best", state.best.skill), ("final", state.current.skill))
    texts: dict[str, tuple[str, SkillTree]] = {}
    for name, skill in named:
        # One text has one test score: it is tried under the first of its names.
        texts.setdefault(skill.hash, (name, skill))
    return [
        Evaluation(
            place=FINAL_TEST / name,
            purpose="test",
            split="test",
            items=run.test_items,
            skill=skill,
            seed=run.config.train.seed,
        )
        for name, skill in texts.values()
    ]


def score(evaluation: Evaluation, state: AnyState, run: RunData) -> Event:
    """The sum of an evaluation, or a pause when too much of it was not measured."""
    rows, begun = rows_of(state, evaluation), begun_draw(state, evaluation)
    not_run = tuple(item for item in evaluation.items if item not in rows) if evaluation.stopped else ()
    carried = {item: state.measured[evaluation.carried_from].items[item] for item in evaluation.carried}
    found: dict[str, Outcome] = {**carried, **{item: row.outcome for item, row in rows.items()}}
    outcomes = [found[item] for item in evaluation.items if not not_run or item in rows]
    total = mean_score(outcomes) if not not_run else most_score(outcomes, len(not_run))
    rollout = run.config.rollout
    measured = sum(isinstance(outcome, Measured) for outcome in outcomes)
    # A mean over nothing would be 0, and a 0 decides; where an evaluation was stopped its bound stands without any.
    nothing = measured == 0 and not not_run
    split, items = evaluation.split, len(evaluation.items)
    if evaluation.by_item:
        too_many = (nothing or _are_too_many(outcomes, run, split, items)) and not _are_few(outcomes, _OF_THE_ITEM)
    else:
        too_many = nothing or too_many_unmeasured(outcomes, run, split, items)
    if too_many:
        return _unmeasured_pause(evaluation, rows, total, run)
    silent = [item for item in evaluation.items if item in rows and is_silent(rows[item])]
    # One silent item is no sign of an outage.
    if len(silent) > 1 and len(silent) > rollout.max_unanswered_share * measured:
        return _unanswered_pause(evaluation, rows[silent[0]], len(silent), measured)
    by_type: dict[str, list[Outcome]] = {}
    # Where not all items were run only the bound is known, and no type's own mean.
    for item in () if not_run else evaluation.items:
        kind = rows[item].task_type if item in rows else state.types[item]
        by_type.setdefault(kind or "other", []).append(found[item])
    return SkillScored(
        place=evaluation.place,
        purpose=evaluation.purpose,
        split=evaluation.split,
        skill=evaluation.skill.hash,
        score=total,
        value=run.gate_value(total, evaluation.skill) if evaluation.purpose == "selection" else None,
        by_type={name: mean_score(group) for name, group in sorted(by_type.items())},
        repeat=evaluation.repeat,
        seed=evaluation.seed,
        exact=not not_run,
        not_run=not_run,
        begun_at="" if begun is None else begun.place,
        carried=evaluation.carried,
        carried_from=evaluation.carried_from,
    )


_FEW = 3  # more are rather a sign of something that is broken
_OF_THE_ITEM = frozenset({"crash", "data", "grader", "invalid_reply", "truncated", "worker", UNREADABLE})


def too_many_unmeasured(outcomes: Sequence[Outcome], run: RunData, split: Split, items: int) -> bool:
    """
    Whether too little of so many items was measured for a mean.

    A few items on which every try of the agent crashed are left out: the next resume would meet them as well.
    """
    few = _are_few(outcomes, frozenset({"crash"})) and 2 * len(_missing_of(outcomes)) < len(outcomes)
    return _are_too_many(outcomes, run, split, items) and not few


def _are_too_many(outcomes: Sequence[Outcome], run: RunData, split: Split, items: int) -> bool:
    _, most = _largest_share(run, split)
    return len(_missing_of(outcomes)) > most * items


def _are_few(outcomes: Sequence[Outcome], kinds: Set[str]) -> bool:
    """Whether few could not be measured, and all of these for such reasons."""
    left = _missing_of(outcomes)
    return len(left) <= _FEW and all(isinstance(outcome, Failed) and outcome.kind in kinds for outcome in left)


def _missing_of(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if not isinstance(outcome, Measured)]


def _largest_share(run: RunData, split: Split) -> tuple[str, float]:
    """The largest share of a split's items that may be without a grade, after the key that sets it."""
    rollout = run.config.rollout
    if split == "train":
        return "rollout.max_failed_share_train", rollout.max_failed_share_train
    return "rollout.max_failed_share", rollout.max_failed_share


def unmeasured_hint(outcomes: Iterable[Outcome], run: RunData, split: Split = "val") -> str:
    """What to do where too many results could not be measured, and which settings decide how many are too many."""
    kinds = {outcome.kind for outcome in outcomes if isinstance(outcome, Failed)}
    key, now = _largest_share(run, split)
    said = []
    if UNREADABLE in kinds:
        said.append("look at what the judge replied; each resume asks it again about these items")
    if "crash" in kinds:
        said.append("with `--set rollout.crashed=zero` an attempt whose every try crashed scores 0")
    said.append(f"with `--set {key}=N` (now {now:g}) a larger share of the items may be without a grade")
    return "; ".join(said)


def _unmeasured_pause(
    evaluation: Evaluation, rows: Mapping[str, RolloutCompleted], total: Score, run: RunData
) -> RunPaused:
    kinds: dict[str, int] = {}
    example = ""
    for item in (item for item in evaluation.items if item in rows):
        outcome = rows[item].outcome
        if not isinstance(outcome, Measured):
            kind = getattr(outcome, "kind", "not_run")
            kinds[kind] = kinds.get(kind, 0) + 1
            example = example or f"{item}: {getattr(outcome, 'message', '')}"
    what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return RunPaused(
        reason="unmeasured",
        message=f"{total.unmeasured} of {len(evaluation.items)} items at {evaluation.place} could not be measured "
        f"({what}); first, {example}",
        hint=unmeasured_hint((row.outcome for row in rows.values()), run, evaluation.split),
    )


def _unanswered_pause(evaluation: Evaluation, first: RolloutCompleted, silent: int, tried: int) -> RunPaused:
    """One item without a word is the model's own 0; when nearly all are, nobody can tell it from a broken endpoint."""
    return RunPaused(
        reason="unanswered",
        message=f"{silent} of {tried} items at {evaluation.place} had no answer in them (first, {first.item}: "
        f"{first.detail or first.failure}): the endpoint does not work, or the skill silences the model. These items "
        "are tried again; with `--set rollout.max_unanswered_share=1` what is still empty then counts as the model's 0",
    )


def most_score(outcomes: list[Outcome], not_run: int) -> Score:
    """The most that the means can be where so many items were not run."""
    known = mean_score(outcomes)
    measured = sum(isinstance(outcome, Measured) for outcome in outcomes)
    hard, soft = ((measured * value + not_run) / (measured + not_run) for value in (known.hard, known.soft))
    return Score(hard=hard, soft=soft, measured=measured, unmeasured=known.unmeasured)


def mean_score(outcomes: list[Outcome]) -> Score:
    """The means over what was measured; all zero with `measured` 0 when nothing was."""
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measured)]
    count = len(measured)
    return Score(
        hard=sum(outcome.hard for outcome in measured) / count if count else 0.0,
        soft=sum(outcome.soft for outcome in measured) / count if count else 0.0,
        measured=count,
        unmeasured=len(outcomes) - count,
    )


def shuffled(items: Sequence[str], seed: int) -> list[str]:
    """A copy in the order that this seed gives."""
    order = list(items)
    random.Random(seed).shuffle(order)  # noqa: S311  # reproducible draws, not secrets
    return order


def some_of(names: Sequence[str], seed: str) -> tuple[str, ...]:
    """A part of two names or more that this seed draws: neither all nor none, each such part as likely."""
    bits = random.Random(seed).randrange(1, 2 ** len(names) - 1)  # noqa: S311  # reproducible draws, not secrets
    return tuple(name for at, name in enumerate(names) if bits >> at & 1)


def epoch_batches(items: Sequence[str], *, epoch: int, seed: int, batch_size: int, batches: int) -> tuple[Batch, ...]:
    """An epoch's batches: consecutive slices of the shuffled items; a slice that would be empty is drawn anew."""
    # The original's numbers, here and below: the same seed must draw the same items.
    epoch_seed = seed + epoch * 1000
    order = shuffled(items, epoch_seed)
    planned = []
    for index in range(batches):
        batch_seed = epoch_seed + index + 1
        chosen = order[index * batch_size : (index + 1) * batch_size]
        if not chosen:
            chosen = shuffled(order, batch_seed)[:batch_size]
        planned.append(Batch(seed=batch_seed, items=tuple(chosen)))
    return tuple(planned)


def comparison_seed(seed: int, epoch: int) -> int:
    """The seed of everything that is drawn for an epoch's comparison."""
    return seed + epoch * 2000


def draw_seed(seed: int, draw: int) -> int:
    """The seed of one of a text's draws on the validation items; the first one's is the run's, as it always was."""
    # Far away from all other seeds of a run, which are some thousands apart.
    return seed + (draw - 1) * 10_000_000


def comparison_sample(items: Sequence[str], *, epoch: int, seed: int, count: int) -> tuple[str, ...]:
    """The items on which an epoch's first and last skill are compared."""
    return tuple(shuffled(items, comparison_seed(seed, epoch))[:count])


def comparison_candidates(items: Sequence[str], *, epoch: int, seed: int, compared: Sequence[str]) -> tuple[str, ...]:
    """The items not compared yet, in the order in which they are drawn when more are wanted."""
    seen = set(compared)
    return tuple(item for item in shuffled(items, comparison_seed(seed, epoch)) if item not in seen)


def chunks(items: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Consecutive groups of at most `size`."""
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
