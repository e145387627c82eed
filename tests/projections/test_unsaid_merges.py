"""Runs whose merges do not say what they used: nothing is credited to everything, and nothing is listed twice."""

from __future__ import annotations

from collections import Counter

import pytest
from support.audited import records_of
from support.unsaid import unsaid_run

from skillopt_es.audit.blame import BLAME_TYPES, blame
from skillopt_es.audit.descent import Evidence, descent
from skillopt_es.events.catalog import Recorded
from skillopt_es.events.values import Edit
from skillopt_es.projections.chains import Chain, chains
from skillopt_es.projections.fates import fates_of
from skillopt_es.projections.not_taken import not_taken
from skillopt_es.projections.state import proposals_in
from skillopt_es.projections.wording import same_words


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Recorded]:
    """A run of two levels of merges, and once more at its end."""
    return records_of(unsaid_run(tmp_path_factory.mktemp("unsaid"), 20, 3, 2))


@pytest.fixture(scope="module")
def steps(records: list[Recorded]) -> list[Chain]:
    """Its steps."""
    found = list(chains(records).values())
    assert found
    return found


def _proposed(chain: Chain) -> list[Edit]:
    return [each for patch in chain.patches.values() for each in proposals_in(patch.event) if isinstance(each, Edit)]


def test_the_log_credits_everything_to_everything(steps: list[Chain]) -> None:
    """What the tests below are about: two levels, all origins assumed, many each."""
    for chain in steps:
        assert {made.event.level for made in chain.merges.values()} >= {1, 2}
        written = [each for made in chain.merges.values() for each in proposals_in(made.event)]
        assert all(each.origins_assumed for each in written)
        assert sum(len(each.origins) for each in written) > 5 * len(written)
        assert len(chain.unsaid) == len(chain.merges)


def test_each_proposal_ends_once(steps: list[Chain]) -> None:
    """It goes to at most one of what a merge wrote, so that its ways do not multiply by levels."""
    for chain in steps:
        assert all(len(into) == 1 for name, into in chain.merged_into.items() if name in chain.proposals)
        assert all(len(fates_of(chain, each.id)) == 1 for each in _proposed(chain))


def test_a_proposal_goes_to_what_is_about_the_same(steps: list[Chain]) -> None:
    """Nearly all find the edit on their own topic, also where it is in other words."""
    found = Counter(
        _topic(chain.proposals[new]) == _topic(chain.proposals[old])
        for chain in steps
        for old, into in chain.merged_into.items()
        if old in chain.proposals
        for new in into
    )
    assert found[True] > 50 * found[False]


def _topic(proposal: object) -> str:
    assert isinstance(proposal, Edit)
    return proposal.content.partition("know ")[2].split()[0].strip(":.")


def test_what_is_in_the_skill_is_not_listed(records: list[Recorded], steps: list[Chain]) -> None:
    """Neither an edit that was applied, nor any in the same words; everything else is, once."""
    rows = [row for row in not_taken(records).rows if row.kind == "edit"]
    assert all(count == 1 for count in Counter(row.id for row in rows).values())
    listed = {row.id for row in rows}
    for chain in steps:
        assert chain.taken
        for each in _proposed(chain):
            in_skill = any(fate.reason == "taken" for fate in fates_of(chain, each.id))
            assert in_skill != (each.id in listed)
            assert in_skill or same_words(each) not in chain.in_skill
    assert {row.reason for row in rows} == {"ranked_out"}


def test_a_line_goes_back_to_what_says_it(records: list[Recorded]) -> None:
    """Its analysts are those who proposed it, and not everybody."""
    found = blame(each for each in records if type(each.event).__name__ in BLAME_TYPES)
    assert found is not None
    written = [maker for maker in found.lines_written if maker.kind == "edit" and maker.step is not None]
    assert written
    for maker in written:
        chain = found.chains[maker.step or 0]
        [name] = maker.proposals
        if not chain.unplaced(name):
            assert 1 <= len(chain.patches_behind(name)) < len(chain.patches) / 2


def test_an_item_goes_on_to_what_says_what_its_analysts_said(records: list[Recorded], steps: list[Chain]) -> None:
    """And to what nothing is worded like, which any analyst may be behind."""
    found = descent(Evidence("t1"), records)
    own = {
        each.id
        for chain in steps
        for each in _proposed(chain)
        if "t1" in chain.patches[chain.maker_of[each.id]].event.items
    }
    said = {each.name for each in found.derived if each.kind == "proposal"}
    assert own <= said
    assert len(said) < sum(len(chain.proposals) for chain in steps) / 3
    assert len(found.unsaid) == sum(len(chain.merges) for chain in steps)
    for chain in steps:
        assert {name for name in chain.proposals if chain.unplaced(name)} <= said
