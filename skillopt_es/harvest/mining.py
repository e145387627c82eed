"""
Candidate tasks in conversations, by rules and without a model: what was asked, how it can be checked, how often. Pure.

A request becomes a candidate when it can be understood on its own. What the person said next tells whether the answer
was right: a correction becomes a line of the candidate's rubric, and is no task itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from skillopt_es.events.values import Json, digest_of
from skillopt_es.harvest.privacy import without_private
from skillopt_es.ports import Conversation, Turn

FEWEST_WORDS = 4  # with fewer ("fix it please") nothing can be understood without what came before
MOST_CHARACTERS = 6_000  # longer ones are pasted files and logs, which are no question; a person has to read it, too
_ALIKE = 0.5  # of all words of two requests are in both: they ask for the same kind of thing
_CHATTER = re.compile(
    r"(?i)(?:/\w|!|(?:yes|no|ok(?:ay)?|sure|thanks?|thank you|perfect|great|nice|good|continue|go (?:on|ahead)|proceed"
    r"|do it|stop|wait|retry|try again|same again|commit(?: it| this)?|push(?: it)?|hello|hi)\b"
    r"[\s.!,]*(?:\w+[\s.!,]*){0,3}$)"
)
_CORRECTION = re.compile(
    r"(?i)(?:no[,.! ]|not? (?:quite|what|like|that)|nope|wrong|that'?s (?:not|wrong)|this is (?:not|wrong)|actually"
    r"|instead|you (?:forgot|missed|did ?n[o']t|should|have to|must)|please (?:use|do not|don'?t|add|also)|don'?t\b"
    r"|do not\b|it should|should(?: not|n'?t)? be|still (?:wrong|not|missing)|i (?:said|asked|meant|wanted)|never\b"
    r"|always\b)"
)
_LEANS_ON_BEFORE = re.compile(
    r"(?i)(?:and|also|now|then|but|it|this|that|these|those|again|same|the (?:above|last|previous))\b"
)
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about all also an and any are as at be but by can could do for from has have how i if in into is it its make"
        " me my new not of on one or our out please should so some that the their them then there this to up us use was"
        " we what when which will with would you your write create give show",
    )
)
_TAKEN_OUT = re.compile(r"\[(?:key|email|account|card|phone|address|home)\]")
_WORD = re.compile(r"[^\W\d_]{2,}")


@frozen(kw_only=True)
class Seen:
    """Where a request was found: the agent, its conversation, and the number of the turn in it, from 1."""

    agent: str
    conversation: str
    turn: int
    when: str


@frozen(kw_only=True)
class Candidate:
    """
    A request that may become a task, with the checks and the rubric that its wording and what came after suggest.

    `kind` is shared by requests alike. `accepted` says that the person went on without a correction; `tools` are those
    that were called. `private` counts what was taken out of its texts.
    """

    id: str
    kind: str
    asked: str
    answered: str
    accepted: bool
    checks: tuple[dict[str, Json], ...]
    rubric: tuple[str, ...]
    tools: tuple[str, ...]
    seen: tuple[Seen, ...]
    private: dict[str, int]


@frozen(kw_only=True)
class _Request:
    asked: str
    answered: str
    corrections: tuple[str, ...]
    tools: tuple[str, ...]
    seen: Seen
    private: Counter[str]
    words: frozenset[str]


def candidates(conversations: Iterable[Conversation]) -> tuple[Candidate, ...]:
    """The candidates of all conversations: those asked most often first, then the corrected ones, then as they came."""
    requests = [request for each in conversations for request in _requests(each)]
    groups = _alike(requests)
    kinds = _names(groups)
    found = [_candidate(same, kind) for group, kind in zip(groups, kinds, strict=True) for same in _same(group)]
    size = Counter(each.kind for each in found)
    return tuple(sorted(found, key=lambda each: (-size[each.kind], each.kind, each.accepted)))


def _requests(conversation: Conversation) -> Iterator[_Request]:
    turns = conversation.turns
    for number, turn in enumerate(turns):
        if not _is_task(turn, first=number == 0):
            continue
        later = turns[number + 1 :]
        corrections = []
        for each in later:
            if not _CORRECTION.match(each.asked.strip()):
                break
            corrections.append(each)
        last = corrections[-1] if corrections else turn
        private: Counter[str] = Counter()
        asked, answered, *said = (
            _clean(text, private) for text in (turn.asked, last.answered, *(each.asked for each in corrections))
        )
        yield _Request(
            asked=asked,
            answered=answered,
            corrections=tuple(said),
            tools=tuple(dict.fromkeys(tool.name for each in (turn, *corrections) for tool in each.tools)),
            seen=Seen(agent=conversation.agent, conversation=conversation.id, turn=number + 1, when=conversation.when),
            private=private,
            words=frozenset(_words(asked)) - _STOP_WORDS,
        )


def _words(asked: str) -> Iterator[str]:
    """The words of a request, but for those that stand for what was taken out."""
    return (each.lower() for each in _WORD.findall(_TAKEN_OUT.sub(" ", asked)))


def _is_task(turn: Turn, *, first: bool) -> bool:
    """Whether a request was answered, is no small talk or correction, and can be understood on its own."""
    asked = turn.asked.strip()
    if not turn.answered.strip() or len(asked) > MOST_CHARACTERS or len(asked.split()) < FEWEST_WORDS:
        return False
    if _CHATTER.match(asked) or _CORRECTION.match(asked):
        return False
    return first or not _LEANS_ON_BEFORE.match(asked)


def _clean(text: str, private: Counter[str]) -> str:
    clean = without_private(text.strip())
    private.update(clean.found)
    return clean.text


def _alike(requests: Sequence[_Request]) -> list[list[_Request]]:
    """Requests that share at least half of their words, each with one that came before, in groups."""
    groups: list[list[_Request]] = []
    holders: dict[str, set[int]] = {}
    for request in requests:
        near = Counter(number for word in request.words for number in holders.get(word, ()))
        best = max(near, key=lambda number: (_overlap(request, groups[number][0]), -number), default=None)
        if best is not None and _overlap(request, groups[best][0]) >= _ALIKE:
            groups[best].append(request)
            continue
        groups.append([request])
        for word in request.words:
            holders.setdefault(word, set()).add(len(groups) - 1)
    return groups


def _overlap(one: _Request, other: _Request) -> float:
    together = one.words | other.words
    return len(one.words & other.words) / len(together) if together else 0.0


def _names(groups: Sequence[Sequence[_Request]]) -> list[str]:
    """A name for each group, of the words that most of its requests have; no two groups have the same."""
    names: list[str] = []
    for group in groups:
        counts = Counter(word for request in group for word in request.words)
        order = list(_words(group[0].asked))
        first = {word: order.index(word) for word in counts if word in order}
        best = sorted(first, key=lambda word: (-counts[word], first[word]))[:3]
        name = "-".join(sorted(best, key=lambda word: first[word])) or "request"
        taken = sum(each == name or each.startswith(f"{name}-") for each in names)
        names.append(f"{name}-{taken + 1}" if taken else name)
    return names


def _same(group: Sequence[_Request]) -> list[list[_Request]]:
    """Requests with the very same words in the same order are one candidate, seen several times."""
    by_text: dict[str, list[_Request]] = {}
    for request in group:
        by_text.setdefault(" ".join(request.asked.lower().split()), []).append(request)
    return list(by_text.values())


def _candidate(same: Sequence[_Request], kind: str) -> Candidate:
    last = same[-1]
    corrections = tuple(dict.fromkeys(said for request in same for said in request.corrections))
    private: Counter[str] = Counter()
    for request in same:
        private.update(request.private)
    asked = last.asked
    return Candidate(
        id=digest_of(" ".join(asked.lower().split()).encode())[:12],
        kind=kind,
        asked=asked,
        answered=last.answered,
        accepted=not corrections,
        checks=(*_checks("\n".join((asked, *corrections))), *_always_called(same)),
        rubric=corrections,
        tools=last.tools,
        seen=tuple(request.seen for request in same),
        private=dict(private),
    )


def _always_called(same: Sequence[_Request]) -> Iterator[dict[str, Json]]:
    """The tools that were called each time a request was made again: it seems to need them."""
    for name in same[-1].tools if len(same) > 1 else ():
        if all(name in request.tools for request in same):
            yield {"check": "tool_called", "name": name}


_QUOTED = r"[\"'“”‘’`]([^\"'“”‘’`\n]{1,80})[\"'“”‘’`]"
_SECTION = re.compile(
    rf"\b(?i:section|heading|chapter)s?(?i:\s+(?:called|named|titled|for|on))?\s+(?:{_QUOTED}|([A-Z][\w-]+))"
)
_BEFORE_SECTION = re.compile(rf"(?:{_QUOTED}|\b(?:an?|the|its)\s+([A-Z][\w-]+))\s+(?:section|heading)\b")
_MUST = re.compile(
    rf"(?i)\b(begin|start|end|contain|include|mention|say|use)s?\s+(?:with\s+)?(?:the\s+(?:word|words|text|line)\s+)?{_QUOTED}"
)
_NOT = re.compile(rf"(?i)\b(?:don'?t|do not|never|must not|without)\s+(?:\w+\s+){{0,3}}?{_QUOTED}")
_AT_MOST = re.compile(
    r"(?i)\b(?:at most|no more than|max(?:imum)?(?: of)?|up to|under|in|within)\s+(\d{1,5})"
    r"\s+(words|characters|lines|sentences)\b"
)
_JSON = re.compile(r"\b(?:as|in|valid|return|only)\s+(?:a\s+)?JSON\b")
_KINDS = {"begin": "starts_with", "start": "starts_with", "end": "ends_with"}


def _checks(text: str) -> Iterator[dict[str, Json]]:
    """What the wording of a request and of its corrections asks for in so many words."""
    found: list[dict[str, Json]] = [
        {"check": "section_contains", "section": match[1] or match[2]}
        for match in (*_SECTION.finditer(text), *_BEFORE_SECTION.finditer(text))
    ]
    unwanted = [match[1] for match in _NOT.finditer(text)]
    found.extend({"check": "lacks", "text": each} for each in unwanted)
    found.extend(
        {"check": _KINDS.get(match[1].lower(), "contains"), "text": match[2]}
        for match in _MUST.finditer(text)
        if match[2] not in unwanted
    )
    limits = _AT_MOST.finditer(text)
    found.extend({"check": "at_most", "count": int(match[1]), "of": match[2].lower()} for match in limits)
    if _JSON.search(text):
        found.append({"check": "is_json"})
    for place, each in enumerate(found):
        if each not in found[:place]:
            yield each
