"""What analysts are told of SearchQA's tasks and of how they are missed."""

from __future__ import annotations

GUIDE = """\
Questions over web snippets, graded by an exact match of a few words: case, punctuation and articles do not count,
every other word does. Compare what was answered with the accepted answers and ask why the two are not the same.
Kinds of failure, to be used as failure_type where one fits:
- rule_missing: the skill says nothing that would have led to the accepted answer
- rule_wrong: a rule of the skill led away from it
- rule_ignored: the skill says it, and it was not done
- answer_format: the right answer with words around it, or too little of it
- other
A rule has to help with many questions; nothing about a single one belongs into the skill."""
