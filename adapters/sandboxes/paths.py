"""Names of files in a sandbox's work folder."""

from __future__ import annotations

from pathlib import PurePosixPath

from skillopt_es.adapters.sandboxes.job import Job, SandboxError


def checked_paths(job: Job) -> None:
    """Raises SandboxError for a file that would not be in the work folder."""
    for name in (*job.files, *job.collect):
        path = PurePosixPath(name)
        if not name or "\0" in name or path.is_absolute() or ".." in path.parts or str(path) in {"", "."}:
            raise SandboxError(f"{name!r} is not the name of a file in the sandbox's work folder")
