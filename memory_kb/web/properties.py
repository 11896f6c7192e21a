"""Frontmatter as the fields of a form, and a note as the form says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memory_kb.errors import CannotSplice, UsageError
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import Value, emit, set_values, yaml_span
from memory_kb.model import KINDS, PRIORITIES, STATUSES
from memory_kb.web.page_query import LONGEST_FORM, Parameters, param

_CHOICES = {"kind": tuple(KINDS), "status": STATUSES, "priority": tuple(PRIORITIES)}
_LISTS = frozenset({"tags", "aliases", "applies_to", "flags", "sources"})
_NAME = re.compile(r"[^\W\d][\w-]{0,60}\Z")


class Property(NamedTuple):
    """A field of frontmatter as a form shows it; `choices` are the words it may have, where they are few."""

    name: str
    value: str
    choices: tuple[str, ...] = ()
    is_list: bool = False


def split_frontmatter(text: str) -> tuple[str, str]:
    r"""Return the frontmatter of a note with its lines of dashes, and the text below it.

    Example:
        >>> split_frontmatter("---\nid: a\n---\n# A\n"), split_frontmatter("# A\n")
        (('---\nid: a\n---\n', '# A\n'), ('', '# A\n'))
    """
    entries = parse_document(text, "note.md").entries
    start = entries[0].body.start if entries and entries[0].has_frontmatter and entries[0].fault is None else 0
    return text[:start], text[start:]


def find_properties(metadata: Mapping[str, Any]) -> tuple[Property, ...]:
    """Return the fields whose values are words, numbers or lists of them; the id and the rest are left to the YAML.

    Example:
        >>> find_properties({"id": "a", "tags": ["x", "y"], "pinned": True, "links": [{"to": "b"}]})
        (Property(name='tags', value='x, y', choices=(), is_list=True), Property(name='pinned', value='yes', choices=('yes', 'no'), is_list=False))
    """
    found = []
    for name, value in metadata.items():
        if name == "id" or not isinstance(name, str):
            continue
        if isinstance(value, bool):
            found.append(Property(name, "yes" if value else "no", ("yes", "no")))
        elif isinstance(value, str | int | float) and "\n" not in str(value):
            choices = _CHOICES.get(name, ())
            found.append(Property(name, str(value), choices if str(value) in choices else ()))
        elif value is None:
            found.append(Property(name, "", is_list=name in _LISTS))
        elif isinstance(value, list) and all(isinstance(item, str) and "," not in item for item in value):
            found.append(Property(name, ", ".join(value), is_list=True))
    return tuple(found)


def note_from_form(fields: Parameters) -> str:
    """Return the whole text that a form of the editor says: frontmatter, what its fields change there, and body."""
    head, body = (param(fields, name, LONGEST_FORM).replace("\r\n", "\n") for name in ("head", "text"))
    return set_properties(f"{head}\n" if head.strip() and not head.endswith("\n") else head, fields) + body


def set_properties(head: str, fields: Parameters) -> str:
    """Return frontmatter with the fields that a form has changed: `p:NAME` is another word than `o:NAME`."""
    entries = parse_document(head, "note.md").entries
    metadata = entries[0].metadata if entries else {}
    values: dict[str, Value] = {}
    for known in find_properties(metadata):
        new = param(fields, f"p:{known.name}", 10_000).strip()
        if fields.getlist(f"p:{known.name}") and new != param(fields, f"o:{known.name}", 10_000).strip():
            values[known.name] = _read_value(new, metadata[known.name], is_list=known.is_list)
    name, new = param(fields, "p-name").strip(), param(fields, "p-value", 10_000).strip()
    if name:
        if not _NAME.match(name) or name in metadata:
            raise UsageError(
                f"{name!r} cannot be the name of a new property", "use letters, digits and -, and one that is new"
            )
        values[name] = _read_value(new, None, is_list=name in _LISTS)
    if not values:
        return head
    if not entries or not entries[0].has_frontmatter:
        if head.strip():
            raise CannotSplice("the frontmatter cannot be read; fix it in the YAML first")
        return "".join(("---\n", *(f"{key}: {emit(value)}\n" for key, value in values.items()), "---\n"))
    return set_values(head, yaml_span(head, entries[0]), values)


def _read_value(text: str, old: object, *, is_list: bool) -> Value:
    if is_list:
        return [part.strip().removeprefix("#") for part in text.split(",") if part.strip()]
    if isinstance(old, bool):
        return text == "yes"
    for kind in (int, float) if isinstance(old, int | float) else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text
