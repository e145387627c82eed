"""The page as a whole: well formed, closed to the world, readable by all, whatever the run is or says."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from report.conftest import facts
from support.audited import KINDS, Audited
from support.event_runs import forge
from support.pages import Page, problems_of
from support.params import parametrized
from support.scripted import (
    NOON,
    ScriptedEnvironment,
    ScriptedItem,
    ScriptedModel,
    ScriptedWorld,
    config,
    items,
    optimizer_reply,
)
from support.tamper import cut_off, seqs_of, with_unknown_event

from skillopt_es.events.catalog import CandidateGated, EpochCompleted, RolloutCompleted, SkillScored, StepSkipped
from skillopt_es.events.create import ForkPoint
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatRequest, Splits
from skillopt_es.projections.usage import Tally, UsageSums
from skillopt_es.report.page import MARK, page, used
from skillopt_es.sessions.session import start

PageOf = Callable[[Path], str]
HOSTILE = "</script></style></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&lt;"


# --- what every page is --------------------------------------------------------------------------------------------


@parametrized("kind", KINDS, by_default=3)
def test_the_page_of_any_training_run_is_whole(kind: str, audited: Audited, page_of: PageOf) -> None:
    """Balanced, every reference leads somewhere, tables and drawings have names, nothing loads or runs."""
    assert problems_of(Page(page_of(audited(kind)))) == []


def test_the_demos_page_has_every_section(demo_run: Path, page_of: PageOf) -> None:
    """Each with a heading, and a way to it from the top."""
    seen = Page(page_of(demo_run))
    assert problems_of(seen) == []
    names = ["scores", "curve", "skill", "lineage", "steps", "items", "spending", "environment", "config"]
    assert [each["id"] for each in seen.all("section")] == names
    links = [each["href"] for each in seen.all("a")]
    assert links[0] == "#main"
    assert links[1 : len(names) + 1] == [f"#{name}" for name in names]
    assert {f"step-{step}" for step in range(1, 13)} | {f"epoch-{epoch}" for epoch in (1, 2, 3)} <= set(seen.ids)


def test_the_same_log_gives_the_same_page(demo_run: Path, tmp_path: Path, page_of: PageOf) -> None:
    """Byte for byte, and in another folder, too."""
    shutil.copytree(demo_run, tmp_path / "demo")
    assert page(facts(tmp_path / "demo")) == page_of(demo_run)


def test_the_policy_allows_the_style_sheet_and_nothing_else(demo_run: Path, page_of: PageOf) -> None:
    """The hash is that of the style sheet as it stands in the page."""
    made = page_of(demo_run)
    [policy] = [each["content"] for each in Page(made).all("meta") if "http-equiv" in each]
    style = made.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert MARK in made[:2000]


def test_tokens_that_nobody_reported_are_not_called_none() -> None:
    """Where an endpoint says only what it read."""
    silent = UsageSums(calls=2, tries=2, input=Tally(70, 0, 2), output=Tally(0, 2, 0))
    tiles = "".join(map(str, used(silent, "")))
    assert "70+" in tiles
    assert "the number written is unknown" in tiles
    assert "5 of them written" in "".join(map(str, used(evolve(silent, output=Tally(5, 0, 2)), "")))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("at", [0, 1, 2], ids=["light", "dark", "print"])
def test_texts_stand_out_from_what_is_behind_them(at: int, demo_run: Path, page_of: PageOf) -> None:
    """WCAG AA: 4.5 to 1 for texts, 3 to 1 for what is drawn."""
    rules = re.findall(r":root \{(.*?)\}", page_of(demo_run), re.DOTALL)
    assert len(rules) == 3
    # the other two are laid over the first
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", rules[0] + rules[at]))
    for ground in ("paper", "raised", "sunken"):
        for ink in ("ink", "soft", "accent"):
            assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    pairs = ("good good-bg", "bad bad-bg", "info info-bg", "ink idle-bg", "ink bad-bg", "soft idle-bg", "bad fail",
             "good half")  # fmt: skip
    for ink, ground in (pair.split() for pair in pairs):
        assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for drawn in ("good", "bad", "info", "best", "accent"):
        assert _contrast(colours[drawn], colours["paper"]) >= 3, drawn


# --- what a run may be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", [0, 1, 2, 30, 60, 200, 400, 700])
def test_a_run_that_is_under_way_has_a_page(seq: int, demo_run: Path, tmp_path: Path) -> None:
    """From its first moment on; what is open is said to be."""
    made = Page(page(facts(cut_off(demo_run, tmp_path / "cut", seq))))
    assert problems_of(made) == []
    assert f"As of event {seq}" in made.text


def test_a_step_without_a_verdict_says_so(demo_run: Path, tmp_path: Path) -> None:
    """Its diff is there already."""
    [gate] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 4)
    made = Page(page(facts(cut_off(demo_run, tmp_path / "cut", gate - 1))))
    assert "not judged yet" in made.text
    assert "step-4" in made.ids


def test_a_damaged_log_is_shown_up_to_the_damage(demo_run: Path, tmp_path: Path) -> None:
    """And the page says where it ends and why, without this machine's folders."""
    copy = tmp_path / "copy"
    shutil.copytree(demo_run, copy)
    [gate] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 5)
    forge(copy, f"update events set data = replace(data, 'hard', 'soft') where seq = {gate}")
    found = facts(copy)
    made = Page(page(found))
    assert problems_of(made) == []
    assert f"What is shown ends with event {gate - 1:,} of {found.end:,}." in made.text
    assert f"event {gate} (CandidateGated) was changed after it was recorded" in made.text
    assert str(tmp_path) not in made.text
    assert "readable in part" in made.text
    assert found.summary.step == 4


@pytest.mark.parametrize("damage", ["delete from forms where id = 1", "update calls set tries = 'x' where n = 5"])
def test_calls_that_cannot_be_read_are_said_to_be_missing(damage: str, demo_run: Path, tmp_path: Path) -> None:
    """The events are all there."""
    copy = tmp_path / "copy"
    shutil.copytree(demo_run, copy)
    forge(copy, damage)
    found = facts(copy)
    made = Page(page(found))
    assert problems_of(made) == []
    assert "calls and tokens cannot be read" in made.text
    assert "spending" not in made.ids
    assert found.summary.step == 12


def test_a_log_of_a_newer_version_is_shown_as_far_as_it_is_known(demo_run: Path, tmp_path: Path) -> None:
    """And the page says what it leaves out."""
    made = Page(page(facts(with_unknown_event(demo_run, tmp_path / "newer", "SomethingNew"))))
    assert problems_of(made) == []
    assert "SomethingNew" in made.text


# --- what a run may say --------------------------------------------------------------------------------------------


class _HostileEnvironment(ScriptedEnvironment):
    """Items whose ids and types are markup."""

    def load(self) -> Splits:
        """The splits."""
        splits = ScriptedEnvironment.load(self)
        rows = [
            [ScriptedItem(f"{HOSTILE}{each.id}", each.task_type) for each in items(lead, count)]
            for lead, count in (("t", self.train), ("v", self.val), ("x", self.test))
        ]
        return evolve(splits, train=rows[0], val=rows[1], test=rows[2])


def _hostile(request: ChatRequest) -> str:
    """The scripted optimizer, whose every rule is markup, and who turns lines around."""
    said = HOSTILE.replace('"', '\\"')
    return (
        optimizer_reply(request).replace("- know ", f"- \\u202e\\u200b{said} know ").replace("kinds are", f"{said} are")
    )


def test_nothing_that_a_run_says_becomes_markup(tmp_path: Path) -> None:
    """Names, ids, skills, edits, reasons: they are texts, and what cannot be seen in them is named."""
    folder = tmp_path / "runs"
    settings = config(folder)
    world = ScriptedWorld(environment=_HostileEnvironment(), optimizer=ScriptedModel("scripted optimizer", _hostile))
    asyncio.run(start(settings, folder / "run", world.session()))
    seq = seqs_of(folder / "run", EpochCompleted)[-1]
    fork = ForkPoint(folder=folder / "run", seq=seq)
    RunWriter.create(folder / "named", run_id="x", name=HOSTILE, now=lambda: NOON, fork=fork).close()
    made = Page(page(facts(folder / "named")))
    assert problems_of(made) == []
    assert {tag for tag, _ in made.elements} & {"script", "img"} == set()
    assert f"{HOSTILE}: a run of skillopt-es" in made.text
    assert f"{HOSTILE}v0" in made.text
    assert f"- ⟨U+202E⟩⟨U+200B⟩{HOSTILE} know" in made.text


# --- what it shows -------------------------------------------------------------------------------------------------


def test_the_curve_has_a_mark_for_every_text_that_was_measured(demo_run: Path, page_of: PageOf) -> None:
    """On wide and narrow screens, with words, and skipped steps on the axis."""
    made, found = page_of(demo_run), facts(demo_run)
    measured = [node for node in found.tree.nodes if node.value is not None]
    for gate in (node for node in measured if node.kind == "candidate"):
        words = f"{gate.name.capitalize()}: "
        assert sum(each.get("aria-label", "").startswith(words) for each in Page(made).all("a")) == 2, gate.name
    skipped = len(seqs_of(demo_run, StepSkipped))
    assert made.count('class="skip-mark"') == 2 * skipped + 1  # and one in the legend of both
    rejected = sum(node.verdict == "reject" for node in measured)
    assert made.count('class="rejected"') == 2 * rejected + 1


def test_every_line_of_the_skill_has_its_maker_beside_it(demo_run: Path, page_of: PageOf) -> None:
    """And the maker's card names event, verdict, items and cost."""
    seen, found = Page(page_of(demo_run)), facts(demo_run)
    assert found.blame is not None
    text = found.blame.best.skill.text
    assert sum("l" in each.get("class", "").split() for each in seen.all("div")) == len(text.splitlines())
    rule = next(maker for maker in found.blame.best.makers["SKILL.md"] if maker.kind == "edit")
    assert f"edit of step {rule.step}, epoch {rule.epoch} (event {rule.seq})" in seen.text
    assert "a line cost" in seen.text


def test_the_map_has_a_cell_for_every_result(demo_run: Path, page_of: PageOf) -> None:
    """Validation items under every text that was measured, training items where they were drawn, tests."""
    results = [row.event for row in _rollouts(demo_run)]
    drawn = {(each.purpose, each.skill if each.purpose != "train" else each.place, each.item) for each in results}
    tried = sum(purpose in ("selection", "train", "test") for purpose, _, _ in drawn)
    shown = [each for each in Page(page_of(demo_run)).all("td") if each.get("class") in ("p", "f", "h", "u")]
    nodes = [node.skill for node in facts(demo_run).tree.nodes]
    again = sum(nodes.count(skill) - 1 for skill in set(nodes)) * 40
    assert len(shown) == tried + again


def _rollouts(folder: Path) -> list[object]:
    from support.audited import records_of

    return [row for row in records_of(folder) if isinstance(row.event, RolloutCompleted)]


def test_each_score_says_how_far_it_can_be_trusted(audited: Audited, page_of: PageOf) -> None:
    """Items, what one of them is worth, the interval; and a small difference is called noise."""
    folder = audited("plain")
    found, text = facts(folder), Page(page_of(folder)).text
    baseline = next(event for event in found.scored if isinstance(event, SkillScored) and event.purpose == "selection")
    assert baseline.score.measured == 12
    assert "0.0833" in text  # one of twelve
    assert "more than noise (p" in text  # on test items, which chose nothing
    assert "These items chose it among 8 texts" in text
    assert "at least 6 items have to turn" in text
