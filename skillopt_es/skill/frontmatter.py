"""
The frontmatter of the Agent Skills format: the name and the description that agents know a skill by.

The lines that a skill has are kept as they stand; only keys that are given are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import yaml

from skillopt_es.skill.rewriting import frontmatter

NAME_RULE = "up to 64 lower-case letters a-z, digits and single hyphens between them"
LONGEST_NAME = 64  # the Agent Skills format's (agentskills.io/specification), as the next one
LONGEST_DESCRIPTION = 1024  # the same format's
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def is_name(name: str) -> bool:
    """Whether the format allows a skill (and so its folder) to be called that."""
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


@lru_cache(maxsize=1024)  # every attempt of an agent reads its folder of skills, and YAML is slow
def fields_of(head: str) -> Mapping[str, object]:
    """What a frontmatter says; raises ValueError, as a sentence goes on, for one that is no mapping."""
    if not head:
        return MappingProxyType({})
    inner = "".join(head.splitlines(keepends=True)[1:-1])
    try:
        found = yaml.safe_load(inner)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        # YAML counts from 0, and the line of dashes before it was left out.
        at = f" (line {place.line + 2})" if place is not None else ""
        raise ValueError(f"frontmatter is not YAML{at}") from None
    if not isinstance(found, dict):
        raise ValueError("frontmatter is not a mapping of keys to values")
    return MappingProxyType({str(key): value for key, value in found.items()})


def with_head(text: str, **wanted: str) -> str:
    """The text with these keys in its frontmatter, which it gets if it has none."""
    head = frontmatter(text)
    body = text[len(head) :]
    return with_fields(head, wanted) + (body if head or body.startswith("\n") else f"\n{body}")


def with_fields(head: str, wanted: Mapping[str, str]) -> str:
    """The frontmatter with these keys; a line that has one of them is replaced, all others stay as they are."""
    if not wanted:
        return head
    lines = head.splitlines(keepends=True)[:-1] if head else ["---\n"]
    for key in wanted:
        lines = _without_key(lines, key)
    new = [yaml.safe_dump({key: value}, allow_unicode=True, width=10**6) for key, value in wanted.items()]
    return "".join([lines[0], *new, *lines[1:], "---\n"])


def _without_key(lines: list[str], key: str) -> list[str]:
    """The lines without a top-level key and what belongs to it: lines that are indented, blank or part of a list."""
    kept, inside = list[str](), False
    for line in lines:
        inside = re.match(rf"[\"']?{key}[\"']?[ \t]*:", line) is not None or (
            inside and (not line.strip() or line[0] in " \t" or line.startswith("- "))
        )
        if not inside:
            kept.append(line)
    return kept
