"""Replies about a folder of skills: edits of what was open, and changes of which skills there are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from skillopt_es.events.values import Edit, EditOp, Json, PatchSource, SkillTree
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.parts import STRING, list_of, object_of, read_listed, says_something, text_in
from skillopt_es.replies.proposals import PatchReply
from skillopt_es.skill.folders import SKILL_FILE, ids_of, main_file
from skillopt_es.skill.frontmatter import LONGEST_DESCRIPTION, LONGEST_NAME, with_head
from skillopt_es.skill.rewriting import frontmatter

_TEXT_OPS = ("append", "insert_after", "replace", "delete")
_OPS = (*_TEXT_OPS, "create", "describe")
_KINDS = ("merge", "split", "rename", "describe", "add", "retire", "restore")
_OP: dict[str, Json] = {"type": "string", "enum": list(_OPS)}
_KIND: dict[str, Json] = {"type": "string", "enum": list(_KINDS)}

EDITS_SCHEMA = object_of(
    reasoning=STRING,
    edits=list_of(
        object_of(op=_OP, skill=STRING, file=STRING, target=STRING, description=STRING, content=STRING),
    ),
)
CHANGES_SCHEMA = object_of(
    reasoning=STRING,
    changes=list_of(
        object_of(
            kind=_KIND,
            skills=list_of(STRING),
            into=list_of(object_of(name=STRING, description=STRING, content=STRING)),
            why=STRING,
        )
    ),
)


def name_like(text: str) -> str:
    """The name that a skill may have which is closest to a text: `Money Amounts` is money-amounts."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:LONGEST_NAME].rstrip("-")


def skill_text(name: str, description: str, content: str) -> str:
    """The SKILL.md of a skill; frontmatter that a model wrote of its own keeps its other keys."""
    said = " ".join(description.split())[:LONGEST_DESCRIPTION]
    body = content.strip()
    if not said:  # the model may have written it where it belongs in the file
        return with_head(body, name=name)
    return with_head(body, name=name, description=said)


def read_skill_edits(
    text: str, *, patch: str, kind: PatchSource, support: int, most: int, viewed: Sequence[str], tree: SkillTree
) -> PatchReply | Unusable:
    """Edits for the skills that were open, new skills, and new descriptions; at most so many."""
    reply = read_listed(text, "edits")
    if isinstance(reply, Unusable):
        return reply
    edits: list[Edit] = []
    wrong: list[Unusable] = []
    for row in reply.rows:
        if not isinstance(row, dict):
            return Unusable("each edit must be an object with `op`, `skill` and `content`")
        edit = _edit(row, viewed, tree)
        if isinstance(edit, Unusable):
            wrong.append(edit)
            continue
        op, file, content = edit
        number = len(edits) + 1
        edits.append(
            Edit(
                id=f"{patch}#{number}",
                op=op,
                file=file,
                content=content,
                target=text_in(row, "target"),
                support=support,
                source=kind,
                origins=(patch,),
            )
        )
    # One that cannot be meant takes no other with it.
    if wrong and not edits:
        return wrong[0]
    return PatchReply(proposals=tuple(edits[:most]), reasoning=reply.reasoning)


_Made = tuple[EditOp, str, str]
"""What an edit does, to which file, with which text."""


def _edit(row: Mapping[str, Json], viewed: Sequence[str], tree: SkillTree) -> _Made | Unusable:
    op, skill, file = text_in(row, "op"), text_in(row, "skill").strip(), text_in(row, "file").strip()
    if op not in _OPS:
        return Unusable(f"`op` must be one of {', '.join(_OPS)}, not {op!r}")
    if not skill and "/" in file:
        skill, _, file = file.partition("/")
    if not skill and len(viewed) == 1 and op != "create":
        skill = viewed[0]
    file = file.removeprefix(f"{skill}/") or SKILL_FILE
    if op == "create" and file == SKILL_FILE:
        return _new_skill(name_like(skill), text_in(row, "description"), text_in(row, "content"))
    return _of_known(cast(EditOp, op), skill, file, row, viewed, tree)


def _new_skill(skill: str, description: str, content: str) -> _Made | Unusable:
    if not skill or not says_something(content):
        return Unusable("a new skill needs a name in `skill` and its text in `content`")
    if not says_something(description) and "description" not in frontmatter(content):
        return Unusable(f"the new skill {skill} needs a `description`: agents choose skills by it")
    return "create", main_file(skill), skill_text(skill, description, content)


def _of_known(
    op: EditOp, skill: str, file: str, row: Mapping[str, Json], viewed: Sequence[str], tree: SkillTree
) -> _Made | Unusable:
    """An edit of a skill that is there."""
    content, description = text_in(row, "content"), text_in(row, "description")
    if skill not in ids_of(tree):
        return Unusable(f"there is no skill {skill!r}; there are: {', '.join(ids_of(tree)) or 'none'}")
    if op == "describe":
        return op, main_file(skill), description if says_something(description) else content
    if skill not in viewed:
        shown = ", ".join(viewed) or "none"
        return Unusable(f"{skill} was not open, so nothing shows what its text is worth; open were: {shown}")
    return op, f"{skill}/{file}", content


# --- the whole folder ----------------------------------------------------------------------------------------------


def read_skill_changes(
    text: str, *, patch: str, most: int, tree: SkillTree, gone: Mapping[str, Mapping[str, str]]
) -> PatchReply | Unusable:
    """Changes of the whole folder, each as the edits that it is made of; `gone` are the files of retired skills."""
    reply = read_listed(text, "changes")
    if isinstance(reply, Unusable):
        return reply
    edits: list[Edit] = []
    wrong: list[Unusable] = []
    number = 0
    for row in reply.rows:
        if not isinstance(row, dict):
            return Unusable("each change must be an object with `kind`, `skills` and `into`")
        made = _change(row, tree, gone)
        if isinstance(made, Unusable):
            wrong.append(made)
            continue
        if number == most:
            break
        number += 1
        change = f"{patch}#{number}" if len(made) > 1 and row.get("kind") != "retire" else ""
        for part, (op, skill, target, content) in enumerate(made, start=1):
            edits.append(
                Edit(
                    id=f"{patch}#{number}" if len(made) == 1 else f"{patch}#{number}.{part}",
                    op=op,
                    file=skill if "/" in skill else main_file(skill),
                    target=target,
                    content=content,
                    origins=(patch,),
                    hypothesis=" ".join(text_in(row, "why").split())[:300],
                    change=change,
                )
            )
    if wrong and not edits:
        return wrong[0]
    return PatchReply(proposals=tuple(edits), reasoning=reply.reasoning)


_Part = tuple[EditOp, str, str, str]


# How many skills a change names, and how many it makes: two merge into one, a split leaves two.
_FEWEST = {"merge": (2, 1), "split": (1, 2), "rename": (1, 1), "describe": (1, 1), "add": (0, 1)}


def _change(row: Mapping[str, Json], tree: SkillTree, gone: Mapping[str, Mapping[str, str]]) -> list[_Part] | Unusable:
    kind, skills, into = text_in(row, "kind"), _names(row.get("skills")), _parts(row.get("into"))
    problem = _change_problem(kind, skills, len(into), tree, gone)
    if problem:
        return Unusable(problem)
    match kind:
        case "retire" | "restore":
            return [part for skill in skills for part in _gone_or_back(kind, skill, gone)]
        case "describe":
            return [("describe", skills[0], "", into[0]["description"])]
        case "rename":
            return [("rename", name_like(into[0]["name"]), skills[0], "")]
        case _:
            return _with_texts(kind, skills, into)


def _change_problem(
    kind: str, skills: Sequence[str], into: int, tree: SkillTree, gone: Mapping[str, Mapping[str, str]]
) -> str:
    if kind not in _KINDS:
        return f"`kind` must be one of {', '.join(_KINDS)}, not {kind!r}"
    known = gone if kind == "restore" else ids_of(tree)
    lost = [skill for skill in skills if skill not in known]
    if lost and kind != "add":
        return f"there is no {'retired ' if kind == 'restore' else ''}skill {lost[0]!r}"
    least, parts = _FEWEST.get(kind, (1, 0))
    if len(skills) < least or into < parts:
        return f"a {kind} has at least {least} `skills` and {parts} in `into`"
    return ""


def _with_texts(kind: str, skills: Sequence[str], into: Sequence[Mapping[str, str]]) -> list[_Part] | Unusable:
    """A change that writes skills: each has a name, a description and a text."""
    made: list[_Part] = []
    for part in into if kind == "split" else into[:1]:
        name = name_like(part["name"])
        if not name or not says_something(part["content"]) or not says_something(part["description"]):
            return Unusable(f"each skill that comes of `{kind}` has a `name`, a `description` and a `content`")
        if name in skills:
            return Unusable(f"{name} is the name of a skill that the {kind} replaces; give the new one its own")
        text = skill_text(name, part["description"], part["content"])
        op: EditOp = "create" if kind == "add" else cast(EditOp, kind)
        made.append((op, name, " ".join(skills) if kind != "add" else "", text))
    return [*made, ("retire", skills[0], "", "")] if kind == "split" else made


def _gone_or_back(kind: str, skill: str, gone: Mapping[str, Mapping[str, str]]) -> list[_Part]:
    if kind == "retire":
        return [("retire", skill, "", "")]
    main = main_file(skill)
    return [("create", path, "", text) for path, text in sorted(gone[skill].items(), key=lambda each: each[0] != main)]


def _names(value: Json) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(each.strip() for each in given if isinstance(each, str) and each.strip()))


def _parts(value: Json) -> list[dict[str, str]]:
    given = value if isinstance(value, list) else [value]
    return [
        {key: text_in(each, key) for key in ("name", "description", "content")}
        for each in given
        if isinstance(each, dict)
    ]
