"""The table of the original's names: it says each thing once, and nothing that no one could follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from cattrs.errors import ForbiddenExtraKeysError

from skillopt_es.config import config_of, table
from skillopt_es.config.files import read_yaml
from skillopt_es.config.places import packaged
from skillopt_es.config.sections import MODEL_KEYS, SECTIONS, SHARED_ROLE_KEYS
from skillopt_es.config.table import FILE, OWN_NAMES, TABLE, other_words
from skillopt_es.errors import ConfigError


def test_no_name_stands_there_twice() -> None:
    """The reader that is used for speed would take the last of two."""
    _, tree = read_yaml(packaged(FILE))
    assert {*tree["keys"]} <= {"model", *SECTIONS}  # type: ignore[misc]
    assert len(OWN_NAMES) == 3 * sum(len(family.keys) for family in TABLE.families.values())


@pytest.mark.parametrize("key", OWN_NAMES)
def test_each_key_of_a_backend_is_one_of_ours_with_words_that_are_there(key: str) -> None:
    """A name that stands for no key of ours would be read and lost."""
    setting = OWN_NAMES[key].setting
    assert setting.here in (*SHARED_ROLE_KEYS, "model")
    assert setting.words in ("", *TABLE.words)


@pytest.mark.parametrize("name", TABLE.backends)
def test_each_backend_means_one_that_is_there(name: str) -> None:
    """Its families and its settings, too."""
    facts = TABLE.backends[name]
    assert not facts.here or not TABLE.backends[facts.here].here
    assert {*facts.families} <= {*TABLE.families}
    assert {*facts.ignores} <= {*SHARED_ROLE_KEYS}


def test_each_key_that_counts_instead_is_read() -> None:
    """In its section, or by a backend."""
    instead = {other for keys in TABLE.keys.values() for key in keys.values() for other in (key.moved, key.alias)}
    for other in instead - {""}:
        section, _, name = other.partition(".")
        fields = SECTIONS[section].__annotations__ if section in SECTIONS else (*MODEL_KEYS, *OWN_NAMES)
        assert name in fields


def test_a_field_that_means_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt one would have no effect."""
    text = packaged(FILE).read_text(encoding="utf-8")
    (tmp_path / FILE).write_text(text.replace("for_targets: true", "for_target: true"), encoding="utf-8")
    monkeypatch.setattr(table, "packaged", tmp_path.joinpath)
    with pytest.raises(ForbiddenExtraKeysError, match="for_target"):
        table._read()


def test_words_are_listed_by_what_they_mean_and_looked_up_by_themselves() -> None:
    """An empty word may mean something, too."""
    assert other_words("model.auth_mode") == {
        "": "auto",
        "key": "api_key",
        "aad": "managed_identity",
        "azure_ad": "managed_identity",
    }


@pytest.mark.parametrize("backend", ["openai", "azure_openai", "anthropic", "codex", "qwen_chat", "openai_compatible"])
@pytest.mark.parametrize("family", TABLE.families)
def test_a_judge_has_no_names_of_skillopts(backend: str, family: str, tmp_path: Path) -> None:
    """It knows no judge: such a key is refused as unknown, whichever backend looks for it."""
    models = {"backend": backend, "target": "t", "optimizer": "o", "judge": "j"}
    for key in TABLE.families[family].keys:
        name = f"judge_{family}_{key}"
        with pytest.raises(ConfigError, match=name):
            config_of({"model": {**models, name: "x"}}, tmp_path)
