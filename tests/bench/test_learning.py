"""The learning bench runs, its simulated models read what peers send them, and its worlds can be learned."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).parent))

import bench_learning
from learning_curves import Curve, Moment, Outcome, table
from learning_picture import picture
from support.params import parametrized
from worlds.language import OPS, Part, followed, op_in, sentence
from worlds.made import EVERY, WORLDS
from worlds.optimizer import Optimizer, examples_in
from worlds.target import Target


def test_classic_learns_in_a_tiny_world(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = evolve(WORLDS["rules"](1), budgets=(60, 120))
    monkeypatch.setitem(bench_learning.EVERY, "rules", lambda seed: tiny)
    outcome = bench_learning.measured("rules", ["classic"], [1])
    (curve,) = outcome.curves["classic"]
    assert curve.calls <= 120
    assert curve.at_calls(0) == outcome.floor < curve.at_calls(120) <= outcome.ceiling
    assert "| classic |" in table(outcome)
    assert len(ET.fromstring(picture([outcome])).findall("{*}polyline")) == 1


@parametrized("name", EVERY, by_default=4)
def test_a_world_is_the_same_for_the_same_seed_and_leaves_something_to_learn(name: str) -> None:
    world, again, other = EVERY[name](1), EVERY[name](1), EVERY[name](2)
    assert world == again
    assert world.truth != other.truth
    if name == "null":
        assert world.floor == world.ceiling == world.score(world.start + "\nTake care with kind KAVO.")
    else:
        assert world.floor + 0.2 < world.plain <= world.ceiling <= 1


def test_useless_lines_cost_more_the_more_there_are() -> None:
    world = WORLDS["clutter"](1)
    rules = "\n".join(sentence(f"kind {part.kind}", op, random.Random(0)) for part, op in world.truth.items())
    scores = [
        world.score("\n".join([rules, *(f"Mind kind {name}." for name in ["BABA", "BEBE", "BIBI", "BOBO"][:many])]))
        for many in (0, 2, 4)
    ]
    assert scores[0] == 1.0 > scores[1] > scores[2]


def test_every_wording_of_a_rule_is_read_as_that_rule() -> None:
    for op in OPS:
        assert {op_in(op.said(random.Random(seed))) for seed in range(9)} == {op}


def test_the_last_line_that_fits_decides() -> None:
    part = Part("KAVO", "MERU")
    skill = "For kind KAVO: add 11 to the number.\nFor group MERU: add 12 to the number.\nFor kind BELU: add 13."
    assert str(followed(skill, part)) == str(op_in("add 12"))


FAILED = {
    "a trajectory": "[task] {asked}\n[agent] {said}\n[evaluation]\nAnswer: '{said}'\nExpected: \"{expected}\"",
    "markdown": "## Inputs\n{asked}\n\n## Output\n{said}\n\n## Feedback\nThe correct answer is '{expected}'.",
    "headings": "{asked}\n### Expected\n{expected}\n### Got\n{said}\n",
    "JSON": '{{"input": "{asked}", "expected": "{expected}", "answer": "{said}"}}',
    "a line": "- {asked} -> {said} (should be {expected})",
    "a table": "| question | answer | expected |\n| {asked} | {said} | expected: {expected} |",
}


@pytest.mark.parametrize("form", FAILED)
def test_the_optimizer_finds_failures_however_they_are_told(form: str) -> None:
    world = WORLDS["soft"](1)
    item = world.train[0]
    said = Target(world)("", item.question)
    found = examples_in(FAILED[form].format(asked=item.question, said=said, expected=item.expected))
    assert [(example.part, example.failed) for example in found] == [(part, True) for part in item.parts]
    assert all(world.truth[example.part].of(item.number) == example.expected for example in found)


def test_the_optimizer_writes_the_form_that_a_request_asks_for() -> None:
    world = evolve(WORLDS["rules"](1), wrong=0.0)
    item = world.train[0]
    failed = FAILED["a line"].format(asked=item.question, said="no idea", expected=item.expected)
    told = f"the following instructions:\n```\nBe brief.\n```\n{failed.replace('no idea', item.type + '=1')}\n"
    assert Optimizer(world)(told).startswith("```\nBe brief.\nFor kind")
    edits = json.loads(Optimizer(world)(f'item: t-1\n{told}Answer as {{"edits": [{{"items": []}}]}}'))["edits"]
    assert [(edit["items"], edit["content"][:13]) for edit in edits] == [(["t-1"], f"For kind {item.type}")]


def test_an_area_is_the_mean_over_calls() -> None:
    curve = Curve("classic", 1, (Moment(0, 0, 0.0), Moment(50, 500, 0.5), Moment(150, 900, 0.9)), 200, 1000)
    assert curve.area(100) == pytest.approx(0.25)
    assert curve.token_area(1000) == pytest.approx((0.5 * 400 + 0.9 * 100) / 1000)
    assert Outcome("w", 0.0, 1.0, 1.0, (100, 200), {"classic": [curve]}).most_tokens == 1000
    assert sentence("kind KAVO", OPS[0], random.Random(0)).startswith("For kind KAVO: ")
