"""Scores by type of task, as tables and as JSON: of one evaluation, or of a run's skills on the test items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from skillopt_es.cli.printing import print_table
from skillopt_es.cli.terminal import field
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json, Score
from skillopt_es.presenting.certificates import certificate_lines
from skillopt_es.presenting.claims import claim_words, tested
from skillopt_es.presenting.documents import plain_score
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.words import metric_words, part_words
from skillopt_es.projections.certificate import Certificate
from skillopt_es.projections.intervals import Judged
from skillopt_es.projections.lines import stated_value
from skillopt_es.projections.summary import Summary

if TYPE_CHECKING:
    from skillopt_es.runs.reading import Reading


class Scored(Protocol):
    """An evaluation: its score, and that of each type of its items."""

    @property
    def skill(self) -> str:
        """The hash of the skill that was tried."""
        ...

    @property
    def score(self) -> Score:
        """Over all items."""
        ...

    @property
    def by_type(self) -> Mapping[str, Score]:
        """Over the items of each type."""
        ...


def print_by_type(by_type: Mapping[str, Score]) -> None:
    """One row a type; nothing when there is only one."""
    if len(by_type) > 1:
        rows = [(name, _items(score), _hard(score), _soft(score)) for name, score in by_type.items()]
        print_table(("type", "items", "hard", "soft"), rows, right=(1, 2, 3))


def tests_by_name(tests: Iterable[Scored], **skills: str) -> dict[str, Scored]:
    """The tests of some skills, given by hash, under their names; equal texts were tried once, for all their names."""
    known = {scored.skill: scored for scored in tests}
    return {name: known[skill] for name, skill in skills.items() if skill in known}


def test_difference(reading: Reading, folder: Path, tests: Mapping[str, Scored]) -> Judged | None:
    """The best skill against the first one, by the results of single test items; as the report judges it."""
    if len({scored.skill for scored in tests.values()}) < 2:
        return None
    from skillopt_es.report.facts import facts_of
    from skillopt_es.report.page import headlines_of

    return tested(headlines_of(facts_of(reading, folder, "glance")))


def print_tests(tests: Mapping[str, Scored], difference: Judged | None, *, left_out: bool) -> None:
    """The hard scores in one line, and what they show; or that the test was left out; or nothing."""
    if tests:
        scores = ", ".join(f"{name} {_hard(scored.score)}" for name, scored in tests.items())
        field("test", f"{scores} (hard score)")
        if difference is not None:
            field("", f"best against initial: {claim_words(difference)}")
    elif left_out:
        field("test", "not made: the calls that were left do not pay for it; `eval` makes it")


def wants_test(started: RunStarted, changed: Mapping[str, Json]) -> bool:
    """Whether a run, with the keys that were changed since, was to end with a test; its algorithm may leave it out."""
    evaluation = started.config.get("evaluation")
    first = evaluation.get("eval_test") if isinstance(evaluation, dict) else None
    return changed.get("evaluation.eval_test", first) is True and bool(started.splits.test)


def validation_words(summary: Summary) -> str:
    """The scores on validation of the first, the current and the best skill, and what is to know of them."""
    baseline = summary.baseline
    if baseline is None and summary.best.value is None:
        return "not measured yet"
    first = shown_value(baseline.value if baseline else None)
    told = chosen_words(chosen=summary.was_chosen(summary.best.skill), tested=bool(summary.tests))
    current = shown_value(summary.current.value)
    if summary.current.skill != summary.best.skill:
        current += held_words(summary, summary.current.skill)
    over = part_words(summary.over(summary.initial))
    scores = f"initial {first}{over}, current {current}, best {_best_words(summary)}"
    return f"{metric_words(summary.metric)}: {scores}{noted(told)}"


def held_words(summary: Summary, skill: str) -> str:
    """Over how many items a skill's validation score is, and whether these chose it; empty where it is over all."""
    return part_words(summary.over(skill), chosen=summary.was_chosen(skill))


def _best_words(summary: Summary) -> str:
    """The best skill's value, over how many items, and what it was before the skill met more of them."""
    best = summary.best.skill
    value, over = shown_value(summary.best.value), held_words(summary, best)
    fewer = summary.before_all(best)
    if fewer and shown_value(stated_value(fewer)) != value:
        now = over or all_words(summary.validation)
        return f"{value}{now}, before that {shown_value(stated_value(fewer))} over {fewer[0].score.measured}"
    first = summary.over(summary.initial)
    return f"{value}{over or (all_words(summary.validation) if first is not None else '')}"


def all_words(items: int) -> str:
    """That a score is over all items, where another beside it is not."""
    return f" over all {items} items"


def chosen_words(*, chosen: bool, tested: bool) -> str:
    """What a score on validation does not say, where it is the one that its text was chosen by."""
    if not chosen:
        return ""
    return "chosen by this score; the test tells more" if tested else "chosen by this score, which flatters it"


def noted(*notes: str) -> str:
    """What is to be said behind a score; empty where that is nothing."""
    said = "; ".join(filter(None, notes))
    return f" ({said})" if said else ""


def print_certificate(found: Certificate) -> None:
    """What is certified, and what is known of the best skill; nothing where nobody asked."""
    for number, line in enumerate(certificate_lines(found)):
        field("" if number else "certified", line)


def print_test_types(tests: Mapping[str, Scored]) -> None:
    """A blank line and the hard scores of each type of task; nothing when there is only one."""
    types = {kind: score for scored in tests.values() for kind, score in scored.by_type.items()}
    if len(types) < 2:
        return
    rows = [
        (kind, _items(score), *(_hard(scored.by_type.get(kind)) for scored in tests.values()))
        for kind, score in types.items()
    ]
    click.echo()
    print_table(("type of test item", "items", *tests), rows, right=range(1, 2 + len(tests)))


def tests_json(tests: Mapping[str, Scored]) -> dict[str, Json]:
    """The tests by name."""
    return {name: scored_json(scored) for name, scored in tests.items()}


def scored_json(scored: Scored | None) -> Json:
    """An evaluation's score with those of its types; null for none."""
    if scored is None:
        return None
    return {
        **plain_score(scored.score),
        "by_type": {name: plain_score(score) for name, score in scored.by_type.items()},
    }


def _items(score: Score) -> str:
    if score.measured is None or score.unmeasured is None:
        return "-"
    whole = score.measured + score.unmeasured
    return f"{score.measured} of {whole}" if score.unmeasured else str(whole)


def _hard(score: Score | None) -> str:
    return f"{score.hard:.4f}" if score is not None and score.measured else "-"


def _soft(score: Score) -> str:
    return f"{score.soft:.4f}" if score.measured else "-"
