"""Evidence: the texts and calls of one log, read by what its events name."""

from __future__ import annotations

from attrs import field, frozen

from skillopt_es.engine.call_records import Exchange, read_answer, steps_of
from skillopt_es.engine.calls import AllCalls, Texts
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.values import CallRef

_KEPT = 128  # calls: a step asks for those of its batch at once
_MOST_CHARS = 65_536  # of a call's question: many of that size would hold the memory of a whole run


@frozen
class RecordedTexts:
    """The texts and calls of one log; the last calls are kept, for a step asks for those that it has just made."""

    texts: Texts
    journal: AllCalls
    _last: dict[CallRef, Exchange] = field(factory=dict, init=False, repr=False, eq=False)

    def text(self, digest: str) -> str:
        """The text with this digest."""
        return self.texts.text(digest)

    def exchange(self, ref: CallRef) -> Exchange:
        """The call that an event refers to; raises LogDamaged when the journal has no such call."""
        found = self._last.get(ref)
        if found is None:
            found = self._read(ref)
            self.keep(ref, found)
        return found

    def keep(self, ref: CallRef, exchange: Exchange) -> None:
        """Have a call at hand that the log holds too; very long ones are read again when they are wanted."""
        if sum(map(len, exchange.sent)) > _MOST_CHARS:
            return
        if len(self._last) >= _KEPT:
            # A dict keeps its order: this is the oldest.
            self._last.pop(next(iter(self._last)))
        self._last[ref] = exchange

    def _read(self, ref: CallRef) -> Exchange:
        for row in self.journal.attempts(ref.slot):
            if row.digest == ref.digest:
                recorded = "" if row.call.response is None else self.text(row.call.response)
                answer, _ = read_answer(recorded, row.call.finish) if recorded else ("", ())
                steps = () if row.call.trace is None else steps_of(self.text(row.call.trace))
                return Exchange(tuple(self.text(digest) for _, digest in row.call.request.messages), answer, steps)
        raise LogDamaged(f"the journal has no call {ref.digest[:12]} at {ref.slot}")
