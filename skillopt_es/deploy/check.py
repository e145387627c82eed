"""Whether an exported skill's folder is what was exported and a log says what it claims, and where its lines are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.deploy.evidence import facts_of
from skillopt_es.deploy.facts import Facts, Which
from skillopt_es.deploy.folder import RECEIPT, SKILL_FILE
from skillopt_es.deploy.frontmatter import problems_of
from skillopt_es.deploy.provenance import FILE, Provenance, plain_facts, read_provenance
from skillopt_es.errors import DataError, NotInRun
from skillopt_es.events.catalog import RunForked, only
from skillopt_es.events.errors import LogError
from skillopt_es.events.log import EventLog
from skillopt_es.events.plain import is_executable
from skillopt_es.events.values import Json, digest_of, tree_hash
from skillopt_es.projections.by_hand import HandCounts
from skillopt_es.skill.folders import skills_in

WITHOUT_LOG = "without the log it cannot be told whether the run, its verdict and its scores are as this folder says"


@frozen(kw_only=True)
class FolderReport:
    """
    What was found of an exported folder: the first problem is the first difference; `run` is the log's, if any.

    `by_hand` is what people did to the run beside its rules; None where they did nothing.
    """

    ok: bool
    folder: str
    name: str
    skill: str
    seq: int
    files: int
    run: str = ""
    by_hand: HandCounts | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_export(folder: Path, log: EventLog | None) -> FolderReport:
    """An exported folder by itself and, with a log, against it; raises DataError where there is no such folder."""
    document = provenance_in(folder)
    problems = folder_problems(folder, document)
    notes = [] if log is not None else [WITHOUT_LOG]
    if log is not None:
        found = next(log_problems(log, document.facts), None)
        if found is not None:
            problems.append(found)
        elif log.run.run_id != document.facts.run.id:
            notes.append(f"{log.run.name} is a fork of the run that this was exported from, and shares all it rests on")
    return FolderReport(
        ok=not problems,
        folder=str(folder),
        name=document.folder.name,
        skill=document.facts.skill.hash,
        seq=document.facts.log.seq,
        files=len(document.folder.files),
        run=log.run.name if log is not None else "",
        by_hand=document.facts.run.by_hand,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def provenance_in(folder: Path) -> Provenance:
    """What a folder says of where it comes from; raises DataError when it does not say so."""
    if folder.is_file():
        raise DataError(f"{folder} is a file", hint="name the folder that SKILL.md is in")
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}", hint="name the folder that SKILL.md is in")
    try:
        content = (folder / FILE).read_bytes()
    except OSError as error:
        raise DataError(
            f"{folder} has no {FILE} that can be read ({error.strerror})", hint="`skillopt-es export` writes one"
        ) from None
    return read_provenance(content, str(folder / FILE))


def is_of_folder(folder: Path) -> bool:
    """Whether what was exported there is one skill of a folder of skills."""
    with suppress(DataError):
        return not provenance_in(folder).facts.skill.main
    return False


def parts_in(place: Path) -> tuple[Path, ...]:
    """The skills of a folder of skills that were exported into a place; none where it is itself an exported skill."""
    if not place.is_dir() or (place / FILE).exists():
        return ()
    return tuple(folder for folder in sorted(place.iterdir()) if is_of_folder(folder))


def parts_problem(place: Path) -> str:
    """What keeps the skills in a place from being a folder as it was measured; empty when nothing does."""
    documents = [provenance_in(folder) for folder in parts_in(place)]
    first = documents[0]
    for each in documents[1:]:
        if each.facts.skill.hash != first.facts.skill.hash:
            return f"{first.folder.name} and {each.folder.name} are not of the same measured folder"
    there = {each.folder.name for each in documents}
    missing = [skill for skill in skills_in(tuple(first.facts.skill.files)) if skill not in there]
    return f"the folder was measured with {', '.join(missing)}, too" if missing else ""


def exported_in(place: Path, runs: Collection[str]) -> tuple[str, ...]:
    """The names of the skills in a place that were exported there from a folder of skills of one of these runs."""
    found = []
    for folder in sorted(place.iterdir()):
        with suppress(DataError):
            facts = provenance_in(folder).facts
            # What is installed there has a receipt, and only `uninstall` takes it away.
            if not facts.skill.main and facts.run.id in runs and not (folder / RECEIPT).exists():
                found.append(folder.name)
    return tuple(found)


def folder_problems(folder: Path, document: Provenance) -> list[str]:
    """What is not as it was exported: files by their digests, the hash of the measured skill, the frontmatter."""
    there = dict(_files(folder))
    plain = {path: content for path, content in there.items() if content is not None}
    problems = list(_file_problems(folder, document, there)) or list(_hash_problems(document, plain))
    text = (there.get(SKILL_FILE) or b"").decode(errors="replace")
    broken = problems_of(text, document.folder.name)
    if broken:
        problems.append(f"agents cannot load it: {broken}")
    if folder.resolve().name != document.folder.name:
        problems.append(f"the folder is called {folder.resolve().name}, but its skill {document.folder.name}")
    return problems


def _file_problems(folder: Path, document: Provenance, there: Mapping[str, bytes | None]) -> Iterator[str]:
    expected = {file.path: file for file in document.folder.files}
    for path in sorted({*expected, *there}):
        if path not in there:
            yield f"{path} is missing"
        elif path not in expected:
            yield f"{path} was not exported"
        elif (content := there[path]) is None:
            yield f"{path} is not a plain file that can be read"
        elif digest_of(content) != expected[path].sha256:
            yield f"{path} was changed after it was exported"
    for path, file in sorted(expected.items()):
        if path in there and is_executable(folder / path) != file.executable:
            yield f"{path} can {'not ' if file.executable else ''}be run, unlike when it was exported"


def _files(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    """All files but those of the export itself; None for what is not a plain file."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name in (FILE, RECEIPT) or (path.is_dir() and not path.is_symlink()):
            continue
        try:
            yield name, path.read_bytes() if path.is_file() and not path.is_symlink() else None
        except OSError:
            yield name, None


def _hash_problems(document: Provenance, there: Mapping[str, bytes]) -> Iterator[str]:
    """The hash of the measured skill, computed again from the files as `hashed` in the document says."""
    skill, head = document.facts.skill, document.folder.frontmatter
    here = {file.measured_as for file in document.folder.files}
    # Of a folder of skills each skill is exported by itself: the others are known by their digests.
    rows = [] if skill.main else [each for each in skill.files.items() if each[0] not in here]
    for file in document.folder.files:
        content = there[file.path]
        if file.measured_as == skill.main:
            content = head.measured.encode() + content[head.bytes :]
        rows.append((file.measured_as, digest_of(content)))
    for path, digest in rows:
        if skill.files.get(path) != digest:
            yield f"the text of {path} is not the one that was measured"
            return
    if tree_hash(dict(rows), skill.executable) != skill.hash:
        yield "the hash of the skill does not follow from its files"


def log_problems(log: EventLog, claimed: Facts) -> Iterator[str]:
    """The first thing in which a folder's facts differ from what the log says."""
    own = {log.run.run_id}
    try:
        own |= {fork.parent_id for _, fork in only(RunForked, log.read(types=("RunForked",)))}
        if claimed.run.id not in own:
            yield f"it belongs to run {claimed.run.name} ({claimed.run.id}), and {log.run.name} is {log.run.run_id}"
            return
        last = log.head().seq
        if claimed.log.seq > last:
            yield f"it names event {claimed.log.seq}, and {log.run.name} ends at event {last}"
            return
        _, facts = facts_of(log, claimed.skill.which, claimed.log.seq)
    except (LogError, NotInRun) as error:
        yield f"the log cannot be followed to event {claimed.log.seq}: {error}"
        return
    if all(each.decided is None for each in claimed.scores):
        facts = evolve(facts, scores=tuple(evolve(each, decided=None) for each in facts.scores))
    if claimed.run.id != log.run.run_id:  # a fork has the same events under another name
        facts = evolve(facts, run=evolve(facts.run, id=claimed.run.id, name=claimed.run.name))
    here, said = plain_facts(claimed), plain_facts(facts)
    if claimed.lines is None:  # of an export that did not say it yet
        del here["lines"]
    # The chain first: when its head is another one, that is what is wrong, and not the facts that follow from it.
    for key in sorted(here, key=lambda key: key != "log"):
        yield from _differences(key, here[key], said[key])


def _differences(place: str, here: Json, there: Json) -> Iterator[str]:
    """Where two JSON values differ, by the path to it."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted({*here, *there}):
            yield from _differences(f"{place}.{key}", here.get(key), there.get(key))
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for number, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from _differences(f"{place}[{number}]", one, other)
    elif here != there:
        yield f"{place} is {_shown(here)} in {FILE}, and {_shown(there)} in the log"


def _shown(value: Json) -> str:
    return f"a list of {len(value)}" if isinstance(value, list) else f"{value!r:.80}"


@frozen(kw_only=True)
class ExportedFile:
    """
    A file of an exported skill: after event `until` the run's skill `which` had it as `measured_as`.

    Its lines stand `moved` lines lower than in the log; the first `replaced` ones of the log are not in it.
    """

    which: Which
    until: int
    measured_as: str
    moved: int = 0
    replaced: int = 0


def exported_file(folder: Path, log: EventLog, path: str) -> ExportedFile:
    """A file of an exported folder, SKILL.md by default; raises DataError where the log says something else."""
    report = check_export(folder, log)
    if not report.ok:
        raise DataError(
            f"{folder} is not what {log.run.name} says: {report.problems[0]}", hint="export the skill again"
        )
    document = provenance_in(folder)
    head, files = document.folder.frontmatter, document.folder.files
    file = next((each for each in files if each.path == (path or SKILL_FILE)), None)
    if file is None:
        raise NotInRun(f"{folder} has no file {path}", hint=f"it has {', '.join(each.path for each in files)}")
    rewritten = file.measured_as == document.facts.skill.main and head.written != "kept"
    measured = head.measured.count("\n") if rewritten else 0
    written = (folder / SKILL_FILE).read_bytes()[: head.bytes].count(b"\n") if rewritten else 0
    return ExportedFile(
        which=document.facts.skill.which,
        until=document.facts.log.seq,
        measured_as=file.measured_as,
        moved=written - measured,
        replaced=measured,
    )
