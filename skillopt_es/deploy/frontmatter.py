"""
The frontmatter that the Agent Skills format asks for: what a skill's own says, and what has to be added to it.

The lines that a skill has are kept as they stand; only keys that are missing, or that the user gives, are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from skillopt_es.errors import OutputRefused
from skillopt_es.skill.frontmatter import LONGEST_DESCRIPTION, NAME_RULE, fields_of, is_name, with_fields
from skillopt_es.skill.rewriting import frontmatter, own_words

_LONGEST_COMPATIBILITY = 500  # the Agent Skills format's (agentskills.io/specification)
_KNOWN = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_HEADING = re.compile(r"#{1,6}[ \t]+(.+?)[ \t#]*")
# How a list, a quote, a table, code, a comment or a rule begins: no paragraph that describes a skill.
_NO_PROSE = re.compile(r"[-*+>|#`]|\d+[.)][ \t]|<!--|---|===|[ \t]{4}|\t")
# A fence that is never closed goes on to the end, as in Markdown.
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(r".+?[.!?](?=\s|\Z)", re.DOTALL)

DescribedBy = Literal["skill", "option", "text"]


@frozen
class Head:
    """A skill's frontmatter as it is exported, and as it was measured (empty for none); who wrote the description."""

    text: str
    measured: str
    name: str
    described_by: DescribedBy
    notes: tuple[str, ...] = ()

    @property
    def written(self) -> Literal["kept", "completed", "added"]:
        """What became of the frontmatter that was measured."""
        if not self.measured:
            return "added"
        return "kept" if self.text == self.measured else "completed"


def own_name(text: str) -> str:
    """The name that a skill gives itself; empty when it has none."""
    name = _fields(frontmatter(text)).get("name", "")
    return name if isinstance(name, str) else str(name)


def completed(text: str, name: str, description: str | None) -> Head:
    """The frontmatter of a skill of this name; raises OutputRefused for what the format does not allow."""
    if not is_name(name):
        raise OutputRefused(f"{name!r} is not a name for a skill: {NAME_RULE}", hint="--name gives it another")
    measured = frontmatter(text)
    found = _fields(measured)
    described_by: DescribedBy = "skill"
    wanted: dict[str, str] = {} if found.get("name") == name else {"name": name}
    if description is not None:
        wanted["description"], described_by = " ".join(description.split()), "option"
    elif not found.get("description"):
        wanted["description"], described_by = described(text), "text"
    head = with_fields(measured, wanted)
    _check(_fields(head), name)
    return Head(text=head, measured=measured, name=name, described_by=described_by, notes=_notes(found))


def problems_of(text: str, folder: str) -> str:
    """Why agents may not load a file as the skill of this folder; empty when they can."""
    head = frontmatter(text)
    if not head:
        return "SKILL.md has no frontmatter"
    try:
        _check(_fields(head), folder)
    except OutputRefused as error:
        return error.message
    return ""


def described(text: str) -> str:
    """A description from a skill's own words, its title and first paragraph; raises OutputRefused if it has neither."""
    title, lines = "", list[str]()
    for line in _FENCED.sub("", own_words(text)).splitlines():
        heading = _HEADING.fullmatch(line.strip())
        if heading and not lines:
            title = title or heading[1]
        elif line.strip() and not heading and not _NO_PROSE.match(line):
            lines.append(line.strip())
        elif lines:
            break
    if not lines:
        raise OutputRefused(
            "the skill has no description, and no first paragraph to make one of",
            hint='say what it does and when to use it: --description "…"',
        )
    said = f"{title}: {' '.join(lines)}" if title else " ".join(lines)
    return _shortened(said.replace("<", "").replace(">", ""))


def _shortened(text: str) -> str:
    """As many whole sentences as fit, or the words that do."""
    if len(text) <= LONGEST_DESCRIPTION:
        return text
    kept = ""
    for sentence in _SENTENCE.finditer(text):
        if sentence.end() > LONGEST_DESCRIPTION:
            break
        kept = text[: sentence.end()]
    return kept or text[: LONGEST_DESCRIPTION - 1].rsplit(" ", 1)[0] + "…"


def _fields(head: str) -> Mapping[str, object]:
    """What a frontmatter says; raises OutputRefused for one that is no mapping."""
    try:
        return fields_of(head)
    except ValueError as error:
        raise OutputRefused(f"the skill's {error}", hint="agents could not load it") from None


def _check(found: Mapping[str, object], name: str) -> None:
    if found.get("name") != name or not is_name(name):
        raise OutputRefused(f"the skill's name {found.get('name')!r} is not the folder's, {name!r}")
    _check_text(found, "description", LONGEST_DESCRIPTION, "--description gives it another")
    if "license" in found:
        _check_text(found, "license", None, "fix it in the skill")
    if "compatibility" in found:
        _check_text(found, "compatibility", _LONGEST_COMPATIBILITY, "fix it in the skill")
    metadata = found.get("metadata", {})
    if not isinstance(metadata, dict) or any(isinstance(value, dict | list) for value in metadata.values()):
        raise OutputRefused("the skill's metadata is not a map of keys to texts", hint="fix it in the skill")


def _check_text(found: Mapping[str, object], key: str, longest: int | None, hint: str) -> None:
    value = found.get(key)
    if not isinstance(value, str) or not value.strip():
        raise OutputRefused(f"the skill's {key} is not a text with words in it", hint=hint)
    if longest is not None and len(value) > longest:
        raise OutputRefused(f"the skill's {key} has {len(value):,} characters, and {longest:,} are allowed", hint=hint)


def _notes(found: Mapping[str, object]) -> tuple[str, ...]:
    unknown = sorted(set(found) - set(_KNOWN))
    return (f"the Agent Skills format does not know {', '.join(unknown)}; kept as it is",) if unknown else ()
