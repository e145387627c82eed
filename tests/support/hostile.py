"""A run whose ids, types, inputs, skill, answers and errors are hostile to a terminal (`tests/hostile/texts.json`)."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from support.model_server import Answer, ModelServer

TEXTS: Mapping[str, str] = json.loads((Path(__file__).parent.parent / "hostile" / "texts.json").read_text())
ALL = " ".join(text.encode("utf-8", "replace").decode() for text in TEXTS.values())
KEY_NAME = "HOSTILE_KEY"
RULE = "KNOW THE RULE"
NOT_OURS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]|[\U000e0000-\U000e007f]"
)
OURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36)m")


def said_raw(text: str, *, coloured: bool = False) -> list[str]:
    """What would act on a terminal or hide in it; where there are colours, but for those."""
    return NOT_OURS.findall(OURS.sub("", text) if coloured else text)


def hostile_tasks() -> Iterator[dict[str, str]]:
    """Tasks for all three splits; the text of each is in its id, its input and its type."""
    for split, (name, text) in itertools.product(("train", "val", "test"), TEXTS.items()):
        clean = text.encode("utf-8", "replace").decode()
        row = {"id": f"{split} {name} {clean}", "input": f"say {clean}", "expected": "right"}
        yield row | {"type": clean, "split": split}


class Enemy:
    """Plays both models: wrong until the skill has the rule, and never without a hostile word."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.down = False

    def __call__(self, body: Any, _: Mapping[str, str]) -> Answer:
        """An answer, or an error whose body is hostile."""
        asked = body["messages"][-1]["content"]
        if self.down:
            return Answer(status=401, error={"message": f"wrong key {ALL}", "code": f"x{ALL}"})
        if "response_format" in body:
            return Answer(text=json.dumps(_advice(body["response_format"]["json_schema"]["name"])))
        if "title" in asked and asked not in self.failed:
            self.failed.add(asked)
            return Answer(status=500, error={"message": f"try later {ALL}", "type": ALL})
        if "\x00" in asked and "before" in asked:
            return Answer(status=400, error={"message": f"never {ALL}", "code": "content_filter"})
        knows = RULE in body["messages"][0]["content"]
        return Answer(text=f"{'right' if knows else 'wrong'} {ALL} {asked[:20]}")


def _advice(stage: str) -> dict[str, Any]:
    edits = [
        {"op": "append", "target": "", "content": f"- {RULE} {ALL}"},
        {"op": "replace", "target": f"nowhere {ALL}", "content": ALL},
    ]
    return {
        "probe": {"ready": True},
        "analyst": {"failure_summary": [], "patch": {"reasoning": ALL, "edits": edits}},
        "merge": {"reasoning": ALL, "edits": [{**edit, "support_count": 2} for edit in edits]},
        "ranking": {"reasoning": ALL, "selected_indices": [0, 1]},
        "slow_update": {"reasoning": ALL, "slow_update_content": f"guidance {ALL}"},
        "meta_skill": {"reasoning": ALL, "meta_skill_content": f"memory {ALL}"},
    }[stage]


def hostile_project(folder: Path, base_url: str) -> Path:
    """A project whose data, skill and names are hostile; its config."""
    os.environ[KEY_NAME] = "sk-hostile-0123456789abcdef"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("\n".join(json.dumps(row) for row in hostile_tasks()))
    text = ALL.replace("\x00", "")  # a skill with that character is refused
    (folder / "SKILL.md").write_text(f"# Skill {text}\n\nAnswer.\n", encoding="utf-8")
    config = {
        "model": {"backend": "openai", "base_url": base_url, "api_key_env": KEY_NAME, "optimizer": "o", "target": "t",
                  "attempts": 2, "backoff_seconds": 0.01, "backoff_cap_seconds": 0.02},
        "train": {"num_epochs": 2, "batch_size": 5, "seed": 3},
        "gradient": {"minibatch_size": 3, "merge_batch_size": 2},
        "rollout": {"max_failed_share": 0.5},
        "env": {"name": "tasks", "data_path": "tasks.jsonl", "split_mode": "field", "grader": "contains",
                "skill_init": "SKILL.md"},
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder / "config.yaml"


def enemy_server(enemy: Enemy) -> ModelServer:
    """The enemy's endpoint."""
    return ModelServer(enemy)
