"""Format results and errors as text for a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memory_kb.context.framing import as_block, as_line, frame
from memory_kb.errors import (
    AmbiguousId,
    Forgotten,
    InvalidSettings,
    MemoryKBError,
    UnknownEntry,
    UnknownRun,
    VaultBusy,
    VaultNotFound,
)
from memory_kb.model import Hit, SearchResult
from memory_kb.reports import EntryView, Learned, RunReport, Stats, StepReport
from memory_kb.text import short_id

#: The most of an entry, or of a preview, that one answer holds, in characters.
MAX_WHOLE = 40_000


def format_id(entry_id: str) -> str:
    """Return an id shortened for people, on one line."""
    return as_line(short_id(entry_id), 80)


def quote_entries(head: str, blocks: Iterable[str]) -> str:
    """Return an answer that quotes entries, in the frame for texts of others."""
    return frame("\n\n".join((head, *blocks)))


def format_search(result: SearchResult, asked: str) -> str:
    """Return the hits of a search."""
    notes = "".join(f"\nNote: {as_line(reason)}" for reason in result.degraded)
    if not result.hits:
        return f"Nothing is known about {as_line(asked, 100)}. Other words may find it.{notes}"
    blocks = (_block(hit, hit.text) for hit in result.hits)
    return quote_entries(f"{len(result.hits)} found, best first.{notes}", blocks)


def _block(entry: Hit | EntryView, text: str) -> str:
    vault = f"{entry.vault}:" if isinstance(entry, Hit) and entry.vault else ""
    status = "" if entry.status in ("active", "compacted") else f", {entry.status}"
    marks = f"{format_id(entry.id)}, {entry.kind}{status}, {as_line(f'{vault}{entry.path}:{entry.line}', 200)}"
    return f"### {as_line(entry.title, 120)} ({marks})\n{as_block(text)}"


def format_entry(view: EntryView, max_chars: int = 0) -> str:
    """Return one entry whole, with its frontmatter."""
    text, cut = cut_text(view.text or "", min(max_chars or MAX_WHOLE, MAX_WHOLE))
    return quote_entries(f"The entry as it is in {as_line(view.path, 200)}.{cut}", [_block(view, text)])


def cut_text(text: str, limit: int) -> tuple[str, str]:
    """Return a text within a limit, and a sentence if it was cut.

    Example:
        >>> cut_text("one two", 3)
        ('one', ' Only the first 3 of its 7 characters are shown.')
    """
    if len(text) <= limit:
        return text, ""
    return text[:limit], f" Only the first {limit:,} of its {len(text):,} characters are shown."


def format_list(views: Sequence[EntryView], limit: int) -> str:
    """Return entries in a line each."""
    if not views:
        return "There are none."
    rest = f" The first {limit} of {len(views):,}." if len(views) > limit else ""
    lines = "\n".join(f"- {format_id(view.id)} ({view.kind}): {as_line(view.title, 160)}" for view in views[:limit])
    return quote_entries(f"Entries; memory_recall with an id gives one in full.{rest}", [lines])


def format_learned(learned: Learned, *, what: str = "Stored") -> str:
    """Return where something went, and why a person has to approve it first."""
    place = f"{format_id(learned.id)} ({as_line(learned.path, 200)})"
    said = {
        "created": f"{what}: {place}.",
        "reinforced": f"That was known: {place} is reinforced.",
        "known": f"That was known: {place}.",
    }
    conflicts = "; ".join(as_line(one.message) for one in learned.run.conflicts) if learned.run else ""
    text = said.get(learned.action) or f"Not stored: {conflicts or learned.action}."
    if learned.is_waiting:
        why = f"With {learned.waits_for}" if learned.waits_for else "From an unverified source"
        text += f" {why} it is not in use before a person approves it."
    return text


def format_run(run: RunReport, done: str, nothing: str) -> str:
    """Return what a run changed, or would."""
    left = "".join(f"\nLeft alone: {as_line(one.message)}" for one in run.conflicts)
    undo = f" (run {run.run} can be undone)" if run.run else ""
    lines = [f"\n- {one.action} {as_line(one.path, 200)}: {as_line(one.reason, 200)}" for one in run.changes[:20]]
    return with_diff(f"{done if run.changes else nothing}{undo}{''.join(lines)}{left}", run.diff)


def with_diff(text: str, diff: str) -> str:
    """Return an answer with a preview of what would be written, where there is one."""
    if not diff:
        return text
    shown, cut = cut_text(diff, MAX_WHOLE)
    return quote_entries(f"{text}\nA preview; nothing was written.{cut}", [as_block(shown)])


def format_stats(stats: Stats) -> str:
    """Return how much the vault holds."""
    rows = {"kinds": stats.kinds, "types": stats.types, "statuses": stats.statuses, "scopes": stats.scopes}
    lines = [f"{stats.entries:,} entries in {stats.files:,} files, {stats.tokens:,} tokens."]
    for name, counts in rows.items():
        if counts:
            lines.append(f"{name}: {', '.join(f'{word} {number}' for word, number in counts.items())}")
    return "\n".join(lines)


def format_steps(steps: Sequence[StepReport]) -> str:
    """Return the result of each step of a consolidation."""
    lines = (f"{step.name}: {step.outcome}{f', {as_line(step.message)}' if step.message else ''}" for step in steps)
    return with_diff("\n".join(lines), "".join(step.diff for step in steps))


_MAX = 600
_OPTION = re.compile(r"--([a-z][a-z-]*)")
#: What to do about an error, where a model has other means than a person at a terminal.
_HINTS: dict[type[MemoryKBError], str] = {
    UnknownEntry: "memory_recall with a query finds entries and their ids; an id may be cut to a unique beginning",
    AmbiguousId: "give more characters of the id",
    Forgotten: "somebody took it away on purpose: leave it, or ask the person",
    UnknownRun: "leave out the run to revert the last one",
    VaultBusy: "try again in a moment",
}
_UNOPENED = "the vault of this server cannot be opened"


def explain_error(error: BaseException) -> str:
    """Return an error as a sentence with its hint.

    Example:
        >>> explain_error(VaultBusy("v/lock", 60))
        'another memory-kb process has held v/lock for 60 s; try again in a moment'
        >>> explain_error(ZeroDivisionError("x"))
        'memory-kb failed with an internal error (ZeroDivisionError); nothing is lost, and the server logged the details. Go on without it.'
    """
    if isinstance(error, VaultNotFound | InvalidSettings):
        return f"{_UNOPENED} ({error.code}); the person who set it up finds the reason in the server's log, or with `memory-kb status`"
    if isinstance(error, MemoryKBError):
        own = error.hint if error.hint and not error.hint.startswith("try: ") else ""
        # A hint for the command line as one for a tool.
        hint = _HINTS.get(type(error)) or _OPTION.sub(lambda found: found[1].replace("-", "_"), own)
        return as_line(f"{error}{f'; {hint}' if hint else ''}", _MAX)
    if isinstance(error, OSError):
        return f"the system refuses: {error.strerror or type(error).__name__}; try again, or ask the person to look at the vault"
    if type(error).__name__ == "OperationalError":
        return f"the index does not answer ({as_line(str(error), 100)}); try again in a moment"
    name = type(error).__name__
    return f"memory-kb failed with an internal error ({name}); nothing is lost, and the server logged the details. Go on without it."
