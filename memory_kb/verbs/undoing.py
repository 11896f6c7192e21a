"""Taking runs back."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from memory_kb.notes.writer import Writer, scopes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from memory_kb.index.keeper import VaultIndex
    from memory_kb.notes.decisions import RunRecord
    from memory_kb.notes.undoing import UndoPlan
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import Conflict, RunReport, RunView


class Undo:
    """The verb undo, and the list of what it can take back."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer

    def runs(self, session: str | None = None) -> tuple[RunView, ...]:
        """Return the runs that changed something, newest first; only those of a session's end, where one is named.

        Raises:
            UnknownRun: the session's end wrote nothing, or several begin so.
        """
        from memory_kb.notes.undoing import occasion_of, view_runs

        runs = self.done_runs()
        occasion = None if session is None else occasion_of(runs, session)
        return tuple(run for run in view_runs(runs) if occasion in (None, run.occasion))

    def undo(self, run: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Take a run back, byte for byte: the one named, or the last that still stands.

        Files that somebody has edited since are left, and are the conflicts of the report. It is
        a run itself, that can be taken back by its name.

        Raises:
            UnknownRun: no run, or several, are called that.
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        from memory_kb.notes.applying import Run
        from memory_kb.notes.undoing import choose_run, plan_undo
        from memory_kb.reports import RunReport

        if dry_run:
            runs = self.done_runs()
            chosen = choose_run(runs, run)
            return (
                _preview(plan_undo(chosen, runs, self._writer.journal, self._resolver(chosen)))
                if chosen
                else RunReport(None, "undo")
            )
        with self._writer.lock():
            recovered = self._writer.recover_held()
            runs = self.done_runs()
            chosen = choose_run(runs, run)
            if chosen is None:
                return RunReport(None, "undo")
            with self._writer.lock(*scopes_of(file.path for file in chosen.files)):
                plan = plan_undo(chosen, runs, self._writer.journal, self._resolver(chosen))
                made = Run(
                    uuid.uuid4().hex[:8],
                    self._vault.timestamp(),
                    "undo",
                    plan.decisions,
                    plan.edits,
                    plan.units,
                    chosen.head.run,
                )
                left = self._writer.write(made)
        return _report(made.run, plan, left, (*((recovered.sentence,) if recovered else ()), *self._index.catch_up()))

    def undo_runs(self, names: Sequence[str], *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Take back several runs, one after the other in the order in which they are named.

        With `dry_run` one report tells what all of it together would come to.

        Raises:
            UnknownRun: no run, or several, are called by one of the names; nothing is taken back then.
            UnreadableInput: a file cannot be written; the runs before are taken back.
        """
        from memory_kb.notes.undoing import choose_run

        done = self.done_runs()
        chosen = [run for name in names if (run := choose_run(done, name))]
        if dry_run:
            return (self._preview_all(chosen),) if chosen else ()
        return tuple(self.undo(run.head.run) for run in chosen)

    def undo_session(self, session: str, *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Take back all that the end of a session wrote, the last run first.

        With `dry_run` one report tells what all of it together would come to.

        Raises:
            UnknownRun: it wrote nothing, or several begin so.
            UnreadableInput: a file cannot be written; the runs before are taken back.
        """
        from memory_kb.notes.undoing import choose_runs

        chosen = choose_runs(self.done_runs(), session)
        if dry_run:
            return (self._preview_all(chosen),) if chosen else ()
        return tuple(self.undo(run.head.run) for run in chosen)

    def _resolver(self, record: RunRecord) -> Callable[[str], Path]:
        """Return what finds the files of a run; one that was not written by this machine reaches notes alone."""
        from memory_kb.notes.targets import find_target

        return self._writer.writable if record.is_ours else lambda path: find_target(self._vault, path)

    def _preview_all(self, chosen: Sequence[RunRecord]) -> RunReport:
        """Return what taking some runs back would come to, tried out on copies of their files."""
        import tempfile
        from pathlib import Path

        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.undoing import plan_undo, rehearse

        paths = list(dict.fromkeys(file.path for run in chosen for file in run.files))
        before = {path: read_if_there(path, self._writer.writable(path)) for path in paths}
        with tempfile.TemporaryDirectory(prefix="memory-kb-") as folder:
            copies = {path: Path(folder) / str(number) for number, path in enumerate(paths)}
            for path, data in before.items():
                if data is not None:
                    copies[path].write_bytes(data)
            runs = self.done_runs()
            plans = [rehearse(plan_undo(run, runs, self._writer.journal, copies.__getitem__)) for run in chosen]
            after = {path: copy.read_bytes() if copy.exists() else None for path, copy in copies.items()}
        conflicts = tuple(conflict for plan in plans for conflict in plan.conflicts)
        return _told({path: (before[path], after[path]) for path in paths if before[path] != after[path]}, conflicts)

    def done_runs(self) -> list[RunRecord]:
        """Return the runs that came to their end and wrote something."""
        return [run for run in self._writer.journal.runs() if run.has_ended and run.files]


def _report(run: str, plan: UndoPlan, left: tuple[str, ...], notices: tuple[str, ...]) -> RunReport:
    from memory_kb.reports import ChangeView, Conflict, RunReport

    changes = tuple(
        ChangeView(_word(edit.before, edit.after), edit.path, None, "Taken back.")
        for edit in plan.edits
        if edit.path not in left
    )
    late = tuple(Conflict(path, None, "takes back", f"{path} was changed by somebody else meanwhile") for path in left)
    return RunReport(run if changes else None, "undo", changes, (*plan.conflicts, *late), notices=notices)


def _preview(plan: UndoPlan) -> RunReport:
    from dataclasses import replace

    from memory_kb.notes.composing import FileOutcome, diff

    report = _report("", plan, (), ())
    return replace(report, run=None, diff=diff(FileOutcome(edit.path, edit.before, edit.after) for edit in plan.edits))


def _told(files: Mapping[str, tuple[bytes | None, bytes | None]], conflicts: tuple[Conflict, ...]) -> RunReport:
    from memory_kb.notes.composing import FileOutcome, diff
    from memory_kb.reports import ChangeView, RunReport

    changes = tuple(
        ChangeView(_word(before, after), path, None, "Taken back.") for path, (before, after) in files.items()
    )
    return RunReport(None, "undo", changes, conflicts, diff(FileOutcome(path, *sides) for path, sides in files.items()))


def _word(before: bytes | None, after: bytes | None) -> str:
    return "remove" if after is None else "create" if before is None else "restore"
