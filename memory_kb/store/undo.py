"""Plan and run the reversal of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from memory_kb.errors import UnknownRun, UnreadableInput
from memory_kb.reports import ChangeView, Conflict, RunReport, RunView
from memory_kb.similarity import connected_groups
from memory_kb.store.file_edits import FileEdit, read_if_there
from memory_kb.store.journal import FileRecord, Run
from memory_kb.store.render_changes import Composition, Decision, Files, diff
from memory_kb.store.writer import Writer, scopes_of
from memory_kb.text import hash_of
from memory_kb.vault import Vault

_UNDO = "undo "
_DONE = {
    "create": "created",
    "write": "wrote",
    "set": "set fields of",
    "edit": "edited",
    "replace": "replaced",
    "move": "moved",
    "remove": "removed",
}


def choose_run(runs: Sequence[Run], wanted: str | None) -> Run | None:
    """Return the run to undo.

    That is the one named, by a unique beginning of its id, or the last one that neither undid
    another nor was undone itself; None if there is none.
    """
    if wanted is None:
        undone = undone_by(runs)
        return next((run for run in reversed(runs) if run.undoes is None and run.id not in undone), None)
    found = [run for run in runs if run.id.startswith(wanted)] if wanted else []
    if len(found) != 1:
        raise UnknownRun(wanted, len(found))
    return found[0]


def occasion_of(runs: Iterable[Run], session: str) -> str:
    """Return what the runs of a session's end are part of; a unique beginning names it."""
    occasion = f"session {session}"
    known = {run.occasion for run in runs if run.occasion and run.undoes is None}
    fitting = {occasion} & known or {one for one in known if session and one.startswith(occasion)}
    if len(fitting) != 1:
        raise UnknownRun(occasion, len(fitting), is_occasion=True)
    return fitting.pop()


def undone_by(runs: Iterable[Run]) -> Mapping[str, str]:
    """Return which runs are undone, and by which, given at least those that undid others, oldest first."""
    undone: dict[str, str] = {}
    undoing: dict[str, str] = {}
    for run in runs:
        target = run.undoes
        if target is not None:
            undoing[run.id] = target
            undone[target] = run.id
            # Reverting an undo restores what that had undone.
            undone.pop(undoing.get(target, ""), None)
    return undone


def _summary(run: Run) -> str:
    if run.undoes:
        return f"reverted {run.undoes}"
    words = [_DONE.get(one.action, one.action) for one in run.made]
    if len(words) == 1:
        one = run.made[0]
        return f"{words[0]} {one.path}{f' to {one.to}' if one.to else ''}"
    counts = ", ".join(f"{word} {count}" for word, count in Counter(words).items())
    return f"{counts} in {len(run.written)} files"


def _inverse(decision: Decision, written: set[str]) -> Decision:
    """Return the decision that reverts another one in the files that are written."""
    action = decision.action.removeprefix(_UNDO) if decision.action.startswith(_UNDO) else _UNDO + decision.action
    splices = tuple(splice.reverse for splice in reversed(decision.splices) if splice.path in written)
    return decision._replace(action=action, reason=f"Reverted: {decision.reason}", splices=splices)


class Undo:
    """The verb undo, and the list of what it can undo."""

    def __init__(self, vault: Vault, writer: Writer) -> None:
        self._vault = vault
        self._writer = writer

    def runs(self, session: str | None = None) -> tuple[RunView, ...]:
        """Return the runs that changed something, newest first; only those of a session's end, where one is named."""
        runs = self.done_runs()
        occasion, undone = None if session is None else occasion_of(runs, session), undone_by(runs)
        views = []
        for run in reversed(runs):
            if occasion in (None, run.occasion):
                files, by = tuple(file.path for file in run.written), undone.get(run.id)
                views.append(RunView(run.id, run.time, run.verb, _summary(run), files, run.undoes, by, run.occasion))
        return tuple(views)

    def undo(self, run: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Revert a run, byte for byte: the one named, or the last that is still in effect.

        Files that somebody has edited since are left, and are the conflicts of the report. It is
        a run itself, that can be undone by its name.
        """
        if dry_run:
            chosen = choose_run(self.done_runs(), run)
            return self._preview([chosen] if chosen else [])
        with self._writer.lock():
            recovered = self._writer.recover()
            runs = self.done_runs()
            chosen = choose_run(runs, run)
            if chosen is None:
                return RunReport(None, "undo")
            with self._writer.lock(*scopes_of(file.path for file in chosen.written)):
                plan = self._plan(chosen)
                made, index_notices = self._writer.write("undo", plan, undoes=chosen.id)
        changes = tuple(map(_view, plan.files))
        return RunReport(made, "undo", changes, plan.conflicts, notices=(*recovered, *index_notices))

    def undo_runs(self, names: Sequence[str], *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Undo several runs, one after the other in the order in which they are named.

        With `dry_run` one report is returned, of what all of them together would change.
        """
        done = self.done_runs()
        return self._undo_all([run for name in names if (run := choose_run(done, name))], dry_run=dry_run)

    def undo_session(self, session: str, *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Undo all that the end of a session wrote, the last run first.

        With `dry_run` one report is returned, of what all of them together would change.
        """
        runs = self.done_runs()
        occasion, undone = occasion_of(runs, session), undone_by(runs)
        theirs = [run for run in reversed(runs) if run.occasion == occasion and run.undoes is None]
        return self._undo_all([run for run in theirs if run.id not in undone], dry_run=dry_run)

    def _undo_all(self, chosen: Sequence[Run], *, dry_run: bool) -> tuple[RunReport, ...]:
        if dry_run:
            return (self._preview(chosen),) if chosen else ()
        return tuple(self.undo(run.id) for run in chosen)

    def _plan(self, run: Run, held: Files = MappingProxyType({})) -> Composition:
        """Plan to bring the files of a run back to what they were before it.

        A file that is no longer what the run made of it stays, with those that moved to or from it. Some files may be
        `held`: they count as these bytes.
        """
        edits, conflicts = list[FileEdit](), list[Conflict]()
        moves = ((one.path, one.to) for one in run.made if one.to)
        # A file is reverted with those that text was moved to or from.
        for unit in connected_groups([*((file.path,) for file in run.written), *moves]):
            planned, reasons = self._plan_unit([file for file in run.written if file.path in unit], run, held)
            edits += planned
            conflicts += reasons
        written = {edit.path for edit in edits}
        undone = (one for one in reversed(run.made) if one.path in written or one.to in written)
        decisions = [_inverse(self._writer.journal.unpack(one), written) for one in undone]
        return Composition(tuple(decisions), tuple(edits), tuple(conflicts))

    def _plan_unit(
        self, files: Sequence[FileRecord], run: Run, held: Files
    ) -> tuple[Sequence[FileEdit], Sequence[Conflict]]:
        edits: list[FileEdit] = []
        reason = f"reverts {run.verb} {run.id}"
        for file in files:
            try:
                place = self._writer.writable(file.path)
                data = held[file.path] if file.path in held else read_if_there(file.path, place)
                found = data if data is None else hash_of(data)
                if found == file.before:
                    continue
                if found != file.after:
                    message = f"{file.path} {'is gone' if found is None else 'was edited since'}; it is left as it is"
                    return (), [Conflict(one.path, None, reason, message) for one in files]
                edits.append(self._writer.journal.replay(file, run, data, is_forward=False).revertible(place))
            except UnreadableInput as exc:
                return (), [Conflict(one.path, None, reason, str(exc)) for one in files]
        return edits, ()

    def _preview(self, chosen: Sequence[Run]) -> RunReport:
        """Return one report of what undoing some runs, one after the other, would change."""
        conflicts = list[Conflict]()
        before, after = dict[str, bytes | None](), dict[str, bytes | None]()
        for run in chosen:
            plan = self._plan(run, after)
            conflicts += plan.conflicts
            for edit in plan.files:
                before.setdefault(edit.path, edit.before)
                after[edit.path] = edit.after
        files = [FileEdit(path, data, after[path]) for path, data in before.items() if data != after[path]]
        return RunReport(None, "undo", tuple(map(_view, files)), tuple(conflicts), diff(files))

    def done_runs(self) -> list[Run]:
        """Return the runs that have ended and wrote something."""
        return [run for run in self._writer.journal.runs() if run.has_ended and run.written]


def _view(file: FileEdit) -> ChangeView:
    word = "remove" if file.after is None else "create" if file.before is None else "restore"
    return ChangeView(word, file.path, None, "Reverted.")
