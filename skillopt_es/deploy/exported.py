"""Where a line of an exported file is in the log: which skill, after which event, and how far it was moved."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from skillopt_es.deploy.check import check_export, provenance_in
from skillopt_es.deploy.facts import Which
from skillopt_es.deploy.folder import SKILL_FILE
from skillopt_es.errors import DataError, NotInRun
from skillopt_es.events.log import EventLog


@frozen(kw_only=True)
class ExportedFile:
    """
    A file of an exported skill: after event `until` the run's skill `which` had it as `measured_as`.

    Its lines stand `moved` lines lower than in the log; the first `replaced` ones of the log are not in it.
    """

    which: Which
    until: int
    measured_as: str
    moved: int = 0
    replaced: int = 0


def exported_file(folder: Path, log: EventLog, path: str) -> ExportedFile:
    """A file of an exported folder, SKILL.md by default; raises DataError where the log says something else."""
    report = check_export(folder, log)
    if not report.ok:
        raise DataError(
            f"{folder} is not what {log.run.name} says: {report.problems[0]}", hint="export the skill again"
        )
    document = provenance_in(folder)
    head, files = document.folder.frontmatter, document.folder.files
    file = next((each for each in files if each.path == (path or SKILL_FILE)), None)
    if file is None:
        raise NotInRun(f"{folder} has no file {path}", hint=f"it has {', '.join(each.path for each in files)}")
    rewritten = file.measured_as == document.facts.skill.main and head.written != "kept"
    measured = head.measured.count("\n") if rewritten else 0
    written = (folder / SKILL_FILE).read_bytes()[: head.bytes].count(b"\n") if rewritten else 0
    return ExportedFile(
        which=document.facts.skill.which,
        until=document.facts.log.seq,
        measured_as=file.measured_as,
        moved=written - measured,
        replaced=measured,
    )
