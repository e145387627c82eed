"""What a run has recorded of the world, read back: texts by digest, and whole exchanges with a model by reference."""

from __future__ import annotations

import json

from attrs import field, frozen

from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.values import CallRef
from skillopt_es.ports import Step
from skillopt_es.training.calls import AllCalls, Texts, read_answer
from skillopt_es.training.steps import steps_of

_KEPT = 128


@frozen
class Exchange:
    """One call: the texts that were sent, in order, the answer, and what an agent did before it."""

    sent: tuple[str, ...]
    answer: str
    steps: tuple[Step, ...] = ()


@frozen
class Evidence:
    """The texts and calls of one log; the last calls that were read are kept, for a step asks for them twice."""

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
            if len(self._last) >= _KEPT:
                self._last.pop(next(iter(self._last)))
            found = self._last[ref] = self._read(ref)
        return found

    def _read(self, ref: CallRef) -> Exchange:
        for row in self.journal.attempts(ref.slot):
            if row.digest == ref.digest:
                messages = json.loads(row.call.request)["messages"]
                recorded = "" if row.call.response is None else self.text(row.call.response)
                answer, _ = read_answer(recorded, row.call.finish) if recorded else ("", ())
                steps = () if row.call.trace is None else steps_of(self.text(row.call.trace))
                return Exchange(tuple(self.text(digest) for _, digest in messages), answer, steps)
        raise LogDamaged(f"the journal has no call {ref.digest[:12]} at {ref.slot}")
