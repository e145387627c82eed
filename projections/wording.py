"""
Which proposals a merge may have used, where its reply does not say: by their words.

Each proposal that the merge saw goes to at most one that it wrote: the one that says the same, else the one that shares
most of its rare words. A proposal without such a match goes to none, and nothing is made up for it. The same proposals
match alike anywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.events.values import Draft, Edit, Proposal

_WORD = re.compile(r"\w+")
_SHARED = 0.5
"""How much of the shorter one of two proposals has to stand in the other."""


def same_words(proposal: Proposal) -> tuple[str, ...]:
    """What a proposal puts into the skill or takes out of it; equal for two that do the same."""
    if isinstance(proposal, Edit):
        adds = proposal.op in ("append", "insert_after")
        target = "" if adds else proposal.target
        return ("adds" if adds else proposal.op, proposal.file, *map(_plain, (target, proposal.content)))
    if isinstance(proposal, Draft):
        return ("draft", _plain(proposal.text))
    return (proposal.kind, _plain(proposal.instruction))


def by_wording(inputs: Sequence[Proposal], outputs: Sequence[Proposal]) -> Mapping[str, str]:
    """The output that each input went into, by id; inputs that no output is worded like are not in it."""
    # Reversed, so that of outputs in the same words the first one counts.
    same = {same_words(output): output.id for output in reversed(outputs)}
    found = {each.id: same[words] for each in inputs if (words := same_words(each)) in same}
    if len(found) < len(inputs):
        weights = _weights(inputs, outputs)
        texts = [_text_of(output, weights) for output in outputs]
        for each in inputs:
            if each.id not in found and (best := _most_alike(_text_of(each, weights), texts, weights)):
                found[each.id] = best
    return found


@frozen
class _Text:
    """A proposal's words and what they weigh together; what adds is never taken for what removes."""

    id: str
    removes: bool
    words: frozenset[str]
    weight: int


def _weights(inputs: Sequence[Proposal], outputs: Sequence[Proposal]) -> Mapping[str, int]:
    """
    What each word weighs: the fewer proposals have it, the more; one that only one side has tells little.

    Squared, because analysts say many things in one form, and the few words that differ are what they mean. Whole
    numbers, so that no order of sums matters.
    """
    before, after = (Counter(word for each in side for word in _words(each)) for side in (inputs, outputs))
    total = len(inputs) + len(outputs)
    return {
        word: (total // (before[word] + after[word])) ** 2 if before[word] and after[word] else 1
        for word in before | after
    }


def _text_of(proposal: Proposal, weights: Mapping[str, int]) -> _Text:
    words = _words(proposal)
    return _Text(proposal.id, _takes_away(proposal), words, sum(map(weights.__getitem__, words)))


def _most_alike(one: _Text, others: Sequence[_Text], weights: Mapping[str, int]) -> str:
    """The first of those that share most with a proposal; empty where none shares enough."""
    best, most = "", 0.0
    for other in others:
        if other.removes != one.removes:
            continue
        shared = sum(map(weights.__getitem__, one.words & other.words))
        alike = shared / (one.weight + other.weight) if shared else 0.0
        if alike > most and shared >= _SHARED * min(one.weight, other.weight):
            best, most = other.id, alike
    return best


def _takes_away(proposal: Proposal) -> bool:
    return isinstance(proposal, Edit) and not proposal.content


def _words(proposal: Proposal) -> frozenset[str]:
    if isinstance(proposal, Edit):
        text = proposal.content or proposal.target
    elif isinstance(proposal, Draft):
        text = proposal.text
    else:
        text = f"{proposal.title} {proposal.instruction}"
    return frozenset(_WORD.findall(text.casefold()))


def _plain(text: str) -> str:
    return " ".join(text.split())
