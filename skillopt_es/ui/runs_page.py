"""The list of runs: score with its interval, state, spend and curve; filtered, sorted and grouped by task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from attrs import frozen

from skillopt_es.counting import counted
from skillopt_es.presenting.numbers import shown_amount
from skillopt_es.presenting.words import part_words, progress_cell
from skillopt_es.projections.intervals import wilson
from skillopt_es.projections.lines import EvaluationLine
from skillopt_es.projections.summary import Summary
from skillopt_es.report.html import DASH, Html, Row, count, el, join, note, row, score, table
from skillopt_es.runs.folders import writer_words
from skillopt_es.runs.overview import Overview, Unreadable
from skillopt_es.ui.shell import choice, filters, link, part, sparkline, status_badge

_SORTS: Mapping[str, str] = {
    "written": "last written",
    "name": "name",
    "best": "best on validation",
    "test": "best on test",
    "cost": "cost",
    "calls": "calls",
}
_STATES = ("running", "paused", "stopped", "completed", "scored", "new", "damaged", "unreadable")


@frozen(kw_only=True)
class Asked:
    """What of the list is wanted."""

    words: str = ""
    state: str = ""
    task: str = ""
    sort: str = "written"
    grouped: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """As an address says it; what it says wrongly is left out."""
        sort = query.get("sort", "written")
        return cls(
            words=query.get("q", "").strip().lower(),
            state=query.get("state", ""),
            task=query.get("task", ""),
            sort=sort if sort in _SORTS else "written",
            grouped=query.get("group") == "task",
        )


def runs_list(found: Sequence[Overview | Unreadable], asked: Asked) -> list[Html]:
    """The form that filters, and the runs that it leaves."""
    shown = sorted((each for each in found if _is_wanted(each, asked)), key=_ORDER[asked.sort])
    if asked.sort != "name":
        shown.reverse()
    return [
        el("h1", "Runs"),
        _form(found, asked),
        part("runs", *_tables(found, shown, asked)),
    ]


def _tables(found: Sequence[Overview | Unreadable], shown: Sequence[Overview | Unreadable], asked: Asked) -> list[Html]:
    if not found:
        return [note("There is no run here yet. `skillopt-es run` starts one, and so does “Start a run”.")]
    if not shown:
        return [note("No run is like that.")]
    said = note(f"{len(shown)} of {counted(len(found), 'run')}.") if len(shown) < len(found) else None
    tables: Iterable[Html]
    if asked.grouped:
        by_task = sorted(shown, key=_task)
        tables = [_table(task or "no task is recorded", list(rows)) for task, rows in groupby(by_task, key=_task)]
    else:
        tables = [_table("Runs", shown)]
    compare = el("p", el("button", "Compare the marked runs", type="submit")) if len(found) > 1 else None
    return [el("form", *tables, said, compare, method="get", action="/compare")]


def _form(found: Sequence[Overview | Unreadable], asked: Asked) -> Html:
    tasks = sorted({_task(each) for each in found} - {""})
    states = {"": "any", **{state: state for state in _STATES if any(state in _states(each) for each in found)}}
    return filters(
        "Show",
        el("label", el("span", "Name or text"), el("input", type="search", name="q", value=asked.words)),
        choice("State", "state", states, asked.state),
        choice("Task", "task", {"": "any", **{task: task for task in tasks}}, asked.task),
        choice("Sorted by", "sort", _SORTS, asked.sort),
        choice("Grouped", "group", {"": "no", "task": "by task"}, "task" if asked.grouped else ""),
        action="/",
        live="runs",
        role="search",
    )


def _is_wanted(each: Overview | Unreadable, asked: Asked) -> bool:
    if asked.state and asked.state not in _states(each):
        return False
    if asked.task and _task(each) != asked.task:
        return False
    text = " ".join((each.folder.name, _task(each), *_states(each))).lower()
    return all(word in text for word in asked.words.split())


def _states(each: Overview | Unreadable) -> tuple[str, ...]:
    if isinstance(each, Unreadable):
        return ("unreadable", "damaged")
    return (each.status, *(["damaged"] if each.problem else []))


def _task(each: Overview | Unreadable) -> str:
    return "" if isinstance(each, Unreadable) else each.task


def _by(value: Callable[[Overview], float | int | str | None]) -> Callable[[Overview | Unreadable], tuple[object, ...]]:
    """Orders by a number, those without one at the end of a list that begins with the highest."""

    def order(each: Overview | Unreadable) -> tuple[object, ...]:
        known = None if isinstance(each, Unreadable) else value(each)
        return (known is not None, *([] if known is None else [known]), each.folder.name)

    return order


def _tested(each: Overview) -> EvaluationLine | None:
    """The best skill on the test items."""
    best = each.summary.best.skill
    return next((line for line in each.summary.tests if line.skill == best and line.score.measured), None)


def _test_score(each: Overview) -> float | None:
    line = _tested(each)
    return None if line is None else line.score.hard


_ORDER: Mapping[str, Callable[[Overview | Unreadable], tuple[object, ...]]] = {
    "name": lambda each: (each.folder.name,),
    "written": _by(lambda each: each.written),
    "best": _by(lambda each: each.summary.best.value),
    "test": _by(_test_score),
    "cost": _by(lambda each: each.cost),
    "calls": _by(lambda each: each.calls),
}


def _first_tested(each: Overview) -> EvaluationLine | None:
    """The first skill on the test items, where it is not the best one."""
    first, best = each.summary.initial, each.summary.best.skill
    if first == best:
        return None
    return next((line for line in each.summary.tests if line.skill == first and line.score.measured), None)


def _table(caption: str, shown: Sequence[Overview | Unreadable]) -> Html:
    headers = (
        "run | state | #test, first → best | #95 % interval | #best on validation | curve | #step | #calls"
        " | #cost | last written (UTC)"
    )
    return table(caption, headers, [_row(each) for each in shown], kind="runs")


def _row(each: Overview | Unreadable) -> Row | Html:
    mark = el("input", type="checkbox", name="run", value=each.folder.name, aria_label=f"mark {each.folder.name}")
    name = join([mark, " ", link(each.folder.name, "run", each.folder.name)])
    if isinstance(each, Unreadable):
        cell = el("td", status_badge("unreadable", damaged=False), el("small", f" {each.why}"), colspan=9)
        return el("tr", el("th", name, scope="row"), cell)
    summary, tested = each.summary, _tested(each)
    measured = None if tested is None else tested.score.measured
    interval = wilson(tested.score.hard, measured) if tested is not None and measured else None
    step = DASH if summary.is_evaluation else progress_cell(summary)
    spark = sparkline(each.bests, f"The best of {each.folder.name} by step")
    return row(
        name,
        _where_it_stands(each),
        _tests(each, tested),
        DASH if interval is None else f"{interval.low:.3f} to {interval.high:.3f}",
        _best(summary),
        spark,
        step,
        DASH if summary.imported is not None else count(each.calls),
        DASH if each.cost is None else f"{each.currency} {shown_amount(each.cost, least=not each.cost_is_whole)}",
        each.written[:16].replace("T", " "),
    )


def _best(summary: Summary) -> str:
    """The best skill's value on validation, by which score, and over how many items."""
    over = part_words(summary.over(summary.best.skill), chosen=summary.was_chosen(summary.best.skill))
    metric = f" {summary.metric}" if summary.metric and summary.best.value is not None else ""
    return f"{score(summary.best.value)}{metric}{over}"


def _tests(each: Overview, tested: EvaluationLine | None) -> str:
    if tested is None:
        return DASH
    first = _first_tested(each)
    return score(tested.score.hard) if first is None else f"{score(first.score.hard)} → {score(tested.score.hard)}"


def _where_it_stands(each: Overview) -> Html:
    """Its state, and who is writing it."""
    writer = writer_words(each.folder)
    badge = status_badge(each.status, damaged=bool(each.problem))
    steered = "steered by hand" if each.summary.by_hand else ""
    said = [el("small", words, class_="writer") for words in (each.problem, steered, writer) if words]
    return el("span", badge, *said) if said else badge
