"""
What analysts and mergers propose: edits of the skill, suggestions for whoever rewrites it, or drafts of a whole skill.

`EDITS`, `SUGGESTIONS` and `DRAFTS` say how each kind stands in a reply; what stands around it, and how proposals become
fewer in a merge, is the same for all. A reader takes a reply's text and gives the value, or an `Unusable` that says
what was wrong, in words for the model. A schema goes with each reader, for endpoints that can be held to one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, TypedDict, Unpack, cast, get_args

from attrs import evolve, frozen

from skillopt_es.events.values import (
    Draft,
    Edit,
    EditOp,
    FailurePattern,
    Json,
    PatchSource,
    Priority,
    Proposal,
    SkillTree,
    Suggestion,
    SuggestionKind,
)
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.replies.notes import cause_of, read_notes
from skillopt_es.replies.parts import INTEGER, STRING, count_in, enum_of, list_of, object_of, says_something, text_in
from skillopt_es.replies.rewrites import changes_in, is_skill, whole_text
from skillopt_es.skill.edits import apply_edits

Row = Mapping[str, Json]

_OPS: tuple[EditOp, ...] = ("append", "insert_after", "replace", "delete")
_KINDS = get_args(SuggestionKind)
_PRIORITIES = get_args(Priority)
_MOST_HYPOTHESIS = 300  # two sentences: it is shown again in each later question about these tasks
_NO_CHANGE = "(an empty one if nothing should change)"


@frozen(kw_only=True)
class PatchReply:
    """A patch, of an analyst or a merger: proposals of one kind; an analyst's has patterns and notes beside them."""

    proposals: tuple[Proposal, ...]
    reasoning: str
    patterns: tuple[FailurePattern, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The proposals, where they are edits."""
        return tuple(each for each in self.proposals if isinstance(each, Edit))

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """The proposals, where they are suggestions."""
        return tuple(each for each in self.proposals if isinstance(each, Suggestion))

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """The proposals, where they are drafts."""
        return tuple(each for each in self.proposals if isinstance(each, Draft))

    @property
    def result(self) -> Literal["edits", "suggestions", "draft", "notes", "nothing"]:
        """What there is of it, in a word."""
        match self.proposals:
            case (Edit(), *_):
                return "edits"
            case (Suggestion(), *_):
                return "suggestions"
            case (Draft(), *_):
                return "draft"
            case _:
                return "notes" if self.notes else "nothing"


# --- the kinds -----------------------------------------------------------------------------------------------------


class Support(TypedDict):
    """What a proposal stands on: so many trajectories, through these patches or proposals."""

    support: int
    source: PatchSource
    origins: tuple[str, ...]
    origins_assumed: bool


class Ancestry(Support):
    """What a proposal is called, and what it stands on."""

    id: str


@frozen(kw_only=True)
class Kind:
    """
    One kind of proposals: the list of a reply whose rows they are, and what each row has.

    `says` is what a row would do, empty for nothing: such a row, and one that says the same again, use up no budget. A
    reply has one row at most where that is a `whole` skill. `useless` is said of a merge in which no row does anything,
    `too_many` of one with more rows than can come of so many proposals.
    """

    rows: str
    form: Row
    says: Callable[[Row], str]
    read: Callable[..., Proposal | Unusable]
    useless: str
    too_many: str = ""
    whole: bool = False

    @property
    def must_be(self) -> str:
        """What the list has to be."""
        return "a list with one object in it" if self.whole else "a list"

    def useful(self, rows: Sequence[Json]) -> list[Json]:
        """The rows that do something, each once; of whole skills the first."""
        seen: set[str] = {""}
        useful = []
        for row in rows:
            if isinstance(row, dict):
                said = self.says(row)
                if said in seen:
                    continue
                seen.add(said)
            elif self.whole:
                continue
            useful.append(row)
        return useful[:1] if self.whole else useful


def _says_of_edit(row: Row) -> str:
    said = [row.get(key) or "" for key in ("op", "file", "target", "content")]
    op, _, target, content = said
    nothing = content == target if op == "replace" else op != "delete" and not says_something(content)
    return "" if nothing else repr(said)


def _edit(row: Json, **ancestry: Unpack[Ancestry]) -> Edit | Unusable:
    if not isinstance(row, dict):
        return Unusable("each edit must be an object with `op`, `target` and `content`")
    op = row.get("op", "append")
    if op not in _OPS:
        return Unusable(f"`op` must be one of {', '.join(_OPS)}, not {op!r}")
    content, target, file = (text_in(row, key) for key in ("content", "target", "file"))
    return Edit(op=op, content=content, target=target, file=file, **ancestry)


def _says_of_suggestion(row: Row) -> str:
    said = text_in(row, "type"), text_in(row, "instruction")
    return repr(said) if says_something(said[1]) else ""


def _suggestion(row: Json, **ancestry: Unpack[Ancestry]) -> Suggestion | Unusable:
    if not isinstance(row, dict):
        return Unusable("each suggestion must be an object with `type`, `title`, `instruction` and `priority_hint`")
    kind = row.get("type", "add_rule")
    if kind not in _KINDS:
        return Unusable(f"`type` must be one of {', '.join(_KINDS)}, not {kind!r:.80}")
    hint = row.get("priority_hint")
    return Suggestion(
        kind=cast(SuggestionKind, kind),
        instruction=text_in(row, "instruction"),
        title=text_in(row, "title"),
        motivation=text_in(row, "motivation"),
        priority=cast(Priority, hint) if hint in _PRIORITIES else "medium",
        **ancestry,
    )


def _draft(row: Row, **ancestry: Unpack[Ancestry]) -> Draft:
    return Draft(text=whole_text(row), title=text_in(row, "title"), changes=changes_in(row), **ancestry)


EDITS = Kind(
    rows="edits",
    form={"op": enum_of(_OPS), "target": STRING, "content": STRING},
    says=_says_of_edit,
    read=_edit,
    useless="none of the `edits` would change anything",
    too_many="`edits` has {rows} edits, but only {inputs} were proposed: merge them into fewer",
)
SUGGESTIONS = Kind(
    rows="revise_suggestions",
    form={
        "type": enum_of(_KINDS),
        "title": STRING,
        "motivation": STRING,
        "instruction": STRING,
        "priority_hint": enum_of(_PRIORITIES),
    },
    says=_says_of_suggestion,
    read=_suggestion,
    useless="none of the `revise_suggestions` says what to do",
    too_many="{rows} suggestions are too many, only {inputs} were made: merge them into fewer",
)
DRAFTS = Kind(
    rows="skill_candidates",
    form={"title": STRING, "change_summary": list_of(STRING), "new_skill": STRING},
    says=lambda row: whole_text(row) if is_skill(row) else "",
    read=_draft,
    useless="no object of `skill_candidates` has a `new_skill` with a text of its own",
    whole=True,
)


def _proposals(
    of: Kind, rows: Sequence[Json], patch: str, behind: Callable[[Json], Support]
) -> tuple[Proposal, ...] | Unusable:
    """The rows as proposals of this patch; or why the first bad one is none."""
    proposals = []
    for number, row in enumerate(rows, start=1):
        each = of.read(row, id=f"{patch}#{number}", **behind(row))
        if isinstance(each, Unusable):
            return each
        proposals.append(each)
    return tuple(proposals)


# --- analysts --------------------------------------------------------------------------------------------------------


def read_patch(
    text: str,
    *,
    of: Kind = EDITS,
    patch: str,
    kind: PatchSource,
    support: int,
    most: int,
    most_notes: int = 0,
    claimable: Collection[str] = (),
) -> PatchReply | Unusable:
    """
    An analyst's reply: at most `most` proposals, each standing on the whole minibatch, and `most_notes` notes.

    Notes are read, and may come alone, where they were asked for. With `claimable` items an edit says which of them it
    is for, and stands on those.
    """
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    inner = found.get("patch", found)
    if inner is None and most_notes:
        inner = {}  # there may be lapses alone
    if not isinstance(inner, dict):
        return Unusable(f"`patch` must be an object with `reasoning` and `{of.rows}`")
    notes = read_notes({**inner, **found}, most=most_notes) if most_notes else ()
    if isinstance(notes, Unusable):
        return notes
    useful = _useful_in_patch(of, inner.get(of.rows, [] if notes else None))
    if isinstance(useful, Unusable):
        return useful
    useful = useful if of.whole else useful[:most]
    behind: Support = {"support": support, "source": kind, "origins": (patch,), "origins_assumed": False}
    proposals = _proposals(of, useful, patch, lambda row: behind)
    if isinstance(proposals, Unusable):
        return proposals
    return PatchReply(
        proposals=tuple(_claiming(each, row, claimable) for each, row in zip(proposals, useful, strict=True)),
        reasoning=text_in(inner, "reasoning"),
        patterns=_patterns(found.get("failure_summary"), support, with_cause=most_notes > 0),
        notes=notes,
    )


def _useful_in_patch(of: Kind, rows: Json) -> list[Json] | Unusable:
    if not isinstance(rows, list):
        return Unusable(f"`patch.{of.rows}` must be {of.must_be} {_NO_CHANGE}")
    useful = of.useful(rows)
    return useful if useful or not rows or not of.whole else Unusable(of.useless.replace(of.rows, f"patch.{of.rows}"))


def _claiming(proposal: Proposal, row: Json, claimable: Collection[str]) -> Proposal:
    """An edit with its one-line hypothesis and the items that it names; a single name may stand without a list."""
    if not claimable or not isinstance(proposal, Edit) or not isinstance(row, dict):
        return proposal
    said = row.get("items", row.get("claims"))
    named = said if isinstance(said, list) else [said]
    claims = tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name in claimable))
    hypothesis = " ".join(text_in(row, "hypothesis").split())[:_MOST_HYPOTHESIS]
    return evolve(proposal, claims=claims, hypothesis=hypothesis, support=len(claims) or proposal.support)


def _patterns(rows: Json, most: int, *, with_cause: bool) -> tuple[FailurePattern, ...]:
    """An analyst's patterns; none can count more failures than the analyst was shown."""
    return tuple(
        FailurePattern(
            type=text_in(row, "failure_type"),
            count=max(1, min(count_in(row, "count", 1), most)),
            description=text_in(row, "description"),
            cause=cause_of(row) if with_cause else "",
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and text_in(row, "failure_type")
    )


# --- merges ----------------------------------------------------------------------------------------------------------


def read_merge(
    text: str, *, of: Kind = EDITS, merge: str, inputs: Mapping[str, Proposal], source: PatchSource
) -> PatchReply | Unusable:
    """A merger's reply; `inputs` are the proposals under the labels that the prompt gave them."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    rows = found.get(of.rows)
    if not isinstance(rows, list):
        return Unusable(f"`{of.rows}` must be {of.must_be}{f' {_NO_CHANGE}' if of.whole else ''}")
    useful = of.useful(rows)
    problem = _problem_of_merge(of, len(rows), len(useful), len(inputs))
    if problem:
        return Unusable(problem)
    proposals = _proposals(of, useful, merge, lambda row: _behind(row, inputs, source))
    if isinstance(proposals, Unusable):
        return proposals
    return PatchReply(proposals=proposals, reasoning=text_in(found, "reasoning"))


def _problem_of_merge(of: Kind, rows: int, useful: int, inputs: int) -> str:
    # Each may name all of them as its origins: without a limit that is a square.
    if of.too_many and rows > 2 * inputs:
        return of.too_many.format(rows=rows, inputs=inputs)
    if rows and not useful:
        return of.useless
    return f"`{of.rows}` must hold one draft" if of.whole and not rows else ""


def _behind(row: Json, inputs: Mapping[str, Proposal], source: PatchSource) -> Support:
    """What a merged proposal stands on: what it names, within what is possible; all inputs if it names none of them."""
    said = row if isinstance(row, dict) else {}
    named = said.get("from")
    labels = [label for label in named if isinstance(label, str)] if isinstance(named, list) else []
    parents = [inputs[label] for label in dict.fromkeys(labels) if label in inputs]
    assumed, parents = not parents, parents or [*inputs.values()]
    most = sum(parent.support for parent in parents)
    of = said.get("source_type")
    failed = any(parent.source == "failure" for parent in parents)
    return {
        "support": max(1, min(count_in(said, "support_count", most), most)),
        "source": cast(PatchSource, of) if of in ("failure", "success") else "failure" if failed else source,
        "origins": tuple(parent.id for parent in parents),
        "origins_assumed": assumed,
    }


# --- what can be read, yet proposes nothing that can be tried --------------------------------------------------------

_MISPLACED = ("_missing_target", "_target_not_found")

Read = Callable[[str], PatchReply | Unusable]


def placed_in(skill: SkillTree, read: Read) -> Read:
    """The reader, for which a reply is unusable when each of its edits has a target that is not in the skill."""

    def read_placed(text: str) -> PatchReply | Unusable:
        reply = read(text)
        if isinstance(reply, Unusable) or not reply.edits:
            return reply
        _, reports = apply_edits(skill, reply.edits)
        if not all(report.status.endswith(_MISPLACED) for report in reports):
            return reply
        lost = reply.edits[0]
        return Unusable(
            f"the skill does not contain {lost.target!r}, the `target` of a `{lost.op}`; copy a `target` from the "
            'skill, and give a new rule as an `append` with `target` ""'
        )

    return read_placed


def not_empty(read: Read) -> Read:
    """The reader, for which a merge to nothing is unusable: what helps is for the gate to measure."""

    def read_some(text: str) -> PatchReply | Unusable:
        reply = read(text)
        if isinstance(reply, Unusable) or reply.proposals:
            return reply
        return Unusable("the list is empty, which would throw every proposal away; combine them")

    return read_some


# --- schemas -------------------------------------------------------------------------------------------------------

_FAILURE: Row = {"failure_type": STRING, "count": INTEGER, "description": STRING}
_CAUSE = enum_of(("SKILL_DEFECT", "EXECUTION_LAPSE"))
_JUDGED_FAILURE: Row = {"failure_type": STRING, "cause": _CAUSE, "count": INTEGER, "description": STRING}

CLAIMED_SCHEMA = object_of(
    reasoning=STRING, edits=list_of(object_of(hypothesis=STRING, items=list_of(STRING), **EDITS.form))
)


def patch_schema(of: Kind, kind: PatchSource, *, noted: bool = False) -> Row:
    """The form of an analyst's reply; where it is `noted`, with reminder notes."""
    patch = object_of(reasoning=STRING, **{of.rows: list_of(object_of(**of.form))})
    notes: Row = {"appendix_notes": list_of(STRING)} if noted else {}
    if kind == "success":
        return object_of(success_patterns=list_of(STRING), patch=patch, **notes)
    failures = list_of(object_of(**(_JUDGED_FAILURE if noted else _FAILURE)))
    return object_of(failure_summary=failures, patch=patch, **notes)


def merge_schema(of: Kind) -> Row:
    """The form of a merger's reply."""
    merged = object_of(**of.form, **{"from": list_of(STRING)}, support_count=INTEGER)
    return object_of(reasoning=STRING, **{of.rows: list_of(merged)})


def naming_files(schema: Row, skill: SkillTree) -> Row:
    """A schema whose edits say which file they are for, where the skill has several."""
    return schema if len(skill.files) < 2 else cast(Row, _with_file(dict(schema)))


def _with_file(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_with_file(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties")
    if isinstance(properties, dict) and {"op", "content"} <= set(properties):
        named: dict[str, Json] = {"file": STRING, **properties}
        return {**schema, "properties": named, "required": [*named]}
    return {key: _with_file(value) for key, value in schema.items()}
