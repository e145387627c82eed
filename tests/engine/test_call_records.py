"""Records of calls: what is the same in all of them, and what says that one was made ahead or repeats another."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from skillopt_es.engine.call_records import (
    Asked,
    answered_call,
    failed_call,
    recorded_request,
    repeating_call,
    unanswered_call,
)
from skillopt_es.events.journal import CallRow, FinishedCall
from skillopt_es.events.values import text_digest
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, Message, Try, Usage

REQUEST = ChatRequest(slot="baseline/item/a", stage="rollout", messages=(Message("user", "q"),), max_tokens=9)
ASKED = Asked("target", REQUEST, "m", recorded_request(REQUEST))
BUSY = Try(kind="server", status=503, message="busy", waited_ms=5)
REPLY = ChatReply(text="a", finish="stop", model="m-1", usage=Usage(input=3, output=1), tries=(BUSY,))
FAILURE = CallFailed("server", "busy", tries=(BUSY,))
ANSWERED = answered_call(ASKED, REPLY, ahead=False)
EARLIER = CallRow(n=1, attempt=1, call=ANSWERED, recorded_at="", prev_hash="", hash="")


@pytest.mark.parametrize(
    ("call", "ahead", "repeats", "tries"),
    [
        (unanswered_call(ASKED), False, "", []),
        (ANSWERED, False, "", ["server"]),
        (answered_call(ASKED, REPLY, ahead=True), True, "", ["server"]),
        (failed_call(ASKED, FAILURE, ahead=False), False, "", ["server"]),
        (failed_call(ASKED, FAILURE, ahead=True), True, "", ["server"]),
        (repeating_call(ASKED, EARLIER), False, "baseline/item/a", []),
    ],
    ids=["unanswered", "answered", "answered-ahead", "failed", "failed-ahead", "repeating"],
)
def test_every_record_says_what_was_asked_and_whether_it_was_ahead_or_repeats_another(
    call: FinishedCall, ahead: bool, repeats: str, tries: list[str]
) -> None:
    """Its tries are tries, and nothing else."""
    asked = (call.slot, call.role, call.stage, call.model, call.request)
    assert asked == ("baseline/item/a", "target", "rollout", "m", ASKED.recorded)
    assert call.request_digest == ANSWERED.request_digest
    assert [one["kind"] for one in json.loads(call.tries)] == tries
    assert (call.ahead, call.repeats) == (ahead, repeats)


def test_a_repeated_answer_is_the_earlier_one_at_no_cost() -> None:
    """Its tokens are counted once, where it was made."""
    call = repeating_call(ASKED, EARLIER)
    assert (call.response, call.finish, call.reply_model) == (text_digest("a"), "stop", "m-1")
    assert (call.input_tokens, call.output_tokens, call.cached_tokens, call.reasoning_tokens) == (0, 0, 0, 0)
    assert (ANSWERED.input_tokens, ANSWERED.cached_tokens) == (3, None)


def test_fields_make_another_question_and_are_not_recorded() -> None:
    """Only their digest is: an answer to other fields answers another question."""
    told = [recorded_request(evolve(REQUEST, fields={"language": said})) for said in ("de", "fr")]
    assert len({each.digest("m") for each in (*told, ASKED.recorded)}) == 3
    assert "language" not in told[0].text
