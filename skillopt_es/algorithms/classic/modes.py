"""
The update modes: what analysts propose, how their questions are worded, and what mergers are shown.

    patch                       edits of the skill
    rewrite_from_suggestions    suggestions, from which one call rewrites the whole skill
    full_rewrite_minibatch      drafts: whole skills that are merged into one
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.config import OptimizerConfig
from skillopt_es.config.sections import UpdateMode
from skillopt_es.engine.trajectories import fenced
from skillopt_es.events.values import Draft, Edit, Json, Proposal, Suggestion
from skillopt_es.replies.proposals import DRAFTS, EDITS, SUGGESTIONS, Kind

Group = tuple[str, Sequence[tuple[str, Proposal]]]
"""The proposals of one merge input: where they come from, and each with its label."""


@frozen(kw_only=True)
class Mode:
    """One update mode: the kind of its proposals and what questions call it, and how much an analyst may propose."""

    kind: Kind
    proposals: str
    prompts: str  # what the names of its prompts end with
    limit: str

    def most_tokens(self, optimizer: OptimizerConfig) -> int:
        """How long the reply of an analyst or a merger may be."""
        return optimizer.rewrite_max_completion_tokens if self.kind.whole else optimizer.max_completion_tokens

    def shown(self, groups: Sequence[Group]) -> str:
        """What mergers are shown."""
        if self.kind.whole:
            drafts = ((name, *each) for name, group in groups for each in group)
            return "\n\n".join(_block(name, label, each) for name, label, each in drafts if isinstance(each, Draft))
        rows: list[dict[str, Json]] = [
            {"from": name, self.kind.rows: [_row(label, each) for label, each in group if not isinstance(each, Draft)]}
            for name, group in groups
        ]
        text = json.dumps(rows, indent=1, ensure_ascii=False)
        return fenced("suggestions", text) if self.kind is SUGGESTIONS else text


def mode_of(optimizer: OptimizerConfig) -> Mode:
    """The mode that a run is in."""
    return _MODES[optimizer.skill_update_mode]


_MODES: Mapping[UpdateMode, Mode] = {
    "patch": Mode(
        kind=EDITS,
        proposals="edits",
        prompts="",
        limit="## Budget\nPropose at most {most} edits, one for each kind of task above.",
    ),
    "rewrite_from_suggestions": Mode(
        kind=SUGGESTIONS,
        proposals="suggestions",
        prompts="_rewrite",
        limit="## Budget\nMake at most {most} suggestions, one for each kind of task above.",
    ),
    "full_rewrite_minibatch": Mode(
        kind=DRAFTS,
        proposals="drafts",
        prompts="_full_rewrite",
        limit="## Form\nWrite one complete skill that takes the place of the current one: no edits, no suggestions.",
    ),
}


def _block(name: str, label: str, draft: Draft) -> str:
    about = "\n".join([f"title: {draft.title}", *(f"change: {change}" for change in draft.changes)])
    head = f"### {label}, from {name}: {draft.source}, support_count {draft.support}"
    return f"{head}\n{fenced(f'about {label}', about)}\n{fenced(f'draft {label}', draft.text)}"


def _row(label: str, proposal: Edit | Suggestion) -> dict[str, Json]:
    said = fields_of(proposal)
    return {"label": label, **said, "support_count": proposal.support, "source_type": proposal.source}


def fields_of(proposal: Edit | Suggestion) -> dict[str, Json]:
    """What a proposal says, as its row of a reply has it."""
    if isinstance(proposal, Edit):
        file: dict[str, Json] = {"file": proposal.file} if proposal.file else {}
        return {"op": proposal.op, **file, "target": proposal.target, "content": proposal.content}
    return {
        "type": proposal.kind,
        "title": proposal.title,
        "motivation": proposal.motivation,
        "instruction": proposal.instruction,
        "priority_hint": proposal.priority,
    }
