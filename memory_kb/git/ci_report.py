"""Format the result of `ci` as Markdown for a comment of a code host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from memory_kb.git.comparison import CiReport, ContextChange, QueryChange
from memory_kb.git.metrics import CUTS, QuestionResult
from memory_kb.text import first_lines, on_one_line, shorten

#: What code hosts take for one comment, with room to spare; characters.
MOST = 60_000
_MOST_LISTED, _LONG = 50, 160
_SIGNS = re.compile(r"([\\`*_\[\]#|~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_MARKS = {
    "lost": "❌ lost",
    "missing": "❌ not found",
    "found": "✅ found now",
    "fewer": "⚠️ finds fewer",
    "moved": "moved",
    "same": "same",
    "never": "⚠️ never found",
}


def as_markdown(report: CiReport) -> str:
    """Return the report, cut where a comment would become too long."""
    text = "\n".join(_lines(report)) + "\n"
    return text if len(text) <= MOST else first_lines(text, MOST - 3) + "\n…\n"


def escape_markdown(text: str) -> str:
    """Return a text on one line that Markdown shows as it is; it mentions nobody.

    Example:
        >>> escape_markdown("a | *b* <i> @team\\n# c")
        'a \\\\| \\\\*b\\\\* &lt;i&gt; &#64;team \\\\# c'
    """
    return "".join(_ENTITIES.get(sign, sign) for sign in _SIGNS.sub(r"\\\1", shorten(on_one_line(text), _LONG)))


def _lines(report: CiReport) -> Iterator[str]:
    titles = {**report.base.titles, **report.head.titles}
    verdict = "nothing to fix" if report.is_sound else f"{len(report.findings)} to fix"
    yield f"## {'✅' if report.is_sound else '❌'} Memories: {verdict}"
    yield ""
    yield f"{escape_markdown(report.base.name)} (`{report.base.revision[:12]}`) → {escape_markdown(report.head.name)} (`{report.head.revision[:12]}`)"
    yield from _list(
        "To fix", [f"`{_code(one.path)}:{one.line}` {escape_markdown(one.message)}" for one in report.findings]
    )
    yield from _recall(report)
    yield from _queries(report.queries, titles)
    yield from _contexts(report.contexts, titles)
    yield from _list("No longer asked", [escape_markdown(question) for question in report.unasked])
    yield from _list(
        "Was there before, and fails nothing",
        [f"`{_code(one.path)}:{one.line}` {escape_markdown(one.message)}" for one in report.known],
    )
    yield from _list("Notes", [escape_markdown(notice) for notice in report.notices])


def _code(text: str) -> str:
    return "".join(sign if sign.isprintable() and sign != "`" else "?" for sign in text)


def _head(words: str) -> Iterator[str]:
    yield from ("", f"### {words}", "")


def _list(head: str, items: Sequence[str]) -> Iterator[str]:
    if not items:
        return
    yield from _head(head)
    yield from (f"- {item}" for item in items[:_MOST_LISTED])
    if len(items) > _MOST_LISTED:
        yield f"- and {len(items) - _MOST_LISTED} more"


def _recall(report: CiReport) -> Iterator[str]:
    before, after = report.rows
    if not after.questions:
        return
    yield from _head("Recall")
    yield f"| | questions | {' | '.join(f'recall@{cut}' for cut in CUTS)} | hit@{CUTS[-1]} | MRR |"
    yield f"|---|{'---:|' * (len(CUTS) + 3)}"
    for name, row in (("before", before), ("after", after)):
        if row.questions:
            yield f"| {name} | {row.questions} | {' | '.join(f'{row.recall[cut]:.2f}' for cut in CUTS)} | {row.hits[CUTS[-1]]:.2f} | {row.mrr:.2f} |"


def _queries(changes: Sequence[QueryChange], titles: Mapping[str, str]) -> Iterator[str]:
    if not changes:
        return
    shown = [change for change in changes if change.verdict != "same"]
    yield from _head("Standing queries")
    if shown:
        yield "| query | | rank before | rank after | first hit after |"
        yield "|---|---|---:|---:|---|"
    for change in shown[:_MOST_LISTED]:
        first = change.after.top[0] if change.after.top else None
        name = escape_markdown(titles.get(first, first)) if first else "nothing"
        ranks = f"{_rank(change.before)} | {_rank(change.after)}"
        yield f"| {escape_markdown(change.after.query.question)} | {_MARKS[change.verdict]} | {ranks} | {name} |"
    left = len(shown[_MOST_LISTED:])
    yield ""
    yield f"{len(changes) - len(shown)} answer as before{f', {left} more are not listed' if left else ''}."


def _rank(outcome: QuestionResult | None) -> str:
    return "new" if outcome is None else "–" if outcome.rank is None else str(outcome.rank)


def _contexts(changes: Sequence[ContextChange], titles: Mapping[str, str]) -> Iterator[str]:
    if not changes:
        return
    shown = [change for change in changes if not change.is_same]
    yield from _head("What agents are given")
    for change in shown[:_MOST_LISTED]:
        yield f"- **{escape_markdown(change.task)}**: {change.before.tokens:,} → {change.after.tokens:,} tokens"
        for sign, ids in (("+", change.added), ("−", change.removed)):
            yield from (
                f"  - {sign} {escape_markdown(titles.get(one, one))} (`{_code(one)[:60]}`)"
                for one in ids[:_MOST_LISTED]
            )
    yield f"- {len(changes) - len(shown)} are as before."
