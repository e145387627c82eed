"""
One TextWorld game in a process of its own: JSON lines in (the game, then commands), JSON lines out (views).

TextWorld's parser is not safe among threads, and its games evaluate expressions; here neither reaches the trainer.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TextIO, cast

from skillopt_es.adapters.environments.alfworld.names import readable_names
from skillopt_es.adapters.environments.alfworld.textworld_speed import quicken

PLACEHOLDER = "UNKNOWN GOAL."


class _State(Protocol):
    feedback: str

    def __getitem__(self, name: str) -> object: ...


class _Game(Protocol):
    def reset(self) -> _State: ...

    def step(self, command: str) -> tuple[_State, float, bool]: ...


def main() -> None:
    """Play the game that the first line describes, until the lines end."""
    # What the libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    game = _opened(json.loads(sys.stdin.readline()))
    _say(answers, game.reset())
    for line in sys.stdin:
        state, _, _ = game.step(json.loads(line)["command"])
        _say(answers, state)


def _opened(given: dict[str, str]) -> _Game:
    import textworld  # noqa: PLC0415 - an extra, and slow to import
    from textworld.envs.pddl import PddlEnv, textgen  # noqa: PLC0415

    quicken(textgen)
    shipped = _shipped()
    game = PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True))
    game.load(
        {
            "pddl_domain": given["domain"] or (shipped / "alfred.pddl").read_text(encoding="utf-8"),
            "grammar": given["grammar"]
            or (shipped / "alfred.twl2").read_text(encoding="utf-8").replace(PLACEHOLDER, given["task"]),
            "pddl_problem": given["problem"],
        }
    )
    # As ALFWorld's own wrapper does: there is no public way to name things.
    known = game._entity_infos
    names = readable_names(info.id for info in known.values())
    for info in known.values():
        info.name = names[info.id]
    return cast(_Game, game)


def _shipped() -> Path:
    """The folder with ALFWorld's domain and grammar; ALFWorld itself is not imported, as it makes folders then."""
    spec = find_spec("alfworld")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "data"


def _say(answers: TextIO, state: _State) -> None:
    view = {
        "observation": state.feedback,
        "commands": state["admissible_commands"],
        "won": bool(state["won"]),
        "over": bool(state["won"] or state["lost"]),
    }
    answers.write(json.dumps(view) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
