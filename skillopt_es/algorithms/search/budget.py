"""How large a step may be, so that the run ends within its calls: pure functions of the state."""

from __future__ import annotations

from math import ceil

from skillopt_es.algorithms.search.sample import judged_items
from skillopt_es.algorithms.search.state import SearchState
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithms import most_calls
from skillopt_es.engine.run_config import tested_items
from skillopt_es.events.places import FINAL_TEST
from skillopt_es.events.values import DRAWS_ONCE, RETESTS

# Tests that take more than a third of all calls are not set aside: little would be left to learn with.
_SHARE_OF_TESTS = 3
_SHARE_KEPT = 20  # one call in so many may be made again
LEAST = 2
"""Training items with which a step is worth its gate."""


def gate_items(config: RunConfig, items: int) -> int:
    """How many results a verdict by so many items needs at least; what turned is drawn again from what is left."""
    evaluation = config.evaluation
    draws = 1 if evaluation.gate_rule in (DRAWS_ONCE | RETESTS) else 2 * evaluation.gate_repeats - 1
    return items * (draws + evaluation.fresh_score)


def calls_of_one(config: RunConfig) -> int:
    """
    How many calls count for one that a result names.

    An agent that asks its model through the run counts itself, and then at least one call that it makes.
    """
    return 2 if config.target_model.gateway else 1


def most_tries(size: int) -> int:
    """How many results may tell what the changes of a step are worth that has a batch of this size."""
    return 2 * size


def first_tries(size: int) -> int:
    """How many of them its first round takes."""
    return size + size // 4


def step_size(state: SearchState, config: RunConfig) -> int:
    """How many training items the next step can try with the calls that are left; 0 when it is not worth it."""
    wanted, most = config.train.batch_size, most_calls(state)
    if not state.steps_done:
        wanted = min(wanted, config.search.first_batch)
    if most is None:
        return wanted
    left, items = _left(state, config, most) - _set_aside(state, config, most), len(judged_items(state, config))
    while wanted >= min(LEAST, config.train.batch_size):
        tries = wanted * (1 + config.evaluation.certificate) + first_tries(wanted) + gate_items(config, items)
        questions = 2 * ceil(wanted / config.gradient.minibatch_size)  # each may be asked once more
        if _a_try(state, config) * tries + questions <= left:
            return wanted
        wanted -= 1
    return 0


def closing_size(state: SearchState, config: RunConfig) -> int:
    """How many items can be tried under two texts for the certificate, besides the tests."""
    wanted, most = config.train.batch_size, most_calls(state)
    if most is None:
        return wanted
    left = _left(state, config, most) - _set_aside(state, config, most)
    return max(0, min(wanted, left // (2 * _a_try(state, config))))


def tests_fit(state: SearchState, config: RunConfig) -> bool:
    """Whether the calls that are left pay for the tests that are not made yet; those that have begun are finished."""
    most = most_calls(state)
    if most is None or any(FINAL_TEST.holds(place) for place in state.rollouts):
        return True
    texts = {state.started.skill.hash, state.best.skill.hash}
    if not config.evaluation.use_gate:  # with one it is the best text, unless somebody ordered otherwise
        texts.add(state.current.skill.hash)
    return _a_try(state, config) * len(texts) * len(tested_items(state.started, config)) <= _left(state, config, most)


def widening_fits(state: SearchState, config: RunConfig, results: int) -> bool:
    """
    Whether the calls that are left, besides the tests, pay for so many results more.

    A few are kept for calls that are made again after a failure or a crash: a closer look is not worth a pause.
    """
    most = most_calls(state)
    if most is None:
        return True
    left = _left(state, config, most) - _set_aside(state, config, most) - ceil(most / _SHARE_KEPT)
    return _a_try(state, config) * results <= left


def spare_tries(state: SearchState, config: RunConfig) -> int | None:
    """How many results the open step can still take before its gate; None for any number."""
    most = most_calls(state)
    if most is None:
        return None
    left, items = _left(state, config, most) - _set_aside(state, config, most), len(judged_items(state, config))
    return max(0, left // _a_try(state, config) - gate_items(config, items))


def spare_results(state: SearchState, config: RunConfig) -> int | None:
    """How many results a verdict can take besides those that it was begun with; None for any number."""
    most = most_calls(state)
    return (
        None
        if most is None
        else max(0, (_left(state, config, most) - _set_aside(state, config, most)) // _a_try(state, config))
    )


def _left(state: SearchState, config: RunConfig, most: int) -> int:
    return most - calls_of_one(config) * state.algorithm.calls - state.algorithm.questions


def _set_aside(state: SearchState, config: RunConfig, most: int) -> int:
    """
    What the tests of the first text and the best one take, unless the search would have too little left.

    Without a gate the final text may be a third one; where that would be too much, it is hoped to be the best one.
    """
    one = _a_try(state, config) * len(tested_items(state.started, config))
    wanted = (2 * one,) if config.evaluation.use_gate else (3 * one, 2 * one)
    return next((tests for tests in wanted if tests <= most // _SHARE_OF_TESTS), 0)


def _a_try(state: SearchState, config: RunConfig) -> int:
    """How many calls one result has taken so far, at most on average."""
    turns = max(1, ceil(state.algorithm.calls / state.algorithm.tries)) if state.algorithm.tries else 1
    return calls_of_one(config) * turns
