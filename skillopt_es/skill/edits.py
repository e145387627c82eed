"""
Applying edits to a skill: sequential, exact substring targets, a report for each edit, protected blocks untouched.

No edit ever raises: what cannot be applied is skipped with a status that says why. With `close_gaps` an edit leaves no
run of blank lines where it was; without, it leaves what the original leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.events.values import WHOLE_FILES, Edit, EditReport, SkillTree
from skillopt_es.skill import gaps
from skillopt_es.skill.changes import Done, Written, changed
from skillopt_es.skill.folders import problem_in, skills_in
from skillopt_es.skill.pins import lost_pins
from skillopt_es.skill.regions import APPENDIX_END, MARKERS, SLOW_END, clean_of_markers, protected_spans

SKIPPED_PINNED = "skipped_pinned"


@frozen
class Applied:
    """A text after one edit, and what was done."""

    text: str
    status: str
    note: str = ""


def apply_edits(
    tree: SkillTree, edits: Sequence[Edit], *, close_gaps: bool = False, pins: Sequence[str] = ()
) -> tuple[SkillTree, tuple[EditReport, ...]]:
    """
    The tree after all edits in order, and one report an edit; those of one change are applied together or not.

    What would take a line of `pins` away is skipped.
    """
    reports: dict[int, EditReport] = {}
    for numbers in _changes(edits):
        together = [edits[number] for number in numbers]
        after, made = _applied(tree, together, close_gaps=close_gaps)
        lost = lost_pins(tree, after, pins)
        if lost:
            after, made = tree, [EditReport(each.edit, SKIPPED_PINNED, lost[0]) for each in made]
        refused = next((each for each in made if not each.applied), None)
        if refused is None or len(together) == 1:
            tree = after
        else:
            why = f"{refused.edit} is a part of it: {refused.note or refused.status}"
            made = [each if each is refused else EditReport(each.edit, "skipped_with_its_change", why) for each in made]
        reports |= dict(zip(numbers, made, strict=True))
    return tree, tuple(reports[number] for number in range(len(edits)))


def apply_edits_but(
    refused: Mapping[str, EditReport],
    tree: SkillTree,
    edits: Sequence[Edit],
    *,
    close_gaps: bool = False,
    pins: Sequence[str] = (),
) -> tuple[SkillTree, tuple[EditReport, ...]]:
    """The same without the edits that are refused; each edit has its report at its place."""
    others = [edit for edit in edits if edit.id not in refused]
    after, applied = apply_edits(tree, others, close_gaps=close_gaps, pins=pins)
    reports = {report.edit: report for report in applied} | dict(refused)
    return after, tuple(reports[edit.id] for edit in edits)


def in_order(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits in the order in which they are applied: the parts of a change stand where its first one does."""
    return tuple(edits[number] for numbers in _changes(edits) for number in numbers)


def done_by(tree: SkillTree, edit: Edit, *, close_gaps: bool) -> Done:
    """What one edit makes of a tree; nothing, with a `skipped_` status, when it cannot be applied."""
    return changed(tree, edit) if edit.op in WHOLE_FILES else _edited(tree, edit, close_gaps=close_gaps)


def _changes(edits: Sequence[Edit]) -> list[list[int]]:
    """The edits by their numbers, those of one change side by side where its first one stands."""
    found: dict[str | int, list[int]] = {}
    for number, edit in enumerate(edits):
        found.setdefault(edit.change or number, []).append(number)
    return [*found.values()]


def _applied(tree: SkillTree, edits: Sequence[Edit], *, close_gaps: bool) -> tuple[SkillTree, list[EditReport]]:
    """The tree after these edits, and their reports; an edit that agents could not load is left out."""
    reports = []
    for edit in edits:
        done = done_by(tree, edit, close_gaps=close_gaps)
        after = done.tree(tree)
        problem = problem_in(after, skills_in((*done.written, *done.gone))) if tree.is_folder and done.applied else ""
        if problem:
            reports.append(EditReport(edit.id, "skipped_format", problem))
            continue
        tree = after
        reports.append(EditReport(edit.id, done.status, done.note))
    return tree, reports


def _edited(tree: SkillTree, edit: Edit, *, close_gaps: bool) -> Done:
    """An edit of the text of one file."""
    path = edit.file or tree.main
    if path not in tree.files:
        return Done(status="skipped_unknown_file", note=f"the skill has no file {path}")
    applied = apply_edit(tree.files[path], edit, close_gaps=close_gaps)
    text = Written(text=applied.text, sources=(path,))
    return Done(status=applied.status, note=applied.note, written={path: text})


def apply_edit(text: str, edit: Edit, *, close_gaps: bool = False) -> Applied:
    """The text after one edit; unchanged, with a `skipped_` status, when the edit cannot be applied."""
    content = clean_of_markers(edit.content)
    match edit.op:
        case "append":
            return _append(text, content, "applied_append")
        case "insert_after":
            return _insert_after(text, content, edit.target, close_gaps=close_gaps)
        case "replace":
            return _replace(text, content, edit.target, close_gaps=close_gaps)
        case "delete":
            return _replace(text, "", edit.target, op="delete", close_gaps=close_gaps)
    return Applied(text, "skipped_whole_file", f"{edit.op} is no edit of a text")


def _markers(text: str) -> int:
    return sum(text.count(marker) for marker in MARKERS)


def _stands_in(text: str, content: str) -> bool:
    """Whether the text has this content already, as whole lines."""
    return f"\n{content}\n" in f"\n{text}\n"


def _append(text: str, content: str, status: str) -> Applied:
    if not content:
        return Applied(text, "skipped_empty_content")
    if _stands_in(text, content):
        return Applied(text, "skipped_already_there")
    spans = protected_spans(text)
    if not spans:
        return Applied(f"{text.rstrip()}\n\n{content}\n" if text.strip() else f"{content}\n", status)
    at = spans[0].start
    head = text[:at].rstrip()
    lead = f"{head}\n\n" if head else ""
    return Applied(f"{lead}{content}\n\n{text[at:]}", f"{status}_before_protected_region")


def _insert_after(text: str, content: str, target: str, *, close_gaps: bool) -> Applied:
    if not content:
        return Applied(text, "skipped_empty_content")
    start, blocked = _locate(text, target)
    if blocked:
        return Applied(text, "skipped_protected_region")
    if start < 0:
        appended = _append(text, content, "applied_insert_after_fallback_append")
        why = "the target text is not in the skill" if target.strip() else "no target was named"
        return Applied(appended.text, appended.status, why)
    if _stands_in(text, content):
        return Applied(text, "skipped_already_there")
    newline = text.find("\n", start + len(target))
    position = len(text) if newline < 0 else newline + 1
    for span in protected_spans(text):
        if span.start < position < span.end or (position == span.end == len(text) and not _closed(text)):
            position = span.start
    head, tail = text[:position], text[position:]
    changed = gaps.inserted(head, content, tail) if close_gaps else f"{head}\n{content}\n\n{tail}"
    return Applied(changed, "applied_insert_after")


def _closed(text: str) -> bool:
    """Whether a text that ends with a protected block closes it; what follows an open one would join it."""
    return text.endswith((SLOW_END, APPENDIX_END))


def _replace(text: str, content: str, target: str, *, op: str = "replace", close_gaps: bool) -> Applied:
    if not target.strip():
        return Applied(text, f"skipped_{op}_missing_target")
    start, blocked = _locate(text, target)
    if blocked:
        return Applied(text, "skipped_protected_region")
    if start < 0:
        return Applied(text, f"skipped_{op}_target_not_found")
    head, tail = text[:start], text[start + len(target) :]
    changed = head + content + tail
    if close_gaps and not content:
        changed = gaps.removed(head, tail, line_ended=target.endswith("\n"))
    if changed == text:
        return Applied(text, "skipped_no_change")
    # The ends that meet now may form a marker, or one may have been cut.
    if _markers(changed) != _markers(text):
        return Applied(text, "skipped_forms_marker")
    return Applied(changed, f"applied_{op}")


def _locate(text: str, target: str) -> tuple[int, bool]:
    """Where the target first stands outside every protected block, or -1; and whether it stands only inside them."""
    if not target.strip():
        return -1, False
    spans = protected_spans(text)
    start = text.find(target)
    found = start >= 0
    while start >= 0:
        if not any(span.meets(start, (start + len(target))) for span in spans):
            return start, False
        start = text.find(target, start + 1)
    return -1, found
