"""Summarise old episodes, and archive those that nothing refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime

from memory_kb.episodes.diary import cut_sections, items_of, log_digest, read_error
from memory_kb.errors import MemoryKBError
from memory_kb.learning.lifecycle import plan_move_to_archive
from memory_kb.model import Location
from memory_kb.store.plan import Change, Memory, Plan, plan_fields, set_body
from memory_kb.text import shorten

#: Days in full detail, and days until the archive.
FULL_DAYS, SUMMARY_DAYS = 7, 30
#: Days that an episode stays as it is that was made of an old session: its transcript may still grow.
EPISODE_NEW_DAYS = 3
_GOAL = 50
_WIKILINK = re.compile(r"\[\[([^\]|#\n]+)")
_LOG = re.compile(r"^## +Action log[ \t]*#*[ \t]*\r?\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SUMMARY = re.compile(r"^## +Summary[ \t]*#*[ \t]*\r?$", re.MULTILINE)
_TIMES = re.compile(r" \((\d+) times\)$|^look at .*? and (\d+) more\b")
_MORE = re.compile(r"^… (\d+) more$")
_PAST = {"success": "succeeded", "failure": "failed"}


def stage_of(days: int, *, is_referenced: bool) -> str:
    """Return what becomes of an episode of some age: full, summary, archive or keep.

    Example:
        >>> [stage_of(days, is_referenced=False) for days in (7, 8, 30, 31)], stage_of(31, is_referenced=True)
        (['full', 'summary', 'summary', 'archive'], 'keep')
    """
    if days <= FULL_DAYS:
        return "full"
    if days <= SUMMARY_DAYS:
        return "summary"
    return "keep" if is_referenced else "archive"


def references(memories: Iterable[Memory]) -> Callable[[Memory], bool]:
    """Return a function that says whether another entry refers to an episode.

    It does so by the id or the session of the episode among its sources, or by a link to it.
    """
    by_word: dict[str, set[tuple[str, str]]] = {}
    for memory in memories:
        words = {*memory.words("sources"), *(link.to for link in memory.links)}
        if "[[" in memory.text:
            words.update(found.strip() for found in _WIKILINK.findall(memory.text))
        for word in words:
            by_word.setdefault(word, set()).add((memory.id, memory.path))

    def is_referenced(memory: Memory) -> bool:
        names = (memory.id, memory.word("session_id"), memory.path.rpartition("/")[2].removesuffix(".md"))
        return any(by_word.get(name, set()) - {(memory.id, memory.path)} for name in names if name)

    return is_referenced


def plan_ageing(
    memories: Sequence[Memory],
    folder_of: Callable[[Location], str],
    as_written: Callable[[Memory], Memory],
    now: datetime,
    taken_in: frozenset[str] = frozenset(),
) -> Plan:
    """Plan to summarise and archive episodes by their age; none is ever deleted.

    Only what was built from a log is summarised, and only while nobody has edited its action log.
    Pinned and evergreen episodes stay, and those in MEMORY.md. An episode without a date does not age.

    What was made in the last days, of old sessions too, stays for now: `taken_in` are the ids of that.
    """
    today = now.astimezone(UTC).date()
    is_referenced = references(memories)
    changes: list[Change | None] = []
    for memory in memories:
        if (
            memory.kind != "episode"
            or memory.id in taken_in
            or not memory.is_live
            or not memory.is_ours
            or memory.is_pinned
            or memory.is_evergreen
            or memory.is_in_people_file
        ):
            continue
        days = age_in_days(memory, today)
        stage = stage_of(days, is_referenced=is_referenced(memory)) if days > FULL_DAYS else "full"
        if stage == "archive":
            changes += plan_move_to_archive(
                memory, folder_of(memory.place), today, f"It is {days} days old and nothing refers to it."
            )
        elif stage == "summary" and memory.metadata.get("detail") == "full" and memory.word("built_from"):
            changes += _summarise(memory, as_written, days)
    return changes


def age_in_days(memory: Memory, today: date) -> int:
    """Return how old an episode is: since it was last reinforced, made, or dated."""
    return max(0, (today - memory.seen).days) if memory.seen else 0


def _summarise(memory: Memory, as_written: Callable[[Memory], Memory], days: int) -> Plan:
    try:
        written = as_written(memory)
    except MemoryKBError:
        return ()
    if (memory.word("built_from") or "").rpartition(".")[2] != log_digest(written.text):
        return ()
    reason = f"It is {days} days old; its action log is in the session."
    fields = plan_fields(memory._replace(hash=written.hash), {"detail": "summary"}, reason)
    return fields, set_body(written, memory.id, summarise(written), reason)


def summarise(memory: Memory) -> str:
    """Return the body of an episode without its action log, with one sentence about it.

    Example:
        >>> body = "## Action log\\n\\n- t=0 ls -> ok\\n- t=5 make -> ok (3 times)\\n\\n## Decisions\\n\\n- Keep make.\\n"
        >>> fields = {"goal": "Build it", "outcome": "success", "duration_seconds": 9}
        >>> print(summarise(Memory("e", "a.md", "", Location(), "T", body, metadata=fields)))
        ## Decisions
        <BLANKLINE>
        - Keep make.
        <BLANKLINE>
        ## Summary
        <BLANKLINE>
        - Task 'Build it' succeeded after 4 actions with 0 errors encountered in 9s.
    """
    sections = cut_sections(memory.text)[1]
    actions = sum(map(_count, items_of(sections.get("Action log", ""))))
    errors = sum(1 for item in items_of(sections.get("Errors", "")) if read_error(item).type)
    goal = shorten(memory.word("goal") or memory.title, _GOAL)
    ended = _PAST.get(memory.word("outcome") or "", "ended with mixed results")
    line = (
        f"- Task '{goal}' {ended} after {actions} action{'' if actions == 1 else 's'} with {errors} error{'' if errors == 1 else 's'} "
        f"encountered in {memory.count('duration_seconds')}s."
    )
    body = _LOG.sub("", memory.text, count=1).strip()
    mark = _SUMMARY.search(body)
    if mark is None:
        return f"{body}\n\n## Summary\n\n{line}" if body else f"## Summary\n\n{line}"
    lead = body[: mark.end()]
    return f"{lead}\n\n{line}\n{body[mark.end() :].lstrip()}"


def _count(item: str) -> int:
    """Return how many actions a line of an action log stands for; what a person said is none."""
    more = _MORE.match(item)
    if more:
        return int(more[1])
    action = re.sub(r"^t=\S+ ", "", item)
    if action.startswith("user: “"):
        return 0
    times = _TIMES.search(action)
    if times and times[1]:
        return int(times[1])
    looked = (
        action.removeprefix("look at ").rpartition(" -> ")[0].split(", ") if action.startswith("look at ") else [""]
    )
    return len(looked) + (int(times[2]) if times and times[2] else 0)
