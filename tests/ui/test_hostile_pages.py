"""Skills, items, edits and answers that attack a page: whatever they hold, it is text, and leads nowhere."""

from __future__ import annotations

import asyncio
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from attrs import evolve, frozen
from support import skill_world
from support.asking import Asking
from support.scripted import ScriptedEnvironment, ScriptedItem, ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.events.values import SkillTree, digest_of
from skillopt_es.ports import Ask, ChatRequest, Episode, Item, Splits
from skillopt_es.runs.inbox import leave
from skillopt_es.sessions.session import resume, start

ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</pre></td></blockquote></title></textarea><iframe src=javascript:alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<!-- --!><base href=//evil.example><meta http-equiv=refresh content=0>",
    "\u202e\u200b\x00\x1b[2J",
    "{{7*7}} ${7*7} <%= 7 %>",
)
ALL = " ".join(ATTACKS)


@frozen
class HostileEnvironment(ScriptedEnvironment):
    """Its items are called like attacks."""

    def load(self) -> Splits:
        """As always, by other names."""
        rows = {
            name: [ScriptedItem(f"{name}-{index}-{ATTACKS[index % 6]}", "apple") for index in range(count)]
            for name, count in (("train", 6), ("val", 6), ("test", 6))
        }
        digests = {name: digest_of(repr(row).encode()) for name, row in rows.items()}
        return Splits(rows["train"], rows["val"], rows["test"], digests)

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """As always; whoever grades it says what an enemy's judge would."""
        episode = await ScriptedEnvironment.attempt(self, item, skill, ask, seed=seed)
        return evolve(episode, failure=f"wrong {ALL}", detail=f"the judge said {ALL}", trust="untrusted")


def said(request: ChatRequest) -> str:
    """The optimizer's answer, with an attack in every text."""
    reply = json.loads(optimizer_reply(request))

    def spoilt(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: spoilt(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [spoilt(each, key) for each in value]
        return (
            f"{value} {ALL}" if isinstance(value, str) and key not in ("op", "target", "from", "confidence") else value
        )

    return json.dumps(spoilt(reply))


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    """A run of an enemy's items and models, which somebody has steered in an enemy's words."""
    folder = tmp_path_factory.mktemp("attacked")
    world = ScriptedWorld(
        environment=HostileEnvironment(),
        target=ScriptedModel(f"target {ALL}", lambda request: f"wrong {ALL}"),
        optimizer=ScriptedModel(f"optimizer {ALL}", said),
    )
    calls = iter(range(10_000))
    made = config(folder, ["train.num_epochs=1"])
    with pytest.raises(Exception, match="stopped as asked"):
        asyncio.run(start(made, folder / "runs" / "run", world.session(stopping=lambda: next(calls) > 60)))
    for order in ("hint", "stop"):
        leave(folder / "runs" / "run", order, by=f"by {ALL}", why=f"why {ALL}", text=ALL if order == "hint" else "")
    asyncio.run(resume(folder / "runs" / "run", world.session()))
    return Asking(directory=folder / "runs")


@pytest.fixture(scope="module")
def folder_of_enemies(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    """A folder of skills whose names, descriptions, texts and kinds of task are attacks, where these are let in."""
    folder = tmp_path_factory.mktemp("enemies")

    def teacher(request: ChatRequest) -> str:
        made = {"op": "create", "skill": f"apple {ALL}", "description": f"apple {ATTACKS[0]}", "content": f"RULE {ALL}"}
        return json.dumps({"reasoning": ALL, "edits": [made], "changes": [made]})

    kinds = ("apple<script>alert(1)</script>", "'><svg/onload=alert(1)>")
    skill_world.trained(folder, optimizer=teacher, kinds=kinds)
    return Asking(directory=folder)


class _Seen(HTMLParser):
    """What a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Our one script, and nothing else that acts, loads or leads elsewhere."""
        given = dict(attrs)
        ours = tag == "script" and str(given.get("src")).startswith("/static/ui.js")
        if tag in ("script", "img", "iframe", "base", "object", "embed", "style") and not ours:
            self.wrong.append(tag)
        if tag == "meta" and "http-equiv" in given:
            self.wrong.append(tag)
        for name, value in attrs:
            leads = name in ("href", "src", "action", "formaction") and not re.match(r"(/(?!/)|#|\?)", value or "")
            if name.startswith("on") or name == "style" or leads:
                self.wrong.append(f"{name}={value}")


def pages(asking: Asking) -> dict[str, str]:
    """Every page of the run, by its address."""
    item = quote(f"val-1-{ATTACKS[1]}", safe="")
    paths = [
        "/", "/compare?run=run", f"/?q={quote(ALL)}", "/start", "/run/run", f"/run/run?said={quote(ALL)}",
        "/run/run/scores", "/run/run/items", f"/run/run/item?item={item}", "/run/run/skill",
        f"/run/run/refused?gate_metric={quote(ALL)}", "/run/run/cost", "/run/run/config", "/run/run/events",
        "/run/run/step/1", f"/run/{quote(ALL, safe='')}", f"/compare?run={quote(ALL)}", f"/start?config={quote(ALL)}",
    ]  # fmt: skip
    return {path: asking.get(path).text for path in paths}


def test_no_page_acts_on_what_an_enemy_wrote(attacked: Asking) -> None:
    """Not what a run holds, and not what an address says."""
    shown = ""
    for path, text in pages(attacked).items():
        seen = _Seen()
        seen.feed(text)
        assert not seen.wrong, path
        assert not re.search("[\x00\x1b\u202e\u200b]", text), path
        shown += text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "⟨U+202E⟩" in shown


def test_no_page_acts_on_what_is_in_a_folder_of_skills(folder_of_enemies: Asking) -> None:
    """Nor on what the tables say that such a run has."""
    shown = ""
    for page in (
        "",
        "/scores",
        "/items",
        "/item?item=val1",
        "/skill",
        "/refused",
        "/cost",
        "/step/1",
        "/step/2",
        "/events",
    ):
        text = folder_of_enemies.get(f"/run/r{page}").text
        seen = _Seen()
        seen.feed(text)
        assert not seen.wrong, page
        assert not re.search("[\x00\x1b\u202e\u200b]", text), page
        shown += text
    assert "Which kinds of task opened what" in shown
    assert "apple&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_what_open_pages_are_told_is_one_line_of_json(attacked: Asking) -> None:
    """No text ends a message, or begins another one."""
    from skillopt_es.events.log import EventLog
    from skillopt_es.ui.stream import told

    with EventLog.open(attacked.directory / "run") as log:
        for recorded in log.read():
            number, kind, data, *rest = told(recorded).split("\n")
            assert (number, kind, rest) == (f"id: {recorded.seq}", "event: happened", ["", ""])
            assert json.loads(data.removeprefix("data: "))["seq"] == recorded.seq


def test_the_script_makes_no_markup_of_texts() -> None:
    """It sets text alone; markup comes whole from a page of ours."""
    script = (Path(__file__).parent.parent.parent / "skillopt_es" / "ui" / "ui.js").read_text()
    for word in ("innerHTML = ", "outerHTML = ", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in script
