"""What a config says for other backends: left out where nobody chose it, an error where somebody did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillopt_es.config.backends import ROLES, Backend, family_of, written
from skillopt_es.config.draft import Draft
from skillopt_es.config.shipped import thinking_that_cannot_be, without_meaning
from skillopt_es.config.values import is_blank, shown
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Role

_STAND_INS = ("simulated", "handoff")  # for whatever a config is written for


def drop_meaningless(draft: Draft, role: Role, backend: Backend) -> None:
    """Settings that came along and that this backend does not take."""
    if not isinstance(backend.name, str):
        return
    for key, unset in without_meaning(backend).items():
        place = written(draft.model, role, backend, key)
        if place.value != unset and draft.came_along(place.key):
            source = draft.sources[f"model.{place.key}"]
            draft.put(f"{role}_{key}", unset, source)
            draft.leave_out(place.key, source)
    place = written(draft.model, role, backend, "thinking")
    model = str(written(draft.model, role, backend, "model").value)
    if place.value == "disabled" and draft.came_along(place.key) and thinking_that_cannot_be(backend, model):
        source = draft.sources[f"model.{place.key}"]
        draft.put(f"{role}_thinking", "enabled", source)
        draft.notes.append(f"{source}: model.{place.key} is false, but {model} always thinks")


def drop_unused(draft: Draft, backends: Mapping[Role, Backend]) -> None:
    """Values under the name of a backend that no role has: left out, or an error where somebody chose them."""
    for key in list(draft.model):
        found = family_of(key)
        if found is None or is_blank(draft.model[key]) or f"model.{key}" not in draft.sources:
            continue
        family, role = found
        concerned = [backends[each] for each in ROLES if role in (None, each)]
        if any(family in backend.families for backend in concerned):
            continue
        source = draft.sources[f"model.{key}"]
        if not draft.came_along(key) and not any(backend.name in _STAND_INS for backend in concerned):
            raise _misplaced(draft, key, family, backends)
        draft.leave_out(key, source)
        del draft.model[key], draft.sources[f"model.{key}"]


def _misplaced(draft: Draft, key: str, family: str, backends: Mapping[Role, Backend]) -> ConfigError:
    roles = " and ".join(f"the {role}'s is {backends[role].name}" for role in ROLES)
    value = shown(key, draft.model[key])
    whose = _OWNERS.get(family, family)
    return ConfigError(
        f"{draft.sources[f'model.{key}']}: model.{key} is {value}, but it is for {whose}, and {roles}",
        hint=f"leave it out, or choose the backend that it is for: model.target_backend: {whose}",
    )


_OWNERS = {
    "minimax": "minimax_chat",
    "azure": "azure_openai",
    "codex": "codex_exec",
}


def notices_of(draft: Draft, backends: Mapping[Role, Backend]) -> Iterator[str]:
    """What was left out, a sentence for each file."""
    used = {family for backend in backends.values() for family in backend.families}
    for source, keys in draft.left_out.items():
        names = ", ".join(dict.fromkeys(_in_short(key, used) for key in keys))
        yield f"{source}: left out, as this run's backends have no use for it: {names}"


def _in_short(key: str, used: set[str]) -> str:
    """A key, or all that begin with the name of a backend that no role has."""
    found = family_of(key)
    return f"model.{key}" if found is None or found[0] in used else f"model.{found[0]}_*"
