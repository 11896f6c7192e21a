"""Check a note while it is written, and report each finding at its exact place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.credentials import describe_secret, locate_secrets
from memory_kb.markdown.fields import read_fields
from memory_kb.markdown.links import find_links, find_pictures
from memory_kb.markdown.scanner import find_anchor, say_missing
from memory_kb.markdown.splice import yaml_span
from memory_kb.model import Document, Entry, Memory, Span, StoredEntry
from memory_kb.text import count_tokens, short_id, shorten


class Remark(NamedTuple):
    """Something to fix in a text.

    Attributes:
        code: `block`, `field`, `link`, `picture`, `id`, `twin`, `secret`, `budget` or `claim`.
        weight: `error`, `warning` or `hint`.
        about: what it is about: the field, the target of a link, or the entry that says the same.
    """

    span: Span
    code: str
    weight: str
    message: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a note is held against.

    Attributes:
        leads: returns whether a name leads to an entry.
        others: gives the places of other entries that have an id at the same scope.
        twin: gives the entry that says the same as one of these, and whether that was forgotten.
        claims: what is to be said of an entry's claims.
        rule_tokens: the budget of all rules that are put before an agent.
        unclear: says that a name may mean several files, None where it means one.
        is_file: returns whether the path of a link leads to a file that is no note.
        lacks: says that the note which a target leads to lacks a heading or block, None where it has it.
        checks_wikilinks: whether links in text lead to entries; elsewhere they may be anything.
        lacks_file: returns whether the vault has no file of a name or relative path.
    """

    leads: Callable[[str], bool]
    others: Callable[[Memory], Sequence[str]]
    twin: Callable[[Memory], tuple[StoredEntry, bool] | None]
    claims: Callable[[Memory], Iterable[str]]
    rule_tokens: int
    checks_wikilinks: bool
    unclear: Callable[[str], str | None]
    is_file: Callable[[str], bool]
    lacks: Callable[[str, str, str], str | None]
    lacks_file: Callable[[str], bool]


def remark(text: str, document: Document, memories: Sequence[Memory], ground: Ground) -> Iterator[Remark]:
    """Yield what is to be said of a text, as it is in an editor."""
    complained: set[str] = set()
    for entry, memory in zip(document.entries, memories, strict=False):
        for one in read_fields(entry.metadata)[1] if entry.has_frontmatter else ():
            complained.add(one.message)
            yield Remark(field_span(text, entry, one.field), "field", "warning", one.message, one.field)
        yield from _of_links(text, entry, ground)
        yield from _of_secrets(text, entry)
        if entry.has_own_id:
            yield from _of_ids(text, entry, memory, ground)
        if memory.is_live and memory.is_ours:
            yield from _of_text(text, entry, memory, ground)
    yield from (
        Remark(line_span(text, problem.line), "block", "error", problem.message)
        for problem in document.problems
        if problem.message not in complained
    )


def say_dead(kind: str, target: str) -> str:
    """Return what is said of a link that leads nowhere.

    Example:
        >>> say_dead("link", "a.md"), say_dead("wikilink", "a")
        ("the link to 'a.md' leads to no file", "the wikilink to 'a' leads to no entry")
    """
    return f"the {kind} to {target!r} leads to no {'file' if kind == 'link' else 'entry'}"


def say_double(entry_id: str, place: str) -> str:
    """Return what is said of an id that is used twice."""
    return f"the id {entry_id} is also used at {place}; both are kept, give one a new id"


def line_span(text: str, line: int) -> Span:
    """Return where the words of a line are, counted from 1.

    Example:
        >>> line_span("one\\n  two \\n", 2)
        Span(start=6, end=9)
    """
    start = 0
    for _ in range(line - 1):
        following = text.find("\n", start)
        if following < 0:
            break
        start = following + 1
    end = text.find("\n", start)
    words = text[start : len(text) if end < 0 else end]
    lead = len(words) - len(words.lstrip())
    return Span(start + lead, start + max(lead, len(words.rstrip())))


def field_span(text: str, entry: Entry, field: str) -> Span:
    """Return where the value of a field is, or the first line of the entry.

    Example:
        >>> from memory_kb.markdown.document import parse_document
        >>> note = "---\\nid: x\\nkind: oops # why\\n---\\nText.\\n"
        >>> span = field_span(note, parse_document(note, "a.md").entries[0], "kind")
        >>> note[span.start : span.end]
        'oops'
    """
    if not entry.has_frontmatter:
        return line_span(text, entry.line)
    block = yaml_span(text, entry)
    found = re.compile(rf"^[\"']?{re.escape(field)}[\"']?[ \t]*:[ \t]*", re.MULTILINE).search(
        text, block.start, block.end
    )
    if found is None:
        return line_span(text, entry.line)
    end = text.find("\n", found.end())
    value = re.sub(r"\s+#.*", "", text[found.end() : block.end if end < 0 else min(end, block.end)]).rstrip()
    return Span(found.end(), found.end() + len(value)) if value else Span(found.start(), found.end())


def _of_links(text: str, entry: Entry, ground: Ground) -> Iterator[Remark]:
    listed = entry.metadata.get("links")
    for link in listed if isinstance(listed, list) else ():
        to = str(link["to"]) if isinstance(link, dict) and link.get("to") is not None else None
        if to is not None and not ground.leads(to):
            said = say_dead(f"{link.get('relation') or 'related_to'} link", to)
            yield Remark(link_span(text, entry, to), "link", "warning", said, to)
    for name, place in find_pictures(text, entry.body.start, entry.body.end):
        if ground.lacks_file(name):
            yield Remark(place, "picture", "hint", f"there is no file {name!r} in the vault", name)
    for found in find_links(text, entry.body.start, entry.body.end, with_own=True):
        if found.is_attachment:
            continue
        if not found.target:
            if found.is_wikilink and find_anchor(text, found.anchor) is None:
                yield Remark(found.whole, "link", "hint", say_missing("", found.anchor, found.kind))
        elif not ground.leads(found.target):
            if found.is_wikilink or not ground.is_file(found.target):
                weight = "warning" if ground.checks_wikilinks or not found.is_wikilink else "hint"
                yield Remark(found.whole, "link", weight, say_dead(found.kind, found.target), found.target)
        elif unclear := ground.unclear(found.target):
            yield Remark(found.whole, "link", "warning", unclear, found.target)
        elif found.anchor and (missing := ground.lacks(found.target, found.anchor, found.kind)):
            yield Remark(found.whole, "link", "hint", missing, found.target)


def link_span(text: str, entry: Entry, value: str) -> Span:
    """Return where the target of a link is in the frontmatter, or the field of the links."""
    if not entry.has_frontmatter:
        return line_span(text, entry.line)
    block = yaml_span(text, entry)
    found = re.compile(rf"(?<![\w-]){re.escape(value)}(?![\w-])").search(text, block.start, block.end)
    return Span(*found.span()) if found else field_span(text, entry, "links")


def _of_secrets(text: str, entry: Entry) -> Iterator[Remark]:
    """Yield the lines of an entry that hold what looks like a credential."""
    before = text.count("\n", 0, entry.span.start)
    secrets = locate_secrets(text[entry.span.start : entry.span.end])
    for found in {one.line: one for one in reversed(list(secrets))}.values():
        yield Remark(line_span(text, before + found.line), "secret", "error", describe_secret(found))


def _of_ids(text: str, entry: Entry, memory: Memory, ground: Ground) -> Iterator[Remark]:
    for place in ground.others(memory)[:1]:
        yield Remark(field_span(text, entry, "id"), "id", "warning", say_double(entry.id, place), entry.id)


def _of_text(text: str, entry: Entry, memory: Memory, ground: Ground) -> Iterator[Remark]:
    head = _head_span(text, entry)
    if memory.text.strip() and (twin := ground.twin(memory)):
        known, is_forgotten = twin
        said = "the same was forgotten before:" if is_forgotten else "says the same as"
        there = f"{short_id(known.id)} ({shorten(known.title, 60)}), {known.path}:{known.line}"
        yield Remark(head, "twin", "warning", f"{said} {there}", known.id)
    if memory.kind in ("rule", "pitfall") and (tokens := count_tokens(memory.text)) > ground.rule_tokens:
        message = f"{tokens:,} tokens; context.rule_tokens allows {ground.rule_tokens:,} for all rules, so that `context` never shows it"
        yield Remark(head, "budget", "warning", message)
    for message in ground.claims(memory):
        yield Remark(claim_span(text, entry, message), "claim", "warning", message)


def _head_span(text: str, entry: Entry) -> Span:
    """Return the first line of an entry's text, or of the entry."""
    start = entry.body.end - len(text[entry.body.start : entry.body.end].lstrip())
    return line_span(text, text.count("\n", 0, start) + 1) if start < entry.body.end else line_span(text, entry.line)


def claim_span(text: str, entry: Entry, message: str) -> Span:
    """Return the place of a claim that has a finding."""
    named = re.match(r"cites ([^,]+)", message)
    if named and text.find(named[1], entry.span.start, entry.body.start) >= 0:
        start = text.find(named[1], entry.span.start, entry.body.start)
        return Span(start, start + len(named[1]))
    return field_span(text, entry, "valid_until" if "valid" in message else "cites")
