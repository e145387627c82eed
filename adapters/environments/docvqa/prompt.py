"""What the target is told in DocVQA."""

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
