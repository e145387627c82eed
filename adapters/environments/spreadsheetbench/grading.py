"""Comparing a workbook with the expected one, and telling about it."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from skillopt_es.adapters.environments.spreadsheetbench.books import Book, CellAt
from skillopt_es.adapters.environments.spreadsheetbench.cells import CellValue, Scoring, same_value, shown
from skillopt_es.adapters.environments.spreadsheetbench.items import Case
from skillopt_es.adapters.environments.spreadsheetbench.ranges import Range, column_name
from skillopt_es.adapters.environments.spreadsheetbench.workshop import Ran
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import Measured
from skillopt_es.ports import Episode, TrajectoryRecord

MOST_REPORT = 12_000  # the original's
MOST_CELL = 1000  # one long text in a cell would push the other cells out of the report


@frozen(kw_only=True)
class Cell:
    """One graded cell that holds something in either workbook."""

    place: CellAt
    gold: CellValue
    found: CellValue
    right: bool
    formula: bool = False

    @property
    def name(self) -> str:
        """As in a formula: Sheet1!B2."""
        sheet, row, column = self.place
        return f"{sheet}!{column_name(column)}{row}"


@frozen(kw_only=True)
class Verdict:
    """What came of one workbook: the cells that hold something, how many others are graded, the sheets that lack."""

    cells: tuple[Cell, ...]
    blank: int
    missing: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[Cell, ...]:
        """The cells that do not hold what they should, in reading order of their ranges."""
        return tuple(cell for cell in self.cells if not cell.right)

    @property
    def passed(self) -> bool:
        """Whether every graded cell is right."""
        return not self.missing and not self.wrong

    @property
    def reason(self) -> str:
        """Why it did not pass, in a few words; nothing when it did."""
        if self.missing:
            return f"the workbook has no sheet {self.missing[0]!r}"
        if not self.wrong:
            return ""
        first = self.wrong[0]
        more = f" and {len(self.wrong) - 1} more cells" if len(self.wrong) > 1 else ""
        return f"{first.name} holds {_held(first)}, expected {_shown(first.gold)}{more}"


def compare(gold: Book, found: Book, ranges: Sequence[Range], scoring: Scoring) -> Verdict:
    """The graded cells of both workbooks, side by side; every range must name a sheet that gold has."""
    missing = tuple(dict.fromkeys(each.sheet for each in ranges if each.sheet not in found.sheets))
    cells: dict[CellAt, Cell] = {}
    graded = 0
    for each in ranges:
        graded += each.size
        if each.sheet in missing:
            continue
        places = {place for place in (*gold.cells, *found.cells, *found.formulas) if _inside(place, each)}
        for place in sorted(places, key=lambda place: (place[2], place[1])):
            expected, value = gold.cells.get(place), found.cells.get(place)
            right = same_value(expected, value, scoring)
            cells[place] = Cell(place=place, gold=expected, found=value, right=right, formula=place in found.formulas)
    return Verdict(cells=tuple(cells.values()), blank=max(0, graded - len(cells)), missing=missing)


def report(verdict: Verdict) -> str:
    """Every graded cell with what it holds and what it should; the middle of a long report is cut."""
    lines = [f"{name}: there is no such sheet" for name in verdict.missing]
    lines += [
        f"{cell.name}: got={_held(cell)}, expected={_shown(cell.gold)} {'✓' if cell.right else '✗'}"
        for cell in verdict.cells
    ]
    if verdict.blank:
        lines.append(f"({verdict.blank} more graded cells are empty in both)")
    formulas = [cell.name for cell in verdict.cells if cell.formula]
    if formulas:
        lines.append(
            f"Formulas without a stored value, which count as empty: {', '.join(formulas[:20])}"
            + (f" and {len(formulas) - 20} more" if len(formulas) > 20 else "")
        )
    return _middle_cut("\n".join(lines), MOST_REPORT)


def wrong_cells(verdict: Verdict, *, most: int = 50) -> str:
    """The cells that are wrong and what they hold, without a word of what they should; a long text is cut."""
    lines = [f"- there is no sheet {name!r}" for name in verdict.missing]
    lines += [f"- {cell.name} holds {_held(cell)}" for cell in verdict.wrong[:most]]
    if len(verdict.wrong) > most:
        lines.append(f"- and {len(verdict.wrong) - most} more")
    right = verdict.blank + len(verdict.cells) - len(verdict.wrong)
    return "\n".join([_middle_cut("\n".join(lines), MOST_REPORT), f"{right} graded cells are right."])


def _held(cell: Cell) -> str:
    return "a formula without a stored value" if cell.formula else _shown(cell.found)


def _shown(value: CellValue) -> str:
    return _middle_cut(shown(value), MOST_CELL)


def _inside(place: CellAt, graded: Range) -> bool:
    sheet, row, column = place
    return sheet == graded.sheet and graded.holds(row, column)


def _middle_cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


@frozen(kw_only=True)
class Result:
    """What came of one case: the script's end, and the comparison if there is something to compare."""

    case: Case
    ran: Ran
    verdict: Verdict | None

    @property
    def passed(self) -> bool:
        """Whether every graded cell is right."""
        return self.verdict is not None and self.verdict.passed

    @property
    def failure(self) -> tuple[str, str]:
        """A short code and what happened; both empty when it passed."""
        if self.verdict is None:
            return self.ran.problem, self.ran.detail
        return ("", "") if self.verdict.passed else ("eval_mismatch", self.verdict.reason)


def episode(task: str, turns: int, records: Sequence[TrajectoryRecord], results: Sequence[Result]) -> Episode:
    """The episode of an attempt, from the results of its script on every case; without results there was no script."""
    passed = sum(result.passed for result in results)
    solved = bool(results) and passed == len(results)
    failure, detail = next((result.failure for result in results if not result.passed), ("", ""))
    if not results:
        failure, detail = "no_answer", "there is no script"
    return Episode(
        outcome=Measured(float(solved), passed / len(results) if results else 0.0),
        task=task,
        records=(*records, TrajectoryRecord("feedback", _feedback(results, detail))),
        turns=turns,
        failure=failure,
        detail=detail,
        prediction=f"a script that gets {passed} of {len(results)} workbooks right" if results else "",
    )


def _feedback(results: Sequence[Result], detail: str) -> str:
    blocks = ["[EVALUATION RESULT]" + ("" if results else f"\n{detail}")]
    for result in results:
        lines = [f"## Workbook {result.case.number}: {'PASS' if result.passed else 'FAIL'}"]
        lines += [result.failure[1]] if result.failure[1] else []
        if result.verdict is not None:
            lines.append(report(result.verdict))
        elif result.ran.problem == "exec_error":
            lines.append(f"```\n{shorten(result.ran.output.strip(), 3000)}\n```")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
