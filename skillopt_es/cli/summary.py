"""What a session ends with: the best skill as a file, the scores, and what to type next."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.cli.printing import print_json
from skillopt_es.cli.score_tables import (
    Scored,
    all_words,
    chosen_words,
    noted,
    print_certificate,
    print_test_types,
    print_tests,
    scored_json,
    test_difference,
    tests_by_name,
    wants_test,
)
from skillopt_es.cli.terminal import Toned, field, print_error, print_next, say, tell
from skillopt_es.counting import counted
from skillopt_es.deploy.frontmatter import own_name
from skillopt_es.errors import OutputRefused
from skillopt_es.events.catalog import RunPaused
from skillopt_es.events.plain import set_executable
from skillopt_es.events.values import Json, Score, SkillTree
from skillopt_es.presenting.certificates import certificate_json
from skillopt_es.presenting.documents import by_hand_json, plain, plain_judged, plain_part_score, some_of
from skillopt_es.presenting.numbers import shown_usage, shown_value
from skillopt_es.presenting.words import by_hand_words, metric_words, part_words
from skillopt_es.projections.by_hand import BY_HAND_TYPES, ByHand, by_hand
from skillopt_es.projections.certificate import certificate_of
from skillopt_es.projections.deciding import metric_in
from skillopt_es.projections.intervals import Judged
from skillopt_es.projections.lines import Part, part_of
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.folders import BEST_FOLDER, dir_option
from skillopt_es.runs.overview import Spent, spent
from skillopt_es.runs.reading import Reading
from skillopt_es.runs.snapshot import counted_verdicts
from skillopt_es.skill.frontmatter import is_name

# 130 is what shells say of Ctrl-C; 3 means that nothing is wrong, and the run waits for somebody.
_PAUSED = {"interrupt": 130, "error": 1, "unmeasured": 1, "unanswered": 1, "optimizer": 1, "handoff": 3, "budget": 3,
           "asked": 3}  # fmt: skip


def print_outcome(state: AnyState, folder: Path, *, as_json: bool) -> int:
    """Writes the best skill beside the log and prints the outcome; the exit code."""
    best = write_best(state, folder)
    used = spent(folder)
    with Reading.of(folder) as reading:
        difference = test_difference(reading, folder, _tests(state))
        hand = by_hand(recorded.event for recorded in reading.read(types=BY_HAND_TYPES))
    if as_json:
        print_json(_as_json(state, folder, best, used, difference, hand))
    else:
        _print(state, folder, best, used, difference, hand)
    if state.paused is None:
        return 0
    _print_pause(state.paused, folder)
    return _PAUSED[state.paused.reason]


def _print_pause(pause: RunPaused, folder: Path) -> None:
    """Why a run stands still, on stderr, and what makes it go on."""
    match pause.reason:
        case "handoff":
            said = f"{pause.message}: `skillopt-es handoff list {folder}` shows what is asked"
            tell("paused", said, hint=f"when it is answered, {resume_hint(folder)}", reason=pause.reason)
        case "budget":
            hint = f"`skillopt-es {resuming(folder, pause.key)}` continues with a higher limit"
            tell("paused", Toned("paused:", "unsure"), f" {pause.message}", hint=hint, reason=pause.reason)
        case "interrupt" | "asked":
            tell("paused", pause.message, hint=resume_hint(folder), reason=pause.reason)
        case _:
            # What an error says to do was printed when it was raised.
            first = f"{pause.hint}; " if pause.hint and pause.reason != "error" else ""
            print_error(pause.message, f"{first}when the cause is gone, {resume_hint(folder)}")


def resume_hint(folder: Path) -> str:
    """What to type to go on with a run."""
    return f"`skillopt-es {resuming(folder)}` continues it"


def write_best(state: AnyState, folder: Path) -> Path:
    """The best skill's files under `best/`; the path of the main one, or of a whole folder of skills."""
    if state.best.skill.is_folder:
        _clear_skills(folder / BEST_FOLDER, state.best.skill)
    for path, each in state.best.skill.contents.items():
        file = folder / BEST_FOLDER / path
        if not (file.is_file() and file.read_bytes() == each.content):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(each.content)
        set_executable(file, each.executable)
    return folder / BEST_FOLDER / state.best.skill.main


def _clear_skills(best: Path, tree: SkillTree) -> None:
    """Takes out the files of skills that an earlier best folder had, and that this one has not."""
    for main in sorted(best.glob("*/SKILL.md")):
        for file in sorted(main.parent.rglob("*"), reverse=True):
            if file.is_file() and file.relative_to(best).as_posix() not in tree.contents:
                file.unlink()
            elif file.is_dir() and not any(file.iterdir()):
                file.rmdir()
        if not any(main.parent.iterdir()):
            main.parent.rmdir()


def _nothing_learned(state: AnyState) -> str:
    """Why a run kept nothing, where that can be told."""
    if state.completed is None or state.counts.accepted:
        return ""
    if state.stopped is not None and state.stopped.reason == "budget":
        tried = "no edit was kept" if state.steps_done else "no edit was tried"
        return f"{tried}: the calls ended first; `continue` with a higher --max-calls trains on"
    if "simulated" not in _backends(state):
        return ""
    return (
        "no edit was kept: simulated models can only do tasks like the demo's, and learn nothing from others; "
        "name a real endpoint in model.backend"
    )


def _backends(state: AnyState) -> set[Json]:
    model = state.started.config.get("model")
    return {value for key, value in model.items() if key.endswith("backend")} if isinstance(model, dict) else set()


def _tests(state: AnyState) -> dict[str, Scored]:
    named = {"initial": state.started.skill, "best": state.best.skill, "final": state.current.skill}
    return tests_by_name(state.tests.values(), **{name: skill.hash for name, skill in named.items()})


def _as_json(state: AnyState, folder: Path, best: Path, used: Spent, difference: Judged | None, hand: ByHand) -> Json:
    tests, baseline = _tests(state), _baseline(state)
    return {
        "run": folder.name,
        "folder": str(folder),
        "status": state.status,
        "steps": state.steps_done,
        **some_of(state.counts, "accepted", "rejected", "indecisive", "skipped"),
        "attempts": state.counts.rollouts,
        "unmeasured": state.counts.unmeasured,
        "stopped": None if state.stopped is None else state.stopped.reason,
        "gate_metric": metric_in(state.started, state.overrides) or None,
        "baseline": None if baseline is None else plain_part_score(baseline, _over(state, baseline)),
        "best": {
            "file": str(best),
            "hash": state.best.skill.hash,
            "value": state.best.value,
            "over_items": plain(_over(state, state.best.score)),
            "origin": str(state.best.origin),
            "chosen_by_value": _is_chosen(state),
        },
        **{f"test_{name}": scored_json(tests.get(name)) for name in ("initial", "best", "final")},
        "test_difference": None if difference is None else plain_judged(difference),
        "certificate": certificate_json(certificate_of(state)),
        "by_hand": by_hand_json(hand),
        "usage": plain(used),
        "note": _nothing_learned(state) or None,
        "paused": state.paused.message if state.paused else None,
    }


def _baseline(state: AnyState) -> Score | None:
    measured = state.measured.get(state.started.skill.hash)
    return measured.stated if measured else None


def _over(state: AnyState, score: Score | None) -> Part | None:
    """Over how many validation items a score is, where it is not over all."""
    return part_of(score, len(state.started.splits.val))


def _print(state: AnyState, folder: Path, best: Path, used: Spent, difference: Judged | None, hand: ByHand) -> None:
    counts = state.counts
    field("run", f"{folder.name} ({state.status})")
    stopped = "" if state.stopped is None else f"; stopped by {state.stopped.reason} after step {state.stopped.step}"
    field("steps", f"{counted_verdicts(counts)}{stopped}")
    if hand:
        field("by hand", by_hand_words(hand))
    field("validation", _validation(state))
    print_tests(_tests(state), difference, left_out=_untested(state))
    print_certificate(certificate_of(state))
    if counts.unmeasured:
        attempts = f"{counts.unmeasured:,} of {counted(counts.rollouts, 'attempt')}"
        why = f"log {folder.name} --type RolloutCompleted{dir_option(folder.parent)}"
        field("unmeasured", f"{attempts}; `skillopt-es {why}` says why")
    field("used", f"{shown_usage(used.usage.total, used.currency)}")
    field("best skill", f"{best} (from {state.best.origin})")
    print_test_types(_tests(state))
    note = _nothing_learned(state)
    if note:
        say()
        field("note", note)
    say()
    print_next(next_steps(state, folder))


def _validation(state: AnyState) -> str:
    """The first and the best skill by the score that decides, and over which items each one is."""
    first = state.measured.get(state.started.skill.hash)
    if first is None and state.best.score is None:
        return "not measured yet"
    items, chosen = len(state.started.splits.val), _is_chosen(state)
    fewer, over = _over(state, _baseline(state)), _over(state, state.best.score)
    before, after = part_words(fewer), part_words(over, chosen=chosen)
    unlike = fewer != over
    if unlike:
        before, after = before or all_words(items), after or all_words(items)
    metric = metric_in(state.started, state.overrides)
    values = f"{shown_value(first.value if first else None)}{before} -> {shown_value(state.best.value)}{after}"
    told = chosen_words(chosen=chosen, tested=bool(state.tests))
    return f"{metric_words(metric)}: {values}{noted('not the same items' if unlike else '', told)}"


def _untested(state: AnyState) -> bool:
    """Whether a complete run was to be tested, and its algorithm has left that out for want of calls."""
    return bool(wants_test(state.started, state.overrides) and state.completed and not state.tests)


def _is_chosen(state: AnyState) -> bool:
    """Whether the best skill's score on validation is the one that it was chosen by."""
    measured = state.measured.get(state.best.skill.hash)
    told = measured is not None and measured.fresh is not None
    return state.best.skill.hash != state.started.skill.hash and not told


def next_steps(state: AnyState, folder: Path) -> list[tuple[str, str]]:
    """What to type after a session, each with what it is good for."""
    name, where = folder.name, dir_option(folder.parent)
    if state.paused is not None:
        pause = state.paused
        return steps_after(folder, reason=pause.reason, key=pause.key, hint=pause.hint)
    if state.completed is None:
        return [(resuming(folder), "")]
    steps = [(f"report {name}{where}", "the run as a page")]
    if _untested(state):
        steps.append(
            (f"eval --run {folder if where else name} --split test", "the test that its calls did not pay for")
        )
    if state.stopped is not None and state.stopped.reason == "budget":
        steps.append(continuing(name, where))
    if _backends(state) == {"simulated"}:  # the demo: there is nothing to deliver
        if state.steps_done:
            steps.append((f"replay {name} --until step {min(2, state.steps_done)}{where}", "the state then"))
        return [*steps, *_blame(state, name, where), ("init my-project", "your own tasks")]
    if not state.counts.accepted:
        return [*steps, (f"why-not {name}{where}", "what was proposed, and why it was not taken")]
    return [
        *steps,
        (f"install {name}{_name_to_give(state)} --to claude{where}", "or codex, or a folder of skills"),
        (f"eval --run {folder if where else name} --split val", "score the best skill again"),
    ]


def continuing(name: str, where: str) -> tuple[str, str]:
    """What trains on from a run that its budget has completed."""
    return f"continue {name} --max-calls 200{where}", "train on from its best skill, as a new run"


def _blame(state: AnyState, name: str, where: str) -> list[tuple[str, str]]:
    """The command that shows who wrote a text; of a folder of skills, its first one's."""
    files = sorted(state.best.skill.files)
    if state.best.skill.is_folder and not files:
        return []
    file = f" {files[0]}" if state.best.skill.is_folder else ""
    return [(f"blame {name}{file}{where}", "who wrote each line")]


def _name_to_give(state: AnyState) -> str:
    """The option without which `install` refuses a skill that agents could not call by its own name."""
    if state.best.skill.is_folder:  # each skill of it has its name
        return ""
    try:
        named = is_name(own_name(state.best.skill.text))
    except OutputRefused:  # its frontmatter is none: `install` says what to do about that
        return ""
    return "" if named else " --name my-skill"


def limit_option(key: str) -> str:
    """The option that raises a budget's limit: `--max-calls` for `budget.max_calls`; a sweep's has its key alone."""
    return f"--{key.removeprefix('budget.').replace('_', '-')}" if key.startswith("budget.") else key


def resuming(folder: Path, limit: str = "") -> str:
    """The command that goes on with a run; where a limit paused it, with the option that raises it."""
    more = f" {limit_option(limit)} N" if limit.startswith("budget.") else ""
    return f"resume {folder.name}{dir_option(folder.parent)}{more}"


def steps_after(folder: Path, *, reason: str, key: str, hint: str) -> list[tuple[str, str]]:
    """What to type about a pause; `hint` is what was said to do about its cause."""
    command = resuming(folder, key)
    match reason:
        case "handoff":
            asked = (f"handoff list {folder.name}{dir_option(folder.parent)}", "what is asked")
            return [asked, (command, "when it is answered")]
        case "budget":
            return [(command, "with a higher limit")]
        case "interrupt" | "asked":
            return [(command, "")]
        case _:
            return [(command, f"first: {hint}" if hint else "when the cause is gone")]
