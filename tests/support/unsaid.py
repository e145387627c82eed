"""
Runs whose optimizer merges without saying what from, as many models do: a log in which each merged edit may go back to
every edit that its merge saw. Some merged edits repeat an input word for word, some say it in other words.

`python tests/support/unsaid.py FOLDER` trains one of 840 edits and two levels of merges, to look at and to measure.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.events.values import digest_of
from skillopt_es.ports import ChatRequest, Splits
from skillopt_es.sessions.session import start
from support.scripted import (
    ScriptedEnvironment,
    ScriptedItem,
    ScriptedModel,
    ScriptedWorld,
    chance,
    config,
    optimizer_reply,
)

TOPICS = (
    "amounts", "dates", "names", "streets", "colours", "weights", "heights", "invoices", "currencies", "countries",
    "quotations", "headings", "footnotes", "tables", "fractions", "percentages", "abbreviations", "titles", "initials",
    "hyphens", "decimals", "intervals", "temperatures", "latitudes", "timezones", "weekdays", "holidays", "ordinals",
    "roman-numerals", "postcodes", "passwords", "versions", "licences", "chapters", "captions", "emails", "phones",
    "fax-numbers", "plurals", "genders",
)  # fmt: skip
_RULES = (
    "- know {topic}: write them as the question does, and nothing else",
    "- know {topic}: check the unit of the {topic} before the final answer",
    "- know {topic}: prefer the shortest form that the document has for {topic}",
    "- know {topic}: where two {topic} are given, answer with the later one",
)
_REWORDED = "- Make sure to know {topic}. Prior to answering, verify which {topic} are meant"
LARGE = (35, 6, 4)
"""Analysts a step, edits of each, steps: 840 edits, merged in two levels and once more at the end."""


@frozen
class Topics(ScriptedEnvironment):
    """Items of forty kinds."""

    def load(self) -> Splits:
        """The splits."""
        rows = {
            prefix: [ScriptedItem(f"{prefix}{at}", TOPICS[at % len(TOPICS)]) for at in range(count)]
            for prefix, count in (("t", self.train), ("v", self.val), ("x", self.test))
        }
        digests = {name: digest_of(repr(rows[prefix]).encode()) for name, prefix in SPLITS.items()}
        return Splits(rows["t"], rows["v"], rows["x"], digests)


SPLITS = {"train": "t", "val": "v", "test": "x"}


def _analyst(request: ChatRequest, edits: int) -> dict[str, object]:
    """So many rules on what failed and on what comes to its mind; the slot decides which."""
    user = request.messages[1].content
    failed = re.findall(r"kind: ([\w-]+), wanted: right, got: wrong", user)
    more = sorted(TOPICS, key=lambda topic: chance(request.slot + topic))
    wanted = [*dict.fromkeys([*failed, *more])][:edits]
    rows = [
        {"op": "append", "target": "", "content": _rule(topic, int(chance(topic + request.slot) * len(_RULES)))}
        for topic in wanted
    ]
    summary = [{"failure_type": "unknown_kind", "count": len(failed), "description": "not in the skill"}]
    return {"failure_summary": summary, "patch": {"reasoning": "kinds are missing", "edits": rows}}


def _rule(topic: str, form: int) -> str:
    return _RULES[form].format(topic=topic)


def _merge(user: str) -> dict[str, object]:
    """One edit a topic, most of them in the first wording, one of three in another; no `from`."""
    groups = json.loads(user[user.index("\n[\n") :])
    merged: dict[str, str] = {}
    for edit in (edit for group in groups for edit in group["edits"]):
        found = re.search(r"know ([\w-]+)", edit["content"])
        assert found is not None
        merged.setdefault(found[1], edit["content"])
    rows = [
        _REWORDED.format(topic=topic) if at % 3 == 2 else content for at, (topic, content) in enumerate(merged.items())
    ]
    return {"reasoning": "joined", "edits": [{"op": "append", "target": "", "content": row} for row in rows]}


def unsaid_world(analysts: int, edits: int) -> ScriptedWorld:
    """The world of such a run; two items an analyst."""

    def answer(request: ChatRequest) -> str:
        match request.stage:
            case "analyst":
                return json.dumps(_analyst(request, edits))
            case "merge":
                return json.dumps(_merge(request.messages[1].content))
            case _:
                return optimizer_reply(request)

    world = ScriptedWorld(environment=Topics(train=analysts * 2, val=40, test=4))
    return evolve(world, target=ScriptedModel("topics", _target), optimizer=ScriptedModel("silent merger", answer))


def _target(request: ChatRequest) -> str:
    skill, user = request.messages[0].content, request.messages[-1].content
    kind = re.search(r"kind: ([\w-]+)", user)
    assert kind is not None
    return "right" if f"know {kind[1]}" in skill else "wrong"


def unsaid_run(folder: Path, analysts: int = 8, edits: int = 3, steps: int = 1, *more: str) -> Path:
    """Trains such a run; the folder of its log."""
    settings = (
        f"train.num_epochs={steps}", f"train.batch_size={analysts * 2}", f"optimizer.learning_rate={edits}",
        "gradient.minibatch_size=2", "gradient.merge_batch_size=8", "optimizer.use_slow_update=false",
        "optimizer.use_meta_skill=false", *more,
    )  # fmt: skip
    made = config(folder, settings)
    asyncio.run(start(made, folder / "runs" / "unsaid", unsaid_world(analysts, edits).session()))
    return folder / "runs" / "unsaid"


if __name__ == "__main__":
    print(unsaid_run(Path(sys.argv[1]), *LARGE))
