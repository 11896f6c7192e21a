"""The verbs source and edit: read an entry as its file has it, and replace its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.editing.renaming import check_name, path_in
from memory_kb.errors import ChangedOnDisk, UsageError
from memory_kb.index.listing import Listing
from memory_kb.learning.entry_verbs import check_text
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import find_entry, read_entries
from memory_kb.model import Entry
from memory_kb.reports import EntryView, RunReport
from memory_kb.store.changes import Change, create_file, replace_entry
from memory_kb.store.writer import Writer
from memory_kb.text import encode, hash_of
from memory_kb.vault import Vault

#: Longer entries are for an editor.
MAX_FORM_CHARACTERS = 200_000


class Source(NamedTuple):
    """An entry as it is in its file, to be read or edited.

    `text` is its frontmatter and body, and `edit` wants the `hash` of that back; `file` is where the system finds the
    file, `uneditable` why it cannot be edited in a form.
    """

    view: EntryView
    entry: Entry
    text: str
    hash: str
    file: str
    uneditable: str | None

    @property
    def body(self) -> str:
        """The text below the frontmatter."""
        return self.text[self.entry.body.start - self.entry.span.start :]


@dataclass(frozen=True)
class Editing:
    """Reads and replaces single entries, for pages and editors."""

    _vault: Vault
    _writer: Writer
    _listing: Listing

    def source(self, wanted: str) -> Source:
        """Return an entry as it is in its file, with the hash that `edit` compares."""
        view = self._listing.show(wanted)
        text = self._writer.read(view.path).text
        same = [entry for entry in read_entries(text, view.path) if entry.id == view.id]
        entry = min(same, key=lambda one: abs(one.line - view.line)) if same else find_entry(text, view.path, view.id)
        piece = text[entry.span.start : entry.span.end]
        why = "another entry of the file has the same id" if len(same) > 1 else explain_uneditable(piece)
        return Source(view, entry, piece, hash_of(encode(piece)), str(self._vault.resolve(view.path)), why)

    def edit(self, wanted: str, text: str, was: str, *, dry_run: bool = False) -> RunReport:
        """Put another text in an entry's place, frontmatter included; the id must stay.

        What else is in the file is not touched, and may have changed meanwhile. ChangedOnDisk where the entry is no
        longer what the text was made from, UsageError where it holds what a form would damage.
        """
        view = self._listing.show(wanted)

        def plan(_: str) -> list[Change]:
            note = self._writer.read(view.path)
            entry = find_entry(note.text, note.path, view.id)
            before = note.text[entry.span.start : entry.span.end]
            if hash_of(encode(before)) != was:
                raise ChangedOnDisk(view.path)
            if reason := explain_uneditable(before) or explain_uneditable(text.replace("\r\n", "\n")):
                raise UsageError(f"{view.path} cannot be edited here: {reason}", "use an editor")
            refuse_new_faults(text, view.path, before)
            after = keep_line_ends(before, text)
            return [] if after == before else [replace_entry(note, view.id, after, "Edited by hand.")]

        return self._writer.run("edit", plan(view.path), replan=plan, dry_run=dry_run)

    def create(self, title: str, folder: str, text: str) -> tuple[str, RunReport]:
        """Make a note of its own, called by its title, in a folder of the vault; return its path.

        A text without a heading or frontmatter gets the title as its heading.
        """
        check_text(text)
        name = check_name(title, "file")
        path = path_in(folder, f"{name}.md", self._vault)
        if self._writer.writable(path).exists():
            raise UsageError(f"{path} is there already", "choose another title, or edit that note")
        text = text.replace("\r\n", "\n").strip("\n")
        text = text if text.startswith(("# ", "---\n")) else f"# {name}\n\n{text}"
        refuse_new_faults(text, path)
        return path, self._writer.run("edit", [create_file(path, f"{text.rstrip()}\n", "Made by hand.")])


def refuse_new_faults(text: str, path: str, before: str = "") -> None:
    """Raise UsageError for a text whose frontmatter cannot be read, where that of the text before could."""
    line, known = (
        next((one.fault for one in parse_document(piece, path).entries if one.fault is not None), None)
        for piece in (text, before)
    )
    if line is not None and known is None:
        raise UsageError(f"the frontmatter cannot be read from line {line} on", "fix it; nothing was written")


def explain_uneditable(text: str) -> str | None:
    r"""Return why a text would not come back from a form as it went there, or None.

    Example:
        >>> explain_uneditable("a\r\nb\r\n"), explain_uneditable("a\r\nb\n")
        (None, 'it has line ends that a form cannot keep')
    """
    if len(text) > MAX_FORM_CHARACTERS:
        return f"it is longer than {MAX_FORM_CHARACTERS:,} characters"
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return "it holds bytes that are no text"
    is_even = text.count("\r") == text.count("\r\n") and text.count("\r") in (0, text.count("\n"))
    return None if is_even else "it has line ends that a form cannot keep"


def keep_line_ends(before: str, after: str) -> str:
    r"""Return a new text with the line ends of the old one.

    Example:
        >>> keep_line_ends("a\r\nb\r\n", "a\nnew")
        'a\r\nnew\r\n'
    """
    after = after.replace("\r\n", "\n")
    after += "\n" if before.endswith("\n") and not after.endswith("\n") else ""
    return after.replace("\n", "\r\n") if "\r\n" in before else after
