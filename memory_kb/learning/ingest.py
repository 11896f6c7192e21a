"""Decide for each learning, of whatever source: a new entry, a proposal, a reinforcement, or nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from memory_kb.errors import UsageError
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.learning.playbook import count_outcome
from memory_kb.learning.render_entry import Draft, check_draft, moment_of, name_file, plan_entry
from memory_kb.learning.similar_entries import FORGOTTEN, STATED, find_duplicate, find_older
from memory_kb.learning.text_comparison import fingerprint, is_replaced
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, Location
from memory_kb.store.changes import Change, last_seen, plan_fields, plan_replaced, with_words
from memory_kb.text import first_free

#: Why an entry that was made before, and is gone, is not made again.
DELETED_BEFORE = "it was reverted or deleted before; where a run did that, `memory-kb undo --list` names it"
_NAMESPACE = uuid.UUID("6f1d0c3e-6a5e-5b0e-9f35-4d6b0f5a2c11")


@dataclass(frozen=True, slots=True)
class Learning:
    """A draft with its place, its source and a key.

    Attributes:
        key: what makes it this one and no other, such as `session/scope/seq`: offered again, it is
            known again, even when it was rejected, reworded or retired since.
        reason: why it is kept, in one sentence for the person who reads the log.
        origin: the session it comes from, its `session_id`; an entry that says the same is reinforced once for each.
        origin_field: the field that names the origin, where that is no session.
        said: when it was said or seen, by its source; now if the source has no time.
        replaces: whether an older entry that says the same with another value is superseded by it.
        own_id: the id that its source gives it; an entry of another scope with that id is another one.
    """

    draft: Draft
    place: Location
    key: str
    reason: str
    origin: str | None = None
    origin_field: str = "session_id"
    said: str | None = None
    replaces: bool = False
    own_id: str | None = None

    @property
    def entry_id(self) -> str:
        """The id that a new entry gets, the same for every learning with this key."""
        return self.own_id or id_of(self.key)

    @property
    def origins(self) -> Sequence[str]:
        """The origin, if there is one."""
        return [] if self.origin is None else [self.origin]


def id_of(key: str) -> str:
    """Return the id of the entry that a learning with this key makes."""
    return str(uuid.uuid5(_NAMESPACE, key))


class GateVerdict(NamedTuple):
    """What the gate decides about a proposed rule.

    `decision` is `accept`, `draft` (nascent, with the confidence given), `reject`, or `helpful`: a
    mark on the rule `existing`, which says the same.
    """

    decision: str
    reason: str
    confidence: float | None = None
    existing: Memory | None = None


#: Decides about a new rule that nobody stated; returns None for a learning that needs no evidence.
Gate = Callable[[Learning], GateVerdict | None]


class Ingested(NamedTuple):
    """What was decided about a learning.

    `action` is `created`, `reinforced`, `known` where nothing is to be done, `forgotten` where it
    was retired or rejected before, or `refused` with the reason in `message`.
    """

    learning: Learning
    id: str
    path: str
    action: str
    message: str = ""


class IngestPlan(NamedTuple):
    """What was decided about the learnings, in their order, and the changes to make."""

    results: tuple[Ingested, ...]
    changes: tuple[Change, ...]


@dataclass(slots=True)
class _NewEntry:
    """An entry that is to be made, as long as a later learning of the plan may replace it."""

    learning: Learning
    draft: Draft
    path: str
    at: datetime

    def link(self, relation: str, to: str, **more: Value) -> None:
        """Add a link to its frontmatter, and other fields."""
        held = self.draft.fields.get("links")
        links = [*(held if isinstance(held, list) else []), {"to": to, "relation": relation}]
        self.draft = replace(self.draft, fields={**self.draft.fields, "links": links, **more})


@dataclass(slots=True)
class IngestPlanner:
    """Decides about each learning, in their order, and collects the changes to make.

    Attributes:
        folder_of: returns the folder of a scope, as paths are written in output.
        was_made: returns whether an entry of this id was ever made here; one that is gone since was
            deleted by a person and does not come back.
        gate: asked for every learning that would be new, whether the evidence is enough.
    """

    index: SqliteIndex
    folder_of: Callable[[Location], str]
    now: datetime
    was_made: Callable[[str], bool]
    gate: Gate | None
    _new: list[_NewEntry] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)
    _changes: list[Change | None] = field(default_factory=list)
    _before: dict[tuple[Location, str, str], Ingested] = field(default_factory=dict)

    def plan(self, learnings: Iterable[Learning]) -> IngestPlan:
        """Decide about some learnings, and return the decisions with the changes to make."""
        results = tuple(map(self._plan_one, learnings))
        new = (plan_entry(one.draft, one.learning.entry_id, one.path, one.at, one.learning.reason) for one in self._new)
        return IngestPlan(results, (*filter(None, self._changes), *new))

    def _plan_one(self, learning: Learning) -> Ingested:
        # The same text of the same plan, in any spacing and case, is not kept twice.
        words = learning.place, learning.draft.kind, fingerprint(learning.draft.text)
        result = self._decide(learning, self._before.get(words))
        if result.action in ("created", "forgotten"):
            self._before.setdefault(words, result)
        return result

    def _decide(self, learning: Learning, same: Ingested | None) -> Ingested:
        """Decide about one learning; `same` is the decision about one with the same text in this plan.

        It is checked in this order: whether it is valid, whether an entry has its key, whether one was made of it
        and is gone, whether this plan or a stored entry says the same. What passes all of that is new.
        """
        try:
            draft = check_draft(learning.draft)
        except UsageError as exc:
            return Ingested(learning, "", "", "refused", str(exc))
        at = moment_of(learning.said or draft.fields.get("created_at"), self.now)
        entries = self.index.entries_with_id(learning.entry_id)
        same_id = (entry for entry in entries if entry.id == learning.entry_id)
        known = next((one for one in same_id if not learning.own_id or one.scope == learning.place.scope), None)
        if known:
            memory = self._memory(known.path, known.id)
            # Only a proposal that another session makes again is counted; every other entry is known by its key alone.
            if draft.is_proposal and memory.status == "proposed" and learning.origin:
                return self._reinforce(learning, memory, at)
            return Ingested(learning, memory.id, memory.path, "known")
        if self.was_made(learning.entry_id):
            return Ingested(learning, learning.entry_id, "", "forgotten", DELETED_BEFORE)
        if learning.own_id in self._taken:
            return Ingested(learning, learning.entry_id, "", "refused", f"the id {learning.entry_id} occurs twice")
        if same:
            return same._replace(learning=learning, action="known" if same.action == "created" else same.action)
        twin = find_duplicate(self.index, draft, learning.place)
        if twin and twin.status in FORGOTTEN:
            return Ingested(learning, twin.id, twin.path, "forgotten", "the same was forgotten before")
        if twin and not (learning.replaces and twin.is_superseded):
            return self._reinforce(learning, self._memory(twin.path, twin.id), at)
        return self._plan_new(learning, draft, at)

    def _reinforce(
        self, learning: Learning, memory: Memory, at: datetime, said: str = "", more: Mapping[str, Value] | None = None
    ) -> Ingested:
        """Plan to count one more sighting of an entry, unless its sources name the origin already."""
        change = plan_sighting(memory, learning.origins, at, f"{learning.reason} {said}".strip(), more)
        self._changes.append(change)
        return Ingested(learning, memory.id, memory.path, "reinforced" if change else "known")

    def _plan_new(self, learning: Learning, draft: Draft, at: datetime) -> Ingested:
        verdict = self.gate(learning) if self.gate else None
        if verdict and verdict.decision == "reject":
            return Ingested(learning, "", "", "refused", verdict.reason)
        if verdict and verdict.existing:
            # A session that finds a rule again in nearly the same words marks it as helpful, once.
            more = count_outcome(verdict.existing, "success", at.astimezone(UTC).date())
            seen = self._reinforce(learning, verdict.existing, at, "It says nearly the same.", more)
            return seen._replace(message=verdict.reason)
        fields = dict(draft.fields)
        if verdict and verdict.confidence is not None:
            fields["confidence"] = verdict.confidence
        if learning.origin is not None:
            fields.setdefault(learning.origin_field, learning.origin)
        draft = replace(draft, fields=fields)
        name = name_file(draft, learning.entry_id, at, learning.place.learning_type).removesuffix(".md")
        stem = first_free(f"{self.folder_of(learning.place)}{name}", self._is_taken)
        made = _NewEntry(learning, draft, f"{stem}.md", at)
        if learning.replaces:
            self._replace_older(made)
        self._new.append(made)
        self._taken.update((made.path, learning.entry_id))
        return Ingested(learning, learning.entry_id, made.path, "created")

    def _is_taken(self, stem: str) -> bool:
        return f"{stem}.md" in self._taken or bool(self.index.entries_of([f"{stem}.md"]))

    def _replace_older(self, made: _NewEntry) -> None:
        """Plan to retire the statements, stored or of this plan, that a new one contradicts."""
        place, new_id = made.learning.place, made.learning.entry_id
        for entry in find_older(self.index, made.draft, place, made.at.isoformat()):
            made.link("supersedes", entry.id)
            older, why = self._memory(entry.path, entry.id), "A newer statement says otherwise."
            self._changes.append(plan_replaced(older, new_id, why, {"status": "retired"}))
        for one in self._new:
            is_live = one.draft.source == "user_explicit" and "status" not in one.draft.fields
            is_older = is_live and one.draft.kind in STATED and one.learning.place == place
            if is_older and is_replaced(one.draft.text, made.draft.text):
                made.link("supersedes", one.learning.entry_id)
                one.link("superseded_by", new_id, status="retired")

    def _memory(self, path: str, entry_id: str) -> Memory:
        return next(one for one in self.index.memories(EVERYTHING, path) if one.id == entry_id)


def plan_sighting(
    memory: Memory, origins: Sequence[str], at: datetime, reason: str, more: Mapping[str, Value] | None = None
) -> Change | None:
    """Plan to count one more sighting of an entry; None where its sources name all of the `origins` already.

    One that is older than the last, as of a log that is imported late, counts and sets no clock back. `origins` are
    the session or the entries that it comes from; without any it counts every time. `more` is set with it.

    Example:
        >>> memory = Memory("x", "a.md", "", Location(), "T", "", metadata={"id": "x"})
        >>> plan_sighting(memory, ["s1"], datetime(2026, 1, 2), "Said again.").values
        {'reinforcement_count': 1, 'last_reinforced': '2026-01-02', 'sources': ['s1']}
    """
    values: dict[str, Value] = {
        "reinforcement_count": memory.reinforcement_count + 1,
        "last_reinforced": last_seen(memory, at),
    }
    if origins:
        new = [one for one in origins if one not in (*memory.words("sources"), memory.word("session_id"))]
        if not new:
            return None
        values["sources"] = with_words(memory, "sources", *new)
    return plan_fields(memory, {**(more or {}), **values}, reason)


def newest(moments: Iterable[str | None]) -> str | None:
    """Return the latest of some days and moments, None where there is none."""
    return max(filter(None, moments), default=None)
