"""The one writer: preview a plan, or run it under the locks."""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from pathlib import Path
from typing import NamedTuple, Protocol

from memory_kb.credentials import find_secret, redact
from memory_kb.errors import ChangedOnDisk, MemoryKBError, SecretRefused, UnreadableInput, VaultNotFound
from memory_kb.markdown.splice import Splice
from memory_kb.model import Problem
from memory_kb.reports import ChangeView, RunReport
from memory_kb.store.files import (
    FileEdit,
    NoteText,
    Staged,
    apply,
    count_missing,
    discard,
    flush_all,
    mode_of,
    prune_folders,
    read_if_there,
    read_note_text,
    sweep_scratch,
    sync_folders,
)
from memory_kb.store.journal import Decision, DecisionLog, FileRecord, RunHead, RunRecord
from memory_kb.store.machine import prepare_machine
from memory_kb.store.plan import Change, Plan
from memory_kb.store.render_changes import Composition, compose, diff, find_new_secrets, make_conflict, paths_of
from memory_kb.store.targets import explain_unsafe, find_target
from memory_kb.text import hash_of
from memory_kb.vault import GLOBAL_PREFIX, MACHINE, Vault, count_day_folders, hold_lock

Resolve = Callable[[str], Path]


class Run(NamedTuple):
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


def make_edit(
    path: str, file: Path, before: bytes | None, after: bytes | None, *, mode: int | None = None, prune: int = 0
) -> FileEdit:
    """Return the edit of a file, with what is needed to revert it."""
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
        in_place = {one.edit.path: one.edit.before for one in staged if one.is_in_place}
        for data in in_place.values():
            log.keep(data or b"")
        records = tuple(_record(edit, numbers[edit.path], is_in_place=edit.path in in_place) for edit in run.edits)
        start = log.begin(RunHead(run.run, run.time, run.verb, records, run.undoes, run.occasion), run.decisions)
        _commit_all(staged, numbers, gone, lambda: log.strike_out(start))
    finally:
        discard(staged)
    left = tuple(edit.path for edit in run.edits if numbers[edit.path] in gone)
    if len(left) == len(run.edits):
        log.strike_out(start)
    else:
        if in_place:
            log.drop_kept()
        log.end(run.run, left)
    return left


def _record(edit: FileEdit, unit: int, *, is_in_place: bool) -> FileRecord:
    before, after = (data if data is None else hash_of(data) for data in (edit.before, edit.after))
    made = edit.prune if edit.before is None else 0
    return FileRecord(edit.path, before, after, edit.mode, made, unit, is_in_place)


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
            if _revert([*done, *committed]) and not any(map(_is_torn, mine)):
                withdraw()
                raise UnreadableInput(f"{exc}; everything is as it was", exc.hint) from exc
            raise UnreadableInput(
                f"{exc}; part of the run is written",
                "`memory-kb doctor --fix` completes it when the files can be written",
            ) from exc
        else:
            done += committed
    sync_folders(done)


def _is_torn(one: Staged) -> bool:
    """Return whether a write in place failed half-way, and so did putting the old bytes back."""
    return one.is_in_place and read_if_there(one.edit.path, one.edit.file) != one.edit.before


def _revert(edits: Sequence[FileEdit]) -> bool:
    """Revert edits that were just made; return whether that went well."""
    is_well = True
    for edit in reversed(edits):
        try:
            apply(edit.reverse)
        except (ChangedOnDisk, UnreadableInput):
            is_well = False
    return is_well


def recover(log: DecisionLog, resolve: Resolve) -> tuple[str, ...]:
    """Complete the run that was killed, if the last one was; say what became of it. The lock must be held.

    A run of which no file was written never happened, and is struck out. Otherwise the files that
    are still as before are written; those that somebody has changed since are left.
    """
    record = log.unfinished()
    if record is None:
        return ()
    name = f"run {record.head.run} ({record.head.verb})"
    if not record.is_ours:
        log.end(record.head.run, tuple(file.path for file in record.head.files), "not ours")
        return (f"{name} is unfinished and was not written by this machine; nothing of it was done",)
    for file in record.head.files:
        if file.is_in_place:
            _mend(file, record, log, resolve)
    if not record.is_whole or all(_state(file, resolve) == "before" for file in record.head.files):
        for file in record.head.files:
            with contextlib.suppress(UnreadableInput):
                prune_folders(resolve(file.path), file.made)
        log.strike_out(record.start)
        return (f"{name} was killed before it wrote anything; it is struck out",)
    left = tuple(path for unit in _units_of(record) for path in _finish_unit(unit, record, log, resolve))
    log.drop_kept()
    log.end(record.head.run, left, "completed")
    rest = f", except {', '.join(left)}" if left else ""
    return (f"{name} was killed while it wrote; it is completed{rest}",)


def _mend(file: FileRecord, record: RunRecord, log: DecisionLog, resolve: Resolve) -> None:
    """Go on with a write in place that was killed in the middle, be it of the new bytes or of the old ones.

    Either way the file stays a beginning of the one and the rest of the other, should this be killed too.
    """
    before = log.kept(file)
    if before is None or _state(file, resolve) != "other":
        return
    with contextlib.suppress(ChangedOnDisk, UnreadableInput):
        place = resolve(file.path)
        found, after = read_if_there(file.path, place), _splice(before, file, record, log, is_forward=True)
        if found is None or after is None:
            return
        for old, new in ((before, after), (after, before)):
            if is_half_written(found, old, new):
                apply(FileEdit(file.path, place, found, new, file.mode), log.scratch)
                return


def is_half_written(found: bytes, old: bytes, new: bytes) -> bool:
    """Return whether bytes are what a file holds while new ones are written over old ones.

    Example:
        >>> [is_half_written(found, b"old text", b"new") for found in (b"ned text", b"new text", b"mine")]
        [True, True, False]
    """
    shorter = min(len(found), len(new))
    written = next((at for at in range(shorter) if found[at] != new[at]), shorter)
    return found[written:] == old[written:]


def _units_of(record: RunRecord) -> list[list[FileRecord]]:
    units: dict[int, list[FileRecord]] = {}
    for file in record.head.files:
        units.setdefault(file.unit, []).append(file)
    return list(units.values())


def _state(file: FileRecord, resolve: Resolve) -> str:
    """Return whether a file is as `before`, as `after`, or `other` than a run meant."""
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
            replayed(file, record, log, place, read_if_there(file.path, place), is_forward=is_forward)
            for file in unit
            if states[file.path] == ("before" if is_forward else "after")
            for place in (resolve(file.path),)
        ]
        for edit in sorted(edits, key=_order):
            apply(edit, log.scratch)
    except (ChangedOnDisk, UnreadableInput):
        return [file.path for file in unit]
    return [] if is_forward else [file.path for file in unit]


def replayed(
    file: FileRecord, record: RunRecord, log: DecisionLog, place: Path, held: bytes | None, *, is_forward: bool
) -> FileEdit:
    """Return the edit that brings a file, which holds these bytes, from before a run to after it, or back.

    Raises:
        UnreadableInput: the log no longer has the bytes.
    """
    after = _splice(held or b"", file, record, log, is_forward=is_forward)
    return make_edit(file.path, place, held, after, mode=file.mode, prune=0 if is_forward else file.made)


def _splice(data: bytes, file: FileRecord, record: RunRecord, log: DecisionLog, *, is_forward: bool) -> bytes | None:
    """Return the bytes of a file after a run, given those before it, or the other way round; None for no file.

    Raises:
        UnreadableInput: the log no longer has the bytes.
    """
    decisions = [log.unpack(one) for one in record.decisions if file.path in (one.path, one.to)]
    splices = [splice for one in decisions for splice in one.splices if splice.path == file.path]
    for splice in splices if is_forward else map(invert, reversed(splices)):
        data = data[: splice.at] + splice.after + data[splice.at + len(splice.before) :]
    wanted = file.after if is_forward else file.before
    after = None if wanted is None else data
    if (after if after is None else hash_of(after)) != wanted:
        raise UnreadableInput(f"the log no longer has what {file.path} was")
    return after


def invert(splice: Splice) -> Splice:
    """Return the splice that takes another back."""
    return Splice(splice.path, splice.at, splice.after, splice.before)


#: Seconds to wait for another process that writes.
LONG_PATIENCE = 60.0
#: Given the path of a file that changed since, the changes to make to it now.
Replan = Callable[[str], Plan]
_REPLANS = 3


class IndexFollower(Protocol):
    """The index, as far as it follows what is written."""

    def look_into(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Index files that were just written; return sentences about what failed."""

    def catch_up(self) -> tuple[str, ...]:
        """Index whatever changed; return sentences about what failed."""


class Writer:
    """What the writing verbs share: notes to plan with, and plans carried out."""

    def __init__(
        self,
        vault: Vault,
        index: IndexFollower,
        *,
        occasion: str | None = None,
        agent_files: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._vault = vault
        self._index = index
        self._agent_files = agent_files
        self._held: set[tuple[int, str]] = set()
        self._notices: tuple[str, ...] = ()
        self.occasion = occasion

    def part_of(self, occasion: str) -> Writer:
        """Return a writer whose runs are part of an occasion, which `undo` reverts together."""
        other = copy(self)
        other.occasion = occasion
        return other

    @contextmanager
    def lock(self, *scopes: str, patience: float = LONG_PATIENCE, dry_run: bool = False) -> Iterator[None]:
        """Hold the locks of the scopes that are about to be written, those that this thread does not hold already.

        The vault's own lock is always held and taken first, the home's last: the vault's journal
        records every run, and two runs cannot wait for each other. A dry run needs none.

        Raises:
            VaultNotFound: the home cannot be written.
            VaultBusy: another process held a lock all the time.
        """
        if dry_run:
            yield
            return
        try:
            home = [self.prepare_home()] if "global" in scopes else []
        except OSError as exc:
            raise VaultNotFound(
                f"the home {self._vault.home} cannot be written: {exc.strerror}",
                "name another with --home or MEMORY_KB_HOME",
            ) from exc
        with ExitStack() as stack:
            for lock in dict.fromkeys(
                os.path.join(os.path.realpath(one), "lock") for one in (self._vault.machine, *home)
            ):
                mine = (threading.get_ident(), lock)
                if mine not in self._held:
                    stack.enter_context(hold_lock(Path(lock), patience))
                    self._held.add(mine)
                    stack.callback(self._held.remove, mine)
            yield

    def prepare_home(self) -> Path:
        """Return the machine folder of the home, made and checked.

        Raises:
            OSError: it cannot be written to.
        """
        prepared = prepare_machine(self._vault.home / MACHINE, self._vault.environ, [self._vault.home])
        self._notices += prepared.notices
        return prepared.folder

    def read(self, path: str) -> NoteText:
        """Return a file to plan changes to.

        Raises:
            UnreadableInput: it cannot be read.
        """
        return read_note_text(path, self._vault.resolve(path))

    def run(
        self,
        verb: str,
        plan: Plan,
        *,
        replan: Replan | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Run a plan, or report what it would change.

        It takes the locks of what it writes to. A file that is no longer what the plan was made
        against is planned anew by `replan`, once or twice more; without it, or when it changes
        yet again, its changes become conflicts of the report and everything else goes on. A plan
        that changes nothing is not recorded. A change that would bring a credential into the
        vault, in a text, a field or the name of a file, becomes a conflict, unless the vault allows it.

        Raises:
            SecretRefused: every change of the plan would.
            UnreadableInput: a file cannot be written; everything is as it was.
            VaultBusy: another process has been writing for a minute.
        """
        changes = list(filter(None, plan))
        if dry_run:
            made = self._compose(changes, replan)
            return RunReport(None, verb, _views(made), made.conflicts, diff(made.files))
        if not changes:
            return RunReport(None, verb)
        with self.lock(*scopes_of(paths_of(changes))):
            recovered = self.recover_held()
            made = self._compose(changes, replan)
            run = self._make_run(verb, made)
            left = self.write(run)
            unseen = self._index.look_into(edit.path for edit in run.edits)
        notices, self._notices = self._notices, ()
        return _report(verb, run, made, left, (*notices, *recovered, *unseen))

    def killed_run(self) -> tuple[Problem, ...]:
        """Return what is to be fixed after a run that was killed while it wrote."""
        record = self.journal.unfinished()
        if record is None:
            return ()
        what = (
            "was killed while it wrote; the next run or `doctor --fix` completes it"
            if record.is_ours
            else "is unfinished and was not written by this machine; it is never completed"
        )
        message = f"run {record.head.run} ({record.head.verb}) {what}"
        return (Problem(self.journal.file.name, 1, message),)

    def recover(self) -> tuple[str, ...]:
        """Complete or strike out a run that was killed; return what was done about it."""
        if self.journal.unfinished() is None:
            return ()
        with self.lock():
            recovered = self.recover_held()
        return (*recovered, *self._index.catch_up())

    def writable(self, path: str) -> Path:
        """Return the file that a run writes for a path.

        Raises:
            UnreadableInput: no run may write there.
        """
        if explain_unsafe(self._vault, path) is None:
            return self._vault.resolve(path)
        return find_target(self._vault, path, self._agent_files())

    def _compose(self, plan: Sequence[Change], replan: Replan | None) -> Composition:
        for _ in range(_REPLANS):
            made = compose(plan, {path: read_if_there(path, self.writable(path)) for path in paths_of(plan)})
            if not made.stale or replan is None:
                break
            plan = [
                change
                for path in dict.fromkeys(change.path for change in plan)
                for change in _planned_anew(path, plan, made, replan)
            ]
        return made if self._vault.allows_secrets else self._without_secrets(plan, made)

    def _without_secrets(self, plan: Sequence[Change], made: Composition) -> Composition:
        """Return what a plan comes to without the changes that would bring in a credential."""
        found = find_new_secrets(made)
        if not found:
            return made
        refused = {id(one.change) for one in found}
        kept = [change for change in plan if id(change) not in refused]
        if not kept:
            raise SecretRefused(found[0].finding.described)
        conflicts = (
            make_conflict(one.change, str(SecretRefused(one.finding.described)), SecretRefused.code) for one in found
        )
        rest = self._compose(kept, None)
        return rest._replace(conflicts=(*rest.conflicts, *conflicts))

    def _make_run(self, verb: str, made: Composition) -> Run:
        is_clean = find_secret("\n".join(step.change.reason for step in made.steps)) is None
        changes = tuple(
            Decision(
                step.change.word,
                step.change.path,
                step.change.reason if is_clean else redact(step.change.reason).text,
                step.change.entry_id,
                step.change.to,
                step.splices,
            )
            for step in made.steps
        )
        edits = tuple(
            make_edit(
                file.path,
                self.writable(file.path),
                file.before,
                file.after,
                mode=mode_of(self._vault.resolve(file.like)) if file.like else None,
                prune=count_day_folders(file.path),
            )
            for file in made.files
        )
        return Run(
            uuid.uuid4().hex[:8], self._vault.timestamp(), verb, changes, edits, made.units, occasion=self.occasion
        )

    def write(self, run: Run) -> tuple[str, ...]:
        """Write the files of a run; return those that somebody changed meanwhile."""
        if not run.edits:
            return ()
        return carry_out(run, self.journal)

    @property
    def journal(self) -> DecisionLog:
        """The log of what runs of this vault wrote."""
        return DecisionLog(self._vault.machine / "log", self._vault.seal)

    def recover_held(self) -> tuple[str, ...]:
        """Complete or strike out a run that was killed, and say so; the vault's lock is held."""
        log = self.journal
        record = log.unfinished()
        if record is None:
            return ()
        with self.lock(*scopes_of(file.path for file in record.head.files)):
            return recover(log, self.writable)


def _planned_anew(path: str, plan: Sequence[Change], made: Composition, replan: Replan) -> Sequence[Change]:
    """Return the changes to one file, planned anew if it changed; they stay if that cannot be done."""
    if path in made.stale:
        try:
            return list(filter(None, replan(path)))
        except MemoryKBError:
            pass
    return [change for change in plan if change.path == path]


def scopes_of(paths: Iterable[str]) -> set[str]:
    """Return the scopes whose lock is needed to write to some files.

    Example:
        >>> scopes_of(["~global/rules/a.md"])
        {'global'}
    """
    return {"global" if path.startswith(GLOBAL_PREFIX) else "project" for path in paths}


def _views(made: Composition, left: Sequence[str] = ()) -> tuple[ChangeView, ...]:
    steps = (step.change for step in made.steps if step.change.path not in left and step.change.to not in left)
    return tuple(ChangeView(change.word, change.path, change.entry_id, change.reason, change.to) for change in steps)


def _report(verb: str, run: Run, made: Composition, left: Sequence[str], notices: tuple[str, ...]) -> RunReport:
    late = (
        make_conflict(step.change, f"{step.change.path} was changed by somebody else meanwhile")
        for step in made.steps
        if step.change.path in left or step.change.to in left
    )
    changes = _views(made, left)
    return RunReport(run.run if changes else None, verb, changes, (*made.conflicts, *late), notices=notices)
