"""The files of docs/agents.md in a folder, with an endpoint as the optimizer's: what a reader has typed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from support.doc_commands import BLOCK, ROOT
from support.model_server import Answer

PAGE = ROOT / "docs" / "agents.md"
RULE = "Answer with the last word."
_NAMED = re.compile(r"^(?:#|//) ([\w.-]+)$", re.MULTILINE)
_TASKS = [{"id": f"t{number}", "input": f"Say the number {number}", "expected": str(number)} for number in range(12)]


def write_page(folder: Path, base_url: str, **model: object) -> Path:
    """All files that the page names, with tasks; `model` is what its config says else. The config's file."""
    for _, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        named = _NAMED.search(body)
        if named:
            file = folder / named[1]
            file.write_text(body, encoding="utf-8")
            file.chmod(0o755)
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, _TASKS)), encoding="utf-8")
    (folder / "SKILL.md").write_text("Be brief.\n", encoding="utf-8")
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    config["model"] |= {"optimizer_base_url": base_url, **model}
    config["env"] |= {"split_ratio": "1:1:1"}
    config["optimizer"] = {"use_slow_update": False, "use_meta_skill": False}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder / "config.yaml"


def fragments() -> Mapping[str, dict[str, Any]]:
    """What the page says to write for each backend, by its name."""
    blocks = [yaml.safe_load(body) for kind, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if kind == "yaml"]
    found = [block.get("model", block) for block in blocks]
    agents = [each for each in found if "target_backend" in each]
    named = [("gateway" if "target_gateway" in each else each["target_backend"].partition(":")[0]) for each in agents]
    return dict(zip(named, agents, strict=True))


def teacher(body: Any, headers: Mapping[str, str]) -> Answer:
    """An optimizer that knows the rule, for whatever it is asked."""
    edit = {"op": "append", "content": RULE, "from": []}
    proposal = {"reasoning": "the answers lack it", "edits": [edit], "patch": {"edits": [edit]}}
    return Answer(text=json.dumps({**proposal, "selected_indices": [0]}))
