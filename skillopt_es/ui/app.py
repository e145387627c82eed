"""The pages by their addresses; whatever goes wrong is a page that says what, and what to do next."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TypeVar

from attrs import evolve
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from skillopt_es.audit.comparisons import with_comparisons
from skillopt_es.audit.refused_again import with_earlier_refusals
from skillopt_es.audit.regated import Regated
from skillopt_es.audit.regating import regated
from skillopt_es.audit.side_by_side import side
from skillopt_es.audit.spending_curve import spending_curve
from skillopt_es.config import EvaluationConfig
from skillopt_es.engine.algorithms import algorithm_of
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import NotInRun
from skillopt_es.events.errors import RunNotFound, SkillOptError
from skillopt_es.presenting.certificates import certificate_lines
from skillopt_es.presenting.documents import plain_event
from skillopt_es.projections.not_taken import NOT_TAKEN_TYPES, not_taken
from skillopt_es.report.document import document
from skillopt_es.report.facts import Depth, Facts
from skillopt_es.report.html import Child, el, note, prose
from skillopt_es.report.page import headlines_of
from skillopt_es.report.scores import scores_section
from skillopt_es.report.settings import config_section, environment_section
from skillopt_es.runs.folders import writer_words
from skillopt_es.runs.inbox import Inbox
from skillopt_es.runs.now import now_of
from skillopt_es.runs.overview import SESSIONS
from skillopt_es.runs.reading import Reading
from skillopt_es.runs.run_settings import settings_in
from skillopt_es.sessions.session import recorded_settings
from skillopt_es.ui.acting import Acts
from skillopt_es.ui.compare_page import MOST_RUNS, Compared, compare_page
from skillopt_es.ui.cost_page import cost_page
from skillopt_es.ui.item_pages import event_page, item_page, items_page
from skillopt_es.ui.refused_page import refused_page, rule_asked
from skillopt_es.ui.run_page import (
    LATEST,
    answer_part,
    curve_part,
    events_page,
    latest_part,
    now_part,
    run_head,
    steps_part,
)
from skillopt_es.ui.runs_page import Asked, runs_list
from skillopt_es.ui.safety import Guard, Refused, Rules
from skillopt_es.ui.shell import address, link, page, part, problem
from skillopt_es.ui.site import Site
from skillopt_es.ui.skill_page import skill_page
from skillopt_es.ui.steering_part import retract_part, steering_section
from skillopt_es.ui.step_page import epoch_page, step_page
from skillopt_es.ui.stream import list_stream, run_stream, until_it_fails

E = TypeVar("E", bound=Exception)

_PAGE = 200  # events of a page
_CACHED = {"cache-control": "no-cache"}


def application(directory: Path, rules: Rules) -> ASGIApp:
    """The page over the runs of a directory."""
    pages = Pages(Site(directory, rules))
    handlers = {
        SkillOptError: _for(SkillOptError, pages.failed),
        HTTPException: _for(HTTPException, pages.missing),
        Exception: pages.broken,
    }
    app = Starlette(routes=pages.routes(), exception_handlers=handlers)
    return Guard(app, rules)


def _for(
    kind: type[E], answer: Callable[[Request, E], Awaitable[Response]]
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What Starlette calls for an error of this kind; it types all of them as Exception."""

    async def answered(request: Request, error: Exception) -> Response:
        if not isinstance(error, kind):
            raise error
        return await answer(request, error)

    return answered


def _number(text: str | None, otherwise: int) -> int:
    """A number of an address; what is none is as if it had not been given."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 16 else otherwise


class Pages:
    """Each page of one site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.acts = Acts(site)

    def routes(self) -> list[Route]:
        """Address and page."""
        of_run = {
            "": self.run,
            "/stream": self.run_stream,
            "/scores": self.scores,
            "/scores.json": self.numbers,
            "/items": self.items,
            "/item": self.item,
            "/skill": self.skill,
            "/refused": self.refused,
            "/cost": self.cost,
            "/config": self.config,
            "/events": self.events,
            "/event/{number:int}": self.event,
            "/step/{number:int}": self.step,
            "/epoch/{number:int}": self.epoch,
        }
        return [
            Route("/", self.runs),
            Route("/compare", self.compare),
            *self.acts.routes(),
            Route("/stream", self.runs_stream),
            Route("/static/{name:str}", static),
            Route("/favicon.ico", no_icon),
            *(Route("/run/{run:str}" + path, page) for path, page in of_run.items()),
        ]

    # --- what pages share ------------------------------------------------------------------------------------------

    def folder(self, request: Request) -> Path:
        """The run that an address names."""
        return self.site.folder(request.path_params["run"])

    def facts(self, request: Request, depth: Depth) -> Facts:
        """Its facts."""
        return self.site.facts(self.folder(request), depth)

    def of_run(self, request: Request, name: str, at: str | None, *main: Child, read: int = -1) -> Response:
        """A page of a run; one that shows it up to event `read` is kept fresh from there on."""
        stream = address("run", name, "stream", after=read) if read >= 0 else ""
        title = f"{at or 'run'} of {name}" if at else name
        # A run's first page says all that is wrong.
        wrong = self.site.damage(self.site.folder(name)) if at != "" else ""
        said = [problem(prose(wrong))] if wrong else []
        return page(title, *said, *main, visit=self.site.visit(), run=name, at=at, stream=stream)

    async def failed(self, request: Request, error: SkillOptError) -> Response:
        """A page that says what is wrong."""
        status = 404 if isinstance(error, RunNotFound | NotInRun) else 403 if isinstance(error, Refused) else 400
        hint = note(error.hint) if error.hint else None
        back = el("p", *_back(request), link("All runs"), class_="links")
        head = el("h1", "That did not work")
        return page("Not done", head, problem(prose(str(error))), hint, back, visit=self.site.visit(), status=status)

    async def missing(self, request: Request, error: HTTPException) -> Response:
        """There is no such page, or none that takes this method."""
        words = "There is no such page" if error.status_code == 404 else f"{error.detail}: {request.method}"
        head, back = el("h1", words), el("p", link("All runs"))
        return page("Not found", head, back, visit=self.site.visit(), status=error.status_code)

    async def broken(self, request: Request, error: Exception) -> Response:
        """A page for an error that no code expects. Starlette raises it again: the terminal shows where it arose."""
        run = request.path_params.get("run", "")
        back = el("p", link(f"Back to {run}", "run", run) if run else None, link("All runs"), class_="links")
        refused = "The system refused: check the disk and the permissions."
        cause = refused if isinstance(error, OSError) else "This is a bug in skillopt-es."
        main = (
            el("h1", "This page could not be made"),
            problem(f"{type(error).__name__}: {error}"),
            note(f"{cause} The terminal of `skillopt-es ui` shows where it arose."),
            note("The other pages of this run may still work.") if run else None,
            back,
        )
        return page("Error", *main, visit=self.site.visit(), run=run, status=500)

    # --- the pages -------------------------------------------------------------------------------------------------

    def runs(self, request: Request) -> Response:
        """The list of runs."""
        main = runs_list(self.site.overviews(), Asked.of(request.query_params))
        return page("Runs", *main, visit=self.site.visit(), stream="/stream")

    def run(self, request: Request) -> Response:
        """Where a run stands."""
        folder = self.folder(request)
        facts = self.facts(request, "glance")
        with Reading.of(folder, framed=True) as reading:
            latest = list(reading.read(after=max(0, facts.read - LATEST), until=facts.read))
        said, not_followed = self.site.said(request.query_params.get("said", "")), Inbox(folder).not_followed()
        steering = steering_section(facts, self.site.visit(), said, not_followed)
        watched, told = (steering, latest_part(latest)), steps_part(facts)
        main = (
            part("head", run_head(facts, writer_words(folder)), self.acts.came_to_nothing(folder)),
            answer_part(facts, folder),
            now_part(facts, now_of(folder)),
            curve_part(facts),
            *((*watched, told) if facts.summary.completed is None else (told, *watched)),
        )
        return self.of_run(request, facts.name, "", *main, read=facts.read)

    def scores(self, request: Request) -> Response:
        """What can be said of the scores."""
        facts = self.facts(request, "scores")
        said = scores_section(headlines_of(facts), certificate=certificate_lines(facts.summary.certificate)) or note(
            "Nothing was measured yet."
        )
        numbers = el("p", link("The numbers as JSON", "run", facts.name, "scores.json"))
        head = el("h1", "Scores of ", link(facts.name, "run", facts.name))
        return self.of_run(request, facts.name, "scores", part("scores-part", head, said, numbers), read=facts.read)

    def numbers(self, request: Request) -> Response:
        """The same for programs."""
        return Response(json.dumps(document(self.facts(request, "whole"))), media_type="application/json")

    def items(self, request: Request) -> Response:
        """Items by candidates."""
        facts = self.facts(request, "items")
        return self.of_run(request, facts.name, "items", *items_page(facts, request.query_params), read=facts.read)

    def item(self, request: Request) -> Response:
        """One item."""
        query = request.query_params
        shown = [_number(value, 0) for value in query.getlist("show")]
        folder = self.folder(request)
        with Reading.of(folder, framed=True) as reading:
            item = query.get("item", "")
            retracted = retract_part(self.facts(request, "glance"), self.site.visit(), item)
            return self.of_run(request, folder.name, "items", *item_page(reading, folder.name, item, shown, retracted))

    def skill(self, request: Request) -> Response:
        """The skill with its makers."""
        facts = self.facts(request, "skill")
        return self.of_run(request, facts.name, "skill", *skill_page(facts, request.query_params), read=facts.read)

    def refused(self, request: Request) -> Response:
        """What was refused, and what another rule would have said."""
        folder = self.folder(request)
        asked = rule_asked(request.query_params)
        with Reading.of(folder, framed=True) as reading:
            refused = self.site.kept(
                folder,
                "refused",
                lambda: with_comparisons(
                    with_earlier_refusals(not_taken(reading.read(types=NOT_TAKEN_TYPES)), reading), reading
                ),
            )
            rule: EvaluationConfig | None = None
            found: Regated | str | None = None
            try:
                rule = _rule_of(reading, folder)
                found = regated(reading, folder, asked) if asked and rule is not None else None
            except SkillOptError as error:  # the list can be read all the same
                found = f"{error}. {error.hint}"
            main = refused_page(folder.name, refused, rule, request.query_params, found)
            return self.of_run(request, folder.name, "refused", *main)

    def compare(self, request: Request) -> Response:
        """Runs beside each other."""
        asked = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST_RUNS]
        folders = [self.site.folder(name) for name in asked]
        found: list[Compared] = []
        wrong: list[str] = []
        for folder in folders:
            try:
                found.append(self.site.kept(folder, "compared", partial(_compared, folder)))
                damage = self.site.damage(folder)
                wrong += [f"{folder.name}: {damage}"] if damage else []
            except SkillOptError as error:  # the others can be compared all the same
                wrong.append(f"{folder.name} cannot be compared: {error}")
        names = [folder.name for folder in self.site.folders()]
        left_out = [problem(*map(prose, wrong))] if wrong else []
        main = compare_page(names, found, request.query_params)
        return page("Compare", *main[:1], *left_out, *main[1:], visit=self.site.visit())

    def cost(self, request: Request) -> Response:
        """Calls, tokens, money and time."""
        facts = self.facts(request, "times")
        return self.of_run(request, facts.name, "cost", *cost_page(facts), read=facts.read)

    def config(self, request: Request) -> Response:
        """Settings and surroundings."""
        facts = self.facts(request, "glance")
        head = el("h1", "Config of ", link(facts.name, "run", facts.name))
        return self.of_run(request, facts.name, "config", head, config_section(facts), environment_section(facts))

    def step(self, request: Request) -> Response:
        """A step."""
        facts = self.facts(request, "story")
        main = step_page(facts, request.path_params["number"])
        return self.of_run(request, facts.name, None, *main, read=facts.read)

    def epoch(self, request: Request) -> Response:
        """The end of an epoch."""
        facts = self.facts(request, "story")
        return self.of_run(request, facts.name, None, *epoch_page(facts, request.path_params["number"]))

    def events(self, request: Request) -> Response:
        """The log's events."""
        folder = self.folder(request)
        facts = self.facts(request, "glance")
        after = min(_number(request.query_params.get("after"), max(0, facts.end - _PAGE)), facts.end)
        with Reading.of(folder, framed=True) as reading:
            rows = list(reading.read(after=after, until=after + _PAGE))
        return self.of_run(request, facts.name, "events", *events_page(rows, facts, after))

    def event(self, request: Request) -> Response:
        """One event."""
        seq = request.path_params["number"]
        folder = self.folder(request)
        with Reading.of(folder, framed=True) as reading:
            recorded = next(iter(reading.read(after=seq - 1, until=seq)), None) if 0 < seq < 2**62 else None
            if recorded is None:
                raise NotInRun(f"{folder.name} has no event {seq}", hint=f"its events are 1 to {reading.end}")
            payload = json.dumps(plain_event(recorded), indent=2, ensure_ascii=False)
            return self.of_run(request, folder.name, "events", *event_page(folder.name, recorded, payload))

    # --- what keeps them fresh -------------------------------------------------------------------------------------

    async def runs_stream(self, request: Request) -> Response:
        """That the list is not as it was."""
        return _streamed(lambda: list_stream(self.site))

    async def run_stream(self, request: Request) -> Response:
        """What happens in a run, after the event that the browser had last."""
        folder = self.folder(request)
        last = request.headers.get("last-event-id")
        after = _number(last, _number(request.query_params.get("after"), 0))
        return _streamed(lambda: run_stream(folder, after))


def _back(request: Request) -> Iterator[Child]:
    """The page with the form that did not work; what was filled in is a step back in the browser."""
    run = request.path_params.get("run")
    if request.method == "POST" and run is not None:
        yield link(f"Back to {run}", "run", run)
    elif request.method == "POST":
        yield link("Back to the form", "start")


def _rule_of(reading: Reading, folder: Path) -> EvaluationConfig | None:
    """The settings of a run's gate; None for a run that has none, or whose settings are another trainer's."""
    started = reading.started
    if "regate" in algorithm_of(started).commands.refuses:
        return None
    return config_of_run(started, folder, recorded_settings(reading)).evaluation


def _compared(folder: Path) -> Compared:
    """What is compared of a run."""
    with Reading.of(folder, framed=True) as reading:
        return Compared(
            side=side(folder),
            settings=settings_in(reading.read(types=SESSIONS)),
            curve=evolve(spending_curve(reading), name=folder.name),
        )


def _streamed(messages: Callable[[], AsyncIterator[str]]) -> Response:
    headers = {"x-accel-buffering": "no"}
    return StreamingResponse(until_it_fails(messages()), media_type="text/event-stream", headers=headers)


_STATIC: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "style.css": ("text/css", (("skillopt_es.report", "page.css"), ("skillopt_es.ui", "ui.css"))),
    "ui.js": ("text/javascript", (("skillopt_es.ui", "ui.js"),)),
}


def no_icon(request: Request) -> Response:
    """Browsers ask for one by themselves."""
    return Response(status_code=204)


def static(request: Request) -> Response:
    """The style and the script; nothing else of a folder is ever given."""
    found = _STATIC.get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("There is no such file.\n", 404)
    kind, files = found
    text = "\n".join(resources.files(package).joinpath(name).read_text(encoding="utf-8") for package, name in files)
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=_CACHED)
