"""Games, as a `game.tw-pddl` file or an item holds them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.environments.alfworld.household import TASK_MARK
from skillopt_es.adapters.environments.alfworld.world import WorldError
from skillopt_es.events.plain import read_plain
from skillopt_es.events.values import Json, digest_of

_TASK = re.compile(re.escape(TASK_MARK) + r'([^"\\]*)')
_PLACEHOLDER = "UNKNOWN GOAL"
_KEYS = ("pddl_problem", "pddl_domain", "grammar", "task")


@frozen
class GameText:
    """What a game is made of: a PDDL problem, its task in words, and a domain and grammar where it has its own."""

    problem: str
    task: str
    domain: str = ""
    grammar: str = ""


@frozen
class Game:
    """A game to be played: its text, or the file that holds it and the digest of that file."""

    text: GameText | None = None
    file: Path | None = None
    digest: str = ""

    def read(self) -> GameText:
        """The game's text; raises WorldError when its file is gone or is not what it was when the data was loaded."""
        if self.text is not None:
            return self.text
        assert self.file is not None
        try:
            data = read_plain(self.file, follow=True)
        except OSError as error:
            raise WorldError(f"the game file cannot be read any more: {error.strerror}") from error
        if digest_of(data) != self.digest:
            raise WorldError("the game file has changed since the run began")
        return game_of(data)


def game_of(data: bytes) -> GameText:
    """The game in the bytes of a `game.tw-pddl` file; raises ValueError with what is wrong with it."""
    try:
        given: Json = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    return game_text(given)


def game_text(given: Json) -> GameText:
    """The game in a JSON object; raises ValueError with what it lacks."""
    if not isinstance(given, Mapping):
        raise ValueError("it is not an object")
    texts: dict[str, str] = {}
    for key in _KEYS:
        value = given.get(key, "")
        if not isinstance(value, str):
            raise ValueError(f"its `{key}` is not text")
        texts[key] = value.strip()
    if not texts["pddl_problem"]:
        raise ValueError("it has no `pddl_problem`")
    told = _TASK.search(texts["grammar"])
    task = texts["task"] or (told[1].strip() if told else "")
    if not task or task.startswith(_PLACEHOLDER):
        raise ValueError(f"it has no `task`, and no grammar that says {TASK_MARK.strip()!r}")
    return GameText(texts["pddl_problem"], task, texts["pddl_domain"], texts["grammar"])
