"""What a steered run looks like: its report and each of its pages read after each order, open and complete."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from engine.test_steering import Person, after_step
from support.asking import Asking
from support.params import parametrized
from support.scripted import ScriptedWorld, config

from skillopt_es.events.catalog import CandidateBuilt, CandidateGated, Event, PatchProposed
from skillopt_es.events.values import Order
from skillopt_es.projections.state import AnyState
from skillopt_es.report.document import document
from skillopt_es.report.facts import Facts, facts_of
from skillopt_es.report.page import page
from skillopt_es.runs.reading import Reading
from skillopt_es.sessions.session import read_state, resume, start

T = TypeVar("T")

ALWAYS = (
    "/run/r", "/run/r/scores", "/run/r/scores.json", "/run/r/items", "/run/r/skill", "/run/r/refused", "/run/r/cost",
    "/run/r/config", "/run/r/events", "/run/r/events?type=RunSteered", "/run/r/step/1", "/",
    "/compare?run=r", "/start",
)  # fmt: skip


def _line(state: AnyState) -> str:
    assert state.current is not None
    return next(each for each in state.current.skill.text.splitlines() if each.startswith("- know"))


def _has_a_line(event: Event, state: AnyState) -> bool:
    taken = isinstance(event, CandidateGated) and event.verdict.taken
    return taken and state.current is not None and "\n- know" in state.current.skill.text


def _built(event: Event, state: AnyState) -> bool:
    return isinstance(event, CandidateBuilt)


def _pinned(event: Event, state: AnyState) -> bool:
    return bool(state.steering.pins)


def _nothing(state: AnyState) -> str:
    return ""


GIVEN: Mapping[Order, tuple[Callable[[Event, AnyState], bool], Callable[[AnyState], str]]] = {
    "pause": (after_step(1), _nothing),
    "stop": (after_step(1), _nothing),
    "budget": (after_step(1), _nothing),
    "hint": (after_step(1), lambda state: "- ferns are <b>plants</b>"),
    "pin": (_has_a_line, _line),
    "unpin": (_pinned, lambda state: state.steering.pins[0]),
    "strike": (_has_a_line, _line),
    "take": (_built, _nothing),
    "refuse": (_built, _nothing),
    "retract": (lambda event, _: isinstance(event, PatchProposed), lambda state: "t0"),
}
"""When each order is given, and its text."""


def _person(folder: Path, order: Order) -> Person:
    when, text = GIVEN[order]
    return Person(folder, when, order, text, settings={"budget.max_calls": 90_000} if order == "budget" else {})


@parametrized("order", get_args(Order), by_default=4)
def test_the_report_and_each_page_read_after_an_order(tmp_path: Path, order: Order) -> None:
    """While the run waits, and once it is complete."""
    folder = tmp_path / "runs" / "r"
    people = [_person(folder, order), *([_person(folder, "pin")] if order == "unpin" else [])]
    settings = ["train.num_epochs=2", "optimizer.use_slow_update=false", "budget.max_calls=100000"]
    made = config(tmp_path / "config", settings)
    state = asyncio.run(start(made, folder, ScriptedWorld().session(observers=tuple(people))))
    assert order in {event.order for event in _facts(folder, lambda facts: facts.summary.steered)}
    _all_read(folder)
    if state.completed is None:
        asyncio.run(resume(folder, ScriptedWorld().session()))
        _all_read(folder)
    assert read_state(folder).completed is not None


def _facts(folder: Path, read: Callable[[Facts], T]) -> T:
    with Reading.of(folder) as reading:
        return read(facts_of(reading, folder))


def _all_read(folder: Path) -> None:
    text = _facts(folder, page)
    assert "<main" in text
    assert _facts(folder, document)["run"] == "r"
    asking = Asking(directory=folder.parent)
    seen = dict.fromkeys(ALWAYS)
    for path in ALWAYS:  # and what they lead to: items, results, steps, other versions of the skill
        answer = asking.get(path)
        assert answer.status_code == 200, path
        links = (html.unescape(each) for each in re.findall(r'href="([^"#]*)', answer.text))
        seen |= dict.fromkeys(each for each in links if each.startswith("/run/r") and "/event/" not in each)
    for path in seen:
        assert asking.get(path).status_code == 200, path
