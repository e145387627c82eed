"""Grading a SearchQA answer: exact match and token F1 after SQuAD normalisation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from skillopt_es.adapters.environments.text import normalise, overlap_f1


@frozen
class Gold:
    """One accepted answer in the forms that grading compares."""

    normal: str
    words: Counter[str]


@frozen
class Grade:
    """How a prediction compares with the best of the accepted answers; `sub_em`: one of the two contains the other."""

    exact: bool
    f1: float
    sub_em: bool


def gold_of(answer: str) -> Gold:
    """An accepted answer, made ready once for all its gradings."""
    normal = normalise(answer)
    return Gold(normal, Counter(normal.split()))


def grade(prediction: str, golds: Sequence[Gold]) -> Grade:
    """Exact match, best F1, and whether prediction and an accepted answer contain one another."""
    normal = normalise(prediction)
    words = Counter(normal.split())
    if words:
        f1 = max((overlap_f1(words, gold.words) for gold in golds), default=0.0)
    else:
        f1 = 1.0 if any(not gold.words for gold in golds) else 0.0
    return Grade(
        exact=any(normal == gold.normal for gold in golds),
        f1=f1,
        sub_em=any(gold.normal in normal or normal in gold.normal for gold in golds),
    )
