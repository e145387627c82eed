"""
The original's environment variables, as the keys of a config that each of them stands for.

A variable counts where the config says nothing, and before a default. Of a key only its variable's name is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from skillopt_es.config.backends import OWN_NAMES, ROLES
from skillopt_es.events.values import Json

_WITH_ROLES = ("azure_openai", "openai_compatible", "qwen_chat")
_WITHOUT = ("azure", "codex", "anthropic")
_UNUSUAL = ("copilot_chat_model", "claude_code_exec_api_key_env", "cursor_exec_api_key_env")
# Further names, which count after the usual one.
_ALSO: Mapping[str, tuple[str, ...]] = {
    "codex_exec_path": ("CODEX_CLI_BIN", "CODEX_PATH"),
    "codex_exec_sandbox": ("CODEX_SANDBOX_MODE", "CODEX_SANDBOX"),
    "claude_code_exec_path": ("CLAUDE_CLI_BIN",),
    "claude_code_exec_api_key_env": ("ANTHROPIC_API_KEY",),
    "anthropic_api_key_env": ("ANTHROPIC_API_KEY",),
    "cursor_exec_api_key_env": ("CURSOR_API_KEY",),
    "optimizer_copilot_chat_model": ("COPILOT_CHAT_OPTIMIZER_MODEL",),
    "target_copilot_chat_model": ("COPILOT_CHAT_TARGET_MODEL",),
}


def _names() -> Iterator[tuple[str, tuple[str, ...]]]:
    for family, names in OWN_NAMES.items():
        for name in names:
            key, variable = f"{family}_{name}", f"{family}_{name}".upper().removesuffix("_ENV")
            usual = () if family in _WITHOUT or key in _UNUSUAL else (variable,)
            yield key, (*usual, *_ALSO.get(key, ()))
            for role in ROLES if family in _WITH_ROLES else ():
                between = f"{family}_{role}_{name}".upper().removesuffix("_ENV")
                others = (between,) if family == "azure_openai" else ()
                yield f"{role}_{key}", (f"{role.upper()}_{variable}", *others)
    for role in ROLES:
        yield f"{role}_copilot_chat_model", _ALSO[f"{role}_copilot_chat_model"]


NAMES: Mapping[str, tuple[str, ...]] = {key: names for key, names in _names() if names}
"""By key of `model`: the variables that stand for it, the first that is set counts."""

OF_ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {
    "officeqa": {"search_api_url": "OFFICEQA_SEARCH_API_URL", "data_dirs": "OFFICEQA_DOCS_DIR"}
}
"""By the name of a benchmark: variables that stand for keys of `env`."""

UNUSED: Mapping[str, str] = {
    "EXEC_EMPTY_RESPONSE_RETRIES": "an agent that gave no answer is asked once more, neither more nor less often",
}
"""Variables of agents without an effect here, and why."""


def _all() -> Iterator[str]:
    for names in NAMES.values():
        yield from names
    for keys in OF_ENVIRONMENTS.values():
        yield from keys.values()
    for role in ROLES:
        yield from (f"{role.upper()}_BACKEND", f"{role.upper()}_DEPLOYMENT")
    yield from UNUSED


ALL: tuple[str, ...] = tuple(dict.fromkeys(_all()))
"""Every variable of the original's that is read here."""

FROM_VARIABLE = "the environment variable"


@frozen
class Variable:
    """An environment variable that is set, and what it says; of one that holds a key, its name."""

    name: str
    value: Json

    @property
    def source(self) -> str:
        """What is said of a value that came from it."""
        return f"{FROM_VARIABLE} {self.name}"


def variables(environ: Mapping[str, str]) -> Mapping[str, Variable]:
    """By key of `model`: the variable that counts for it, of those that are set to something."""
    found: dict[str, Variable] = {}
    for key, names in NAMES.items():
        name = next((name for name in names if environ.get(name, "").strip()), None)
        if name is not None:
            found[key] = Variable(name, name if key.endswith("api_key_env") else environ[name].strip())
    return found
