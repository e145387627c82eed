"""
What an attempt costs besides the model: building the prompt, reading the reply, grading it and recording it.

    python tests/bench/bench_environments.py [ITEMS]

Made SearchQA items with long contexts, which are cut to the budget; a reply comes at once. Processor time of one
process, so that what else the machine does hardly counts.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.environments import data_settings, open_on, write_lines
from support.made_searchqa import made_searchqa

from skillopt_es.engine.call_records import Exchange
from skillopt_es.engine.trajectories import packed
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import ChatReply, Environment, Item, Message, Tool

SKILL = SkillTree({"SKILL.md": "# Skill\n\n" + "- Keep to what the passage says, and be brief.\n" * 80})
CONTEXT = 9000  # characters, so that it has to be cut to the budget
ROUNDS = 5


def report(name: str, seconds: float, count: int) -> None:
    """Prints one line."""
    print(f"{name:<44} {1e6 * seconds / count:8.0f} us of CPU an item")


async def attempts(environment: Environment, items: Sequence[Item], *, record: bool) -> None:
    """Each item once, one after the other."""

    for item in items:
        exchanges: list[Exchange] = []

        async def ask(
            messages: Sequence[Message],
            *,
            max_tokens: int | None = None,
            tools: Sequence[Tool] = (),
            tool_choice: str = "",
            item: Item = item,
            exchanges: list[Exchange] = exchanges,
        ) -> ChatReply:
            text = f"The passage says so.\n<answer>The {item.id}, of course</answer>"
            exchanges.append(Exchange(tuple(message.content for message in messages), text))
            return ChatReply(text=text, finish="stop")

        episode = await environment.attempt(item, SKILL, ask, seed=1)
        if record:
            packed(episode, exchanges)


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = made_searchqa(count, size=CONTEXT)
        split = [{**row, "split": "test"} for row in rows]
        split += [{**rows[0], "id": kind, "split": kind} for kind in ("train", "val")]
        path = write_lines(folder / "items.jsonl", split)
        environment = open_on(folder, "searchqa", data_settings(split_mode="field", data_path=str(path)))
        began = time.process_time()
        items = environment.load().test
        report("reading and checking items", time.process_time() - began, count)
        for label, record in (("prompt, grading, trajectory", False), ("... and packing the trajectory", True)):
            best = float("inf")
            for _ in range(ROUNDS):
                gc.collect()
                began = time.process_time()
                asyncio.run(attempts(environment, items, record=record))
                best = min(best, time.process_time() - began)
            report(f"SearchQA: {label}", best, count)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1400)
