"""
The plan of a classic run in numbers: for each kind of call how many there can be at least and at most.

Pure: from the config and the data's sizes alone. Replies that are asked for once more are in no plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from skillopt_es.config import TrainConfig
from skillopt_es.engine.draws import epoch_batches
from skillopt_es.engine.estimates import Part, Planned, is_for_certificate, most_for_certificate, most_turns
from skillopt_es.events.places import FINAL, FINAL_TEST, SLOW, Place
from skillopt_es.gate.verdicts import rule_of

_KINDS: Mapping[str, str] = {
    "baseline": "baseline",
    SLOW.previous: "comparison",
    SLOW.current: "comparison",
    SLOW.gate: "slow_gate",
    SLOW.standing: "slow_gate",
    "gate": "gate",
    "current": "gate",
    "reported": "reported",
    SLOW.reported: "reported",
}


def planned_steps(train: TrainConfig, items: int) -> tuple[int, int]:
    """How many steps an epoch over so many training items has, and the whole run."""
    # The last step of an epoch takes what is left.
    steps = ceil(items / (train.batch_size * train.accumulation))
    return steps, steps * train.num_epochs


def plan_of(run: Planned, steps: int, epochs: int) -> tuple[Part, ...]:
    """The parts of so many steps and epochs, in the order in which a run meets them."""
    return tuple(part for part in _Plan(run, steps, epochs).parts() if part.high)


def kind_of(slot: str, stage: str) -> str:
    """The kind of a recorded call."""
    if stage != "rollout":
        return stage
    place = Place(slot)
    if is_for_certificate(slot):
        return "certificate"
    if FINAL.holds(place):
        return "test" if FINAL_TEST.holds(place) else "final"
    return _KINDS.get(place.stage, "train")


class _Plan:
    """Everything that the parts are counted from."""

    def __init__(self, run: Planned, steps: int, epochs: int) -> None:
        self.run = run
        self.steps = steps
        self.later = max(0, epochs - 1)
        self.val = len(run.validation_items)
        self.fresh = run.config.evaluation.fresh_score
        self.draws = 2 * (rule_of(run.config).repeats - 1)  # the most that a verdict wants beyond the first ones
        self.batches = self._batches()
        self.turns = most_turns(run)

    def parts(self) -> list[Part]:
        """All parts, those that this config does not have with a high of 0."""
        tried, first = sum(self.batches), self.val * (1 + self.fresh)
        return [
            self._rollouts("baseline", first, first, first),
            self._rollouts("train", tried, tried, tried, at_once=max(self.batches, default=1)),
            *self._questions_of_steps(),
            self._gate(),
            *self._epoch_ends(),
            self._told(),
            *self._final(),
        ]

    def _batches(self) -> list[int]:
        """The sizes of all batches."""
        train, started = self.run.config.train, self.run.started
        sizes = [
            len(batch.items)
            for epoch in range(1, train.num_epochs + 1)
            for batch in epoch_batches(
                started.splits.train,
                epoch=epoch,
                seed=train.seed,
                batch_size=train.batch_size,
                batches=started.steps_per_epoch * train.accumulation,
            )
        ]
        return sizes[: self.steps * train.accumulation]

    def _rollouts(self, kind: str, units: int, low: int, high: int, at_once: int = 0) -> Part:
        workers = min(self.run.config.env.workers, at_once or self.val)
        return Part(
            kind=kind, role="target", units=units, low=low, high=high * max(1, self.turns), at_once=max(1, workers)
        )

    def _questions_of_steps(self) -> list[Part]:
        gradient, optimizer = self.run.config.gradient, self.run.config.optimizer
        size, merged = gradient.minibatch_size, gradient.merge_batch_size
        few = [0 if gradient.failure_only else ceil(batch / size) for batch in self.batches]
        # Failures and successes are grouped apart, which may take one group more.
        many = [min(batch, ceil(batch / size) + (not gradient.failure_only)) for batch in self.batches]
        share = self.run.config.train.accumulation
        of_step = [sum(many[start : start + share]) for start in range(0, len(many), share)]
        mode = optimizer.skill_update_mode
        ranked = mode != "full_rewrite_minibatch" and optimizer.lr_control_mode != "none"
        notes = optimizer.use_skill_aware_reflection and optimizer.skill_aware_consolidate_threshold > 0
        workers = min(gradient.analyst_workers, max(of_step, default=1))
        return [
            self._questions("analyst", sum(many), sum(few), sum(many), at_once=max(1, workers)),
            self._questions("appendix", self.steps, 0, self.steps * notes),
            # Failures and successes are merged side by side.
            self._questions("merge", sum(many), 0, sum(_merges(count, merged) for count in of_step), at_once=2),
            self._questions("learning_rate", self.steps, 0, self.steps * (optimizer.lr_control_mode == "autonomous")),
            self._questions("ranking", self.steps, 0, self.steps * ranked),
            self._questions("rewrite", self.steps, 0, self.steps * (mode == "rewrite_from_suggestions")),
        ]

    def _questions(self, kind: str, units: int, low: int, high: int, at_once: int = 1) -> Part:
        return Part(kind=kind, role="optimizer", units=units, low=low, high=high, at_once=at_once)

    def _gate(self) -> Part:
        """A candidate a step at most; and the current skill, where it became another text without being measured."""
        config = self.run.config
        unmeasured = config.optimizer.use_slow_update and config.evaluation.use_gate
        again = self.later if unmeasured and not config.follows("stale_scores") else 0
        more = self.steps * self.draws * config.evaluation.use_gate
        return self._rollouts("gate", self.val * self.steps, 0, self.val * (self.steps + again + more))

    def _told(self) -> Part:
        """What is drawn of a text that was taken and decides nothing."""
        return self._rollouts("reported", self.val * self.steps, 0, self.val * (self.steps + self.later) * self.fresh)

    def _epoch_ends(self) -> list[Part]:
        optimizer, train = self.run.config.optimizer, len(self.run.started.splits.train)
        slow, meta = optimizer.use_slow_update, optimizer.use_meta_skill
        drawn = min(train, optimizer.slow_update_samples) * self.later * (slow or meta)
        most = train * self.later if optimizer.longitudinal_pair_policy == "changed" and drawn else drawn
        gated = self.val * self.later * (slow and optimizer.slow_update_gate_with_selection)
        return [
            self._rollouts("comparison", drawn, drawn, 2 * most, at_once=min(train, optimizer.slow_update_samples) * 2),
            self._questions("slow_update", self.later, self.later * slow, self.later * slow),
            # The guidance and the current skill once each, and what the rule may draw beyond that.
            self._rollouts("slow_gate", gated, 0, (2 + self.draws) * gated),
            self._questions("meta_skill", self.later, self.later * meta, self.later * meta),
        ]

    def _final(self) -> list[Part]:
        config, tests = self.run.config, len(self.run.tested_items)
        fresh = most_for_certificate(self.run)
        promotes = config.evaluation.eval_test or not config.follows("promote_if_tested")
        differs = config.optimizer.use_slow_update or not config.evaluation.use_gate
        return [
            self._rollouts("final", self.val, 0, self.val * (1 + self.draws) * (promotes and differs)),
            self._rollouts("certificate", fresh, 0, fresh),
            self._rollouts("test", tests, tests, 3 * tests, at_once=tests),
        ]


def _merges(patches: int, most: int) -> int:
    """The most merges that so many patches can need: level by level in two groups, and one of both."""
    count, nodes = 1, patches
    while nodes > 1:
        nodes = ceil(nodes / most)
        count += nodes + 1
    return max(0, min(patches - 1, count))
