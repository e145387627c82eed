"""Evidence: the texts and calls of one log, read by what its events name."""

from __future__ import annotations

from attrs import field, frozen

from skillopt_es.engine.call_records import Exchange, LastCalls, read_answer, steps_of
from skillopt_es.engine.calls import AllCalls, Texts
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.values import CallRef


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
