"""
The update modes: what analysts propose, how their questions are worded, and how the replies are read.

    patch                       edits of the skill
    rewrite_from_suggestions    suggestions, from which one call rewrites the whole skill
    full_rewrite_minibatch      drafts: whole skills that are merged into one
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from skillopt_es.config import OptimizerConfig
from skillopt_es.config.sections import UpdateMode
from skillopt_es.engine.trajectories import fenced
from skillopt_es.events.values import Draft, Edit, Json, PatchSource, Proposal, Suggestion
from skillopt_es.replies.answers import (
    FAILURE_SCHEMA,
    MERGE_SCHEMA,
    NOTED_FAILURE_SCHEMA,
    NOTED_SUCCESS_SCHEMA,
    SUCCESS_SCHEMA,
    MergeReply,
    PatchReply,
    read_merge,
    read_patch,
)
from skillopt_es.replies.drafts import (
    FAILURE_DRAFT_SCHEMA,
    MERGED_DRAFT_SCHEMA,
    SUCCESS_DRAFT_SCHEMA,
    read_draft,
    read_merged_draft,
)
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.suggestions import (
    FAILURE_SUGGESTIONS_SCHEMA,
    MERGED_SUGGESTIONS_SCHEMA,
    NOTED_FAILURE_SUGGESTIONS_SCHEMA,
    NOTED_SUCCESS_SUGGESTIONS_SCHEMA,
    SUCCESS_SUGGESTIONS_SCHEMA,
    read_merged_suggestions,
    read_suggestions,
)

Schema = Mapping[str, Json]
Group = tuple[str, Sequence[tuple[str, Proposal]]]
"""The proposals of one merge input: where they come from, and each with its label."""


@frozen(kw_only=True)
class Mode:
    """One update mode, as the stages need it."""

    prompts: str  # what the names of its prompts end with
    proposals: str  # what analysts propose, as questions call it
    limit: str  # how much an analyst may propose
    writes_skills: bool  # whether analysts and mergers reply with a whole skill
    schemas: Mapping[PatchSource, Schema]
    noted_schemas: Mapping[PatchSource, Schema]  # with reminder notes; empty where a mode has none
    merge_schema: Schema
    read_patch: Callable[[str, str, PatchSource, int, int, int], PatchReply | Unusable]
    read_merge: Callable[[str, str, Mapping[str, Proposal], PatchSource], MergeReply | Unusable]
    shown: Callable[[Sequence[Group]], str]

    def most_tokens(self, optimizer: OptimizerConfig) -> int:
        """How long the reply of an analyst or a merger may be."""
        return optimizer.rewrite_max_completion_tokens if self.writes_skills else optimizer.max_completion_tokens


def mode_of(optimizer: OptimizerConfig) -> Mode:
    """The mode that a run is in."""
    return _MODES[optimizer.skill_update_mode]


# --- what mergers are shown ----------------------------------------------------------------------------------------


def _edit_rows(groups: Sequence[Group]) -> str:
    rows = [{"from": name, "edits": [_edit_row(*labelled) for labelled in group]} for name, group in groups]
    return json.dumps(rows, indent=1, ensure_ascii=False)


def _edit_row(label: str, edit: Proposal) -> dict[str, Json]:
    assert isinstance(edit, Edit)
    return {
        "label": label,
        "op": edit.op,
        **({"file": edit.file} if edit.file else {}),
        "target": edit.target,
        "content": edit.content,
        "support_count": edit.support,
        "source_type": edit.source,
    }


def _suggestion_rows(groups: Sequence[Group]) -> str:
    rows = [
        {"from": name, "revise_suggestions": [_suggestion_row(*labelled) for labelled in group]}
        for name, group in groups
    ]
    return fenced("suggestions", json.dumps(rows, indent=1, ensure_ascii=False))


def _suggestion_row(label: str, suggestion: Proposal) -> dict[str, Json]:
    assert isinstance(suggestion, Suggestion)
    return {
        "label": label,
        "type": suggestion.kind,
        "title": suggestion.title,
        "motivation": suggestion.motivation,
        "instruction": suggestion.instruction,
        "priority_hint": suggestion.priority,
        "support_count": suggestion.support,
        "source_type": suggestion.source,
    }


def _draft_blocks(groups: Sequence[Group]) -> str:
    return "\n\n".join(_draft_block(name, label, draft) for name, group in groups for label, draft in group)


def _draft_block(name: str, label: str, draft: Proposal) -> str:
    assert isinstance(draft, Draft)
    about = "\n".join([f"title: {draft.title}", *(f"change: {change}" for change in draft.changes)])
    head = f"### {label}, from {name}: {draft.source}, support_count {draft.support}"
    return f"{head}\n{fenced(f'about {label}', about)}\n{fenced(f'draft {label}', draft.text)}"


# --- the modes -----------------------------------------------------------------------------------------------------


def _edits(inputs: Mapping[str, Proposal]) -> dict[str, Edit]:
    return {label: each for label, each in inputs.items() if isinstance(each, Edit)}


def _suggestions(inputs: Mapping[str, Proposal]) -> dict[str, Suggestion]:
    return {label: each for label, each in inputs.items() if isinstance(each, Suggestion)}


def _drafts(inputs: Mapping[str, Proposal]) -> dict[str, Draft]:
    return {label: each for label, each in inputs.items() if isinstance(each, Draft)}


_MODES: Mapping[UpdateMode, Mode] = {
    "patch": Mode(
        prompts="",
        proposals="edits",
        limit="## Budget\nPropose at most {most} edits, one for each kind of task above.",
        writes_skills=False,
        schemas={"failure": FAILURE_SCHEMA, "success": SUCCESS_SCHEMA},
        noted_schemas={"failure": NOTED_FAILURE_SCHEMA, "success": NOTED_SUCCESS_SCHEMA},
        merge_schema=MERGE_SCHEMA,
        read_patch=lambda text, patch, kind, support, most, notes: read_patch(
            text, patch=patch, kind=kind, support=support, most=most, most_notes=notes
        ),
        read_merge=lambda text, merge, inputs, source: read_merge(
            text, merge=merge, inputs=_edits(inputs), source=source
        ),
        shown=_edit_rows,
    ),
    "rewrite_from_suggestions": Mode(
        prompts="_rewrite",
        proposals="suggestions",
        limit="## Budget\nMake at most {most} suggestions, one for each kind of task above.",
        writes_skills=False,
        schemas={"failure": FAILURE_SUGGESTIONS_SCHEMA, "success": SUCCESS_SUGGESTIONS_SCHEMA},
        noted_schemas={
            "failure": NOTED_FAILURE_SUGGESTIONS_SCHEMA,
            "success": NOTED_SUCCESS_SUGGESTIONS_SCHEMA,
        },
        merge_schema=MERGED_SUGGESTIONS_SCHEMA,
        read_patch=lambda text, patch, kind, support, most, notes: read_suggestions(
            text, patch=patch, kind=kind, support=support, most=most, most_notes=notes
        ),
        read_merge=lambda text, merge, inputs, source: read_merged_suggestions(
            text, merge=merge, inputs=_suggestions(inputs), source=source
        ),
        shown=_suggestion_rows,
    ),
    "full_rewrite_minibatch": Mode(
        prompts="_full_rewrite",
        proposals="drafts",
        limit="## Form\nWrite one complete skill that takes the place of the current one: no edits, no suggestions.",
        writes_skills=True,
        schemas={"failure": FAILURE_DRAFT_SCHEMA, "success": SUCCESS_DRAFT_SCHEMA},
        noted_schemas={},
        merge_schema=MERGED_DRAFT_SCHEMA,
        read_patch=lambda text, patch, kind, support, most, notes: read_draft(
            text, patch=patch, kind=kind, support=support
        ),
        read_merge=lambda text, merge, inputs, source: read_merged_draft(
            text, merge=merge, inputs=_drafts(inputs), source=source
        ),
        shown=_draft_blocks,
    ),
}
