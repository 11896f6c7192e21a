"""Write files of agents in one run, and record what was put into which, so that it can be taken out again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.agents.config_files import (
    FilePart,
    InstallRecord,
    NotPlainJson,
    Server,
    put_in,
    render_snippet,
    take_out,
)
from memory_kb.errors import VaultNotFound
from memory_kb.regular_files import open_for_reading, replace_file
from memory_kb.reports import ChangeView, RunReport
from memory_kb.store.changes import Change
from memory_kb.store.file_edits import FileEdit, count_missing, prune_folders, read_if_there, stage, sync_folders
from memory_kb.text import hash_of, load_json

if TYPE_CHECKING:
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


class _Planned(NamedTuple):
    edit: FileEdit
    file: Path
    reason: str

    @property
    def change(self) -> Change:
        path, before, after = self.edit.path, self.edit.before, self.edit.after
        planned = None if before is None else hash_of(before)
        return Change(path, "remove" if after is None else "write", self.reason, planned=planned, data=after or b"")


class AgentFiles:
    """Files of agents that are to be written together: in the vault's folder as a run, others beside it.

    It is recorded in a file what was put into which; `notices` say what is left to the person, and why.
    """

    def __init__(self, vault: Vault, writer: Writer, record_file: Path) -> None:
        self._vault, self._writer, self._record_file = vault, writer, record_file
        self._old = read_records(record_file)
        self._known = dict(self._old)
        self._planned: list[_Planned] = []
        self.notices: list[str] = []

    def show(self, file: Path) -> str:
        """Return the path of a file in output."""
        return self._vault.show(file) if file.is_relative_to(self._vault.folder) else str(file)

    def read(self, file: Path) -> bytes | None:
        """Return the bytes of a file, None where there is none."""
        return read_if_there(self.show(file), file)

    def replace(self, file: Path, after: bytes | None, reason: str, folders: int = 0) -> None:
        """Plan what a file is to hold, None for nothing: then empty folders around it go as well."""
        before = self.read(file)
        if before != after:
            self._planned.append(_Planned(FileEdit(self.show(file), before, after, prune=folders), file, reason))

    def put(self, file: Path, parts: Sequence[FilePart], reason: str, agent: str = "", head: str = "") -> bytes:
        """Plan to put our parts into a file; return what it then holds.

        JSON that is damaged or has comments stays as it is, and a notice says what to paste.
        """
        before, old, shown = self.read(file), self._known.get(str(file)), self.show(file)
        try:
            after, record = put_in(shown, before, parts, old, head)
        except NotPlainJson as exc:
            self.notices.append(f"{exc}; comments would be lost. It needs: {render_snippet(parts)}")
            return before or b""
        folders = count_missing(file) if before is None else old.folders if old else 0
        agents = dict.fromkeys((*(old.agents if old else ()), agent))
        self._known[str(file)] = record._replace(folders=folders, agents=list(agents))
        if record.server is None and any(isinstance(part, Server) for part in parts):
            advice = "which is left as it is; to have ours, take it out and install again"
            self.notices.append(f"{shown} has a server of its own called memory-kb, {advice}")
        self.replace(file, after, reason)
        return after

    def take(
        self, file: Path, parts: Sequence[FilePart], reason: str, agent: str = "", head: str = "", folders: int = 0
    ) -> None:
        """Plan to take our parts out of a file, unless another agent uses them; empty folders around it go as well."""
        before, record, shown = self.read(file), self._known.pop(str(file), None), self.show(file)
        others = [name for name in record.agents if name != agent] if record else []
        if record and others:
            self._known[str(file)] = record._replace(agents=others)
        elif before is not None:
            try:
                after = take_out(shown, before, parts, record, head)
            except NotPlainJson as exc:
                if b"memory-kb" in before:
                    self.notices.append(f"{exc}; remove what names memory-kb there")
                if record:
                    self._known[str(file)] = record
                return
            self.replace(file, after, reason, max(folders, record.folders if record else 0))

    def texts(self, file: Path) -> Mapping[str, str]:
        """Return the texts that were noted of a file when it was last written."""
        old = self._old.get(str(file))
        return old.texts or {} if old else {}

    def note_texts(self, file: Path, texts: Mapping[str, str]) -> None:
        """Note texts of a file that was put, for the next time it is written."""
        self._known[str(file)] = self._known[str(file)]._replace(texts=texts)

    def write(self, verb: str, changes: Sequence[Change] = (), *, dry_run: bool) -> RunReport:
        """Write what was planned, with other changes of the vault, or show what would be written."""
        from memory_kb.store.render_changes import diff

        inner = [one for one in self._planned if one.file.is_relative_to(self._vault.folder)]
        outer = [one for one in self._planned if one not in inner]
        plan = [*changes, *(one.change for one in inner)]
        if dry_run:
            run = self._writer.run(verb, plan, dry_run=True)
            run = run._replace(diff=f"{run.diff}{diff(one.edit for one in outer)}")
        else:
            run = self._commit(verb, plan, outer)
            for one in inner:
                if one.edit.after is None:
                    prune_folders(one.file, one.edit.prune)
            if not run.conflicts:
                self._write_record()
        views = (ChangeView(one.change.word, one.edit.path, None, one.reason) for one in outer)
        return run._replace(changes=(*run.changes, *views), notices=(*run.notices, *self.notices))

    def _commit(self, verb: str, plan: Sequence[Change], outer: Sequence[_Planned]) -> RunReport:
        # In a home, notes and configurations that others add secrets to: a new file is for its owner alone.
        with stage((one.edit._replace(mode=0o600), one.file) for one in outer) as staged:
            run = self._writer.run(verb, plan)
            for one in staged:
                one.commit()
            sync_folders(one.file for one in outer)
        return run

    def _write_record(self) -> None:
        if self._known == self._old:
            return
        try:
            if not self._record_file.is_relative_to(self._vault.machine):
                self._writer.prepare_home()
            if self._known:
                fields = {name: record._asdict() for name, record in sorted(self._known.items())}
                replace_file(self._record_file, json.dumps(fields, indent=1).encode(), 0o644)
            else:
                self._record_file.unlink(missing_ok=True)
        except OSError as exc:
            hint = "uninstall will still take our own parts out"
            raise VaultNotFound(
                f"what was installed cannot be noted in {self._record_file}: {exc.strerror}", hint
            ) from exc


def read_records(file: Path) -> dict[str, InstallRecord]:
    """Return the records of what was put into which file; a file of them that is lost or damaged is an empty one."""
    try:
        with open_for_reading(file) as stream:
            return {name: InstallRecord(**value) for name, value in load_json(stream.read()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
