"""What is said of DocVQA's tasks: to the target, and to analysts."""

from __future__ import annotations

_ROLE = "You are an expert at reading images of documents."

_RULES = """\
## Task
You get a question and the image of a document page. Answer the question from the page.

- Rely only on what can be seen on the page.
- Copy the exact words, number, date or name that answers the question, written as on the page.
- Add nothing that is not there, and do not guess what cannot be read.
- When several places could answer, take the one that the question's own words support best.

## Answer
- Reason first, then give the final answer inside <answer> and </answer> tags.
- The final answer is as short as it can be.

## Example
The total stands in the last row of the table.
<answer>$ 1,204.50</answer>"""

_REMINDER = "Give the final answer inside <answer> and </answer> tags."

RECHECK = (
    "Check your answer against the page and the question above. Correct it when it is wrong, "
    "then give the final answer inside <answer> and </answer> tags."
)


def system_prompt(skill_section: str) -> str:
    """The system prompt around a skill section, which may be empty."""
    return "\n\n".join(part for part in (_ROLE, skill_section, _RULES) if part)


def user_prompt(question: str) -> str:
    """The text beside the image."""
    return f"{question}\n\n{_REMINDER}"


GUIDE = """\
Questions about scanned pages. The page was before the agent, not before you: you see the question, the answer and the
accepted answers. An answer counts fully when it is written exactly like an accepted one; case and spaces do not
count, all else does.
Kinds of failure, to be used as failure_type where one fits:
- evidence_miss: another part of the page was read than the question is about
- near_match_confusion: a similar value that stands nearby was taken
- normalization_error: the right value, written otherwise than on the page
- reading_error: letters or figures were misread
- other
Rules say how to find and copy a value; nothing from a single page belongs in a rule."""
