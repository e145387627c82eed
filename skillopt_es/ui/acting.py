"""What the page does: begins, continues, forks and steers runs, each by what the command does, for signed-in people."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Mapping, Sequence
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
from skillopt_es.engine.run_config import config_of_run
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
from skillopt_es.ui.shell import address, link, page, part, problem
from skillopt_es.ui.site import Site
from skillopt_es.ui.start_page import checked_part, file_of, settings_of, start_page, words_of
from skillopt_es.ui.starting import NotChecked, Process, Starter

_WAIT_SECONDS = 2.0  # most orders are followed by then, and the page says so; longer looks as if the page hung
_DIGITS = 16  # no log has so many events, and Python refuses numbers of thousands of digits with an error of its own
_PATIENCE, _LOOK_EVERY = 50, 0.1  # looks, and seconds between them
_LIMITS = ("max_calls", "max_tokens", "max_cost", "max_minutes")
_CUT = "This folder holds too many files to list every config. Start `skillopt-es ui` in a folder closer to the config."
_TOLD_BY_THE_RUN = (None, 0, 3, 130)
"""How a command ends that is at work, is done, or has paused the run."""


class Acts:
    """What can be done over one site."""

    def __init__(self, site: Site) -> None:
        self.site = site
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
        if not self.site.visit().may_act:
            raise Refused("nothing can be started from here", hint="start `skillopt-es ui` without --read-only")
        before = self.starter.processes.get(request.query_params.get("as", ""))
        if before is not None:  # it is filled in as it was for a command that came to nothing
            return self._form(before.filled.get("config", ""), before.filled)
        return self._form(request.query_params.get("config", ""), {})

    def _form(
        self,
        config: str,
        fields: Mapping[str, str],
        found: Mapping[str, Json] | None = None,
        wrong: SkillOptError | None = None,
    ) -> Response:
        """The form; `found` is what a check has said of it, `wrong` why it did not start."""
        offered, visit = self.starter.offered(), self.site.visit()
        chosen = config if config in offered.configs else next(iter(offered.configs))
        try:
            values, unread = self._values(offered.configs[chosen]), None
        except SkillOptError as error:
            values, unread = {}, error
        main = start_page([*offered.configs], chosen, values, fields, visit.form_token, wrong or unread)
        cut = note(_CUT) if offered.cut else None
        return page("Start a run", *main, cut, checked_part(found), visit=visit, status=400 if wrong else 200)

    def _values(self, words: tuple[str, ...]) -> dict[str, Json]:
        """What the chosen config has for each key."""
        option, _, name = words[0].partition("=")
        if option == "--again":
            folder = self.site.folder(name)
            with Reading.of(folder) as reading:
                config = config_of_run(reading.started, folder, recorded_settings(reading))
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
        try:
            found = await run_in_threadpool(self.starter.checked, words)
        except NotChecked as error:
            found = {"error": {"message": error.message, "hint": error.hint}}
        return await run_in_threadpool(self._form, fields.get("config", ""), fields, found)

    async def start(self, request: Request) -> Response:
        """Begins a run, unless the command would refuse it: then the form stays as it was filled in."""
        fields = await self._fields(request)
        config = fields.get("config", "")
        try:
            name = self.starter.name(config, fields.get("name", "").strip())
            words = self.starter.words(config, settings_of(fields))
            await run_in_threadpool(self._refuse_mistakes, words)
            begun = await run_in_threadpool(self.starter.begin, words, name, fields)
        except SkillOptError as error:
            return await run_in_threadpool(self._form, config, fields, None, error)
        return _to(address("started", begun.name))

    def _refuse_mistakes(self, words: Sequence[str]) -> None:
        """Raises Refused for what the command itself would refuse."""
        try:
            error = self.starter.checked(words).get("error")
        except NotChecked:
            return  # the command says the same, or more, once it has begun
        if isinstance(error, dict):
            raise Refused(words_of(error), hint=str(error.get("hint") or ""))

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
        there = link("The run", "run", name) if is_run(self.site.directory / name) else None
        if code is None:
            head = f"{'Resuming' if process.resumes else 'Starting'} {name}"
            main = part("started", el("h1", head), said, note("The run's page opens by itself."), there)
        else:
            head = f"{name} was not resumed" if process.resumes else f"{name} did not start"
            back = None if process.resumes else link("Back to the form", "start", **{"as": name})
            main = part("started", el("h1", head), problem(said), el("p", back, there, class_="links"))
        waiting = "/stream" if code is None else ""
        answer = page(head, main, visit=self.site.visit(), stream=waiting)
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
        return _to(address("run", folder.name, said=self.site.left(said)) + "#steering")

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
