"""The receipt in an installed skill's folder: what was installed, and what it took the place of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from attrs import asdict, frozen

from skillopt_es.deploy.facts import Facts
from skillopt_es.deploy.folder import RECEIPT
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.values import FileContent, digest_of

_converter = strict_converter(detailed=False)


@frozen(kw_only=True)
class Receipt:
    """What an installation wrote, by digest; `backup` says whether something else was there before."""

    format: Literal["skillopt-es receipt"] = "skillopt-es receipt"
    version: int = 1
    name: str
    run_id: str
    skill: str
    seq: int
    backup: bool
    files: Mapping[str, str]


def receipt_of(name: str, facts: Facts, files: Mapping[str, FileContent]) -> Receipt:
    """The receipt for these files of a skill; whether something was there before is not known yet."""
    return Receipt(
        name=name,
        run_id=facts.run.id,
        skill=facts.skill.hash,
        seq=facts.log.seq,
        backup=False,
        files={path: digest_of(each.content) for path, each in sorted(files.items())},
    )


def receipt_text(receipt: Receipt) -> str:
    """The receipt as its file has it."""
    return json.dumps(asdict(receipt), indent=2, ensure_ascii=False) + "\n"


def read_receipt(folder: Path) -> Receipt | None:
    """The receipt of an installed skill; None for a folder (or link, or nothing) that we did not install."""
    if folder.is_symlink():
        return None
    try:
        return _converter.structure(json.loads((folder / RECEIPT).read_bytes()), Receipt)
    except (OSError, ValueError, RecursionError, *MISFITS):
        # Without a receipt that can be read a folder counts as the user's own, which is never removed.
        return None


def changed_since(folder: Path, receipt: Receipt) -> str:
    """The first file that is not as it was installed; empty when all are."""
    there = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    there.pop(RECEIPT, None)
    for name in sorted({*there, *receipt.files}):
        path = there.get(name)
        if path is None or name not in receipt.files or path.is_symlink():
            return name
        try:
            same = digest_of(path.read_bytes()) == receipt.files[name]
        except OSError:
            same = False
        if not same:
            return name
    return ""
