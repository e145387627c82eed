"""What the scores of a run say, and what they do not, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from skillopt_es.audit.headlines import Difference, Headlines
from skillopt_es.counting import counted
from skillopt_es.presenting.numbers import chance, change
from skillopt_es.presenting.words import by_hand_words, listed, part_words
from skillopt_es.projections.intervals import Judged, Paired, judged

_MOST_NAMES = 12  # two lines of a report; who wants all reads the table


def said(found: Headlines) -> Iterator[str]:
    """What the scores say, and what they do not, one sentence each."""
    for each in found.differences:
        yield _difference(each, found.judged)
    if found.by_hand:
        yield f"Steered by hand: {by_hand_words(found.by_hand)}."
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
    difference = _tested(found)
    if difference is None:
        names = [each.names for each in found.scores if each.split == "test"]
        if not any("best" in each and "initial" in each for each in names):
            return None
        return Answer("same", "The best skill is the one that the run began with.", "Nothing better was found.")
    why = _difference(difference, found.judged)
    if difference.paired is None:
        return Answer("unknown", "Whether the best skill is better than the first one cannot be told.", why)
    return _answered(judged(difference.paired), why)


def tested(found: Headlines) -> Judged | None:
    """The best skill against the first one on the test items; None where both are one text, or nothing is known."""
    difference = _tested(found)
    return None if difference is None or difference.paired is None else judged(difference.paired)


def _tested(found: Headlines) -> Difference | None:
    return next((each for each in found.differences if each.split == "test" and "best" in each.after.names), None)


def _answered(seen: Judged, why: str) -> Answer:
    better: Literal["better", "worse"] = "better" if seen.pair.is_ahead else "worse"
    match seen.claim:
        case "few_items" | "noise":
            return Answer("noise", "The best and the first skill do not differ by more than chance.", why)
        case "few_types":
            return Answer(better, f"The best skill is {better} than the first one on tasks of these types.", why)
        case "one_or_two_types":
            return Answer(better, f"The best skill is {better} than the first one on these tasks.", why)
        case "more":
            return Answer(better, f"The best skill is {better} than the first one.", why)


def _difference(each: Difference, judged_texts: int) -> str:
    names = listed(list(each.after.names))
    lead = f"On {each.split}, {names} against {listed(list(each.before.names))}: {change(each.change)}"
    pair = each.paired
    if pair is None:
        return f"{lead}; the log has no results of single items, so it cannot be told whether that is more than noise."
    if each.after.chosen and not judged(pair).within_noise:
        among = f"among {counted(judged_texts, 'text')}" if judged_texts > 1 else "by a gate"
        return (
            f"{lead}, {turned_words(pair)}. These items chose it {among}, so no test of chance on them says anything "
            "about it."
        )
    return f"{lead}, {claim_words(judged(pair))}."


def turned_words(pair: Paired) -> str:
    """How many items turned, either way."""
    return f"{len(pair.won)} won and {len(pair.lost)} lost of {counted(pair.items, 'item')}"


def claim_words(seen: Judged) -> str:
    """What turned, and what can be claimed of it: of these items, of tasks of their types, or of more."""
    return f"{turned_words(seen.pair)}: {_claim(seen)}"


def _claim(seen: Judged) -> str:
    alone, together = chance(seen.probability), seen.by_family
    both = alone if together is None else f"{alone} by item, {chance(together)} by type"
    better = "better" if seen.pair.is_ahead else "worse"
    match seen.claim:
        case "few_items":
            return "within noise: with so few items, any difference would be"
        case "noise":
            return f"within noise ({both})"
        case "few_types":
            return f"{better} on tasks of these types ({alone}). {_few_types(seen.pair)}"
        case "one_or_two_types":
            return f"{better} on these tasks, perhaps by one or two types ({both})"
        case "more":
            return f"more than noise ({both})"


def _few_types(pair: Paired) -> str:
    """Why nothing can be said of other types."""
    could, did = pair.kinds_that_could, pair.kinds_turned
    turn = "win" if pair.is_ahead else "lose"
    if did == could:
        seen = f"Every type that could {turn} did ({did} of {could})"
    else:
        seen = f"{did} of the {counted(could, 'type')} that could {turn} did"
    return f"{seen}; so few types cannot tell about other types"


def _accepted(found: Headlines) -> str:
    noise = [each for each in found.accepted if judged(each.paired).within_noise]
    whole = counted(len(found.accepted), "accepted text")
    taken = "its predecessor" if len(found.accepted) == 1 else "the text before it"
    if not noise:
        some = "The" if len(found.accepted) == 1 else "Each of the"
        many = f"The gate compared {counted(found.judged, 'text')} on the same items, so this tests none of them."
        return f"{some} {whole} turned more items against {taken} than chance does in one comparison. {many}"
    if len(noise) == len(found.accepted):
        none = "The accepted text won by no" if len(noise) == 1 else f"None of the {whole} won by"
        return f"{none} more than noise against {taken}; the gate's rule accepts it anyway."
    names = [f"step {each.step}" if each.epoch is None else f"guidance of epoch {each.epoch}" for each in noise]
    rest = len(names) - _MOST_NAMES
    shown = listed(names if rest <= 0 else [*names[:_MOST_NAMES], f"{rest} more"])
    lead = f"Of {whole}, {len(noise)} won by no more than noise ({shown})"
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
