"""Check a new entry and write its text: frontmatter, body, file name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from memory_kb.credentials import locate_secrets
from memory_kb.errors import SecretRefused, UsageError
from memory_kb.lazy_regex import lazy_regex
from memory_kb.learning.text_comparison import fingerprint
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import Value, emit, emit_below, find_entry, newline_of, refuse_broken
from memory_kb.model import INSTRUCTING, KIND_ALIASES, KINDS, PRIORITIES, SOURCES, UNVERIFIED
from memory_kb.private_text import cut_private, cut_private_values
from memory_kb.store.changes import Change, create_file, replace_entry
from memory_kb.store.file_edits import NoteText
from memory_kb.text import moment_text, parse_date, slugify

#: What a new rule, pitfall or skill is trusted with, by where it comes from.
_CONFIDENCE = {None: 0.5, "user_explicit": 1.0, "observed": 0.8, "inferred": 0.8, "external_unverified": 0.5}
_HUMAN_IMPORTANCE = 0.95
_RULE_LINE = lazy_regex(r"^---(?=[ \t]*\r?$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of a new entry; its id, its place and the day of its making come later.

    `kind` and `priority` are words of the file format. `fields` are further values of its frontmatter; they win over
    what kind and priority imply.
    """

    text: str
    kind: str = "fact"
    title: str | None = None
    tags: tuple[str, ...] = ()
    priority: str | None = None
    applies_to: tuple[str, ...] = ()
    source: str | None = None
    fields: Mapping[str, Value] = field(default_factory=dict)

    @property
    def is_proposal(self) -> bool:
        """Whether it waits for a person's judgment."""
        return self.fields.get("status") == "proposed"


def without_empty(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return fields without those that are None, an empty text or an empty list.

    Example:
        >>> without_empty({"outcome": "success", "agent": None, "tags": [], "usage_count": 0})
        {'outcome': 'success', 'usage_count': 0}
    """
    return {name: value for name, value in values.items() if value is not None and value not in ("", [])}


def check_draft(draft: Draft, *, allow_secret: bool = False) -> Draft:
    """Return the draft with its aliases resolved and its private parts cut.

    What comes from outside and would say an agent what to do becomes a proposal, unless a person imports it.

    Raises:
        UsageError: it is empty, or uses a word the format does not have.
        SecretRefused: it holds what looks like a credential.

    Example:
        >>> check_draft(Draft("Ship on Mondays.", kind="workflow")).kind
        'skill'
    """
    draft = _without_private(draft)
    kind = KIND_ALIASES.get(draft.kind, draft.kind)
    if kind not in KINDS:
        raise UsageError(f"unknown kind {draft.kind!r}", f"kinds are {', '.join(KINDS)}")
    if draft.priority is not None and draft.priority not in PRIORITIES:
        raise UsageError(f"unknown priority {draft.priority!r}", f"priorities are {', '.join(PRIORITIES)}")
    if draft.source is not None and draft.source not in SOURCES:
        raise UsageError(f"unknown source {draft.source!r}", f"sources are {', '.join(SOURCES)}")
    if not draft.text.strip(" \t\r\n\ufeff"):
        raise UsageError("there is no text to learn", 'try: memory-kb learn "Run the linter before pushing."')
    try:
        "".join((draft.text, draft.title or "", *draft.tags, *draft.applies_to)).encode()
    except UnicodeEncodeError as exc:
        raise UsageError("the text is not valid UTF-8") from exc
    refuse_secrets(draft.text, draft.title or "", *draft.tags, *draft.applies_to, allow=allow_secret)
    is_decided = not draft.fields.keys().isdisjoint(("status", "imported_from"))
    if draft.source == UNVERIFIED and kind in INSTRUCTING and not is_decided:
        draft = replace(draft, fields={**draft.fields, "status": "proposed"})
    return replace(draft, kind=kind, text=draft.text.removeprefix("\ufeff"))


def refuse_secrets(*texts: str, allow: bool) -> None:
    """Refuse texts to store that look like a credential, unless a person allows it."""
    found = None if allow else next(itertools.chain.from_iterable(map(locate_secrets, texts)), None)
    if found:
        raise SecretRefused(found.described)


def _without_private(draft: Draft) -> Draft:
    return replace(
        draft,
        text=cut_private(draft.text),
        title=draft.title and cut_private(draft.title),
        tags=cut_private_values(draft.tags),
        applies_to=cut_private_values(draft.applies_to),
        fields=cut_private_values(draft.fields),
    )


def moment_of(moment: object, now: datetime) -> datetime:
    """Return the moment that a source names, never one after `now`; where it names none, `now`."""
    try:
        found = datetime.fromisoformat(moment) if isinstance(moment, str) else now
    except ValueError:
        return now
    return min(now, found if found.tzinfo else found.replace(tzinfo=UTC))


def name_file(draft: Draft, entry_id: str, now: datetime, learning_type: str = "task") -> str:
    """Return where below its scope's folder a new entry goes.

    There is one file per entry. What waits for a person's judgment goes to
    `review/`, what is learned about people's preferences to `proxy-tasks/`.

    Example:
        >>> name_file(Draft("# Ship on Mondays"), "69712e00-2428", datetime(2026, 1, 2, tzinfo=UTC))
        'learnings/ship-on-mondays-69712e00.md'
    """
    first_line = next((line for line in draft.text.splitlines() if any(sign.isalnum() for sign in line)), "")
    name = f"{slugify(draft.title or first_line.lstrip('#> '))}-{slugify(entry_id)[:8].strip('-')}.md"
    if draft.is_proposal:
        return f"review/{name}"
    if learning_type == "proxy":
        return f"proxy-tasks/{name}"
    made = parse_date(draft.fields.get("created_at")) or now.astimezone(UTC).date()
    day = f"{made.isoformat()}/" if draft.kind == "episode" else ""
    return f"{KINDS[draft.kind].folder}/{day}{name}"


def plan_entry(draft: Draft, entry_id: str, path: str, now: datetime, reason: str = "Learned on request.") -> Change:
    """Plan the file of a new entry."""
    return create_file(path, render_new_entry(draft, entry_id, now), reason, entry_id)


def render_new_entry(draft: Draft, entry_id: str, now: datetime) -> str:
    """Return the text of a new entry; it reads back as exactly one.

    A line of three dashes inside the text that would open another entry is moved one column in,
    where Markdown still sees the same rule.
    """
    import frontmatter
    from frontmatter.default_handlers import YAMLHandler

    class FieldHandler(YAMLHandler):
        """Writes each field as a later change of it would be written."""

        def export(self, metadata: dict[str, Any], **_: object) -> str:
            return "\n".join(f"{name}:{emit_below(value)}" for name, value in metadata.items())

    draft = _without_private(draft)
    post = frontmatter.Post(draft.text.strip("\n"))
    post.metadata = {**_metadata(draft, entry_id, now)}
    text = frontmatter.dumps(post, FieldHandler())
    document = parse_document(f"{text}\n", "draft.md")
    if len(document.entries) > 1 or document.problems:
        post.content = _RULE_LINE.sub(" ---", post.content)
        text = frontmatter.dumps(post, FieldHandler())
    return f"{text}\n"


def _metadata(draft: Draft, entry_id: str, now: datetime) -> dict[str, Value]:
    kind = KINDS[draft.kind]
    now = now.astimezone(UTC)
    importance = PRIORITIES[draft.priority or kind.priority]
    if draft.kind == "preference" and draft.source == "user_explicit" and draft.priority is None:
        importance = _HUMAN_IMPORTANCE
    fields: dict[str, Value] = {
        "id": entry_id,
        "kind": draft.kind,
        "type": kind.type,
        "domain": "team",
        "importance": importance,
        "phase": "unknown",
        "status": "active",
        "reinforcement_count": 0,
        "last_reinforced": now.date().isoformat(),
        "created_at": moment_text(now),
    }
    optional: dict[str, Value | None] = {
        "title": draft.title,
        "tags": list(draft.tags),
        "priority": draft.priority,
        "applies_to": list(draft.applies_to),
        "source": draft.source,
    }
    fields |= without_empty(optional)
    if draft.kind in ("rule", "pitfall", "skill"):
        fields["confidence"] = _CONFIDENCE.get(draft.source, 0.5)
        if draft.kind != "skill":
            fields["maturity"] = "nascent"
        fields |= {"success_count": 0, "failure_count": 0}
    return {**fields, **draft.fields}


def plan_erasure(note: NoteText, entry_id: str, now: datetime) -> Change:
    """Plan to take an entry's text out and leave a tombstone, which keeps it from coming back."""
    text = note.text
    entry = find_entry(text, note.path, entry_id)
    refuse_broken(entry, note.path)
    digest = fingerprint(text[entry.body.start : entry.body.end])
    day = now.astimezone(UTC).date()
    head = ("---", f"id: {emit(entry.id)}", f"kind: {entry.kind}", "status: retired")
    lines = (*head, f"forgotten_at: '{day}'", f"tombstone: {digest}", "---", "")
    return replace_entry(note, entry_id, newline_of(text).join(lines), "Forgotten and deleted on request.")
