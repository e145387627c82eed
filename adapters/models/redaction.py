"""
Keeps a key out of everything that is shown, logged or recorded.

A provider's error may quote the key whole, cut (`sk-abcdef…`) or masked (`sk-ab****wxyz`), so an error text loses
every piece of it. A reply only loses whole secrets, and none so short that it may be a word of the answer: local
servers are given keys like `none`. What graders and environments say may be an answer, an error, or both: it loses
whole secrets, and pieces that are too long to be chance.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

from attrs import evolve

from skillopt_es.ports import ChatReply

REDACTED = "[redacted]"
SHORTEST_SECRET = 8  # a shorter one may stand in ordinary text, and the keys of providers are far longer
_PIECE = 10  # ten characters in a row of a random key stand in no other text; providers quote less of it
_LONGEST_ERROR = 500  # some lines of a terminal; with hundreds of refused calls a log would hold pages of HTML
_LONGEST_SCANNED = 20_000  # looking through it takes 20 ms, through a page of a megabyte a second
_MASKED = re.compile(r"([\w\-]*)(\*{3,}|\.{3}|…)([\w\-]*)")


class Redactor:
    """Takes the given secrets out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        given = [secret for secret in secrets if secret]
        forms = {form for secret in given for form in _forms(secret)}
        self._given = given
        # Longest first, so that no form leaves the rest of a longer one behind.
        self._forms = sorted(forms, key=len, reverse=True)
        self._whole = [form for form in self._forms if len(form) >= SHORTEST_SECRET]
        self._pieces = frozenset(
            form.lower()[at : at + _PIECE] for form in forms for at in range(len(form) - _PIECE + 1)
        )
        # Providers show the last characters of a key to say which one they mean.
        endings = "|".join(re.escape(secret[-4:]) for secret in given if len(secret) >= 2 * SHORTEST_SECRET)
        self._endings = re.compile(rf"(?<!\w)(?:{endings})(?!\w)") if endings else None

    def __repr__(self) -> str:
        return f"Redactor(<{len(self._forms)} forms>)"

    def reply(self, text: str) -> str:
        """A model's text without whole secrets; the same object when there are none."""
        for secret in self._whole:
            if secret in text:
                text = text.replace(secret, REDACTED)
        return text

    def answer(self, reply: ChatReply) -> ChatReply:
        """A reply without whole secrets in any of its texts, whichever model or agent has sent it."""
        clean = self.reply
        alone = (reply.text, reply.model, reply.request_id)
        # Most replies are these three, without a secret: a copy of each would cost more than looking at it.
        if not (reply.tool_calls or reply.tries or reply.steps) and tuple(map(clean, alone)) == alone:
            return reply
        return evolve(
            reply,
            text=clean(reply.text),
            tool_calls=tuple(
                evolve(call, id=clean(call.id), name=clean(call.name), arguments=clean(call.arguments))
                for call in reply.tool_calls
            ),
            model=clean(reply.model),
            request_id=clean(reply.request_id),
            tries=tuple(evolve(each, message=clean(each.message)) for each in reply.tries),
            steps=tuple(evolve(step, text=clean(step.text), output=clean(step.output)) for step in reply.steps),
        )

    def remark(self, text: str) -> str:
        """What somebody's code says, without whole secrets and long pieces of them; the same object if it has none."""
        text = self.reply(text)
        lower = text.lower()
        return self._without_pieces(text) if any(piece in lower for piece in self._pieces) else text

    def error(self, text: str) -> str:
        """A one-line error text of bearable length, without secrets or recognizable pieces of them."""
        text = " ".join(text[:_LONGEST_SCANNED].encode("utf-8", "replace").decode().split())
        for secret in self._forms:
            text = text.replace(secret, REDACTED)
        text = self._without_pieces(text)
        if self._given:
            text = _MASKED.sub(self._without_mask, text)
        if self._endings:
            text = self._endings.sub(REDACTED, text)
        return text if len(text) <= _LONGEST_ERROR else text[: _LONGEST_ERROR - 1] + "…"

    def _without_mask(self, match: re.Match[str]) -> str:
        head, mask, tail = match.groups()
        ours = any((head and s.startswith(head)) or (tail and s.endswith(tail)) for s in self._given)
        return REDACTED if ours or mask.startswith("*") else match[0]

    def _without_pieces(self, text: str) -> str:
        lower = text.lower()
        # Some letters change their length in lower case: then places in one text are not those in the other.
        if not self._pieces or len(lower) != len(text):
            return text
        out: list[str] = []
        at = 0
        while at < len(text):
            end = at
            while lower[end : end + _PIECE] in self._pieces:
                end += 1
            if end == at:
                out.append(text[at])
                at += 1
            else:
                out.append(REDACTED)
                # `end` is where no piece begins any more; the last one that did reaches so far.
                at = end + _PIECE - 1
        return "".join(out)


def _forms(secret: str) -> Iterable[str]:
    """The secret as it is, and as an URL, a JSON text or a basic authorization would spell it."""
    return (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], base64.b64encode(secret.encode()).decode())
