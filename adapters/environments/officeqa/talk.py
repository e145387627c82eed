"""The conversations of OfficeQA: one question, turns with tools that read documents, or rounds of searching."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from attrs import define

from skillopt_es.adapters.environments import benchmark
from skillopt_es.adapters.environments.officeqa.prompt import round_policy
from skillopt_es.adapters.environments.officeqa.search import SearchEngine, queries_in
from skillopt_es.adapters.environments.officeqa.tools import MOST_CALLS, TOOLS, Desk
from skillopt_es.adapters.environments.text import last_tagged
from skillopt_es.ports import Ask, Message, ToolCall


@define
class Talk(benchmark.Talk):
    """What was said in one attempt; `exhausted` says which budget ended it before there was an answer."""

    exhausted: str = ""


async def asked_once(messages: Sequence[Message], ask: Ask, *, max_tokens: int) -> Talk:
    """One question, one reply."""
    return Talk([*messages], await ask(messages, max_tokens=max_tokens))


async def with_tools(messages: Sequence[Message], ask: Ask, desk: Desk, *, most: int, max_tokens: int) -> Talk:
    """Turns until a reply asks for no tool, at most `most` of them; raises UnreadableError."""
    talk = Talk([*messages], await ask(messages, max_tokens=max_tokens, tools=TOOLS, tool_choice="auto"))
    while talk.reply.tool_calls and talk.reply.finish == "tools":
        said = Message("assistant", talk.reply.text, tool_calls=talk.reply.tool_calls)
        if talk.turns >= most:
            talk.messages = [*talk.messages, said]
            talk.exhausted = f"all {most} turns were used up on tools, without an answer"
            break
        talk.messages = [*talk.messages, said, *await asyncio.to_thread(_answers, desk, talk.reply.tool_calls)]
        talk.reply = await ask(talk.messages, max_tokens=max_tokens, tools=TOOLS, tool_choice="auto")
        talk.turns += 1
    return talk


async def with_search(
    messages: Sequence[Message], ask: Ask, engine: SearchEngine, *, most: int, queries: int, max_tokens: int
) -> Talk:
    """Rounds until a reply answers or asks for nothing, at most `most` of them; raises SearchFailed."""
    *before, asked = messages
    opening = Message("user", f"{asked.content}\n\n{round_policy(1, most, queries)}")
    talk = Talk([*before, opening], await ask([*before, opening], max_tokens=max_tokens))
    while talk.reply.finish in ("stop", "other") and last_tagged(talk.reply.text, "answer") is None:
        wanted = queries_in(talk.reply.text, queries)
        said = Message("assistant", talk.reply.text)
        if talk.turns >= most:
            talk.messages = [*talk.messages, said]
            talk.exhausted = f"the last of {most} rounds gave no answer"
        if talk.exhausted or not wanted:
            break
        found = [await engine.found(query) for query in wanted]
        blocks = [f"## Results for {query!r}\n{text}" for query, text in zip(wanted, found, strict=True)]
        policy = round_policy(talk.turns + 1, most, queries)
        talk.messages = [*talk.messages, said, Message("user", "\n\n".join([*blocks, policy]))]
        talk.reply = await ask(talk.messages, max_tokens=max_tokens)
        talk.turns += 1
    return talk


def _answers(desk: Desk, calls: Sequence[ToolCall]) -> list[Message]:
    """An answer for every request, in their order."""
    too_many = f"[at most {MOST_CALLS} requests in one reply]"
    return [
        Message("tool", desk.use(call) if place < MOST_CALLS else too_many, tool_call_id=call.id)
        for place, call in enumerate(calls)
    ]
