"""One role's model: its backend, its name, what environment and original add, and settings that other backends take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from skillopt_es.config.backends import (
    KNOWN_BACKENDS,
    NOT_AZURE,
    STAND_INS,
    Backend,
    Label,
    backend_of,
    facts_of,
    first,
    is_own_agent,
    own_keys,
    written,
)
from skillopt_es.config.draft import ASKED, DEFAULTS, Draft
from skillopt_es.config.table import OWN_NAMES, ROLES, TABLE
from skillopt_es.config.values import is_blank, shown
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Role

_MODES_WITH_A_KEY = frozenset({*NOT_AZURE, "api_key", "key"})


def name_from_environment(draft: Draft, role: Role, environ: Mapping[str, str]) -> None:
    """A role that no file names a backend or a model for."""
    name = f"{role.upper()}_BACKEND"
    said = environ.get(name, "").strip()
    if said and not draft.chosen("backend") and not draft.chosen(f"{role}_backend"):
        if said.lower() in KNOWN_BACKENDS:
            draft.take(f"{role}_backend", name, environ)
        else:  # the name of the variable is such that it may be somebody else's
            draft.notices.append(f"the environment variable {name} is ignored: {said!r} is not a backend")
    if is_blank(draft.model.get(role)):
        draft.take(role, f"{role.upper()}_DEPLOYMENT", environ)


def chosen_backend(draft: Draft, role: Role) -> Backend:
    """The backend that the files give a role so far, with who wrote what taken into account."""
    label = Label(
        written=draft.sources.get("model.backend", DEFAULTS) != DEFAULTS,
        role_asked=draft.sources.get(f"model.{role}_backend") == ASKED,
    )
    return backend_of(draft.model, role, label)


def settle_role(draft: Draft, role: Role) -> Backend:
    """One role's backend with all that the environment and the original's defaults add to what the files say."""
    if draft.original and str(draft.model.get(role, "")).strip() in TABLE.any_model:
        _settle_model(draft, role, chosen_backend(draft, role))
    backend = chosen_backend(draft, role)
    _fill(draft, role, backend, ("auth_mode", "base_url"))
    # An endpoint of Azure's makes it Azure's, an auth mode may say that it is not.
    backend = chosen_backend(draft, role)
    if not isinstance(backend.name, str):
        return backend
    _fill(draft, role, backend, tuple(_settings_of(backend)))
    if draft.original and is_blank(written(draft.model, role, backend, "base_url").value):
        address = backend.facts.address
        if address:
            draft.put(f"{role}_base_url", address, "the original's default")
    return backend


def _settings_of(backend: Backend) -> Iterator[str]:
    for family in backend.asked_of_the_environment:
        yield from (own.here for own in TABLE.families[family].keys.values() if own.here != "model")


def _fill(draft: Draft, role: Role, backend: Backend, keys: tuple[str, ...]) -> None:
    """What the files leave open, from the environment; only keys that this backend has a variable for."""
    for key in dict.fromkeys(keys):
        if key == "api_key_env" and not _takes_a_key(draft, role, backend):
            continue
        if any(draft.chosen(name) for name in (f"{role}_{key}", key)) or draft.in_a_file(role, backend, key):
            continue
        families = backend.asked_of_the_environment
        names = [name for name in own_keys(role, backend, key) if OWN_NAMES[name].family in families]
        draft.from_variable(names)


def _takes_a_key(draft: Draft, role: Role, backend: Backend) -> bool:
    """Azure signs in by its command line unless a mode asks for a key, whatever keys lie about."""
    if "azure_openai" not in backend.asked_of_the_environment:
        return True
    own = first(draft.model, (f"{role}_auth_mode", *own_keys(role, backend, "auth_mode"), "auth_mode"))
    return own is not None and str(own.value).strip().lower() in _MODES_WITH_A_KEY


def _settle_model(draft: Draft, role: Role, backend: Backend) -> None:
    """The name that the original's files give every model, replaced by the backend's own."""
    if not isinstance(backend.name, str) or draft.sources.get(f"model.{role}") == ASKED:
        return
    said = str(draft.model.get(role, ""))
    names = own_keys(role, backend, "model")
    own = first(draft.model, names)
    if own is not None:
        name, source = str(own.value), draft.sources.get(f"model.{own.key}", "")
    else:
        variable = next((draft.variables[key] for key in names if key in draft.variables), None)
        if variable is not None:
            draft.used[variable.name] = None
        name = (backend.facts.model or facts_of(backend.name).model) if variable is None else str(variable.value)
        source = "the original's default" if variable is None else variable.source
    if name and name != said:
        draft.put(role, name, source)
        draft.notes.append(f"model.{role} is {name} ({source}): {said or 'nothing'} stands for {backend.spelled}'s own")


def write_backend(draft: Draft, role: Role, backend: Backend) -> None:
    """What is not to be seen without knowing who wrote it where is written out."""
    again = backend_of(draft.model, role)
    if isinstance(backend.name, str) and (again.name, again.families) != (backend.name, backend.families):
        source = draft.sources.get(f"model.{backend.key}", "")
        spelled = backend.name if backend.spelled == "openai_chat" else backend.spelled
        draft.put(f"{role}_backend", spelled, source)


def name_own_agent(draft: Draft, role: Role, backend: Backend) -> None:
    """An agent of the user's own is called after what is run, where nobody gave it the name of a model."""
    if not isinstance(backend.name, str) or not is_own_agent(backend.name):
        return
    if any(not is_blank(written(draft.model, role, backend, key).value) for key in ("model", "gateway")):
        return  # with a gateway it has a model, which has to be named
    kind, _, code = backend.name.partition(":")
    name = code
    if kind == "command":
        given = written(draft.model, role, backend, "command").value
        name = " ".join(map(str, given)) if isinstance(given, list) else str(given or "")
    elif kind == "http":
        parts = urlsplit(str(written(draft.model, role, backend, "url").value or ""))
        name = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
    if name:
        draft.put(role, name, draft.sources.get(f"model.{backend.key}", ""))


def drop_meaningless(draft: Draft, role: Role, backend: Backend) -> None:
    """Settings that came along and that this backend does not take."""
    if not isinstance(backend.name, str):
        return
    for key in backend.facts.ignores:
        place = written(draft.model, role, backend, key)
        if place.value != "" and draft.came_along(place.key):
            source = draft.sources[f"model.{place.key}"]
            draft.put(f"{role}_{key}", "", source)
            draft.leave_out(place.key, source)
    place = written(draft.model, role, backend, "thinking")
    model = str(written(draft.model, role, backend, "model").value)
    thinks = backend.facts.always_thinks
    if thinks and model.lower().startswith(thinks) and place.value == "disabled" and draft.came_along(place.key):
        source = draft.sources[f"model.{place.key}"]
        draft.put(f"{role}_thinking", "enabled", source)
        draft.notes.append(f"{source}: model.{place.key} is false, but {model} always thinks")


def drop_unused(draft: Draft, backends: Mapping[Role, Backend]) -> None:
    """Values under the name of a backend that no role has: left out, or an error where somebody chose them."""
    for key in list(draft.model):
        own = OWN_NAMES.get(key)
        if own is None or is_blank(draft.model[key]) or f"model.{key}" not in draft.sources:
            continue
        concerned = [backend for each, backend in backends.items() if own.role in (None, each)]
        if any(own.family in backend.families for backend in concerned):
            continue
        source = draft.sources[f"model.{key}"]
        if not draft.came_along(key) and not any(backend.name in STAND_INS for backend in concerned):
            raise _misplaced(draft, key, own.family, backends)
        draft.leave_out(key, source)
        del draft.model[key], draft.sources[f"model.{key}"]


def _misplaced(draft: Draft, key: str, family: str, backends: Mapping[Role, Backend]) -> ConfigError:
    roles = " and ".join(f"the {role}'s is {backends[role].name}" for role in ROLES)
    value = shown(key, draft.model[key])
    whose = TABLE.families[family].backend or family
    return ConfigError(
        f"{draft.sources[f'model.{key}']}: model.{key} is {value}, but it is for {whose}, and {roles}",
        hint=f"leave it out, or choose the backend that it is for: model.target_backend: {whose}",
    )


def notices_of(draft: Draft, backends: Mapping[Role, Backend]) -> Iterator[str]:
    """What was left out, a sentence for each file."""
    used = {family for backend in backends.values() for family in backend.families}
    for source, keys in draft.left_out.items():
        names = ", ".join(dict.fromkeys(_in_short(key, used) for key in keys))
        yield f"{source}: left out, as this run's backends have no use for it: {names}"


def _in_short(key: str, used: set[str]) -> str:
    """A key, or all that begin with the name of a backend that no role has."""
    own = OWN_NAMES.get(key)
    return f"model.{key}" if own is None or own.family in used else f"model.{own.family}_*"
