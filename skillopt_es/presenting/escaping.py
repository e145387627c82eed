"""Texts from outside (answers, error bodies, ids, skills), made safe to look at. Files and JSON keep them exactly."""

from __future__ import annotations

import json
import re

_SEEN_OTHERWISE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: what moves a cursor, sets a title, fills a clipboard; \t and \n may stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of what is read
    "\u2028\u2029\ufff9-\ufffb"  # line ends that are none for us, and annotations
    "\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # characters that nobody sees
    "\ud800-\udfff"  # halves of characters, which cannot be written at all
    "]"
)


def shown(text: str) -> str:
    r"""The text with everything that would act on a terminal or hide in it spelled out, such as `\x1b` or `\u202e`."""
    return _SEEN_OTHERWISE.sub(lambda found: _spelled(found[0]), text)


def shown_inline(text: str) -> str:
    r"""The same on one line: a line's end inside is `\n`."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def shown_json(document: str) -> str:
    """A JSON document that means the same and is safe to look at: such characters stand only in strings, as escapes."""
    return _SEEN_OTHERWISE.sub(lambda found: json.dumps(found[0])[1:-1], document)


def _spelled(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
