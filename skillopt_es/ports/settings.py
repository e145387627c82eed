"""What a config says of models, agents, data and environments, as those who open them are given it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from attrs import frozen

from skillopt_es.events.values import Json, Role

Thinking = Literal["server_default", "enabled", "disabled", "adaptive"]
AuthMode = Literal["auto", "api_key", "azure_cli", "managed_identity", "workload_identity", "service_principal"]


@frozen(kw_only=True)
class AgentSettings:
    """
    What an agent may do and what it is given; `command` is empty for the usual name, `env` names variables.

    `web_search` is as `network` says where it is None; `thinking_tokens` are left to the agent where they are None.
    An agent of the user's own is started as `argv` or asked at `url`; its files are seen from `folder`. With
    `json_answers` its answers are graded as JSON, so that an object or a list is an answer.
    A program of an agent's that is `isolated` sees neither other processes nor the files that `keys` names.
    """

    command: str
    access: Literal["read", "edit", "full"]
    network: bool
    env: tuple[str, ...]
    processes: int
    web_search: bool | None = None
    thinking_tokens: int | None = None
    argv: tuple[str, ...] = ()
    url: str = ""
    folder: str = ""
    json_answers: bool = False
    isolated: bool = True
    keys: tuple[str, ...] = ()

    @property
    def web(self) -> bool:
        """Whether it may search the web."""
        return self.network if self.web_search is None else self.web_search


@frozen(kw_only=True)
class RoleSettings:
    """What a config says of one role's model, whatever its backend; the key itself stays in the variable named here."""

    backend: str
    model: str
    base_url: str
    api_key_env: str
    temperature: float | None
    reasoning_effort: str
    timeout_seconds: float
    attempts: int
    backoff_seconds: float
    backoff_cap_seconds: float
    patience_seconds: float
    concurrency: int
    requests_per_minute: int
    tokens_per_minute: int
    token_field: Literal["auto", "max_completion_tokens", "max_tokens"]
    structured_output: Literal["auto", "on", "off"]
    extra_body: Mapping[str, Json]
    extra_headers: Mapping[str, str]
    protocol: Literal["auto", "chat_completions", "responses"]
    stream: bool
    deadline_seconds: float
    max_output_tokens: int
    unsupported_fields: Literal["error", "drop"]
    thinking: Thinking
    region: str
    api_version: str
    auth_mode: AuthMode
    ad_scope: str
    managed_identity_client_id: str
    allow_hosts: str


# The log and its readers, pipes, the event loop, the files that an environment opens.
_FILES_BESIDE = 32


def files_needed(calls: int, roles: int) -> int:
    """How many files are open while so many calls of each role are in flight: every call is one."""
    return calls * roles + _FILES_BESIDE


def calls_within(files: int, roles: int) -> int:
    """How many calls of each role may be in flight where so many files may be open; at least one."""
    return max(1, (files - _FILES_BESIDE) // roles)


@frozen(kw_only=True)
class ModelSettings(RoleSettings):
    """What a provider is given to open one role's model; `roles` models share the files that may be open."""

    role: Role
    seed: int
    roles: int = len(get_args(Role))
    patience_seconds: float = 900.0
    max_reply_bytes: int = 32 * 2**20
    agent: AgentSettings | None = None


@frozen(kw_only=True)
class DataSettings:
    """Where the items come from and how they are split; paths are absolute."""

    split_mode: Literal["ratio", "split_dir", "field", "file"]
    split_ratio: str
    split_seed: int
    split_field: str
    split_dir: str
    data_path: str
    limit: int


@frozen(kw_only=True)
class EnvironmentSettings:
    """One environment as configured; `options` are its own keys under `env:`, as written, `shared_keys` the others."""

    name: str
    folder: str
    data: DataSettings
    timeout_seconds: float
    max_completion_tokens: int
    options: Mapping[str, Json]
    shared_keys: tuple[str, ...] = ()
