"""What analysts are told of DocVQA's tasks and of how they are missed."""

from __future__ import annotations

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
Rules say how to find and to copy; what stands on one page belongs into no rule."""
