"""Import and export playbooks in YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from memory_kb.errors import UnreadableInput
from memory_kb.learning.playbook import DEFAULT_CONFIDENCE, DELTAS, read_evidence
from memory_kb.learning.render_entry import Draft, without_empty
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import Location, Problem
from memory_kb.reports import RunReport
from memory_kb.text import as_text, parse_date, read_words
from memory_kb.yaml_loader import NO_MAPPING, InvalidBlock, YamlItem, cut_list, load_mapping

#: The keys under which a playbook lists its rules, ours first.
_LISTS = ("rules", "bullets", "playbook", "entries")
_GONE = ("deprecated", "retired")
_NAMES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_Made = TypeVar("_Made")


class RuleInFile(NamedTuple):
    """A rule of a file: its id, None where it has none, the line it is on, and what it says."""

    id: str | None
    line: int
    draft: Draft


class RuleImported(NamedTuple):
    """What was decided about a rule of a file: `created`, `known`, `forgotten` or `refused`, and why."""

    id: str
    path: str
    action: str
    line: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class RulesImported:
    """What an import brought in; `problems` are the parts of the file that are no rules."""

    rules: tuple[RuleImported, ...]
    problems: tuple[Problem, ...]
    run: RunReport


def parse_rules(text: str, path: str) -> tuple[tuple[RuleInFile, ...], tuple[Problem, ...]]:
    """Read a playbook: a list of rules, or a mapping with one under `rules` or `bullets`; keys may be in camel case.

    Raises:
        UnreadableInput: it is not YAML, or has no list of rules.

    Example:
        >>> rules, problems = parse_rules("bullets:\\n- {id: b-1, content: Use uv., helpfulCount: 2}\\n- 7\\n", "playbook.yaml")
        >>> rules[0].id, rules[0].draft.fields["confidence"], str(problems[0])
        ('b-1', 0.6, 'playbook.yaml:3: is no rule: a rule has at least a text')
    """
    items = cut_items(text, path, _LISTS, "rules")
    return read_items(items, path, "is no rule: a rule has at least a text", _make_rule)


def cut_items(text: str, path: str, names: tuple[str, ...], what: str) -> list[YamlItem]:
    """Return the items of the list that a YAML file is, or has under one of some names."""
    try:
        items = cut_list(text.lstrip("\ufeff"), names)
    except InvalidBlock as exc:
        said = f"{path}:{exc.line + 1}: the file {exc.what}"
        raise UnreadableInput(said, "fix the line and import it again") from exc
    if items is None:
        raise UnreadableInput(f"{path}:1: there is no list of {what} in it", f"write one under `{names[0]}:`")
    return items


def read_items(
    items: Iterable[YamlItem],
    path: str,
    wrong: str,
    make: Callable[[Mapping[str, Any], YamlItem], _Made | None],
    scale: int = 1,
) -> tuple[tuple[_Made, ...], tuple[Problem, ...]]:
    """Make something of each item of a list; one of which nothing can be made is a problem, and the others go on."""
    found, problems = list[_Made](), list[Problem]()
    for item in items:
        try:
            made, message = make(load_mapping(item.text, scale), item), wrong
        except InvalidBlock as exc:
            made, message = None, wrong if exc.what == NO_MAPPING else f"cannot be read: this {exc.what}"
        if made is None:
            problems.append(Problem(path, item.line, message))
        else:
            found.append(made)
    return tuple(found), tuple(problems)


def _make_rule(written: Mapping[str, Any], item: YamlItem) -> RuleInFile | None:
    values = {_NAMES.sub("_", key).lower(): value for key, value in written.items()}
    text = values.get("text", values.get("content"))
    if not isinstance(text, str) or not text.strip():
        return None
    given = _as_ours(values)
    evidence = read_evidence(given)
    words = values.get("maturity"), values.get("state") or values.get("status")
    states = {str(word or "").lower() for word in words}
    is_gone = values.get("deprecated") is True or not states.isdisjoint(_GONE)
    made, applied = (as_text(given.metadata.get(name)) for name in ("created_at", "last_applied"))
    day, category = parse_date(applied) or parse_date(made), as_text(values.get("category"))
    fields: dict[str, Value | None] = {
        **evidence.fields,
        "status": "retired" if is_gone else None,
        "created_at": made if parse_date(made) else None,
        "last_reinforced": str(day) if day else None,
        "last_applied": applied if parse_date(applied) else None,
        "category": category,
        "sources": list(read_words(values.get("source_entries", values.get("source_sessions")))),
        "pinned": values.get("pinned") is True or None,
    }
    tags = read_words(values.get("tags")) or ((category,) if category else ())
    draft = Draft(text.strip(), _kind_of(values), as_text(values.get("title")), tags, fields=without_empty(fields))
    return RuleInFile(as_text(values.get("id")), item.line, draft)


def _as_ours(values: Mapping[str, Any]) -> Memory:
    """Return a rule with its evidence under our own names.

    cass keeps no confidence; its marks become ours: what as many outcomes would have made of 0.5.
    """
    named = dict(values)
    for ours, theirs in (
        ("success_count", "helpful_count"),
        ("failure_count", "harmful_count"),
        ("last_applied", "last_applied_at"),
    ):
        named.setdefault(ours, values.get(theirs))
    given = Memory("", "", "", Location(), "", "", metadata=named)
    if named.get("confidence") is None:
        good, bad = given.count("success_count"), given.count("failure_count")
        earned = DELTAS["success"] * good + DELTAS["failure"] * bad
        named["confidence"] = round(min(1.0, max(0.0, DEFAULT_CONFIDENCE + earned)), 6)
        named["last_applied"] = named["last_applied"] or (values.get("updated_at") if good + bad else None)
    named["maturity"] = str(values.get("maturity") or "").lstrip(":")
    return given


def _kind_of(values: Mapping[str, Any]) -> str:
    words = {str(values.get(name) or "").lower().replace("_", "-") for name in ("type", "kind")}
    is_negative = any(values.get(name) is True for name in ("anti_pattern", "is_negative"))
    return "pitfall" if is_negative or words & {"anti-pattern", "pitfall"} else "rule"


def export_rules(memories: Iterable[Memory]) -> str:
    """Return rules as a `playbook.yaml` that `parse_rules` reads back."""
    import yaml

    text = yaml.safe_dump({"rules": list(map(_export, memories))}, sort_keys=False, allow_unicode=True, width=1 << 20)
    return str(text)


def _export(memory: Memory) -> dict[str, Any]:
    optional = {
        "source_entries": list(memory.words("sources")),
        "tags": list(memory.tags),
        "category": memory.word("category"),
        "title": memory.word("title"),
        "pinned": memory.is_pinned,
        "created_at": memory.created_at,
        "last_applied_at": memory.word("last_applied"),
    }
    own: dict[str, Any] = {"id": memory.id, "text": memory.text.strip()}
    own |= read_evidence(memory).fields | {"anti_pattern": memory.kind == "pitfall"}
    return own | {name: value for name, value in optional.items() if value}
