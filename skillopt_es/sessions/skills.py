"""The skill, or the folder of skills, that a run begins with or an evaluation scores: read from files, and checked."""

from __future__ import annotations

import os
import re
import stat
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

from skillopt_es.config import RunConfig
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.plain import NotPlainError, TooLargeError, read_plain, real_path
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import ChatModel, Environment, opens_skills, provided
from skillopt_es.skill.folders import (
    EMPTY,
    MOST_ASSET,
    MOST_ASSETS,
    MOST_FILE,
    MOST_FILES,
    MOST_SKILLS,
    SKILL_FILE,
    ids_of,
    main_file,
    problem_of,
)
from skillopt_es.skill.frontmatter import fields_of
from skillopt_es.skill.rewriting import frontmatter

# How the original names its released skills, and those in its result folders.
_RELEASED = re.compile(r"(?P<model>.+)_skill\.md")
_STEP = re.compile(r"skill_v0*(?P<step>\d+)\.md")
# What is no part of a skill: version control, caches, and what an export, an installation or an adoption keeps there.
_LEFT_OUT = frozenset(
    {".git", "__pycache__", ".DS_Store", "PROVENANCE.json", ".skillopt-es-receipt.json", ".skillopt-es"}
)
_MOST_ALONE = 10_000_000  # bytes of a skill that is one file
_MOST_BYTES = 4 * MOST_FILE  # a character has four bytes at most


def first_skill(config: RunConfig, *, folder: bool) -> tuple[SkillTree, tuple[str, ...]]:
    """What a run begins with, and notes about how it was read; `folder`: its algorithm trains several skills."""
    if not config.env.skill_init:
        what = "no skills" if folder else "an empty skill"
        empty = EMPTY if folder else SkillTree(files={SKILL_FILE: ""})
        return empty, (f"env.skill_init is empty: started from {what}",)
    skill, notes = load_skill(config)
    place, algorithm = config.place("env.skill_init"), config.train.algorithm
    if folder and not skill.is_folder:
        raise ConfigError(
            f"{place}env.skill_init is one skill, and train.algorithm {algorithm!r} trains a folder of skills",
            hint="name the folder that the skill's own folder lies in, or train it with train.algorithm: classic",
        )
    if skill.is_folder and not folder:
        raise ConfigError(
            f"{place}env.skill_init is a folder of skills, and train.algorithm {algorithm!r} trains one skill",
            hint="train the folder with train.algorithm: skills, or name one of its skills",
        )
    return skill, notes


def load_skill(config: RunConfig) -> tuple[SkillTree, tuple[str, ...]]:
    """What env.skill_init names, a file or a folder, and notes about how it was read; an empty skill for nothing."""
    if not config.env.skill_init:
        return first_skill(config, folder=False)
    path = config.path(config.env.skill_init)
    if path.is_dir():
        _check_apart(path, config)
        return _folder(path)
    # As the config names it: a link's own name says where the skill belongs, and what it leads to may change.
    name = Path(config.env.skill_init).name
    text, origin = read_skill(path), origin_of(path)
    text, ended = _plain(text, name)
    return SkillTree(files={name: text}, main=name), (*((origin,) if origin else ()), *ended)


def read_skill(path: Path) -> str:
    """A skill file's text; raises DataError saying what is wrong with it."""
    try:
        # As bytes: reading it as text would change its line ends, and nobody would be told.
        content = read_plain(path, follow=True, most=_MOST_ALONE).decode("utf-8")
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such skill file", hint="fix env.skill_init, or leave it empty to start from nothing"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start})", hint="save the skill as UTF-8") from None
    except NotPlainError:  # a device may have no end, a pipe no writer
        raise DataError(f"{path} is not a plain file", hint="name a file such as SKILL.md") from None
    except TooLargeError as error:
        raise DataError(f"{path} {error.strerror}", hint="name a skill, which an agent can read") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    if "\x00" in content:
        raise DataError(f"{path}: not text (it has a NUL character)", hint="save the skill as UTF-8")
    return content


def check_opening(skill: SkillTree, model: ChatModel, environment: Environment) -> None:
    """Raises ConfigError where a folder of skills could not be opened: by this target, or in this environment."""
    if not skill.is_folder:
        return
    if not opens_skills(environment):
        raise ConfigError(
            f"env.name is {environment.name!r}, where the target cannot open skills",
            hint="a folder of skills is for environments that say so: all of the bundled ones but alfworld do",
        )
    missing = sorted({"messages", "tools"} - provided(model))
    if missing and "skills" not in provided(model):
        raise ConfigError(
            f"a folder of skills is opened with tools, and the target model ({model.identity}) offers no "
            f"{' and no '.join(missing)}",
            hint="choose another model.target_backend",
        )


# --- folders -------------------------------------------------------------------------------------------------------


def _folder(path: Path) -> tuple[SkillTree, tuple[str, ...]]:
    """One skill with all its files where the folder has a SKILL.md, else the skills in its folders."""
    main = SKILL_FILE if (path / SKILL_FILE).is_file() else ""
    notes: list[str] = []
    files: dict[str, str] = {}
    assets: dict[str, str] = {}
    executable: list[str] = []
    for file in _files(path):
        name = file.relative_to(path).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        if hidden or (not main and "/" not in name):
            notes.append(f"{name} {'is hidden' if hidden else 'belongs to no skill'}, and was left out")
            continue
        content = _content(file)
        text = _text_of(content)
        if text is None and file.name != SKILL_FILE:
            _check_asset(file, content, assets)
            assets[name] = b64encode(content).decode()
        elif text is None or len(content) > _MOST_BYTES:
            what = "not text" if text is None else f"a text of a skill has {MOST_FILE:,} characters at most"
            raise DataError(f"{file}: {what}", hint="write it as UTF-8" if text is None else "make it shorter")
        else:
            plain, unmarked = _unmarked(text, name)
            files[name], ended = _plain(plain, name)
            notes += (*unmarked, *ended)
        if file.stat().st_mode & stat.S_IXUSR:
            executable.append(name)
        _check_number(path, {**files, **assets}, main)
    tree = SkillTree(files=files, main=main, assets=assets, executable=tuple(executable))
    problem = "" if main else problem_of(tree)
    if problem:
        raise DataError(f"{path}: {problem}", hint="agents could not load it; fix the skill")
    return tree, (*notes, *(() if main else _unclear(tree)))


def _unclear(tree: SkillTree) -> tuple[str, ...]:
    """Notes of skills that say of themselves something else than whether they are always shown."""
    said = {
        main_file(skill): fields_of(frontmatter(tree.files[main_file(skill)])).get("always") for skill in ids_of(tree)
    }
    return tuple(
        f"{path} says always: {value!r}, which is neither true nor false: it is listed as the others are"
        for path, value in said.items()
        if value is not None and not isinstance(value, bool)
    )


def _check_apart(path: Path, config: RunConfig) -> None:
    """Raises DataError for a folder with the run's own files in it: with the tasks it would hold their answers."""
    named = {key: getattr(config.env, key) for key in ("data_path", "split_dir")}
    own = {"the config": Path(config.folder), **{f"env.{key}": config.path(at) for key, at in named.items() if at}}
    for what, place in own.items():
        if real_path(place).is_relative_to(path):
            raise DataError(
                f"{path} holds {what} ({place}), which is no part of a skill",
                hint="name a folder that holds the skill and nothing else, or its SKILL.md",
            )


def _check_number(path: Path, files: dict[str, str], main: str) -> None:
    """Raises DataError as soon as there are too many: nobody waits until a large folder has been read."""
    if main and len(files) > MOST_FILES:
        raise DataError(f"{path}: a skill has {MOST_FILES} files at most", hint="name the folder of one skill")
    skills = {name.partition("/")[0] for name in files}
    if not main and len(skills) > MOST_SKILLS:
        raise DataError(
            f"{path}: there are more than {MOST_SKILLS} skills, and an agent can choose among {MOST_SKILLS} at most",
            hint="train a part of them, in a folder of their own",
        )


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder in the order of their paths; raises DataError for a link that leads out of it."""
    root = real_path(folder)
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in _LEFT_OUT)
        for name in sorted([*names, *folders]):
            file = Path(at, name)
            if name in _LEFT_OUT or name.endswith(".pyc"):
                continue
            if file.is_symlink():
                if not real_path(file).is_relative_to(root):
                    raise DataError(
                        f"{file}: this link leads out of {folder}", hint="put a copy of what it names in its place"
                    )
                if file.is_dir():
                    raise DataError(f"{file}: a link to a folder", hint="put a copy of the folder in its place")
            if name in names:
                if not file.is_file():  # reading a pipe would wait for ever, and a link may name what is not there
                    raise DataError(f"{file}: not a file that can be read", hint="take it out")
                yield file


def _content(file: Path) -> bytes:
    try:
        if file.stat().st_size > MOST_ASSET:
            raise DataError(f"{file}: a file of a skill has {MOST_ASSET:,} bytes at most", hint="make it smaller")
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def _text_of(content: bytes) -> str | None:
    """The text of a file; None for one that is not text."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _check_asset(file: Path, content: bytes, others: dict[str, str]) -> None:
    """Raises DataError where the files that are not text would be too large together: a log holds them."""
    if len(content) + sum(len(text) * 3 // 4 for text in others.values()) > MOST_ASSETS:
        raise DataError(
            f"{file}: the files of a skill that are not text have {MOST_ASSETS:,} bytes at most together",
            hint="take some out, or make them smaller",
        )


_MARK = "\ufeff"


def _plain(text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """The text with line ends as everything here has them, and a note where it had others."""
    if "\r" not in text:
        return text, ()
    return text.replace("\r\n", "\n").replace("\r", "\n"), (f"{name}: line ends were made \\n",)


def _unmarked(text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """The text without a mark of its byte order, which some editors write; no frontmatter can begin after one."""
    if not text.startswith(_MARK):
        return text, ()
    return text.removeprefix(_MARK), (f"{name}: the mark of its byte order was left out",)


# --- where a skill comes from --------------------------------------------------------------------------------------


def origin_of(path: Path) -> str:
    """One sentence without the names of folders above; empty where nothing is known."""
    path = real_path(path)
    folder, above = path.parent, path.parent.parent
    released = _RELEASED.fullmatch(path.name)
    if released and above.name == "ckpt":
        return f"{path.name} was released with SkillOpt for {folder.name}, trained with {released['model']}"
    if path.name == "best_skill.md" and _is_result(folder):
        return f"{path.name} is the best skill of the SkillOpt results in {folder.name}"
    step = _STEP.fullmatch(path.name)
    if step and folder.name == "skills" and _is_result(above):
        when = f"after step {step['step']}" if int(step["step"]) else "at the beginning"
        return f"{path.name} is the skill {when} of the SkillOpt results in {above.name}"
    return ""


def _is_result(folder: Path) -> bool:
    return (folder / "history.json").is_file() and (folder / "skills").is_dir()
