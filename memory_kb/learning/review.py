"""The verbs of the review queue: list, show, scan, approve, edit, reject and snooze."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple, Unpack

from memory_kb.errors import ChangedOnDisk, UsageError
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning.approval import Approval
from memory_kb.learning.confidence import read_evidence
from memory_kb.learning.inversion import original_of, plan_scan
from memory_kb.learning.memories import Memories
from memory_kb.learning.playbook import RULE_KINDS, SNOOZED, is_snoozed, rule_text
from memory_kb.learning.render_entry import refuse_secrets
from memory_kb.markdown.splice import Value, find_entry
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, UNVERIFIED, FilterWords
from memory_kb.reports import RunReport
from memory_kb.store.changes import Change, plan_fields, set_body
from memory_kb.store.file_edits import find_note
from memory_kb.store.writer import Writer
from memory_kb.text import encode, hash_of, short_id, shorten
from memory_kb.vault import Vault

#: The most days that a judgment is put off by.
_LONGEST = 3_650


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
    if memory.is_live:
        outcome = ("flag", "keeps it and takes the flag away" if flags else "puts it in use", "takes it out of use")
    elif of:
        approving = f"puts it in the place of {short_id(of)}, which is retired"
        outcome = ("inversion", approving, f"leaves {short_id(of)} in use")
    elif memory.metadata.get("institutional") is True:
        outcome = ("institutional", "adds it to institutional.md", "keeps it from coming back")
    else:
        outcome = ("entry", "puts it in use", "keeps it from coming back")
    return ReviewItem(
        id=memory.id,
        kind=memory.kind,
        status=memory.status,
        title=shorten(rule_text(memory) if memory.kind in RULE_KINDS else memory.title),
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
        flags=flags,
        proposes=outcome[0],
        of=of,
        reason=_explain(memory, of, today),
        approving=outcome[1],
        rejecting=outcome[2],
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
    evidence = read_evidence(memory)
    numbers = f"; confidence {evidence.decayed(today):.2f}, {evidence.described}"
    return f"Flagged: {', '.join(flags)}{numbers if memory.kind in RULE_KINDS else ''}."


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
            return is_meant and is_waiting(memory) and not is_snoozed(memory, today)

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
            learnings, changes = plan_scan(self._memories.of_kinds(*RULE_KINDS))
            plan = self._memories.plan_ingest(learnings)
            run = self._writer.run("review scan", [*plan.changes, *changes], dry_run=dry_run)
        refused = tuple(f"{one.learning.reason} {one.message}" for one in plan.results if one.action == "refused")
        return ScanReport(tuple(one.id for one in plan.results if one.action == "created"), refused, run)

    def approve(self, *wanted: str, dry_run: bool = False) -> RunReport:
        """Approve entries: a proposal is put in use, a flag is removed."""
        with self._writer.lock(dry_run=dry_run):
            changes = self.approval().plan(self._find_all(wanted))
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
            return plan_fields(memory, {SNOOZED: until}, f"Review: put off until {until}.")

        return self._memories.change_entries("review snooze", self._find_all(wanted), plan, dry_run=dry_run)

    def _find_all(self, wanted: Sequence[str]) -> tuple[Memory, ...]:
        """Return entries that are named, each once."""
        if not wanted:
            raise UsageError("no entry is named", "`memory-kb review list` shows what waits")
        found = {(memory.path, memory.id): memory for memory in map(self._memories.find, wanted)}
        return tuple(found.values())

    def approval(self) -> Approval:
        """Return what plans approvals of the entries as they are now."""
        read = functools.partial(find_note, self._vault)
        return Approval(self._memories.all(), self._vault.folder_of, read, self._vault.today())
