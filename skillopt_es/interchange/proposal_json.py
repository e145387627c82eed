"""What analysts propose, as the original's files spell it: edits, suggestions or whole skills, by the update mode."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.config.table import other_words
from skillopt_es.events.catalog import PatchesMerged
from skillopt_es.events.values import Draft, Edit, Json, Proposal, Suggestion

Record = dict[str, Json]
EDITS, SUGGESTIONS, DRAFTS = "edits", "revise_suggestions", "skill_candidates"
"""Where a patch has what it proposes, by update mode."""
_KEYS = {"rewrite_from_suggestions": SUGGESTIONS, "full_rewrite_minibatch": DRAFTS}
_MODES = other_words("optimizer.skill_update_mode")
_SHORT = 200  # the original's: it cuts both to 200 characters


def payload(proposals: Sequence[Proposal], rows: Sequence[Record], mode: Json = "patch") -> Record:
    """The rows under the key that the kind of proposal has, or the update mode where nothing was proposed."""
    match next(iter(proposals), None):
        case Suggestion():
            key = SUGGESTIONS
        case Draft():
            key = DRAFTS
        case Edit():
            key = EDITS
        case _:
            key = _KEYS.get(_MODES.get(str(mode), str(mode)), EDITS)
    return {key: [*rows]}


def said_json(proposal: Proposal) -> Record:
    """A proposal as an analyst made it."""
    match proposal:
        case Edit():
            target: Record = {"target": proposal.target} if proposal.target else {}
            nothing = proposal.op == "delete" and not proposal.content
            return {"op": proposal.op, **target, **({} if nothing else {"content": proposal.content})}
        case Suggestion():
            return {
                "type": proposal.kind,
                "title": proposal.title,
                "motivation": proposal.motivation,
                "instruction": proposal.instruction,
                "priority_hint": proposal.priority,
            }
        case Draft():
            return {"title": proposal.title, "change_summary": list(proposal.changes), "new_skill": proposal.text}


def kept_json(proposal: Proposal, merged: PatchesMerged | None) -> Record:
    """A proposal with its bookkeeping."""
    level: Record = {"merge_level": merged.level} if merged and merged.group != "final" else {}
    return {**said_json(proposal), "support_count": proposal.support, "source_type": proposal.source, **level}


def rejected_json(proposal: Proposal) -> Record:
    """A proposal as later steps are told of its rejection."""
    match proposal:
        case Edit():
            return {"op": proposal.op, "content": proposal.content, "target": proposal.target}
        case Suggestion():
            return {"type": proposal.kind, "title": proposal.title, "instruction": proposal.instruction}
        case Draft():
            changes: list[Json] = list(proposal.changes)
            return {"title": proposal.title, "change_summary": changes, "source_type": proposal.source}


def report_json(edit: Edit, status: str, number: int) -> Record:
    """What became of one edit."""
    return {
        "op": edit.op,
        "target": edit.target[:_SHORT],
        "content_preview": edit.content[:_SHORT],
        "status": status,
        "index": number,
    }
