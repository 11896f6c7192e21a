"""Carry out a run: prepare all files, log what is meant, write, confirm.

A process that is killed on the way leaves every file before or after, never half, and a log that
tells which; `recover` completes such a run, or strikes it out when no file was touched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import ChangedOnDisk, UnreadableInput
from memory_kb.notes.changes import (
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
from memory_kb.notes.decisions import Decision, DecisionLog, FileRecord, RunHead, RunRecord
from memory_kb.notes.plans import hash_of
from memory_kb.notes.sheets import Splice

Resolve = Callable[[str], Path]


@dataclass(frozen=True, slots=True)
class Run:
    """All that a verb is about to write.

    `units` are sets of paths that are written together or not at all, `occasion` what the verb was
    part of, such as the end of a session.
    """

    run: str
    time: str
    verb: str
    decisions: tuple[Decision, ...]
    edits: tuple[FileEdit, ...]
    units: tuple[frozenset[str], ...]
    undoes: str | None = None
    occasion: str | None = None


class Recovered(NamedTuple):
    """What became of a run that was killed: a sentence, and whether it is complete now."""

    sentence: str
    left: tuple[str, ...] = ()


def make_edit(
    path: str, file: Path, before: bytes | None, after: bytes | None, *, mode: int | None = None, prune: int = 0
) -> FileEdit:
    """Return the edit of a file, with what is needed to take it back."""
    if before is None:
        return FileEdit(path, file, None, after, mode, count_missing(file))
    return FileEdit(path, file, before, after, mode_of(file), prune)


def carry_out(run: Run, log: DecisionLog) -> tuple[str, ...]:
    """Write the files of a run; return those left because somebody else wrote to them.

    The lock must be held. A run that finds all its files changed by others is not logged.

    Raises:
        UnreadableInput: a file or the log cannot be written; everything is as it was.
    """
    numbers = {path: number for number, unit in enumerate(run.units) for path in unit}
    records = tuple(_record(edit, numbers[edit.path]) for edit in run.edits)
    gone: set[int] = set()
    staged: list[Staged] = []
    sweep_scratch(log.scratch, (edit.file.parent for edit in run.edits))
    try:
        for edit in run.edits:
            try:
                staged.append(Staged(edit, log.scratch))
            except ChangedOnDisk:
                gone.add(numbers[edit.path])
        flush_all(staged)
        start = log.begin(RunHead(run.run, run.time, run.verb, records, run.undoes, run.occasion), run.decisions)
        _commit_all(staged, numbers, gone, lambda: log.withdraw(start))
    finally:
        discard(staged)
    left = tuple(edit.path for edit in run.edits if numbers[edit.path] in gone)
    if len(left) == len(run.edits):
        log.withdraw(start)
    else:
        log.end(run.run, left)
    return left


def _record(edit: FileEdit, unit: int) -> FileRecord:
    before, after = (data if data is None else hash_of(data) for data in (edit.before, edit.after))
    return FileRecord(edit.path, before, after, edit.mode, edit.prune if edit.before is None else 0, unit)


def _order(edit: FileEdit) -> int:
    """Sort new files first and removals last, so that moving text is never in no file at all."""
    return 0 if edit.before is None else 1 if edit.after is not None else 2


def _commit_all(
    staged: Sequence[Staged], numbers: dict[str, int], gone: set[int], withdraw: Callable[[], None]
) -> None:
    """Put all prepared files in place, unit by unit."""
    done: list[FileEdit] = []
    waiting: dict[int, list[Staged]] = {}
    for one in staged:
        waiting.setdefault(numbers[one.edit.path], []).append(one)
    for number, mine in waiting.items():
        committed: list[FileEdit] = []
        try:
            for one in [] if number in gone else sorted(mine, key=lambda one: _order(one.edit)):
                one.commit()
                committed.append(one.edit)
        except ChangedOnDisk:
            gone.add(number)
            _revert(committed)
        except UnreadableInput as exc:
            if _revert([*done, *committed]):
                withdraw()
                raise UnreadableInput(f"{exc}; everything is as it was", exc.hint) from exc
            raise UnreadableInput(
                f"{exc}; part of the run is written",
                "`memory-kb doctor --fix` completes it when the files can be written",
            ) from exc
        else:
            done += committed
    sync_folders(done)


def _revert(edits: Sequence[FileEdit]) -> bool:
    """Take edits back that were just made; tell whether that went well."""
    is_well = True
    for edit in reversed(edits):
        try:
            apply(edit.reverse)
        except (ChangedOnDisk, UnreadableInput):
            is_well = False
    return is_well


def recover(log: DecisionLog, resolve: Resolve) -> Recovered | None:
    """Complete the run that was killed, if the last one was; the lock must be held.

    A run of which no file was written never happened, and is struck out. Otherwise the files that
    are still as before are written; those that somebody has changed since are left.
    """
    record = log.unfinished()
    if record is None:
        return None
    name = f"run {record.head.run} ({record.head.verb})"
    if not record.is_ours:
        log.end(record.head.run, tuple(file.path for file in record.head.files), "not ours")
        return Recovered(f"{name} is unfinished and was not written by this machine; nothing of it was done")
    if not record.is_whole or all(_state(file, resolve) == "before" for file in record.head.files):
        for file in record.head.files:
            with contextlib.suppress(UnreadableInput):
                prune_folders(resolve(file.path), file.made)
        log.withdraw(record.start)
        return Recovered(f"{name} was killed before it wrote anything; it is struck out")
    left = tuple(path for unit in _units_of(record) for path in _finish_unit(unit, record, log, resolve))
    log.end(record.head.run, left, "completed")
    rest = f", except {', '.join(left)}" if left else ""
    return Recovered(f"{name} was killed while it wrote; it is completed{rest}", left)


def _units_of(record: RunRecord) -> list[list[FileRecord]]:
    units: dict[int, list[FileRecord]] = {}
    for file in record.head.files:
        units.setdefault(file.unit, []).append(file)
    return list(units.values())


def _state(file: FileRecord, resolve: Resolve) -> str:
    """Tell whether a file is as `before`, as `after`, or `other` than a run meant."""
    try:
        data = read_if_there(file.path, resolve(file.path))
    except UnreadableInput:
        return "other"
    found = data if data is None else hash_of(data)
    return "after" if found == file.after else "before" if found == file.before else "other"


def _finish_unit(unit: list[FileRecord], record: RunRecord, log: DecisionLog, resolve: Resolve) -> list[str]:
    """Write what is not written yet of a unit; return its files if that cannot be done."""
    states = {file.path: _state(file, resolve) for file in unit}
    is_forward = "other" not in states.values()
    try:
        edits = [
            replayed(file, record, log, resolve, is_forward=is_forward)
            for file in unit
            if states[file.path] == ("before" if is_forward else "after")
        ]
        for edit in sorted(edits, key=_order):
            apply(edit, log.scratch)
    except (ChangedOnDisk, UnreadableInput):
        return [file.path for file in unit]
    return [] if is_forward else [file.path for file in unit]


def replayed(file: FileRecord, record: RunRecord, log: DecisionLog, resolve: Resolve, *, is_forward: bool) -> FileEdit:
    """Return the edit that brings a file from before a run to after it, or back.

    Raises:
        UnreadableInput: the log no longer has the bytes.
    """
    path, place = file.path, resolve(file.path)
    held = read_if_there(path, place)
    decisions = [log.unpack(one) for one in record.decisions if path in (one.path, one.to)]
    splices = [splice for one in decisions for splice in one.splices if splice.path == path]
    data = held or b""
    for splice in splices if is_forward else map(invert, reversed(splices)):
        data = data[: splice.at] + splice.after + data[splice.at + len(splice.before) :]
    wanted = file.after if is_forward else file.before
    after = None if wanted is None else data
    if (after if after is None else hash_of(after)) != wanted:
        raise UnreadableInput(f"the log no longer tells what {path} was")
    return make_edit(path, place, held, after, mode=file.mode, prune=0 if is_forward else file.made)


def invert(splice: Splice) -> Splice:
    """Return the splice that takes another back."""
    return Splice(splice.path, splice.at, splice.after, splice.before)
