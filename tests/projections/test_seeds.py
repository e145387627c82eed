"""What scores over seeds say about settings, and what they do not."""

from __future__ import annotations

import math
import random

import pytest

from skillopt_es.projections.intervals import LEVEL, student
from skillopt_es.projections.seeds import against, chance_of, mean_of, mean_score, two_sided


def test_a_mean_has_the_interval_of_student_s_t() -> None:
    """Of 0.5, 0.6 and 0.7: a standard error of 0.1 / sqrt(3), 4.303 times."""
    mean = mean_of([0.5, 0.6, 0.7])
    assert mean is not None
    assert mean.interval is not None
    reach = 4.303 * 0.1 / math.sqrt(3)
    assert (mean.interval.low, mean.interval.high) == (pytest.approx(0.6 - reach), pytest.approx(0.6 + reach))


def test_one_seed_has_no_interval_and_none_has_no_mean() -> None:
    """Nothing is made up where nothing is known."""
    one = mean_score([0.4])
    assert one is not None
    assert (one.value, one.interval) == (0.4, None)
    assert mean_score([]) is None


def test_a_score_stays_within_0_and_1() -> None:
    """Two seeds that differ much say nothing, and a score beyond 1 is none."""
    mean = mean_score([0.2, 0.9])
    assert mean is not None
    assert mean.interval is not None
    assert (mean.interval.low, mean.interval.high) == (0.0, 1.0)


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 12, 29])
def test_the_chance_is_that_of_the_interval(degrees: int) -> None:
    """What lies exactly at the interval's end has a chance of 5 %."""
    assert two_sided(student(degrees), degrees) == pytest.approx(LEVEL, abs=1e-4)
    assert two_sided(0.0, degrees) == 1.0
    assert two_sided(1e6, degrees) == pytest.approx(0.0, abs=1e-5)


def test_seeds_that_all_say_the_same_count_by_their_signs() -> None:
    """Without spread there is nothing to measure a difference by; two equal differences prove little."""
    assert chance_of([0.1, 0.1]) == 0.5
    assert chance_of([0.0, 0.0, 0.0]) == 1.0
    assert chance_of([0.1]) is None


def test_settings_are_paired_by_seed() -> None:
    """A difference that each seed shows is seen, though seeds differ more from each other."""
    found = against({"a": {1: 0.90, 2: 0.50, 3: 0.70}, "b": {1: 0.80, 2: 0.41, 3: 0.59, 4: 0.99}}, "a")
    assert found["b"].difference is not None
    assert found["b"].difference.seeds == 3
    assert found["b"].difference.value == pytest.approx(-0.1)
    assert found["b"].within_noise is False


def test_many_comparisons_make_each_of_them_weaker() -> None:
    """Of five settings, the leading one was picked, so ten pairs could have been compared."""
    leader = {1: 0.50, 2: 0.60, 3: 0.70, 4: 0.65}
    behind = {1: 0.41, 2: 0.55, 3: 0.58, 4: 0.60}
    alone = against({"a": leader, "b": behind}, "a")["b"]
    among = against({"a": leader, "b": behind} | {f"c{n}": leader for n in range(3)}, "a")["b"]
    assert alone.chance is not None
    assert among.chance == pytest.approx(10 * alone.chance)
    assert (alone.within_noise, among.within_noise) == (False, True)


def test_without_a_common_seed_nothing_is_said() -> None:
    """Neither of them is better then, and neither is noise."""
    found = against({"a": {1: 0.5}, "b": {2: 0.4}}, "a")["b"]
    assert (found.difference, found.chance, found.within_noise) == (None, None, None)


def test_of_equal_settings_the_leader_is_seldom_called_better() -> None:
    """Eight settings that are the same, five seeds each; the one that happens to lead is compared with all others."""
    rng, trials, wrong = random.Random(5), 400, 0
    for _ in range(trials):
        scores = {f"s{at}": {seed: rng.gauss(0.6, 0.05) for seed in range(5)} for at in range(8)}
        leader = max(scores, key=lambda name: sum(scores[name].values()))
        wrong += any(each.within_noise is False for each in against(scores, leader).values())
    assert wrong / trials <= LEVEL
