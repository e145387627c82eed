"""DocVQA through the installed command: made pages, and an endpoint that really reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.command import KEY, command
from support.make_docvqa import QUESTIONS, make
from support.model_server import Answer, ModelServer

from skillopt_es.adapters.models.simulated.sight import text_on

RULE = "Answer with the figures alone."


def sees(body: Any, headers: Mapping[str, str]) -> Answer:
    """Reads the line that is asked for from the image; without the rule it adds a word that spoils the answer."""
    assert headers["Authorization"] == f"Bearer {KEY}"
    if "response_format" in body:
        return Answer(text=json.dumps(_advice(body["response_format"]["json_schema"]["name"])))
    system, user = body["messages"]
    text, image = user["content"]
    [line] = [number for number, (question, _) in enumerate(QUESTIONS) if question in text["text"]]
    head, data = image["image_url"]["url"].split(",")
    assert head == "data:image/png;base64"
    found = text_on(base64.b64decode(data)).splitlines()[line].split()[-1]
    said = found if RULE in system["content"] else f"No. {found}"
    return Answer(text=f"Line {line + 1}.\n<answer>{said}</answer>")


def _advice(stage: str) -> dict[str, Any]:
    edit = {"op": "append", "target": "", "content": RULE}
    return {
        "analyst": {"failure_summary": [], "patch": {"reasoning": "words are too much", "edits": [edit]}},
        "merge": {"reasoning": "they are the same", "edits": [{**edit, "from": ["A"], "support_count": 4}]},
        "ranking": {"reasoning": "the first", "selected_indices": [0]},
        "slow_update": {"reasoning": "", "slow_update_content": "Keep to the rule."},
        "meta_skill": {"reasoning": "", "meta_skill_content": "Rules first."},
    }[stage]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_skill_for_documents_is_trained(tmp_path: Path, form: str) -> None:
    """From near misses to the whole answer; the log is whole, and every decision follows from it."""
    make(tmp_path / "data" / "docvqa_split", form)
    given: dict[str, Any] = {
        "_base_": "docvqa",
        "model": {"backend": "openai", "optimizer": "o", "target": "t", "api_key_env": "OPENAI_API_KEY",
                  "reasoning_effort": ""},
        "train": {"num_epochs": 1, "batch_size": 8},
        "env": {"max_completion_tokens": 512},
    }  # fmt: skip
    with ModelServer(sees) as server:
        given["model"]["base_url"] = server.base_url
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
        done = command("run", "config.yaml", "--run", "run", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    shown = command("status", "run", "--json", cwd=tmp_path)
    assert shown.json["best"]["value"] == 1.0, shown.out
    assert command("verify", "run", cwd=tmp_path).code == 0
    assert command("replay", "run", "--check", cwd=tmp_path).code == 0
    assert RULE in (tmp_path / "runs" / "run" / "best" / "SKILL.md").read_text(encoding="utf-8")


def test_a_target_that_cannot_see_is_refused(tmp_path: Path) -> None:
    """Before anything is recorded, with what to change."""
    make(tmp_path / "data" / "docvqa_split")
    given = {
        "_base_": "docvqa",
        "model": {"backend": "simulated", "target_backend": "handoff", "optimizer": "o", "target": "t"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    done = command("run", "config.yaml", "--run", "run", cwd=tmp_path)
    assert done.code == 2, done.err
    assert "env.name is 'docvqa', which needs images" in done.err
    assert not (tmp_path / "runs" / "run").exists()
