"""The documents that a target may read: found once, known by their names in the corpus, nothing else in reach."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from attrs import field, frozen

from skillopt_es.adapters.environments.data import unread_hint
from skillopt_es.errors import ConfigError, DataError, SettingRefused

VARIABLE = "OFFICEQA_DOCS_DIR"
PARSED = "treasury_bulletins_parsed"
_SUFFIXES = (".txt", ".md")  # never the files that items come in, so that no answer key can be read
_KEPT_OPEN = 32  # bulletins of some 660 kB of text each: 32 are 21 MB, and the whole corpus is 460


class UnreadableError(Exception):
    """A document that was there when the run began cannot be read."""


@frozen
class Document:
    """A text of the corpus; `name` is what the target calls it."""

    name: str
    path: Path

    @property
    def basename(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    def lines(self) -> Sequence[str]:
        """Its lines, undecodable bytes replaced; raises UnreadableError."""
        try:
            return _lines(self.path, self.path.stat().st_mtime_ns)
        except OSError as error:
            raise UnreadableError(f"{self.name} cannot be read: {error.strerror}") from error


@frozen
class Corpus:
    """All documents by name, and the folders they are in."""

    roots: tuple[Path, ...]
    documents: Mapping[str, Document]
    _by_basename: Mapping[str, tuple[Document, ...]] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        found: dict[str, tuple[Document, ...]] = {}
        for document in self.documents.values():
            found[document.basename] = (*found.get(document.basename, ()), document)
        object.__setattr__(self, "_by_basename", found)

    def named(self, basenames: Sequence[str]) -> tuple[Document, ...]:
        """The documents with one of these basenames, in their order; all documents when there is no basename."""
        if not basenames:
            return tuple(self.documents.values())
        return tuple(found for name in dict.fromkeys(basenames) for found in self._by_basename.get(name, ()))


def open_corpus(folders: Sequence[str], base: Path, environ: Mapping[str, str]) -> Corpus:
    """The documents in the folders that are named, else in the environment's; raises ConfigError and DataError."""
    variable = environ.get(VARIABLE, "")
    named = [*folders] or [part for part in variable.split(os.pathsep) if part.strip()]
    if not named:
        raise SettingRefused(
            "env.data_dirs",
            " is not set, and the target reads documents with tools",
            hint=f"name the folder with the bulletins' text files there or in {VARIABLE}",
        )
    roots = tuple(dict.fromkeys(_root(base, name, "env.data_dirs" if folders else VARIABLE) for name in named))
    documents: dict[str, Document] = {}
    for root in roots:
        for document in _documents(root):
            documents.setdefault(document.name, document)
    if not documents:
        raise DataError(
            f"no {' or '.join(_SUFFIXES)} file in {', '.join(map(str, roots))}",
            hint="unpack the bulletins' text files there (docs/benchmarks/officeqa.md)",
        )
    return Corpus(roots, dict(sorted(documents.items())))


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file's bytes; raises DataError."""
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", hint=unread_hint(error)) from error


def _root(base: Path, name: str, key: str) -> Path:
    folder = Path(base, name.strip()).resolve()
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise ConfigError(f"{key}: {folder} {what}", hint="name the folder with the bulletins' text files")
    inner = (folder / "transformed", folder / PARSED / "transformed")
    return next((place.resolve() for place in inner if place.is_dir()), folder)


def _documents(root: Path) -> Iterator[Document]:
    """The documents below a root; a link that points outside of it is none."""
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.suffix.lower() in _SUFFIXES and not hidden and path.is_file() and path.resolve().is_relative_to(root):
            yield Document(inside.as_posix(), path)


@lru_cache(maxsize=_KEPT_OPEN)
# The time of its change is part of what is remembered, so a changed file is read anew.
def _lines(path: Path, _changed: int) -> Sequence[str]:
    return tuple(path.read_bytes().decode("utf-8-sig", errors="replace").splitlines())
