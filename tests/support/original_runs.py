"""
The 13 result folders that the original really wrote, and runs of ours with the same configs and data.

`original.tar.xz` has them: nine of its release 0.2.0 and four of its state in August 2026, in all update modes, each of
two epochs over the same 12 training, 6 validation and 6 test items of SearchQA, with the texts of its prompts left out.
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
    *(f"0.2.0-{name}" for name in ("accumulation", "autonomous", "changed-pairs", "full-rewrite", "gated-slow")),
    *(f"0.2.0-{name}" for name in ("no-slow", "patch", "reminder-notes", "rewrite")),
    *(f"2026-08-{name}" for name in ("full-rewrite", "gated-slow", "patch", "rewrite")),
)


@cache
def _files() -> Mapping[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {member.name: cast("IO[bytes]", archive.extractfile(member)).read() for member in archive}


def unpacked(folder: Path, name: str) -> Path:
    """One of the originals in a folder, with its data beside it in `data`."""
    for path, content in _files().items():
        if path.startswith((f"{name}/", "data/")):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    return folder / name


def config_of(original: Path, base_url: str) -> dict[str, Any]:
    """The settings that a run was started with, but for the endpoint and its key, and for where the data lies."""
    kept: dict[str, Any] = json.loads((original / "config.json").read_text(encoding="utf-8"))
    for key in ("azure_openai_api_key", "out_root", "steps_per_epoch", "batches_per_epoch", "samples_per_epoch"):
        kept.pop(key, None)
    if kept["target_backend"] == "openai_compatible":  # its endpoint is in the environment; we refuse another backend's
        kept = {key: value for key, value in kept.items() if not key.startswith("azure_")}
    else:
        kept["azure_openai_endpoint"] = base_url
    data = original.parent / "data"
    return kept | {
        "split_dir": str(data),
        "skill_init": str(data / "initial_skill.md"),
    }


def answered(body: Any, _headers: Mapping[str, str]) -> Answer:
    """What the made endpoint says: one item is known to it, and every question to the optimizer has some answer."""
    system, user = (message["content"] for message in body["messages"][:2])
    if "expert at answering questions" in system:
        known = "ITEM-tr-0001" in user
        return Answer(text=f"<answer>{'pale orchard' if known else 'unresolved'}</answer>")
    kinds = sorted(set(re.findall(r"KIND-(\d\d)", user) + re.findall(r"RULE-(\d\d)", user)))
    return Answer(text=json.dumps(_everything(kinds)))


def _everything(kinds: list[str]) -> dict[str, Any]:
    """An answer that has what any stage looks for in its own."""
    rules = [f"- RULE-{kind}: answer with the name in the ledger and nothing else." for kind in kinds]
    edits = [{"op": "append", "target": "", "content": rule, "support_count": 1} for rule in rules]
    suggestions = [
        {"type": "add_rule", "title": "more", "motivation": "misses", "instruction": rule, "priority_hint": "high"}
        for rule in rules
    ]
    text = "\n".join(["# Question Answering Skill", "", *rules, ""])
    drafts = [{"title": "rules", "change_summary": [f"{len(rules)} rules"], "new_skill": text}]
    proposed = {"edits": edits, "revise_suggestions": suggestions, "skill_candidates": drafts}
    return {
        "failure_summary": [{"failure_type": "rule_missing", "count": 3, "description": "a kind is not known"}],
        "success_patterns": ["a kind is known"],
        "patch": {"reasoning": "kinds are missing", **proposed},
        "appendix_notes": [],
        "reasoning": "all of it",
        **proposed,
        "selected_indices": list(range(len(rules))),
        "learning_rate": 3,
        "confidence": "high",
        "risk_notes": ["none"],
        "change_summary": [f"{len(rules)} rules"],
        "new_skill": text,
        "slow_update_content": "Keep to the ledger.",
        "meta_skill_content": "Short rules work.",
    }
