"""The forms that steer a run: orders, continuing, forking; only for those who may act, and only what the run heeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from skillopt_es.engine.algorithms import algorithm_of
from skillopt_es.events.values import Order
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.report.facts import Facts
from skillopt_es.report.html import Child, Html, el, fold, note, section
from skillopt_es.ui.shell import Visit, address, hidden, link, part

_TEXTS: Mapping[Order, tuple[str, str]] = {
    "hint": ("Tell those who propose edits", "the grader wants dates as ISO"),
    "pin": ("Pin a line", "one whole line of the skill, as it stands there"),
    "unpin": ("Unpin a line", "the line"),
    "strike": ("Strike a line", "one whole line of the current skill"),
    "retract": ("Leave an item out", "its name, as on Items; no test task"),
}
_PLAIN: Mapping[Order, str] = {
    "pause": "Pause",
    "stop": "End the training",
    "take": "Take the candidate that waits",
    "refuse": "Refuse the candidate that waits",
}
_WHY = "for those who read the log"
_RETRACTED = (
    "From the end of the open step on, nothing tries it and no score counts it. What was made of it until then stays: "
    "`skillopt-es retract` lists that, and makes a fork that never met the item."
)
_LIMITS = {"max_calls": "calls", "max_tokens": "tokens", "max_cost": "money", "max_minutes": "minutes"}


def steering_section(facts: Facts, visit: Visit, said: str, not_followed: Iterable[str] = ()) -> Html | None:
    """What has been ordered, also what waits or was refused, and the forms; nothing where there is neither."""
    given = [el("li", in_words(event)) for event in facts.summary.steered]
    given += [el("li", words, class_="waits") for words in not_followed]
    forms = list(_forms(facts, visit)) if visit.may_act and facts.started is not None else []
    if not (given or forms):
        return None
    answer = el("p", said, class_="done", role="status") if said else None
    orders = el("ul", *given) if given else None
    title = "Steering" if facts.summary.completed is None and facts.status != "scored" else "Going on from here"
    return section(title, answer, part("steered", orders, *forms), name="steering")


def _forms(facts: Facts, visit: Visit) -> Iterator[Html]:
    assert facts.started is not None
    heeds = algorithm_of(facts.started).commands.heeds
    if facts.problems:
        yield note(
            f"A damaged log is not written to. `skillopt-es verify {facts.name}` says how far it can be trusted, and a "
            f"fork goes on from a moment before the damage."
        )
    if facts.problems or facts.status == "scored":
        heeds = frozenset()
    elif facts.status in ("paused", "stopped"):
        yield _form(facts, visit, "resume", "Resume")
    if heeds and facts.summary.completed is None and facts.summary.imported is None:
        plain = {order: words for order, words in _PLAIN.items() if order in heeds}
        texts = {order: words for order, words in _TEXTS.items() if order in heeds}
        if facts.status != "running":
            plain.pop("pause", None)
        made = [_order(facts, visit, order, words) for order, words in plain.items()]
        made += [_order(facts, visit, order, words, hint=hint) for order, (words, hint) in texts.items()]
        if "budget" in heeds:
            made.append(_order(facts, visit, "budget", "Another budget", limits=True))
        yield el("div", *made, class_="orders")
    if "fork" not in algorithm_of(facts.started).commands.refuses:
        yield _fork(facts, visit)
    if "start" not in algorithm_of(facts.started).commands.refuses:
        yield el("p", link("Start again with these settings", "start", config=f"again: {facts.name}"))


def _order(facts: Facts, visit: Visit, order: Order, words: str, *, hint: str = "", limits: bool = False) -> Html:
    """One order, with why."""
    fields: list[Child] = hidden({"order": order})  # type: ignore[assignment]
    if hint:
        fields.append(_field("Text", "text", hint, required=True))
    if limits:
        fields += [_field(f"At most, {what}", name, "as it is") for name, what in _LIMITS.items()]
    fields.append(_field("Why", "why", _WHY, required=True))
    return fold(words, _form(facts, visit, "steer", words, *fields))


def retract_part(facts: Facts, visit: Visit, item: str) -> Html | None:
    """Who has left an item out and why, or the order that does; nothing where it cannot be given."""
    gone = [event for event in facts.summary.retracted if item in event.items and not event.place]
    if gone:
        return el("p", el("b", "Left out"), f" by {gone[0].by}: {gone[0].reason}", class_="problem")
    started = facts.started
    if not visit.may_act or started is None or facts.problems or facts.summary.completed is not None:
        return None
    known = (*started.splits.train, *started.splits.val)  # a test task stays: the test says what the skill is worth
    if "retract" not in algorithm_of(started).commands.heeds or item not in known:
        return None
    fields = [*hidden({"order": "retract", "text": item}), _field("Why", "why", _WHY, required=True)]
    return fold("Leave this item out", _form(facts, visit, "steer", "Leave it out", *fields), note(_RETRACTED))


def _fork(facts: Facts, visit: Visit) -> Html:
    rows = {"": "now", "step": "the end of step", "epoch": "the end of epoch", "seq": "event"}
    until = el("select", *(el("option", said, value=value) for value, said in rows.items()), name="until")
    settings = el("textarea", "", name="settings", rows=2, placeholder="evaluation.gate_metric=soft")
    return fold(
        "Fork",
        _form(
            facts,
            visit,
            "fork",
            "Fork",
            el("label", el("span", "From"), until),
            _field("Number", "number", ""),
            _field("Name", "name", "after this run and the moment"),
            el("label", el("span", "Other settings, one KEY=VALUE a line"), settings),
        ),
        note("Nothing is asked yet: resume the fork to go on with it."),
    )


def _field(label: str, name: str, hint: str, *, required: bool = False) -> Html:
    box = el("input", name=name, placeholder=hint, required=required, autocomplete="off")
    return el("label", el("span", label), box)


def _form(facts: Facts, visit: Visit, act: str, words: str, *fields: Child) -> Html:
    return el(
        "form",
        *hidden({"form_token": visit.form_token}),
        *fields,
        el("button", words, type="submit"),
        method="post",
        action=address("run", facts.name, act),
        class_="filters",
    )
