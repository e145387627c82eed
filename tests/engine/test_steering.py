"""Orders to a run that is open: each is an event, has its effect, and the run derives again from its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from attrs import define, field
from attrs import evolve as replace
from support.audits import regated
from support.scripted import NOON, ScriptedModel, ScriptedWorld, config, optimizer_reply
from support.tamper import rewritten, seqs_of

from skillopt_es.audit.blame import BLAME_TYPES, blame
from skillopt_es.audit.check import check
from skillopt_es.engine.steering import LIMITS, Asked, OrderRefused, check_order, event_of
from skillopt_es.engine.work import Work
from skillopt_es.errors import BudgetReached
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EpochPlanned,
    Event,
    EvidenceRetracted,
    PatchProposed,
    RolloutCompleted,
    RunPaused,
    RunSteered,
    SkillScored,
    TrainingStopped,
)
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json, Measured, Order
from skillopt_es.ports import ChatRequest
from skillopt_es.projections.lineage import TYPES, lineage
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.summary import summarize
from skillopt_es.runs.inbox import Inbox, leave
from skillopt_es.sessions.session import read_state, resume, start

SHORT = ["train.num_epochs=1"]


@define
class Person:
    """Gives an order as soon as something has happened, once."""

    folder: Path
    when: Callable[[Event, AnyState], bool]
    order: Order
    text: Callable[[AnyState], str] = field(default=lambda state: "")
    settings: Mapping[str, Json] = field(factory=dict)
    given: bool = False

    def planned(self, work: Work, state: AnyState) -> None:
        """Is of no interest."""

    def called(self, row: CallRow) -> None:
        """Is of no interest."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Looks whether it is time."""
        if not self.given and self.when(event, state):
            self.given = True
            leave(self.folder, self.order, by="anna", why="a test", text=self.text(state), settings=self.settings)


def trained(
    folder: Path, person: Person, world: ScriptedWorld | None = None, settings: list[str] | None = None
) -> AnyState:
    """A run that somebody steers."""
    made = config(folder.parent / "config", SHORT if settings is None else settings)
    return asyncio.run(start(made, folder, (world or ScriptedWorld()).session(observers=(person,))))


def events(folder: Path) -> list[Event]:
    """All of them."""
    with EventLog.open(folder) as log:
        return [recorded.event for recorded in log.read()]


def derives(folder: Path) -> bool:
    """Whether every decision follows from the log again."""
    with EventLog.open(folder) as log:
        return asyncio.run(check(log, Journal(log.reader), folder)).mismatch is None


def after_step(number: int) -> Callable[[Event, AnyState], bool]:
    """Once a step has its verdict."""
    return lambda event, state: isinstance(event, CandidateGated) and event.step == number


def test_a_pause_stops_what_is_under_way_and_resume_goes_on_to_the_same_end(tmp_path: Path) -> None:
    """Nobody is interrupted: the session ends like any other that pauses."""
    folder = tmp_path / "run"
    state = trained(folder, Person(folder, lambda event, _: isinstance(event, EpochPlanned), "pause"))
    assert state.status == "paused"
    assert state.paused is not None
    assert state.paused.reason == "asked"
    assert [type(event) for event in events(folder)][-2:] == [RunSteered, RunPaused]
    assert not Inbox(folder).waiting()
    resumed = asyncio.run(resume(folder, ScriptedWorld().session()))
    assert resumed.status == "completed"
    assert derives(folder)
    assert resumed.best == trained(tmp_path / "other", Person(tmp_path, lambda event, _: False, "pause")).best


def test_a_stop_ends_the_training_after_the_open_step_and_tests_what_there_is(tmp_path: Path) -> None:
    """The reason is recorded like that of any stop rule."""
    folder = tmp_path / "run"
    state = trained(folder, Person(folder, after_step(1), "stop"))
    assert state.status == "completed"
    [stopped] = [event for event in events(folder) if isinstance(event, TrainingStopped)]
    assert stopped.reason == "order"
    assert state.started is not None
    assert stopped.step == state.steps_done < state.started.total_steps
    assert state.completed is not None
    assert derives(folder)


def test_a_hint_is_told_to_those_who_propose_edits_from_then_on(tmp_path: Path) -> None:
    """And to nobody before."""
    asked: list[tuple[str, str]] = []

    def remembering(request: ChatRequest) -> str:
        asked.append((request.slot, request.messages[-1].content))
        return optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", remembering))
    folder = tmp_path / "run"
    trained(folder, Person(folder, after_step(1), "hint", lambda state: "ferns are plants"), world)
    analysts = [(slot, text) for slot, text in asked if "/b0/" in slot]
    assert all(("ferns are plants" in text) == ("/s1/" not in slot) for slot, text in analysts)
    assert derives(folder)


def test_a_pinned_line_survives_edits_and_a_struck_one_is_gone_with_its_score_unknown(tmp_path: Path) -> None:
    """Every other line keeps its maker, and the text is measured before it is compared."""
    folder = tmp_path / "run"

    def line(state: AnyState) -> str:
        assert state.current is not None
        return next(each for each in state.current.skill.text.splitlines() if each.startswith("- know"))

    def has_one(event: Event, state: AnyState) -> bool:
        return isinstance(event, CandidateGated) and event.verdict.taken and state.current is not None

    state = trained(
        folder,
        Person(folder, has_one, "strike", line),
        settings=["train.num_epochs=2", "optimizer.use_slow_update=false"],
    )
    [order] = [event for event in events(folder) if isinstance(event, RunSteered)]
    assert order.skill is not None
    assert order.text not in order.skill.text.splitlines()
    assert state.measured.get(order.skill.hash) is not None
    assert derives(folder)
    with EventLog.open(folder) as log:
        tree = lineage(log.read(types=TYPES))
        found = blame(log.read(types=BLAME_TYPES))
    [struck] = [node for node in tree.nodes if node.kind == "struck"]
    assert struck.taken
    assert struck.value is not None
    assert found is not None
    assert "unknown" not in {maker.kind for makers in found.current.makers.values() for maker in makers}


@pytest.mark.parametrize(("order", "action"), [("take", "force_accept"), ("refuse", "reject")])
def test_a_candidate_is_taken_or_refused_by_hand_and_its_numbers_stay(
    tmp_path: Path, order: Order, action: str
) -> None:
    """Whatever the rule would have said; the other verdicts are the rule's."""
    folder = tmp_path / "run"
    world = ScriptedWorld(
        optimizer=ScriptedModel("knows", lambda request: optimizer_reply(request).replace("spoil", "know"))
    )
    if order == "take":
        world = ScriptedWorld(
            optimizer=ScriptedModel("spoils", lambda request: optimizer_reply(request).replace("know", "spoil"))
        )
    state = trained(folder, Person(folder, lambda event, _: isinstance(event, CandidateBuilt), order), world)
    gated = [event for event in events(folder) if isinstance(event, CandidateGated)]
    [by_hand] = [event for event in gated if event.verdict.reason == "by_hand"]
    assert by_hand == gated[0]
    assert by_hand.verdict.action == action
    assert by_hand.verdict.candidate_score is not None
    assert state.status == "completed"
    assert derives(folder)


def test_a_budget_is_lowered_while_the_run_goes_on(tmp_path: Path) -> None:
    """It is a setting from then on, as if `resume` had been told."""
    folder = tmp_path / "run"
    lower = Person(folder, after_step(1), "budget", settings={"budget.max_calls": 40})
    state = trained(folder, lower, settings=[*SHORT, "budget.max_calls=100000"])
    assert state.status == "paused"
    assert state.paused is not None
    assert state.paused.key == "budget.max_calls"
    assert state.overrides == {"budget.max_calls": 40}
    resumed = asyncio.run(resume(folder, ScriptedWorld().session(overrides=("budget.max_calls=100000",))))
    assert resumed.status == "completed"
    assert derives(folder)


def test_a_session_that_counted_nothing_refuses_a_budget(tmp_path: Path) -> None:
    """And says how to get one."""
    folder = tmp_path / "run"
    person = Person(folder, after_step(1), "budget", settings={"budget.max_calls": 40})
    state = trained(folder, person)
    assert state.status == "completed"
    assert not any(isinstance(event, RunSteered) for event in events(folder))
    [refused] = (folder / "inbox").glob("*.refused")
    assert "without a budget" in refused.read_text()


@pytest.mark.parametrize("most", [40, 60])
def test_a_budget_that_was_ordered_at_rest_holds_when_the_run_goes_on(tmp_path: Path, most: int) -> None:
    """Also where it had none before, and where it is used up already: nothing more is asked than it allows."""
    folder = _paused(tmp_path)
    before = _calls(folder)
    leave(folder, "budget", by="anna", why="it costs", settings={"budget.max_calls": most})
    state = asyncio.run(resume(folder, ScriptedWorld().session()))
    assert state.status == "paused"
    assert state.paused is not None
    assert state.paused.key == "budget.max_calls"
    assert state.overrides == {"budget.max_calls": most}
    assert 40 < before <= _calls(folder) <= max(before, most)
    assert derives(folder)


def test_more_minutes_that_were_ordered_at_rest_let_a_run_go_on(tmp_path: Path) -> None:
    """The limit that it has passed is no longer the one that holds."""
    folder = tmp_path / "run"
    clock, now = count(step=30.0), (NOON + timedelta(minutes=30 * each) for each in count())
    session = replace(ScriptedWorld().session(), clock=lambda: next(clock), now=lambda: next(now))
    chosen = config(tmp_path, ["budget.max_minutes=20", *SHORT])
    assert asyncio.run(start(chosen, folder, session)).status == "paused"
    with pytest.raises(BudgetReached, match="minutes taken"):
        asyncio.run(resume(folder, ScriptedWorld().session()))
    leave(folder, "budget", by="anna", why="it learns", settings={"budget.max_minutes": 100_000})
    assert asyncio.run(resume(folder, ScriptedWorld().session())).status == "completed"


def test_who_trains_a_run_is_told_of_an_order_that_was_refused(tmp_path: Path) -> None:
    """Whoever gave it may be gone."""
    told: list[str] = []
    folder = _paused(tmp_path)
    leave(folder, "pin", by="anna", why="x", text="no such\nline")
    asyncio.run(resume(folder, ScriptedWorld().session(warn=told.append)))
    [said] = [words for words in told if "refused" in words]
    assert said.startswith("pin (no such line), ordered by anna, was refused: the current skill has no such line")


def test_a_run_at_rest_follows_its_orders_when_it_is_resumed(tmp_path: Path) -> None:
    """First of all, each once: also one that was in the log already when its writer was killed."""
    folder = tmp_path / "run"
    trained(folder, Person(folder, lambda event, _: isinstance(event, PatchProposed), "pause"))
    asked = leave(folder, "hint", by="anna", why="x", text="ferns are plants")
    again = Person(folder, after_step(1), "pause")
    asyncio.run(resume(folder, ScriptedWorld().session(observers=(again,))))
    inbox = folder / "inbox"
    inbox.mkdir(exist_ok=True)
    (inbox / f"{asked.name}.json").write_text('{"order": "hint", "by": "anna", "why": "x", "text": "ferns are plants"}')
    state = asyncio.run(resume(folder, ScriptedWorld().session()))
    assert state.status == "completed"
    assert state.steering.hints == ("ferns are plants",)
    assert not Inbox(folder).waiting()
    assert derives(folder)


def test_a_changed_order_no_longer_leads_to_its_text(tmp_path: Path) -> None:
    """What a strike leaves is derived, too."""
    state = read_state(_paused(tmp_path))
    event = event_of(_asked("strike", _line(state)), state)
    assert event.skill is not None
    assert event.skill != state.current.skill if state.current else False


@pytest.mark.parametrize(
    ("algorithm", "item"),
    [("classic", "t0"), ("classic", "v3"), ("search", "v3"), pytest.param("search", "t1", marks=pytest.mark.slow)],
)
def test_an_item_is_left_out_from_the_end_of_the_open_step_on(tmp_path: Path, algorithm: str, item: str) -> None:
    """No later try, group, comparison or sum has it, and what was measured with it counts what the others say."""
    folder = tmp_path / "run"
    settings = ["train.num_epochs=2", "train.batch_size=4", f"train.algorithm={algorithm}"]
    began = Person(folder, lambda event, _: isinstance(event, PatchProposed), "retract", lambda state: item)
    state = trained(folder, began, settings=settings)
    assert state.status == "completed"
    made = events(folder)
    [at] = [number for number, event in enumerate(made) if isinstance(event, EvidenceRetracted)]
    order, retraction = made[at - 1], made[at]
    assert isinstance(order, RunSteered)
    assert isinstance(retraction, EvidenceRetracted)
    assert (order.order, order.text, order.by, order.why) == ("retract", item, "anna", "a test")
    assert (retraction.items, retraction.by, retraction.reason) == ((item,), "anna", "a test")
    assert not any(isinstance(event, RolloutCompleted) and event.item == item for event in made[at:])
    assert bool(retraction.values) == item.startswith("v")
    if retraction.values:
        scored = next(event for event in made if isinstance(event, SkillScored) and event.purpose == "selection")
        first = [event for event in made[:at] if isinstance(event, RolloutCompleted) and event.place == scored.place]
        left = [event.outcome.hard for event in first if isinstance(event.outcome, Measured) and event.item != item]
        assert retraction.values[scored.skill] == pytest.approx(sum(left) / len(left))
        assert all(item not in drawn.items for known in state.measured.values() for drawn in known.drawn)
        with EventLog.open(folder) as log:
            summary = summarize(recorded.event for recorded in log.read())
        assert state.best is not None
        assert summary.best.value == state.best.value
    assert derives(folder)
    assert not any(verdict.changed for verdict in regated(folder).verdicts)


def test_a_test_task_is_not_left_out_while_the_run_is_open(tmp_path: Path) -> None:
    """It decides nothing, so only the score would change; a fork without it says so."""
    folder = tmp_path / "run"
    person = Person(folder, after_step(1), "retract", lambda state: "x1")
    state = trained(folder, person)
    assert state.status == "completed"
    assert not any(isinstance(event, (RunSteered, EvidenceRetracted)) for event in events(folder))
    [refused] = (folder / "inbox").glob("*.refused")
    assert "x1 is a test task" in refused.read_text()
    open_run = read_state(_paused(tmp_path / "other"))
    with pytest.raises(OrderRefused, match="x1 is a test task") as told:
        check_order(_asked("retract", "x1"), open_run)
    assert "`skillopt-es retract RUN --item x1 --apply`" in (told.value.hint or "")


def test_values_that_do_not_follow_from_what_is_left_are_told(tmp_path: Path) -> None:
    """Nobody but the results says what a skill counts without an item."""
    folder = tmp_path / "run"
    trained(folder, Person(folder, after_step(1), "retract", lambda state: "v3"))
    [seq] = seqs_of(folder, EvidenceRetracted)
    assert derives(folder)

    def otherwise(event: Event) -> Event:
        assert isinstance(event, EvidenceRetracted)
        assert event.values
        return replace(event, values=dict.fromkeys(event.values, 0.875))

    assert not derives(rewritten(folder, tmp_path / "changed", seq, otherwise))
    assert not derives(rewritten(folder, tmp_path / "alone", seq - 1, lambda event: None))


def _paused(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    trained(folder, Person(folder, after_step(2), "pause"))
    return folder


def _calls(folder: Path) -> int:
    with EventLog.open(folder) as log:
        return len(Journal(log.reader))


def _line(state: AnyState) -> str:
    assert state.current is not None
    return next(line for line in state.current.skill.text.splitlines() if line.strip())


def _asked(order: Order, text: str = "", settings: Mapping[str, Json] | None = None, why: str = "x") -> Asked:
    return Asked(name="1-0", order=order, by="anna", why=why, text=text, settings=settings or {})


def test_what_cannot_be_done_is_refused_with_the_reason(tmp_path: Path) -> None:
    """Before it is in any log."""
    state = read_state(_paused(tmp_path))
    line = _line(state)
    for asked, why in (
        (_asked("hint"), "needs a text"),
        (_asked("hint", "a", why=" "), "who gives it and why"),
        (_asked("hint", "a" * 5000), "too long"),
        (_asked("hint", "a", why="a" * 2000), "too long"),
        (_asked("budget", settings={"budget.max_minutes": float("inf")}), "above 0"),
        (_asked("pin", "nowhere"), "no such line"),
        (_asked("strike", "nowhere"), "no such line"),
        (_asked("unpin", line), "no such line is pinned"),
        (_asked("take"), "no candidate waits"),
        (_asked("budget"), "needs a limit"),
        (_asked("budget", settings={"train.seed": 1}), "no limit of a budget"),
        (_asked("budget", settings={LIMITS[0]: -1}), "above 0"),
        (_asked("budget", settings={LIMITS[0]: True}), "above 0"),
        (_asked("retract"), "needs a text"),
        (_asked("retract", "nobody"), "no item nobody"),
    ):
        with pytest.raises(OrderRefused, match=why):
            check_order(asked, state)
    check_order(_asked("pin", line), state)
    with pytest.raises(OrderRefused, match="not begun"):
        check_order(_asked("stop"), None)
