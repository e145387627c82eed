"""
How a config is settled before it is read: its layers, then the environment's variables, then what a backend implies.

Everything is written into the tree, under the key that it would have in a file, so that the log holds a whole config
and the same tree is the same run wherever and whenever it is read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import frozen

from skillopt_es.config.backends import (
    CODING_AGENTS,
    MODELS_ALONE,
    STAND_INS,
    Backend,
    found_in,
    is_own_agent,
    roles_in,
    written,
)
from skillopt_es.config.draft import ASKED, DEFAULTS, Draft
from skillopt_es.config.own_keys import defaults_for
from skillopt_es.config.roles import (
    chosen_backend,
    drop_meaningless,
    drop_unused,
    name_from_environment,
    name_own_agent,
    notices_of,
    settle_role,
    write_backend,
)
from skillopt_es.config.sections import Tree
from skillopt_es.config.table import ROLES, TABLE
from skillopt_es.config.values import is_blank
from skillopt_es.config.variables import Variable, variables
from skillopt_es.events.values import Role

_NONE: Mapping[str, str] = {}
_AZURE_ENDPOINTS = tuple(
    f"{front}{family}_endpoint" for family in ("azure_openai", "azure") for front in ("", "optimizer_")
)


@frozen
class Given:
    """Layers laid over each other, where each key's value is from, and if one of them is a file of the original."""

    tree: Tree
    sources: Mapping[str, str]
    original: bool


@frozen
class Settled:
    """A whole config: its tree, where each value is from, what has no effect, and what else is worth knowing."""

    tree: Tree
    sources: dict[str, str]
    notices: tuple[str, ...]
    notes: tuple[str, ...]
    used: tuple[str, ...]


def settled(given: Given, environ: Mapping[str, str], filed: Mapping[str, str] = _NONE) -> Settled:
    """
    The layers as a whole config, with the environment's variables and those that a `.env` file has.

    Raises ConfigError for a value that was chosen for a backend that no role has.
    """
    environ = {**environ, **filed}
    tree: Tree = {name: dict(cast(Tree, values)) for name, values in given.tree.items()}
    model = cast(Tree, tree.setdefault("model", {}))
    draft = Draft(tree, model, dict(given.sources), given.original, variables(environ))
    for role in ROLES:
        name_from_environment(draft, role, environ)
    _settle_timeout(draft)
    _keep_azure_beside_codex(draft)
    roles = roles_in(model)
    backends = {role: settle_role(draft, role) for role in roles}
    for role in roles:
        drop_meaningless(draft, role, backends[role])
    drop_unused(draft, backends)
    for role in roles:
        write_backend(draft, role, backends[role])
        name_own_agent(draft, role, backends[role])
        _lower_asked(draft, role, backends[role])
    for key, default in (*defaults_for(model, backends),):
        draft.put(key, default, DEFAULTS)
    _settle_env(draft, environ)
    _tell(draft, backends, environ)
    taken = [name for name in draft.used if name not in filed]
    if taken:
        draft.notes.append(f"taken from the environment: {', '.join(taken)}")
    return Settled(tree, draft.sources, tuple(draft.notices), tuple(draft.notes), tuple(draft.used))


def _lower_asked(draft: Draft, role: Role, backend: Backend) -> None:
    """The original's limits are what it asks at most, not a mistake of who asks for more."""
    if not isinstance(backend.name, str):
        return
    own = found_in(draft.model, role, backend, "max_output_tokens")
    if own is None or type(own.value) is not int or own.value < 1 or draft.model.get(f"{role}_max_output_tokens"):
        return
    lowered = []
    for section, key in _ASKED.get(role, ()):
        values = cast(Tree, draft.tree.get(section, {}))
        asked = values.get(key)
        if type(asked) is int and asked > own.value and draft.sources.get(f"{section}.{key}") != ASKED:
            values[key] = own.value
            lowered.append(f"{section}.{key} ({asked})")
    if lowered:
        draft.notes.append(f"at most {own.value} tokens are asked for, as model.{own.key} says: {', '.join(lowered)}")


_ASKED: Mapping[Role, tuple[tuple[str, str], ...]] = {
    "target": (("env", "max_completion_tokens"),),
    "optimizer": (("optimizer", "max_completion_tokens"), ("optimizer", "rewrite_max_completion_tokens")),
}


def _keep_azure_beside_codex(draft: Draft) -> None:
    """The label `codex` with an endpoint of Azure's is what release 0.2.0 made of it: codex alone is the target."""
    backend = chosen_backend(draft, "optimizer")
    keys = [key for key in _AZURE_ENDPOINTS if draft.chosen(key)]
    if keys and (backend.key, backend.name) == ("backend", "codex"):
        draft.put("optimizer_backend", "azure_openai", draft.sources[f"model.{keys[0]}"])
        draft.notes.append(
            f"model.optimizer_backend is azure_openai, as model.{keys[0]} is set in addition to model.backend: "
            f"{backend.spelled}; model.optimizer_backend: codex_exec asks Codex alone"
        )


def _settle_timeout(draft: Draft) -> None:
    """Where an environment runs nothing itself, its timeout is the target's, as in the original."""
    env = cast(Tree, draft.tree.get("env", {}))
    seconds, source = env.get("exec_timeout"), draft.sources.get("env.exec_timeout", DEFAULTS)
    keys = ("target_timeout_seconds", "timeout_seconds")
    benchmark = TABLE.benchmarks.get(str(env.get("name", "")))
    if benchmark is None or not benchmark.answers_only or source == DEFAULTS or any(map(draft.chosen, keys)):
        return
    backend = chosen_backend(draft, "target")
    if isinstance(backend.name, str) and not draft.in_a_file("target", backend, "timeout_seconds"):
        draft.put("target_timeout_seconds", seconds, f"{source}: env.exec_timeout")


def _settle_env(draft: Draft, environ: Mapping[str, str]) -> None:
    env, train = (cast(Tree, draft.tree.get(name, {})) for name in ("env", "train"))
    benchmark = TABLE.benchmarks.get(str(env.get("name", "")))
    for key, name in benchmark.variables.items() if benchmark else ():
        if not env.get(key) and environ.get(name, "").strip():
            env[key] = environ[name].strip()
            draft.sources[f"env.{key}"] = Variable(name, "").source
            draft.used[name] = None
    if type(env.get("split_seed")) is int and env["split_seed"] == 0 and env.get("split_mode") == "ratio":
        env["split_seed"] = train.get("seed")
        draft.notes.append(f"env.split_seed is 0, which stands for train.seed ({train.get('seed')})")


def _tell(draft: Draft, backends: Mapping[Role, Backend], environ: Mapping[str, str]) -> None:
    draft.notices += notices_of(draft, backends)
    _tell_of_agents(draft, backends["target"])
    agents = any(str(backend.name) in CODING_AGENTS for backend in backends.values())
    for name, why in TABLE.unused_variables.items():
        if agents and environ.get(name, "").strip():
            draft.notices.append(f"{Variable(name, '').source} has no effect: {why}")
    idle = "AZURE_OPENAI_API_KEY"
    signing_in = any(
        backend.name == "azure_openai" and not written(draft.model, role, backend, "api_key_env").value
        for role, backend in backends.items()
    )
    if signing_in and environ.get(idle, "").strip():
        draft.notes.append(f"{idle} is set, but no auth mode asks for it: azure_openai_auth_mode: api_key uses it")
    for role in ROLES if draft.original else ():
        name, model = f"{role.upper()}_DEPLOYMENT", draft.model.get(role)
        if environ.get(name, "").strip() not in ("", model):
            said = f"{model} ({draft.sources.get(f'model.{role}', DEFAULTS)})"
            draft.notes.append(f"{Variable(name, '').source} is not used: model.{role} is {said}, which comes first")


def _tell_of_agents(draft: Draft, target: Backend) -> None:
    """What says something to an agent of the user's own alone, or to anybody but it."""
    name, env = target.name, cast(Tree, draft.tree.get("env", {}))
    if not isinstance(name, str) or name in STAND_INS:
        return
    if is_own_agent(name):
        chosen = [f"target_{key}" for key in MODELS_ALONE if draft.chosen(f"target_{key}")]
        if chosen and is_blank(written(draft.model, "target", target, "gateway").value):
            idle = ", ".join(f"model.{key}" for key in chosen)
            draft.notices.append(f"no effect on {name}, which asks no model of this run (target_gateway): {idle}")
    elif name != "python" and env.get("name") == "tasks" and env.get("agent_fields"):
        draft.notices.append(
            f"env.agent_fields has no effect: only an agent of your own gets these fields, and the target is a model "
            f"({name})"
        )
