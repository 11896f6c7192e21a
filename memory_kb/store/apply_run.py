"""Write the files of a run, all or none, and complete a run that was killed while it wrote."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memory_kb.errors import ChangedOnDisk, UnreadableInput
from memory_kb.markdown.splice import Splice
from memory_kb.store.files import (
    FileEdit,
    Staged,
    apply,
    count_missing,
    discard,
    flush_all,
    mode_of,
    prune_folders,
    read_if_there,
    sweep_scratch,
    sync_folders,
)
from memory_kb.store.journal import FileRecord, Journal, Run
from memory_kb.store.render_changes import Decision
from memory_kb.text import hash_of

#: Returns the file that is written for a path as it is in output.
Resolve = Callable[[str], Path]


def make_run(
    verb: str,
    time: str,
    decisions: Sequence[Decision],
    edits: Sequence[FileEdit],
    *,
    undoes: str | None = None,
    occasion: str | None = None,
) -> Run:
    """Return a run with a new id; `occasion` is what the verb is part of, such as the end of a session."""
    return Run(uuid.uuid4().hex[:8], time, verb, tuple(map(_record, edits)), undoes, occasion, tuple(decisions))


def _record(edit: FileEdit) -> FileRecord:
    before, after = (data if data is None else hash_of(data) for data in (edit.before, edit.after))
    return FileRecord(edit.path, before, after, edit.mode, edit.prune if edit.before is None else 0)


def make_edit(
    path: str, file: Path, before: bytes | None, after: bytes | None, *, mode: int | None = None, prune: int = 0
) -> FileEdit:
    """Return the edit of a file, with what is needed to revert it."""
    if before is None:
        return FileEdit(path, file, None, after, mode, count_missing(file))
    return FileEdit(path, file, before, after, mode_of(file), prune)


def apply_run(run: Run, edits: Sequence[FileEdit], journal: Journal) -> None:
    """Write the files of a run. The lock must be held.

    Raises:
        ChangedOnDisk: somebody else has written to one of them; everything is as it was.
        UnreadableInput: a file or the log cannot be written; everything is as it was.
    """
    staged: list[Staged] = []
    sweep_scratch(journal.scratch, (edit.file.parent for edit in edits))
    try:
        ordered = sorted(edits, key=lambda edit: _order(edit.before, edit.after))
        staged.extend(Staged(edit, journal.scratch) for edit in ordered)
        flush_all(staged)
        start = journal.begin(run)
        _commit_all(staged, journal, start)
    finally:
        discard(staged)
    journal.end(run.id)


def _order(before: object, after: object) -> int:
    """Sort new files first and removals last, so that text that moves is always in some file."""
    return 0 if before is None else 1 if after is not None else 2


def _commit_all(staged: Sequence[Staged], journal: Journal, start: int) -> None:
    done: list[FileEdit] = []
    try:
        for one in staged:
            one.commit()
            done.append(one.edit)
    except (ChangedOnDisk, UnreadableInput) as exc:
        if not _revert(done, journal.scratch):
            raise UnreadableInput(
                f"{exc}; part of the run is written",
                "`memory-kb doctor --fix` completes it when the files can be written",
            ) from exc
        journal.strike_out(start)
        if isinstance(exc, ChangedOnDisk):
            raise
        raise UnreadableInput(f"{exc}; everything is as it was", exc.hint) from exc
    sync_folders(done)


def _revert(edits: Sequence[FileEdit], scratch: Path) -> bool:
    """Revert edits that were just made; return whether that went well."""
    is_well = True
    for edit in reversed(edits):
        try:
            apply(edit.reverse, scratch)
        except (ChangedOnDisk, UnreadableInput):
            is_well = False
    return is_well


def recover(journal: Journal, resolve: Resolve) -> tuple[str, ...]:
    """Complete the run that was killed, if the last one was; return sentences about it. The lock must be held.

    A run of which no file was written never happened, and is struck out. Otherwise the files that
    are still as before are written; those that somebody has changed since are left.
    """
    run = journal.unfinished()
    if run is None:
        return ()
    files = run.files
    name = f"run {run.id} ({run.verb})"
    if not run.is_ours:
        journal.end(run.id, [file.path for file in files], "not ours")
        return (f"{name} is unfinished and was not written by this machine; nothing of it was done",)
    states = {file.path: _state(file, resolve) for file in files}
    if not run.is_whole or set(states.values()) <= {"before"}:
        for file in files:
            with contextlib.suppress(UnreadableInput):
                prune_folders(resolve(file.path), file.made)
        journal.strike_out(run.start)
        return (f"{name} was killed before it wrote anything; it is struck out",)
    left = _complete(run, states, journal, resolve)
    journal.end(run.id, left, "completed")
    rest = f", except {', '.join(left)}" if left else ""
    return (f"{name} was killed while it wrote; it is completed{rest}",)


def _state(file: FileRecord, resolve: Resolve) -> str:
    """Return whether a file is as `before`, as `after`, or `other` than a run meant."""
    try:
        data = read_if_there(file.path, resolve(file.path))
    except UnreadableInput:
        return "other"
    found = data if data is None else hash_of(data)
    return "after" if found == file.after else "before" if found == file.before else "other"


def _complete(run: Run, states: Mapping[str, str], journal: Journal, resolve: Resolve) -> list[str]:
    """Write the files of a run that are as before; return those that are left.

    Where a new file cannot be made nothing is changed or removed, since its text may come from there.
    Where any file is left no entry is taken out, since its text may belong in that one.
    """
    left = [path for path, state in states.items() if state == "other"]
    is_made = not any(file.before is None and file.path in left for file in run.files)
    losing = {one.path for one in run.decisions if one.action == "remove"}
    for file in sorted(run.files, key=lambda file: (file.path in losing, _order(file.before, file.after))):
        if states[file.path] != "before":
            continue
        if file.before is not None and (not is_made or (left and file.path in losing)):
            left.append(file.path)
            continue
        try:
            place = resolve(file.path)
            held = read_if_there(file.path, place)
            apply(replay(file, run, journal, place, held, is_forward=True), journal.scratch)
        except (ChangedOnDisk, UnreadableInput):
            left.append(file.path)
            is_made = is_made and file.before is not None
    return left


def replay(
    file: FileRecord, run: Run, journal: Journal, place: Path, held: bytes | None, *, is_forward: bool
) -> FileEdit:
    """Return the edit that brings a file, which holds these bytes, from before a run to after it, or back.

    Raises:
        UnreadableInput: the log no longer has the bytes.
    """
    data = held or b""
    decisions = [journal.unpack(one) for one in run.decisions if file.path in (one.path, one.to)]
    splices = [splice for one in decisions for splice in one.splices if splice.path == file.path]
    for splice in splices if is_forward else map(invert, reversed(splices)):
        data = data[: splice.at] + splice.after + data[splice.at + len(splice.before) :]
    wanted = file.after if is_forward else file.before
    if wanted is not None and hash_of(data) != wanted:
        raise UnreadableInput(f"the log no longer has what {file.path} was")
    after = None if wanted is None else data
    return make_edit(file.path, place, held, after, mode=file.mode, prune=0 if is_forward else file.made)


def invert(splice: Splice) -> Splice:
    """Return the splice that takes another back."""
    return Splice(splice.path, splice.at, splice.after, splice.before)
