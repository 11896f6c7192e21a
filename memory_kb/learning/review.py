"""The verbs of the review queue: list, show, scan, approve, edit, reject and snooze; and what approving writes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple, Unpack

from memory_kb.errors import CannotSplice, ChangedOnDisk, UsageError
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning import playbook
from memory_kb.learning.ingest import Learning
from memory_kb.learning.memories import Memories
from memory_kb.learning.render_entry import Draft, refuse_secrets, without_empty
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import Value, change_fields, find_entry, newline_of, pin_id, refuse_broken, separated
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, KINDS, UNVERIFIED, FilterWords, Link, Location
from memory_kb.reports import RunReport
from memory_kb.store.changes import (
    Change,
    Plan,
    create_file,
    move,
    plan_fields,
    plan_replaced,
    remove,
    set_body,
    with_links,
    with_words,
    write_file,
)
from memory_kb.store.file_edits import NoteText, find_note
from memory_kb.store.writer import Writer
from memory_kb.text import encode, first_free, hash_of, parse_date, pluralize, short_id, shorten
from memory_kb.vault import Vault

_TAGS = ("inverted", "anti-pattern")
_NEGATIVE = re.compile(
    r"(?:avoid|never|do not|don['\u2019]t|must not|should not|not|no|stop|refrain|beware)\b", re.IGNORECASE
)
#: The most days that a judgment is put off by.
_LONGEST = 3_650


def plan_scan(memories: Iterable[Memory]) -> tuple[tuple[Learning, ...], Plan]:
    """Return a proposed warning for every rule that failed too often, and the changes that need no proposal.

    Pitfalls, pinned rules, those whose proposal is open or was rejected, and those that a person has looked at since
    they failed are skipped. A rule that is negative already is flagged. An approval that somebody wrote into
    the proposal's file by hand is completed.
    """
    held = list(memories)
    waiting = frozenset(
        spot_of(target, one) for one in held if one.status in ("proposed", "rejected") and (target := original_of(one))
    )
    learnings: dict[str, Learning] = {}
    changes: list[Change | None] = []
    for memory in playbook.active_rules(held):
        is_due = (
            memory.kind == "rule"
            and not memory.is_pinned
            and not playbook.was_reviewed(memory)
            and playbook.needs_inversion(playbook.read_evidence(memory))
        )
        if is_due and not is_negative(playbook.rule_text(memory)):
            if spot_of(memory.id, memory) not in waiting:
                learning = _propose(memory)
                learnings.setdefault(learning.key, learning)
        elif is_due or playbook.DEPRECATION in memory.words("flags"):
            left = [word for word in memory.words("flags") if word != playbook.DEPRECATION]
            flags: Value = with_words(memory, "flags", playbook.DEPRECATION) if is_due else left
            said = f"Flagged as {playbook.DEPRECATION}" if is_due else "No candidate any more"
            reason = f"{said}: negative already, {playbook.read_evidence(memory).described}."
            changes.append(plan_fields(memory, {"flags": flags}, reason))
    for proposal in held:
        if proposal.is_live and is_in_review(proposal):
            changes += plan_replacement(proposal, held, only_new=True)
    return tuple(learnings.values()), changes


def is_negative(text: str) -> bool:
    """Return whether a rule says what not to do.

    Example:
        >>> is_negative("Never push to main."), is_negative("Notify the owner first.")
        (True, False)
    """
    return _NEGATIVE.match(text.lstrip(" *_`\"'")) is not None


def _propose(memory: Memory) -> Learning:
    evidence = playbook.read_evidence(memory)
    place = memory.place
    fields: dict[str, Value | None] = {
        "status": "proposed",
        "confidence": 0.5,
        "sources": list(memory.words("sources")),
        "links": [{"to": memory.id, "relation": "derived_from"}],
    }
    counts = f"{evidence.failure_count} failures vs {evidence.success_count} successes"
    draft = Draft(
        f"AVOID: {playbook.rule_text(memory)} -- this pattern has caused repeated issues ({counts}).",
        kind="pitfall",
        tags=tuple(dict.fromkeys((*memory.tags, *_TAGS))),
        applies_to=memory.applies_to,
        fields=without_empty(fields),
    )
    key = "/".join(("inversion", place.scope, place.job or "", place.task or "", memory.id))
    failed, succeeded = pluralize(evidence.failure_count, "time"), pluralize(evidence.success_count, "time")
    reason = f"Inversion: {memory.id} failed {failed} and succeeded {succeeded}."
    return Learning(draft, place._replace(learning_type="task"), key, reason)


def original_of(proposal: Memory) -> str | None:
    """Return the id of the rule that a warning was made from, None for any other entry."""
    if proposal.kind != "pitfall" or _TAGS[0] not in (tag.casefold() for tag in proposal.tags):
        return None
    return next(
        (link.to for link in proposal.links if link.relation == "derived_from" and link.to != proposal.id), None
    )


def spot_of(entry_id: str, near: Memory) -> tuple[str, Location]:
    """Return a key that distinguishes an id of one scope from the same id of another."""
    return entry_id, near.place._replace(learning_type="task")


def is_in_review(memory: Memory) -> bool:
    """Return whether an entry is in a `review/` folder."""
    return "review" in memory.path.split("/")[:-1]


def plan_replacement(proposal: Memory, memories: Sequence[Memory], *, only_new: bool = False) -> list[Change]:
    """Plan to retire the rule that an approved warning was made from; both link to each other.

    With `only_new` a rule that is linked already is left alone: somebody has brought it back.
    """
    wanted = original_of(proposal)
    found = [memory for memory in memories if memory.id == wanted and memory.id != proposal.id]
    near = [memory for memory in found if spot_of(memory.id, memory) == spot_of(memory.id, proposal)]
    changes: list[Change] = []
    for memory in near or found[:1]:
        if only_new and any(link.relation == "superseded_by" and link.to == proposal.id for link in memory.links):
            continue
        values: dict[str, Value] = {"status": "retired", "confidence": 0.0}
        change = plan_replaced(memory, proposal.id, f"Inversion: replaced by {proposal.id}.", values)
        changes += [change] if change else []
    if changes:
        links: Value = list(with_links(proposal, Link(changes[0].entry_id or "", "supersedes")))
        link = plan_fields(proposal, {"links": links}, "Inversion: approved.")
        changes += [link] if link else []
    return [change._replace(together=f"inversion {proposal.id}") for change in changes]


class ScanReport(NamedTuple):
    """What a scan proposed: the new proposals, why others were not made, and what was written."""

    proposed: tuple[str, ...]
    refused: tuple[str, ...]
    run: RunReport


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An entry that waits for a judgment.

    `proposes` is entry, institutional, inversion, or flag for a live entry that has some. `of` is the rule that an
    inversion would replace. `approving` and `rejecting` say what each would do.
    """

    id: str
    kind: str
    status: str
    title: str
    scope: str
    path: str
    line: int
    flags: tuple[str, ...]
    proposes: str
    of: str | None
    reason: str
    approving: str
    rejecting: str
    text: str = ""
    session: str | None = None
    created: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewView:
    """An entry of the queue with its source text and what approving it would write."""

    item: ReviewItem
    text: str
    approval: RunReport


def is_waiting(memory: Memory) -> bool:
    """Return whether an entry is in the queue: proposed, or live with flags or an instruction from outside."""
    return memory.status == "proposed" or (
        memory.is_live and memory.may_be_flagged and (memory.is_quarantined or bool(memory.words("flags")))
    )


def _check_waiting(memory: Memory) -> None:
    if not is_waiting(memory):
        hint = f"`memory-kb forget {memory.id}` retires it" if memory.is_live else f"it is {memory.status}"
        raise UsageError(f"{memory.id} does not wait for review", hint)


def make_item(memory: Memory, today: date) -> ReviewItem:
    """Return an entry as the queue shows it."""
    of, flags = original_of(memory), memory.words("flags")
    proposes, approving, rejecting = "entry", "puts it in use", "keeps it from coming back"
    if memory.is_live:
        proposes, rejecting = "flag", "takes it out of use"
        approving = "keeps it and takes the flag away" if flags else approving
    elif of:
        proposes, rejecting = "inversion", f"leaves {short_id(of)} in use"
        approving = f"puts it in the place of {short_id(of)}, which is retired"
    elif memory.metadata.get("institutional") is True:
        proposes, approving = "institutional", "adds it to institutional.md"
    return ReviewItem(
        id=memory.id,
        kind=memory.kind,
        status=memory.status,
        title=shorten(playbook.rule_text(memory) if memory.kind in playbook.RULE_KINDS else memory.title),
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
        flags=flags,
        proposes=proposes,
        of=of,
        reason=_explain(memory, of, today),
        approving=approving,
        rejecting=rejecting,
        text=memory.text.strip(),
        session=memory.word("session_id"),
        created=memory.created_at[:10] if memory.created_at else None,
    )


def _explain(memory: Memory, of: str | None, today: date) -> str:
    flags, session = memory.words("flags"), memory.word("session_id")
    if of and not memory.is_live:
        return f"{short_id(of)} failed too often."
    if memory.is_unverified and not flags:
        return f"It comes from outside and nobody has verified it ({UNVERIFIED})."
    if not memory.is_live:
        return f"Proposed{f' from session {session}' if session else ''}."
    evidence = playbook.read_evidence(memory)
    numbers = f"; confidence {evidence.decayed(today):.2f}, {evidence.described}"
    return f"Flagged: {', '.join(flags)}{numbers if memory.kind in playbook.RULE_KINDS else ''}."


@dataclass(frozen=True)
class Review:
    """The verbs review list, show, scan, approve, edit, reject and snooze."""

    _vault: Vault
    _index: VaultIndex
    _writer: Writer
    _memories: Memories

    def list(self, *, session: str | None = None, **filters: Unpack[FilterWords]) -> tuple[ReviewItem, ...]:
        """Return what waits for a judgment: proposals, the newest first, then live entries with flags."""
        chosen, today = self._index.filters(**filters), self._vault.today()
        wanted = chosen._replace(
            kinds=chosen.kinds or EVERYTHING.kinds,
            statuses=chosen.statuses or EVERYTHING.statuses,
            learning_types=chosen.learning_types or EVERYTHING.learning_types,
        )

        def is_listed(memory: Memory) -> bool:
            origins = (memory.word("session_id") or "", *memory.words("sources"))
            is_meant = session is None or any(word.startswith(session) for word in origins)
            return is_meant and is_waiting(memory) and not playbook.is_snoozed(memory, today)

        # Few of many wait: all of them in memory would be hundreds of megabytes in a large vault.
        waiting = self._index.read(lambda index: list(filter(is_listed, index.memories(wanted))))
        waiting.sort(key=lambda memory: (memory.path, memory.line))
        waiting.sort(key=lambda memory: (memory.status == "proposed", memory.created_at or ""), reverse=True)
        return tuple(make_item(memory, today) for memory in waiting)

    def show(self, wanted: str) -> ReviewView:
        """Return an entry of the queue with its text, and with what approving it would write."""
        found = self._memories.find(wanted)
        text = self._writer.read(found.path).text
        entry = find_entry(text, found.path, found.id)
        whole = text[entry.span.start : entry.span.end]
        return ReviewView(make_item(found, self._vault.today()), whole, self.approve(wanted, dry_run=True))

    def scan(self, *, dry_run: bool = False) -> ScanReport:
        """Propose a warning to replace each rule that failed too often."""
        with self._writer.lock(dry_run=dry_run):
            learnings, changes = plan_scan(self._memories.of_kinds(*playbook.RULE_KINDS))
            plan = self._memories.plan_ingest(learnings)
            run = self._writer.run("review scan", [*plan.changes, *changes], dry_run=dry_run)
        refused = tuple(f"{one.learning.reason} {one.message}" for one in plan.results if one.action == "refused")
        return ScanReport(tuple(one.id for one in plan.results if one.action == "created"), refused, run)

    def approve(self, *wanted: str, dry_run: bool = False) -> RunReport:
        """Approve entries: a proposal is put in use, a flag is removed."""
        with self._writer.lock(dry_run=dry_run):
            changes = self.plan_approval(self._find_all(wanted))
            return self._writer.run("review approve", changes, dry_run=dry_run)

    def reject(self, *wanted: str, reason: str | None = None, dry_run: bool = False) -> RunReport:
        """Reject entries: they stay where they are, and keep the same text from coming back."""
        said, today = " ".join((reason or "").split()), self._vault.today().isoformat()

        def plan(memory: Memory) -> Change | None:
            values: dict[str, Value] = {"review_reason": said} if said else {}
            if memory.status != "rejected":
                _check_waiting(memory)
                values = {"status": "rejected", "reviewed": today} | values
            return plan_fields(memory, values, f"Review: rejected{f', {said}' if said else ''}.")

        return self._memories.change_entries("review reject", self._find_all(wanted), plan, dry_run=dry_run)

    def edit(self, wanted: str, text: str, *, was: str | None = None, dry_run: bool = False) -> RunReport:
        """Replace the text of a proposal; it stays in the queue.

        ChangedOnDisk where `was` is the hash of the entry that the text was made from, and it is another now.
        """
        with self._writer.lock(dry_run=dry_run):
            found = self._memories.find(wanted)
            _check_waiting(found)
            if not text.strip():
                raise UsageError("there is no text", f"`memory-kb review reject {found.id}` turns it down")
            refuse_secrets(text, allow=self._vault.allows_secrets)
            note = self._writer.read(found.path)
            entry = find_entry(note.text, note.path, found.id)
            if was not in (None, hash_of(encode(note.text[entry.span.start : entry.span.end]))):
                raise ChangedOnDisk(found.path)
            change = set_body(note, found.id, text.strip(), "Review: edited.")
            return self._writer.run("review edit", [change], dry_run=dry_run)

    def snooze(self, *wanted: str, days: int = 14, dry_run: bool = False) -> RunReport:
        """Leave entries out of the queue for some days."""
        if not 0 < days <= _LONGEST:
            raise UsageError(f"a judgment can be put off by 1 to {_LONGEST:,} days, not {days:,}")
        until = (self._vault.today() + timedelta(days=days)).isoformat()

        def plan(memory: Memory) -> Change | None:
            _check_waiting(memory)
            return plan_fields(memory, {playbook.SNOOZED: until}, f"Review: put off until {until}.")

        return self._memories.change_entries("review snooze", self._find_all(wanted), plan, dry_run=dry_run)

    def _find_all(self, wanted: Sequence[str]) -> tuple[Memory, ...]:
        if not wanted:
            raise UsageError("no entry is named", "`memory-kb review list` shows what waits")
        found = {(memory.path, memory.id): memory for memory in map(self._memories.find, wanted)}
        return tuple(found.values())

    def plan_approval(self, wanted: Sequence[Memory]) -> tuple[Change, ...]:
        """Plan to approve entries; those that are approved already change no more.

        A proposal becomes active and moves from `review/` to the folder of its kind, one for the
        institution to the `institutional.md` of its scope; a warning takes the place of the rule it
        was made from; a flag goes. One that a person has set to active by hand is only moved.
        """
        changes: list[Change] = []
        known = self._memories.all()
        taken = {memory.path for memory in known}
        shared: dict[str, list[Memory]] = {}
        for memory in wanted:
            if not memory.is_live and memory.status not in ("proposed", "rejected"):
                hint = f"edit its status in {memory.path}"
                raise UsageError(f"{memory.id} is {memory.status} and waits for no review", hint)
            if target := self._find_institutional(memory):
                shared.setdefault(target, []).append(memory)
                continue
            change = plan_fields(memory, self._approved(memory), "Review: approved.")
            mine = [*([change] if change else []), *plan_replacement(memory, known)]
            if to := self._find_place(memory, taken):
                taken.add(to)
                mine.append(move(memory, to, "Review: approved.", memory.id))
            together = next((one.together for one in mine if one.together), None)
            changes += [one._replace(together=together) for one in mine]
        for target, memories in shared.items():
            changes += self._plan_institutional(target, memories)
        return tuple(changes)

    def _approved(self, memory: Memory) -> dict[str, Value]:
        """Return the fields that an approval sets: none where it was given already."""
        values: dict[str, Value] = {} if memory.is_live else {"status": "active"}
        values |= {"flags": []} if memory.words("flags") else {}
        return values | {"reviewed": self._vault.today().isoformat()} if values or memory.is_unverified else {}

    def _find_place(self, memory: Memory, taken: Collection[str]) -> str | None:
        """Return the file in the folder of its kind that an entry of `review/` goes to."""
        folder = self._vault.folder_of(memory.place)
        if not memory.path.startswith(f"{folder}review/"):
            return None
        name, ending = os.path.splitext(memory.path.rpartition("/")[2])
        day = f"{parse_date(memory.created_at) or self._vault.today()}/" if memory.kind == "episode" else ""
        stem = f"{folder}{KINDS[memory.kind].folder}/{day}{name}"
        return first_free(stem, lambda one: one + ending in taken) + ending

    def _find_institutional(self, memory: Memory) -> str | None:
        folder = self._vault.folder_of(memory.place)
        is_meant = memory.metadata.get("institutional") is True and memory.place.learning_type != "institutional"
        if not (is_meant and folder and (is_in_review(memory) or not memory.is_live)):
            return None
        own, beside = f"{folder}institutional.md", "institutional.md"
        is_beside = memory.place.scope == "project" and not self._note(own) and bool(self._note(beside))
        return beside if is_beside else own

    def _plan_institutional(self, target: str, memories: Sequence[Memory]) -> Sequence[Change]:
        """Plan to add entries to the end of an `institutional.md`, whose text stays as it is."""
        held = self._note(target)
        text = held.text if held else ""
        newline = newline_of(text)
        ids = [one.id for one in parse_document(text, target).entries] + [memory.id for memory in memories]
        for memory in memories:
            note = self._writer.read(memory.path)
            entry = find_entry(note.text, memory.path, memory.id)
            refuse_broken(entry, memory.path)
            own = pin_id(note.text[entry.span.start : entry.span.end].lstrip("\ufeff"), memory.path, memory.id)
            own = change_fields(own, memory.path, memory.id, self._approved(memory).items())
            lead = separated(text, newline) if text.strip("\ufeff \t\r\n") else text
            text = lead + own.rstrip().replace("\r\n", "\n").replace("\n", newline) + newline
        if [one.id for one in parse_document(text, target).entries] != ids:
            said = f"{target} would not be read as {pluralize(len(memories), 'entry', 'entries')} more"
            raise CannotSplice(f"{said} (is a code fence left open, or the id there already?)")
        changes = [remove(memory, f"Review: approved, now in {target}.", memory.id, target) for memory in memories]
        reason = f"Review: approved {', '.join(memory.id for memory in memories)}."
        change = write_file(held, text, reason) if held else create_file(target, text, reason)
        return [one._replace(together=f"institutional {target}") for one in (change, *changes)]

    def _note(self, path: str) -> NoteText | None:
        return find_note(self._vault, path)
