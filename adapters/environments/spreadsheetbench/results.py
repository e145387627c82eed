"""What came of the cases of an item, and the episode that they make."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from skillopt_es.adapters.environments.spreadsheetbench.grading import Verdict, report
from skillopt_es.adapters.environments.spreadsheetbench.items import Case
from skillopt_es.adapters.environments.spreadsheetbench.workshop import Ran
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import Measured
from skillopt_es.ports import Episode, TrajectoryRecord


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
    """The episode of an attempt, from what its script came to on every case; without results there was no script."""
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
