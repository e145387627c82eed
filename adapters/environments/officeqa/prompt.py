"""What is said of OfficeQA's tasks: to the target, and to analysts."""

from __future__ import annotations

from collections.abc import Sequence

_ANSWER = """\
## Answer
- Reason first, then give the final answer once, inside <answer> and </answer> tags.
- The final answer is only the value that is asked for, with its unit if the question asks for one."""

_WITH_TOOLS = """\
You answer questions from the text of U.S. Treasury bulletins, which you read with tools.

## Rules
- What you know of the documents comes from the tools alone: glob lists them, grep finds lines, read shows them.
- Find the right document and table first; then read as little as the question needs.
- Search for short phrases of the table, then read the lines around what was found.
- Take no value that you have not seen. Mind the unit in a table's heading.
- Extract all operands before you compute, and compute step by step.
- When you have the answer, reply without asking for a tool."""

_WITHOUT_TOOLS = """\
You answer questions about figures in U.S. Treasury bulletins.

## Rules
- Use what stands in the question's own material. Take no value that you have not seen there, if there is any.
- Extract all operands before you compute, and compute step by step."""

_WITH_SEARCH = """\
You answer questions about figures in U.S. Treasury bulletins. A search engine is asked for you, in rounds.

## Rules
- In every round but the last you either ask for searches or give the answer.
- To search, reply with a JSON list of short queries inside tags: <search_queries>["first", "second"]</search_queries>
- The results come with the next message. In the last round you have to answer.
- Take no value that you have not seen. Extract all operands before you compute."""

_FIRST_NAMED = 20


def tools_prompt(skill_section: str) -> str:
    """The system prompt of a target with tools."""
    return _joined(_WITH_TOOLS, skill_section, _ANSWER)


def plain_prompt(skill_section: str) -> str:
    """The system prompt of a target that is asked once."""
    return _joined(_WITHOUT_TOOLS, skill_section, _ANSWER)


def search_prompt(skill_section: str) -> str:
    """The system prompt of a target that searches in rounds."""
    return _joined(_WITH_SEARCH, skill_section, _ANSWER)


def user_prompt(question: str, *, pages: str, documents: Sequence[str] | None, sources: Sequence[str]) -> str:
    """The message that asks one question; `documents` is None where none can be read."""
    parts = [f"## Question\n{question}"]
    if pages:
        parts.append(f"## Oracle pages\nThe pages that the answer comes from, as parsed:\n\n{pages}")
    if documents is not None:
        parts.append(f"## Candidate files\n{_listed(documents)}")
    if sources:
        parts.append(f"## Source hints\n{_listed(sources)}")
    return _joined(*parts)


def round_policy(turn: int, most: int, queries: int) -> str:
    """What may be done in a round of searching."""
    if turn >= most:
        return f"## Round {turn} of {most}\nThis is the last round: answer now, inside <answer> and </answer> tags."
    return f"## Round {turn} of {most}\nSearch (at most {queries} queries) or answer."


def _listed(names: Sequence[str]) -> str:
    lines = [f"- {name}" for name in names[:_FIRST_NAMED]]
    if len(names) > _FIRST_NAMED:
        lines.append(f"- (and {len(names) - _FIRST_NAMED} more)")
    return "\n".join(lines) or "(none)"


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


GUIDE = """\
Questions about figures in U.S. Treasury bulletins, which the agent searches and reads, computes with, and answers in
a few words. Find the first step that went wrong: the search, the row that was read, a figure that was taken, the
arithmetic, the form.
Kinds of failure, to be used as failure_type where one fits:
- retrieval_miss: the right bulletin or table was never found
- evidence_miss: it was found, and another row, column, period or revision was read
- operand_error: a wrong or missing figure went into the computation, or one in another unit
- calculation_error: the right figures, computed wrongly
- answer_format: the right value in a form that does not match
- other
Rules say how to search, read, compute and answer; no figure from a bulletin belongs in a rule."""
