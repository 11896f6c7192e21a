"""Plan the episode of a session: what it says, its id and file, and whether it may be renewed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory_kb.episodes.diary import (
    DiaryLists,
    Reflected,
    _hash,
    infer_category,
    judge_outcome,
    log_digest,
    quality_score,
    tidy,
    write_body,
)
from memory_kb.errors import UsageError
from memory_kb.learning.new_entry import Draft, plan_entry
from memory_kb.learning.wrappers import sentences
from memory_kb.markdown.splice import Value
from memory_kb.model import Location, make_place
from memory_kb.session_reports import Trace
from memory_kb.store.events import seconds_between
from memory_kb.store.logs import format_time
from memory_kb.store.plan import Memory, Plan, plan_fields, set_body
from memory_kb.store.session_log import OUTCOMES
from memory_kb.text import hash_of, printable, shorten, slugify

_TITLE, _FEWEST_WORDS, _GOAL_FILES = 80, 3, 10
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
#: What precedes them in a new episode.
_FIRST_FIELDS = ("created_at", "last_reinforced", "session_id", "burst_id", "task_id", "agent")


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode as it is to be kept."""

    id: str
    session: str
    place: Location
    title: str
    body: str
    tags: tuple[str, ...]
    seq: int
    ended: str
    fields: Mapping[str, Value]

    @property
    def outcome(self) -> str:
        """What came of it."""
        return str(self.fields["outcome"])

    @property
    def built_from(self) -> str:
        """Which events it was made from, and what was made of them."""
        return f"{self.seq}.{_digest(self.body, self.fields)}.{log_digest(self.body)}"


def _digest(body: str, fields: Mapping[str, object]) -> str:
    machine = json.dumps([fields.get(name) for name in MACHINE_FIELDS], default=str)
    return _hash(f"{body}\n{machine}")


def make_episode(trace: Trace, now: datetime, *, is_first: bool = True, diary: DiaryLists | None = None) -> Episode:
    """Return the episode of a trace.

    Args:
        trace: what was done.
        now: the day of a session whose events have no times; nothing is later.
        is_first: whether it is the first of its session; the others take their task into the id.
        diary: the lists that need judgment, where a language model filled them in.

    Example:
        >>> trace = Trace("s", goal="Fix the login.", began="2026-03-24T10:00:00.000Z", ended="2026-03-24T10:20:00.000Z")
        >>> made = make_episode(trace, datetime(2026, 3, 25, tzinfo=UTC))
        >>> made.id, made.title, made.fields["duration_seconds"]
        ('ep-2026-03-24-043a7187', 'Fix the login', 1200)
    """
    outcome = judge_outcome(trace)
    diary = diary or DiaryLists()
    unresolved = sum(1 for failure in trace.failures if failure.resolution is None)
    day = trace.began[:10] or _day_of(trace.session) or now.astimezone(UTC).date().isoformat()
    named = trace.session if is_first else f"{trace.session}\n{trace.job or ''}\n{trace.task or ''}"
    goal = tidy(trace.goal or trace.summary or "")
    files = trace.changed or trace.seen[:_GOAL_FILES]
    fields: dict[str, Value | None] = {
        "outcome": outcome,
        "quality_score": quality_score(outcome, diary._replace(challenges=()), unresolved),
        "duration_seconds": round(seconds_between(trace.began, trace.ended)),
        "goal": goal,
        "constraints": [tidy(constraint) for constraint in trace.constraints],
        "files": [tidy(file) for file in files],
        "artifacts": [tidy(made) for made in (*trace.made, *trace.links)],
        "git_commit": trace.commits[-1].hash if trace.commits else None,
        "session_id": trace.session,
        "burst_id": trace.session,
        "task_id": trace.task,
        "agent": trace.agent,
    }
    return Episode(
        id=f"ep-{day}-{hash_of(named.encode())[:8]}",
        session=trace.session,
        place=_place(trace),
        title=_title(goal) or f"Session {trace.session}",
        body=write_body(trace, diary),
        tags=(category,) if (category := infer_category(goal)) != "general" else (),
        seq=trace.seq,
        ended=min(trace.ended, format_time(now))[:19] + "Z" if trace.ended else day,
        fields={name: value for name, value in fields.items() if value not in (None, "", [])},
    )


def _day_of(session: str) -> str | None:
    found = re.search(r"(?<!\d)(20\d\d)-?(\d\d)-?(\d\d)(?=T|_|-|$)", session)
    return "-".join(found.groups()) if found else None


def _title(goal: str) -> str:
    """Return the first sentence of a goal that has three words or more, which no greeting has."""
    first = next((sentence for sentence in sentences(goal) if len(sentence.split()) >= _FEWEST_WORDS), goal)
    return shorten(first, _TITLE).rstrip(".:")


def _place(trace: Trace) -> Location:
    try:
        return make_place("project", trace.job, trace.task if trace.job else None)
    except UsageError:
        return Location()


def name_episode(title: str, entry_id: str, folder: str) -> str:
    """Return the file of a new episode: by its day, its title, and the end of its id.

    Example:
        >>> name_episode("Fix the login", "ep-2026-03-24-043a7187", "memory/")
        'memory/episodes/2026-03-24/fix-the-login-043a7187.md'
    """
    return f"{folder}episodes/{entry_id[3:13]}/{slugify(shorten(title, 56))}-{entry_id[14:]}.md"


def plan_episode(
    episode: Episode,
    known: Memory | None,
    folder_of: Callable[[Location], str],
    now: datetime,
    *,
    was_made: bool = False,
) -> tuple[Reflected, Plan]:
    """Plan to keep an episode, or to renew the one that earlier events gave.

    `known` is the entry that exists, as it is in the file; `was_made` whether a person has taken one away.
    """
    if known is None:
        path = name_episode(episode.title, episode.id, folder_of(episode.place))
        done = _reflected(episode, path, "forgotten" if was_made else "created")
        return done, () if was_made else (
            plan_entry(_draft(episode), episode.id, path, now, "What was done in a session."),
        )
    action = _judge(episode, known)
    done = _reflected(episode, known.path, action)
    return replace(done, id=known.id), _renewal(episode, known) if action == "updated" else ()


def _reflected(episode: Episode, path: str, action: str) -> Reflected:
    score = episode.fields["quality_score"]
    assert isinstance(score, float)
    return Reflected(episode.session, episode.id, path, action, episode.outcome, score, episode.title)


def is_current(seq: int, known: Memory) -> bool:
    """Return whether an episode was made from all the events that there are."""
    return (known.word("built_from") or "").partition(".")[0] == str(seq)


def _judge(episode: Episode, known: Memory) -> str:
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
    gone: dict[str, Value] = {
        name: []
        for name in ("constraints", "files", "artifacts")
        if name in known.metadata and name not in episode.fields
    }
    values: dict[str, Value] = {name: value for name, value in episode.fields.items() if name in MACHINE_FIELDS} | gone
    values |= {"created_at": episode.ended, "built_from": replace(episode, fields=_with(known, values)).built_from}
    if known.reinforcement_count == 0:
        values["last_reinforced"] = episode.ended[:10]
    return plan_fields(known, values, reason), set_body(known, known.id, episode.body, reason)


def _with(known: Memory, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the machine fields as they are when the new ones are set."""
    return {name: known.metadata[name] for name in MACHINE_FIELDS if name in known.metadata} | dict(values)


def _draft(episode: Episode) -> Draft:
    values = {
        **episode.fields,
        "created_at": episode.ended,
        "last_reinforced": episode.ended[:10],
        "detail": "full",
        "built_from": episode.built_from,
    }
    order = (*_FIRST_FIELDS, *MACHINE_FIELDS, "detail", "built_from")
    fields = tuple((name, values[name]) for name in order if name in values)
    return Draft(episode.body, "episode", tidy(episode.title), episode.tags, source="observed", fields=fields)


def record_event(
    event: str, outcome: str | None, tags: Sequence[str], place: Location, now: datetime, **known: str | None
) -> tuple[str, Draft]:
    """Return the id and the draft of an episode that somebody reported in one sentence.

    The same event on the same day is the same episode.

    Raises:
        UsageError: the outcome is none.

    Example:
        >>> entry_id, draft = record_event("Rolled back 4.2.", "failure", ["release"], Location(), datetime(2026, 3, 24, tzinfo=UTC))
        >>> entry_id, dict(draft.fields)["quality_score"]
        ('ep-2026-03-24-6edcb983', 0.2)
    """
    if outcome is not None and outcome not in OUTCOMES:
        raise UsageError(f"unknown outcome {outcome!r}", f"it may be {', '.join(OUTCOMES)}")
    day = now.astimezone(UTC).date().isoformat()
    text = " ".join(event.split())
    named = "\n".join((text.casefold(), outcome or "", place.job or "", place.task or "", place.scope))
    entry_id = f"ep-{day}-{hash_of(printable(named).encode())[:8]}"
    values: dict[str, Value | None] = {
        "session_id": known.get("session"),
        "task_id": place.task,
        "agent": known.get("agent"),
        "outcome": outcome or "mixed",
        "quality_score": quality_score(outcome, (), 0),
        "goal": shorten(text, 200),
    }
    fields = tuple((name, value) for name, value in values.items() if value is not None)
    return entry_id, Draft(event.strip(), "episode", _title(text), tuple(tags), source="user_explicit", fields=fields)
