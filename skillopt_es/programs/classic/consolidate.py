"""Consolidate: the optimizer says the same in fewer reminder notes; where it does not, they stay as they are."""

from __future__ import annotations

from functools import partial

from skillopt_es.engine.consult import Asking, Consulted
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import RecordedTexts
from skillopt_es.events.catalog import AppendixConsolidated
from skillopt_es.programs.classic.jobs import ConsolidateJob
from skillopt_es.programs.classic.state import ClassicState
from skillopt_es.programs.optimizer import question
from skillopt_es.replies.answers import CONSOLIDATION_SCHEMA
from skillopt_es.replies.notes import ConsolidationReply, read_consolidation


def consolidate(
    job: ConsolidateJob, state: ClassicState, run: RunData, evidence: RecordedTexts
) -> Asking[ConsolidationReply]:
    """The shorter list, or the old one and why."""
    step = state.program.step
    assert step is not None
    assert step.extended is not None
    before = step.extended.notes
    lines = [f"{number}. {note}" for number, note in enumerate(before, start=1)]
    request = question(
        run,
        slot=job.slot,
        stage="appendix",
        prompt="consolidate_notes",
        sections=(f"## Reminder notes ({len(before)})\n" + "\n".join(lines),),
        schema=CONSOLIDATION_SCHEMA,
    )
    read = partial(read_consolidation, before=before)

    def answered(consulted: Consulted[ConsolidationReply]) -> AppendixConsolidated:
        reply = consulted.value
        if reply is None:
            return AppendixConsolidated(
                step=step.number,
                result="failed" if consulted.failed else "unusable",
                before=before,
                notes=before,
                note=consulted.why,
                calls=consulted.calls,
            )
        return AppendixConsolidated(
            step=step.number,
            result="consolidated",
            before=before,
            notes=reply.notes,
            reasoning=reply.reasoning,
            calls=consulted.calls,
        )

    return Asking(request=request, read=read, event=answered)
