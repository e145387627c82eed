"""Tasks on workbooks: the simulated target's scripts, with a mistake unless the skill has the rule, and their trial."""

from __future__ import annotations

import json
from collections.abc import Callable

from skillopt_es.adapters.models.simulated.forms import Found
from skillopt_es.adapters.models.simulated.kinds import Rule, Topic
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatRequest, ToolCall

_SCRIPT = """\
```python
import openpyxl

book = openpyxl.load_workbook(INPUT_PATH)
sheet = {sheet}
columns = {{cell.value: cell.column for cell in sheet[1]}}
{body}
book.save(OUTPUT_PATH)
```"""


def _script(body: str, sheet: str = "book[{sheet!r}]") -> Callable[[Found], str]:
    """A script with the values that a task names put into it."""
    return lambda found: _SCRIPT.format(sheet=sheet.format(**found.groupdict()), body=body.format(**found.groupdict()))


def _never_said(_found: Found) -> str:
    """Nothing: what a script should have been is in no evaluation, only that its cells are wrong."""
    return ""


_VALUES = "values = [row[columns[{column!r}] - 1].value for row in sheet.iter_rows(min_row=2, max_row=sheet.max_row)]\n"
_LETTER = "letter = openpyxl.utils.get_column_letter(columns[{column!r}])\n"

SHEET_TOPICS: tuple[Topic, ...] = (
    Topic(
        kind="total",
        asked="Sum up the column",
        value=r"column (?P<column>\w+) of the sheet (?P<sheet>\w+) and put the total into (?P<cell>[A-Z]+\d+)",
        naive=_script(_LETTER + 'sheet[{cell!r}] = f"=SUM({{letter}}2:{{letter}}{{sheet.max_row}})"'),
        house=_script(_VALUES + "sheet[{cell!r}] = sum(value for value in values if value is not None)"),
        wanted=_never_said,
        rule=Rule(
            name="computed values",
            keywords=[r"\bformulas?\b", r"\bvalues?\b"],
            wording="Write computed values into cells instead of formulas: nothing computes a formula after saving.",
        ),
    ),
    Topic(
        kind="latest date",
        asked="Find the latest date",
        value=r"in the column (?P<column>\w+) of the sheet (?P<sheet>\w+) and put it into (?P<cell>[A-Z]+\d+)",
        naive=_script(_VALUES + 'sheet[{cell!r}] = max(filter(None, values)).strftime("%d.%m.%Y")'),
        house=_script(_VALUES + "sheet[{cell!r}] = max(filter(None, values))"),
        wanted=_never_said,
        rule=Rule(
            name="date cells",
            keywords=[r"\bdatetime\b"],
            wording="Write a moment as a datetime object, so that the cell holds it as one and not as text.",
        ),
    ),
    Topic(
        kind="product column",
        asked="Fill the column",
        value=r"column (?P<column>\w+) of the sheet (?P<sheet>\w+) with (?P<first>\w+) times (?P<second>\w+)",
        naive=_script(
            "for row in range(2, 6):\n"
            "    pair = [sheet.cell(row, columns[name]).value for name in ({first!r}, {second!r})]\n"
            "    sheet.cell(row, columns[{column!r}]).value = pair[0] * pair[1]"
        ),
        house=_script(
            "for row in range(2, sheet.max_row + 1):\n"
            "    pair = [sheet.cell(row, columns[name]).value for name in ({first!r}, {second!r})]\n"
            "    sheet.cell(row, columns[{column!r}]).value = pair[0] * pair[1]"
        ),
        wanted=_never_said,
        rule=Rule(
            name="all rows",
            keywords=[r"\bmax_row\b"],
            wording="Go through all rows up to sheet.max_row: the preview shows the first ones only.",
        ),
    ),
    Topic(
        kind="entry count",
        asked="Write the number of entries",
        value=r"of the sheet (?P<sheet>\w+) into its cell (?P<cell>[A-Z]+\d+)",
        naive=_script("sheet[{cell!r}] = sheet.max_row - 1", sheet="book.active"),
        house=_script("sheet[{cell!r}] = sheet.max_row - 1"),
        wanted=_never_said,
        rule=Rule(
            name="named sheets",
            keywords=[r"\bactive\b", r"\b(?:work)?sheets?\b"],
            wording="Open the sheet that the instruction names: book.active is often another one.",
        ),
    ),
    Topic(
        kind="word count",
        asked="Count the rows",
        value=r"of the sheet (?P<sheet>\w+) whose (?P<column>\w+) is (?P<word>\w+) and put the number into "
        r"(?P<cell>[A-Z]+\d+)",
        naive=_script(_VALUES + "sheet[{cell!r}] = sum(value == {word!r} for value in values)"),
        house=_script(_VALUES + "sheet[{cell!r}] = sum(str(value).strip().lower() == {word!r} for value in values)"),
        wanted=_never_said,
        rule=Rule(
            name="loose matching",
            keywords=[r"\bcase\b", r"\bspaces?\b"],
            wording="Compare texts without regard to case and to spaces at their ends.",
        ),
    ),
    Topic(
        kind="sum over errors",
        asked="Add up the numbers",
        value=r"in the column (?P<column>\w+) of the sheet (?P<sheet>\w+) and put the result into (?P<cell>[A-Z]+\d+)",
        naive=_script(_VALUES + "sheet[{cell!r}] = sum(float(value) for value in values if value is not None)"),
        house=_script(_VALUES + "sheet[{cell!r}] = sum(value for value in values if isinstance(value, int | float))"),
        wanted=_never_said,
        rule=Rule(
            name="error cells",
            keywords=[r"#N/A", r"\bskip\b"],
            wording="Columns of numbers may hold errors such as #N/A, or text: skip such cells.",
        ),
    ),
    Topic(
        kind="text",
        asked="Put the text",
        value=r"text (?P<word>\w+) into (?P<cell>[A-Z]+\d+) of the sheet (?P<sheet>\w+)",
        naive=_script("sheet[{cell!r}] = {word!r}"),
    ),
)

_FILE = "solution.py"
_TOOLS = frozenset({"write_file", "bash"})
_FENCE = "```python\n"
_PATHS = 'INPUT_PATH, OUTPUT_PATH = "input.xlsx", "output.xlsx"\n'


def next_request(request: ChatRequest, answer: str) -> ToolCall | None:
    """What the target asks its tools for next to give this answer; None without such tools, or when it is done."""
    if not {tool.name for tool in request.tools} >= _TOOLS or not answer.startswith(_FENCE):
        return None
    script = _PATHS + answer.removeprefix(_FENCE).removesuffix("```")
    steps: tuple[tuple[str, dict[str, Json]], ...] = (
        ("write_file", {"path": _FILE, "content": script}),
        ("bash", {"cmd": f"python {_FILE}"}),
    )
    done = sum(len(message.tool_calls) for message in request.messages)
    if done >= len(steps):
        return None
    tool, arguments = steps[done]
    return ToolCall(f"call-{done + 1}", tool, json.dumps(arguments))
