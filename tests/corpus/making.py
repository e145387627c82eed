"""
Makes the corpus, reads it with every reading command, and compares what is found with what was recorded.

    python -m tests.corpus.making check [--only NAME …]   nothing that was recorded is decided or shown in another way
    python -m tests.corpus.making record                  records it again: a change that is wanted, and explained
    python -m tests.corpus.making make FOLDER             makes the runs alone
    python -m tests.corpus.making differences FOLDER OTHER   the fields in which the events of two such folders differ
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from corpus.cases import CASES, Case, Killed, files_of

COMMAND = Path(sys.executable).parent / "skillopt-es"
RECORDED = Path(__file__).parent.parent / "golden" / "corpus.tar.xz"
DOCUMENTS = Path(__file__).parent.parent / "golden" / "documents.tar.xz"
_LOG = ("log.db", "head.json", "tail", "lock")  # what cannot be made again

# What every run is asked, with its folder in the place of RUN.
READING: Mapping[str, Sequence[str]] = {
    "status": ["status", "RUN"],
    "replay": ["replay", "RUN"],
    "replay-check": ["replay", "RUN", "--check"],
    "replay-step": ["replay", "RUN", "--until", "step", "2"],
    "log": ["log", "RUN"],
    "usage": ["usage", "RUN"],
    "lineage": ["lineage", "RUN"],
    "explain-step": ["explain", "RUN", "step", "1"],
    "explain-epoch": ["explain", "RUN", "epoch", "1"],
    "explain-item": ["explain", "RUN", "--item", "date-04"],
    "why-not": ["why-not", "RUN"],
    "blame": ["blame", "RUN"],
    "skills": ["skills", "RUN"],
    "verify": ["verify", "RUN"],
    "report": ["report", "RUN"],
    "regate": ["regate", "RUN", "--rule", "paired"],
    "bisect": ["bisect", "RUN", "--item", "date-04"],
    "compare": ["compare", "RUN", "runs/demo"],
}

# What is drawn by chance: names of runs and of orders.
_CHANCE = {
    ("RunForked", ".parent_id"),
    ("RunSteered", ".name"),
    ("RunStarted", ".learned.run_id"),
}


def make(folder: Path, chosen: Sequence[Case]) -> None:
    """Makes the runs of these cases."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda case: _made(case, folder), chosen))


def _made(case: Case, folder: Path) -> None:
    files_of(case, folder)
    for step in case.steps:
        if isinstance(step, Killed):
            _killed(step, folder)
            continue
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        done = subprocess.run([COMMAND, *step.words], cwd=folder, env=kept, capture_output=True, text=True, check=False)
        if done.returncode != step.code:
            raise SystemExit(f"{case.name}: `{' '.join(step.words)}` ended with {done.returncode}\n{done.stderr}")


def _killed(step: Killed, folder: Path) -> None:
    log = folder / "runs" / step.run / "log.db"
    process = subprocess.Popen([COMMAND, *step.words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while _events(log) < step.events and process.poll() is None:
        pass
    process.send_signal(signal.SIGINT if step.gently else signal.SIGKILL)
    process.wait()


def _events(log: Path) -> int:
    if not log.exists():
        return 0
    try:
        with contextlib.closing(sqlite3.connect(f"file:{log}?mode=ro", uri=True)) as reader:
            [(count,)] = reader.execute("select count(*) from events")
    except sqlite3.OperationalError:  # it is being made
        return 0
    return int(count)


Payload = tuple[str, int, Any]


def place(folder: Path, name: str) -> Path:
    """The folder of a run."""
    [found] = folder.glob(name if "/" in name else f"runs/{name}")
    return found


def payloads(run: Path, *, killed: bool) -> list[Payload]:
    """The events of a run as they are recorded, without when; of a killed run without its pauses and resumptions."""
    with contextlib.closing(sqlite3.connect(f"file:{run}/log.db?mode=ro", uri=True)) as reader:
        rows = reader.execute("select type, version, data from events order by seq").fetchall()
    left_out = {"RunPaused", "RunResumed"} if killed else set()
    return [(kind, version, json.loads(data)) for kind, version, data in rows if kind not in left_out]


def differing(ours: Sequence[Payload], theirs: Sequence[Payload]) -> Iterator[str]:
    """What differs between two runs, but for what is chance: a line for each event."""
    if len(ours) != len(theirs):
        yield f"{len(ours)} and {len(theirs)} events"
    for number, (one, another) in enumerate(zip(ours, theirs, strict=False), 1):
        if one[:2] != another[:2]:
            yield f"event {number}: {one[0]} {one[1]} and {another[0]} {another[1]}"
            return
        fields = [path for path in paths(one[2], another[2]) if (one[0], path) not in _CHANCE]
        if fields:
            yield f"event {number}: {one[0]} {', '.join(fields)}"


def paths(one: Any, another: Any, at: str = "") -> list[str]:
    """Where two documents differ, as dotted names."""
    if isinstance(one, dict) and isinstance(another, dict):
        both, alone = one.keys() & another.keys(), one.keys() ^ another.keys()
        within = [path for key in sorted(both) for path in paths(one[key], another[key], f"{at}.{key}")]
        return within + [f"{at}.{key}" for key in sorted(alone)]
    if isinstance(one, list) and isinstance(another, list) and len(one) == len(another):
        return [path for ours, theirs in zip(one, another, strict=True) for path in paths(ours, theirs, f"{at}[]")]
    return [] if one == another else [at]


def read(folder: Path, chosen: Sequence[Case]) -> dict[str, str]:
    """What each reading command says of each run, by the run's name and the command's."""
    runs = [str(place(folder, name).relative_to(folder)) for case in chosen for name in case.left]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return {name: text for said in pool.map(_read_run, [folder] * len(runs), runs) for name, text in said.items()}


def _read_run(folder: Path, run: str) -> dict[str, str]:
    from skillopt_es.cli.main import main

    os.chdir(folder)
    said = {}
    for title, words in READING.items():
        out, err, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main([*(run if word == "RUN" else word for word in words), "--json"])
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
        text = out.getvalue().replace(str(folder), "FOLDER")
        if "bug in skillopt-es" in err.getvalue():
            raise SystemExit(f"{title} of {run}: {err.getvalue()}")
        said[f"{run}.{title}"] = f"exit code {code}\n{text}"
    return said


def record(chosen: Sequence[Case]) -> None:
    """Makes the corpus, and what is said of it, and packs both."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        make(folder, chosen)
        with tarfile.open(RECORDED, "w:xz", preset=9) as archive:
            for case in chosen:
                for name in case.left:
                    run = place(folder, name)
                    with contextlib.closing(sqlite3.connect(run / "log.db")) as log:
                        log.execute("pragma wal_checkpoint(truncate)")
                    for part in (run / name for name in _LOG if (run / name).exists()):
                        archive.add(part, str(part.relative_to(folder)), filter=_plain)
        shutil.rmtree(folder / "runs")
        shutil.rmtree(folder / "evals", ignore_errors=True)
        _unpack(folder)
        with tarfile.open(DOCUMENTS, "w:xz", preset=9) as archive:
            for name, text in read(folder, chosen).items():
                data = text.encode()
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _unpack(folder: Path) -> None:
    with tarfile.open(RECORDED) as archive:
        archive.extractall(folder, filter="data")


def check(chosen: Sequence[Case]) -> int:
    """
    Makes the runs again and reads the recorded ones; how many differences there are.

    The recorded logs are read, so that nothing depends on the time. The runs that are made again are compared
    by their events.
    """
    found = 0
    with tempfile.TemporaryDirectory() as recorded, tempfile.TemporaryDirectory() as made:
        before, after = Path(recorded).resolve(), Path(made).resolve()
        _unpack(before)
        make(after, chosen)
        for case in chosen:
            for name in case.left:
                for line in differing(*(payloads(place(each, name), killed=case.killed) for each in (before, after))):
                    found += 1
                    print(f"{name}: {line}")
        with tarfile.open(DOCUMENTS) as archive:
            for name, text in read(before, chosen).items():
                file = archive.extractfile(name)
                assert file is not None
                if (was := file.read().decode()) != text:
                    found += 1
                    print(f"{name}: {', '.join(_lines(was, text))}")
    return found


def _lines(was: str, now: str) -> list[str]:
    """Where two documents differ."""
    codes = [text.partition("\n")[0] for text in (was, now)]
    try:
        found = paths(*(json.loads(text.partition("\n")[2]) for text in (was, now)))
    except json.JSONDecodeError:
        return ["what is said differs", *codes]
    return [*(codes if codes[0] != codes[1] else ()), *dict.fromkeys(found)][:12]


def _main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=["check", "record", "make", "differences"])
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--only", nargs="+", default=[], choices=[case.name for case in CASES], metavar="NAME")
    given = parser.parse_args()
    chosen = [case for case in CASES if not given.only or case.name in given.only]
    folders = [each.resolve() for each in given.folders]
    match given.job:
        case "check":
            return check(chosen)
        case "record":
            record(chosen)
        case "make":
            make(folders[0], chosen)
        case _:
            lines: dict[str, int] = {}
            for each in chosen:
                for name in each.left:
                    for line in differing(*(payloads(place(folder, name), killed=each.killed) for folder in folders)):
                        field = line.partition(": ")[2]
                        lines[field] = lines.get(field, 0) + 1
            for line, count in sorted(lines.items()):
                print(f"{count:6} {line}")
    return 0


if __name__ == "__main__":
    raise SystemExit(min(_main(), 1))
