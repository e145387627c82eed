"""An endpoint's answers for benchmarks: a target that knows more with each rule, an optimizer that adds rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from support.made_searchqa import made_searchqa
from support.model_server import Answer

USAGE = {"prompt_tokens": 400, "completion_tokens": 20, "total_tokens": 420}


@cache
def _answers() -> dict[str, str]:
    return {item["question"]: item["answers"][0] for item in made_searchqa(2000)}


def _share(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def answer(body: Any, _headers: Mapping[str, str]) -> Answer:
    """Tells target and optimizer apart by the system prompt."""
    system, user = body["messages"][0]["content"], body["messages"][1]["content"]
    for marker, reply in _OPTIMIZER.items():
        if marker in system:
            return Answer(text=json.dumps(reply(user)), usage=USAGE)
    return Answer(text=_target(system, user), usage=USAGE)


def _target(system: str, user: str) -> str:
    question = user.rsplit("Question", 1)[1].strip()
    rules = set(re.findall(r"rule (\d+)", system))
    known = _share(question) < 0.3 + 0.05 * len(rules)
    truth = _answers()[question]
    return f"The passages settle it.\n\n<answer>{truth if known else 'unknown'}</answer>"


def _analyst(user: str) -> dict[str, object]:
    number = int(_share(user) * 1000)
    edits = [{"op": "append", "target": "", "content": f"- rule {number + shift}"} for shift in range(2)]
    return {"failure_summary": [], "patch": {"reasoning": "more rules", "edits": edits}}


def _merge(user: str) -> dict[str, object]:
    contents = list(dict.fromkeys(re.findall(r"- rule \d+", user)))[:6]
    edits = [
        {"op": "append", "target": "", "content": content, "from": ["E1"], "support_count": 2} for content in contents
    ]
    return {"reasoning": "joined", "edits": edits}


_OPTIMIZER = {
    "on which the agent failed": _analyst,
    "on which the agent succeeded": _analyst,
    "You combine proposals": _merge,
    "You choose which proposed": lambda user: {"reasoning": "", "selected_indices": [0, 1, 2, 3]},
    "develops over whole epochs": lambda user: {"reasoning": "", "slow_update_content": "- read the passages twice"},
    "You coach the optimizer": lambda user: {"reasoning": "", "meta_skill_content": "short rules"},
}
