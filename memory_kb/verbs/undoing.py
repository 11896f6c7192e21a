"""Taking runs back."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from memory_kb.verbs.running import Running, scopes_of

if TYPE_CHECKING:
    from memory_kb.notes.decisions import RunRecord
    from memory_kb.notes.undoing import UndoPlan
    from memory_kb.reports import RunReport, RunView


class Undoing(Running):
    """The verb undo, and the list of what it can take back."""

    def runs(self) -> tuple[RunView, ...]:
        """Return the runs that changed something, newest first."""
        from memory_kb.notes.undoing import view_runs

        return view_runs(self._done())

    def runs_of_session(self, session: str) -> tuple[RunView, ...]:
        """Return the runs of a session's end that `undo_session` would take back, in its order.

        Raises:
            UnknownRun: it wrote nothing, or several begin so.
        """
        from memory_kb.notes.undoing import choose_runs

        standing = {run.head.run for run in choose_runs(self._done(), session)}
        return tuple(run for run in self.runs() if run.run in standing)

    def undo(self, run: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Take a run back, byte for byte: the one named, or the last that still stands.

        Files that somebody has edited since are left, and are the conflicts of the report. It is
        a run itself, that can be taken back by its name.

        Raises:
            UnknownRun: no run, or several, are called that.
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        from memory_kb.notes.applying import Run, carry_out
        from memory_kb.notes.undoing import choose_run, plan_undo
        from memory_kb.reports import RunReport

        if dry_run:
            runs = self._done()
            chosen = choose_run(runs, run)
            return _preview(plan_undo(chosen, runs, self._decisions, self.vault.resolve)) if chosen else RunReport(None, "undo")
        with self._writing():
            recovered = self._recover()
            runs = self._done()
            chosen = choose_run(runs, run)
            if chosen is None:
                return RunReport(None, "undo")
            with self._writing(*scopes_of(file.path for file in chosen.files)):
                plan = plan_undo(chosen, runs, self._decisions, self.vault.resolve)
                made = Run(uuid.uuid4().hex[:8], self._now(), "undo", plan.decisions, plan.edits, plan.units, chosen.head.run)
                left = carry_out(made, self._decisions) if plan.edits else ()
        self._keeper.refresh()
        return _report(made.run, plan, left, (recovered.sentence,) if recovered else ())

    def undo_session(self, session: str) -> tuple[RunReport, ...]:
        """Take back all that the end of a session wrote, the last run first.

        Raises:
            UnknownRun: it wrote nothing, or several begin so.
            UnreadableInput: a file cannot be written; the runs before are taken back.
        """
        from memory_kb.notes.undoing import choose_runs

        chosen = choose_runs(self._done(), session)
        return tuple(self.undo(run.head.run) for run in chosen)

    def _done(self) -> list[RunRecord]:
        """Return the runs that came to their end and wrote something."""
        return [run for run in self._decisions.runs() if run.has_ended and run.files]


def _report(run: str, plan: UndoPlan, left: tuple[str, ...], notices: tuple[str, ...]) -> RunReport:
    from memory_kb.reports import ChangeView, Conflict, RunReport

    changes = tuple(ChangeView(_word(edit.before, edit.after), edit.path, None, "Taken back.") for edit in plan.edits if edit.path not in left)
    late = tuple(Conflict(path, None, "takes back", f"{path} was changed by somebody else meanwhile") for path in left)
    return RunReport(run if changes else None, "undo", changes, (*plan.conflicts, *late), notices=notices)


def _preview(plan: UndoPlan) -> RunReport:
    from dataclasses import replace

    from memory_kb.notes.composing import FileOutcome, diff

    report = _report("", plan, (), ())
    return replace(report, run=None, diff=diff(FileOutcome(edit.path, edit.before, edit.after) for edit in plan.edits))


def _word(before: bytes | None, after: bytes | None) -> str:
    return "remove" if after is None else "create" if before is None else "restore"
