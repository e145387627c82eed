"""What the page does: begins, continues, forks and steers runs, each by what the command does, for signed-in people."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from skillopt_es.config import load_config
from skillopt_es.config.layers import demo_config
from skillopt_es.door.steer import awaited, how_it_goes_on, steer
from skillopt_es.engine.tasks import recorded_run
from skillopt_es.errors import NotInRun
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.values import Json, Order
from skillopt_es.report.html import Html, el, note
from skillopt_es.runs.folders import fork_folder, is_run, is_written
from skillopt_es.runs.lookup import Kind, seq_of
from skillopt_es.runs.now import now_of
from skillopt_es.runs.reading import Reading
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import recorded_settings
from skillopt_es.ui.safety import Refused, checked_form
from skillopt_es.ui.shell import Visit, address, link, page, part, problem
from skillopt_es.ui.site import Site
from skillopt_es.ui.start_page import checked_part, file_of, settings_of, start_page
from skillopt_es.ui.starting import Process, Starter

_WAIT_SECONDS = 2.0
_DIGITS = 16
_PATIENCE, _LOOK_EVERY = 50, 0.1  # looks, and seconds between them
_LIMITS = ("max_calls", "max_tokens", "max_cost", "max_minutes")
_TOLD_BY_THE_RUN = (None, 0, 3, 130)
"""How a command ends that is at work, is done, or has paused the run."""


class Acts:
    """What can be done over one site."""

    def __init__(self, site: Site, visit: Callable[[Request], Visit]) -> None:
        self.site = site
        self.visit = visit
        self.starter = Starter(site.directory)

    def routes(self) -> list[Route]:
        """Their addresses; whatever changes something is a POST, which the guard looks at first."""
        run = "/run/{run:str}"
        return [
            Route("/start", self.form),
            Route("/start", self.start, methods=["POST"]),
            Route("/start/check", self.check, methods=["POST"]),
            Route("/started/{name:str}", self.started),
            Route(run + "/steer", self.steer, methods=["POST"]),
            Route(run + "/resume", self.resume, methods=["POST"]),
            Route(run + "/fork", self.fork, methods=["POST"]),
        ]

    async def _fields(self, request: Request) -> dict[str, str]:
        return await checked_form(request, self.site.rules)

    def form(self, request: Request) -> Response:
        """The form that begins a run."""
        visit = self.visit(request)
        if not visit.may_act:
            raise Refused("nothing can be begun from here", hint="open the address that the command printed")
        before = self.starter.processes.get(request.query_params.get("as", ""))
        if before is not None:  # it is filled in as it was for a command that came to nothing
            return self._form(visit, before.filled.get("config", ""), before.filled, None)
        return self._form(visit, request.query_params.get("config", ""), {}, None)

    def _form(
        self,
        visit: Visit,
        config: str,
        fields: Mapping[str, str],
        found: Mapping[str, Json] | None,
        status: int = 200,
    ) -> Response:
        configs = self.starter.configs()
        chosen = config if config in configs else next(iter(configs))
        try:
            values, wrong = self._values(configs[chosen]), None
        except SkillOptError as error:
            values, wrong = {}, problem(str(error))
        main = start_page([*configs], chosen, values, fields, visit.form_token)
        return page("Start a run", *main, wrong, checked_part(found), visit=visit, status=status)

    def _values(self, words: tuple[str, ...]) -> dict[str, Json]:
        """What the chosen config has for each key."""
        option, _, name = words[0].partition("=")
        if option == "--again":
            folder = self.site.folder(name)
            with Reading.of(folder) as reading:
                config = recorded_run(reading.started, folder, recorded_settings(reading)).config
        else:
            file = file_of(words)
            config = load_config(demo_config(name) if file is None else file)
        return {
            f"{name}.{key}": value
            for name, values in config.resolved.items()
            if isinstance(values, dict)
            for key, value in values.items()
        }

    async def check(self, request: Request) -> Response:
        """What the command says of a run before it begins."""
        fields = await self._fields(request)
        words = self.starter.words(fields.get("config", ""), settings_of(fields))
        found = await run_in_threadpool(self.starter.checked, words)
        return await run_in_threadpool(self._form, self.visit(request), fields.get("config", ""), fields, found)

    async def start(self, request: Request) -> Response:
        """Begins a run."""
        fields = await self._fields(request)
        config, name = fields.get("config", ""), fields.get("name", "").strip()
        try:
            begun = await run_in_threadpool(self.starter.begin, config, settings_of(fields), name, fields)
        except SkillOptError as error:  # what was filled in stays
            found: dict[str, Json] = {"error": {"message": error.message, "hint": error.hint}}
            return await run_in_threadpool(self._form, self.visit(request), config, fields, found, 400)
        return _to(address("started", begun.name))

    def started(self, request: Request) -> Response:
        """What became of a command that was begun from here: the run's page, once there is one."""
        name = request.path_params["name"]
        process = self.starter.processes.get(name)
        if process is None:
            raise NotInRun(f"nothing called {name} was begun from here", hint="the list has all runs")
        code = process.ended()
        if _is_there(self.site.directory / name, process):
            return _to(address("run", name))
        said = el("pre", process.words_said(), class_="payload", tabindex=0, role="group", aria_label="What it said")
        begun = "continued" if process.resumes else "begun"
        head = el("h1", f"{name} is being {begun}" if code is None else f"{name} was not {begun}")
        more = (
            note("This page goes on by itself.")
            if code is None
            else el("p", link("Back to the form", "start", **{"as": name}))
        )
        there = link("The run", "run", name) if is_run(self.site.directory / name) else None
        main = part("started", head, said, more, there)
        waiting = "/stream" if code is None else ""
        answer = page(name, main, visit=self.visit(request), stream=waiting)
        if code is None:
            answer.headers["refresh"] = "1"
        return answer

    async def resume(self, request: Request) -> Response:
        """Goes on with a run."""
        await self._fields(request)
        folder = self.site.folder(request.path_params["run"])
        for _ in range(_PATIENCE):  # a command that has just paused it may still be on its way out
            if now_of(folder) is not None or not (is_written(folder) or self.starter.is_busy(folder.name)):
                break
            await asyncio.sleep(_LOOK_EVERY)
        if is_written(folder):
            raise Refused(f"{folder.name} is at work already")
        self.starter.resume(folder)
        return _to(address("started", folder.name))

    def came_to_nothing(self, folder: Path) -> Html | None:
        """What a command that was to continue a run said, where it ended with an error; None for any other."""
        process = self.starter.processes.get(folder.name)
        if process is None or not process.resumes or process.ended() in _TOLD_BY_THE_RUN or is_written(folder):
            return None
        return problem("It could not be continued from here:", el("pre", process.words_said(), class_="payload"))

    async def steer(self, request: Request) -> Response:
        """Gives a run an order."""
        fields = await self._fields(request)
        folder = self.site.folder(request.path_params["run"])
        said = await run_in_threadpool(_ordered, folder, fields)
        return _to(address("run", folder.name, said=said) + "#steering")

    async def fork(self, request: Request) -> Response:
        """Makes a fork."""
        fields = await self._fields(request)
        folder = self.site.folder(request.path_params["run"])
        made = await run_in_threadpool(_forked, folder, fields)
        return _to(address("run", made.name))


def _is_there(folder: Path, process: Process) -> bool:
    """Whether the run's own page tells what has become of a command."""
    code = process.ended()
    if process.resumes:
        return code is not None or now_of(folder) is not None
    return is_run(folder) and (code in (None, 0) or is_written(folder))


def _to(path: str) -> Response:
    return RedirectResponse(path, 303)


def _ordered(folder: Path, fields: Mapping[str, str]) -> str:
    """Leaves an order, waits a moment for it, and says what became of it."""
    order: Order | None = next((each for each in get_args(Order) if each == fields.get("order")), None)
    if order is None:
        raise Refused("that is no order")
    settings: dict[str, Json] = {
        f"budget.{name}": _amount(name, fields[name]) for name in _LIMITS if fields.get(name, "").strip()
    }
    asked = steer(
        folder,
        order,
        by=fields.get("by", "").strip() or getpass.getuser(),
        why=fields.get("why", "").strip(),
        text=fields.get("text", "").strip("\r\n"),
        settings=settings if order == "budget" else {},
    )
    if awaited(folder, asked, _WAIT_SECONDS):
        return f"{order}: followed."
    return f"{order}: left. {how_it_goes_on(folder)}"


def _amount(name: str, text: str) -> Json:
    try:
        return float(text) if name in ("max_cost", "max_minutes") else int(text)
    except ValueError:
        raise Refused(f"budget.{name}: {text} is no number") from None


def _forked(folder: Path, fields: Mapping[str, str]) -> Path:
    """A fork of a run at a moment, by the same function as the command's."""
    kind: Kind | None = next((each for each in get_args(Kind) if each == fields.get("until")), None)
    number = fields.get("number", "").strip()
    if kind is not None and not (number.isdecimal() and len(number) < _DIGITS):
        raise Refused(f"the number of the {'event' if kind == 'seq' else kind} is missing", hint="or fork it from now")
    if kind is None and number:
        raise Refused(f"{number} of what?", hint="choose step, epoch or event, or leave the number empty")
    with Reading.of(folder, framed=True) as reading:  # the page that asks for it says what is wrong with the log
        if kind is None:
            reading.check()
            kind, seq = "seq", reading.head().seq
        else:
            seq = seq_of(reading, (kind, int(number)))
    texts = [line.strip() for line in fields.get("settings", "").splitlines() if line.strip()]
    moment = f"{'event' if kind == 'seq' else kind}-{number or seq}"
    with fork_folder(fields.get("name", "").strip() or None, folder, moment) as made:
        make_fork(folder, seq, made, overrides=texts, now=lambda: datetime.now(UTC))
    return made
