"""
Changes of whole files: skills that are created, described anew, renamed, merged, split or retired.

Like edits of text they never raise: what cannot be done is skipped with a status that says why. A new text that comes
from other skills names them, so that the lines it keeps are still known as theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

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
    """What a change makes of a tree: files that are written anew, files that are gone, and what is said of it."""

    status: str
    note: str = ""
    written: Mapping[str, Written] = field(factory=dict)
    gone: tuple[str, ...] = ()

    @property
    def applied(self) -> bool:
        """Whether anything was done."""
        return self.status.startswith("applied")

    def tree(self, before: SkillTree) -> SkillTree:
        """The tree after it."""
        kept = {path: text for path, text in before.files.items() if path not in self.gone}
        return SkillTree(files={**kept, **{path: each.text for path, each in self.written.items()}}, main=before.main)


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
    return Done(status="applied_rename", written=moved, gone=tuple(path for path, _ in _files(tree, old)))


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
    written = {main_file(new): Written(text=f"{edit.content.strip()}\n", sources=mains)}
    gone = tuple(path for each in sources for path, _ in _files(tree, each))
    for path in gone:
        into = f"{new}/{path.partition('/')[2]}"
        if path not in mains:
            if into in written:
                return Done(status="skipped_file_exists", note=f"two of the merged skills have {into}")
            written[into] = Written(text=tree.files[path], sources=(path,))
    return Done(status="applied_merge", written=written, gone=tuple(path for path in gone if path not in written))


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
