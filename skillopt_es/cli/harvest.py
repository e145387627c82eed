"""`harvest`: tasks from what people asked their coding agents, each kept by a person before anything trains on it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import json_option
from skillopt_es.cli.printing import print_json, print_table
from skillopt_es.cli.propose import FILE, propose_command, there
from skillopt_es.cli.terminal import print_warning, tell
from skillopt_es.counting import counted
from skillopt_es.errors import DataError
from skillopt_es.presenting.documents import some_of

if TYPE_CHECKING:
    from skillopt_es.events.values import Json
    from skillopt_es.harvest.review import Reviewed, Task
    from skillopt_es.ports import Conversation, Unreadable


@click.group("harvest")
def harvest_command() -> None:
    """
    Tasks from your conversations with coding agents: found by rules, kept one by one by you.

    \b
    skillopt-es harvest scan                           read the agents' files, write harvest.jsonl
    skillopt-es harvest propose config.yaml            if you like: a model makes better tasks of them
    skillopt-es harvest review                         look at each candidate: keep, leave or edit it
    skillopt-es harvest tasks tasks.jsonl              the kept ones, as data for a run
    """


@harvest_command.command("scan")
@click.option(
    "--from",
    "agents",
    multiple=True,
    metavar="AGENT",
    help="claude, codex, copilot, cursor or opencode; may be repeated. By default all.",
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="The home folder that the agents' files lie in; by default yours.",
)
@click.option("--folder", help="Only conversations held in this folder or below it.")
@click.option("--since", metavar="DATE", help="Only conversations that began on this day (YYYY-MM-DD) or later.")
@click.option("--out", type=click.Path(path_type=Path), default=FILE, show_default=True, help="The harvest's file.")
@json_option
def scan_command(
    agents: tuple[str, ...], home: Path | None, folder: str | None, since: str | None, out: Path, as_json: bool
) -> None:
    """
    Read the agents' own files, take out keys and personal data, and add new candidates to the harvest's file.

    The agents' files are only read. No model is asked and nothing is sent anywhere. What was found before stays as it
    is, with what was decided about it.
    """
    from skillopt_es.config.places import refuse_packaged
    from skillopt_es.deploy.files import refuse_run_files
    from skillopt_es.harvest.mining import candidates
    from skillopt_es.harvest.review import appended, read_harvest
    from skillopt_es.ports import Unreadable
    from skillopt_es.sessions.conversations import AGENT_NAMES, read_conversations

    chosen = _known(agents, AGENT_NAMES)
    refuse_packaged(out)
    refuse_run_files(out)
    known = read_harvest(out)
    day = _day(since)
    everything = list(read_conversations(Path.home() if home is None else home, chosen))
    unreadable = [each for each in everything if isinstance(each, Unreadable)]
    read = [each for each in everything if not isinstance(each, Unreadable) and _wanted(each, folder, day)]
    found = candidates(read)
    new = [each for each in found if each.id not in known]
    appended(out, new)
    private = Counter[str]()
    for each in found:
        private.update(each.private)
    if as_json:
        print_json(
            {
                "file": str(out),
                "conversations": dict(Counter(each.agent for each in read)),
                "unreadable": [{"agent": each.agent, "file": each.file, "why": each.why} for each in unreadable],
                "candidates": len(found),
                "new": [each.id for each in new],
                "taken_out": dict(private),
            }
        )
        return
    _tell_scanned(chosen, read, unreadable, private)
    click.echo(f"candidates  {len(found)}, {len(new)} of them new, in {out}")
    if new:
        click.echo(f"next        skillopt-es harvest review {out}")
        click.echo("            (or have a model make better tasks of them first: skillopt-es harvest propose CONFIG)")


def _tell_scanned(
    chosen: tuple[str, ...], read: list[Conversation], unreadable: list[Unreadable], private: Counter[str]
) -> None:
    rows = [
        (name, str(len(own)), str(sum(len(each.turns) for each in own)))
        for name in chosen
        if (own := [each for each in read if each.agent == name])
    ]
    if rows:
        print_table(("agent", "conversations", "requests"), rows, right=(1, 2))
    else:
        tell("harvest", f"no conversation of {', '.join(chosen)} was found")
    for each in unreadable:
        print_warning(f"{each.file} was left out: {each.why}")
    if private:
        told = ", ".join(f"{name} {counted(count, 'time')}" for name, count in sorted(private.items()))
        click.echo(f"taken out   {told}")


def _known(agents: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    for each in agents:
        if each not in names:
            raise click.UsageError(f"--from {each}: no such agent is known; known are {', '.join(names)}")
    return agents or names


def _day(since: str | None) -> float | None:
    if since is None:
        return None
    try:
        return datetime.strptime(since, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise click.UsageError(f"--since {since}: write a day as YYYY-MM-DD") from error


def _wanted(each: Conversation, folder: str | None, day: float | None) -> bool:
    """Whether a conversation was held there and then; one that does not say when it began is not left out."""
    if folder is not None and not Path(each.folder).is_relative_to(Path(folder).expanduser().resolve()):
        return False
    began = _moment(each.when)
    return day is None or began is None or began >= day


def _moment(when: str) -> float | None:
    """A moment that an agent wrote: ISO 8601, or milliseconds."""
    if when.isdigit():
        return int(when) / 1000
    try:
        return datetime.fromisoformat(when).timestamp()
    except ValueError:
        return None


harvest_command.add_command(propose_command)


@harvest_command.command("review")
@click.argument("file", type=click.Path(path_type=Path), default=FILE)
@click.option("--keep", multiple=True, metavar="ID", help="Keep this candidate, and ask nothing.")
@click.option("--leave", multiple=True, metavar="ID", help="Leave this one, and ask nothing.")
@json_option
def review_command(file: Path, keep: tuple[str, ...], leave: tuple[str, ...], as_json: bool) -> None:
    """
    Look at each candidate that is open, and keep it, leave it, or change it first.

    Look for what no rule finds: names of people, what only you may know, and answers that were wrong although nobody
    said so. Every decision is written down at once; what is left open is asked again the next time.
    """
    from skillopt_es.harvest.review import read_harvest

    harvest = there(file, read_harvest(file))
    decided = [(each, "kept") for each in keep] + [(each, "left") for each in leave]
    for name, word in decided:
        _decide(file, _one(harvest, name), word)
    if as_json:
        print_json([_plain(each) for each in read_harvest(file).values()])
        return
    if not decided:
        _ask(file, [each for each in harvest.values() if each.decision == "open"])
    counts = Counter(each.decision for each in read_harvest(file).values())
    click.echo(f"kept {counts['kept']}, left {counts['left']}, open {counts['open']}")
    if counts["kept"]:
        click.echo(f"next        skillopt-es harvest tasks tasks.jsonl --file {file}")


def _ask(file: Path, waiting: list[Reviewed]) -> None:
    from skillopt_es.harvest.review import task_of

    for number, each in enumerate(waiting, 1):
        task = each.draft
        while True:
            _show(each, task, f"{number} of {len(waiting)}")
            word = _answer(file, proposed=task != task_of(each.candidate))
            if word not in ("e", "r"):
                break
            task = _edited(task) if word == "e" else task_of(each.candidate)
        if word == "q":
            return
        if word in ("k", "l"):
            _decide(file, each, "kept" if word == "k" else "left", task)


def _answer(file: Path, *, proposed: bool) -> str:
    """A letter; with Ctrl-C, or where nobody is there to ask, it says how to go on, and ends."""
    words, letters = "keep, leave, edit, later or quit", ["k", "l", "e", "s", "q"]
    if proposed:
        words, letters = "keep, leave, edit, the rules' own task, later or quit", ["k", "l", "e", "r", "s", "q"]
    try:
        return str(click.prompt(words, type=click.Choice(letters)))
    except click.Abort:
        click.echo("")
        hint = f"`skillopt-es harvest review {file}` asks about the rest; --keep ID and --leave ID ask nothing"
        tell("harvest", "what was decided is written down", hint=hint)
        raise


def _show(each: Reviewed, task: Task, where: str) -> None:
    candidate = each.candidate
    times = counted(len(candidate.seen), "time")
    agents = ", ".join(dict.fromkeys(seen.agent for seen in candidate.seen))
    click.echo(f"\n[{where}] {candidate.id}  {candidate.kind}  asked {times} ({agents})")
    if (proposal := each.proposal) is not None:
        what = "makes no task of it" if proposal.proposed is None else "proposes a task"
        click.echo(f"{proposal.by} {what}{f': {proposal.why}' if proposal.why else ''}")
        for dropped in proposal.dropped:
            click.echo(f"taken out of that: {dropped}")
    click.echo(json.dumps(task, ensure_ascii=False, indent=2))
    word = "which nobody corrected" if candidate.accepted else "after a correction"
    click.echo(f"the answer, {word}:\n{candidate.answered[:1500]}")


def _edited(task: Task) -> Task:
    """The task as the person's editor leaves it; as it was, with a warning, where that is no task."""
    text = click.edit(json.dumps(task, ensure_ascii=False, indent=2), extension=".json")
    if text is None:
        return task
    try:
        value = json.loads(text)
    except ValueError as error:
        print_warning(f"not JSON ({error}): the task stays as it was")
        return task
    if not isinstance(value, dict) or not isinstance(value.get("id"), str) or not value.get("input"):
        print_warning("a task is an object with an id and an input: it stays as it was")
        return task
    return value


def _decide(file: Path, each: Reviewed, word: str, task: Task | None = None) -> None:
    from skillopt_es.harvest.review import Decision, appended

    changed = task if task is not None and task != each.draft else None
    at = datetime.now(UTC).isoformat(timespec="seconds")
    kept = word == "kept"
    task = changed if kept else None
    appended(file, [Decision(id=each.candidate.id, decision="kept" if kept else "left", at=at, task=task)])


def _one(harvest: dict[str, Reviewed], name: str) -> Reviewed:
    found = [each for each in harvest if each.startswith(name)]
    if len(found) != 1:
        said = "no candidate's id begins so" if not found else f"{len(found)} ids begin so"
        raise click.UsageError(f"{name}: {said}; `skillopt-es harvest review --json` lists them")
    return harvest[found[0]]


def _plain(each: Reviewed) -> dict[str, Json]:
    candidate = each.candidate
    return {
        "id": candidate.id,
        "decision": each.decision,
        "kind": candidate.kind,
        "times": len(candidate.seen),
        **some_of(candidate, "accepted", "answered"),
        "proposed_by": None if each.proposal is None or each.proposal.proposed is None else each.proposal.by,
        "task": each.draft,
    }


@harvest_command.command("tasks")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--file", type=click.Path(path_type=Path), default=FILE, show_default=True, help="The harvest's file.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@json_option
def tasks_command(out: Path, file: Path, force: bool, as_json: bool) -> None:
    """
    Write the tasks that you have kept to OUT, as `env.data_path` of a run.

    Their texts are marked as untrusted, since others may have written parts of them.
    """
    from skillopt_es.deploy.files import refuse_existing, writing
    from skillopt_es.harvest.review import kept_tasks, read_harvest

    tasks = kept_tasks(there(file, read_harvest(file)))
    if not tasks:
        raise DataError(f"nothing in {file} has been kept", hint=f"`skillopt-es harvest review {file}` asks about each")
    refuse_existing(out, force=force)
    with writing(out, force=force) as draft:
        draft.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in tasks), encoding="utf-8")
    if as_json:
        print_json({"file": str(out), "tasks": len(tasks)})
        return
    click.echo(f"wrote       {out} ({counted(len(tasks), 'task')})")
    click.echo(f'next        env: {{name: tasks, data_path: {out}, split_ratio: "2:1:1"}}')
    if any(each.get("grader") == "judge" for each in tasks):
        click.echo("            and model.judge, since some of these tasks are graded by a judge")
