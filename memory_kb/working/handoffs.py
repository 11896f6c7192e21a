"""The verbs of handoffs: what one agent leaves to the next."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.credentials import redact
from memory_kb.errors import AmbiguousId, MemoryKBError, UnknownEntry, UsageError
from memory_kb.learning.render_entry import Draft, check_draft, render_new_entry, without_empty
from memory_kb.markdown.lists_and_fences import clean_item, find_sections, plain_lines, read_list, render_items
from memory_kb.memory import Memory
from memory_kb.model import LIVE_STATUSES, Location
from memory_kb.reports import RunReport
from memory_kb.store.changes import create_file
from memory_kb.text import as_text
from memory_kb.working.ledgers import git_state_of, is_at

if TYPE_CHECKING:
    from memory_kb.learning.memories import Memories
    from memory_kb.store.git_command import GitState
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

_SECTIONS = {"done": "Done", "needs_testing": "Needs testing", "known_issues": "Known issues"}
_ID = re.compile(r"handoff-0*(\d{1,9})")


class Handoff(NamedTuple):
    """A handoff; `git_state` is what git said, or some words about it."""

    from_agent: str | None
    to_agent: str | None
    done: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    git_state: Mapping[str, Any] | str | None = None
    needs_testing: tuple[str, ...] = ()
    known_issues: tuple[str, ...] = ()
    relevant_patterns: tuple[str, ...] = ()
    id: str = ""
    timestamp: str | None = None
    status: str = "active"
    scope: str = "project"
    path: str = ""
    line: int = 1

    @property
    def number(self) -> int:
        """The number in its id, -1 where it has none."""
        found = _ID.fullmatch(self.id)
        return int(found[1]) if found else -1

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The handoff as JSON output shows it."""
        context: dict[str, Any] = {"what_was_done": "\n".join(self.done)}
        for name in ("artifacts", "git_state", "needs_testing", "known_issues", "relevant_patterns"):
            value = getattr(self, name)
            context[name] = list(value) if isinstance(value, tuple) else value
        head = {name: getattr(self, name) for name in ("id", "from_agent", "to_agent", "timestamp")}
        return head | {"context": context}


class HandoffReport(NamedTuple):
    """A handoff; `action` is created, or known where the last one says the same. `notices` name what is not there."""

    handoff: Handoff
    action: str
    run: RunReport
    notices: tuple[str, ...] = ()


def _filled(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean_item(item) for item in items if item.strip()))


def _listed(value: object) -> tuple[str, ...]:
    """Return the texts of a list, each on one line and once."""
    items = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for item in items if (text := as_text(item))))


def describe_git(state: GitState | None) -> dict[str, Any] | None:
    """Return what git said as a handoff holds it; a subject is kept without credentials."""
    if state is None:
        return None
    found = {
        "branch": state.branch,
        "last_commit": state.commit,
        "subject": redact(state.subject).text if state.subject else None,
        "dirty_files": list(state.dirty_files),
        "dirty_count": state.dirty_count if state.dirty_count > len(state.dirty_files) else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def render_handoff(draft: Handoff) -> str:
    """Return the body of a handoff, with those sections that say something."""
    parts = {heading: render_items(getattr(draft, name)) for name, heading in _SECTIONS.items()}
    sections = [f"## {heading}\n\n{items}" for heading, items in parts.items() if items]
    return "\n\n".join((f"# Handoff: {draft.from_agent} to {draft.to_agent}", *sections))


def read_handoff(memory: Memory) -> Handoff:
    """Return an entry of kind handoff as it is shown, however it was written."""
    text = plain_lines(memory.text)
    sections = {one.heading.lower().rstrip(":"): one for one in reversed(find_sections(text))}
    parts = {
        name: read_list(text, sections[heading.lower()].content)
        for name, heading in _SECTIONS.items()
        if heading.lower() in sections
    }
    state = memory.metadata.get("git_state")
    return Handoff(
        memory.word("from_agent"),
        memory.word("to_agent"),
        artifacts=_listed(memory.metadata.get("artifacts")),
        git_state=state if isinstance(state, Mapping) else as_text(state),
        relevant_patterns=_listed(memory.metadata.get("relevant_patterns")),
        id=memory.id,
        timestamp=memory.created_at,
        status=memory.status,
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
        **parts,
    )


def _order(one: Handoff) -> tuple[str, int, str]:
    return one.timestamp or "", one.number, one.path


@dataclass(frozen=True)
class Handoffs:
    """The verbs of `handoff`."""

    _vault: Vault
    _writer: Writer
    _memories: Memories

    def create(
        self,
        from_agent: str,
        to_agent: str,
        *,
        done: Sequence[str] = (),
        artifacts: Sequence[str] = (),
        needs_testing: Sequence[str] = (),
        known_issues: Sequence[str] = (),
        patterns: Sequence[str] = (),
        git_state: str | None = None,
        git: bool = True,
        repository: str | os.PathLike[str] | None = None,
        job: str | None = None,
        task_id: str | None = None,
        dry_run: bool = False,
    ) -> HandoffReport:
        """Store what the next agent has to know, unless the last handoff says the same.

        `patterns` are ids of entries that matter now, `git_state` is what to say of the repository in place of what git
        says.
        """
        place = self._vault.place_for("project", job, task_id)
        goes, comes = as_text(from_agent), as_text(to_agent)
        if goes is None or comes is None:
            raise UsageError(
                "a handoff is from an agent to an agent",
                "try: memory-kb handoff create --from planner --to coder --done 'Wrote the plan.'",
            )
        ids, notices = self._resolve_patterns(patterns)
        state = git_state or (describe_git(git_state_of(self._vault, repository)) if git else None) or None
        lists = (_filled(needs_testing), _filled(known_issues), _listed(ids))
        draft = Handoff(goes, comes, _filled(done), _listed(list(artifacts)), state, *lists)
        whole = "\n".join((render_handoff(draft), *draft.artifacts, *draft.relevant_patterns, git_state or ""))
        check_draft(Draft(whole, "handoff"), allow_secret=self._vault.allows_secrets)
        with self._writer.lock(dry_run=dry_run):
            return self._store_handoff(draft, place, dry_run=dry_run)._replace(notices=tuple(notices))

    def show(self, wanted: str, job: str | None = None, task_id: str | None = None) -> Handoff:
        """Return a handoff by its id or its number."""
        number = int(wanted) if re.fullmatch(r"[0-9]{1,9}", wanted) else None
        everything = self._handoffs(job, task_id)
        found = [one for one in everything if one.id == wanted or (number is not None and one.number == number)]
        found = [one for one in found if one.status in LIVE_STATUSES] or found
        if not found:
            raise UnknownEntry(wanted, "handoff")
        # Numbers are of one scope; where several scopes have the same, the project's is meant.
        own = [one for one in found if one.scope == "project"] if len(found) > 1 else found
        if len(own) != 1:
            raise AmbiguousId(wanted, [f"{one.path}:{one.line}" for one in found])
        return own[0]

    def latest(self, to: str | None = None, job: str | None = None, task_id: str | None = None) -> Handoff | None:
        """Return the newest handoff, or the newest to an agent; None where there is none."""
        return next(iter(self.list(to, job, task_id)), None)

    def list(self, to: str | None = None, job: str | None = None, task_id: str | None = None) -> tuple[Handoff, ...]:
        """Return the handoffs, newest first; with a job those of that job."""
        live = (one for one in self._handoffs(job, task_id) if one.status in LIVE_STATUSES)
        return tuple(sorted((one for one in live if to in (None, one.to_agent)), key=_order, reverse=True))

    def _handoffs(self, job: str | None, task_id: str | None) -> Sequence[Handoff]:
        place = self._vault.place_for("project", job, task_id)
        return [self._read_whole(one) for one in self._memories.of_kinds("handoff") if is_at(one, place)]

    def _read_whole(self, memory: Memory) -> Handoff:
        return read_handoff(memory._replace(text=self._memories.whole_text_of(memory)))

    def _store_handoff(self, draft: Handoff, place: Location, *, dry_run: bool) -> HandoffReport:
        folder = f"{self._vault.folder_of(place)}handoffs"
        here = [self._read_whole(one) for one in self._memories.of_kinds("handoff") if one.place[:3] == place[:3]]
        last = max(here, key=_order, default=None)
        # The same message to the same agent, wherever and whenever it was stored.
        if last and last._replace(id="", timestamp=None, scope=draft.scope, path="", line=1) == draft:
            return HandoffReport(last, "known", RunReport(None, "handoff create"))
        # A number that was used once is not used again, not even where its entry or its file is gone.
        files = (file.stem for file in self._vault.resolve(folder).glob("handoff-*.md"))
        numbers = (int(named[1]) for name in (*(one.id for one in here), *files) if (named := _ID.fullmatch(name)))
        entry_id = f"handoff-{max(numbers, default=0) + 1:03d}"
        now = self._vault.clock()
        time, path = self._vault.timestamp(), f"{folder}/{entry_id}.md"
        made = draft._replace(id=entry_id, timestamp=time, scope=place.scope, path=path)
        fields: dict[str, Any] = {
            "from_agent": made.from_agent,
            "to_agent": made.to_agent,
            "git_state": made.git_state or None,
            "artifacts": list(made.artifacts),
            "relevant_patterns": list(made.relevant_patterns),
        }
        text = render_new_entry(Draft(render_handoff(made), "handoff", fields=without_empty(fields)), entry_id, now)
        change = create_file(path, text, f"{made.from_agent} hands over to {made.to_agent}.", entry_id)
        return HandoffReport(made, "created", self._writer.run("handoff create", [change], dry_run=dry_run))

    def _resolve_patterns(self, wanted: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """Return the ids of some entries; one that is not there stays as it is named, with a notice."""
        ids, wrong = list[str](), list[str]()
        for name in wanted:
            try:
                ids.append(self._memories.find(name).id)
            except MemoryKBError as exc:
                ids.append(name)
                wrong.append(f"{exc}; it is named all the same")
        return ids, wrong
