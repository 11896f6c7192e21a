"""Learn, forget, supersede, rename and edit entries."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import fields, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import CannotSplice, ChangedOnDisk, Forgotten, UnreadableInput, UsageError
from memory_kb.markdown.document import first_heading
from memory_kb.markdown.fields import read_words
from memory_kb.markdown.links import rewrite_targets
from memory_kb.markdown.splice import Value, emit, read_entries, refuse_broken, set_value, yaml_span
from memory_kb.model import Entry, Region, Span, make_place
from memory_kb.store.plan import Change, NoteText, move, write_file
from memory_kb.yaml_loader import InvalidBlock, load_mapping

if TYPE_CHECKING:
    from memory_kb.index.listing import Reading
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.duplicates import Twin
    from memory_kb.learning.new_entry import Draft
    from memory_kb.markdown.splice import Value
    from memory_kb.model import Entry, EntryView, Learned, Location, Retired, RunReport
    from memory_kb.store.plan import Change, NoteText
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


_LONGEST = 200
_DATED = re.compile(r"\[\d{4}-\d{2}-\d{2}\]\s*")
#: Fields that name other entries by their ids.
_ID_LISTS = ("sources", "relevant_patterns")
_ALIASES = ("aliases", "alias")


class Renaming(NamedTuple):
    """What is renamed: the entry, where it stands, and its old and new name.

    `way` says what the name is: `id`, `title`, `heading` for the title that its first heading
    gives, `file` for that of its file, or `alias` for a further name.
    """

    path: str
    entry_id: str
    way: str
    old: str
    new: str


def check_name(name: str, way: str) -> str:
    """Return a new name as it is to be written.

    Raises:
        UsageError: links could not hold it, or it is empty.

    Example:
        >>> check_name("  Wait  for the event ", "title")
        'Wait for the event'
    """
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST:
        raise UsageError("the new name is empty" if not name else f"the new name is longer than {_LONGEST} characters")
    if set(name) & set("[]|#\\^"):
        raise UsageError(f"{name!r} cannot stand in a [[link]]", "leave out the characters [ ] | # ^ and backslashes")
    if way == "file" and (set(name) & set('/:*?"<>') or name.startswith(".")):
        raise UsageError(f"{name!r} cannot be the name of a file")
    return name


def way_of(entry: Entry, body: str, name: str) -> str:
    """Return what is to be renamed of an entry: for its `title`, that which gives it one."""
    if name != "title":
        return name
    return "title" if entry.title else "heading" if first_heading(body) else "file"


def _never(_target: str) -> bool:
    return False


def plan_renaming(
    renaming: Renaming,
    notes: Iterable[NoteText],
    leads_to: Callable[[str, str], bool],
    stays: Callable[[str], bool] = _never,
) -> tuple[Change, ...]:
    """Plan to rename an entry and to rewrite the links to it; all of it happens, or nothing.

    Only links that use the old name are rewritten: those by another of its names lead to it still. So
    do those that name its file, which may be called like its title: for other readers of notes a file
    has no other name.

    Args:
        renaming: what is renamed.
        notes: its file, and all files with links to it.
        leads_to: tells whether a target that is called like the old name leads to this entry from a file.
        stays: tells whether a target leads to it by another name too when it is renamed.

    Raises:
        CannotSplice: a file cannot be changed without changing more than that.

    Example:
        >>> old = NoteText("a.md", b"---\\nid: a\\n---\\nOne.\\n")
        >>> other = NoteText("b.md", b"See [[a|this]].\\n")
        >>> plan = plan_renaming(Renaming("a.md", "a", "id", "a", "tea"), [old, other], lambda name, _: name == "a")
        >>> [change.action.data for change in plan]
        [b'---\\nid: tea\\n---\\nOne.\\n', b'See [[tea|this]].\\n']
    """
    reason = f"Renamed from {renaming.old} to {renaming.new}."
    changes: list[Change] = []

    def new_id(source: str, target: str) -> str | None:
        suffix = ".md" if renaming.way == "file" and target.lower().endswith(".md") else ""
        bare = target[: len(target) - len(suffix)] if suffix else target
        folder, slash, last = bare.rpartition("/") if renaming.way == "file" else ("", "", bare)
        if last.casefold() != renaming.old.casefold() or not leads_to(target, source):
            return None
        return f"{folder}{slash}{renaming.new}{suffix}"

    def new_name(source: str, target: str) -> str | None:
        return None if stays(target) else new_id(source, target)

    moved: NoteText | None = None
    for note in notes:
        in_text = functools.partial(new_name, note.path)
        in_fields = functools.partial(new_id, note.path) if renaming.way == "id" else in_text
        text = _rename_in_text(note.text, note.path, renaming, _NewNames(in_text, in_fields))
        if text != note.text:
            changes.append(write_file(note, text, reason))
        if note.path == renaming.path and renaming.way == "file":
            moved = note
    if moved:
        folder = moved.path.rpartition("/")[0]
        changes.append(move(moved, f"{folder}{'/' if folder else ''}{renaming.new}.md", reason))
    return tuple(change.joined(f"rename {renaming.entry_id}") for change in changes)


class _NewNames(NamedTuple):
    """What links in texts and in fields are to say instead; None where they stay. Fields go by ids."""

    in_text: Callable[[str], str | None]
    in_fields: Callable[[str], str | None]


def _rename_in_text(text: str, path: str, renaming: Renaming, names: _NewNames) -> str:
    """Return a file's text with the name exchanged, in the entry itself and in links to it."""
    pieces: list[str] = []
    last = 0
    for entry in read_entries(text, path):
        pieces += [text[last : entry.span.start], _rename_in_entry(text, entry, path, renaming, names)]
        last = entry.span.end
    return "".join(pieces) + text[last:]


def _rename_in_entry(text: str, entry: Entry, path: str, renaming: Renaming, names: _NewNames) -> str:
    """Return the text of one entry, frontmatter included, with the name exchanged."""
    (start, end), (begin, over) = entry.span, entry.body
    is_own = path == renaming.path and entry.id == renaming.entry_id
    if entry.fault is not None:
        is_named = is_own and renaming.way != "file"
        if is_named or _in_body(text, entry, renaming, names.in_text, is_own=False) != text[begin:over]:
            refuse_broken(entry, path)
        return text[start:end]
    body = _in_body(text, entry, renaming, names.in_text, is_own=is_own)
    piece = text[start:begin] + body + text[over:end]
    if entry.has_frontmatter:
        alone = replace(entry, span=Span(0, len(piece)), body=Span(begin - start, begin - start + len(body)))
        piece = _in_fields(piece, alone, renaming, names.in_fields, is_own=is_own)
    return piece


def _in_body(
    text: str, entry: Entry, renaming: Renaming, new_name: Callable[[str], str | None], *, is_own: bool
) -> str:
    body = text[entry.body.start : entry.body.end]
    if is_own and renaming.way == "heading":
        start = len(body) - len(body.lstrip())
        end = body.find("\n", start)
        line = body[start : len(body) if end < 0 else end]
        at = line.find(renaming.old)
        if at < 0:
            raise CannotSplice(f"the heading of {renaming.entry_id} in {renaming.path} cannot be found")
        body = body[: start + at] + renaming.new + body[start + at + len(renaming.old) :]
    return rewrite_targets(body, new_name)


def _in_fields(
    text: str, entry: Entry, renaming: Renaming, new_name: Callable[[str], str | None], *, is_own: bool
) -> str:
    for key, value in _new_values(entry, renaming, new_name, is_own=is_own).items():
        # The block ends where its body began, and setting a value moves that.
        block = yaml_span(text, entry)
        longer = len(text)
        text = _with_target(text, block, key, value, renaming) or set_value(text, block, key, value)
        entry = _shifted(entry, len(text) - longer)
    return text


def _with_target(text: str, block: Span, key: str, value: Value, renaming: Renaming) -> str | None:
    """Return a text in which only the names change that stand in a list; None where that is not told so simply."""
    if key not in ("links", *_ALIASES, *_ID_LISTS):
        return None
    held = re.compile(rf"^{key}[ \t]*:.*?(?=^[^\s#-]|\Z)", re.DOTALL | re.MULTILINE).search(
        text[block.start : block.end]
    )
    if held is None:
        return None
    lead, end = r"(?P<lead>(?:\bto[ \t]*:|-|\[|,)[ \t]*)", r"(?=[ \t]*(?:[,\]}\r\n]|$|[ \t]#))"
    name = re.compile(rf"{lead}(?P<quote>[\"']?){re.escape(renaming.old)}(?P=quote){end}", re.IGNORECASE)
    piece = name.sub(
        lambda found: f"{found['lead']}{emit(renaming.new, found['quote'] or None, is_flow=True)}", held[0]
    )
    old = text[block.start : block.end]
    new = f"{old[: held.start()]}{piece}{old[held.end() :]}"
    try:
        before, after = load_mapping(old), load_mapping(new)
    except InvalidBlock:
        return None
    return text[: block.start] + new + text[block.end :] if after == {**before, key: value} else None


def _shifted(entry: Entry, shift: int) -> Entry:
    return replace(entry, body=Span(entry.body.start + shift, entry.body.end + shift))


def _new_values(
    entry: Entry, renaming: Renaming, new_name: Callable[[str], str | None], *, is_own: bool
) -> Mapping[str, Value]:
    values: dict[str, Value] = {}
    if is_own and renaming.way in ("id", "title"):
        key = (
            "title"
            if renaming.way == "title" and entry.metadata.get("title") is not None
            else "name"
            if renaming.way == "title"
            else "id"
        )
        values[key] = renaming.new
    if is_own and renaming.way == "alias":
        key = next((key for key in _ALIASES if key in entry.metadata), "")
        held = entry.metadata.get(key)
        called = [renaming.new if word.casefold() == renaming.old.casefold() else word for word in read_words(held)]
        values[key] = called if isinstance(held, list) else ", ".join(called)
    listed = entry.metadata.get("links")
    links = listed if isinstance(listed, list) else []
    renamed = [_new_link(link, new_name) for link in links]
    if renamed != links:
        values["links"] = renamed
    if renaming.way == "id":
        for key in _ID_LISTS:
            words = read_words(entry.metadata.get(key))
            if renaming.old in words:
                values[key] = [renaming.new if word == renaming.old else word for word in words]
    return values


def _new_link(link: object, new_name: Callable[[str], str | None]) -> dict[str, str]:
    if isinstance(link, dict):
        name = new_name(str(link.get("to")))
        return {**link, "to": name} if name is not None else link
    return new_name(str(link)) or link  # type: ignore[return-value]


def shown_title(title: str) -> str:
    """Return a title without the day in front of it.

    Example:
        >>> shown_title("[2026-01-02] Retry")
        'Retry'
    """
    return _DATED.sub("", title, count=1)


#: What is longer is no learning, but a document.
MAX_TEXT = 1_000_000
#: In a vault of so many files all are looked at for one that says the same; in a larger one those of its folders.
_FEW_FILES = 5_000


def check_text(text: str) -> None:
    """Keep what is no learning from becoming one.

    Raises:
        UsageError: it is too long, or no text.
    """
    if len(text) > MAX_TEXT:
        raise UsageError(
            f"the text is longer than {MAX_TEXT:,} characters",
            "put it into the vault as a file, and learn what matters of it",
        )
    if "\0" in text:
        raise UsageError("the text contains NUL bytes; is it a text?", "take them out, or save it as UTF-8 first")


class Entries:
    """The verbs learn and forget."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, reading: Reading) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._reading = reading

    def learn(
        self,
        text: str,
        *,
        kind: str = "fact",
        title: str | None = None,
        tags: Sequence[str] = (),
        priority: str | None = None,
        applies_to: Sequence[str] = (),
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        source: str | None = None,
        propose: bool = False,
        confidence: float | None = None,
        force: bool = False,
        allow_secret: bool = False,
        dry_run: bool = False,
    ) -> Learned:
        """Store a learning, or reinforce the entry that already says it.

        A new one becomes a file of its own. A policy, preference, rule, pitfall or skill from the source
        `external_unverified` waits in `review/` until a person approves it, as does anything with `propose`. A new rule is trusted
        with `confidence`, or by its source. With `dry_run` nothing is written, and the report's run tells what would be.

        `allow_secret` is for what only looks like a credential; a program that acts for a model must not set it.

        Raises:
            SecretRefused: the text, or any other argument, holds what looks like a credential.
            Forgotten: the same text was forgotten before, and `force` is not set.
            ChangedOnDisk: somebody else wrote to the file meanwhile.
            UsageError: the call makes no sense.
        """
        import uuid

        from memory_kb.learning import new_entry as remember
        from memory_kb.model import Learned

        check_text(text)
        given: dict[str, Value] = {"status": "proposed"} if propose else {}
        given |= {} if confidence is None else {"confidence": confidence}
        draft = remember.check_draft(
            remember.Draft(text, kind, title, tuple(tags), priority, tuple(applies_to), source, tuple(given.items())),
            allow_secret=allow_secret,
        )
        place = make_place(scope, job, task)
        if place.job and not self._vault.memory:
            raise UsageError(
                f"{self._vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        now = self._vault.clock()
        with nullcontext() if dry_run else self._writer.lock(place.scope):
            twin = self._find_twin(draft, place) if not force else None
            if twin and twin.is_forgotten:
                raise Forgotten(twin.entry.entry_id, twin.entry.source)
            if twin:
                entry_id = twin.entry.entry_id
                plan = remember.plan_reinforcement(self._writer.read(twin.entry.source), entry_id, now, draft.source)
            else:
                entry_id = str(uuid.uuid4())
                folder = self._vault.scope_folder(place.scope, place.job, place.task)
                path = self._vault.show(folder / remember.name_file(draft, entry_id, now))
                plan = remember.plan_entry(draft, entry_id, path, now)
            run = self._run_one("learn", plan, dry_run=dry_run, allow_secret=allow_secret)
        is_waiting = twin.entry.status == "proposed" if twin else draft.is_proposal
        return Learned(entry_id, plan.path, "reinforced" if twin else "created", run, is_waiting)

    def _find_twin(self, draft: Draft, place: Location) -> Twin | None:
        """Return the entry that says already what is about to be learned.

        Nobody is waited for: notes that the index does not hold as they are are read by themselves.
        """
        from memory_kb.index.unindexed import Unindexed
        from memory_kb.learning.duplicates import find_twin

        def find(index: SqliteIndex) -> Twin | None:
            with closing(Unindexed(self._vault, index, self._vault.settings)) as newer, index.snapshot():
                is_small = index.count_files() <= _FEW_FILES
                newer.read(self._vault.regions_of(place) if is_small else self._learned_regions(place))
                while True:
                    found = (
                        find_twin(newer.index, draft, place),
                        find_twin(index, draft, place, outdated=newer.outdated),
                    )
                    twin = min(filter(None, found), key=lambda twin: twin.is_forgotten, default=None)
                    if twin is None or not newer.read((self._region_of(twin.entry.source),)):
                        return twin

        return self._index.use_as_it_is(find)

    def _region_of(self, path: str) -> Region:
        return Region(path, str(self._vault.resolve(path)))

    def _learned_regions(self, place: Location) -> tuple[Region, ...]:
        """Return the folders into which learnings of a scope and of the wider ones are written."""
        from memory_kb.model import KINDS

        names = {"review", *(kind.folder for kind in KINDS.values())}
        scopes = {(place.job, place.task), (place.job, None), (None, None)}
        homes = [self._vault.scope_folder("project", *scope) for scope in scopes] + [self._vault.home]
        folders = dict.fromkeys(home / name for home in homes for name in sorted(names))
        return tuple(Region(f"{self._vault.show(folder)}/", str(folder), is_deep=True) for folder in folders)

    def forget(self, wanted: str, *, delete: bool = False, purge: bool = False, dry_run: bool = False) -> Retired:
        """Retire an entry, leaving a tombstone.

        `delete` takes its text out of the file too, `purge` also out of other notes, the journal, the sessions, all
        logs, caches and databases: that cannot be undone. With `dry_run` nothing is written, and the report's run
        tells what would be.

        Raises:
            UnknownEntry: there is none.
            ChangedOnDisk: somebody else wrote to the file meanwhile.
        """
        from memory_kb.learning import new_entry as remember
        from memory_kb.model import Retired

        view = self._reading.show(wanted)
        if purge:
            return self._purge(view, dry_run=dry_run)
        with nullcontext() if dry_run else self._writer.lock(view.scope):
            note = self._writer.read(view.path)
            plan = (
                remember.plan_erasure(note, view.id, self._vault.clock())
                if delete
                else remember.plan_retirement(note, view.id)
            )
            run = self._run_one("forget", plan, dry_run=dry_run)
        return Retired(**{field.name: getattr(view, field.name) for field in fields(view)}, run=run)

    def _purge(self, view: EntryView, *, dry_run: bool) -> Retired:
        from memory_kb.index.scrub import drop_vectors, scrub_all
        from memory_kb.learning.purge import Parts, purge
        from memory_kb.model import Retired

        parts = Parts(
            self._vault,
            self._writer,
            self._may_write,
            functools.partial(drop_vectors, self._index),
            functools.partial(scrub_all, self._index, self._vault),
        )
        scopes = ("project", "global") if self._vault.home.is_dir() else ("project",)
        with nullcontext() if dry_run else self._writer.lock(*scopes):
            if not dry_run:
                self._writer.recover_held()
            run, purged = purge(view, parts, dry_run=dry_run)
        kept = {field.name: getattr(view, field.name) for field in fields(view)}
        return Retired(**kept, run=run, purged=purged)

    def _may_write(self, path: str) -> bool:
        try:
            self._writer.writable(path)
        except UnreadableInput:
            return False
        return True

    def _run_one(self, verb: str, change: Change, *, dry_run: bool, allow_secret: bool = False) -> RunReport:
        """Carry out a plan of one change, which has nothing to go on with when it fails."""
        run = self._writer.run(verb, [change], dry_run=dry_run, allow_secret=allow_secret)
        if run.conflicts:
            if run.conflicts[0].code == "changed":
                raise ChangedOnDisk(change.path)
            raise CannotSplice(run.conflicts[0].message)
        return run


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
            CannotSplice: it is no longer there.
            UnreadableInput: the file cannot be read.
        """
        from memory_kb.markdown.splice import find_entries, find_entry
        from memory_kb.text import encode, hash_of

        view = self._reading.show(wanted)
        text = self._writer.read(view.path).text
        same = find_entries(text, view.path, view.id)
        entry = min(same, key=lambda one: abs(one.line - view.line)) if same else find_entry(text, view.path, view.id)
        piece = text[entry.span.start : entry.span.end]
        why = "another entry of the file has the same id" if len(same) > 1 else explain_uneditable(piece)
        return Source(view, entry, piece, hash_of(encode(piece)), str(self._vault.resolve(view.path)), why)

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
        from memory_kb.markdown.splice import find_entry
        from memory_kb.store.plan import replace_entry
        from memory_kb.text import encode, hash_of

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
