"""What the scores of a run say, and what they do not, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from skillopt_es.audit.headlines import Difference, Headlines
from skillopt_es.counting import counted
from skillopt_es.presenting.numbers import chance, change
from skillopt_es.presenting.words import listed, part_words
from skillopt_es.projections.intervals import Paired

_MOST_NAMES = 12


def said(found: Headlines) -> Iterator[str]:
    """What the scores say, and what they do not, one sentence each."""
    for each in found.differences:
        yield _difference(each, found.judged)
    if found.judged > 1 and any("best" in each.names for each in found.scores if each.split == "validation"):
        yield (
            f"The best was chosen as the highest of {counted(found.judged, 'text')} measured on validation, so its own "
            "validation score flatters it; only the test score does not."
        )
    if found.accepted:
        yield _accepted(found)
    yield from _missing(found)


@frozen
class Answer:
    """Whether the best skill is better than the first one: in a word, in a sentence, and what that rests on."""

    kind: Literal["better", "worse", "noise", "unknown", "same"]
    words: str
    why: str = ""


def answer(found: Headlines) -> Answer | None:
    """The answer by the test items, which chose no skill; None where nothing was measured on them."""
    tested = next((each for each in found.differences if each.split == "test" and "best" in each.after.names), None)
    if tested is None:
        names = [each.names for each in found.scores if each.split == "test"]
        if not any("best" in each and "initial" in each for each in names):
            return None
        return Answer("same", "The best skill is the one that the run began with.", "Nothing better was found.")
    pair, why = tested.paired, _difference(tested, found.judged)
    if pair is None or pair.within_noise is None:
        return Answer("unknown", "Whether the best skill is better than the first one cannot be told.", why)
    if pair.within_noise:
        return Answer("noise", "The best skill cannot be told from the first one.", why)
    if tested.change > 0:
        return Answer("better", "The best skill is better than the first one.", why)
    return Answer("worse", "The best skill is worse than the first one.", why)


def _difference(each: Difference, judged: int) -> str:
    names = listed(list(each.after.names))
    lead = f"On {each.split}, {names} against {listed(list(each.before.names))}: {change(each.change)}"
    pair = each.paired
    if pair is None:
        return f"{lead}; the log has no results of single items, so it cannot be told whether that is more than noise."
    turned = f"{len(pair.won)} won and {len(pair.lost)} lost of {counted(pair.items, 'item')}"
    if each.after.chosen and not pair.within_noise:
        among = f"among {counted(judged, 'text')}" if judged > 1 else "by a gate"
        return f"{lead}, {turned}. These items chose it {among}, so no test of chance on them says anything about it."
    return f"{lead}, {turned}: {noise_words(pair)}."


def noise_words(pair: Paired) -> str:
    """Whether chance alone explains a difference, and by which count."""
    if not pair.resolvable:
        return "within noise: with so few items, any difference would be"
    together = pair.by_family
    if together is None:
        return f"{'within' if pair.within_noise else 'more than'} noise ({chance(pair.probability)})"
    both = f"{chance(pair.probability)} by item, {chance(together)} by type"
    if pair.within_noise is None:
        few = f"with {counted(pair.kinds, 'type')} of tasks it cannot be told whether more than a few types turned"
        return f"more than noise if each item turns by itself, but {few} ({both})"
    return f"{'within' if pair.within_noise else 'more than'} noise ({both})"


def _accepted(found: Headlines) -> str:
    noise = [each for each in found.accepted if each.paired.within_noise]
    by = "noise, counted by type," if any(each.paired.families for each in noise) else "noise"
    whole = counted(len(found.accepted), "accepted text")
    taken = "its predecessor" if len(found.accepted) == 1 else "the text before it"
    if not noise:
        some = "The" if len(found.accepted) == 1 else "Each of the"
        many = f"The gate compared {counted(found.judged, 'text')} on the same items, so this tests none of them."
        return f"{some} {whole} turned more items against {taken} than chance does in one comparison. {many}"
    if len(noise) == len(found.accepted):
        none = "The accepted text won by no" if len(noise) == 1 else f"None of the {whole} won by"
        return f"{none} more than {by} against {taken}; the gate's rule accepts it anyway."
    names = [f"step {each.step}" if each.epoch is None else f"guidance of epoch {each.epoch}" for each in noise]
    rest = len(names) - _MOST_NAMES
    shown = listed(names if rest <= 0 else [*names[:_MOST_NAMES], f"{rest} more"])
    lead = f"Of {whole}, {len(noise)} won by no more than {by.rstrip(',')} ({shown})"
    return f"{lead}, each against {taken}; the gate's rule accepts it anyway."


def _missing(found: Headlines) -> Iterator[str]:
    if found.judged and not any(each.split == "test" for each in found.scores):
        yield "Nothing was measured on test items, so the best skill's worth on other items is unknown."
    for part in dict.fromkeys(each.over for each in found.scores):
        names = [name for each in found.scores for name in each.names if each.over == part]
        if part is not None:
            scores = "score of {} is" if len(names) == 1 else "scores of {} are"
            yield f"The validation {scores.format(listed([*names]))}{part_words(part)}."
    lost = [each for each in found.scores if each.unmeasured]
    if lost:
        yield "Items that could not be measured count in no score: where the table says “of”, some are left out."
    if any(not each.exact for each in found.scores):
        yield "A score with ≤ is an upper bound: not every item was run, because the verdict was already certain."
