"""The commands that audit a run: what they answer about finished, running and damaged runs, and to odd words."""

from __future__ import annotations

import shutil
from os import SEEK_END
from pathlib import Path

import pytest
from attrs import evolve
from support.audited import Audited
from support.event_runs import forge
from support.in_process import Cli
from support.logs import events_of
from support.params import parametrized
from support.tamper import cut_off, seqs_of, with_unknown_event

from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EpochCompleted,
    Event,
    MinibatchesPlanned,
    PatchProposed,
    SlowUpdateApplied,
)
from skillopt_es.events.log import EventLog
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.sessions.session import read_state

ALL = (
    ("explain", "step", 1),
    ("explain", "--item", "date-03"),
    ("why-not",),
    ("blame",),
    ("bisect", "--item", "date-03"),
    ("diff", "seq", 1),
)
"""Each command on a run, as words after the command that the run goes in between."""


def on(run: object, words: tuple[object, ...]) -> tuple[object, ...]:
    """The words with a run."""
    return (words[0], run, *words[1:])


# --- explain -------------------------------------------------------------------------------------------------------


def test_explain_tells_a_step_from_trajectories_to_verdict(cli: Cli, demo_run: Path) -> None:
    """In the order in which one led to the other, with the numbers of the events."""
    done = cli("explain", demo_run, "step", 3)
    assert (done.code, done.err) == (0, "")
    [gate] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 3)
    heads = ["trajectories", "analysts", "merges", "ranking", "candidate", f"gate, event {gate}"]
    places = [done.out.index(f"\n{head}") for head in heads]
    assert places == sorted(places)
    event = events_of(demo_run)[gate - 1]
    assert isinstance(event, CandidateGated)
    assert event.verdict.lost
    assert event.verdict.lost[0] in done.out


def test_a_step_is_found_by_whatever_people_have_of_it(cli: Cli, demo_run: Path) -> None:
    """Its number, an event's, its candidate's hash, a patch, an edit; quoted or not."""
    page = cli("explain", demo_run, "step", 3).out.partition("\n")[2]
    [patch, *_] = seqs_of(demo_run, PatchProposed, lambda event: event.step == 3)
    built = next(event for event in events_of(demo_run) if isinstance(event, CandidateBuilt) and event.step == 3)
    for words in (
        ("step 3",),
        ("event", patch),
        (patch,),
        ("candidate", built.candidate.hash[:10]),
        (built.candidate.hash,),
        ("e1/s3/b0/failure-0",),
    ):
        assert cli("explain", demo_run, *words).out.partition("\n")[2] == page
    edit = cli("explain", demo_run, "e1/s3/b0/failure-0#1").out
    assert "is of step 3 of 12" in edit
    assert "e1/s3/b0/failure-0#1: merged into" in edit


def test_explain_has_a_whole_step_for_programs(cli: Cli, demo_run: Path) -> None:
    """Its events, and the fate of each proposal."""
    document = cli("explain", demo_run, "step", 1, "--json").json
    kinds = [event["type"] for event in document["events"]]
    assert kinds[0] == "MinibatchesPlanned"
    assert kinds[-1] == "CandidateGated"
    assert (document["step"], document["verdict"], document["problem"]) == (1, "taken", None)
    assert {fate["reason"] for row in document["proposals"] for fate in row["fates"]} == {"taken", "ranked_out"}


def test_explain_says_which_events_there_are(cli: Cli, demo_run: Path) -> None:
    """A number beyond the last one is an event's, though digits may begin a hash, too."""
    done = cli("explain", demo_run, 99999)
    assert done.code == 2
    assert "has no event 99999" in done.err
    assert f"its events are 1 to {len(events_of(demo_run))}" in done.err


def test_explain_knows_the_end_of_an_epoch(cli: Cli, demo_run: Path) -> None:
    """By its number and by its events."""
    [seq] = seqs_of(demo_run, SlowUpdateApplied, lambda event: event.epoch == 2)
    done = cli("explain", demo_run, "epoch", 2)
    assert done.code == 0
    assert f"verdict, event {seq}: epoch 2: accept new best" in done.out
    assert cli("explain", demo_run, seq, "--json").json == cli("explain", demo_run, "epoch", 2, "--json").json


def test_one_result_says_who_saw_it(cli: Cli, demo_run: Path) -> None:
    """And what came of that."""
    document = cli("explain", demo_run, "--item", "date-03", "--json").json
    first = next(result for result in document["results"] if result["place"].endswith("b0"))
    done = cli("explain", demo_run, first["seq"], "--json").json
    assert done["event"]["data"]["item"] == "date-03"
    assert [use["patch"] for use in done["uses"]] == [document["uses"][0]["patch"]]
    assert "no step led to it" in cli("explain", demo_run, 1).out


def test_an_item_is_followed(cli: Cli, demo_run: Path) -> None:
    """Results, analysts, edits and where they ended, gates."""
    state = read_state(demo_run)
    assert state.started is not None
    item = next(
        event.verdict.won[0] for event in events_of(demo_run) if isinstance(event, CandidateGated) and event.verdict.won
    )
    done = cli("explain", demo_run, "--item", item)
    assert f"item {item} of the validation split" in done.out
    assert "won by the candidate" in done.out
    train = cli("explain", demo_run, "--item", "date-03").out
    assert "e1/s1/b0/failure-0" in train
    assert "merged into" in train


# --- why-not -------------------------------------------------------------------------------------------------------


def test_why_not_has_a_reason_for_everything(cli: Cli, demo_run: Path) -> None:
    """Of the whole run, or of one step."""
    rows = cli("why-not", demo_run, "--json").json["not_taken"]
    assert {row["reason"] for row in rows} == {"ranked_out", "rejected"}
    assert all(row["detail"] and row["items"] for row in rows)
    text = cli("why-not", demo_run, "--step", 3).out
    assert [row["id"] for row in rows if row["step"] == 3] == [
        line.split()[1 if line.startswith("  rejected") else 2] for line in text.splitlines() if ": e1/s3" in line
    ]
    assert cli("why-not", demo_run, "--step", 99).code == 2


@pytest.mark.parametrize("kind", ["notes", "full_rewrite_minibatch"])
def test_notes_and_drafts_have_reasons_too(kind: str, cli: Cli, audited: Audited) -> None:
    """Whatever was proposed."""
    rows = cli("why-not", audited(kind), "--json").json["not_taken"]
    assert {"notes": "note", "full_rewrite_minibatch": "draft"}[kind] in {row["kind"] for row in rows}
    assert cli("why-not", audited(kind)).out.startswith("run: ")


# --- blame ---------------------------------------------------------------------------------------------------------


def test_blame_has_every_line_of_the_best_skill(cli: Cli, demo_run: Path) -> None:
    """With the event that wrote it."""
    state = read_state(demo_run)
    assert state.best is not None
    document = cli("blame", demo_run, "--json").json
    assert "\n".join(line["text"] for line in document["lines"]) + "\n" == state.best.skill.text
    shown = cli("blame", demo_run).out.splitlines()[2:]
    assert [line.partition("| ")[2] for line in shown] == [line["text"].rstrip() for line in document["lines"]]
    rule = next(line for line in document["lines"] if line["kind"] == "edit" and line["text"])
    with EventLog.open(demo_run) as log:
        [built] = list(log.read(after=rule["event"] - 1, until=rule["event"]))
    assert isinstance(built.event, CandidateBuilt)
    assert built.event.step == rule["step"]
    assert rule["items"]
    assert rule["won"]
    assert rule["input_tokens"] > 0


def test_blame_says_that_a_line_is_empty(cli: Cli, demo_run: Path) -> None:
    """And who wrote it."""
    lines = cli("blame", demo_run, "--json").json["lines"]
    blank = next(line for line in lines if not line["text"])
    shown = cli("blame", demo_run, "--line", blank["line"]).out.splitlines()
    assert shown[0] == f"line {blank['line']} is empty"
    assert shown[1].startswith(f"  written by event {blank['event']}: ")


def test_blame_knows_moments_files_and_single_lines(cli: Cli, demo_run: Path) -> None:
    """The current skill after a step; all that is behind a line."""
    state = read_state(demo_run, until=seqs_of(demo_run, CandidateGated, lambda event: event.step == 7)[0])
    assert state.current is not None
    then = cli("blame", demo_run, "SKILL.md", "--which", "current", "--at", "step", 7, "--json").json
    assert then["skill"] == state.current.skill.hash
    page = cli("blame", demo_run, "--line", 7).out
    for word in ("line 7: - ", "written by event", "applied: ", "merged into it: ", "analysts: ", "items: ", "gate: ",
                 "its share of"):  # fmt: skip
        assert word in page
    assert "has no line 999" in cli("blame", demo_run, "--line", 999).err
    assert "the skill has no file other.md" in cli("blame", demo_run, "other.md").err
    newest = cli("blame", "SKILL.md", "--dir", demo_run.parent)
    assert newest.out == cli("blame", demo_run).out


# --- diff and bisect -----------------------------------------------------------------------------------------------


def test_diff_is_what_two_states_differ_in(cli: Cli, demo_run: Path) -> None:
    """Skill, scores, items and counts; the other way round, too."""
    found = cli("diff", demo_run, "step", 4, "step", 6, "--json").json
    before, after = (
        read_state(demo_run, until=found_seq) for found_seq in (_end_of_step(demo_run, 4), _end_of_step(demo_run, 6))
    )
    assert before.current is not None
    assert after.current is not None
    assert found["skills"]["current"]["before"] == before.current.skill.hash
    assert found["skills"]["current"]["after"] == after.current.skill.hash
    assert found["scores"]["current"]["before"] == before.current.value
    assert found["state"]["counts.rollouts"] == [before.counts.rollouts, after.counts.rollouts]
    assert found["config"] == {}
    back = cli("diff", demo_run, "step", 6, "step", 4, "--json").json
    assert back["scores"]["current"]["won"] == found["scores"]["current"]["lost"]
    text = cli("diff", demo_run, "step 4", "step 6").out
    assert "+- Write dates as YYYY-MM-DD." in text
    same = cli("diff", demo_run, "step", 4, "step", 4).out
    assert same.count("nothing differs") == 2


def _end_of_step(folder: Path, step: int) -> int:
    [seq] = seqs_of(folder, CandidateGated, lambda event: event.step == step)
    return seq


def test_a_verdict_beside_a_text_that_was_never_measured_is_no_comparison(demo_run: Path) -> None:
    """Nothing was won or lost; a comparison in which nothing turned says so in numbers."""
    gate = next(recorded for recorded in events_of(demo_run) if isinstance(recorded, CandidateGated))
    forced = evolve(gate.verdict, action="force_accept", current_score=None, current_value=None, won=(), lost=())
    alone = evolve(gate, verdict=forced)
    assert "not compared" in in_words(alone)
    assert "won" not in in_words(alone)
    assert "won 0, lost 0 of 40" in in_words(evolve(gate, verdict=evolve(gate.verdict, won=(), lost=())))


def test_diff_knows_the_skills_of_a_run_by_name(cli: Cli, demo_run: Path) -> None:
    """Their texts and scores alone: that is what `initial` and `best` mean."""
    done = cli("diff", demo_run, "initial", "best")
    assert done.lines[:2] == ["--- demo, initial skill", "+++ demo, best skill"]
    assert done.lines[3].startswith("best skill  hard score 0.1500 -> 1.0000; won 34, lost 0 of 40")
    assert "\n+- " in done.out
    assert "config" not in done.out
    document = cli("diff", demo_run, "initial", "current", "--json").json
    assert (document["before"], document["after"]) == ("demo, initial skill", "demo, current skill")
    assert list(document["skills"]) == ["current"]


def test_diff_compares_what_was_measured_at_any_time(cli: Cli, demo_run: Path) -> None:
    """The text that an epoch ended with was measured in the next one only, as `bisect` says, too."""
    now = read_state(demo_run)
    [seq] = seqs_of(demo_run, EpochCompleted, lambda event: event.epoch == 1)
    then = read_state(demo_run, until=seq).current
    assert then is not None
    assert then.value is None
    assert now.measured[then.skill.hash].place == "e2/s5/current"
    for words in (("epoch", 1), ("step", 4, "epoch", 1)):
        score = cli("diff", demo_run, *words, "--json").json["scores"]["current"]
        assert score["compared"] == 40
        assert now.measured[then.skill.hash].value in (score["before"], score["after"])
    assert "no item was measured" not in cli("diff", demo_run, "epoch", 1).out


def test_diff_of_two_runs_names_what_was_set_otherwise(cli: Cli, audited: Audited) -> None:
    """Configs, and the rest at their ends or at a moment of each."""
    one, other = audited("plain"), audited("no gate")
    found = cli("diff", one, other, "--json").json
    assert found["config"]["evaluation.use_gate"] == [True, False]
    assert cli("diff", one, "step", 1, other, "step", 1, "--json").json["config"] == found["config"]


def test_bisect_names_the_step_and_what_is_missing(cli: Cli, demo_run: Path) -> None:
    """A validation item has a result under each text; a training item has few."""
    item = next(
        event.verdict.won[0] for event in events_of(demo_run) if isinstance(event, CandidateGated) and event.verdict.won
    )
    found = cli("bisect", demo_run, "--item", item, "--json").json
    assert found["turns"]
    assert all(turn["exact"] for turn in found["turns"])
    steps = [
        event.step for event in events_of(demo_run) if isinstance(event, CandidateGated) and item in event.verdict.won
    ]
    assert found["turns"][0]["at"] == f"step {steps[0]}"
    text = cli("bisect", demo_run, "--item", "date-03").out
    assert "no result" in text
    assert "what it did between them is not known: " in text


# --- running, damaged and newer logs, and words that fit nothing ---------------------------------------------------


@parametrized("words", ALL, ids=lambda words: "-".join(map(str, words)), by_default=3)
def test_a_run_that_goes_on_is_read_as_far_as_it_is(
    words: tuple[object, ...], cli: Cli, demo_run: Path, tmp_path: Path
) -> None:
    """At some moments, right after each other."""
    [groups, *_] = seqs_of(demo_run, MinibatchesPlanned)
    for seq in (groups, groups + 1, groups + 4, groups + 6, 200, 400):
        run = cut_off(demo_run, tmp_path / f"at-{seq}", seq)
        done = cli(*on(run, words))
        assert (done.code, done.err) == (0, ""), done.err
        assert cli(*on(run, words), "--json").code == 0


@pytest.mark.parametrize("words", ALL, ids=lambda words: "-".join(map(str, words)))
def test_damaged_logs_are_named_and_read_as_far_as_they_go(
    words: tuple[object, ...], cli: Cli, demo_run: Path, tmp_path: Path
) -> None:
    """A changed event, a missing one, a tail that was cut off: what comes before is shown, and one sentence says so."""
    last = len(events_of(demo_run))
    [gate] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 2)
    damages = {
        "gap": f"delete from events where seq = {gate}",
        "cut": f"delete from events where seq > {last - 100}",
    }
    for name, statement in damages.items():
        run = tmp_path / name
        shutil.copytree(demo_run, run)
        forge(run, statement)
        done = cli(*on(run, words))
        assert done.code == 1
        assert done.out
        said = f"event {gate} is missing" if name == "gap" else f"the log ends at event {last - 100}"
        assert said in done.err
        document = cli(*on(run, words), "--json").json
        assert said in str(document.get("problem", document.get("problems")))


def test_a_changed_event_ends_what_is_shown(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Those before it are told, and it is named."""
    run = tmp_path / "changed"
    shutil.copytree(demo_run, run)
    [gate] = seqs_of(run, CandidateGated, lambda event: event.step == 2)
    forge(run, f"update events set data = replace(data, 'won', 'lost') where seq = {gate}")
    said = f"event {gate} (CandidateGated) was changed"
    blamed = cli("blame", run, "--json")
    assert blamed.code == 1
    assert said in blamed.json["problem"]
    assert {line["step"] for line in blamed.json["lines"]} == {None, 1}
    step = cli("explain", run, "step", 2)
    assert "no verdict yet" in step.out
    assert said in step.err
    assert said in cli("diff", run, "step", 1).err
    assert cli("explain", run, "step", 1).out.splitlines()[0].endswith("accept new best; events 57 to 106")


def test_types_of_a_newer_version_are_told(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """And the rest is shown: all of it, or what comes before; where nothing is, no word says otherwise."""
    run = with_unknown_event(demo_run, tmp_path / "newer", "SomethingNew")
    last = seqs_of(demo_run, Event)[-1] + 1
    done = cli("blame", run)
    assert done.code == 1
    assert "of a type this software does not know (SomethingNew)" in done.err
    assert done.out.splitlines()[1:] == cli("blame", demo_run).out.splitlines()[1:]
    assert "does not know" in cli("diff", run, "step", 1).err
    assert "; they are left out here\n  a newer version wrote it; use a newer skillopt-es" in done.err
    cut, refused = cli("replay", run), cli("export", run, tmp_path / "events", "--format", "jsonl")
    assert f"; what is shown ends before event {last}\n" in cut.err
    listed = cli("log", run, "--last", 3)
    assert listed.code == 1
    for other in (cut, refused, listed):
        assert ("use a newer skillopt-es" in other.err, "left out" in other.err) == (True, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explain", "RUN", "step", 40), "has no step 40: it is a run of 12 steps"),
        (("explain", "RUN", "epoch", 9), "has no epoch 9: it is a run of 3 epochs"),
        (("explain", "RUN", 99999), "has no event 99999"),
        (("explain", "RUN", "event", 99999), "has no event 99999"),
        (("explain", "RUN", "candidate", "nothex"), "has no skill whose hash begins with nothex"),
        (("explain", "RUN", "what"), "has nothing called what"),
        (("explain", "RUN", "step", "x"), "x is not the number of a step"),
        (("explain", "RUN", "--item", "dat-03"), "did you mean date-03"),
        (("explain",), "explain what?"),
        (("explain", "a", "b", "c"), "explain takes a run and what to explain"),
        (("explain", "nowhere", "step", 1), "there is no run nowhere"),
        (("bisect", "RUN", "--item", "nix"), "has no item nix"),
        (("bisect", "RUN"), "Missing option"),
        (("blame", "nowhere"), "there is no run nowhere"),
        (("blame", "RUN", "--at", "step", 13), "has no step 13"),
        (("diff", "RUN"), "diff takes two moments"),
        (("diff", "RUN", "step", 1, "step", 13), "has no step 13"),
        (("diff", "step"), "diff takes two moments"),
        (("why-not", "nowhere"), "there is no run nowhere"),
    ],
)
def test_words_that_fit_nothing_are_told_what_would(
    words: tuple[object, ...], said: str, cli: Cli, demo_run: Path
) -> None:
    """In one sentence, with exit code 2."""
    done = cli(*(demo_run if word == "RUN" else word for word in words))
    assert done.code == 2
    assert said in done.err
    assert not done.out


def test_a_step_that_is_not_reached_says_how_far_the_run_is(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Whatever is asked about it."""
    [gate] = seqs_of(demo_run, CandidateGated, lambda event: event.step == 2)
    run = cut_off(demo_run, tmp_path / "part", gate)
    assert "step 2 of 12 is the last that it has reached" in cli("explain", run, "step", 5).err
    assert "the last step that ended is 2 of 12" in cli("blame", run, "--at", "step", 5).err
    assert "the last step that ended is 2 of 12" in cli("diff", run, "step", 1, "step", 5).err
    assert "no epoch has one" in cli("explain", run, "epoch", 1).err


def test_a_hash_that_fits_more_than_one_is_told(cli: Cli, demo_run: Path) -> None:
    """Rather than one of them shown."""
    firsts = [event.candidate.hash[0] for event in events_of(demo_run) if isinstance(event, CandidateBuilt)]
    twice = next(first for first in firsts if firsts.count(first) > 1)
    done = cli("explain", demo_run, "candidate", twice)
    assert done.code == 2
    assert f"{twice} is the beginning of" in done.err


@pytest.mark.parametrize("words", ALL, ids=lambda words: "-".join(map(str, words)))
def test_a_file_whose_later_pages_are_lost_is_read_up_to_them(
    words: tuple[object, ...], cli: Cli, demo_run: Path, tmp_path: Path
) -> None:
    """One event after the other, since all at once cannot be had; and what is not there is not just called missing."""
    run = tmp_path / "short"
    shutil.copytree(demo_run, run)
    with (run / "log.db").open("r+b") as file:
        size = file.seek(0, SEEK_END)
        half = file.seek(size // 2 // 4096 * 4096)
        file.write(bytes(size - half))
    done = cli(*on(run, words))
    assert done.code == 1
    assert "pages are malformed" in done.err
    assert done.out.startswith(("demo: ", "--- demo, "))
    beyond = cli("explain", run, "step", 12)
    assert (beyond.code, beyond.out) == (1, "")
    assert "pages are malformed" in beyond.err
