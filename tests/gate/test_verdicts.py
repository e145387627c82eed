"""The gate over what was measured: with a rule, without one, and against a score that stands for another text."""

from __future__ import annotations

import pytest
from attrs import evolve
from support.at_gate import BEST, CANDIDATE, CURRENT, OLD, RunOf, contest, measured, runs_in, state_of

from skillopt_es.config import RunConfig
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import GateVerdict, Measured, Score, SkillTree
from skillopt_es.gate import verdicts as gate
from skillopt_es.gate.verdicts import rule_of, too_large, too_little
from skillopt_es.projections.state import AnyState, Drawn, Measurement, Origin, Partial, Standing


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """The data of a run with these settings; its validation items are v0, v1, …"""
    return runs_in(tmp_path_factory.mktemp("gate"))


def weighed(state: AnyState, run: RunConfig, candidate: SkillTree = CANDIDATE) -> GateVerdict:
    """The verdict of the run's gate."""
    met = evolve(contest(run, candidate, state.current), candidate_place="e1/s1/gate", current_place="e1/s1/current")
    found = gate.weighed(state, run, met, met.against(state.best), use_gate=run.evaluation.use_gate)
    assert found.action == "force_accept" or found.new_best == (found.action == "accept_new_best")
    return found


def test_without_a_gate_every_candidate_is_taken(run_of: RunOf) -> None:
    """Beside the current skill on the items of both, where that was measured, and alone where it was not."""
    run = run_of("evaluation.use_gate=false")
    ours = measured("101-1", unmeasured=1)
    beside = weighed(state_of({"current": measured("0110-"), "candidate": ours}), run)
    assert (beside.action, beside.compared, beside.won, beside.lost) == ("force_accept", 3, ("v0",), ("v1",))
    assert (beside.candidate_value, beside.current_value) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    alone = weighed(state_of({"candidate": ours}), run)
    assert (alone.action, alone.compared, alone.won, alone.lost) == ("force_accept", 4, (), ())
    assert (alone.candidate_score, alone.candidate_value) == (ours.score, 0.75)
    assert (alone.current_score, alone.current_value) == (None, None)
    assert (alone.rule, alone.reason, alone.repeats, alone.current_repeats) == (None, "", 1, 1)
    assert (alone.error, alone.exact) == (None, True)


@pytest.mark.parametrize(
    ("ours", "best", "action"),
    [
        ("1111", "1110", "accept_new_best"),
        ("1110", "1111", "accept"),
        ("1110", None, "accept_new_best"),
        ("1100", "0000", "reject"),
        ("1000", "0000", "reject"),
    ],
)
def test_a_score_that_stands_for_the_current_text_has_to_be_exceeded(
    run_of: RunOf, ours: str, best: str | None, action: str
) -> None:
    """It is that of an older text, and counts as it was taken; a best text that nobody measured is exceeded."""
    stale = Standing(skill=CURRENT, value=0.5, stale_from=OLD.hash)
    known = {"old": measured("0000"), "candidate": measured(ours), **({} if best is None else {"best": measured(best)})}
    found = weighed(state_of(known, standing=stale), run_of())
    assert (found.action, found.current_value, found.candidate_value) == (action, 0.5, ours.count("1") / 4)
    assert found.current_score == known["old"].score
    assert found.won == tuple(f"v{at}" for at, each in enumerate(ours) if each == "1")


def test_a_candidate_that_is_the_current_text_counts_what_stands_for_it(run_of: RunOf) -> None:
    """It is as good as it was, and so it is no better."""
    stale = Standing(skill=CURRENT, value=0.5, stale_from=OLD.hash, origin=Origin(kind="slow_update", epoch=1))
    found = weighed(state_of({"old": measured("1110")}, standing=stale), run_of(), CURRENT)
    assert (found.action, found.candidate_value, found.current_value) == ("reject", 0.5, 0.5)
    assert (found.candidate_score, found.compared, found.won, found.lost) == (measured("1110").score, 4, (), ())


@pytest.mark.parametrize(
    ("ours", "best", "action"),
    [("1110", "1111", "accept"), ("1111", "1110", "accept_new_best"), ("1110", None, "accept_new_best")],
)
def test_a_candidate_that_wins_is_the_best_if_it_also_beats_that(
    run_of: RunOf, ours: str, best: str | None, action: str
) -> None:
    """By the same rule."""
    known = {
        "current": measured("1100"),
        "candidate": measured(ours),
        **({} if best is None else {"best": measured(best)}),
    }
    assert weighed(state_of(known), run_of()).action == action


@pytest.mark.parametrize(("best", "new_best"), [(None, True), (0.5, True), (0.75, False), (1.0, False)])
def test_without_a_gate_the_best_text_is_the_one_that_counts_most(
    run_of: RunOf, best: float | None, *, new_best: bool
) -> None:
    """Or the first that was measured."""
    run, known = run_of("evaluation.use_gate=false"), {"candidate": measured("1110")}
    found = weighed(evolve(state_of(known), best=Standing(skill=BEST, value=best)), run)
    assert (found.action, found.new_best, found.best_value) == ("force_accept", new_best, best)


def test_a_verdict_says_by_which_metric_and_where_its_candidate_was_known_from(run_of: RunOf) -> None:
    """Nothing, where it was measured for this contest."""
    known = {"current": measured("1100"), "candidate": measured("1110")}
    found = weighed(state_of(known), run_of("evaluation.gate_metric=soft"))
    assert (found.metric, found.known_from, found.stale_from) == ("soft", "there", "")
    here = {**known, "candidate": measured("1110", place="e1/s1/gate")}
    assert weighed(state_of(here), run_of()).known_from == ""


def test_a_candidate_that_beats_the_best_text_where_that_is_the_current_one_is_the_best(run_of: RunOf) -> None:
    """Nothing else has to be compared."""
    known = {"current": measured("1100"), "candidate": measured("1110")}
    assert weighed(state_of(known, best=CURRENT), run_of()).action == "accept_new_best"


@pytest.mark.parametrize(("best", "action"), [("1100", "accept_new_best"), ("1110", "accept"), ("1111", "accept")])
def test_where_the_rule_would_have_to_draw_the_best_text_again_its_mean_decides(
    run_of: RunOf, best: str, action: str
) -> None:
    """No draw is made for that alone."""
    known = {
        "current": measured("1000", "1000", place="e1/s1/current"),
        "candidate": measured("1110", "1110", place="e1/s1/gate"),
        "best": measured(best),
    }
    found = weighed(state_of(known), run_of("evaluation.gate_rule=paired"))
    assert (found.action, found.reason, found.repeats, found.current_repeats) == (action, "beyond_noise", 2, 2)


def test_a_text_is_not_better_than_itself(run_of: RunOf) -> None:
    """Whatever it was measured at."""
    assert gate.is_better(state_of({}), run_of(), contest(run_of(), CURRENT)) is False


def test_one_draw_against_one_states_the_scores_as_they_were_taken(run_of: RunOf) -> None:
    """With what failed; but over the items of both, where they are not the same or not all asked for."""
    ours, theirs = measured("1110", unmeasured=2), measured("1000", unmeasured=1)
    whole = weighed(state_of({"current": theirs, "candidate": ours}), run_of())
    assert (whole.candidate_score, whole.current_score) == (ours.score, theirs.score)
    fewer = weighed(state_of({"current": theirs, "candidate": ours}), run_of("evaluation.sel_env_num=2"))
    assert fewer.compared == 2
    assert fewer.candidate_score == Score(hard=1.0, soft=1.0, measured=2)
    assert fewer.current_score == Score(hard=0.5, soft=0.5, measured=2)


def test_a_rule_of_several_draws_states_the_scores_that_it_compared(run_of: RunOf) -> None:
    """Not those of the first evaluations, with what failed there."""
    known = {"current": measured("1000", unmeasured=1), "candidate": measured("0000", unmeasured=2)}
    found = weighed(state_of(known), run_of("evaluation.gate_rule=paired"))
    assert found.candidate_score == Score(hard=0.0, soft=0.0, measured=4)
    assert found.current_score == Score(hard=0.25, soft=0.25, measured=4)


def test_a_candidate_that_was_not_run_to_its_end_is_known_from_where_it_was_begun(run_of: RunOf) -> None:
    """Its score is a bound."""
    rows = {
        item: RolloutCompleted(
            place="e1/s1/gate", purpose="selection", item=item, skill=CANDIDATE.hash, outcome=Measured(0.0, 0.0),
            task_type="", turns=1,
        )
        for item in ("v0", "v1")
    }  # fmt: skip
    begun = {(CANDIDATE.hash, 1): Partial(place="e1/s0/gate", rows=rows)}
    run = run_of("evaluation.sel_env_num=4", "evaluation.early_stop=exact")
    found = weighed(evolve(state_of({"current": measured("0011")}), partial=begun), run)
    assert (found.action, found.exact, found.known_from) == ("reject", False, "e1/s0/gate")
    assert found.candidate_value == 0.5


@pytest.mark.parametrize(
    ("settings", "ours", "action", "reason"),
    [
        ((), "0000", "reject", ""),
        ((), "1110", "accept_new_best", ""),
        (("evaluation.no_regression=0",), "0111", "reject", "items_lost"),
        (("evaluation.min_items=5",), "1110", "indecisive", "few_items"),
        (("evaluation.gate_rule=paired",), "0000", "reject", "not_better"),
    ],
)
def test_the_reason_is_stated_where_the_scores_do_not_say_it(
    run_of: RunOf, settings: tuple[str, ...], ours: str, action: str, reason: str
) -> None:
    """One draw that is better or not speaks for itself."""
    found = weighed(state_of({"current": measured("1000"), "candidate": measured(ours)}), run_of(*settings))
    assert (found.action, found.reason) == (action, reason)


@pytest.mark.parametrize(
    ("value", "current", "best", "action"),
    [
        (0.6, 0.5, True, "accept_new_best"),
        (0.6, 0.5, False, "accept"),
        (0.5, 0.5, False, "reject"),
        (0.4, 0.5, True, "reject"),
        (0.1, 0.0, True, "accept_new_best"),
        (0.0, 0.0, False, "reject"),
        (-0.1, -0.5, True, "accept_new_best"),
    ],
)
def test_a_candidate_must_be_strictly_better(value: float, current: float, best: bool, action: str) -> None:
    """Than the current skill to be taken, than the best to be the best; 0 is a score like any other."""
    assert gate.verdict(value, current, best, use_gate=True) == action
    assert gate.verdict(value, current, best, use_gate=False) == "force_accept"


def test_candidate_and_current_are_compared_on_the_same_items() -> None:
    """An item that one of them was not measured on counts for neither."""
    hard = Measured(1, 1)
    soft = Measured(0, 0)
    candidate = Measurement(drawn=(Drawn(score=Score(1, 1, 2, 1), place="g", items={"a": hard, "b": hard}),), value=1)
    current = Measurement(
        drawn=(Drawn(score=Score(0.5, 0.5, 2, 1), place="b", items={"b": hard, "c": soft}),), value=0.5
    )
    count, left, right = gate.on_common_items(candidate, current)
    assert (count, left.hard, right.hard) == (1, 1.0, 1.0)


def test_one_draw_is_all_that_strict_makes(run_of: RunOf) -> None:
    """Whatever number of draws the config has for other rules."""
    assert rule_of(run_of("evaluation.gate_repeats=3")).repeats == 1
    assert rule_of(run_of("evaluation.gate_repeats=3", "evaluation.gate_rule=paired")).repeats == 3


def test_a_rule_is_refused_that_the_items_in_use_cannot_carry(run_of: RunOf) -> None:
    """Those that a gate uses, of those that there are."""
    assert "there are 4 validation items" in str(too_little(run_of("evaluation.min_items=5"), 4))
    assert too_little(run_of("evaluation.min_items=5"), 5) is None
    six = run_of("evaluation.gate_rule=paired", "evaluation.gate_repeats=3", "evaluation.sel_env_num=6")
    assert "from 3 validation items" in str(too_little(six, 3))
    assert too_little(six, 10) is None


@pytest.mark.parametrize(("most", "why"), [(0, ""), (10, ""), (9, "10 characters, and evaluation.max_size is 9")])
def test_a_text_may_be_as_large_as_the_limit(run_of: RunOf, most: int, why: str) -> None:
    """0 is no limit."""
    assert too_large(run_of(f"evaluation.max_size={most}"), CURRENT) == why
