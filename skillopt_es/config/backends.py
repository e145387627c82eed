"""
Which backend a role has, and the keys under which each backend's settings may also be written.

A role reads `<role>_<key>`, then the key under its backend's own name (`target_qwen_chat_thinking_mode`, then
`qwen_chat_thinking_mode`), then the shared key. A blank value is none: the next place is asked.

Which names there are, and what each of them means, is in `configs/original.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from skillopt_es.config.sections import SHARED_ROLE_KEYS, Tree
from skillopt_es.config.table import OWN_NAMES, ROLES, TABLE, Facts
from skillopt_es.config.values import is_blank
from skillopt_es.events.values import Json, Role

BACKEND_NAMES: Mapping[str, str] = {name: facts.here for name, facts in TABLE.backends.items() if facts.here}
"""What else a backend may be called. A name that an installed adapter has comes before these."""
KNOWN_BACKENDS = frozenset(TABLE.backends)
OWN_AGENTS = ("python", "command", "http")
"""Agents of the user's own: a function, a program, an address."""
CODING_AGENTS = ("codex", "claude_code", "cursor", "copilot")
STAND_INS = ("simulated", "handoff")
"""What stands for whatever a config is written for."""
MODELS_ALONE = (
    "base_url",
    "tokens_per_minute",
    "token_field",
    "structured_output",
    "extra_body",
    "protocol",
    "stream",
    "max_output_tokens",
    "unsupported_fields",
    "thinking",
)
"""Settings without effect on an agent that asks no model of the run; a temperature, say, is refused there."""

_BENCHMARKS_INSTEAD = "env.name: tasks trains on any tasks of your own"
ADAPTERS: Mapping[str, tuple[str, str]] = {
    name: (f"the original names the benchmark {name}, but was never shipped with it", _BENCHMARKS_INSTEAD)
    for name, benchmark in TABLE.benchmarks.items()
    if benchmark.never_shipped
}
"""Adapters of the original that are not installed here: what they are, and what to use instead."""
_NO_FACTS = Facts()


def facts_of(name: Json) -> Facts:
    """What is known of a name of a backend; nothing of those that only an installed package has."""
    return TABLE.backends.get(name, _NO_FACTS) if isinstance(name, str) else _NO_FACTS


def kind_of(backend: str) -> str:
    """The installed adapter that a backend means: `python:my_agent.py:answer` is one of `python`."""
    return backend.partition(":")[0]


def is_own_agent(backend: str) -> bool:
    """Whether it is an agent of the user's own, which has no model to be named; a bare `python` is none."""
    return kind_of(backend) in OWN_AGENTS and backend != "python"


def _spelling(name: str) -> str:
    """A backend's name in lower case, but for what it says of a user's own files."""
    head, colon, rest = name.strip().partition(":")
    return f"{head.lower()}{colon}{rest}"


@frozen
class Label:
    """How a pair of backends was chosen: did somebody write the label, and the role's own on the command line?"""

    written: bool = False
    role_asked: bool = False


PLAIN = Label()


def role_backend(label: str, own: str, role: str, how: Label = PLAIN) -> str:
    """One role's backend, from the label and its own; as in the original, `openai_chat` leaves it to a label."""
    label, own = label.strip(), own.strip()
    both = BACKEND_NAMES.get(label.lower(), label)
    if own.lower() not in ("", "openai_chat") or (own and how.role_asked):
        return own
    if role != "target" and any(facts_of(name).for_targets for name in (label.lower(), both)):
        return "openai_chat"
    return own if own and label.lower() == "openai" and not how.written else label


NOT_AZURE = frozenset({"openai_compatible", "compat", "openai"})  # an auth mode that says: this is no Azure at all
OWN_KEYS = tuple(OWN_NAMES)


def spellings(key: str) -> tuple[str, ...]:
    """How else a `model:` key may be written, with the same role in front or none; a later layer replaces them all."""
    role = next((role for role in ROLES if key.startswith(f"{role}_")), None)
    ours = key.removeprefix(f"{role}_")
    return tuple(
        name
        for name, own in OWN_NAMES.items()
        if (own.role, own.setting.here) == (role, ours) and not own.setting.trained
    )


def roles_in(model: Tree) -> tuple[Role, ...]:
    """The roles of a config: a judge where one is named."""
    return ROLES if is_blank(model.get("judge")) else (*ROLES, "judge")


@frozen
class Written:
    """A value and the key that it was written under."""

    key: str
    value: Json


@frozen
class Backend:
    """A role's backend: the key that says so, the name of the adapter, and how it was written there."""

    key: str
    name: Json
    spelled: str

    @property
    def facts(self) -> Facts:
        """What is known of it, by how it is written where that says more than what it is."""
        spelled = facts_of(self.spelled)
        own = spelled.here == self.name and spelled != Facts(here=spelled.here)
        return spelled if own else facts_of(self.name)

    @property
    def families(self) -> tuple[str, ...]:
        """Whose names its settings may have."""
        return self.facts.families or facts_of(self.name).families

    @property
    def asked_of_the_environment(self) -> tuple[str, ...]:
        """Whose environment variables count: in the original those of Azure, or those of a compatible endpoint."""
        if "azure_openai" not in self.families:
            return self.families
        return ("openai_compatible",) if self.spelled == "openai" else ("azure_openai",)


def backend_of(model: Tree, role: Role, label: Label = PLAIN) -> Backend:
    """The backend of a role; the original's `openai_chat` with an Azure endpoint and no other auth mode is Azure's."""
    own, shared = model.get(f"{role}_backend"), model.get("backend")
    key, value = ("backend", shared) if is_blank(own) else (f"{role}_backend", own)
    if not isinstance(value, str) or not isinstance(shared or "", str):
        return Backend(key, value, "")
    spelled = _spelling(role_backend(str(shared or ""), str(own or ""), role, label))
    if _spelling(str(own or "")) != spelled:
        key = "backend"
    name = BACKEND_NAMES.get(spelled, spelled)
    mode = first(model, (f"{role}_azure_openai_auth_mode", "azure_openai_auth_mode"))
    places = tuple(f"{front}{family}_endpoint" for family in ("azure_openai", "azure") for front in (f"{role}_", ""))
    elsewhere = mode is not None and str(mode.value).strip().lower() in NOT_AZURE
    if spelled == "openai_chat" and not elsewhere and first(model, places) is not None:
        name = "azure_openai"
    elif name == "azure_openai" and elsewhere:
        name, spelled = "openai", "openai_chat"
    return Backend(key, name, spelled)


def written(model: Tree, role: Role, backend: Backend, key: str) -> Written:
    """Where a role's setting is written and what it says, with the words of other spellings translated."""
    if key == "model":
        found = first(model, [role, *own_keys(role, backend, key)])
        return found or Written(role, model.get(role, ""))
    ours = f"{role}_{key}"
    if model.get(ours) is not None:
        return Written(ours, model[ours])
    found = found_in(model, role, backend, key)
    return found or Written(key, model.get(key))


def found_in(model: Tree, role: Role, backend: Backend, key: str) -> Written | None:
    """The setting under one of the backend's own names, in our words; None where there is none."""
    found = first(model, own_keys(role, backend, key))
    if found is None or (key == "auth_mode" and str(found.value).strip().lower() in NOT_AZURE):
        return None
    return Written(found.key, in_our_words(found.key, found.value))


def own_keys(role: Role, backend: Backend, key: str) -> list[str]:
    """The backend's own names for a setting, those of the role first; SkillOpt has no judge, and none for one."""
    names = list(_own_names(role, backend, key))
    return [name for name in (*(f"{role}_{name}" for name in names), *names) if name in OWN_NAMES]


def _own_names(role: Role, backend: Backend, key: str) -> Iterator[str]:
    trained = role == "target" and not backend.facts.chat
    for prefix in backend.families:
        for name, own in TABLE.families[prefix].keys.items():
            if own.here == key and (trained or not own.trained):
                yield f"{prefix}_{name}"


def first(model: Tree, keys: Sequence[str]) -> Written | None:
    """The first of these keys that has a value."""
    for key in keys:
        if not is_blank(model.get(key)):
            return Written(key, model[key])
    return None


# A name that stands for no key of ours would be read and lost.
assert all(own.setting.here in (*SHARED_ROLE_KEYS, "model") for own in OWN_NAMES.values())

_YES = frozenset({"true", "yes", "on", "1", "enable", "enabled"})
_NO = frozenset({"false", "no", "off", "0", "disable", "disabled"})


def in_our_words(key: str, value: Json) -> Json:
    """The value of a key with a backend's name; one that is not understood stays as it is, and is refused later."""
    said = OWN_NAMES[key].setting.words
    if not said:
        return value
    meaning, word = TABLE.words[said], str(value).strip().lower()
    for each in (word, "yes" if word in _YES else "no" if word in _NO else word):
        if each in meaning.words:
            translated: Json = meaning.words[each]
            return translated
    if meaning.read:
        return word if meaning.read == "lower" else _number(value)
    return value if meaning.others is None else meaning.others


def _number(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
