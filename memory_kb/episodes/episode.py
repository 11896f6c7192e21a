"""Plan the episode of a session: what it says, its id and file, its renewal, its summary and its archive."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from memory_kb.episodes.diary_text import (
    DiaryLists,
    EpisodeResult,
    cut_sections,
    digest,
    items_of,
    judge_outcome,
    log_digest,
    quality_score,
    read_error,
    tidy,
    write_body,
)
from memory_kb.episodes.session_facts import Trace
from memory_kb.errors import MemoryKBError
from memory_kb.learning.render_entry import Draft, plan_entry, without_empty
from memory_kb.learning.user_text import sentences
from memory_kb.markdown.lists_and_fences import Section, find_sections
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import Location, place_of_work
from memory_kb.store.changes import Plan, plan_fields, set_body
from memory_kb.store.logs import format_time
from memory_kb.store.session_events import seconds_between
from memory_kb.terms import has_cjk
from memory_kb.text import hash_of, note_name, pluralize, shorten, slugify

_TITLE, _LONGEST_GOAL, _GOAL_FILES = 80, 200, 10
#: The fewest words of a title; of CJK, characters.
_FEWEST_WORDS, _FEWEST_SIGNS = 3, 6
#: The fields that follow from the events; whoever edits one of them, or the text, has the last word.
MACHINE_FIELDS = (
    "outcome",
    "quality_score",
    "duration_seconds",
    "goal",
    "constraints",
    "files",
    "artifacts",
    "git_commit",
)


class Episode(NamedTuple):
    """An episode to store: the draft of its entry, its session, and the last event and moment that it reports."""

    id: str
    place: Location
    draft: Draft
    session: str
    seq: int
    ended: str


def _built_from(seq: int, body: str, fields: Mapping[str, object]) -> str:
    """Return which events an episode was made from, and what was made of them."""
    return f"{seq}.{_digest(body, fields)}.{log_digest(body)}"


def _digest(body: str, fields: Mapping[str, object]) -> str:
    machine = json.dumps([fields.get(name) for name in MACHINE_FIELDS], default=str)
    return digest(f"{body}\n{machine}")


def make_episode(trace: Trace, now: datetime, *, is_first: bool = True, diary: DiaryLists | None = None) -> Episode:
    """Return the episode of a trace; `now` is the day of a session whose events have no times.

    The first episode of a session has its id from the session alone, the others take their task into it.
    """
    diary = diary or DiaryLists()
    unresolved = sum(1 for failure in trace.failures if failure.resolution is None)
    day = trace.began[:10] or now.astimezone(UTC).date().isoformat()
    named = trace.session if is_first else f"{trace.session}\n{trace.job or ''}\n{trace.task or ''}"
    goal = tidy(shorten(trace.goal or trace.summary or "", _LONGEST_GOAL))
    files = trace.changed or trace.seen[:_GOAL_FILES]
    ended = min(trace.ended, format_time(now))[:19] + "Z" if trace.ended else day
    facts: dict[str, Value | None] = {
        "session_id": trace.session,
        "burst_id": trace.session,
        "task_id": trace.task,
        "agent": trace.agent,
        "outcome": judge_outcome(trace),
        "quality_score": quality_score(judge_outcome(trace), diary._replace(challenges=()), unresolved),
        "duration_seconds": round(seconds_between(trace.began, trace.ended)),
        "goal": goal,
        "constraints": [tidy(constraint) for constraint in trace.constraints],
        "files": [tidy(file) for file in files],
        "artifacts": [tidy(made) for made in (*trace.made, *trace.links)],
        "git_commit": trace.commits[-1].hash if trace.commits else None,
    }
    body, fields = write_body(trace, diary), without_empty(facts)
    fields = {"created_at": ended, "last_reinforced": ended[:10], **fields, "detail": "full"}
    fields["built_from"] = _built_from(trace.seq, body, fields)
    draft = Draft(body, "episode", tidy(_choose_title(goal, trace)), source="observed", fields=fields)
    entry_id = f"ep-{day}-{hash_of(named.encode())[:8]}"
    return Episode(entry_id, place_of_work(trace.job, trace.task), draft, trace.session, trace.seq, ended)


def _choose_title(goal: str, trace: Trace) -> str:
    """Return the title of an episode: its goal, or what was done where that is a word or two, such as "ok, 14"."""
    named = title_of(goal)
    if _makes_title(named):
        return named
    if trace.commits:
        return shorten(trace.commits[-1].subject, _TITLE)
    changed = ", ".join(dict.fromkeys(file.rpartition("/")[2] for file in trace.changed))
    return shorten(f"Changed {changed}", _TITLE) if changed else named or f"Session {trace.session}"


def title_of(goal: str) -> str:
    """Return the first sentence of a goal with three words or more, which is no greeting."""
    return shorten(next(filter(_makes_title, sentences(goal)), goal), _TITLE).rstrip(".:")


def _makes_title(sentence: str) -> bool:
    return len(sentence) >= _FEWEST_SIGNS if has_cjk(sentence) else len(sentence.split()) >= _FEWEST_WORDS


def name_episode(title: str, entry_id: str, folder: str) -> str:
    """Return the file of a new episode: by its day, its title, and the end of its id."""
    return f"{folder}episodes/{entry_id[3:13]}/{slugify(shorten(title, 56))}-{entry_id[14:]}.md"


def plan_episode(
    episode: Episode, known: Memory | None, folder_of: Callable[[Location], str], now: datetime
) -> tuple[EpisodeResult, Plan]:
    """Plan to store an episode, or to renew the one that was made from earlier events, as its file has it."""
    draft = episode.draft
    if known is None:
        path, action = name_episode(draft.title or "", episode.id, folder_of(episode.place)), "created"
        plan: Plan = (plan_entry(draft, episode.id, path, now, "What was done in a session."),)
    else:
        path, action = known.path, _choose_action(episode, known)
        plan = _renewal(episode, known) if action == "updated" else ()
    score, outcome = draft.fields["quality_score"], str(draft.fields["outcome"])
    assert isinstance(score, float)
    return EpisodeResult(episode.session, episode.id, path, action, outcome, score, draft.title or ""), plan


def is_current(seq: int, known: Memory) -> bool:
    """Return whether an episode was made from all the events that there are."""
    return (known.word("built_from") or "").partition(".")[0] == str(seq)


def _choose_action(episode: Episode, known: Memory) -> str:
    if is_current(episode.seq, known):
        return "unchanged"
    if not known.is_live:
        return "aged" if known.status == "archived" else "forgotten"
    if known.metadata.get("detail") == "summary":
        return "aged"
    parts = (known.word("built_from") or "").split(".")
    return "updated" if len(parts) == 3 and parts[1] == _digest(known.text, known.metadata) else "edited"


def _renewal(episode: Episode, known: Memory) -> Plan:
    reason = "The session went on."
    draft, ended = episode.draft, episode.ended
    values: dict[str, Value] = {name: value for name, value in draft.fields.items() if name in MACHINE_FIELDS}
    emptied = {"constraints", "files", "artifacts"} & known.metadata.keys() - draft.fields.keys()
    values |= {name: list[str]() for name in emptied}
    machine = {name: known.metadata[name] for name in MACHINE_FIELDS if name in known.metadata} | values
    values |= {"created_at": ended, "built_from": _built_from(episode.seq, draft.text, machine)}
    if known.reinforcement_count == 0:
        values["last_reinforced"] = ended[:10]
    return plan_fields(known, values, reason), set_body(known, known.id, draft.text, reason)


#: Days in full detail, and days until the archive.
FULL_DAYS, SUMMARY_DAYS = 7, 30
#: Days that an episode stays as it is that was made of an old session: its transcript may still grow.
EPISODE_NEW_DAYS = 3
_GOAL = 50
_WIKILINK = re.compile(r"\[\[([^\]|#\n]+)")
_PAST = {"success": "succeeded", "failure": "failed"}


def choose_ageing(days: int, *, is_referenced: bool) -> str:
    """Return how an episode of this age in days is kept: `full`, `summary`, `archive` or `keep`."""
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
        names = (memory.id, memory.word("session_id"), note_name(memory.path))
        return any(by_word.get(name, set()) - {(memory.id, memory.path)} for name in names if name)

    return is_referenced


def plan_summary(memory: Memory, read_from_file: Callable[[Memory], Memory], days: int) -> Plan:
    """Plan to summarise an episode that was built from a log, while nobody has edited its action log."""
    try:
        written = read_from_file(memory)
    except MemoryKBError:
        return ()
    if (memory.word("built_from") or "").rpartition(".")[2] != log_digest(written.text):
        return ()
    reason = f"It is {days} days old; its action log is in the session."
    fields = plan_fields(memory._replace(hash=written.hash), {"detail": "summary"}, reason)
    return fields, set_body(written, memory.id, summarise(written), reason)


def summarise(memory: Memory) -> str:
    """Return the body of an episode without its action log, with one sentence about it."""
    sections = cut_sections(memory.text)
    actions = len(items_of(sections.get("Action log", "")))
    errors = sum(1 for item in items_of(sections.get("Errors", "")) if read_error(item).type)
    goal = shorten(memory.word("goal") or memory.title, _GOAL)
    ended = _PAST.get(memory.word("outcome") or "", "ended with mixed results")
    counts = f"{pluralize(actions, 'action')} with {pluralize(errors, 'error')} encountered"
    line = f"- Task '{goal}' {ended} after {counts} in {memory.count('duration_seconds')}s."
    log = _find_section(memory.text, "Action log")
    body = f"{memory.text[: log.span.start]}{memory.text[log.span.end :]}".strip() if log else memory.text.strip()
    summary = _find_section(body, "Summary")
    if summary is None:
        return f"{body}\n\n## Summary\n\n{line}" if body else f"## Summary\n\n{line}"
    start = summary.content.start
    return f"{body[:start].rstrip()}\n\n{line}\n{body[start:].lstrip()}"


def _find_section(text: str, heading: str) -> Section | None:
    return next((one for one in find_sections(text) if one.heading == heading), None)
