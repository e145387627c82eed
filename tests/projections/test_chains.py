"""Chains say what the state held when the verdict fell, and everything proposed has a fate."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.audited import MOST_SLOW, Audited, records_of

from skillopt_es.algorithms.classic.state import proposals_of
from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EpochCompleted,
    Recorded,
    RolloutCompleted,
    StepSkipped,
)
from skillopt_es.events.values import Measured
from skillopt_es.projections.chains import CHAIN_TYPES, END_TYPES, Chain, chains, epoch_ends
from skillopt_es.projections.fates import fates_of, note_fates
from skillopt_es.projections.item_results import item_history
from skillopt_es.projections.lineage import lineage
from skillopt_es.projections.not_taken import not_taken, of_step
from skillopt_es.projections.state import proposals_in
from skillopt_es.projections.turning_points import turning_points


@pytest.fixture(params=MOST_SLOW)
def records(request: pytest.FixtureRequest, audited: Audited) -> list[Recorded]:
    """The events of a run of each kind."""
    found = records_of(audited(request.param))
    assert chains(found)
    return found


def proposed(chain: Chain) -> list[str]:
    """What the analysts of a step proposed."""
    return [each.id for patch in chain.patches.values() for each in proposals_in(patch.event)]


def test_a_chain_is_what_the_state_held_before_the_verdict(records: list[Recorded]) -> None:
    """The same patches, merges, ranking and candidate, joined from the same events."""
    found = chains(record for record in records if type(record.event).__name__ in CHAIN_TYPES)
    for record in records:
        if not isinstance(record.event, CandidateGated | StepSkipped):
            continue
        state = fold(each.event for each in records[: record.seq - 1])
        step, chain = state.algorithm.step, found[record.event.step]
        assert step is not None
        assert state.algorithm.epoch is not None
        assert (chain.step, chain.epoch) == (step.number, state.algorithm.epoch.number)
        assert {name: seen.event for name, seen in chain.patches.items()} == dict(step.patches)
        assert {name: seen.event for name, seen in chain.merges.items()} == dict(step.merges)
        assert dict(chain.proposals) == dict(proposals_of(step))
        pairs = ((chain.ranked, step.ranked), (chain.built, state.built), (chain.extended, step.extended))
        assert all((seen.event if seen is not None else None) == held for seen, held in pairs)


def test_every_proposal_of_a_finished_run_has_an_end(records: list[Recorded]) -> None:
    """Those that end as taken are those that were applied in accepted candidates, and no others."""
    for chain in chains(records).values():
        fates = {name: fates_of(chain, name) for name in chain.proposals}
        assert all(fates.values())
        assert not any(fate.reason == "open" for ends in fates.values() for fate in ends)
        reports = chain.built.event.reports if chain.built is not None else ()
        applied = {report.edit for report in reports if report.status.startswith("applied")}
        taken = {fate.same_as or fate.path[-1] for ends in fates.values() for fate in ends if fate.reason == "taken"}
        assert taken == (applied if chain.taken else set())
        for ends in fates.values():
            for fate in ends:
                assert all(name in chain.proposals for name in fate.path)
                assert all(old in chain.proposals[new].origins for old, new in pairwise(fate.path))


def test_what_was_not_taken_and_what_was_are_all_there_is(records: list[Recorded]) -> None:
    """Each analyst's proposal is taken or has a reason; each note, too."""
    rows = not_taken(records).rows
    assert [row.seq for row in rows] == sorted(row.seq for row in rows)
    for chain in chains(records).values():
        refused = {row.id for row in of_step(chain) if row.proposal is not None}
        for name in proposed(chain):
            taken = [fate for fate in fates_of(chain, name) if fate.reason == "taken"]
            assert taken or name in refused
        for fate in note_fates(chain):
            assert fate.reason != "open"
    assert all(row in rows for chain in chains(records).values() for row in of_step(chain))


def test_a_running_run_has_open_ends(records: list[Recorded]) -> None:
    """At any moment everything can be read, and what is open is not called refused."""
    told = [record for record in records if type(record.event).__name__ in {*CHAIN_TYPES, *END_TYPES}]
    for count in range(1, len(told), 3):
        part = told[:count]
        finished = {each.event.step for each in part if isinstance(each.event, CandidateGated | StepSkipped)}
        for row in not_taken(part).rows:
            assert row.step is None or row.step in finished or row.reason in (
                "merged_away", "ranked_out", "not_applied", "unusable", "failed", "consolidated"
            )  # fmt: skip


def test_a_candidate_goes_back_to_patches_and_items(records: list[Recorded]) -> None:
    """Every applied proposal has analysts behind it, and those saw items of the step's groups."""
    for chain in chains(records).values():
        if chain.built is None or chain.groups is None:
            continue
        items = {item for group in chain.groups.event.groups for item in group.items}
        for report in chain.built.event.reports:
            patches = chain.patches_behind(report.edit)
            assert patches
            assert set(chain.items_behind(patches)) <= items
            assert chain.calls_behind(report.edit)


def test_an_epochs_end_is_what_the_state_held_of_it(records: list[Recorded]) -> None:
    """Comparison, guidance, verdict and memory."""
    found = epoch_ends(records)
    for record in records:
        if not isinstance(record.event, EpochCompleted):
            continue
        epoch, end = fold(each.event for each in records[: record.seq]).algorithm.epoch, found[record.event.epoch]
        assert epoch is not None
        known = ((end.proposed, epoch.proposed), (end.applied, epoch.applied), (end.meta, epoch.meta))
        for seen, held in known:
            told = [each.event for each in seen if each.seq < record.seq]
            assert told[-1:] == ([] if held is None else [held])
        drawn = () if end.drawn is None else end.drawn.event.items
        drawn += tuple(item for seen in end.extended for item in seen.event.items)
        assert drawn == (() if epoch.comparison is None else epoch.comparison.items)


def test_an_item_is_followed_through_the_whole_run(records: list[Recorded]) -> None:
    """Each of its results, each analyst that saw it, and each gate at which it turned."""
    items = {record.event.item for record in records if isinstance(record.event, RolloutCompleted)}
    for item in sorted(items)[::5]:
        history = item_history(item, records)
        rollouts = [
            each.seq for each in records if isinstance(each.event, RolloutCompleted) and each.event.item == item
        ]
        assert [seen.seq for seen in history.results] == rollouts
        gates = {each.event.step for each in records if isinstance(each.event, CandidateGated)
                 and item in each.event.verdict.won + each.event.verdict.lost}  # fmt: skip
        assert {turned.step for turned in history.turned if turned.step is not None} == gates
        for use in history.uses:
            assert item in use.patch.event.items
            assert len(use.proposals) == len(proposals_in(use.patch.event))


def test_an_item_turns_where_its_recorded_results_do(records: list[Recorded]) -> None:
    """Each turn lies between two texts with other results, and nothing clear lies between."""
    tree = lineage(records)
    skills = {record.event.candidate.hash for record in records if isinstance(record.event, CandidateBuilt)}
    assert skills
    for item in sorted({each.event.item for each in records if isinstance(each.event, RolloutCompleted)})[::4]:
        found = turning_points(item, tree, records)
        assert [each.text for each in found.under] == [node.name for node in tree.nodes if node.taken]
        for under in found.under:
            outcomes = [
                each.event.outcome.passed
                for each in records
                if isinstance(each.event, RolloutCompleted) and isinstance(each.event.outcome, Measured)
                and (each.event.item, each.event.skill) == (item, under.skill)
            ]  # fmt: skip
            expected = {(): "missing", (True,): "passed", (False,): "failed", (False, True): "mixed"}
            assert under.result == expected[tuple(sorted(set(outcomes)))]
        clear = [each for each in found.under if each.result in ("passed", "failed")]
        changes = [(a.text, b.text) for a, b in pairwise(clear) if a.result != b.result]
        assert [(turn.before.text, turn.after.text) for turn in found.turns] == changes
        assert all(each.result not in ("passed", "failed") for turn in found.turns for each in turn.between)
