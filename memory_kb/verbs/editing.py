"""Editing an entry by hand from elsewhere than an editor."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ChangedOnDisk, UsageError

if TYPE_CHECKING:
    from memory_kb.entry import Entry
    from memory_kb.notes.plans import Change, NoteText
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import EntryView, RunReport
    from memory_kb.verbs.reading import Reading

#: Longer entries are for an editor.
MAX_CHARACTERS = 200_000


class Source(NamedTuple):
    """An entry as it stands in its file, to be read or edited.

    Attributes:
        view: where it is and what it is called.
        entry: what its frontmatter says, defaults filled in.
        text: frontmatter and body, as they stand in the file.
        hash: of that text; `edit` wants it back.
        file: where the system finds the file.
        uneditable: why it cannot be edited in a form, or None.
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


class Editing:
    """The verbs source and edit."""

    def __init__(self, vault: Vault, writer: Writer, reading: Reading) -> None:
        self._vault = vault
        self._writer = writer
        self._reading = reading

    def source(self, wanted: str) -> Source:
        """Return an entry as it stands in its file, with the hash that `edit` compares.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: there are several.
            CannotSplice: its file holds the id twice.
            UnreadableInput: the file cannot be read.
        """
        from memory_kb.notes.plans import encode, hash_of
        from memory_kb.notes.sheets import find_entry

        view = self._reading.show(wanted)
        text = self._writer.read(view.path).text
        entry = find_entry(text, view.path, view.id)
        piece = text[entry.span.start : entry.span.end]
        return Source(
            view, entry, piece, hash_of(encode(piece)), str(self._vault.resolve(view.path)), explain_uneditable(piece)
        )

    def edit(self, wanted: str, text: str, was: str, *, dry_run: bool = False) -> RunReport:
        """Put another text in an entry's place, frontmatter included; the id must stay.

        Lines that stay keep their line ends, new ones get those of their neighbours. What else
        stands in the file is not touched, and may have changed meanwhile.

        Args:
            wanted: the entry, as for `show`.
            text: all of it; its line ends may be those of a form.
            was: the hash of what it was made from, as `source` gave it.
            dry_run: whether only to tell what would change.

        Raises:
            ChangedOnDisk: the entry is no longer what the text was made from.
            SecretRefused: the text brings in what looks like a credential.
            UsageError: the entry holds what a form would damage.
        """
        from memory_kb.notes.plans import encode, hash_of, replace_entry
        from memory_kb.notes.sheets import find_entry

        view = self._reading.show(wanted)

        def cut(note: NoteText) -> str:
            entry = find_entry(note.text, note.path, view.id)
            piece = note.text[entry.span.start : entry.span.end]
            if hash_of(encode(piece)) != was:
                raise ChangedOnDisk(view.path)
            return piece

        note = self._writer.read(view.path)
        before = cut(note)
        reason = explain_uneditable(before) or explain_uneditable(text)
        if reason:
            raise UsageError(f"{view.path} cannot be edited here: {reason}", "use an editor")
        after = keep_line_ends(before, text)
        plan = [] if after == before else [replace_entry(note, view.id, after, "Edited by hand.")]

        def replan(_: str) -> list[Change]:
            fresh = self._writer.read(view.path)
            cut(fresh)
            return [replace_entry(fresh, view.id, after, "Edited by hand.")]

        return self._writer.run("edit", plan, replan=replan, dry_run=dry_run)


def explain_uneditable(text: str) -> str | None:
    r"""Return why a text would not come back from a form as it went there, or None.

    Example:
        >>> explain_uneditable("a\r\nb\n"), explain_uneditable("a\rb")
        (None, 'it has line ends that a form cannot keep')
    """
    if len(text) > MAX_CHARACTERS:
        return f"it is longer than {MAX_CHARACTERS:,} characters"
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return "it holds bytes that are no text"
    return "it has line ends that a form cannot keep" if "\r" in text.replace("\r\n", "\n") else None


def keep_line_ends(before: str, after: str) -> str:
    r"""Return a new text with the line ends of the old one, line by line.

    Example:
        >>> keep_line_ends("a\r\nb\nc\r\n", "a\r\nb\r\nnew\r\nc\r\n")
        'a\r\nb\nnew\r\nc\r\n'
        >>> keep_line_ends("a\n", "b")
        'b\n'
    """
    after = after.replace("\r\n", "\n")
    after += "\n" if before.endswith("\n") and not after.endswith("\n") else ""
    if "\r" not in before:
        return after
    old, new = before.split("\n"), after.split("\n")
    bare = [line.removesuffix("\r") for line in old]
    end = "\r" if before.count("\r\n") * 2 >= before.count("\n") else ""
    pieces: list[str] = []
    for word, i, j, m, n in SequenceMatcher(None, bare, new, autojunk=False).get_opcodes():
        pieces += old[i:j] if word == "equal" else [line + end for line in new[m:n]]
    if pieces and new[-1] == "":
        pieces[-1] = ""
    return "\n".join(pieces)
