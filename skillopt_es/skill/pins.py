"""Lines of a skill that somebody has spoken of: where one stands, which pinned ones are gone, a text without one."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.events.values import SkillTree
from skillopt_es.skill.regions import protected_spans


def file_of(tree: SkillTree, line: str) -> str:
    """The file that has this whole line outside its protected blocks, the main one first; empty where none has it."""
    files = sorted(tree.files, key=lambda file: (file != tree.main, file))
    return next((file for file in files if _start_of(tree.files[file], line) is not None), "")


def without_line(tree: SkillTree, line: str) -> SkillTree:
    """The tree without the first such line outside protected blocks; the same where no file has it."""
    file = file_of(tree, line)
    text = tree.files.get(file, "")
    start = _start_of(text, line)
    if start is None:
        return tree
    return tree.with_text(text[:start] + text[start + len(line) :].removeprefix("\n"), file)


def lost_pins(before: SkillTree, after: SkillTree, pins: Sequence[str]) -> tuple[str, ...]:
    """The pinned lines that the text before has and the one after it lacks."""
    return tuple(pin for pin in pins if file_of(before, pin) and not file_of(after, pin))


def _start_of(text: str, line: str) -> int | None:
    """Where the first such line begins that is in no protected block."""
    spans, at = protected_spans(text), 0
    for each in text.split("\n"):
        if each == line and line.strip() and not any(span.meets(at, at + len(each)) for span in spans):
            return at
        at += len(each) + 1
    return None
