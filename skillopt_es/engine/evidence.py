"""Evidence: the texts and calls of one log, read by what its events name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from attrs import field, frozen

from skillopt_es.engine.call_records import Exchange, LastCalls, read_answer, recorded_request, steps_of
from skillopt_es.engine.calls import Answer, Texts, answer_of
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.journal import CallRow
from skillopt_es.events.values import CallRef, Role
from skillopt_es.ports import CallFailed, ChatRequest, FailureKind


class AllCalls(Protocol):
    """The journal with failed calls too."""

    def attempts(self, slot: str) -> Sequence[CallRow]:
        """Every recorded call of a slot, failed ones too."""
        ...


@frozen
class RecordedTexts:
    """The texts and calls of one log."""

    texts: Texts
    journal: AllCalls
    last: LastCalls = field(factory=LastCalls, init=False, repr=False, eq=False)

    def text(self, digest: str) -> str:
        """The text with this digest."""
        return self.texts.text(digest)

    def exchange(self, ref: CallRef) -> Exchange:
        """The call that an event refers to; raises LogDamaged when the journal has no such call."""
        found = self.last.get(ref)
        if found is None:
            found = self._read(ref)
            self.last.keep(ref, found)
        return found

    def _read(self, ref: CallRef) -> Exchange:
        for row in self.journal.attempts(ref.slot):
            if row.digest == ref.digest:
                recorded = "" if row.call.response is None else self.text(row.call.response)
                answer, _ = read_answer(recorded, row.call.finish) if recorded else ("", ())
                steps = () if row.call.trace is None else steps_of(self.text(row.call.trace))
                return Exchange(tuple(self.text(digest) for _, digest in row.call.request.messages), answer, steps)
        raise LogDamaged(f"the journal has no call {ref.digest[:12]} at {ref.slot}")


class RecordedCalls:
    """Calls answered from the journal alone, by slot: for checking decisions against their evidence."""

    def __init__(self, journal: AllCalls, texts: Texts) -> None:
        self._journal = journal
        self._texts = texts

    async def ask(self, role: Role, request: ChatRequest) -> Answer:
        """The recorded answer or the recorded failure of this slot; to this very request, if it was ever made."""
        rows = self._journal.attempts(request.slot)
        recorded = recorded_request(request)
        rows = [row for row in rows if row.call.request_digest == recorded.digest(row.call.model)] or rows
        answered = [row for row in rows if row.call.outcome == "answered"]
        if answered:
            return answer_of(answered[-1], self._texts)
        if rows:
            failed = rows[-1].call
            raise CallFailed(cast(FailureKind, failed.error_kind), failed.error_message)
        raise CallFailed("transport", f"the journal has no call for {request.slot}")
