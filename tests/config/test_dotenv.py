"""`.env` files beside the config and in the working folder: what is taken from them, what never is, what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.config import RunConfig, load_config
from skillopt_es.config.dotenv import from_dotenv, with_dotenv
from skillopt_es.errors import ConfigError

CONFIG = """
model:
  backend: openai
  base_url: http://127.0.0.1:9/v1
  optimizer: big
  optimizer_api_key_env: BIG_KEY
  target_backend: command
  target_command: [cat]
  target_agent_env: "SHOP_KEY, SHOP_NAME"
env: {name: tasks, data_path: tasks.jsonl}
"""


def loaded(folder: Path, text: str, **environ: str) -> RunConfig:
    """The config with this text beside it."""
    (folder / "config.yaml").write_text(CONFIG)
    (folder / ".env").write_text(text)
    return load_config(folder / "config.yaml", (), environ)


def test_only_named_variables_are_taken_and_said(tmp_path: Path) -> None:
    """Whatever else the file holds; the environment comes first, and no value is told."""
    text = """
# the shop's
BIG_KEY=sk-big#1   # a remark
export SHOP_KEY="sk shop"
SHOP_NAME='tea'
OTHER_KEY=sk-other
MODEL="unfinished
"""
    config = loaded(tmp_path, text, SHOP_NAME="coffee")
    assert from_dotenv(config, {"SHOP_NAME": "coffee"}) == {"BIG_KEY": "sk-big#1", "SHOP_KEY": "sk shop"}
    assert with_dotenv(config, {"SHOP_NAME": "coffee"})["SHOP_NAME"] == "coffee"
    [note] = [note for note in config.notes if ".env" in note]
    assert note.endswith(".env: BIG_KEY, SHOP_KEY")
    assert "sk-" not in note


def test_no_file_is_no_variable(tmp_path: Path) -> None:
    """And an empty value is none."""
    config = loaded(tmp_path, "BIG_KEY=\nSHOP_KEY=''\n")
    assert from_dotenv(config, {}) == {}
    (tmp_path / ".env").unlink()
    environ = {"A": "b"}
    assert with_dotenv(config, environ) is environ


def test_a_value_that_cannot_be_read_is_not_shown(tmp_path: Path) -> None:
    """It may be the key."""
    with pytest.raises(ConfigError, match="line 1: the value of BIG_KEY has no closing quote") as caught:
        loaded(tmp_path, 'BIG_KEY="sk-secret\n')
    assert "sk-secret" not in str(caught.value)


def test_the_file_beside_the_config_comes_before_that_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the environment before both; each file is named with what is from it."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("BIG_KEY=sk-far\nSHOP_KEY=sk-shop\nOPTIMIZER_DEPLOYMENT=other\nOTHER_KEY=x\n")
    config = loaded(tmp_path / "project", "BIG_KEY=sk-near\n")
    assert from_dotenv(config, {}) == {"BIG_KEY": "sk-near", "SHOP_KEY": "sk-shop"}
    notes = [note for note in config.notes if ".env" in note]
    assert notes == [
        f"read from {tmp_path / 'project' / '.env'}: BIG_KEY",
        f"read from {tmp_path / '.env'}: SHOP_KEY",
    ]
    assert from_dotenv(config, {"BIG_KEY": "sk-set"}) == {"SHOP_KEY": "sk-shop"}


def test_a_config_of_the_original_takes_its_variables_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `source .env`; what is exported comes first, and no value of a key is recorded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        "export AZURE_OPENAI_ENDPOINT=https://one.example\nAZURE_OPENAI_AUTH_MODE=api_key\n"
        "AZURE_OPENAI_API_KEY=sk-azure\nPATH=/nowhere\n"
    )
    file = Path(__file__).parent / "original/2026-08/configs/searchqa/default.yaml"
    config = load_config(file, (), {"AZURE_OPENAI_ENDPOINT": "https://two.example"})
    assert config.role("target").base_url == "https://two.example"
    config = load_config(file)
    assert config.role("target").base_url == config.role("optimizer").base_url == "https://one.example"
    assert config.role("target").api_key_env == "AZURE_OPENAI_API_KEY"
    assert from_dotenv(config, {}) == {"AZURE_OPENAI_API_KEY": "sk-azure"}
    [note] = [note for note in config.notes if ".env" in note]
    assert note.startswith(f"read from {tmp_path / '.env'}: ")
    assert {"AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_AUTH_MODE", "AZURE_OPENAI_API_KEY"} <= set(
        note.replace(",", "").split()
    )
    assert "sk-azure" not in str(config)
    assert not [note for note in config.notes if "taken from the environment" in note]
