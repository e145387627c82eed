"""
Answers compared: what a judge says of two answers to one item, asked through the journal like everything else.

The answers are those of recorded attempts, so this is done by the writer alone, wherever attempts are made. Where both
say the same, or one skill gave no answer, nobody is asked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from attrs import frozen

from skillopt_es.engine.calls import Calls
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.work import Comparisons, Emission, Rivals
from skillopt_es.events.catalog import AnswersCompared
from skillopt_es.events.erasures import ErasedText
from skillopt_es.events.places import Place
from skillopt_es.events.values import EVEN, CallRef, Failed, Json, Measured, Outcome
from skillopt_es.ports import AsyncCall, ChatReply, ChatRequest, Comparing, Executor, Item, Message


@frozen(kw_only=True)
class ComparingPorts:
    """What a comparison needs of the world."""

    environment: Comparing
    items: Mapping[str, Item]
    executor: Executor
    calls: Calls
    evidence: RecordedTexts


async def run_comparisons(task: Comparisons, run: RunData, ports: ComparingPorts) -> AsyncGenerator[Emission, None]:
    """What the judge says of each pair, in the order of the plan."""
    jobs = [_job(pair, run, ports) for pair in task.pairs]
    async with aclosing(ports.executor.stream(jobs, workers=run.workers["judge"] * 2)) as stream:
        async for done in stream:
            yield Emission(done)


def _job(pair: Rivals, run: RunData, ports: ComparingPorts) -> AsyncCall[AnswersCompared]:
    async def compare() -> AnswersCompared:
        judge = Judge(pair.place.of_item(pair.item), pair.item, run, ports.calls, asked=pair.judged)
        outcome, failure = await _outcome(pair, ports, judge)
        return AnswersCompared(
            place=pair.place,
            item=pair.item,
            candidate=pair.candidate,
            current=pair.current,
            answer=pair.answer,
            other=pair.other,
            outcome=outcome,
            failure=failure,
            calls=tuple(judge.made),
        )

    return compare


async def _outcome(pair: Rivals, ports: ComparingPorts, judge: Judge) -> tuple[Outcome, str]:
    if pair.answer is None or pair.other is None:  # none is worse than any
        return (EVEN if pair.answer == pair.other else Measured(*[float(pair.answer is not None)] * 2)), ""
    ours, theirs = (ports.evidence.exchange(ref).answer for ref in (pair.answer, pair.other))
    if isinstance(ours, ErasedText) or isinstance(theirs, ErasedText):
        return Failed("erased", "one of the two answers was erased"), "erased"
    if ours == theirs:
        return EVEN, ""
    outcome = await ports.environment.compare(ports.items[pair.item], ours, theirs, judge)
    return outcome, outcome.kind if isinstance(outcome, Failed) else ""


class Judge:
    """The judge bound to the answers to one item; slots go on after the questions that were `asked` in vain."""

    def __init__(self, slot: Place, item: str, run: RunData, calls: Calls, *, asked: int) -> None:
        self._slot = slot
        self._item = item
        self._run = run
        self._calls = calls
        self._asked = asked
        self.made: list[CallRef] = []

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        """What it says."""
        self._asked += 1
        request = judge_request(
            self._run, self._slot.judged(self._asked), self._item, messages, max_tokens=max_tokens, schema=schema
        )
        answer = await self._calls.ask("judge", request)
        self.made.append(answer.ref)
        return ChatReply(text=answer.text, finish=answer.finish)


def judge_request(
    run: RunData, slot: Place, item: str, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]
) -> ChatRequest:
    """A question to the judge about an item's answers."""
    role = run.config.judge_model
    return ChatRequest(
        slot=slot,
        stage="judge",
        messages=tuple(messages),
        max_tokens=max_tokens,
        temperature=role.temperature,
        effort=role.reasoning_effort,
        schema=schema,
        item=item,
    )
