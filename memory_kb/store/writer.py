"""The one writer: preview a plan, or write the files of its run, all or none, and complete a run that was killed."""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from pathlib import Path

from memory_kb.credentials import redact
from memory_kb.errors import ChangedOnDisk, MemoryKBError, UnreadableInput, VaultNotFound
from memory_kb.machine_seal import load_seal_key
from memory_kb.model import Problem
from memory_kb.regular_files import MACHINE
from memory_kb.reports import ChangeView, RunReport
from memory_kb.store.changes import Change, Plan
from memory_kb.store.file_edits import (
    FileEdit,
    NoteText,
    Staged,
    apply,
    mode_of,
    prune_folders,
    read_if_there,
    read_note_text,
    stage,
    sweep_scratch,
    sync_folders,
)
from memory_kb.store.journal import FileRecord, Journal, Run
from memory_kb.store.machine_folder import prepare_machine
from memory_kb.store.render_changes import Composition, compose, diff, paths_of
from memory_kb.store.safe_paths import find_target
from memory_kb.text import hash_of
from memory_kb.vault import GLOBAL_PREFIX, Vault, count_day_folders, hold_lock

#: Seconds to wait for the lock of the vault while another process writes.
WRITE_LOCK_SECONDS = 60.0
#: Given the path of a file that changed since, the changes to make to it now.
Replan = Callable[[str], Plan]
_REPLANS = 3


class Writer:
    """Reads the notes that the writing verbs plan with, and runs their plans.

    `index_written` has the index read files that were just written, and returns sentences about what failed.
    `agent_files` are the files of agents that a run may write as well, as their paths end.
    """

    def __init__(
        self, vault: Vault, index_written: Callable[[Iterable[str]], tuple[str, ...]], agent_files: Collection[str]
    ) -> None:
        self._vault, self._index_written, self._agent_files = vault, index_written, agent_files
        self._held: set[tuple[int, str]] = set()
        self._notices: tuple[str, ...] = ()
        self.occasion: str | None = None

    def during(self, occasion: str) -> Writer:
        """Return a writer whose runs are part of an occasion, which `undo` reverts together."""
        other = copy(self)
        other.occasion = occasion
        return other

    @contextmanager
    def lock(self, *scopes: str, patience: float = WRITE_LOCK_SECONDS, dry_run: bool = False) -> Iterator[None]:
        """Hold the locks of the scopes that are about to be written, those that this thread does not hold already.

        The vault's own lock is always held and taken first, the home's last: the vault's journal records every run, and
        two runs cannot wait for each other. Whoever holds it sees no run that was killed half-way: that is completed
        first. A dry run needs no lock.
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
        own, *others = (os.path.join(os.path.realpath(one), "lock") for one in (self._vault.machine, *home))
        is_outermost = (threading.get_ident(), own) not in self._held
        with ExitStack() as stack:
            for lock in dict.fromkeys((own, *others)):
                mine = (threading.get_ident(), lock)
                if mine not in self._held:
                    stack.enter_context(hold_lock(Path(lock), patience))
                    self._held.add(mine)
                    stack.callback(self._held.remove, mine)
            if is_outermost and (run := self.journal.unfinished()):
                with self.lock(*scopes_of(file.path for file in run.files)):
                    self._notices += (self._recover(run),)
            yield

    def prepare_home(self) -> Path:
        """Return the machine folder of the home, made and checked."""
        self._vault.home.mkdir(parents=True, exist_ok=True)
        prepared = prepare_machine(self._vault.home / MACHINE, load_seal_key(self._vault.environ, [self._vault.home]))
        self._notices += prepared.notices
        return prepared.folder

    def read(self, path: str) -> NoteText:
        """Return a file to plan changes to."""
        return read_note_text(self._vault, path)

    def run(self, verb: str, plan: Plan, *, replan: Replan | None = None, dry_run: bool = False) -> RunReport:
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
            composition = self._compose(changes, replan)
            return RunReport(None, verb, _views(composition), composition.conflicts, diff(composition.files))
        if not changes:
            return RunReport(None, verb)
        with self.lock(*scopes_of(paths_of(changes))):
            report = self._compose_and_write(verb, changes, replan)
        return report._replace(notices=(*self._take_notices(), *report.notices))

    def _take_notices(self) -> tuple[str, ...]:
        notices, self._notices = self._notices, ()
        return notices

    def _compose_and_write(self, verb: str, changes: Sequence[Change], replan: Replan | None) -> RunReport:
        """Compose the changes and write them, again where somebody wrote to one of the files in between."""
        for attempt in range(1, _REPLANS + 1):
            composition = self._compose(changes, replan)
            if not composition.decisions:
                return RunReport(None, verb, (), composition.conflicts)
            try:
                run, index_notices = self.write(verb, composition._replace(files=self._completed(composition)))
            except ChangedOnDisk:
                if attempt == _REPLANS:
                    raise
            else:
                break
        return RunReport(run, verb, _views(composition), composition.conflicts, notices=index_notices)

    def _compose(self, plan: Sequence[Change], replan: Replan | None) -> Composition:
        for _ in range(_REPLANS):
            files = {path: read_if_there(path, self.writable(path)) for path in paths_of(plan)}
            composition = compose(plan, files, refuse_secrets=not self._vault.allows_secrets)
            if not composition.stale or replan is None:
                break
            plan = [
                change
                for path in dict.fromkeys(change.path for change in plan)
                for change in _planned_anew(path, plan, composition, replan)
            ]
        return composition

    def _completed(self, composition: Composition) -> tuple[FileEdit, ...]:
        """Return the edits of a composition with the modes of their files and the folders that they make or leave."""
        sources: dict[str, str] = {}
        for one in composition.decisions:
            if one.to:
                sources[one.to] = sources.get(one.path, one.path)
        modes = {path: mode_of(self._vault.resolve(source)) for path, source in sources.items()}
        planned = (
            edit._replace(mode=modes.get(edit.path), prune=count_day_folders(edit.path)) for edit in composition.files
        )
        return tuple(edit.revertible(self.writable(edit.path)) for edit in planned)

    def write(
        self, verb: str, composition: Composition, *, undoes: str | None = None
    ) -> tuple[str | None, tuple[str, ...]]:
        """Write the files of a composition as a run, all or none, then index them. The lock must be held.

        Returns:
            The name of the run, if there was anything to write, and what could not be indexed.

        Raises:
            ChangedOnDisk: somebody else has written to one of them; everything is as it was.
            UnreadableInput: a file or the log cannot be written; everything is as it was.
        """
        edits = composition.files
        if not edits:
            return None, ()
        decisions = tuple(one._replace(reason=redact(one.reason).text) for one in composition.decisions)
        files = tuple(map(_record, edits))
        name = uuid.uuid4().hex[:8]
        run = Run(name, self._vault.timestamp(), verb, files, undoes, self.occasion, decisions)
        ordered = sorted(edits, key=lambda edit: _order(edit.before, edit.after))
        targets = [self.writable(edit.path) for edit in ordered]
        journal = self.journal
        sweep_scratch(journal.scratch, (file.parent for file in targets))
        with stage(zip(ordered, targets, strict=True), journal.scratch) as staged:
            _commit_all(staged, journal, journal.begin(run))
        journal.end(name)
        return name, self._index_written(edit.path for edit in edits)

    def writable(self, path: str) -> Path:
        """Return the file that a run writes for a path."""
        return find_target(self._vault, path, self._agent_files)

    @property
    def journal(self) -> Journal:
        """The record of all runs of this vault."""
        return Journal(self._vault.machine / "log", self._vault.seal)

    def killed_run(self) -> tuple[Problem, ...]:
        """Return the finding about a run that was killed while it wrote, if there is one."""
        run = self.journal.unfinished()
        if run is None:
            return ()
        what = "was killed while it wrote; the next run or `doctor --fix` completes it"
        return (Problem(self.journal.file.name, 1, f"run {run.id} ({run.verb}) {what}"),)

    def recover(self) -> tuple[str, ...]:
        """Complete or strike out a run that was killed; return what was done about it since the last report."""
        if self.journal.unfinished():
            with self.lock():
                pass
        return self._take_notices()

    def _recover(self, run: Run) -> str:
        """Complete a run that was killed; return a sentence about it. The lock must be held.

        A run of which no file was written never happened, and is struck out. Otherwise the files that
        are still as before are written; those that somebody has changed since are left.
        """
        files, journal = run.files, self.journal
        name = f"run {run.id} ({run.verb})"
        states = {file.path: self._state(file) for file in files}
        if set(states.values()) <= {"before"}:
            for file in files:
                with contextlib.suppress(UnreadableInput):
                    prune_folders(self.writable(file.path), file.made)
            journal.strike_out(run.start)
            return f"{name} was killed before it wrote anything; it is struck out"
        left = self._complete(run, states)
        journal.end(run.id, left, "completed")
        rest = f", except {', '.join(left)}" if left else ""
        return f"{name} was killed while it wrote; it is completed{rest}"

    def _state(self, file: FileRecord) -> str:
        """Return whether a file is as `before`, as `after`, or `other` than a run meant."""
        try:
            data = read_if_there(file.path, self.writable(file.path))
        except UnreadableInput:
            return "other"
        found = data if data is None else hash_of(data)
        return "after" if found == file.after else "before" if found == file.before else "other"

    def _complete(self, run: Run, states: Mapping[str, str]) -> list[str]:
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
                place = self.writable(file.path)
                held = read_if_there(file.path, place)
                edit = self.journal.replay(file, run, held, is_forward=True).revertible(place)
                apply(edit, place, self.journal.scratch)
            except (ChangedOnDisk, UnreadableInput):
                left.append(file.path)
                is_made = is_made and file.before is not None
        return left


def _planned_anew(path: str, plan: Sequence[Change], composition: Composition, replan: Replan) -> Sequence[Change]:
    """Return the changes to one file, planned anew if it changed; they stay if that cannot be done."""
    if path in composition.stale:
        try:
            return list(filter(None, replan(path)))
        except MemoryKBError:
            pass
    return [change for change in plan if change.path == path]


def scopes_of(paths: Iterable[str]) -> set[str]:
    """Return the scopes whose lock is needed to write to some files."""
    return {"global" if path.startswith(GLOBAL_PREFIX) else "project" for path in paths}


def _views(composition: Composition) -> tuple[ChangeView, ...]:
    return tuple(ChangeView(one.action, one.path, one.entry_id, one.reason, one.to) for one in composition.decisions)


def _record(edit: FileEdit) -> FileRecord:
    before, after = (data if data is None else hash_of(data) for data in (edit.before, edit.after))
    return FileRecord(edit.path, before, after, edit.mode, edit.prune if edit.before is None else 0)


def _order(before: object, after: object) -> int:
    """Sort new files first and removals last, so that text that moves is always in some file."""
    return 0 if before is None else 1 if after is not None else 2


def _commit_all(staged: Sequence[Staged], journal: Journal, start: int) -> None:
    done: list[Staged] = []
    try:
        for one in staged:
            one.commit()
            done.append(one)
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
    sync_folders(one.file for one in done)


def _revert(committed: Sequence[Staged], scratch: Path) -> bool:
    """Revert edits that were just made; return whether that went well."""
    is_well = True
    for one in reversed(committed):
        try:
            apply(one.edit.reverse, one.file, scratch)
        except (ChangedOnDisk, UnreadableInput):
            is_well = False
    return is_well
