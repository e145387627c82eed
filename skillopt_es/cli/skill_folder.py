"""Writing the folder of a skill: nothing of anybody else's is replaced, and PROVENANCE.json comes last."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from skillopt_es.cli.files import refuse_existing, write_file
from skillopt_es.cli.terminal import print_note
from skillopt_es.deploy.check import provenance_in
from skillopt_es.deploy.folder import SkillFolder
from skillopt_es.errors import DataError


def write_folder(folder: Path, built: SkillFolder, *, force: bool) -> list[Path]:
    """Writes a skill into its folder; the paths. What an earlier export wrote there and this one does not, goes."""
    paths = {path: folder / path for path in built.files}
    for path in paths.values():
        refuse_existing(path, force=force)
    with suppress(DataError):
        earlier = provenance_in(folder).folder.files
        for stale in {file.path for file in earlier} - set(paths):
            if ".." not in Path(stale).parts and not Path(stale).is_absolute():
                (folder / stale).unlink(missing_ok=True)
    for name, path in paths.items():
        write_file(path, built.files[name])
    tell(built)
    return list(paths.values())


def tell(built: SkillFolder) -> None:
    """What the user should know of it, on stderr."""
    for note in built.notes:
        print_note(note)
