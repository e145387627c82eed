"""How many modules one call to a model enters. A change that needs more raises the bound here, in the open."""

from __future__ import annotations

import pytest

from shape.way_of_a_call import LEGS, OPTIMIZER, TARGET, Way, ways

MOST = {OPTIMIZER: 19, TARGET: 19}


@pytest.fixture(scope="module")
def traced() -> dict[str, Way]:
    """The ways of both, from one run."""
    return dict(ways())


@pytest.mark.parametrize("slot", MOST)
def test_a_call_is_journaled_after_few_modules(slot: str, traced: dict[str, Way]) -> None:
    """From the question to the answer in the journal."""
    asked = traced[slot].legs["asked"]
    assert len(asked) <= MOST[slot], sorted(asked)


@pytest.mark.parametrize("slot", MOST)
def test_the_tracer_sees_each_leg(slot: str, traced: dict[str, Way]) -> None:
    """What is certain about any call: it is paid for, put on the wire, journaled, and folded."""
    legs = traced[slot].legs
    assert legs.keys() == set(LEGS)
    paid = {"skillopt_es/engine/calls.py", "adapters/models/http_model.py", "events/journal.py", "events/writer.py"}
    assert paid <= legs["asked"]
    assert {"projections/core.py", "events/store.py"} <= legs["recorded"]
    assert not (legs["read"] & paid)
