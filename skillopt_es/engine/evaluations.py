"""
Evaluations: what is missing of one, by the state, and its sum.

One of which too little was measured has no sum, and then the run pauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import draw_seed
from skillopt_es.engine.run_config import tested_items
from skillopt_es.engine.work import AddUp, Evaluation, Rollouts, Unit, Work
from skillopt_es.events.catalog import Event, RolloutCompleted, RunPaused, SkillScored
from skillopt_es.events.places import BASELINE, FINAL_TEST, Place
from skillopt_es.events.values import RETESTS, UNREADABLE, Failed, Measured, Outcome, Score, SkillTree, Split
from skillopt_es.projections.state import AnyState, Partial, is_silent


def selection(
    config: RunConfig, place: Place, skill: SkillTree, items: tuple[str, ...], *, repeat: int = 1
) -> Evaluation:
    """The evaluation of a skill on validation items; a further draw has a place and a seed of its own."""
    return Evaluation(
        place=place.drawn(repeat),
        purpose="selection",
        split="val",
        items=items,
        skill=skill,
        seed=draw_seed(config.train.seed, repeat),
        repeat=repeat,
    )


def training(place: Place, skill: SkillTree, items: tuple[str, ...], seed: int) -> list[Evaluation]:
    """The evaluation of a skill on training items; none where all of them were retracted."""
    found = Evaluation(place=place, purpose="train", split="train", items=items, skill=skill, seed=seed)
    return [found] if items else []


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


def unmeasured(
    state: AnyState, config: RunConfig, skills: Sequence[tuple[Place, SkillTree]], items: tuple[str, ...]
) -> list[Evaluation]:
    """Selection evaluations for those of the skills (by place) that have never been measured."""
    return [selection(config, place, skill, items) for place, skill in skills if skill.hash not in state.measured]


def fresh_evaluation(state: AnyState, config: RunConfig, items: tuple[str, ...]) -> list[Evaluation]:
    """
    The draw of the current text that decides nothing, where it is wanted and missing: it states the text's score.

    By a rule that draws again only what varies none is made while nothing ever has: it would say the same once more.
    """
    current = state.current
    known = state.measured.get(current.skill.hash)
    if not config.evaluation.fresh_score or known is None or known.fresh is not None or current.stale_from:
        return []
    if config.evaluation.gate_rule in RETESTS and not state.flipped:
        return []
    at = _origin_place(state).reported
    # One that was made of fewer items tells nothing of all of them.
    place = Place(known.place).reported if at in state.scored else at
    return [selection(config, place, current.skill, items, repeat=0)]


def _origin_place(state: AnyState) -> Place:
    """The place at which a text became the current one."""
    current = state.current
    if current.origin.kind == "initial_skill":
        return BASELINE
    if current.origin.kind in ("slow_update", "slow_update_placeholder"):
        return Place.of_epoch(current.origin.epoch).slow
    return Place.of_step((current.step - 1) // state.started.steps_per_epoch + 1, current.step)


def test_evaluations(state: AnyState, config: RunConfig) -> list[Evaluation]:
    """The initial, best and final skill on the test items, each text once."""
    items = tested_items(state.started, config)
    if not items:
        return []
    named = (("initial", state.started.skill), ("best", state.best.skill), ("final", state.current.skill))
    texts: dict[str, tuple[str, SkillTree]] = {}
    for name, skill in named:
        # One text has one test score: it is tried under the first of its names.
        texts.setdefault(skill.hash, (name, skill))
    return [
        Evaluation(
            place=FINAL_TEST / name,
            purpose="test",
            split="test",
            items=items,
            skill=skill,
            seed=config.train.seed,
        )
        for name, skill in texts.values()
    ]


def score(evaluation: Evaluation, state: AnyState, config: RunConfig) -> Event:
    """The sum of an evaluation, or a pause when too much of it was not measured."""
    rows, begun = rows_of(state, evaluation), begun_draw(state, evaluation)
    not_run = tuple(item for item in evaluation.items if item not in rows) if evaluation.stopped else ()
    carried = {item: state.measured[evaluation.carried_from].items[item] for item in evaluation.carried}
    found: dict[str, Outcome] = {**carried, **{item: row.outcome for item, row in rows.items()}}
    outcomes = [found[item] for item in evaluation.items if not not_run or item in rows]
    total = mean_score(outcomes) if not not_run else most_score(outcomes, len(not_run))
    rollout = config.rollout
    measured = sum(isinstance(outcome, Measured) for outcome in outcomes)
    # A mean over nothing would be 0, and a 0 decides; where an evaluation was stopped its bound stands without any.
    nothing = measured == 0 and not not_run
    split, items = evaluation.split, len(evaluation.items)
    if evaluation.by_item:
        too_many = (nothing or _are_too_many(outcomes, config, split, items)) and not _are_few(outcomes, _OF_THE_ITEM)
    else:
        too_many = nothing or too_many_unmeasured(outcomes, config, split, items)
    if too_many:
        return _unmeasured_pause(evaluation, rows, total, config)
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
        value=config.gate_value(total, evaluation.skill) if evaluation.purpose == "selection" else None,
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


def too_many_unmeasured(outcomes: Sequence[Outcome], config: RunConfig, split: Split, items: int) -> bool:
    """
    Whether too little of so many items was measured for a mean.

    A few items on which every try of the agent crashed are left out: the next resume would meet them as well.
    """
    few = _are_few(outcomes, frozenset({"crash"})) and 2 * len(_missing_of(outcomes)) < len(outcomes)
    return _are_too_many(outcomes, config, split, items) and not few


def _are_too_many(outcomes: Sequence[Outcome], config: RunConfig, split: Split, items: int) -> bool:
    _, most = _largest_share(config, split)
    return len(_missing_of(outcomes)) > most * items


def _are_few(outcomes: Sequence[Outcome], kinds: Set[str]) -> bool:
    """Whether few could not be measured, and all of these for such reasons."""
    left = _missing_of(outcomes)
    return len(left) <= _FEW and all(isinstance(outcome, Failed) and outcome.kind in kinds for outcome in left)


def _missing_of(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if not isinstance(outcome, Measured)]


def _largest_share(config: RunConfig, split: Split) -> tuple[str, float]:
    """The largest share of a split's items that may be without a grade, after the key that sets it."""
    rollout = config.rollout
    if split == "train":
        return "rollout.max_failed_share_train", rollout.max_failed_share_train
    return "rollout.max_failed_share", rollout.max_failed_share


def unmeasured_hint(outcomes: Iterable[Outcome], config: RunConfig, split: Split = "val") -> str:
    """What to do where too many results could not be measured, and which settings decide how many are too many."""
    kinds = {outcome.kind for outcome in outcomes if isinstance(outcome, Failed)}
    key, now = _largest_share(config, split)
    said = []
    if UNREADABLE in kinds:
        said.append("look at what the judge replied; each resume asks it again about these items")
    if "crash" in kinds:
        said.append("with `--set rollout.crashed=zero` an attempt whose every try crashed scores 0")
    said.append(f"with `--set {key}=N` (now {now:g}) a larger share of the items may be without a grade")
    return "; ".join(said)


def _unmeasured_pause(
    evaluation: Evaluation, rows: Mapping[str, RolloutCompleted], total: Score, config: RunConfig
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
        hint=unmeasured_hint((row.outcome for row in rows.values()), config, evaluation.split),
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
