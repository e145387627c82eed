"""
`PROVENANCE.json`: where an exported skill comes from, and how its hash can be computed again from the files beside it.

It holds no settings, addresses, items or texts of the run: only names of models, counts, scores and digests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, cast

from attrs import frozen

from skillopt_es.deploy.facts import Facts
from skillopt_es.deploy.frontmatter import DescribedBy
from skillopt_es.errors import DataError
from skillopt_es.events.strict import MISFITS, explain, strict_converter
from skillopt_es.events.values import Json

FILE = "PROVENANCE.json"
FORMAT = "skillopt-es provenance"
VERSION = 1  # of PROVENANCE.json: a newer one is refused by its number instead of misread
HASHED = (
    "SKILL.md begins with `folder.frontmatter.bytes` bytes of frontmatter. Put `folder.frontmatter.measured` in their "
    "place to get the text that was measured, byte for byte; every other file is as it was measured. "
    "`facts.skill.files` has the SHA-256 of each measured file, by its measured path (`folder.files[].measured_as`). "
    "`facts.lines` says which event wrote which lines, counted in the measured file; in SKILL.md they stand "
    "`folder.frontmatter.moves_lines` lower. "
    "`facts.skill.hash` is the SHA-256 of the lines `<sha256> <path>\\n` of all measured files, sorted by path, and of "
    "a line `executable <path>\\n` for each of `facts.skill.executable`, sorted too. "
    "`skillopt-es verify --export FOLDER` does all of this."
)


@frozen(kw_only=True)
class FileFacts:
    """One file as it was exported, and the path that it was measured as."""

    path: str
    measured_as: str
    bytes: int
    sha256: str
    executable: bool = False


@frozen(kw_only=True)
class FrontmatterFacts:
    """
    The frontmatter of SKILL.md: its length, what was measured in its place, and who wrote the description.

    `moves_lines` is how many lines lower each line after it stands than where it was measured.
    """

    written: Literal["kept", "completed", "added"]
    bytes: int
    measured: str
    description_by: DescribedBy
    moves_lines: int = 0


@frozen(kw_only=True)
class FolderFacts:
    """What the exported folder is made of."""

    name: str
    files: tuple[FileFacts, ...]
    frontmatter: FrontmatterFacts


@frozen(kw_only=True)
class Provenance:
    """The whole document: `facts` are the log's, `folder` is what became of them."""

    format: str
    version: int
    exported_by: str
    facts: Facts
    folder: FolderFacts
    hashed: str


_converter = strict_converter(detailed=False)
_explainer = strict_converter(detailed=True)


def plain_facts(facts: Facts) -> dict[str, Json]:
    """The facts as JSON."""
    return cast("dict[str, Json]", _converter.unstructure(facts))


def provenance_text(document: Provenance) -> str:
    """The file's text: the same facts always give the same bytes."""
    return json.dumps(_converter.unstructure(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_provenance(content: bytes, place: str) -> Provenance:
    """The document that a file holds; raises DataError for what this software did not write."""
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        raise DataError(f"{place} is not JSON", hint="export the skill again") from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise DataError(f"{place} was not written by skillopt-es", hint="`skillopt-es export` writes such a folder")
    version = plain.get("version")
    if version != VERSION:
        raise DataError(f"{place} has version {version!r}, and this software knows {VERSION}", hint="upgrade")
    try:
        return _converter.structure(plain, Provenance)
    except MISFITS as error:
        raise DataError(f"{place} is not what was written: {_misfit(plain, error)}") from None


def _misfit(plain: Mapping[str, object], error: BaseException) -> str:
    try:
        # Only the slower converter says which field it is.
        _explainer.structure(plain, Provenance)
    except MISFITS as detailed:
        return explain(detailed)[:300]
    return str(error)
