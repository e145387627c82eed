"""A reply as a whole: a key in any of its texts is gone."""

from __future__ import annotations

from attrs import asdict, evolve, fields

from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.ports import AgentStep, ChatReply, ToolCall, Try

KEY = "sk-canary-0123456789abcdefWXYZ"


def test_no_text_of_a_reply_is_left_out() -> None:
    """All of them hold the key here, those that are added to a reply later too: this test fails until they do."""
    reply = ChatReply(
        text=KEY,
        finish="tools",
        tool_calls=(ToolCall(KEY, KEY, KEY),),
        model=KEY,
        request_id=KEY,
        tries=(Try(kind="server", status=500, message=KEY, waited_ms=0),),
        steps=(AgentStep(kind="tool", text=KEY, output=KEY),),
    )
    texts = {ChatReply: {"finish"}, Try: {"kind"}, AgentStep: {"kind"}, ToolCall: set[str]()}
    for each in (reply, *reply.tool_calls, *reply.tries, *reply.steps):
        own = {name: value for name, value in asdict(each, recurse=False).items() if isinstance(value, str)}
        assert {name for name, value in own.items() if value != KEY} == texts[type(each)], fields(type(each))
    assert KEY not in str(asdict(Redactor([KEY]).answer(reply)))


def test_each_text_of_a_reply_is_looked_at_by_itself() -> None:
    """A key in one text alone is gone, too; a reply without any stays the very same."""
    plain, redactor = ChatReply(text="4", finish="stop"), Redactor([KEY])
    texts = [name for name, value in asdict(plain, recurse=False).items() if isinstance(value, str)]
    for name in set(texts) - {"finish"}:
        assert KEY not in str(asdict(redactor.answer(evolve(plain, **{name: KEY})))), name
    assert redactor.answer(plain) is plain
