"""Every line has one maker, and that event wrote its text; kept and moved lines keep theirs, also through rewrites."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from support.audited import MOST_SLOW, REWRITING, Audited, records_of
from support.exchange import imported
from support.in_process import called
from support.original_folder import whole
from support.params import parametrized

from skillopt_es.audit.blame import (
    BLAME_TYPES,
    Attributed,
    Blame,
    Maker,
    blame,
    blamed_lines,
    calls_behind,
    slots_behind,
)
from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import (
    AppendixWritten,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    Event,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    RunStarted,
    SkillRewritten,
    SlowUpdateApplied,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import (
    CallRef,
    Edit,
    EditOp,
    EditReport,
    GateAction,
    GateVerdict,
    Rewrite,
    Score,
    SkillTree,
    SplitIds,
    Suggestion,
)
from skillopt_es.projections.usage import Tally, UsageSums, usage_of
from skillopt_es.skill.alignment import align, lines_of
from skillopt_es.skill.appendix import clean_note
from skillopt_es.skill.edits import apply_edits

SCORE = Score(hard=0.5, soft=0.5, measured=1)


def blamed(records: list[Recorded]) -> Blame:
    """The blame of what was recorded."""
    found = blame(records)
    assert found is not None
    return found


def told(records: list[Recorded]) -> list[Recorded]:
    """The events that blame reads."""
    return [record for record in records if type(record.event).__name__ in BLAME_TYPES]


def texts_of(record: Recorded) -> SkillTree:
    """The skill that an event wrote."""
    event = record.event
    match event:
        case RunStarted() | AppendixWritten() | SlowUpdateApplied():
            return event.skill
        case CandidateBuilt():
            return event.candidate
    raise AssertionError(f"{event} writes no text")


def check(text: Attributed, records: list[Recorded]) -> None:
    """Every line has a maker whose event has that very line."""
    by_seq = {record.seq: record for record in records}
    assert text.makers.keys() == text.skill.files.keys()
    for file, makers in text.makers.items():
        lines = lines_of(text.skill.files[file])
        assert len(makers) == len(lines)
        for maker, line in zip(makers, lines, strict=True):
            assert line in lines_of(texts_of(by_seq[maker.seq]).files[file])


@pytest.mark.parametrize("kind", MOST_SLOW)
def test_texts_are_those_of_the_state_after_every_event(kind: str, audited: Audited) -> None:
    """At any moment of a run, with all its lines written by the events that they name."""
    records = records_of(audited(kind))
    told_of = told(records)
    for count in range(1, len(told_of) + 1, 7):
        found = blamed(told_of[:count])
        state = fold(record.event for record in records[: told_of[count - 1].seq])
        assert state.current is not None
        assert state.best is not None
        assert (found.current.skill, found.best.skill) == (state.current.skill, state.best.skill)
        check(found.current, records)
        check(found.best, records)


@pytest.mark.parametrize("kind", ["plain", "guidance at a gate", "no gate", "autonomous"])
def test_every_rule_is_of_the_edit_that_added_it(kind: str, audited: Audited) -> None:
    """The scripted optimizer adds each rule once, as a line of its own."""
    records = records_of(audited(kind))
    found = blamed(records)
    rules = 0
    for line, maker in zip(lines_of(found.current.skill.text), found.current.makers["SKILL.md"], strict=True):
        if not line.startswith(("- know", "- spoil")):
            continue
        rules += 1
        assert maker.kind == "edit"
        assert maker.step is not None
        chain = found.chains[maker.step]
        assert [chain.proposals[name].content for name in maker.proposals] == [line]  # type: ignore[union-attr]
        assert chain.taken
        assert chain.built is not None
        assert chain.built.seq == maker.seq
    assert rules >= 3


@pytest.mark.parametrize("kind", ["notes", "notes after the verdict"])
def test_a_note_is_of_the_patch_that_proposed_it(kind: str, audited: Audited) -> None:
    """Whether it went in with a candidate or after the verdict."""
    found = blamed(records_of(audited(kind)))
    notes = [(line, maker) for line, maker in zip(lines_of(found.current.skill.text),
             found.current.makers[found.current.skill.main], strict=True) if maker.kind == "notes"]  # fmt: skip
    assert notes
    for line, maker in notes:
        if not line.startswith("- "):
            continue
        assert maker.step is not None
        [patch] = maker.patches
        assert clean_note(line) in map(clean_note, found.chains[maker.step].patches[patch].event.notes)


def test_guidance_is_of_its_epoch(audited: Audited) -> None:
    """The last guidance that was taken, by the event that put it in."""
    records = records_of(audited("plain"))
    found = blamed(records)
    last = [record for record in records if isinstance(record.event, SlowUpdateApplied) and record.event.guidance][-1]
    assert isinstance(last.event, SlowUpdateApplied)
    pairs = zip(lines_of(found.current.skill.text), found.current.makers["SKILL.md"], strict=True)
    [maker] = [maker for line, maker in pairs if line == last.event.guidance]
    assert (maker.kind, maker.seq, maker.epoch) == ("guidance", last.seq, last.event.epoch)
    assert calls_behind(found, maker)


@pytest.mark.parametrize("kind", REWRITING)
def test_a_rewrite_keeps_the_makers_of_nearly_all_lines_that_survive_it(kind: str, audited: Audited) -> None:
    """At least nine in ten, each time that a whole new text was taken."""
    records = records_of(audited(kind))
    rewrites = 0
    for record in records:
        if not isinstance(record.event, CandidateGated) or record.event.verdict.action == "reject":
            continue
        before, after = blamed(records[: record.seq - 1]).current, blamed(records[: record.seq]).current
        rewrites += 1
        assert kept_share(before, after) >= 0.9
    assert rewrites >= 2


def kept_share(before: Attributed, after: Attributed) -> float:
    """How many of the lines (not blank) that stand in both texts have a maker that they had before."""
    old, new = labelled(before), labelled(after)
    lines_old, lines_new = (Counter(line for line, _ in pairs.elements()) for pairs in (old, new))
    survive = (lines_old & lines_new).total()
    return (old & new).total() / survive if survive else 1.0


def labelled(text: Attributed) -> Counter[tuple[str, Maker]]:
    """Each line that is not blank with its maker."""
    lines = lines_of(text.skill.text)
    return Counter((line, maker) for line, maker in zip(lines, text.makers[text.skill.main], strict=True)
                   if line.strip())  # fmt: skip


class Script:
    """Events of a run, made by hand."""

    def __init__(self, text: str, *, close_gaps: bool = False) -> None:
        self.close_gaps = close_gaps
        self.records: list[Recorded] = []
        self.skill = SkillTree(files={"SKILL.md": text})
        self.step = 0
        splits = SplitIds(train=(), val=(), test=(), digests={})
        self.add(RunStarted(software="x", config={}, algorithm="classic", folder=".", skill=self.skill, splits=splits,
                            steps_per_epoch=2, total_steps=50))  # fmt: skip

    def add(self, event: Event) -> int:
        """Records an event; its number."""
        self.records.append(Recorded(seq=len(self.records) + 1, recorded_at="", event=event, hash="", prev_hash=""))
        return len(self.records)

    def edits(self, *edits: Edit, taken: bool = True) -> int:
        """A step that applies edits; the number of the event that built its candidate."""
        self.step += 1
        patch = f"e1/s{self.step}/b0/failure-0"
        named = [evolve(edit, id=f"{patch}#{at}", origins=(patch,)) for at, edit in enumerate(edits, start=1)]
        call = CallRef(slot=patch, digest="")
        self.add(PatchProposed(patch=patch, step=self.step, kind="failure", items=(f"t{self.step}",), result="edits",
                               edits=tuple(named), calls=(call,)))  # fmt: skip
        ids = tuple(edit.id for edit in named)
        self.add(EditsRanked(step=self.step, budget=len(ids), pool=ids, chosen=ids))
        candidate, reports = apply_edits(self.skill, named, close_gaps=self.close_gaps)
        return self._judged(candidate, CandidateBuilt(step=self.step, parent=self.skill.hash, candidate=candidate,
                            reports=reports, gaps_closed=self.close_gaps), taken=taken)  # fmt: skip

    def rewrite(self, text: str) -> int:
        """A step that writes the whole text anew."""
        self.step += 1
        patch = f"e1/s{self.step}/b0/failure-0"
        suggestion = Suggestion(f"{patch}#1", "reorganize", "tidy up", origins=(patch,))
        self.add(PatchProposed(patch=patch, step=self.step, kind="failure", items=("t",), result="suggestions",
                               suggestions=(suggestion,)))  # fmt: skip
        self.add(SkillRewritten(step=self.step, result="written", text=text))
        candidate = self.skill.with_text(text)
        built = CandidateBuilt(step=self.step, parent=self.skill.hash, candidate=candidate,
                               reports=(EditReport(suggestion.id, "applied_rewrite"),),
                               rewrite=Rewrite(kept=align(self.skill.text, text)))  # fmt: skip
        return self._judged(candidate, built, taken=True)

    def _judged(self, candidate: SkillTree, built: CandidateBuilt, *, taken: bool) -> int:
        seq = self.add(built)
        action: GateAction = "accept_new_best" if taken else "reject"
        verdict = GateVerdict(action=action, new_best=taken, metric="hard", candidate_score=SCORE, candidate_value=0.5,
                              current_score=SCORE, current_value=0.5, best_value=0.5, compared=1)  # fmt: skip
        self.add(CandidateGated(step=self.step, candidate=candidate.hash, verdict=verdict))
        if taken:
            self.skill = candidate
        return seq

    @property
    def seqs(self) -> list[tuple[int, str]]:
        """The event of each line, beside the line."""
        current = blamed(self.records).current
        return [(maker.seq, line) for maker, line in zip(current.makers["SKILL.md"], lines_of(current.skill.text),
                strict=True) if line.strip()]  # fmt: skip


def test_edits_in_place_deletes_and_refused_steps() -> None:
    """Each line is of the last event that wrote its text; what was refused wrote nothing."""
    script = Script("# A\n- one\n- two\n")
    first = script.edits(Edit("", "append", "- three"), Edit("", "insert_after", "- one and a half", target="- one"))
    script.edits(Edit("", "append", "- never"), taken=False)
    second = script.edits(Edit("", "replace", "- 3", target="- three"), Edit("", "delete", target="- two\n"))
    assert script.seqs == [(1, "# A"), (1, "- one"), (first, "- one and a half"), (second, "- 3")]


def test_a_line_beside_a_closed_gap_keeps_its_maker() -> None:
    """The edits are followed by the rule that the candidate was made by."""
    script = Script("# A\n\n- one\n\n- two\n\n- three\n", close_gaps=True)
    edited = script.edits(Edit("", "delete", target="- two"), Edit("", "insert_after", "- four", target="- three"))
    assert script.skill.text == "# A\n\n- one\n\n- three\n\n- four\n"
    assert script.seqs == [(1, "# A"), (1, "- one"), (1, "- three"), (edited, "- four")]


def test_lines_that_a_rewrite_moves_keep_their_makers() -> None:
    """Sections that change places, with one new line among them."""
    script = Script("# A\n- one\n- two\n\n# B\n- three\n")
    edited = script.edits(Edit("", "append", "- four"))
    rewritten = script.rewrite("# B\n- three\n- four\n- five\n\n# A\n- one\n- two\n")
    assert script.seqs == [(1, "# B"), (1, "- three"), (edited, "- four"), (rewritten, "- five"),
                           (1, "# A"), (1, "- one"), (1, "- two")]  # fmt: skip


LINES = st.sampled_from(["- a", "- b", "- a\n- c", "# d", "", "e f", "- b\n\n- g"])
OPS: list[EditOp] = ["append", "insert_after", "replace", "delete"]
EDITS = st.builds(lambda op, content, target: Edit("", op, content, target), st.sampled_from(OPS), LINES, LINES)
STEPS = st.lists(st.tuples(st.lists(EDITS, min_size=1, max_size=4), st.booleans()), max_size=6)


@given(st.lists(LINES, max_size=5).map("\n".join), STEPS, st.booleans())
def test_after_any_edits_every_line_is_of_the_event_that_wrote_it(
    text: str, steps: list[tuple[list[Edit], bool]], close_gaps: bool
) -> None:
    """One maker a line; the line stands in that event's text, and only events that were taken are named."""
    script = Script(text, close_gaps=close_gaps)
    taken = {1} | {seq for edits, take in steps if (seq := script.edits(*edits, taken=take)) and take}
    found = blamed(script.records)
    assert found.current.skill == script.skill
    check(found.current, script.records)
    assert {maker.seq for maker in found.current.makers["SKILL.md"]} <= taken
    for line, maker in zip(lines_of(script.skill.text), found.current.makers["SKILL.md"], strict=True):
        if maker.kind == "edit" and maker.step is not None and line.strip():
            applied = [found.chains[maker.step].proposals[name] for name in maker.proposals]
            assert any(part in line for edit in applied for part in _words(edit))


def _words(edit: object) -> Iterator[str]:
    assert isinstance(edit, Edit)
    yield from (part for part in edit.content.split("\n") if part.strip())
    if not edit.content.strip() or edit.op in ("delete", "replace"):
        yield ""  # what is left of a line that lost a part is new, too


@given(STEPS)
def test_the_shares_of_all_lines_ever_written_are_the_calls_that_led_to_any(
    steps: list[tuple[list[Edit], bool]],
) -> None:
    """Nothing is counted twice, and nothing gets lost."""
    script = Script("# A\n")
    for edits, take in steps:
        script.edits(*edits, taken=take)
    found = blamed(script.records)
    spent = UsageSums(calls=1, input=Tally(700, 0, 1), output=Tally(0, 1, 0))
    usage = dict.fromkeys(slots_behind(found), spent)
    total = 0.0
    for maker, count in found.lines_written.items():
        line = SkillTree(files={"SKILL.md": "x"})
        [row] = blamed_lines(found, Attributed(skill=line, makers={"SKILL.md": (maker,)}), "SKILL.md", usage)
        assert row.behind.cost.output is None
        total += (row.behind.cost.input or 0.0) * count
    assert total == pytest.approx(700 * len(usage))


def test_shares_come_from_the_journal(audited: Audited) -> None:
    """Of a real run: no more than the optimizer's calls, and something for each rule."""
    folder = audited("plain")
    found = blamed(records_of(folder))
    with EventLog.open(folder) as log:
        journal = Journal(log.reader)
        usage = {slot: usage_of(journal.attempts(slot)).total for slot in slots_behind(found)}
        asked = sum(row.call.input_tokens or 0 for row in journal.read() if row.call.role == "optimizer")
    lines = blamed_lines(found, found.best, "SKILL.md", usage)
    assert 0 < sum(line.behind.cost.input or 0.0 for line in lines) <= asked
    for line in lines:
        assert (line.behind.cost.input is not None) == bool(line.text.strip() and calls_behind(found, line.maker))
        assert bool(line.behind.items) == bool(line.maker.proposals or calls_behind(found, line.maker))


def _no_results(folder: Path) -> None:
    for path in folder.rglob("results.jsonl"):
        path.unlink()


def _no_edits(folder: Path) -> None:
    for path in [*folder.glob("steps/*/merged_patch.json"), *folder.glob("steps/*/patches/*")]:
        path.unlink()


def _no_first_step(folder: Path) -> None:
    shutil.rmtree(folder / "steps/step_0001")
    rows = json.loads((folder / "history.json").read_text())
    (folder / "history.json").write_text(json.dumps(rows[1:]))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "whole": lambda folder: None,
    "no results": _no_results,
    "no edits": _no_edits,
    "no first step": _no_first_step,
}


@parametrized("damage", DAMAGES, by_default=2)
def test_an_imported_run_is_told_as_far_as_it_is_known(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each text, after each event; what nobody recorded is of the event that found the text there."""
    folder = whole(tmp_path / "results")
    DAMAGES[damage](folder)
    imported(folder, tmp_path / "run")
    records = records_of(tmp_path / "run")
    for count in range(1, len(records) + 1):
        found, state = blamed(records[:count]), fold(record.event for record in records[:count])
        assert state.current is not None
        assert state.best is not None
        assert (found.current.skill, found.best.skill) == (state.current.skill, state.best.skill)
    items = [record.event.item for record in records if isinstance(record.event, RolloutCompleted)]
    assert bool(items) == (damage != "no results")
    cli = called(capsys)
    for words in (("blame",), ("why-not",), ("explain", "step", 2), ("explain", "epoch", 2), ("diff", "step", 2)):
        assert cli(words[0], tmp_path / "run", *words[1:]).code == 0
    for item in items[:1]:
        assert cli("explain", tmp_path / "run", "--item", item).code == 0
        assert cli("bisect", tmp_path / "run", "--item", item).code == 0
    assert "has no result of an item nix" in cli("bisect", tmp_path / "run", "--item", "nix").err
