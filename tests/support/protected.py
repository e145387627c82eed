"""What a rewrite may not touch, read from a text by other means than the code that keeps it."""

from __future__ import annotations

from skillopt_es.skill.regions import protected_spans
from skillopt_es.skill.rewriting import frontmatter


def protected_parts(text: str) -> tuple[str, ...]:
    """The frontmatter (if any) and every protected block, word for word, in order; blocks that meet are one."""
    head = frontmatter(text)
    body = text[len(head) :]
    ranges: list[tuple[int, int]] = []
    for span in protected_spans(body):
        start = ranges.pop()[0] if ranges and span.start < ranges[-1][1] else span.start
        ranges.append((start, span.end))
    blocks = tuple(body[start:end].rstrip() for start, end in ranges)
    return (head.rstrip(), *blocks) if head else blocks
