"""Typed values as JSON: null for what no call reported, never zero."""

from __future__ import annotations

from skillopt_es.events.catalog import SealedTestOpened
from skillopt_es.events.journal import CallRow, FinishedCall
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Edit
from skillopt_es.presenting.documents import looks_json, proposal_json, usage_json
from skillopt_es.projections.seal import Looks
from skillopt_es.projections.usage import usage_of


def test_what_nobody_reported_is_null() -> None:
    """A call of which nothing is known but that it was made."""
    call = FinishedCall(
        slot="e1/s1/b0/i1", role="target", stage="rollout", model="m", request=RecordedRequest("{}"), outcome="answered"
    )
    row = CallRow(n=1, attempt=1, call=call, recorded_at="", prev_hash="", hash="")
    found = usage_json(usage_of([row]).total)
    assert (found["calls"], found["input_tokens"], found["input_unreported_calls"], found["cost"]) == (1, None, 1, None)


def test_a_proposal_says_its_kind() -> None:
    """And its values as JSON has them."""
    assert proposal_json(Edit("e", op="append", content="x", origins=("a",))) == {
        "type": "edit", "id": "e", "op": "append", "content": "x", "target": "", "file": "", "support": 1,
        "source": "failure", "origins": ["a"], "origins_assumed": False,
    }  # fmt: skip


def test_looks_are_a_list() -> None:
    """What a look has not is null."""
    looks = Looks(opened=(SealedTestOpened(look=1, by="final"),))
    opened = [{"look": 1, "by": "final", "skill": None, "evaluation": None}]
    assert looks_json(looks, sealed=True) == {"sealed": True, "count": 1, "opened": opened}
