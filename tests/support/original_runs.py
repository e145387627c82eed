"""
The eight result folders that the original really wrote, and runs of ours with the same configs and data.

`original.tar.xz` has them as they were written: six of its release 0.2.0 and two of its state in August 2026, with
accepts, rejects, skips and forced accepts, the config that each was started with, and its items of SearchQA. Only the
texts of its prompts are left out, and paths are relative.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from support.model_server import Answer

ARCHIVE = Path(__file__).parent.parent / "interchange" / "original.tar.xz"
RUNS = (
    *(f"0.2.0-{name}" for name in ("full-rewrite-accumulation", "gated-slow-changed-three-epochs")),
    *(f"0.2.0-{name}" for name in ("no-gate-accumulation", "no-learning-rate", "notes-no-gate")),
    "0.2.0-soft-linear-changed-notes",
    *(f"2026-08-{name}" for name in ("rewrite-mixed", "rewrite-soft")),
)


@cache
def _files() -> Mapping[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        files = [member for member in archive if member.isfile()]
        return {member.name: cast("IO[bytes]", archive.extractfile(member)).read() for member in files}


def unpacked(folder: Path, name: str) -> Path:
    """One of the originals in a folder, with its data beside it in `data`, and its config."""
    for path, content in _files().items():
        if path.startswith((f"{name}/", f"{name}.config", f"data/{name}/")):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    return folder / name


def config_of(original: Path, base_url: str) -> dict[str, Any]:
    """The settings that a run was started with, but for the endpoint, and for where its files are."""
    kept: dict[str, Any] = json.loads(original.with_name(f"{original.name}.config.yaml").read_text(encoding="utf-8"))
    del kept["out_root"]
    if kept["target_backend"] == "openai_compatible":  # its endpoint is in the environment; we refuse another backend's
        kept = {key: value for key, value in kept.items() if not key.startswith("azure_")}
    else:
        kept["azure_openai_endpoint"] = base_url
    data = original.parent / "data" / original.name
    return kept | {
        "split_dir": str(data),
        "skill_init": str(data / "initial_skill.md"),
    }


def answered(body: Any, _headers: Mapping[str, str]) -> Answer:
    """What the made endpoint says: a topic with a rule is answered, and so is every question to the optimizer."""
    system, user = (message["content"] for message in body["messages"][:2])
    asked = re.search(r"TOPIC-(\d\d) Under which name is entry (\d+) filed", user)
    if "expert at answering questions" in system and asked:
        topic, entry = asked.groups()
        known = topic == "01" or (f"RULE-{topic}" in system and f"AVOID-{topic}" not in system)
        named = re.search(rf"entry {entry} is filed under the name ([a-z ]+);", user)
        return Answer(text=f"<answer>{named[1] if named and known else 'unresolved'}</answer>")
    return Answer(text=json.dumps(_everything(user)))


def _everything(user: str) -> dict[str, Any]:
    """
    An answer that has what any stage looks for in its own.

    It proposes a rule for one topic that has none, and a line that does harm; later it takes that line out.
    """
    topics = [topic for topic in dict.fromkeys(re.findall(r"TOPIC-(\d\d)", user)) if f"RULE-{topic}" not in user]
    merged = sorted(set(re.findall(r"(?:RULE|HINT|AVOID)-\d\d: [^\n\"\\]+", user)))
    lines = [f"RULE-{topic}: answer with the name in the ledger and nothing else." for topic in topics[:1]]
    lines += [f"AVOID-{topic}: answer from memory." for topic in topics[1:2]]
    edits = [{"op": "append", "content": f"- {line}"} for line in lines or merged]
    edits += [{"op": "delete", "target": f"- {line}"} for line in merged if line.startswith("AVOID") and not lines]
    suggestions = [
        {"type": "add_rule", "title": line, "motivation": "misses", "instruction": line, "priority_hint": "high"}
        for line in lines or merged
    ]
    text = "\n".join(["# Question Answering Skill", "", *(f"- {line}" for line in [*merged, *lines]), ""])
    drafts = [{"title": "rules", "change_summary": [f"{len(lines)} lines"], "new_skill": text}]
    proposed = {"edits": edits, "revise_suggestions": suggestions, "skill_candidates": drafts}
    return {
        "failure_summary": [{"failure_type": "rule_missing", "count": 3, "description": "a kind is not known"}],
        "success_patterns": ["a kind is known"],
        "patch": {"reasoning": "topics are missing", **proposed},
        "appendix_notes": [f"Keep to the rule of topic {topic}." for topic in re.findall(r"TOPIC-(\d\d)", user)[:1]],
        "reasoning": "all of it",
        **proposed,
        "selected_indices": [0],
        "learning_rate": 3,
        "confidence": "high",
        "risk_notes": ["none"],
        "change_summary": [f"{len(lines)} lines"],
        "new_skill": text,
        "slow_update_content": "Keep to the ledger.",
        "meta_skill_content": "Short rules work.",
    }
