"""`export` of a skill to a folder that agents load, and `verify --export` against files and logs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.audited import MOST_SLOW, Audited
from support.exchange import imported
from support.in_process import Cli
from support.original_folder import whole
from support.params import parametrized

from skillopt_es.deploy.check import check_export
from skillopt_es.deploy.evidence import facts_of
from skillopt_es.deploy.folder import skill_folder
from skillopt_es.errors import OutputRefused
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree
from skillopt_es.sessions.session import read_state


@pytest.fixture
def folder(cli: Cli, demo_run: Path, tmp_path: Path) -> Path:
    """The demo's best skill, exported."""
    out = tmp_path / "front-desk"
    done = cli("export", demo_run, f"{out}/")
    assert done.code == 0, done.err
    assert done.lines == [str(out / "SKILL.md"), str(out / "PROVENANCE.json")]
    return out


def document(folder: Path) -> Any:
    """What the folder says of where it comes from."""
    return json.loads((folder / "PROVENANCE.json").read_text(encoding="utf-8"))


def test_the_body_is_the_text_that_was_measured(folder: Path, demo_run: Path) -> None:
    """Its hash is computed from the files alone, as the document says."""
    state = read_state(demo_run)
    assert state.best is not None
    said = document(folder)
    head, content = said["folder"]["frontmatter"], (folder / "SKILL.md").read_bytes()
    measured = head["measured"].encode() + content[head["bytes"] :]
    assert measured == state.best.skill.text.encode()
    row = f"{sha256(measured).hexdigest()} SKILL.md\n"
    assert sha256(row.encode()).hexdigest() == said["facts"]["skill"]["hash"] == state.best.skill.hash


def test_the_evidence_is_the_logs(folder: Path, demo_run: Path) -> None:
    """Chain head, data, verdict, scores with n, and the way through the lineage."""
    facts = document(folder)["facts"]
    with EventLog.open(demo_run) as log:
        head, records = log.head(), {each.seq: each for each in log.read()}
        assert facts["run"]["id"] == log.run.run_id
    assert facts["log"] == {"seq": head.seq, "hash": head.hash}
    assert {name: split["items"] for name, split in facts["data"].items()} == {"train": 48, "val": 40, "test": 40}
    gate = facts["gate"]
    assert records[gate["event"]["seq"]].hash == gate["event"]["hash"]
    assert (gate["action"], gate["candidate"]["hard"], gate["won"], gate["lost"]) == ("accept_new_best", 1.0, 2, 0)
    assert {(score["split"], score["hard"], score["n"]) for score in facts["scores"]} >= {
        ("val", 1.0, 40),
        ("test", 0.975, 40),
    }
    assert facts["made"]["node"] == "step 12"
    assert facts["made"]["ancestors"][0] == "start"


def test_nothing_of_the_settings_and_items_is_told(folder: Path) -> None:
    """Only digests, counts and names of models."""
    text = (folder / "PROVENANCE.json").read_text(encoding="utf-8")
    assert "simulated-target" in text
    for secret in ("base_url", "api_key", "date-08", "tasks.jsonl"):
        assert secret not in text


def test_an_export_is_the_same_each_time(cli: Cli, folder: Path, demo_run: Path) -> None:
    """Byte for byte; over an earlier one only with --force."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused = cli("export", demo_run, folder)
    assert (refused.code, "exists already" in refused.err) == (2, True)
    assert cli("export", demo_run, folder, "--force").code == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_name_makes_a_folder_of_it(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Unless OUT has that name already."""
    words = ("--name", "desk", "--description", "At the desk.")
    assert cli("export", demo_run, tmp_path, *words).lines[0] == str(tmp_path / "desk" / "SKILL.md")
    assert cli("export", demo_run, tmp_path / "desk", *words, "--force").lines[0] == str(tmp_path / "desk" / "SKILL.md")
    assert document(tmp_path / "desk")["folder"]["frontmatter"]["description_by"] == "option"
    wrong = cli("export", demo_run, tmp_path, "--name", "Desk 1")
    assert (wrong.code, "'Desk 1' is not a name for a skill" in wrong.err) == (2, True)
    assert "are for the folder of a skill" in cli("export", demo_run, tmp_path / "x.md", *words).err
    assert (
        "go with --format skill, not with jsonl"
        in cli("export", demo_run, tmp_path / "x", *words, "--format", "jsonl").err
    )


@pytest.mark.parametrize("kind", MOST_SLOW)
@parametrized("which", ["best", "current", "initial"], by_default=1)
def test_any_skill_of_any_run_is_vouched_for(cli: Cli, audited: Audited, tmp_path: Path, kind: str, which: str) -> None:
    """Candidates, guidance, notes and rewrites, gated or not."""
    run = audited(kind)
    out = tmp_path / "some-skill"
    done = cli("export", run, f"{out}/", "--which", which, "--description", "What it does.")
    assert done.code == 0, done.err
    out = Path(done.lines[0]).parent  # a skill that has a name of its own gets a folder of it
    checked = cli("verify", run, "--export", out, "--json").json
    assert (checked["ok"], checked["problems"]) == (True, [])
    facts = document(out)["facts"]
    assert (facts["gate"] is None) == bool(facts["ungated"])


def test_every_moment_of_a_run_is_vouched_for(demo_run: Path) -> None:
    """The facts of an event never depend on what came after it."""
    with EventLog.open(demo_run) as log:
        seqs = [each.seq for each in log.read(types=("CandidateGated", "SlowUpdateApplied", "EpochCompleted"))]
        for seq in seqs:
            skill, facts = facts_of(log, "current", seq)
            assert facts.skill.hash == skill.hash
            assert facts.log.seq == seq
            assert facts.made.event.seq <= seq


def test_an_imported_run_is_vouched_for(tmp_path: Path) -> None:
    """As far as its folder had the facts."""
    imported(whole(tmp_path / "theirs"), tmp_path / "run")
    with EventLog.open(tmp_path / "run") as log:
        skill, facts = facts_of(log, "best")
        built = skill_folder(skill, facts, "theirs", "What it does.")
        written(built.files, tmp_path / "theirs-skill" / "theirs")
        assert check_export(tmp_path / "theirs-skill" / "theirs", log).problems == ()


def written(files: Any, folder: Path) -> Path:
    """The files on disk."""
    for path, each in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(each.content)
    return folder


# --- trees -----------------------------------------------------------------------------------------------------------


def test_other_files_of_a_tree_stand_beside_it(demo_run: Path, tmp_path: Path) -> None:
    """The main file becomes SKILL.md whatever it was called; its measured path stays on record."""
    tree = SkillTree({"desk.md": "# Desk\n\nWords.\n", "references/codes.md": "A1\n"}, main="desk.md")
    with EventLog.open(demo_run) as log:
        _, facts = facts_of(log, "best")
    facts = with_skill(facts, tree)
    built = skill_folder(tree, facts, "desk", None)
    assert sorted(built.files) == ["PROVENANCE.json", "SKILL.md", "references/codes.md"]
    assert check_export(written(built.files, tmp_path / "desk"), None).problems == ()


@pytest.mark.parametrize("path", ["../up.md", "/etc/x", "PROVENANCE.json", "SKILL.md"])
def test_a_tree_that_does_not_fit_into_the_folder_is_refused(demo_run: Path, path: str) -> None:
    """Nothing points outside of it, nothing is written twice."""
    tree = SkillTree({"desk.md": "# Desk\n\nWords.\n", path: "x"}, main="desk.md")
    with EventLog.open(demo_run) as log:
        _, facts = facts_of(log, "best")
    with pytest.raises(OutputRefused, match="the skill has"):
        skill_folder(tree, with_skill(facts, tree), "desk", None)


def with_skill(facts: Any, tree: SkillTree) -> Any:
    """Facts of another tree."""
    from attrs import evolve

    files = {path: sha256(text.encode()).hexdigest() for path, text in tree.files.items()}
    return evolve(facts, skill=evolve(facts.skill, hash=tree.hash, main=tree.main, files=files))


# --- verify ----------------------------------------------------------------------------------------------------------


def test_without_a_log_it_says_what_cannot_be_told(cli: Cli, folder: Path) -> None:
    """And checks the rest."""
    done = cli("verify", "--export", folder)
    assert done.code == 0
    assert done.lines[0].startswith("front-desk: ok; skill 9a80127c1df0")
    assert "without the log it cannot be told" in done.lines[1]


def _edit(change: Callable[[Any], None]) -> Callable[[Path], None]:
    def edited(folder: Path) -> None:
        said = document(folder)
        change(said)
        (folder / "PROVENANCE.json").write_text(json.dumps(said), encoding="utf-8")

    return edited


def _rewrite(folder: Path) -> None:
    """A liar changes a rule and all the digests that are in the folder."""
    file = folder / "SKILL.md"
    file.write_text(file.read_text(encoding="utf-8").replace("12.5%", "12.6%"), encoding="utf-8")
    said = document(folder)
    measured = file.read_bytes()[said["folder"]["frontmatter"]["bytes"] :]
    said["folder"]["files"][0]["sha256"] = sha256(file.read_bytes()).hexdigest()
    digest = said["facts"]["skill"]["files"]["SKILL.md"] = sha256(measured).hexdigest()
    said["facts"]["skill"]["hash"] = sha256(f"{digest} SKILL.md\n".encode()).hexdigest()
    (folder / "PROVENANCE.json").write_text(json.dumps(said), encoding="utf-8")


def _append(folder: Path) -> None:
    with (folder / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("x")


def _first(path: str, value: object) -> Callable[[Path], None]:
    *parents, last = path.split(".")

    def change(said: Any) -> None:
        at = said
        for key in parents:
            at = at[int(key) if key.isdigit() else key]
        at[last] = value

    return _edit(change)


LIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "changed": (_append, "SKILL.md was changed after it was exported"),
    "missing": (lambda folder: (folder / "SKILL.md").unlink(), "SKILL.md is missing"),
    "mode": (lambda folder: (folder / "SKILL.md").chmod(0o755), "SKILL.md can be run, unlike when it was exported"),
    "more": (lambda folder: (folder / "extra.sh").write_text("x"), "extra.sh was not exported"),
    "a link": (
        lambda folder: ((folder / "SKILL.md").unlink(), (folder / "SKILL.md").symlink_to("/etc/hostname")),  # type: ignore[dict-item,return-value,func-returns-value]
        "SKILL.md is not a plain file",
    ),
    "score": (_first("facts.gate.candidate.hard", 0.5), "gate.candidate.hard is 0.5 in PROVENANCE.json, and 1.0 in"),
    "won": (_first("facts.gate.won", 3), "gate.won is 3 in PROVENANCE.json, and 2 in the log"),
    "head": (_first("facts.log.hash", "0" * 64), "log.hash is '000"),
    "later": (_first("facts.log.seq", 99999), "it names event 99999, and demo ends at event 1023"),
    "run": (_first("facts.run.id", "beef"), "it belongs to run demo (beef), and demo is"),
    "data": (_first("facts.data.val.digest", "x"), "data.val.digest is 'x'"),
    "made": (_first("facts.made.event.seq", 7), "made.event.seq is 7"),
    "rewritten": (_rewrite, "skill.files.SKILL.md is"),
    "body": (_first("folder.frontmatter.bytes", 7), "the text of SKILL.md is not the one that was measured"),
}


@parametrized("lie", LIES, by_default=5)
def test_the_first_difference_is_named(cli: Cli, folder: Path, demo_run: Path, lie: str) -> None:
    """Whatever was changed in files or claims."""
    change, said = LIES[lie]
    change(folder)
    report = cli("verify", demo_run, "--export", folder, "--json")
    assert report.code == 1
    assert said in report.json["problems"][0]
    assert "NOT what was exported" in cli("verify", demo_run, "--export", folder).lines[0]


def test_a_folder_that_was_renamed_is_told(cli: Cli, folder: Path) -> None:
    """Agents ask for the same name."""
    folder.rename(folder.with_name("other"))
    assert cli("verify", "--export", folder.with_name("other"), "--json").json["problems"] == [
        "the folder is called other, but its skill front-desk"
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "has no PROVENANCE.json that can be read"),
        ("{", "is not JSON"),
        ("[]", "was not written by skillopt-es"),
        ('{"format": "skillopt-es provenance", "version": 2}', "has version 2, and this software knows 1"),
        ('{"format": "skillopt-es provenance", "version": 1}', "is not what was written"),
    ],
)
def test_what_is_no_export_is_refused(cli: Cli, folder: Path, content: str | None, said: str) -> None:
    """In a sentence, as wrong usage."""
    (folder / "PROVENANCE.json").unlink()
    if content is not None:
        (folder / "PROVENANCE.json").write_text(content, encoding="utf-8")
    done = cli("verify", "--export", folder)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_fork_vouches_for_what_it_shares(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """The parent may be gone; what the parent did later is not the fork's."""
    shutil.copytree(demo_run, tmp_path / "runs" / "demo")
    runs = tmp_path / "runs"
    assert cli("fork", "demo", "--until", "step", 6, "--name", "other", "--dir", runs).code == 0
    assert cli("export", demo_run, f"{tmp_path}/early/", "--at", "step", 5).code == 0
    assert cli("export", demo_run, f"{tmp_path}/late/").code == 0
    done = cli("verify", "other", "--dir", runs, "--export", tmp_path / "early")
    assert done.code == 0, done.out
    assert "is a fork of the run" in done.out
    assert cli("verify", "other", "--dir", runs, "--export", tmp_path / "late").code == 1
    assert cli("export", "other", f"{tmp_path}/forked/", "--dir", runs).code == 0
    assert cli("verify", "other", "--dir", runs, "--export", tmp_path / "forked").code == 0
    [fork] = document(tmp_path / "forked")["facts"]["run"]["forked_from"]
    assert fork["run"] == "demo"


def test_evidence_that_was_taken_out_is_told(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """A fork says how many items it goes on without; what was exported before an erasure is still vouched for."""
    runs = tmp_path / "runs"
    shutil.copytree(demo_run, runs / "demo")
    assert cli("export", "demo", f"{tmp_path}/before/", "--dir", runs).code == 0
    words = ("--item", "date-03", "--reason", "a wrong label", "--dir", runs)
    assert cli("retract", "demo", *words, "--apply", "--name", "mended").code == 0
    assert cli("export", "mended", f"{tmp_path}/mended/", "--dir", runs).code == 0
    assert document(tmp_path / "mended")["facts"]["run"]["by_hand"]["left_out"] == {"train": 1}
    assert cli("retract", "demo", *words, "--erase").code == 0
    assert cli("verify", "demo", "--dir", runs, "--export", tmp_path / "before").code == 0


def test_a_name_without_a_suffix_is_a_folder(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """As its user expects of a skill; a file that is there without a suffix stays one, and a text has its suffix."""
    folder, file = tmp_path / "out" / "triage-skill", tmp_path / "SKILL.md"
    assert cli("export", demo_run, folder).code == 0
    assert cli("verify", demo_run, "--export", folder).code == 0
    assert cli("export", demo_run, file).code == 0
    done = cli("verify", demo_run, "--export", file)
    assert (done.code, "SKILL.md is a file" in done.err) == (2, True), done.err
    (tmp_path / "notes").write_text("mine")
    done = cli("export", demo_run, tmp_path / "notes")
    assert (done.code, "exists already" in done.err) == (2, True), done.err
    assert (tmp_path / "notes").read_text() == "mine"
