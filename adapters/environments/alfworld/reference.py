"""What is known of how a game can be solved: the annotations and the plan that lie beside its file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import Json

FILE = "traj_data.json"
_MOST_TASKS = 3
_MOST_STEPS = 12
_MOST_SCENE = 600


def reference_beside(game_file: Path, root: Path) -> str:
    """The reference of a game file; empty when none lies beside it; raises ValueError for one that cannot be read."""
    file = game_file.parent / FILE
    if not file.is_file():
        return ""
    if not file.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{FILE} is a link that leads out of {root}")
    try:
        given: Json = json.loads(file.read_bytes())
    except OSError as error:
        raise ValueError(f"{FILE} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{FILE} is not JSON") from None
    return reference_text(given)


def reference_text(trajectory: Json) -> str:
    """An ALFRED trajectory as analysts may read it; what it does not hold is left out."""
    if not isinstance(trajectory, Mapping):
        raise ValueError(f"{FILE} is not an object")
    notes = _under(trajectory, "turk_annotations", "anns")
    tasks = dict.fromkeys(text for note in notes for text in _texts(note, "task_desc"))
    steps = dict.fromkeys(text for note in notes for text in _texts(note, "high_descs"))
    plan = [_action(step) for step in _under(trajectory, "plan", "high_pddl")]
    parts = [
        ("Task type", _texts(trajectory, "task_type")),
        ("In people's words", [*tasks][:_MOST_TASKS]),
        ("Their steps", [*steps][:_MOST_STEPS]),
        ("Objects", [*_pairs(trajectory.get("pddl_params"))]),
        ("Plan", [f"{number}. {each}" for number, each in enumerate(filter(None, plan), start=1)]),
        ("Scene", [shorten(text, _MOST_SCENE) for text in ["; ".join(_scene(trajectory))] if text]),
    ]
    return "\n".join(
        line for title, lines in parts if lines for line in (f"{title}:", *(f"  {each}" for each in lines))
    )


def _under(value: Json, *keys: str) -> list[Json]:
    """The list that these keys lead to; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else []


def _texts(value: Json, key: str) -> list[str]:
    """The texts under a key, be it one or a list, that are not blank."""
    found = value.get(key) if isinstance(value, Mapping) else None
    each = found if isinstance(found, list) else [found]
    return [text.strip() for text in each if isinstance(text, str) and text.strip()]


def _action(step: Json) -> str:
    """`PickupObject(mug)`; empty for what is no step."""
    action = step.get("discrete_action") if isinstance(step, Mapping) else None
    names = _texts(action, "action")
    return f"{names[0]}({', '.join(_texts(action, 'args'))})" if names else ""


def _pairs(value: Json | None) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{key}: {each}" for key, each in sorted(value.items()) if each not in ("", None))


def _scene(trajectory: Mapping[str, Json]) -> Iterator[str]:
    scene = trajectory.get("scene")
    for key in ("floor_plan", "scene_num", "dirty_and_empty"):
        if isinstance(scene, Mapping) and isinstance(scene.get(key), str | int):
            yield f"{key}: {scene[key]}"
