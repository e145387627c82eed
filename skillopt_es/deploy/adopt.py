"""
Adopting a skill: what a run trained takes the place of the files that it was trained from, and can be taken back.

What was there before, and a receipt, are kept beside the files in `.skillopt-es/adopted/`. The backup and the receipt
are on disk before the first file changes, so whenever a process dies the files can be put back.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from attrs import asdict, frozen

from skillopt_es.deploy.install import STORE
from skillopt_es.errors import OutputRefused
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.values import digest_of

_converter = strict_converter(detailed=False)
_RECEIPT = "receipt.json"


@frozen(kw_only=True)
class Adoption:
    """Which skill of which run took the place of what, by digest; a file that was not there before has no digest."""

    run: str
    skill: str
    before: Mapping[str, str]
    after: Mapping[str, str]


def adopt(folder: Path, name: str, adoption: Adoption, files: Mapping[str, str], *, first: Mapping[str, str]) -> bool:
    """
    Writes the files, with a backup of what they replace; False where they are there already.

    Raises OutputRefused where a file is neither there nor as it was `first`.
    """
    if all(_digest(folder / path) == adoption.after[path] for path in files):
        return False
    changed = [path for path in files if (folder / path).exists() and not _is(folder / path, first.get(path))]
    if changed:
        raise OutputRefused(
            f"{folder / changed[0]} is not what the run began with: somebody has changed it since",
            hint="`skillopt-es export` writes the skill elsewhere; --force replaces the file and keeps a copy",
        )
    _keep(folder, name, adoption, files)
    for path, text in files.items():
        _replace(folder / path, text.encode())
    return True


def take_back(folder: Path, name: str) -> list[str]:
    """Puts back what was there before; the files. Raises OutputRefused where somebody has changed them since."""
    store = folder / STORE / "adopted" / name
    try:
        adoption = _converter.structure(json.loads((store / _RECEIPT).read_bytes()), Adoption)
    except FileNotFoundError:
        raise OutputRefused(
            f"nothing was adopted in {folder / name}", hint="`skillopt-es adopt RUN` does that"
        ) from None
    except (ValueError, RecursionError, *MISFITS) as error:
        raise OutputRefused(
            f"{store / _RECEIPT} cannot be read", hint="put the files back by hand from there"
        ) from error
    for path, digest in adoption.after.items():
        if _digest(folder / path) not in (digest, adoption.before.get(path, "")):
            raise OutputRefused(
                f"{folder / path} was changed since it was adopted", hint=f"what was there before is kept in {store}"
            )
    for path in adoption.after:
        if path in adoption.before:
            _replace(folder / path, (store / "before" / path).read_bytes())
        else:
            (folder / path).unlink(missing_ok=True)
    shutil.rmtree(store)
    return sorted(adoption.after)


def _keep(folder: Path, name: str, adoption: Adoption, files: Mapping[str, str]) -> None:
    """The backup and its receipt, on disk; an earlier adoption's backup is what a second one goes back to."""
    store = folder / STORE / "adopted" / name
    for path in files:
        kept = store / "before" / path
        if (folder / path).exists() and not kept.exists():
            _replace(kept, (folder / path).read_bytes())
    before = {path: _digest(store / "before" / path) for path in files if (store / "before" / path).exists()}
    receipt = asdict(adoption) | {"before": before}
    _replace(store / _RECEIPT, (json.dumps(receipt, indent=2, ensure_ascii=False) + "\n").encode())


def _is(path: Path, text: str | None) -> bool:
    """Whether a file has this text; a run reads line ends, and the end of the last line, in one way only."""
    if text is None or not path.is_file():
        return False
    return path.read_bytes().replace(b"\r\n", b"\n").rstrip(b"\n") == text.encode().rstrip(b"\n")


def _digest(path: Path) -> str:
    return digest_of(path.read_bytes()) if path.is_file() else ""


def _replace(path: Path, content: bytes) -> None:
    """Writes a file in one step; it is durable when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise OutputRefused(f"{path} cannot be written: {error.strerror}") from None
