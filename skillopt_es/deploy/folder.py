"""The folder of a skill for agents: SKILL.md with its frontmatter, the other files of the tree, PROVENANCE.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from attrs import evolve, frozen

from skillopt_es.deploy.facts import Facts
from skillopt_es.deploy.frontmatter import Head, completed, own_name
from skillopt_es.deploy.provenance import (
    FILE,
    FORMAT,
    HASHED,
    VERSION,
    FileFacts,
    FolderFacts,
    FrontmatterFacts,
    Provenance,
    provenance_text,
)
from skillopt_es.errors import OutputRefused
from skillopt_es.events.values import FileContent, SkillTree, digest_of
from skillopt_es.skill.folders import ids_of, main_file, skill_of
from skillopt_es.version import software_version

SKILL_FILE = "SKILL.md"
RECEIPT = ".skillopt-es-receipt.json"


@frozen
class SkillFolder:
    """A skill that agents can load: its name, its files by path, and what its user should know."""

    name: str
    files: Mapping[str, FileContent]
    notes: tuple[str, ...] = ()


def name_of(skill: SkillTree, given: str | None, otherwise: str) -> str:
    """What a skill is called: as given, as it calls itself, or else the name of the folder that it goes to."""
    return given or own_name(skill.text) or otherwise


def skill_folder(skill: SkillTree, facts: Facts, name: str, description: str | None) -> SkillFolder:
    """The files of the folder; raises OutputRefused for what the Agent Skills format does not allow."""
    head = completed(skill.text, name, description)
    files, entries = dict[str, FileContent](), list[FileFacts]()
    for measured_as in sorted(skill.contents, key=lambda path: (path != skill.main, path)):
        path, each = _place(measured_as, skill), skill.contents[measured_as]
        if measured_as == skill.main:
            each = evolve(each, content=(head.text + skill.text[len(head.measured) :]).encode())
        if path in files:
            raise OutputRefused(f"the skill has two files that would be {path}", hint="rename one of them")
        files[path] = each
        entries.append(_entry(path, measured_as, each))
    notes = head.notes
    if head.described_by == "text":
        notes = (*notes, "the description is the text's own first words; --description says when agents should use it")
    return _with_origin(SkillFolder(name=name, files=files, notes=notes), facts, tuple(entries), head)


def _entry(path: str, measured_as: str, file: FileContent) -> FileFacts:
    return FileFacts(
        path=path,
        measured_as=measured_as,
        bytes=len(file.content),
        sha256=digest_of(file.content),
        executable=file.executable,
    )


def _with_origin(folder: SkillFolder, facts: Facts, entries: tuple[FileFacts, ...], head: Head) -> SkillFolder:
    """The folder with the file that says where it comes from."""
    document = Provenance(
        format=FORMAT,
        version=VERSION,
        exported_by=software_version(),
        facts=facts,
        folder=FolderFacts(
            name=folder.name,
            files=entries,
            frontmatter=FrontmatterFacts(
                written=head.written,
                bytes=len(head.text.encode()),
                measured=head.measured,
                description_by=head.described_by,
                moves_lines=head.text.count("\n") - head.measured.count("\n"),
            ),
        ),
        hashed=HASHED,
    )
    return evolve(folder, files={**folder.files, FILE: FileContent(provenance_text(document).encode())})


def skill_folders(skill: SkillTree, facts: Facts) -> tuple[SkillFolder, ...]:
    """The folders of a folder of skills, one for each; every one says of which measured folder it is a part."""
    return tuple(_one_of(skill, each, facts) for each in ids_of(skill))


def _one_of(skill: SkillTree, name: str, facts: Facts) -> SkillFolder:
    measured = {path: each for path, each in skill.contents.items() if skill_of(path) == name}
    files = {path.partition("/")[2]: each for path, each in measured.items()}
    head = completed(skill.files[main_file(name)], name, None)
    entries = tuple(_entry(path.partition("/")[2], path, each) for path, each in measured.items())
    return _with_origin(SkillFolder(name=name, files=files, notes=head.notes), facts, entries, head)


def _place(path: str, skill: SkillTree) -> str:
    """Where a file of the tree goes: the main one is SKILL.md, all others keep their paths."""
    if path == skill.main:
        return SKILL_FILE
    inside = PurePosixPath(path)
    if inside.is_absolute() or ".." in inside.parts:
        raise OutputRefused(f"the skill has a file named {path}, which points outside of its folder")
    if path in (FILE, RECEIPT):
        raise OutputRefused(f"the skill has a file named {path}, which is kept for where it comes from")
    return str(inside)
