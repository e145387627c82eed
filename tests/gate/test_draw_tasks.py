"""What a contest wants run before its rule can decide it, and in which order: from a state made by hand."""

from __future__ import annotations

import pytest
from attrs import evolve
from support.at_gate import CANDIDATE, CURRENT, RunOf, contest, measured, runs_in, state_of

from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import draw_seed
from skillopt_es.engine.work import AddUp, Rollouts, Work
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Failed, Measured, Outcome
from skillopt_es.gate.comparing import MoreDraws, Ruling
from skillopt_es.gate.verdicts import draw_work, judged, known_of, leads
from skillopt_es.projections.state import ENOUGH_REPEATS, AnyState, Drawn, Measurement, Partial

ITEMS = ("v0", "v1", "v2", "v3")
WAVES = ("evaluation.early_stop=exact", "evaluation.early_stop_wave=2")


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """The data of a run with these settings; its validation items are v0, v1, …"""
    return runs_in(tmp_path_factory.mktemp("gate"))


def units(work: Work | None) -> list[tuple[str, str, str, int]]:
    """Place, item, text and seed of each."""
    assert isinstance(work, Rollouts), work
    return [(unit.place, unit.item, unit.skill.hash, unit.seed) for unit in work.units]


def items(work: Work | None) -> list[str]:
    return [item for _, item, _, _ in units(work)]


def row(item: str, result: str, place: str = "e1/s2/gate") -> RolloutCompleted:
    outcome: Outcome = Failed("down", "no") if result == "-" else Measured(float(result), float(result))
    return RolloutCompleted(
        place=place, purpose="selection", item=item, skill=CANDIDATE.hash, outcome=outcome, task_type="", turns=1
    )


def rows(results: dict[str, str], place: str = "e1/s2/gate") -> dict[str, RolloutCompleted]:
    return {item: row(item, result, place) for item, result in results.items()}


def here(state: AnyState, results: dict[str, str], place: str = "e1/s2/gate") -> AnyState:
    """The state with these results at the candidate's place."""
    return evolve(state, rollouts={place: rows(results, place)})


def begun(state: AnyState, results: dict[str, str], draw: int = 1) -> AnyState:
    """The state with a draw of the candidate that ended early at another place."""
    part = Partial(place="e1/s1/gate", rows=rows(results, "e1/s1/gate"))
    return evolve(state, partial={(CANDIDATE.hash, draw): part})


def seeds(run: RunConfig, draw: int) -> int:
    return draw_seed(run.train.seed, draw)


def test_what_was_never_measured_is_drawn_of_both_texts_at_once(run_of: RunOf) -> None:
    """The candidate first, each at its place, on every item in the order of the split."""
    run = run_of()
    seed = seeds(run, 1)
    expected = [("e1/s2/gate", item, CANDIDATE.hash, seed) for item in contest(run).items]
    expected += [("e1/s2/current", item, CURRENT.hash, seed) for item in contest(run).items]
    assert units(draw_work(state_of({}), run, contest(run))) == expected


def test_a_text_that_was_measured_is_not_drawn_again(run_of: RunOf) -> None:
    """Nor is anything where the rule can decide."""
    run = run_of("evaluation.sel_env_num=4")
    work = draw_work(state_of({"current": measured("1100")}), run, contest(run))
    assert {place for place, *_ in units(work)} == {"e1/s2/gate"}
    work = draw_work(state_of({"candidate": measured("1100")}), run, contest(run))
    assert {place for place, *_ in units(work)} == {"e1/s2/current"}
    assert draw_work(state_of({"current": measured("1100"), "candidate": measured("1110")}), run, contest(run)) is None


def test_a_further_draw_has_a_place_and_a_seed_of_its_own(run_of: RunOf) -> None:
    """Of both texts."""
    run = run_of("evaluation.sel_env_num=4", "evaluation.gate_rule=paired", "evaluation.gate_repeats=4")
    state = state_of(
        {"current": measured("1100", place="e1/s1/gate"), "candidate": measured("1110", place="e1/s2/gate")}
    )
    assert judged(state, run, contest(run)) == MoreDraws(candidate=2, current=2)
    seed = seeds(run, 2)
    expected = [("e1/s2/gate/repeat-2", item, CANDIDATE.hash, seed) for item in ITEMS]
    expected += [("e1/s2/current/repeat-2", item, CURRENT.hash, seed) for item in ITEMS]
    assert units(draw_work(state, run, contest(run))) == expected


def test_draws_made_elsewhere_are_no_fresh_ones(run_of: RunOf) -> None:
    """A place counts as this comparison's if it is there or below it, not if its name only begins alike."""
    run = run_of("evaluation.sel_env_num=4", "evaluation.gate_rule=retest", "evaluation.gate_repeats=3")
    candidate = measured("1110", place="e1/s2/gate")

    def drawn(second: str) -> Measurement:
        first = measured("1100", place="e1/s1/gate")
        again = measured("1100")
        return evolve(first, drawn=(*first.drawn, Drawn(score=again.score, place=second, items=again.items)))

    for elsewhere in ("e1/s1/current/repeat-2", "e1/s2/currently"):
        state = state_of({"current": drawn(elsewhere), "candidate": candidate})
        assert judged(state, run, contest(run)) == MoreDraws(candidate=2, current=3, items=("v2",)), elsewhere
    for own in ("e1/s2/current/repeat-2", "e1/s2/current"):
        state = state_of({"current": drawn(own), "candidate": candidate})
        assert judged(state, run, contest(run)) == MoreDraws(candidate=2, current=0, items=("v2",)), own


def test_the_current_text_is_drawn_first_where_the_candidate_may_end_early(run_of: RunOf) -> None:
    """A wave is told by what the current text did."""
    run = run_of("evaluation.sel_env_num=4", *WAVES)
    work = draw_work(state_of({}), run, contest(run))
    assert units(work) == [("e1/s2/current", item, CURRENT.hash, seeds(run, 1)) for item in ITEMS]
    work = draw_work(state_of({"current": measured("1100")}), run, contest(run))
    assert units(work) == [("e1/s2/gate", item, CANDIDATE.hash, seeds(run, 1)) for item in ("v2", "v3")]


def test_a_wave_begins_where_the_current_text_did_worst_and_goes_on_with_what_is_missing(run_of: RunOf) -> None:
    """Items of a wave that are there are not run again; the next wave begins when it is whole."""
    run, state = run_of("evaluation.sel_env_num=4", *WAVES), state_of({"current": measured("0101")})
    assert items(draw_work(state, run, contest(run))) == ["v0", "v2"]
    assert items(draw_work(here(state, {"v0": "0"}), run, contest(run))) == ["v2"]
    assert items(draw_work(here(state, {"v0": "1", "v2": "0"}), run, contest(run))) == ["v1", "v3"]
    assert items(draw_work(here(state, {"v0": "1", "v2": "0", "v3": "0"}), run, contest(run))) == ["v1"]
    work = draw_work(here(state, dict.fromkeys(ITEMS, "1")), run, contest(run))
    assert isinstance(work, AddUp)
    assert (work.evaluation.place, work.evaluation.items, work.evaluation.stopped) == ("e1/s2/gate", ITEMS, False)


def test_a_candidate_that_cannot_win_is_stopped_between_two_waves_only(run_of: RunOf) -> None:
    """What was begun of a wave is run to its end."""
    run, state = run_of("evaluation.sel_env_num=4", *WAVES), state_of({"current": measured("0011")})
    lost = here(state, {"v0": "0", "v1": "0"})
    work = draw_work(lost, run, contest(run))
    assert isinstance(work, AddUp)
    assert (work.evaluation.place, work.evaluation.stopped) == ("e1/s2/gate", True)
    assert items(draw_work(here(state, {"v0": "0", "v1": "0", "v2": "0"}), run, contest(run))) == ["v3"]
    open_yet = here(state, {"v0": "0", "v1": "1"})
    assert items(draw_work(open_yet, run, contest(run))) == ["v2", "v3"]


def test_an_item_that_failed_can_win_nothing(run_of: RunOf) -> None:
    """It is not measured, and not to be measured any more."""
    run, state = run_of("evaluation.sel_env_num=4", *WAVES), state_of({"current": measured("0011")})
    work = draw_work(here(state, {"v0": "-", "v1": "-"}), run, contest(run))
    assert isinstance(work, AddUp)
    assert work.evaluation.stopped


def test_a_draw_that_was_begun_elsewhere_goes_on_with_the_items_that_are_left(run_of: RunOf) -> None:
    """And what it had counts, also for whether it can win."""
    run, state = run_of("evaluation.sel_env_num=4", *WAVES), state_of({"current": measured("0101")})
    part = begun(state, {"v0": "1", "v1": "1"})
    assert items(draw_work(part, run, contest(run))) == ["v2", "v3"]
    assert items(draw_work(here(part, {"v2": "0"}), run, contest(run))) == ["v3"]
    assert isinstance(draw_work(here(part, {"v2": "0", "v3": "1"}), run, contest(run)), AddUp)


def test_a_draw_begun_elsewhere_that_cannot_win_decides(run_of: RunOf) -> None:
    """As a bound; nothing more is run for it."""
    run, state = run_of("evaluation.sel_env_num=4", *WAVES), state_of({"current": measured("0011")})
    for results, bound in (({"v0": "0", "v1": "0"}, 0.5), ({"v0": "-", "v1": "-"}, 1.0)):
        part = begun(state, results)
        found = judged(part, run, contest(run))
        assert isinstance(found, Ruling)
        assert (found.verdict, found.exact) == ("reject", False)
        assert found.comparison.candidate_value == bound
        assert draw_work(part, run, contest(run)) is None
    able = begun(state, {"v0": "1", "v1": "0"})
    assert judged(able, run, contest(run)) == MoreDraws(candidate=1, current=0)
    other_draw = begun(state, {"v0": "0", "v1": "0"}, draw=2)
    assert judged(other_draw, run, contest(run)) == MoreDraws(candidate=1, current=0)


def test_a_bound_is_not_asked_while_the_current_text_has_to_be_drawn(run_of: RunOf) -> None:
    """There is nothing to lose against."""
    run, state = run_of("evaluation.sel_env_num=4", *WAVES), state_of({})
    assert judged(begun(state, {"v0": "0"}), run, contest(run)) == MoreDraws(candidate=1, current=1)


def test_a_second_draw_is_run_in_waves_too(run_of: RunOf) -> None:
    """Of its own place, after that of the current text."""
    run = run_of("evaluation.sel_env_num=4", "evaluation.gate_rule=paired", "evaluation.gate_repeats=4", *WAVES)
    current = measured("0101", place="e1/s1/gate")
    state = state_of({"current": current, "candidate": measured("0111", place="e1/s2/gate")})
    assert {place for place, *_ in units(draw_work(state, run, contest(run)))} == {"e1/s2/current/repeat-2"}
    again = evolve(current, drawn=(*current.drawn, evolve(measured("1111").drawn[0], place="e1/s2/current/repeat-2")))
    both = state_of({"current": again, "candidate": measured("0111", place="e1/s2/gate")})
    work = draw_work(both, run, contest(run))
    assert units(work) == [("e1/s2/gate/repeat-2", item, CANDIDATE.hash, seeds(run, 2)) for item in ("v0", "v2")]
    lost = here(both, {"v0": "0", "v2": "0"}, "e1/s2/gate/repeat-2")
    work = draw_work(lost, run, contest(run))
    assert isinstance(work, AddUp)
    assert (work.evaluation.place, work.evaluation.repeat, work.evaluation.stopped) == ("e1/s2/gate/repeat-2", 2, True)


@pytest.mark.parametrize(
    ("ours", "theirs", "ahead"), [("1110", "1100", True), ("1100", "1100", False), ("0100", "1100", False)]
)
def test_who_leads_has_the_higher_mean(run_of: RunOf, ours: str, theirs: str, *, ahead: bool) -> None:
    """Over all draws; a tie is no lead."""
    run = run_of("evaluation.sel_env_num=4")
    state = state_of({"current": measured(theirs), "candidate": measured(ours)})
    assert leads(state, run, contest(run)) is ahead


def test_a_text_adds_its_own_bonus(run_of: RunOf) -> None:
    """Also before it is measured: one that starts ahead may win although it solves less."""
    dense = CANDIDATE.with_text("# a\nalways never must\n")
    run = run_of(
        "evaluation.sel_env_num=4",
        "evaluation.use_semantic_density=true",
        "evaluation.semantic_density_weight=50.0",
        *WAVES,
    )
    state, lost = state_of({"current": measured("0011")}), {"v0": "0", "v1": "0"}
    assert run.bonus(dense) > run.bonus(CANDIDATE) == run.bonus(CURRENT)
    assert isinstance(draw_work(here(state, lost), run, contest(run)), AddUp)
    assert items(draw_work(here(state, lost), run, contest(run, dense))) == ["v2", "v3"]


def turned_round(known: Measurement) -> Measurement:
    """The same, recorded from the last item to the first."""
    [only] = known.drawn
    return evolve(known, drawn=(evolve(only, items=dict(reversed(only.items.items()))),))


def test_sums_do_not_depend_on_the_order_of_what_was_recorded(run_of: RunOf) -> None:
    """The items are compared in the order of the split, and those alone that the gate uses."""
    run = run_of("evaluation.sel_env_num=4")
    state = state_of(
        {
            "current": turned_round(measured("11000")),
            "candidate": turned_round(measured("11100")),
        }
    )
    found = judged(state, run, contest(run))
    assert isinstance(found, Ruling)
    assert found.comparison.items == ITEMS


def test_what_a_run_knows_of_its_items_is_asked_at_each_verdict(run_of: RunOf) -> None:
    """Families of items that have types, and what flipped so far."""
    types = {"v0": "fern", "v1": "fern", "v2": "moss"}
    known = known_of(evolve(state_of({}), types=types, flipped=frozenset({"v1"})), run_of(), contest(run_of()))
    assert (known.families, known.flipped) == (types, {"v1"})


def test_a_target_never_varies_when_enough_came_out_the_same_twice(run_of: RunOf) -> None:
    """One result that did not is enough to the contrary."""
    run = run_of("evaluation.gate_rule=retest")
    state = state_of({})
    state = evolve(state, repeated=ENOUGH_REPEATS)
    assert known_of(state, run, contest(run)).steady
    assert not known_of(evolve(state, repeated=ENOUGH_REPEATS - 1), run, contest(run)).steady
    assert not known_of(evolve(state, flipped=frozenset({"v1"})), run, contest(run)).steady


def test_a_draw_of_what_turned_is_of_these_items_alone(run_of: RunOf) -> None:
    """Of both texts; what is not drawn again counts as it did in the text's own first draw."""
    run = run_of("evaluation.sel_env_num=4", "evaluation.gate_rule=retest", "evaluation.gate_repeats=3", *WAVES)
    state = state_of({"current": measured("0011"), "candidate": measured("1110", place="e1/s2/gate")})
    assert judged(state, run, contest(run)) == MoreDraws(candidate=2, current=2, items=("v0", "v1", "v3"))
    expected = [
        (place, item) for place in ("e1/s2/gate/repeat-2", "e1/s2/current/repeat-2") for item in ("v0", "v1", "v3")
    ]
    assert [(place, item) for place, item, _, _ in units(draw_work(state, run, contest(run)))] == expected
    done = {place: rows(dict.fromkeys(("v0", "v1", "v3"), "1"), place) for place, _ in expected}
    work = draw_work(evolve(state, rollouts=done), run, contest(run))
    assert isinstance(work, AddUp)
    assert (work.evaluation.carried, work.evaluation.carried_from) == (("v2",), CANDIDATE.hash)


def test_what_the_first_draw_could_not_measure_is_no_part_of_a_further_one(run_of: RunOf) -> None:
    """There is nothing to carry for it, nor has it turned."""
    run = run_of("evaluation.sel_env_num=4", "evaluation.gate_rule=retest", "evaluation.gate_repeats=3", *WAVES)
    state = state_of({"current": measured("0011"), "candidate": measured("11-0", place="e1/s2/gate", unmeasured=1)})
    wanted = [("e1/s2/gate/repeat-2", item) for item in ("v0", "v1", "v3")]
    drawn = draw_work(state, run, contest(run))
    assert [(place, item) for place, item, _, _ in units(drawn)][:3] == wanted
    done = {f"e1/s2/{at}/repeat-2": rows(dict.fromkeys(("v0", "v1", "v3"), "1"), at) for at in ("gate", "current")}
    work = draw_work(evolve(state, rollouts=done), run, contest(run))
    assert isinstance(work, AddUp)
    assert (work.evaluation.items, work.evaluation.carried) == (("v0", "v1", "v3"), ())


def test_a_draw_of_what_turned_is_none_by_a_rule_that_draws_all(run_of: RunOf) -> None:
    """What was not drawn again would count twice."""
    run = run_of("evaluation.sel_env_num=4", "evaluation.gate_rule=paired", "evaluation.gate_repeats=4")
    known = measured("0011", "0011", place="e1/s2/current")
    known = evolve(known, drawn=(known.drawn[0], evolve(known.drawn[1], in_part=True)))
    state = state_of({"current": known, "candidate": measured("1111", place="e1/s2/gate")})
    assert judged(state, run, contest(run)) == MoreDraws(candidate=2, current=2)
