"""What is said of SearchQA's tasks: to the target, and to analysts."""

from __future__ import annotations

_ROLE = "You are an expert at answering questions from search results."

_RULES = """\
## Task
You get a context made of several passages, then a question. Answer the question from that context.

## Answer
- Reason first, then give the final answer inside <answer> and </answer> tags.
- The final answer is as short as it can be: a name, a date or a few words.
- Do not repeat the question in the final answer.

## Example
The passages name Ada Lovelace as the author of the first published program.
<answer>Ada Lovelace</answer>"""

RECHECK = (
    "Check your answer against the context and the question above. Correct it when it is wrong, "
    "then give the final answer again inside <answer> and </answer> tags."
)

_MARKER = "[DOC]"
_CUT = "[... the context is cut here ...]"


def system_prompt(skill_section: str) -> str:
    """The system prompt around a skill section, which may be empty."""
    return "\n\n".join(part for part in (_ROLE, skill_section, _RULES) if part)


def user_prompt(context: str, question: str, *, budget: int) -> str:
    """The user message of one item, its context within `budget` characters."""
    return f"## Context\n{truncate(context, budget)}\n\n## Question\n{question}"


def truncate(context: str, budget: int) -> str:
    """The context's whole leading passages within `budget` characters; a hard cut when not even one fits."""
    if len(context) <= budget:
        return context
    kept = ""
    for passage in context.split(_MARKER):
        # The first passage joins an empty text and so loses its marker, as in the original.
        longer = f"{kept}{_MARKER}{passage}" if kept else passage
        if len(longer) > budget:
            break
        kept = longer
    return kept or f"{context[:budget]}\n{_CUT}"


GUIDE = """\
Questions over web snippets, graded by an exact match of a few words: case, punctuation and articles do not count,
every other word does. Compare what was answered with the accepted answers and ask why the two are not the same.
Kinds of failure, to be used as failure_type where one fits:
- rule_missing: the skill says nothing that would have led to the accepted answer
- rule_wrong: a rule of the skill led away from it
- rule_ignored: the skill says it, and it was not done
- answer_format: the right answer with words around it, or too little of it
- other
A rule has to help with many questions; nothing about a single question belongs in the skill."""
