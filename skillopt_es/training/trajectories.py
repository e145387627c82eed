"""
Trajectories: how one is stored (a blob that names its records by digest) and how it is shown to the optimizer.

What is shown is bounded: the head and the tail of a long trajectory are kept and the cut is marked.
"""

from __future__ import annotations

import json
import re

from attrs import frozen

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Failed, Measured, text_digest
from skillopt_es.ports import Episode
from skillopt_es.training.calls import Texts

_TITLES = {"system": "system", "user": "task", "reply": "agent", "tool": "tool", "feedback": "evaluation"}


@frozen
class Stored:
    """A trajectory ready to be stored: its blob and the texts the blob names."""

    digest: str
    texts: tuple[str, ...]


def store(episode: Episode) -> Stored:
    """The blob of an episode and everything that belongs to it."""
    records = [[record.kind, text_digest(record.text)] for record in episode.records]
    blob = json.dumps({"task": episode.task, "records": records}, sort_keys=True, separators=(",", ":"))
    return Stored(text_digest(blob), (blob, *(record.text for record in episode.records)))


@frozen
class Loaded:
    """A trajectory read back from the log."""

    task: str
    records: tuple[tuple[str, str], ...]


def load(digest: str, texts: Texts) -> Loaded:
    """The trajectory with this digest."""
    blob = json.loads(texts.text(digest))
    return Loaded(blob["task"], tuple((kind, texts.text(record)) for kind, record in blob["records"]))


def shown(row: RolloutCompleted, texts: Texts, *, most_chars: int, skill: str) -> str:
    """One rollout as the optimizer sees it; the skill, which it sees elsewhere, is left out of the system message."""
    head = [f"item: {row.item}"]
    if row.task_type:
        head.append(f"type: {row.task_type}")
    match row.outcome:
        case Measured(hard, soft):
            head.append(f"result: {'PASS' if row.outcome.passed else 'FAIL'} (hard {hard:g}, soft {soft:.2f})")
        case Failed(kind, message):
            head.append(f"result: not measured ({kind}: {message})")
    if row.failure:
        head.append(f"failure: {row.failure}" + (f" ({row.detail})" if row.detail else ""))
    if not row.trajectory:
        return fenced("trajectory", "\n".join(head))
    trajectory = load(row.trajectory, texts)
    lines = [f"[{_TITLES.get(kind, kind)}] {_without_skill(text, skill)}" for kind, text in trajectory.records]
    return fenced("trajectory", "\n".join(head) + "\n\n" + shortened("\n".join(lines), most_chars))


def _without_skill(text: str, skill: str) -> str:
    body = skill.strip()
    return text.replace(body, "(the skill document)") if body else text


def shortened(text: str, most: int) -> str:
    """The text, or its head and tail with the cut marked."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n[… {len(text) - most} characters cut …]\n{text[-tail:]}"


def fenced(label: str, text: str) -> str:
    """Text from outside between fence lines that it cannot contain itself."""
    longest = max((len(run) for run in re.findall("~+", text)), default=0)
    fence = "~" * max(4, longest + 1)
    return f"{fence} {label}\n{text}\n{fence}"
