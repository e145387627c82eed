"""The pages by their addresses; whatever goes wrong is a page that says what, and what to do next."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path

from attrs import evolve
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from skillopt_es.audit.refused_again import with_earlier_refusals
from skillopt_es.audit.regated import Regated
from skillopt_es.audit.regating import regated
from skillopt_es.audit.side_by_side import side
from skillopt_es.audit.spending_curve import spending_curve
from skillopt_es.config import EvaluationConfig
from skillopt_es.engine.programs import program_of
from skillopt_es.engine.tasks import recorded_run
from skillopt_es.errors import NotInRun
from skillopt_es.events.errors import RunNotFound, SkillOptError
from skillopt_es.events.values import Purpose
from skillopt_es.presenting.certificates import certificate_lines
from skillopt_es.presenting.documents import plain_event
from skillopt_es.projections.item_results import item_results
from skillopt_es.projections.not_taken import NOT_TAKEN_TYPES, not_taken
from skillopt_es.projections.summary import OVERVIEW, summarize
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

_PAGE = 200  # events of a page
_TESTS: tuple[Purpose, ...] = ("test",)
_CACHED = {"cache-control": "no-cache"}


def application(directory: Path, rules: Rules) -> ASGIApp:
    """The page over the runs of a directory."""
    pages = Pages(Site(directory, rules))
    handlers = {SkillOptError: pages.failed, HTTPException: pages.missing, Exception: pages.broken}
    app = Starlette(routes=pages.routes(), exception_handlers=handlers)
    return Guard(app, rules)


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
