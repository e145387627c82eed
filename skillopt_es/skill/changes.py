"""
Changes of whole files: skills that are created, described anew, renamed, merged, split or retired.

Like edits of text they never raise: what cannot be done is skipped with a status that says why. A new text that comes
from other skills names them, so that the lines it keeps are still known as theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve, field, frozen

from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.skill.folders import SKILL_FILE, files_of, head_problem, leads_out, main_file, skill_of
from skillopt_es.skill.frontmatter import LONGEST_DESCRIPTION, fields_of, is_name, with_head
from skillopt_es.skill.rewriting import frontmatter


@frozen(kw_only=True)
class Written:
    """A file as a change leaves it, and the files of the tree before that it was made from."""

    text: str
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class Done:
    """
    What a change makes of a tree: files that are written anew, files that are gone, and what is said of it.

    `paths` says where files went, and `skills` whose place another skill took: what is no text goes along.
    """

    status: str
    note: str = ""
    written: Mapping[str, Written] = field(factory=dict)
    gone: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(factory=dict)
    skills: Mapping[str, str] = field(factory=dict)

    @property
    def applied(self) -> bool:
        """Whether anything was done."""
        return self.status.startswith("applied")

    def tree(self, before: SkillTree) -> SkillTree:
        """The tree after it."""
        kept = {path: text for path, text in before.files.items() if path not in self.gone}
        files = {**kept, **{path: each.text for path, each in self.written.items()}}
        moved = {path: path for path in before.files} | dict(self.paths)
        assets: dict[str, str] = {}
        for path, content in before.assets.items():
            place = self.paths.get(path) or self._place(path, before, files)
            if place:
                assets[place], moved[path] = content, place
        executable = {moved[path] for path in before.executable if path in moved} & (files.keys() | assets.keys())
        return evolve(before, files=files, assets=assets, executable=tuple(sorted(executable)))

    def _place(self, path: str, before: SkillTree, files: Mapping[str, str]) -> str:
        """Where a file that is not text lies now; empty where its skill is gone."""
        skill, _, name = path.partition("/")
        if not before.is_folder or main_file(skill) in files:
            return path
        return f"{self.skills[skill]}/{name}" if skill in self.skills else ""


def changed(tree: SkillTree, edit: Edit) -> Done:
    """What an edit of whole files makes of a tree."""
    match edit.op:
        case "create":
            return _create(tree, edit)
        case "describe":
            return _describe(tree, edit)
        case "rename":
            return _rename(tree, edit)
        case "merge":
            return _merge(tree, edit)
        case "split":
            return _split(tree, edit)
        case "retire":
            return _retire(tree, edit)
    raise AssertionError(edit.op)


def _create(tree: SkillTree, edit: Edit) -> Done:
    """A new file; of a new skill its SKILL.md first."""
    path = edit.file
    if not path:
        return Done(status="skipped_no_file")
    if path in tree.files:
        return Done(status="skipped_file_exists", note=f"the skill has {path} already")
    if leads_out(path):
        return Done(status="skipped_format", note=f"{path!r} is no path below the skill's folder")
    if not edit.content.strip():
        return Done(status="skipped_empty_content")
    if tree.is_folder and not path.endswith(f"/{SKILL_FILE}") and main_file(skill_of(path)) not in tree.files:
        return Done(status="skipped_unknown_file", note=f"there is no skill {skill_of(path)}")
    return Done(status="applied_create", written={path: Written(text=f"{edit.content.strip()}\n")})


def _describe(tree: SkillTree, edit: Edit) -> Done:
    path, said = edit.file, " ".join(edit.content.split())
    if path not in tree.files:
        return Done(status="skipped_unknown_file", note=f"there is no {path}")
    if not said:
        return Done(status="skipped_empty_content")
    if len(said) > LONGEST_DESCRIPTION:
        return Done(status="skipped_too_long", note=f"a description has {LONGEST_DESCRIPTION:,} characters at most")
    text = with_head(tree.files[path], description=said)
    if _description(text) == _description(tree.files[path]):
        return Done(status="skipped_no_change")
    return Done(status="applied_describe", written={path: Written(text=text, sources=(path,))})


def _rename(tree: SkillTree, edit: Edit) -> Done:
    """All files of a skill in a folder of another name."""
    old, new = edit.target, skill_of(edit.file)
    missing = _missing(tree, (old,)) or _taken(tree, new)
    if missing is not None:
        return missing
    moved = {f"{new}{path[len(old) :]}": Written(text=text, sources=(path,)) for path, text in _files(tree, old)}
    moved[main_file(new)] = Written(text=with_head(tree.files[main_file(old)], name=new), sources=(main_file(old),))
    paths = {path: f"{new}{path[len(old) :]}" for path, _ in _files(tree, old)}
    return Done(status="applied_rename", written=moved, gone=tuple(paths), paths=paths, skills={old: new})


def _merge(tree: SkillTree, edit: Edit) -> Done:
    """One skill in place of several; their other files go along."""
    sources, new = tuple(edit.target.split()), skill_of(edit.file)
    missing = _missing(tree, sources) or (None if new in sources else _taken(tree, new))
    if missing is not None:
        return missing
    if len(set(sources)) < 2:
        return Done(status="skipped_nothing_to_merge", note="a merge names two skills or more")
    problem = head_problem(edit.content, new)
    if problem:
        return Done(status="skipped_format", note=problem)
    mains = tuple(main_file(each) for each in sources)
    text, others, moved = f"{edit.content.strip()}\n", dict[str, Written](), list[str]()
    paths, there = dict[str, str](), dict[str, str]()
    for each in dict.fromkeys(sources):
        carried = _carried(tree, each)
        names = _names_in(each, carried, there)
        there |= {name: carried[old] for old, name in names.items()}
        renamed = {old: name for old, name in names.items() if old != name}
        for old, name in names.items():
            path = f"{each}/{old}"
            paths[path] = f"{new}/{name}"
            if path in tree.files:
                sources_of = others[name].sources if name in others else ()
                others[name] = Written(text=_relinked(tree.files[path], old, renamed), sources=(*sources_of, path))
        text = _relinked_lines(text, tree, each, mains, renamed)
        moved += [f"{each}/{old} is {new}/{name} now" for old, name in renamed.items()]
    written = {f"{new}/{name}": each for name, each in others.items()}
    written[main_file(new)] = Written(text=text, sources=mains)
    gone = tuple(path for each in dict.fromkeys(sources) for path, _ in _files(tree, each) if path not in written)
    return Done(
        status="applied_merge",
        note="; ".join(moved),
        written=written,
        gone=gone,
        paths=paths,
        skills=dict.fromkeys(sources, new),
    )


def _carried(tree: SkillTree, skill: str) -> dict[str, str]:
    """What is in a skill's further files, texts and others, by their paths in its folder."""
    texts = {path: f"text {text}" for path, text in _files(tree, skill) if path != main_file(skill)}
    assets = {path: f"asset {content}" for path, content in tree.assets.items() if skill_of(path) == skill}
    return {path.partition("/")[2]: content for path, content in {**texts, **assets}.items()}


def _names_in(skill: str, files: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str]:
    """
    What each file of a skill is called in the merged skill, which has some files already.

    A name that another content has gets the skill's name in front. A file with the same content is that file.
    """
    names: dict[str, str] = {}
    for path, content in files.items():
        name, number = path, 1
        while name in (there.keys() | {*names.values()}) and there.get(name) != content:
            folder, slash, file = path.rpartition("/")
            name = f"{folder}{slash}{skill}-{f'{number}-' if number > 1 else ''}{file}"
            number += 1
        names[path] = name
    return names


def _relinked(text: str, file: str, renamed: Mapping[str, str]) -> str:
    """A file's text with links to files of the same skill that have another name now."""
    folder = file.rpartition("/")[0]
    for old, name in renamed.items():
        text = re.sub(rf"(?<![\w/.-])((?:\./)?){re.escape(old)}(?![\w/-])", rf"\g<1>{name}", text)
        beside, _, bare = old.rpartition("/")
        if folder and beside == folder:  # a link may start at the file that it stands in
            text = re.sub(rf"(?<=\]\()((?:\./)?){re.escape(bare)}(?=[)#])", rf"\g<1>{name.rpartition('/')[2]}", text)
    return text


def _relinked_lines(text: str, tree: SkillTree, skill: str, mains: tuple[str, ...], renamed: Mapping[str, str]) -> str:
    """The merged text with the links in those of its lines that are this skill's alone."""
    if not renamed:
        return text
    lines = {main: {*map(str.strip, tree.files[main].splitlines())} for main in mains}
    own = lines[main_file(skill)].difference(*(each for main, each in lines.items() if main != main_file(skill)))
    return "".join(
        _relinked(line, SKILL_FILE, renamed) if line.strip() in own else line for line in text.splitlines(keepends=True)
    )


def _split(tree: SkillTree, edit: Edit) -> Done:
    """A new skill with a part of another one, which stays until it is retired."""
    new = skill_of(edit.file)
    missing = _missing(tree, (edit.target,)) or _taken(tree, new)
    if missing is not None:
        return missing
    problem = head_problem(edit.content, new)
    if problem:
        return Done(status="skipped_format", note=problem)
    source = main_file(edit.target)
    return Done(
        status="applied_split",
        written={main_file(new): Written(text=f"{edit.content.strip()}\n", sources=(source,))},
    )


def _retire(tree: SkillTree, edit: Edit) -> Done:
    skill = skill_of(edit.file)
    missing = _missing(tree, (skill,))
    return missing or Done(status="applied_retire", gone=tuple(path for path, _ in _files(tree, skill)))


def _files(tree: SkillTree, skill: str) -> list[tuple[str, str]]:
    return [*files_of(tree, skill).items()]


def _missing(tree: SkillTree, skills: tuple[str, ...]) -> Done | None:
    lost = [each for each in skills if main_file(each) not in tree.files]
    return Done(status="skipped_unknown_skill", note=f"there is no skill {lost[0]}") if lost else None


def _taken(tree: SkillTree, skill: str) -> Done | None:
    if not is_name(skill):
        return Done(status="skipped_format", note=f"{skill!r} is not a name for a skill")
    if main_file(skill) in tree.files:
        return Done(status="skipped_file_exists", note=f"there is a skill {skill} already")
    return None


def _description(text: str) -> object:
    return fields_of(frontmatter(text)).get("description")
