"""Turn a plan into bytes: several changes to one file become one write.

Pure: it takes the files as they are and returns them as they should become.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.credentials import locate_secrets
from memory_kb.errors import CannotSplice, SecretRefused
from memory_kb.markdown.splice import EditableFile, Splice, change_body, change_fields, pin_id, trim
from memory_kb.reports import Conflict
from memory_kb.similarity import connected_groups
from memory_kb.store.changes import Change
from memory_kb.store.file_edits import FileEdit
from memory_kb.text import decode, encode, hash_of

#: What makes or removes a file, though it may be an empty one.
_OF_FILES = ("write", "move", "remove")

Files = Mapping[str, bytes | None]


class Decision(NamedTuple):
    """A change that was made, as the journal records it.

    Attributes:
        action: what is done, in one word, such as `set`.
        to: the file that the entry moves to.
        splices: the bytes that it exchanges, in the file as the decisions before left it.
        packed: the same as they are in the journal, which `Journal.unpack` reads.
    """

    action: str
    path: str
    reason: str
    entry_id: str | None
    to: str | None
    splices: tuple[Splice, ...] = ()
    packed: tuple[Mapping[str, Any], ...] = ()


class _Refusal(NamedTuple):
    message: str
    code: str = "changed"
    secret: SecretRefused | None = None


class Composition(NamedTuple):
    """A plan turned into bytes; `stale` are the files that are not what the plan was made against."""

    decisions: tuple[Decision, ...]
    files: tuple[FileEdit, ...]
    conflicts: tuple[Conflict, ...]
    stale: tuple[str, ...] = ()
    #: Files that an editor is to move when that is done: their old and new paths.
    moves: tuple[tuple[str, str], ...] = ()


def paths_of(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the files that some changes read or write."""
    return tuple(dict.fromkeys(path for change in changes for path in (change.path, change.to) if path))


def compose(changes: Sequence[Change], files: Files, *, refuse_secrets: bool = False) -> Composition:
    """Return what the changes make of the files.

    A change whose file is not what it was planned against, or that cannot be made, becomes a conflict, with those that
    belong together with it. With `refuse_secrets` so does one that brings in a credential that no file holds yet.

    Raises:
        SecretRefused: every change would bring in a credential.

    Example:
        >>> from memory_kb.store.file_edits import NoteText
        >>> from memory_kb.store.changes import set_fields
        >>> note = NoteText("a.md", b"---\\nid: x\\n---\\nText.\\n")
        >>> plan = [set_fields(note, "x", {"importance": 0.9}, "Often used."), set_fields(note, "x", {"status": "active"}, "In use.")]
        >>> compose(plan, {"a.md": note.data}).files[0].after
        b'---\\nid: x\\nimportance: 0.9\\nstatus: active\\n---\\nText.\\n'
    """
    groups = _number_groups(changes)
    stale = dict(_find_stale(changes, files))
    refused = {groups[number]: _Refusal(message) for number, message in reversed(stale.items())}
    # Each round starts from the original files, without the groups that failed in the rounds before.
    while True:
        working = _PlannedFiles(files, refuse_secrets=refuse_secrets)
        wanted = [one for one in zip(groups, changes, strict=True) if one[0] not in refused]
        decisions, failed = _perform_all(wanted, working)
        if not failed:
            break
        refused |= failed
    secrets = [refused[group].secret if group in refused else None for group in groups]
    if secrets and secrets[0] and all(secrets):
        raise secrets[0]
    conflicts = [
        Conflict(change.path, change.entry_id, change.reason, refused[group].message, refused[group].code)
        for group, change in zip(groups, changes, strict=True)
        if group in refused
    ]
    outcomes = working.outcomes()
    written = {outcome.path for outcome in outcomes}
    made = tuple(one for one in decisions if written.intersection((one.path, one.to)))
    return Composition(made, outcomes, tuple(conflicts), tuple(dict.fromkeys(changes[number].path for number in stale)))


def _perform_all(
    changes: Sequence[tuple[int, Change]], working: _PlannedFiles
) -> tuple[list[Decision], dict[int, _Refusal]]:
    """Make changes one after another; return those that change something, and the groups with one that fails."""
    decisions: list[Decision] = []
    failed: dict[int, _Refusal] = {}
    secrets: dict[int, _Refusal] = {}
    for group, change in changes:
        try:
            decision = working.decide(change)
        except CannotSplice as exc:
            failed[group] = _Refusal(exc.what, exc.code)
        except SecretRefused as exc:
            secrets.setdefault(group, _Refusal(str(exc), exc.code, exc))
        else:
            decisions += [decision] if decision.splices or change.action in _OF_FILES else []
    if secrets:
        # What else failed may have failed for the bytes that are refused.
        return decisions, secrets
    if not failed:
        wrong = working.check()
        failed = {group: wrong[change.path] for group, change in changes if change.path in wrong}
    return decisions, failed


def _find_stale(changes: Sequence[Change], files: Files) -> Iterable[tuple[int, str]]:
    """Yield the changes whose file is not what they were planned against."""
    made: set[str] = set()
    hashes = {path: None if data is None else hash_of(data) for path, data in files.items()}
    for number, change in enumerate(changes):
        to = change.to if change.action == "move" else None
        if change.path not in made and hashes[change.path] != change.planned:
            there = "is gone" if files[change.path] is None else "was changed by somebody else meanwhile"
            yield number, f"{change.path} {'is there already' if change.planned is None else there}"
        elif to and to not in made and files[to] is not None:
            yield number, f"{to} is there already"
        made.update(path for path in (to, change.path if change.word == "create" else None) if path)


def _number_groups(changes: Sequence[Change]) -> list[int]:
    """Return for each change the number of its group; the changes of a group are made together or not at all."""
    shared: list[list[tuple[str | None, ...]]] = [
        [(change.path, change.entry_id), *([(change.together,)] if change.together else ())] for change in changes
    ]
    number_of = {item: number for number, group in enumerate(connected_groups(shared)) for item in group}
    return [number_of[change.path, change.entry_id] for change in changes]


class _PlannedFiles:
    """The files of a plan while its changes are made one after another."""

    def __init__(self, files: Files, *, refuse_secrets: bool) -> None:
        self._before = files
        self._now: dict[str, bytes | EditableFile | None] = dict(files)
        self._refuse_secrets = refuse_secrets

    def decide(self, change: Change) -> Decision:
        """Apply one change to the planned files, and return it as a decision."""
        splices = tuple(one for one in self._perform(change) if one.before != one.after)
        if self._refuse_secrets and (splices or change.action in _OF_FILES):
            for text in (change.path, change.to or "", *(decode(splice.after) for splice in splices)):
                self._refuse_secret(text)
        return Decision(change.word, change.path, change.reason, change.entry_id, change.to, splices)

    def _refuse_secret(self, text: str) -> None:
        for finding in locate_secrets(text):
            value = text[finding.start : finding.end]
            if not any(value in decode(data) for data in self._before.values() if data):
                raise SecretRefused(finding.described)

    def _perform(self, change: Change) -> tuple[Splice, ...]:
        path, action, entry_id = change.path, change.action, change.entry_id
        if action == "write":
            if change.planned is None and self._data(path) is not None:
                raise CannotSplice(f"{path} is there already")
            return (self._write(path, change.data),)
        if action == "move" and change.to:
            return self._move(change, change.to)
        if entry_id is None:
            return (self._write(path, None),)
        file = self._editable(path)
        if action != "replace":
            # A new text may be the one that fixes it.
            file.refuse_broken(entry_id)
        if action == "remove":
            return (self._write(path, None) if file.holds_only(entry_id) else file.drop(entry_id),)
        text = change.text
        if action == "set":
            text = change_fields(file.piece(entry_id), path, entry_id, change.values.items(), file.newline)
        elif action == "edit":
            text = change_body(file.piece(entry_id), path, entry_id, text, file.newline)
        return (file.put(entry_id, text),)

    def _move(self, change: Change, to: str) -> tuple[Splice, ...]:
        if self._data(to) is not None:
            raise CannotSplice(f"{to} is there already")
        path, entry_id = change.path, change.entry_id
        data = self._data(path)
        if data is None:
            raise CannotSplice(f"{path} is gone")
        moved = data
        if entry_id is not None:
            file = self._editable(path)
            file.refuse_broken(entry_id)
            text = pin_id(file.piece(entry_id), path, entry_id, file.newline)
            if not file.holds_only(entry_id):
                return (self._write(to, encode(text.rstrip("\r\n") + file.newline)), file.drop(entry_id))
            file.put(entry_id, text)
            moved = file.data
        self._now[path] = None
        return (self._write(to, moved), Splice(path, 0, data, b""))

    def _write(self, path: str, data: bytes | None) -> Splice:
        before = self._data(path)
        self._now[path] = data
        return trim(Splice(path, 0, before or b"", data or b""))

    def _data(self, path: str) -> bytes | None:
        held = self._now.get(path)
        return held.data if isinstance(held, EditableFile) else held

    def _editable(self, path: str) -> EditableFile:
        held = self._now.get(path)
        if held is None:
            raise CannotSplice(f"{path} is gone")
        if not isinstance(held, EditableFile):
            held = self._now[path] = EditableFile(path, held)
        return held

    def check(self) -> dict[str, _Refusal]:
        """Return what is wrong with the files that were edited, by path."""
        wrong = {}
        for path, held in self._now.items():
            if isinstance(held, EditableFile):
                try:
                    held.check()
                except CannotSplice as exc:
                    wrong[path] = _Refusal(exc.what, exc.code)
        return wrong

    def outcomes(self) -> tuple[FileEdit, ...]:
        """Return the files that differ from what they were."""
        found = (FileEdit(path, self._before.get(path), self._data(path)) for path in self._now)
        return tuple(outcome for outcome in found if outcome.before != outcome.after)


def diff(files: Iterable[FileEdit]) -> str:
    """Return a unified diff of some files."""
    import difflib

    lines: list[str] = []
    for file in files:
        old, new = (_lines(data) for data in (file.before, file.after))
        names = [file.path if data is not None else "/dev/null" for data in (file.before, file.after)]
        found = list(difflib.unified_diff(old, new, names[0], names[1])) or [f"--- {names[0]}\n", f"+++ {names[1]}\n"]
        lines += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found]
    return "".join(lines)


def _lines(data: bytes | None) -> list[str]:
    pieces = (data or b"").decode("utf-8", "backslashreplace").split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + pieces[-1:] * bool(pieces[-1])
