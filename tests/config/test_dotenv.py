"""A `.env` file beside the config: what is taken from it, what never is, and what is said."""

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
