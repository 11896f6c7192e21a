"""Vaults of odd files and plans to change them, for the tests of plans and of undo."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conftest import NOW
from hypothesis import strategies as st

from memory_kb import KnowledgeBase
from memory_kb.markdown.document import parse_document
from memory_kb.store.changes import Change, create_file, move, remove, replace_entry, set_body, set_fields
from memory_kb.store.file_edits import NoteText
from memory_kb.text import decode

#: A file with all that must survive a write.
ODD = (
    "\ufeff---\r\nid: a # first\r\nstatus:   active   # why\r\ntags:\r\n  - x # one\r\n---\r\nAlpha.\r\n\r\n---\r\n\r\nStill alpha.\r\n\r\n"
    "---\r\nid: b\r\nunknown: {k:   v}\r\n---\r\nBeta.\r\n\r\n---\r\nid: 'c'\r\n---\r\nGamma without final newline"
).encode()
ONE = b"---\nid: one # mine\nstatus: active\n---\nOne.\n"

Tree = dict[str, tuple[int, bytes | None]]


def tree(*folders: Path) -> Tree:
    """Return all that is below some folders, with modes, but for what belongs to the machine."""
    found: Tree = {}
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            if not {".memory-kb", ".local"} & {*file.parts}:
                found[f"{folder.name if len(folders) > 1 else ''}/{file.relative_to(folder)}"] = (
                    stat.S_IMODE(file.stat().st_mode),
                    file.read_bytes() if file.is_file() else None,
                )
    return found


def open_at(place: Path) -> KnowledgeBase:
    return KnowledgeBase.open(place / "vault", place / "home", environ={"HOME": str(place)}, clock=lambda: NOW)


def make_vault(place: Path, files: Mapping[str, bytes]) -> Path:
    """Write a memory vault and a home below a folder; paths in the home begin with `~global/`."""
    for path, data in {"memory/config.yaml": b""}.items() | dict(files).items():
        file = place / "home" / path.removeprefix("~global/") if path.startswith("~global/") else place / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return place / "vault"


_LINES = ["Text.", "", "# Head", "é 検索", "- item", "```", "----", " ---", "a: b", "\t", "two  spaces  ", "\x0c\u2028"]
_FIELDS = [
    "status: active   # why",
    "importance: 0.80",
    "# a comment",
    "unknown: {a:   1}",
    "tags: [x, 'y']",
    'title: "One: two"',
    "kind: rule",
    "tags:\n  - x # one",
]


@st.composite
def odd_files(draw: st.DrawFn, name: str) -> bytes:
    """Return the bytes of a file with any number of entries, ids made of `name`."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    text = draw(st.sampled_from(["", "\ufeff"]))
    if draw(st.booleans()):
        text += "Preamble, plain.\n\n"
    for number in range(draw(st.integers(1, 4))):
        fields = draw(st.lists(st.sampled_from(_FIELDS), max_size=3, unique_by=lambda field: field.partition(":")[0]))
        key = f"id: {name}{number}" if draw(st.integers(0, 4)) or not number else "kind: fact"
        if key == "kind: fact":
            fields = [field for field in fields if not field.startswith("kind")]
        body = draw(st.lists(st.sampled_from(_LINES), max_size=4))
        text += "\n".join(["---", key, *fields, "---", *body, "", ""])
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return text.replace("\n", newline).encode() + draw(st.sampled_from([b"", b"", b" \xff"]))


PATHS = (
    "memory/many.md",
    "memory/learnings/a.md",
    "memory/jobs/j/rules/b.md",
    "~global/learnings/g.md",
    "memory/MEMORY.md",
)
vaults = st.lists(st.sampled_from(PATHS), min_size=1, max_size=4, unique=True).flatmap(
    lambda paths: st.fixed_dictionaries({path: odd_files(f"n{PATHS.index(path)}-") for path in paths})
)


def plan_one(note: NoteText, entry_id: str, what: str, number: int) -> Change:
    """Return a change of a certain sort to an entry."""
    name = entry_id[:8]
    made: dict[str, Callable[[], Change]] = {
        "retire": lambda: set_fields(note, entry_id, {"status": "retired"}, "Over."),
        "weigh": lambda: set_fields(note, entry_id, {"importance": number / 10, "new": ["a", "b"]}, "Used."),
        "link": lambda: set_fields(note, entry_id, {"links": [{"to": "x", "relation": "related_to"}]}, "Linked."),
        "rewrite": lambda: set_body(note, entry_id, f"New text {number}.\n\n---\n\nMore.", "Rewritten."),
        "empty": lambda: set_body(note, entry_id, "", "Emptied."),
        "replace": lambda: replace_entry(
            note, entry_id, f"---\nid: {entry_id}\nkind: fact\n---\nOther.\n", "Replaced."
        ),
        "archive": lambda: move(note, f"memory/archive/2026-11/{name}.md", "Archived.", entry_id),
        "promote": lambda: move(note, f"~global/rules/{name}.md", "Promoted.", entry_id),
        "remove": lambda: remove(note, "Not wanted.", entry_id),
        "create": lambda: create_file(
            f"memory/learnings/new/{name}-{number}.md", f"---\nid: new-{entry_id}\n---\nNew.\n", "New."
        ),
        "move-file": lambda: move(note, f"memory/moved/{name}.md", "Moved."),
        "remove-file": lambda: remove(note, "The whole file."),
    }
    return made[what]()


ACTIONS = [
    "retire",
    "weigh",
    "link",
    "rewrite",
    "empty",
    "replace",
    "archive",
    "promote",
    "remove",
    "create",
    "move-file",
    "remove-file",
]


@dataclass(frozen=True)
class Scene:
    """A vault and what is planned for it."""

    files: Mapping[str, bytes]
    plan: Sequence[Change]


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Return odd files and any plan for them; some of it may not be possible."""
    files = draw(vaults)
    notes = [
        (NoteText(path, data), entry.id)
        for path, data in files.items()
        for entry in parse_document(decode(data), path).entries
    ]
    chosen = (
        draw(
            st.lists(
                st.tuples(st.sampled_from(notes), st.sampled_from(ACTIONS), st.integers(0, 9)), min_size=1, max_size=6
            )
        )
        if notes
        else []
    )
    return Scene(files, [plan_one(note, entry_id, what, number) for (note, entry_id), what, number in chosen])
