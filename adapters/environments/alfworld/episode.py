"""Playing one game: ask, act, look, until it is won or its steps are used up; then the record of it."""

from __future__ import annotations

import re

from attrs import define, field, frozen

from skillopt_es.adapters.environments.alfworld.household import TASK_MARK
from skillopt_es.adapters.environments.alfworld.prompt import SYSTEM, GameStep, listed, user_prompt
from skillopt_es.adapters.environments.alfworld.world import View, World, WorldError
from skillopt_es.adapters.environments.episodes import REFERENCE, TASK_LIMIT, without_answer
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import Ask, ChatReply, Episode, Message, TrajectoryRecord


@frozen(kw_only=True)
class Rules:
    """How a game is played."""

    max_steps: int
    window: int
    max_tokens: int


@define
class Play:
    """A game as far as it was played."""

    rules: Rules
    skill: str
    reference: str = ""
    task: str = ""
    steps: list[GameStep] = field(factory=list)
    records: list[TrajectoryRecord] = field(factory=list)
    unformed: int = 0

    async def through(self, world: World, ask: Ask) -> Episode:
        """The episode of a game played to its end; lets CallFailed pass, and raises no WorldError."""
        try:
            view = await world.reset()
            self._begin(view)
            while not view.over and len(self.steps) < self.rules.max_steps:
                reply = await ask(self._question(view), max_tokens=self.rules.max_tokens)
                ended = without_answer(reply, self.task, self._with(reply), turns=len(self.steps) + 1)
                if ended is not None:
                    return ended
                view = await self._act(world, view, reply)
        except WorldError as error:
            return self.broken(str(error))
        return self._measured(view)

    def broken(self, why: str) -> Episode:
        """The episode of a game whose world broke: nothing was measured."""
        return Episode(
            outcome=Failed("sandbox", why),
            task=self.task,
            records=(*self.records, TrajectoryRecord("feedback", f"[EVALUATION RESULT]\nThe game broke: {why}")),
            turns=len(self.steps),
            failure="sandbox",
            detail=why,
        )

    def _begin(self, view: View) -> None:
        _, mark, task = view.observation.partition(TASK_MARK)
        if not mark:
            raise WorldError(f"the first observation names no task ({TASK_MARK.strip()!r} is not in it)")
        self.task = shorten(task.strip(), TASK_LIMIT)
        first = f"{view.observation}\n\nAdmissible commands: {listed(view)}"
        self.records += [TrajectoryRecord("system", SYSTEM), TrajectoryRecord("user", first)]

    def _question(self, view: View) -> list[Message]:
        prompt = user_prompt(self.skill, self.task, view, self.steps, window=self.rules.window)
        return [Message("system", SYSTEM), Message("user", prompt)]

    def _with(self, reply: ChatReply) -> list[TrajectoryRecord]:
        return [*self.records, TrajectoryRecord("reply", reply.text)]

    async def _act(self, world: World, view: View, reply: ChatReply) -> View:
        chosen = command_of(reply.text)
        then = await world.step(chosen.command)
        self.steps.append(GameStep(view.observation, chosen.command))
        self.unformed += not chosen.valid
        self.records = [*self._with(reply), TrajectoryRecord("tool", self._told(chosen, view, then))]
        return then

    def _told(self, chosen: Projection, before: View, then: View) -> str:
        """A step as analysts read it; why nothing happened, where a command could not have done anything."""
        lines = [f"[step {len(self.steps)}] {chosen.command}", then.observation]
        if chosen.command not in before.commands:
            lines.append(f"(not an admissible command; these were: {listed(before)})")
        return "\n".join(lines)

    def _measured(self, view: View) -> Episode:
        won, taken = float(view.won), len(self.steps)
        failure, detail = ("", "") if view.won else self._failure(view)
        known = [TrajectoryRecord("feedback", f"{REFERENCE}\n{self.reference}")] if self.reference else []
        result = [
            "[EVALUATION RESULT]",
            f"Task: {self.task}",
            f"Solved: {'yes' if view.won else 'no'}",
            f"Steps: {taken} of {self.rules.max_steps}",
            *([f"Why not: {detail}"] if detail else []),
        ]
        return Episode(
            outcome=Measured(won, won),
            task=self.task,
            records=(*self.records, *known, TrajectoryRecord("feedback", "\n".join(result))),
            turns=taken,
            failure=failure,
            detail=detail,
            prediction=" > ".join(step.command for step in self.steps),
        )

    def _failure(self, view: View) -> tuple[str, str]:
        if view.over:
            return "unsolved", "the game ended without the task being solved"
        limit = f"all {self.rules.max_steps} steps were used"
        if self.unformed == len(self.steps):
            return "format", f"{limit}, and no reply had the form that was asked for"
        return "step_limit", f"{limit} before the task was solved"


NO_ACTION = "look"
_TAIL = 30  # the original's: of a reply without tags its end is sent
_TAGGED = re.compile(r"<action>.*?</action>", re.DOTALL)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


@frozen
class Projection:
    """A reply as a command; `valid` says that it kept to the form that was asked for."""

    command: str
    valid: bool


def projected(reply: str) -> Projection:
    """The text of the first action tag in lower case; the last characters of a reply that has none."""
    text = reply.lower()
    start, end = text.find("<action>"), text.find("</action>")
    if start < 0 or end < 0:
        return Projection(text[-_TAIL:], valid=False)
    valid = "<think>" in text and "</think>" in text and not _CHINESE.search(reply)
    return Projection(text[start + len("<action>") : end].strip(), valid)


def command_of(reply: str) -> Projection:
    """What to do in the world: a reply without an action looks around, and so costs a step."""
    return projected(reply) if _TAGGED.search(reply) else Projection(NO_ACTION, valid=False)
