"""The commands of README and the docs pages, in the order in which a reader meets them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`(skillopt-es [^`\n]+)`")
# A word for the reader to fill in (RUN, FILE), an ellipsis, or a choice of words: a form, not a command.
FORM = re.compile(r"\b[A-Z]{2,}\b|…|\.\.\.|\[|\|")


@frozen
class Command:
    """One line for a shell, and the exit code that the page says it ends with."""

    line: str
    code: int = 0


def command_of(text: str) -> Command:
    """A line as it stands on a page; its remark may name an exit code."""
    line, _, remark = text.partition("  #")
    said = re.search(r"exit code (\d+)", remark)
    return Command(line.strip(), int(said[1]) if said else 0)


def shell_commands(page: str) -> Sequence[Command]:
    """All lines of the page's `sh` blocks."""
    blocks = [body for kind, body in BLOCK.findall(_text(page)) if kind == "sh"]
    lines = [line for body in blocks for line in body.splitlines()]
    return [command_of(line) for line in lines if line.strip() and not line.startswith("#")]


def commands_in_tables(page: str) -> Sequence[Command]:
    """The commands between backquotes in table rows, but for those with something that the reader has to fill in."""
    rows = [line for line in _text(page).splitlines() if line.startswith("|")]
    return [Command(code.replace("\\|", "|")) for row in rows for code in CODE.findall(row) if not FORM.search(code)]


def blocks_that_hide_commands(page: str) -> Sequence[str]:
    """Blocks with a command of ours that are not marked as `sh`, so that nothing would run them."""
    return [body for kind, body in BLOCK.findall(_text(page)) if kind == "" and "skillopt-es " in body]


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")
