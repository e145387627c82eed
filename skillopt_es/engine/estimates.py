"""
The plan of a run in numbers: for each kind of call how many there can be at least and at most.

Pure: from the config and the data's sizes alone. What stands here is a plan for any algorithm whose steps each have one
candidate for the gate; one that makes other calls has a plan of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.run_config import tested_items, validation_items
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.places import BASELINE, FINAL_FRESH, FINAL_TEST, Place
from skillopt_es.events.values import DRAWS_ONCE, Role

_TURNS = ("max_turns", "max_steps", "max_tool_turns")


@frozen(kw_only=True)
class Planned:
    """A run that is yet to be made, or was: how it begins, and the config that it goes by."""

    started: RunStarted
    config: RunConfig

    @property
    def validation_items(self) -> tuple[str, ...]:
        """The validation items that a skill's score is of."""
        return validation_items(self.started, self.config)

    @property
    def tested_items(self) -> tuple[str, ...]:
        """The test items, none when tests are off."""
        return tested_items(self.started, self.config)


@frozen(kw_only=True)
class Part:
    """
    One kind of call. `units` is what it grows with, such as training items tried; `at_once` how many can run together.
    """

    kind: str
    role: Role
    units: int
    low: int
    high: int
    at_once: int = 1

    @property
    def exact(self) -> bool:
        """Whether the number is certain before the run."""
        return self.low == self.high


def with_judge(parts: tuple[Part, ...], run: Planned) -> tuple[Part, ...]:
    """The same plan with the questions to a judge about every answer, where the config names one."""
    if not run.config.judge_model.model:
        return parts
    # Known without the environment, as `most_turns` is: two answers are compared in both orders.
    each = 2 if run.config.env.options.get("compare_with") else 1
    rollouts = [part for part in parts if part.role == "target"]
    units, low, high = (sum(getattr(part, name) for part in rollouts) for name in ("units", "low", "high"))
    at_once = max((part.at_once for part in rollouts), default=1)
    judged = Part(kind="judge", role="judge", units=units, low=each * low, high=each * high, at_once=at_once)
    return (*parts, judged)


def most_turns(run: Planned) -> int:
    """How many calls an item may take, as far as the environment's options say."""
    options = run.config.env.options
    return max((value for name in _TURNS if type(value := options.get(name)) is int), default=1)


def steps_plan(run: Planned, steps: int, epochs: int) -> tuple[Part, ...]:
    """The initial skill, a candidate a step with all the draws that its verdict may want, and the tests."""
    validation, tests = len(run.validation_items), len(run.tested_items)
    counts = {
        "baseline": (validation, validation, validation),
        # A step may end without a candidate, so there may be none of these.
        "gate": (validation * steps, 0, validation * steps * most_draws(run.config)),
        "certificate": (most_for_certificate(run), 0, most_for_certificate(run)),
        # The initial, the best and the final skill may be one text or three.
        "test": (tests, tests, 3 * tests),
    }
    return rollouts_in(run, counts, most_turns(run))


def rollouts_in(run: Planned, counts: Mapping[str, tuple[int, int, int]], turns: int) -> tuple[Part, ...]:
    """
    The parts in which tasks are tried, each at most so many turns: what a part grows with, the least and the most.

    What cannot happen is no part.
    """
    workers = run.config.env.workers
    return tuple(
        Part(kind=kind, role="target", units=units, low=low, high=high * turns, at_once=max(1, min(workers, units)))
        for kind, (units, low, high) in counts.items()
        if high
    )


def most_draws(config: RunConfig) -> int:
    """How many results of each item a verdict may want."""
    evaluation = config.evaluation
    # All draws of the candidate, and all of the current skill's but the first, which is there already.
    return 1 if evaluation.gate_rule in DRAWS_ONCE else 2 * evaluation.gate_repeats - 1


def most_for_certificate(run: Planned) -> int:
    """How many results a certificate takes at most: each training item once, and one batch more of the best skill."""
    items = len(run.started.splits.train)
    return (items + min(items, run.config.train.batch_size)) * run.config.evaluation.certificate


def is_for_certificate(slot: str) -> bool:
    """Whether a call was made because items were to meet the certified skill."""
    return FINAL_FRESH.holds(slot) or Place(slot).stage == "certified"


def kind_of_call(slot: str, stage: str) -> str:
    """The kind of a recorded call: of a rollout where it was made, of a question which it was."""
    if stage != "rollout":
        return stage
    if BASELINE.holds(slot):
        return "baseline"
    if is_for_certificate(slot):
        return "certificate"
    return "test" if FINAL_TEST.holds(Place(slot)) else "gate"
