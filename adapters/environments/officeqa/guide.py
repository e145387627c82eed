"""What analysts are told of OfficeQA's tasks and of how they are missed."""

from __future__ import annotations

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
Rules say how to search, read, compute and answer; no figure of a bulletin belongs into one."""
