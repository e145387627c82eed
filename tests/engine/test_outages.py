"""What the world does not answer is never a score: outages pause a run, and resuming it costs nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from support.crashes import Crash
from support.logs import call_slots, decisions_of, events_of
from support.params import parametrized
from support.scripted import (
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    config,
    optimizer_reply,
    target_reply,
    unreachable,
)

from skillopt_es.algorithms.classic.algorithm import CLASSIC
from skillopt_es.audit.check import check
from skillopt_es.engine.work import Work
from skillopt_es.errors import BackendError, Divergence, Interrupted
from skillopt_es.events.catalog import (
    Event,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    RunPaused,
    StepSkipped,
)
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import ALONE, CallFailed, ChatReply, ChatRequest, Course, FailureKind, Usage
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.session import read_state, resume, start


def train(folder: Path, world: ScriptedWorld, *overrides: str) -> Path:
    """A run in this world; its folder."""
    asyncio.run(start(config(folder, overrides), folder / "run", world.session()))
    return folder / "run"


def test_an_evaluation_with_too_many_unmeasured_items_pauses_the_run(tmp_path: Path) -> None:
    """Three of twelve items broken: no score is recorded, and the pause says which and why."""
    broken = ScriptedWorld(environment=ScriptedEnvironment(broken=lambda item: item in {"v1", "v5", "v7"}))
    run = train(tmp_path, broken)
    *_, last = events_of(run)
    assert isinstance(last, RunPaused)
    assert last.reason == "unmeasured"
    assert "3 of 12 items at baseline" in last.message
    assert "sandbox" in last.message
    assert read_state(run).status == "paused"


def test_resuming_tries_only_the_unmeasured_items_again(tmp_path: Path) -> None:
    """Once the world is well the run ends like one that was never disturbed."""
    run = train(tmp_path / "a", ScriptedWorld(environment=ScriptedEnvironment(broken=lambda item: item == "v5")))
    paid = len(call_slots(run))
    healed = ScriptedWorld()
    asyncio.run(resume(run, healed.session()))
    whole = train(tmp_path / "b", ScriptedWorld())
    assert read_state(run).status == "completed"
    assert len(call_slots(run)) == len(call_slots(whole))
    assert healed.calls == len(call_slots(whole)) - paid
    measured = [event for event in decisions_of(run) if not isinstance(event, RolloutCompleted) or event.outcome]
    failed = [e for e in measured if isinstance(e, RolloutCompleted) and isinstance(e.outcome, Failed)]
    assert [event.item for event in failed] == ["v5"]


def test_a_few_unmeasured_items_are_left_out_of_the_means(tmp_path: Path) -> None:
    """Under `max_failed_share` the evaluation counts, and says how many it is without."""
    world = ScriptedWorld(environment=ScriptedEnvironment(broken=lambda item: item == "v0"))
    run = train(tmp_path, world, "rollout.max_failed_share=0.1")
    state = read_state(run)
    assert state.status == "completed"
    assert state.best is not None
    assert state.best.score is not None
    assert (state.best.score.measured, state.best.score.unmeasured) == (11, 1)


def test_an_endpoint_that_is_down_is_not_a_score(tmp_path: Path) -> None:
    """Every rollout fails: the baseline is not 0, it is absent."""
    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", unreachable)))
    state = read_state(run)
    assert state.current is not None
    assert state.current.score is None
    assert state.paused is not None
    assert "12 transport" in state.paused.message


def test_a_wrong_key_pauses_at_once_and_resume_goes_on(tmp_path: Path) -> None:
    """A systemic failure is raised, recorded as a pause, and is nobody's score."""

    def refused(request: ChatRequest) -> str:
        raise CallFailed("auth", "401: wrong key", status=401, hint="check KEY")

    with pytest.raises(BackendError) as error:
        train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", refused)))
    assert error.value.hint == "check KEY"
    run = tmp_path / "run"
    assert isinstance(events_of(run)[-1], RunPaused)
    assert not any(isinstance(event, RolloutCompleted) for event in events_of(run))
    asyncio.run(resume(run, ScriptedWorld().session()))
    assert read_state(run).status == "completed"


def test_a_reply_that_cannot_be_read_is_asked_again_once(tmp_path: Path) -> None:
    """The second question holds the useless reply and the reason; its answer counts."""
    seen: list[ChatRequest] = []

    def confused(request: ChatRequest) -> str:
        if request.stage == "analyst" and not request.slot.endswith("/again"):
            return "I would rather not."
        seen.append(request)
        return optimizer_reply(request)

    run = train(tmp_path, ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", confused)))
    again = next(request for request in seen if request.slot.endswith("/again"))
    assert again.messages[-2].content == "I would rather not."
    assert "no JSON object" in again.messages[-1].content
    patches = [event for event in events_of(run) if isinstance(event, PatchProposed)]
    assert all(len(patch.calls) == 2 for patch in patches)
    assert any(patch.edits for patch in patches)


def test_a_cut_reply_of_the_optimizer_is_not_read(tmp_path: Path) -> None:
    """Also when the cut text happens to be whole JSON."""

    def cut(request: ChatRequest) -> ChatReply:
        return ChatReply(text=optimizer_reply(request), finish="length")

    run = train(tmp_path, ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", cut)))
    patches = [event for event in events_of(run) if isinstance(event, PatchProposed)]
    assert {patch.result for patch in patches} == {"unusable"}
    assert all("cut off" in patch.note for patch in patches)
    skips = [event for event in events_of(run) if isinstance(event, StepSkipped)]
    assert {skip.reason for skip in skips} == {"no_usable_patch"}


def test_a_cut_reply_of_the_target_is_never_scored(tmp_path: Path) -> None:
    """It is asked again; when that is cut too, the item is not measured."""

    def cut(request: ChatRequest) -> str | ChatReply:
        if "id: v3" in request.messages[1].content:
            return ChatReply(text="right", finish="length")
        return target_reply(request)

    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", cut)))
    rows = [event for event in events_of(run) if isinstance(event, RolloutCompleted) and event.item == "v3"]
    assert len(rows) == 1
    assert isinstance(rows[0].outcome, Failed)
    assert rows[0].outcome.kind == "truncated"
    assert len(rows[0].calls) == 2
    assert isinstance(events_of(run)[-1], RunPaused)


def test_an_optimizer_that_cannot_be_reached_pauses_the_run(tmp_path: Path) -> None:
    """Every analyst of a step failed: no step is skipped for it, and resuming asks only them again."""
    down = [True]

    def sometimes(request: ChatRequest) -> str:
        if down[0]:
            raise CallFailed("server", "500")
        return optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", sometimes))
    run = train(tmp_path / "a", world)
    last = events_of(run)[-1]
    assert isinstance(last, RunPaused)
    assert (last.reason, last.message) == (
        "optimizer",
        "none of the 2 analysts of e1/s1 gave an answer; first, server: 500",
    )
    assert not any(isinstance(event, StepSkipped) for event in events_of(run))
    down[0] = False
    asyncio.run(resume(run, world.session()))
    whole = train(tmp_path / "b", ScriptedWorld())
    kept = [event for event in decisions_of(run) if not (isinstance(event, PatchProposed) and event.result == "failed")]
    assert kept == decisions_of(whole)
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None
    assert len(world.target.asked) == len(set(world.target.asked)), "a rollout was made again"


@parametrized("stage", ["merge", "ranking", "learning_rate"], by_default=1)
def test_an_outage_after_the_analysts_pauses_the_run(stage: str, tmp_path: Path) -> None:
    """No fallback decides for an optimizer that was not there; resuming asks that question alone and goes on."""
    mode = "optimizer.lr_control_mode=" + ("autonomous" if stage == "learning_rate" else "fixed")
    down = [True]

    def sometimes(request: ChatRequest) -> str:
        if down[0] and request.stage == stage:
            raise CallFailed("server", "500")
        return optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", sometimes))
    run = train(tmp_path / "a", world, mode)
    last = events_of(run)[-1]
    assert isinstance(last, RunPaused)
    assert last.reason == "optimizer"
    assert last.message.startswith("the optimizer could not be reached; first, for ")
    assert last.message.endswith("server: 500")
    assert "e1/s1" in last.message or "step 1" in last.message
    assert not any(isinstance(event, StepSkipped) for event in events_of(run))
    down[0] = False
    asyncio.run(resume(run, world.session()))
    whole = train(tmp_path / "b", ScriptedWorld(), mode)
    assert [event for event in decisions_of(run) if not CLASSIC.unreached(event)] == decisions_of(whole)
    assert read_state(run) == evolve(read_state(whole), counts=read_state(run).counts)
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None
    assert len(call_slots(run)) == len(call_slots(whole)) + len([e for e in events_of(run) if CLASSIC.unreached(e)])


def test_an_analyst_that_was_lost_is_not_asked_again_once_others_were_merged(tmp_path: Path) -> None:
    """The merges stand on the patches that were there."""
    down = [True]

    def sometimes(request: ChatRequest) -> str:
        lost = request.stage == "analyst" and request.slot.endswith("failure-0")
        if down[0] and (lost or request.stage in ("merge", "ranking")):
            raise CallFailed("server", "500")
        return optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", sometimes))
    run = train(tmp_path, world, "gradient.minibatch_size=1")
    assert isinstance(events_of(run)[-1], RunPaused)
    down[0] = False
    asyncio.run(resume(run, world.session()))
    assert read_state(run).status == "completed"
    assert world.optimizer.asked.count("e1/s1/b0/failure-0") == 1


def test_a_merge_that_cannot_be_used_is_joined_and_says_so(tmp_path: Path) -> None:
    """The fallback keeps every edit in order, and the event names the reason."""

    def no_merges(request: ChatRequest) -> str:
        return "I would rather not." if request.stage == "merge" else optimizer_reply(request)

    run = train(tmp_path, ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", no_merges)))
    merges = [event for event in events_of(run) if isinstance(event, PatchesMerged)]
    assert merges
    for merge in merges:
        assert merge.fallback == "the reply contains no JSON object at all"
        assert all(len(edit.origins) == 1 and not edit.origins_assumed for edit in merge.edits)


@pytest.mark.parametrize(
    ("kind", "code"), [("timeout", "timeout"), ("empty", "no_answer"), ("context_length", "context_length")]
)
def test_a_target_that_is_late_silent_or_overrun_measures_zero(kind: FailureKind, code: str, tmp_path: Path) -> None:
    """It was there and did not answer this item: a result, with its own code, and no outage."""

    def silent(request: ChatRequest) -> str:
        if "id: v3" in request.messages[1].content:
            raise CallFailed(kind, "no answer")
        return target_reply(request)

    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", silent)))
    rows = [event for event in events_of(run) if isinstance(event, RolloutCompleted) and event.item == "v3"]
    assert {row.failure for row in rows} == {code}
    assert all(row.outcome == Measured(0, 0) for row in rows)
    assert read_state(run).status == "completed"


def test_a_training_batch_goes_on_without_what_was_not_measured(tmp_path: Path) -> None:
    """The item is in no minibatch, neither as failure nor as success; half of a batch may be missing."""
    world = ScriptedWorld(environment=ScriptedEnvironment(broken=lambda item: item == "t3"))
    run = train(tmp_path, world)
    assert read_state(run).status == "completed"
    groups = [group for event in events_of(run) if isinstance(event, MinibatchesPlanned) for group in event.groups]
    assert not any("t3" in group.items for group in groups)


def test_wrong_answers_are_measured_as_zero(tmp_path: Path) -> None:
    """A world that answers badly is a score, not an outage."""
    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", lambda _: "")))
    outcomes = [event.outcome for event in events_of(run) if isinstance(event, RolloutCompleted)]
    assert all(isinstance(outcome, Measured) and outcome.hard == 0 for outcome in outcomes)
    assert read_state(run).status == "completed"


class CrashAtFirstPatch:
    """An observer that crashes the run when an analyst's answer is recorded and not yet used."""

    def planned(self, work: Work, state: AnyState) -> None:
        """Nothing to do."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Nothing to do."""

    def called(self, row: CallRow) -> None:
        """Crashes after the first analyst."""
        if row.call.stage == "analyst":
            raise Crash("crashed")


def test_another_request_for_the_same_place_is_a_divergence(tmp_path: Path) -> None:
    """The journal's answer is not used for it, and nothing is paid until asking again was allowed."""
    crashing = ScriptedWorld().session(observers=(CrashAtFirstPatch(),))
    with pytest.raises(Crash):
        asyncio.run(start(config(tmp_path), tmp_path / "run", crashing))
    run = tmp_path / "run"
    other = ScriptedWorld(optimizer=ScriptedModel("another optimizer", optimizer_reply))
    with pytest.raises(Divergence, match="another request"):
        asyncio.run(resume(run, other.session()))
    assert not any(slot.endswith("failure-0") for slot in other.optimizer.asked)
    asyncio.run(resume(run, other.session(ask_again=True)))
    assert read_state(run).status == "completed"


def test_the_next_release_takes_the_answer_that_was_given_to_other_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its prompts may have changed; the answer at the same place was paid for, and is not asked for again."""
    crashing = ScriptedWorld().session(observers=(CrashAtFirstPatch(),))
    with pytest.raises(Crash):
        asyncio.run(start(config(tmp_path), tmp_path / "run", crashing))
    for module in ("session", "wiring"):
        monkeypatch.setattr(f"skillopt_es.sessions.{module}.software_version", lambda: "skillopt-es 99.0")
    monkeypatch.setattr("skillopt_es.algorithms.optimizer.system_prompt", lambda name: f"Other words: {name}")
    with EventLog.open(tmp_path / "run") as log:
        recorded = {row.call.slot for row in Journal(log.reader).read() if row.call.stage == "analyst"}
    later = ScriptedWorld()
    asyncio.run(resume(tmp_path / "run", later.session()))
    assert recorded
    assert not recorded.intersection(later.optimizer.asked)
    assert read_state(tmp_path / "run").status == "completed"
    with EventLog.open(tmp_path / "run") as log:
        assert asyncio.run(check(log, Journal(log.reader), tmp_path / "run")).ok


def test_stopping_finishes_what_is_in_flight_and_resumes_exactly(tmp_path: Path) -> None:
    """After a stop in the middle of a step the resumed log continues the old one."""
    stop = [False]

    def last_words(request: ChatRequest) -> str:
        stop[0] = stop[0] or request.stage == "analyst"
        return optimizer_reply(request)

    first = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", last_words))
    with pytest.raises(Interrupted):
        asyncio.run(start(config(tmp_path / "a"), tmp_path / "a" / "run", first.session(stopping=lambda: stop[0])))
    run = tmp_path / "a" / "run"
    assert isinstance(events_of(run)[-1], RunPaused)
    asyncio.run(resume(run, ScriptedWorld().session()))
    assert decisions_of(run) == decisions_of(train(tmp_path / "b", ScriptedWorld()))


def odd(*slots: str, stage: str = "") -> Callable[[ChatRequest], str]:
    """Models that take every question but these: HTTP 400 for a reason nobody knows."""

    def answer(request: ChatRequest) -> str:
        if request.slot in slots or (stage and request.stage == stage):
            raise CallFailed("config", "HTTP 400: invalid prompt", status=400, perhaps_request=True)
        return target_reply(request) if request.stage == "rollout" else optimizer_reply(request)

    return answer


class Slow(ScriptedModel):
    """Answers, as every endpoint does, not before the calls that were opened with this one have begun."""

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """A little later."""
        await asyncio.sleep(0.001)
        return await super().complete(request, course)


@pytest.mark.parametrize("workers", [1, 8])
def test_one_question_that_is_refused_is_one_item_that_was_not_measured(workers: int, tmp_path: Path) -> None:
    """Also when it is the very first one; counted, named, and no reason to stop while few are."""
    world = ScriptedWorld(target=Slow("scripted target", odd("baseline/item/v0")))
    run = train(tmp_path, world, "rollout.max_failed_share=0.1", f"env.workers={workers}")
    assert read_state(run).status == "completed"
    [failed] = [e for e in events_of(run) if isinstance(e, RolloutCompleted) and isinstance(e.outcome, Failed)]
    assert (failed.item, failed.failure) == ("v0", "bad_request")
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None


def test_too_many_refused_questions_pause_the_run_and_name_one(tmp_path: Path) -> None:
    """Under the limit that holds for everything that is not measured."""
    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", odd("baseline/item/v3"))))
    paused = events_of(run)[-1]
    assert isinstance(paused, RunPaused)
    assert paused.message == (
        "1 of 12 items at baseline could not be measured (1 bad_request); first, v3: HTTP 400: invalid prompt"
    )


def test_a_question_of_the_optimizer_that_is_refused_has_the_fallback_of_a_useless_reply(tmp_path: Path) -> None:
    """Asking it again would not help, so it must not pause the run for ever."""
    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", odd(stage="merge")))
    run = train(tmp_path, world)
    assert read_state(run).status == "completed"
    merges = [event for event in events_of(run) if isinstance(event, PatchesMerged)]
    assert {merge.fallback for merge in merges} == {"bad_request: HTTP 400: invalid prompt"}


@pytest.mark.parametrize("workers", [1, 8])
def test_a_model_that_takes_no_question_at_all_stops_the_run(workers: int, tmp_path: Path) -> None:
    """The error names the role and the place."""
    world = ScriptedWorld(target=Slow("scripted target", odd(stage="rollout")))
    with pytest.raises(BackendError, match=r"the target model at baseline/item/v\d+: HTTP 400: invalid prompt"):
        train(tmp_path, world, f"env.workers={workers}")
    assert len(world.target.asked) <= 2 * workers
    assert not any(isinstance(event, RolloutCompleted) for event in events_of(tmp_path / "run"))


def silent(_request: ChatRequest) -> str:
    """A model, or a gateway before it, that answers without a word."""
    raise CallFailed("empty", "the reply holds no text", status=200)


def test_an_endpoint_that_answers_nothing_is_not_a_score(tmp_path: Path) -> None:
    """Twelve replies without a word are no 0: the run pauses, and says what to do; resuming asks again."""
    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", silent)))
    state = read_state(run)
    assert state.paused is not None
    assert state.paused.reason == "unanswered"
    assert state.current is not None
    assert state.current.score is None
    assert (
        "12 of 12 items at baseline had no answer in them (first, v0: the reply holds no text)" in state.paused.message
    )
    healed = ScriptedWorld()
    asyncio.run(resume(run, healed.session()))
    assert read_state(run).status == "completed"
    whole = train(tmp_path / "whole", ScriptedWorld())
    assert healed.calls == len(call_slots(whole))
    assert check_passes(run)


@pytest.mark.parametrize("kind", ["empty", "invalid_reply"])
def test_an_optimizer_that_says_nothing_pauses_the_run(tmp_path: Path, kind: FailureKind) -> None:
    """No analyst had a word to say: that is no step with nothing to fix. One silent analyst is only that."""

    def mute(request: ChatRequest) -> str:
        raise CallFailed(kind, "the reply holds no text", status=200)

    run = train(tmp_path / "all", ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", mute)))
    paused = read_state(run).paused
    assert paused is not None
    assert paused.reason == "optimizer"
    asyncio.run(resume(run, ScriptedWorld().session()))
    assert read_state(run).status == "completed"
    assert check_passes(run)

    muted: list[str] = []

    def once(request: ChatRequest) -> str:
        if request.stage == "analyst" and not muted:
            muted.append(request.slot)
            mute(request)
        return optimizer_reply(request)

    run = train(tmp_path / "one", ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", once)))
    assert read_state(run).status == "completed"
    assert muted


def test_a_target_that_says_nothing_in_time_to_anybody_is_not_a_score(tmp_path: Path) -> None:
    """A black hole for an endpoint."""

    def late(_request: ChatRequest) -> str:
        raise CallFailed("timeout", "nothing came")

    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", late)))
    assert read_state(run).status == "paused"


def test_few_answers_without_a_word_are_the_model_s_own_zeros(tmp_path: Path) -> None:
    """Ten of twelve stay under the line; eleven do not."""

    def mostly(spoken: set[str]) -> ScriptedWorld:
        def answer(request: ChatRequest) -> str:
            said = request.messages[1].content
            here = any(f"id: {item}" in said for item in spoken) or "id: v" not in said
            return target_reply(request) if here else silent(request)

        return ScriptedWorld(target=ScriptedModel("scripted target", answer))

    two = read_state(train(tmp_path / "two", mostly({"v2", "v7"})))
    assert two.status == "completed"
    assert two.counts.unmeasured == 0
    one = read_state(train(tmp_path / "one", mostly({"v2"})))
    assert one.paused is not None
    assert "11 of 12 items" in one.paused.message


def test_whoever_resumes_may_take_silence_as_a_result(tmp_path: Path) -> None:
    """The items are tried once more, and then count."""
    world = ScriptedWorld(target=ScriptedModel("scripted target", silent))
    run = train(tmp_path, world)
    again = ScriptedWorld(target=ScriptedModel("scripted target", silent))
    asyncio.run(resume(run, again.session(overrides=("rollout.max_unanswered_share=1",))))
    state = read_state(run)
    assert state.status == "completed"
    assert state.best is not None
    assert state.best.score is not None
    assert (state.best.score.hard, state.best.score.measured) == (0.0, 12)
    assert check_passes(run)


def check_passes(run: Path) -> bool:
    """Whether every decision follows from the evidence."""
    with EventLog.open(run) as log:
        return asyncio.run(check(log, Journal(log.reader), run)).ok


def test_a_reply_that_is_cut_at_the_users_limit_is_graded_as_it_stands(tmp_path: Path) -> None:
    """It is the target's own; the log, the graders and the optimizer have the mark, and nothing is asked twice."""
    shown: list[str] = []

    def talkative(request: ChatRequest) -> str | ChatReply:
        if "id: v3" in request.messages[1].content or "id: t1" in request.messages[1].content:
            return ChatReply(text="wro", finish="length", usage=Usage(output=64))
        return target_reply(request)

    def seeing(request: ChatRequest) -> str:
        shown.append(request.messages[-1].content)
        return optimizer_reply(request)

    world = ScriptedWorld(
        target=ScriptedModel("scripted target", talkative), optimizer=ScriptedModel("scripted optimizer", seeing)
    )
    run = train(tmp_path, world, "env.max_completion_tokens=64")
    assert read_state(run).status == "completed"
    rows = [event for event in events_of(run) if isinstance(event, RolloutCompleted)]
    cut = [row for row in rows if row.item == "v3" or row.item.startswith("t1")]
    assert cut
    assert all(row.truncated and isinstance(row.outcome, Measured) and len(row.calls) == 1 for row in cut)
    assert not any(row.truncated for row in rows if row not in cut)
    assert any("truncated: the reply was cut off at its limit of 64 tokens" in text for text in shown)
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None


def test_a_reply_that_the_provider_cuts_is_asked_for_again(tmp_path: Path) -> None:
    """Fewer tokens than were asked for: that limit is not the user's."""

    def cut(request: ChatRequest) -> str | ChatReply:
        if "id: v3" in request.messages[1].content:
            return ChatReply(text="wro", finish="length", usage=Usage(output=63))
        return target_reply(request)

    run = train(tmp_path, ScriptedWorld(target=ScriptedModel("scripted target", cut)), "env.max_completion_tokens=64")
    [row] = [event for event in events_of(run) if isinstance(event, RolloutCompleted) and event.item == "v3"]
    assert (row.outcome, row.truncated) == (Failed("truncated", row.outcome.message), False)  # type: ignore[union-attr]
    assert len(row.calls) == 2
