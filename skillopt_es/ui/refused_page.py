"""What was refused and what stayed undecided, each with its reason, and what another rule would have said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from skillopt_es.audit.regated import Regated, Verdict
from skillopt_es.config import EvaluationConfig
from skillopt_es.counting import counted
from skillopt_es.events.values import GateRule
from skillopt_es.presenting.words import proposal_words
from skillopt_es.projections.not_taken import NotTaken, Refused
from skillopt_es.report.html import DASH, Child, Html, Row, badge, el, join, note, row, score, section, table
from skillopt_es.ui.shell import choice, filters, items_links, link, part

_MOST = 400  # the last ones: a long search has refused thousands
_NUMBER = {"candidate": "step", "guidance": "guidance of epoch", "promotion": "the end, after step"}
_METRICS = ("hard", "soft", "mixed")
_KEYS = ("gate_metric", "gate_rule", "gate_repeats", "gate_standard_errors", "gate_mixed_weight", "use_gate")


def rule_asked(query: Mapping[str, str]) -> tuple[str, ...]:
    """The settings of another rule that an address names, as `--set` takes them."""
    return tuple(f"evaluation.{key}={query[key]}" for key in _KEYS if query.get(key, "").strip())


def refused_page(
    run: str, refused: Refused, rule: EvaluationConfig | None, query: Mapping[str, str], found: Regated | str | None
) -> list[Html]:
    """The list, and the form in which another rule is tried; `found` is what it says, or why it says nothing."""
    parts: list[Child] = [el("h1", "Refused and undecided in ", link(run, "run", run))]
    if rule is not None:
        parts.append(_other_rule(run, rule, query, found))
    elif isinstance(found, str):
        parts.append(note(f"No other rule can be asked: {found}"))
    parts.append(_list(run, refused.rows))
    return [*(each for each in parts if isinstance(each, Html))]


def _other_rule(run: str, rule: EvaluationConfig, query: Mapping[str, str], found: Regated | str | None) -> Html:
    def given(key: str, otherwise: object) -> str:
        return query.get(key) or str(otherwise).lower()

    def field(label: str, key: str, otherwise: object, least: str, most: str, step: str) -> Html:
        box = el("input", type="range", name=key, value=given(key, otherwise), min=least, max=most, step=step)
        return el("label", el("span", f"{label}: ", el("output", given(key, otherwise))), box)

    form = filters(
        "Ask this rule",
        choice("Metric", "gate_metric", {each: each for each in _METRICS}, given("gate_metric", rule.gate_metric)),
        choice("Rule", "gate_rule", {each: each for each in get_args(GateRule)}, given("gate_rule", rule.gate_rule)),
        choice("Gate", "use_gate", {"true": "on", "false": "off"}, given("use_gate", rule.use_gate)),
        field("Repeats", "gate_repeats", rule.gate_repeats, "2", "20", "1"),
        field("Standard errors", "gate_standard_errors", rule.gate_standard_errors, "0", "4", "0.05"),
        field("Share of soft", "gate_mixed_weight", rule.gate_mixed_weight, "0", "1", "0.05"),
        live="other-rule",
    )
    said: list[Html] = []
    if isinstance(found, str):
        said = [el("p", found, class_="problem", role="alert")]
    elif found is not None:
        said = list(_regated(run, found))
    lead = note(
        "From the recorded results, without calls. Up to the first verdict that changes this is exact. Repeats count "
        "with the rules paired, retest and not_worse_retest, standard errors with paired, the share of soft with the "
        "metric mixed."
    )
    return section("Another rule", lead, form, part("other-rule", *said), name="rule")


def _regated(run: str, found: Regated) -> Iterator[Html]:
    changed = sum(each.changed is True for each in found.verdicts)
    unknown = sum(each.changed is None for each in found.verdicts)
    same = "the same" if found.best_recorded == found.best_derived else "another one"
    untold = f", of {unknown} it cannot be told" if unknown else ""
    yield el("p", f"{changed} of {counted(len(found.verdicts), 'verdict')} would change{untold}; the best is {same}.")
    headers = "where | recorded | by this rule | #value | #against | certainty"
    yield table("Verdicts by this rule", headers, [_verdict(run, each) for each in found.verdicts])


def _verdict(run: str, each: Verdict) -> Row:
    words = f"{_NUMBER[each.kind]} {each.number}"
    where: Child = link(words, "run", run, "step", each.number) if each.kind == "candidate" else words
    derived: Child = badge(each.derived) if each.derived is not None else f"cannot be told: {each.why}"
    return row(
        where,
        badge(each.recorded),
        derived,
        f"{'≤ ' if each.bound else ''}{score(each.value)}",
        score(each.against),
        each.zone,
        class_="changed" if each.changed else None,
    )


def _list(run: str, rows: Sequence[NotTaken]) -> Html:
    counts = Counter(each.reason.replace("_", " ") for each in rows)
    said = note(", ".join(f"{count} {reason}" for reason, count in counts.most_common()) or "Nothing was refused.")
    headers = "where | why | what | evidence"
    shown = [_row(run, each) for each in reversed(rows[-_MOST:])]
    body = (
        table(f"{counted(len(rows), 'thing')} not taken, the last first", headers, shown, kind="refused")
        if rows
        else None
    )
    more = note(f"The first {len(rows) - _MOST:,} are left out.") if len(rows) > _MOST else None
    return section("Not taken", part("refused", said, body, more), name="not-taken")


def _row(run: str, each: NotTaken) -> Row:
    where = (
        link(f"step {each.step}", "run", run, "step", each.step)
        if each.step is not None
        else link(f"end of epoch {each.epoch}", "run", run, "epoch", each.epoch)
    )
    what = proposal_words(each.proposal) if each.proposal is not None else each.text or each.kind
    earlier = f"; refused in {each.earlier}" if each.earlier else ""
    why = el("span", el("b", each.reason.replace("_", " ")), f" {each.detail}{earlier}" if each.detail else "")
    return row(where, why, what, _evidence(run, each))


def _evidence(run: str, each: NotTaken) -> Child:
    """The tasks that it came from, those that were shown solved apart."""
    failed = [item for item in each.items if item not in each.solved]
    said = [items_links(run, failed)] if failed else []
    said += [el("p", "solved, for comparison: ", items_links(run, each.solved))] if each.solved else []
    return join(said) if said else DASH
