"""Handoffs: what one agent leaves for the next (S2-38)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory_kb.credentials import locate_secret, redact
from memory_kb.errors import AmbiguousId, SecretRefused, UnknownEntry, UsageError
from memory_kb.learning.memories import Memory
from memory_kb.learning.procedures.outlines import clean_item, find_items, find_sections, plain_lines, render_items
from memory_kb.learning.remember import Draft, check_draft, render
from memory_kb.notes.fields import read_text
from memory_kb.notes.plans import Change, create_file
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport
from memory_kb.words import LIVE_STATUSES

if TYPE_CHECKING:
    from memory_kb.notes.gitstate import GitState

_SECTIONS = {"done": "Done", "needs_testing": "Needs testing", "known_issues": "Known issues"}
_LISTS = ("artifacts", "relevant_patterns")
_ID = re.compile(r"handoff-0*(\d{1,9})")


@dataclass(frozen=True, slots=True)
class HandoffDraft:
    """What one agent tells the next; `git_state` is what git said, or some words about it."""

    from_agent: str
    to_agent: str
    done: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    needs_testing: tuple[str, ...] = ()
    known_issues: tuple[str, ...] = ()
    relevant_patterns: tuple[str, ...] = ()
    git_state: dict[str, Any] | str | None = None


@dataclass(frozen=True, slots=True)
class Handoff:
    """A handoff as it is shown."""

    id: str
    from_agent: str | None
    to_agent: str | None
    timestamp: str | None
    done: tuple[str, ...]
    artifacts: tuple[str, ...]
    git_state: Mapping[str, Any] | str | None
    needs_testing: tuple[str, ...]
    known_issues: tuple[str, ...]
    relevant_patterns: tuple[str, ...]
    status: str
    scope: str
    path: str
    line: int

    @property
    def number(self) -> int:
        """The number in its id, -1 where it has none."""
        found = _ID.fullmatch(self.id)
        return int(found[1]) if found else -1

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The handoff in the shape of S2-38."""
        return {
            "id": self.id,
            "from_agent": self.from_agent,
            "to_agent": self.to_agent,
            "timestamp": self.timestamp,
            "context": {
                "what_was_done": "\n".join(self.done),
                "artifacts": list(self.artifacts),
                "git_state": dict(self.git_state) if isinstance(self.git_state, Mapping) else self.git_state,
                "needs_testing": list(self.needs_testing),
                "known_issues": list(self.known_issues),
                "relevant_patterns": list(self.relevant_patterns),
            },
        }


@dataclass(frozen=True, slots=True)
class HandedOff:
    """A handoff that was made, and what was written for it.

    Attributes:
        action: `created`, or `known` where the last one says the same.
        notices: what the next agent will not find.
    """

    handoff: Handoff
    action: str
    run: RunReport
    notices: tuple[str, ...] = ()


def check_handoff(draft: HandoffDraft) -> HandoffDraft:
    """Return a draft whose names stand on one line each, without what is empty.

    Raises:
        UsageError: it does not say from whom or to whom.
        SecretRefused: it holds what looks like a credential.
    """
    names = tuple(read_text(name) for name in (draft.from_agent, draft.to_agent))
    if None in names:
        raise UsageError(
            "a handoff is from an agent to an agent",
            "try: memory-kb handoff create --from planner --to coder --done 'Wrote the plan.'",
        )
    lists: dict[str, Any] = {name: _filled(getattr(draft, name)) for name in _SECTIONS} | {
        name: _listed(list(getattr(draft, name))) for name in _LISTS
    }
    kept = replace(draft, from_agent=names[0] or "", to_agent=names[1] or "", **lists)
    check_draft(Draft("\n".join((render_handoff(kept), *kept.artifacts, *kept.relevant_patterns)), "handoff"))
    secret = locate_secret(kept.git_state) if isinstance(kept.git_state, str) else None
    if secret:
        raise SecretRefused(secret.described)
    return kept


def _filled(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean_item(item) for item in items if item.strip()))


def _listed(value: object) -> tuple[str, ...]:
    """Return the texts of a list, each on one line and once."""
    items = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for item in items if (text := read_text(item))))


def describe_git(state: GitState | None) -> dict[str, Any] | None:
    """Return what git said as a handoff holds it; a subject is kept without credentials."""
    if state is None:
        return None
    told = {
        "branch": state.branch,
        "last_commit": state.commit,
        "subject": redact(state.subject).text if state.subject else None,
        "dirty_files": list(state.dirty_files),
        "dirty_count": state.dirty_count if state.dirty_count > len(state.dirty_files) else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def render_handoff(draft: HandoffDraft) -> str:
    """Return the body of a handoff, with those sections that say something.

    Example:
        >>> print(render_handoff(HandoffDraft("planner", "coder", ("Wrote the plan.",), known_issues=("The clock is wrong.",))))
        # Handoff: planner to coder
        <BLANKLINE>
        ## Done
        <BLANKLINE>
        - Wrote the plan.
        <BLANKLINE>
        ## Known issues
        <BLANKLINE>
        - The clock is wrong.
    """
    blocks = [f"# Handoff: {draft.from_agent} to {draft.to_agent}"]
    for name, heading in _SECTIONS.items():
        items = getattr(draft, name)
        if items:
            blocks += [f"## {heading}", render_items(items)]
    return "\n\n".join(blocks)


def read_handoff(memory: Memory) -> Handoff:
    """Return an entry of kind handoff as it is shown, however it was written.

    Example:
        >>> from memory_kb.model import Location
        >>> read_handoff(Memory("handoff-002", "h.md", "", Location(), "T", "## Done\\n\\nAll of it.\\n\\n## Known Issues\\n* None.")).known_issues
        ('None.',)
    """
    parts = _read_sections(memory.text)
    state = memory.metadata.get("git_state")
    return Handoff(
        id=memory.id,
        from_agent=memory.word("from_agent"),
        to_agent=memory.word("to_agent"),
        timestamp=memory.created_at,
        done=parts["done"],
        artifacts=_listed(memory.metadata.get("artifacts")),
        git_state=state if isinstance(state, Mapping) else read_text(state),
        needs_testing=parts["needs_testing"],
        known_issues=parts["known_issues"],
        relevant_patterns=_listed(memory.metadata.get("relevant_patterns")),
        status=memory.status,
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
    )


def _read_sections(body: str) -> dict[str, tuple[str, ...]]:
    text = plain_lines(body)
    names = {heading.lower(): name for name, heading in _SECTIONS.items()}
    parts: dict[str, tuple[str, ...]] = dict.fromkeys(_SECTIONS, ())
    for section in find_sections(text):
        name = names.get(section.heading.lower().rstrip(":"))
        if name and not parts[name]:
            items = tuple(item.text for item in find_items(text, section.content))
            prose = text[section.content.start : section.content.end].split("\n\n")
            parts[name] = items or tuple(" ".join(block.split()) for block in prose if block.strip())
    return parts


def plan_handoff(draft: HandoffDraft, entry_id: str, path: str, now: datetime) -> Change:
    """Plan the file of a new handoff."""
    fields: dict[str, Value] = {"from_agent": draft.from_agent, "to_agent": draft.to_agent}
    if draft.git_state:
        fields["git_state"] = draft.git_state
    fields |= {name: list(value) for name in _LISTS if (value := getattr(draft, name))}
    kept = Draft(render_handoff(draft), "handoff", fields=tuple(fields.items()))
    return create_file(
        path, render(kept, entry_id, now), f"{draft.from_agent} hands over to {draft.to_agent}.", entry_id
    )


def next_id(handoffs: Iterable[Handoff], taken: Iterable[str] = ()) -> str:
    """Return the id of the next handoff of a scope; the number of one that was is not used again.

    Example:
        >>> next_id([]), next_id([], ["handoff-009", "handoff-1200"])
        ('handoff-001', 'handoff-1201')
    """
    names = (*(handoff.id for handoff in handoffs), *taken)
    numbers = [int(found[1]) for name in names if (found := _ID.fullmatch(name))]
    return f"handoff-{max(numbers, default=0) + 1:03d}"


def says_the_same(handoff: Handoff, draft: HandoffDraft) -> bool:
    """Tell whether a handoff says what a draft does, so that it need not be made again."""
    mine = (
        draft.from_agent,
        draft.to_agent,
        draft.done,
        draft.artifacts,
        draft.needs_testing,
        draft.known_issues,
        draft.relevant_patterns,
    )
    theirs = (
        *(handoff.from_agent, handoff.to_agent, handoff.done, handoff.artifacts),
        *(handoff.needs_testing, handoff.known_issues, handoff.relevant_patterns),
    )
    return mine == theirs and (draft.git_state or None) == (handoff.git_state or None)


def newest_first(handoffs: Iterable[Handoff]) -> tuple[Handoff, ...]:
    """Return handoffs newest first, by their time and then their number."""
    return tuple(sorted(handoffs, key=lambda one: (one.timestamp or "", one.number, one.path), reverse=True))


def find_handoff(handoffs: Sequence[Handoff], wanted: str) -> Handoff:
    """Return the handoff of an id, or of its number alone.

    Numbers are of one scope; where several scopes have the same, the project's is meant.

    Raises:
        UnknownEntry: there is none.
        AmbiguousId: there are several.
    """
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else None
    found = [one for one in handoffs if one.id == wanted or (number is not None and one.number == number)]
    found = [one for one in found if one.status in LIVE_STATUSES] or found
    own = [one for one in found if one.scope == "project"]
    if len(found) > 1 and len(own) != 1:
        raise AmbiguousId(wanted, [f"{one.path}:{one.line}" for one in found])
    if not found:
        raise UnknownEntry(wanted, "handoff")
    return own[0] if len(found) > 1 else found[0]
