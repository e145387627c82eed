"""`install` and `uninstall`: in and out again so that all is as it was, whatever was there and whenever it dies."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.in_process import Cli
from support.params import parametrized

from skillopt_es.deploy import install as installing
from skillopt_es.deploy.folder import RECEIPT
from skillopt_es.deploy.install import STORE, install, uninstall
from skillopt_es.deploy.places import skills_folder
from skillopt_es.deploy.receipt import Receipt
from skillopt_es.errors import OutputRefused
from skillopt_es.events.values import FileContent, digest_of

Tree = dict[str, str]


def receipt(files: Mapping[str, str]) -> Receipt:
    """For a skill called `desk`."""
    digests = {path: digest_of(text.encode()) for path, text in files.items()}
    return Receipt(name="desk", run_id="r", skill="s", seq=1, backup=False, files=digests)


OURS = {"SKILL.md": "ours", "references/a.md": "a"}
NEWER = {"SKILL.md": "newer"}


def put(skills: Path, files: Mapping[str, str] = OURS, *, force: bool = False) -> installing.Installed:
    """Installs a skill called `desk`."""
    contents = {path: FileContent(text.encode()) for path, text in files.items()}
    return install(skills, receipt(files), contents, force=force)


def seen(folder: Path) -> Tree:
    """All that an agent can find, links as such, receipts left out."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] == STORE or path.name == RECEIPT:
            continue
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text(encoding="utf-8")
    return found


def as_desk(files: Mapping[str, str]) -> Tree:
    """What is seen once these are installed."""
    return {f"desk/{path}": text for path, text in files.items()}


# --- what may be there -----------------------------------------------------------------------------------------------


def nothing(skills: Path) -> None:
    """A place that is free, below a folder that is not there yet."""


def a_skill(skills: Path) -> None:
    """Somebody's own."""
    (skills / "desk" / "deep").mkdir(parents=True)
    (skills / "desk" / "SKILL.md").write_text("theirs")
    (skills / "desk" / "deep" / "x").write_text("x")


def a_file(skills: Path) -> None:
    """No skill at all."""
    skills.mkdir()
    (skills / "desk").write_text("a file")


def a_link(skills: Path) -> None:
    """To somebody's skill, which must not be touched."""
    skills.mkdir()
    elsewhere = skills.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text("theirs")
    (skills / "desk").symlink_to(elsewhere)


def a_dead_link(skills: Path) -> None:
    """That leads nowhere."""
    skills.mkdir()
    (skills / "desk").symlink_to("/nowhere")


BEFORE: list[Callable[[Path], None]] = [nothing, a_skill, a_file, a_link, a_dead_link]


@pytest.fixture(params=BEFORE, ids=lambda make: make.__name__)
def skills(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of skills in one of these states."""
    folder = tmp_path / "home" / "skills"
    folder.parent.mkdir()
    request.param(folder)
    return folder


def test_what_was_there_comes_back(skills: Path) -> None:
    """Exactly, also after an update, and nothing else stays behind."""
    before = seen(skills)
    elsewhere = seen(skills.parent / "elsewhere")
    put(skills, force=True)
    assert seen(skills) == as_desk(OURS)
    again = put(skills, NEWER)
    assert (again.updated, again.replaced, again.kept) == (True, False, None)
    assert seen(skills) == as_desk(NEWER)
    removed = uninstall(skills, "desk", force=False)
    assert (removed.found, removed.restored) == (True, bool(before))
    assert seen(skills) == before
    assert not (skills / STORE).exists()
    assert not uninstall(skills, "desk", force=False).found
    assert seen(skills) == before
    assert seen(skills.parent / "elsewhere") == elsewhere


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    """Until somebody says otherwise; one sentence says what it is."""
    for make, what in (
        (a_skill, "is a skill that"),
        (a_file, "is a file that"),
        (a_link, "is a link to"),
        (a_dead_link, "is a link to /nowhere that skillopt-es did not install"),
    ):
        folder = tmp_path / make.__name__ / "skills"
        folder.parent.mkdir()
        make(folder)
        before = seen(folder)
        with pytest.raises(OutputRefused, match=what) as refused:
            put(folder)
        assert "--force" in refused.value.hint
        assert seen(folder) == before
        assert not (folder / STORE).exists()


@pytest.mark.parametrize("change", ["changed", "missing", "more"])
def test_what_somebody_changed_is_not_lost(tmp_path: Path, change: str) -> None:
    """It is neither replaced nor removed without --force, and with it a copy is kept."""
    put(tmp_path)
    place = tmp_path / "desk"
    if change == "missing":
        (place / "references" / "a.md").unlink()
    else:
        (place / ("SKILL.md" if change == "changed" else "notes.md")).write_text("mine")
    changed = seen(place)
    for act in (lambda: put(tmp_path, NEWER), lambda: uninstall(tmp_path, "desk", force=False)):
        with pytest.raises(OutputRefused, match="was changed since it was installed"):
            act()
        assert seen(place) == changed
    kept = put(tmp_path, NEWER, force=True).kept
    assert kept is not None
    assert seen(kept) == changed
    (place / "SKILL.md").write_text("mine again")
    removed = uninstall(tmp_path, "desk", force=True)
    assert removed.kept is not None
    assert (seen(removed.kept), seen(kept), seen(tmp_path)) == ({"SKILL.md": "mine again"}, changed, {})


def test_a_skill_that_was_removed_by_hand(tmp_path: Path) -> None:
    """What was there before it still comes back, or stays safe when another one is put there."""
    a_skill(tmp_path)
    theirs = seen(tmp_path)
    put(tmp_path, force=True)
    shutil.rmtree(tmp_path / "desk")
    put(tmp_path, NEWER)
    uninstall(tmp_path, "desk", force=False)
    assert seen(tmp_path) == theirs
    put(tmp_path, force=True)
    shutil.rmtree(tmp_path / "desk")
    assert uninstall(tmp_path, "desk", force=False).restored
    assert seen(tmp_path) == theirs
    put(tmp_path, force=True)
    shutil.rmtree(tmp_path / "desk")
    (tmp_path / "desk").write_text("another")
    put(tmp_path, force=True)
    assert {text for path in (tmp_path / STORE / "desk").glob("kept-*") for text in seen(path).values()} == {
        "theirs",
        "x",
    }
    uninstall(tmp_path, "desk", force=False)
    assert seen(tmp_path) == {"desk": "another"}


def test_a_backup_that_is_gone_is_told(tmp_path: Path) -> None:
    """Before anything is taken away."""
    a_skill(tmp_path)
    put(tmp_path, force=True)
    shutil.rmtree(tmp_path / STORE)
    with pytest.raises(OutputRefused, match="is no longer in"):
        uninstall(tmp_path, "desk", force=False)
    assert seen(tmp_path) == as_desk(OURS)
    assert not uninstall(tmp_path, "desk", force=True).restored
    assert seen(tmp_path) == {}


# --- dying -----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(params=["exchange", "three renames"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A system on which two folders change places in one step, or not."""
    if request.param != "exchange":
        monkeypatch.setattr(installing, "_exchanged", lambda one, other: False)
    return str(request.param)


def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[[], int]:
    """Lets the process die before its change number `at` of the file system; how many there were."""
    count = itertools.count(1)
    reached = 0

    def counted(act: Callable[..., object]) -> Callable[..., object]:
        def changed(*words: object, **named: object) -> object:
            nonlocal reached
            reached = next(count)
            if reached == at:
                raise Killed
            return act(*words, **named)

        return changed

    monkeypatch.setattr(Path, "rename", counted(Path.rename))
    monkeypatch.setattr(Path, "mkdir", counted(Path.mkdir))
    monkeypatch.setattr(installing, "_exchanged", counted(installing._exchanged))
    monkeypatch.setattr(shutil, "rmtree", counted(shutil.rmtree))
    return lambda: reached


def test_whenever_it_dies_there_is_the_old_or_the_new(
    skills: Path, system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the next process goes on as if nothing had been."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # a process dies here, not the machine
    steps: list[tuple[str, Callable[[], object], Tree]] = [
        ("install", lambda: put(skills, force=True), as_desk(OURS)),
        ("update", lambda: put(skills, NEWER, force=True), as_desk(NEWER)),
        ("uninstall", lambda: uninstall(skills, "desk", force=True), seen(skills)),
    ]
    for name, act, after in steps:
        before = seen(skills)
        saved = tmp_path / f"before-{name}"
        if skills.exists():
            shutil.copytree(skills, saved, symlinks=True)
        for at in itertools.count(1):
            with monkeypatch.context() as patched:
                reached = dying(patched, at)
                with contextlib.suppress(Killed):
                    act()
                if reached() < at:
                    break
            now = seen(skills)
            if system == "exchange":
                assert now in (before, after), (name, at)
            act()  # another process finds what was left, and does it
            assert seen(skills) == after, (name, at)
            assert not [path.name for path in (skills / STORE).rglob("kept-*")]
            shutil.rmtree(skills)
            if saved.exists():
                shutil.copytree(saved, skills, symlinks=True)
        assert seen(skills) == after
        assert at > 2


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of one's own, and a project to stand in."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("COPILOT_HOME", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


@parametrized(
    ("words", "place"),
    [
        (("claude",), "home/.claude/skills"),
        (("codex",), "home/.agents/skills"),
        (("claude", "--scope", "project"), "project/.claude/skills"),
        (("codex", "--scope", "project"), "project/.agents/skills"),
        (("copilot",), "home/.copilot/skills"),
        (("copilot", "--scope", "project"), "project/.github/skills"),
        (("cursor", "--scope", "project"), "project/.cursor/skills"),
        (("gemini",), "home/.gemini/skills"),
        (("opencode",), "home/.config/opencode/skills"),
        (("agents", "--scope", "project"), "project/.agents/skills"),
        (("mine/skills",), "project/mine/skills"),
    ],
    by_default=2,
)
def test_each_agent_finds_it(cli: Cli, demo_run: Path, home: Path, words: tuple[str, ...], place: str) -> None:
    """Where it looks; what is there can be verified, and goes again."""
    done = cli("install", demo_run, "--name", "front-desk", "--to", *words, "--json")
    assert done.code == 0, done.err
    folder = home / place / "front-desk"
    assert Path(done.json["place"]).resolve() == folder
    assert cli("verify", demo_run, "--export", folder).code == 0
    assert cli("uninstall", "--to", *words).lines[0].startswith("removed: ")
    assert not list((home / place).iterdir())
    again = cli("uninstall", "front-desk", "--to", *words)
    assert (again.code, again.out.startswith("nothing to do")) == (0, True)


@pytest.mark.parametrize(("agent", "variable"), [("claude", "CLAUDE_CONFIG_DIR"), ("copilot", "COPILOT_HOME")])
def test_an_agent_may_have_its_folder_elsewhere(agent: str, variable: str, tmp_path: Path) -> None:
    """As its own variable says."""
    environ = {variable: str(tmp_path / "other")}
    found = skills_folder(agent, "user", home=tmp_path, project=tmp_path, environ=environ)
    assert found == tmp_path / "other" / "skills"


@pytest.mark.parametrize(
    ("word", "meant"), [("windsurf", ""), ("claude_code", "did you mean claude?"), ("gemini-cli", "gemini?")]
)
def test_a_word_that_is_no_agent_never_becomes_a_folder(
    cli: Cli, demo_run: Path, home: Path, word: str, meant: str
) -> None:
    """It is refused with what is known, and with how to name a folder; one that is there is meant."""
    for done in (cli("install", demo_run, "--name", "desk", "--to", word), cli("uninstall", "desk", "--to", word)):
        assert done.code == 2
        assert f"where {word} looks for skills is not known here" in done.err
        assert meant in done.err
        assert f"such as ./{word}" in done.err
    assert not list((home / "project").iterdir())
    Path(word).mkdir()
    assert cli("install", demo_run, "--name", "desk", "--to", word).code == 0
    assert Path(word, "desk", "SKILL.md").is_file()


def test_an_exported_folder_is_installed_as_it_is(cli: Cli, demo_run: Path, home: Path) -> None:
    """Unless it is not what was exported."""
    assert cli("export", demo_run, "out/front-desk/").code == 0
    assert cli("install", "out/front-desk", "--to", "./skills").code == 0
    for name in ("SKILL.md", "PROVENANCE.json"):
        assert Path("skills/front-desk", name).read_bytes() == Path("out/front-desk", name).read_bytes()
    assert cli("install", "out/front-desk", "--to", "./skills", "--name", "other").code == 2
    Path("out/front-desk/SKILL.md").write_text("---\nname: front-desk\ndescription: x\n---\nbad")
    refused = cli("install", "out/front-desk", "--to", "./skills")
    assert (refused.code, "is not what was exported: SKILL.md was changed" in refused.err) == (2, True)


def test_what_the_command_says(cli: Cli, demo_run: Path, home: Path) -> None:
    """In every case what was done, or what to do."""
    words = ("--to", "./skills", "--description", "At the desk.")
    nameless = cli("install", demo_run, *words)
    assert (nameless.code, "no name of its own" in nameless.err, "--name" in nameless.err) == (2, True, True)
    a_skill(Path("skills"))
    named = (demo_run, *words, "--name", "desk")
    assert "is a skill that skillopt-es did not install" in cli("install", *named).err
    assert "comes back with `skillopt-es uninstall`" in cli("install", *named, "--force").out
    assert cli("install", *named, "--which", "initial").out.startswith("updated: ")
    Path("skills/desk/SKILL.md").write_text("x")
    assert "was changed since it was installed (SKILL.md)" in cli("uninstall", "--to", "./skills").err
    forced = cli("uninstall", "--to", "./skills", "--force")
    assert forced.lines[0].endswith("what was there before is back")
    assert "kept in" in forced.lines[1]
    assert "which skill? skillopt-es has installed none" in cli("uninstall", "--to", "./skills").err
    assert cli("uninstall", "../x", "--to", "./skills").code == 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_text("x"), "cannot be changed"),
        (lambda path: path.symlink_to("/nowhere/at/all"), "is a link that leads nowhere"),
        (lambda path: (path.mkdir(), (path / STORE).symlink_to(path.parent)), "is a link"),
        (lambda path: (path.mkdir(), (path / STORE).write_text("")), "cannot be changed"),
    ],
    ids=["a file", "a dead link", "a linked store", "a file for a store"],
)
def test_a_place_that_cannot_be_written(
    cli: Cli, demo_run: Path, home: Path, make: Callable[[Path], object], said: str
) -> None:
    """One sentence, and nothing is changed."""
    make(Path("skills"))
    done = cli("install", demo_run, "--name", "desk", "--to", "./skills")
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_folder_that_is_read_only(cli: Cli, demo_run: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told so, and what is there stays."""
    a_skill(Path("skills"))

    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refused)
    done = cli("install", demo_run, "--name", "desk", "--to", "./skills")
    assert (done.code, "cannot be changed: Permission denied" in done.err) == (2, True)
    assert seen(Path("skills"))["desk/SKILL.md"] == "theirs"
