"""Installing into agents: their servers, hooks and instructions, and the way back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UnreadableInput, UsageError, VaultNotFound

if TYPE_CHECKING:
    from memory_kb.agents.agent import Agent
    from memory_kb.agents.files import Setup
    from memory_kb.agents.parts import AgentFile
    from memory_kb.agents.planning import Trace
    from memory_kb.agents.traces import Traces
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.notes.plans import Change
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import ChangeView, RunReport


class _Edit(NamedTuple):
    """A file of an agent before and after; `shown` is its path in output."""

    file: Path
    shown: str
    before: bytes | None
    after: bytes | None
    folders: int
    reason: str


class _Target(NamedTuple):
    """Where an agent is installed."""

    agent: Agent
    scope: str
    folder: Path
    files: tuple[AgentFile, ...]


class AgentsMd(NamedTuple):
    """The lines for AGENTS.md, and the run that wrote them."""

    text: str
    run: RunReport


class Agents:
    """The verbs install, uninstall and export agents-md."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store

    def install(
        self,
        agent: str,
        *,
        scope: str = "project",
        folder: str | os.PathLike[str] | None = None,
        pin: bool = False,
        dry_run: bool = False,
    ) -> RunReport:
        """Write memory-kb into the configuration of an agent: its server, its hooks, and a few lines of instructions.

        Everything else in those files stays byte for byte; what is there already is not written
        again, and a server of our name that somebody wrote by hand stays. A file inside the vault's
        folder is written as a run, which `undo` takes back; for those elsewhere `uninstall` is the
        way back.

        Args:
            agent: one of `memory_kb.agents.known.NAMES`.
            scope: `project`, or `user` for everything that a person does.
            folder: the project, when it is not the vault's folder.
            pin: name this vault in what is written, so that every project uses it. A project
                outside the vault's folder gets the name in any case.
            dry_run: write nothing; the report tells what would be.

        Raises:
            UsageError: we do not know the agent, or not in that scope.
            CannotSplice: a file is damaged, and nothing was written.
            UnreadableInput: a file cannot be read or written.
        """
        target = self._target(agent, scope, folder, is_named=pin)
        with nullcontext() if dry_run else self._writer.lock():
            report = self._put_in(target, dry_run=dry_run)
        return replace(report, notices=(*report.notices, *(self._remarks(target) if report.changes else ())))

    def _put_in(self, target: _Target, *, dry_run: bool) -> RunReport:
        from memory_kb.agents.planning import find_left, put_in
        from memory_kb.notes.changes import count_missing, read_if_there

        traces = self._traces(target.scope)
        known, edits, left = traces.read(), list[_Edit](), list[str]()
        for wanted in target.files:
            file, shown = self._place(target, wanted)
            before = read_if_there(shown, file)
            after, trace = put_in(shown, before, wanted.parts, known.get(str(file)))
            if before is None:
                trace = replace(trace, folders=count_missing(file))
            known[str(file)] = replace(trace, agents=tuple(dict.fromkeys((*trace.agents, target.agent.name))))
            left += [shown] if find_left(shown, after, wanted.parts, trace) else []
            if before != after:
                edits.append(_Edit(file, shown, before, after, 0, f"Installed into {target.agent.title}."))
        report = _say_left(
            self._write_edits("install", edits, dry_run=dry_run), left, "to have ours, take it out and install again"
        )
        if not (dry_run or report.conflicts):
            self._keep(traces, target.scope, known)
        return report

    def uninstall(
        self, agent: str, *, scope: str = "project", folder: str | os.PathLike[str] | None = None, dry_run: bool = False
    ) -> RunReport:
        """Take memory-kb out of the configuration of an agent.

        A file that nobody wrote to since is what it was before, byte for byte; from another only
        our own parts go, and a server of our name that somebody wrote by hand stays. What another
        agent uses as well stays until that one is uninstalled.

        Raises:
            UsageError: we do not know the agent, or not in that scope.
            CannotSplice: a file is damaged, and nothing was written.
            UnreadableInput: a file cannot be read or written.
        """
        target = self._target(agent, scope, folder, is_named=False)
        with nullcontext() if dry_run else self._writer.lock():
            return self._take_out(target, dry_run=dry_run)

    def _take_out(self, target: _Target, *, dry_run: bool) -> RunReport:
        from memory_kb.agents.planning import find_left, take_out
        from memory_kb.notes.changes import read_if_there

        traces = self._traces(target.scope)
        known, edits, left = traces.read(), list[_Edit](), list[str]()
        for wanted in target.files:
            file, shown = self._place(target, wanted)
            trace = known.pop(str(file), None)
            others = tuple(name for name in (trace.agents if trace else ()) if name != target.agent.name)
            before = read_if_there(shown, file)
            if trace and others:
                known[str(file)] = replace(trace, agents=others)
            elif before is not None:
                after = take_out(shown, before, wanted.parts, trace)
                left += [shown] if find_left(shown, after, wanted.parts) else []
                if before != after:
                    edits.append(
                        _Edit(
                            file,
                            shown,
                            before,
                            after,
                            trace.folders if trace else 0,
                            f"Taken out of {target.agent.title}.",
                        )
                    )
        report = _say_left(
            self._write_edits("uninstall", edits, dry_run=dry_run), left, "take it out by hand if it is to go"
        )
        if not (dry_run or report.conflicts):
            self._keep(traces, target.scope, known)
        return report

    def export_agents_md(self, file: str | os.PathLike[str] | None = None, *, dry_run: bool = False) -> AgentsMd:
        """Return the policies and the best rules as lines for AGENTS.md, and put them into a file between marks.

        All else in the file stays byte for byte; where nothing is known, the lines are taken out.

        Args:
            file: where they go; without it nothing is written.
            dry_run: write nothing; the report tells what would be.

        Raises:
            CannotSplice: the marks in the file are damaged.
            UnreadableInput: the file cannot be read or written.
        """
        from memory_kb.agents import blocks
        from memory_kb.agents.rulesblock import WORD, render_rules
        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.plans import decode, encode
        from memory_kb.reports import RunReport

        limits = self._vault.settings.context
        text = render_rules(
            self._store.all(),
            self._vault.clock().date(),
            max_tokens=limits.layer_tokens + limits.rule_tokens,
            max_rules=limits.max_rules,
        )
        if file is None:
            return AgentsMd(text, RunReport(None, "export"))
        place = Path(os.path.realpath(Path(file).expanduser()))
        shown = self._vault.show(place) if place.is_relative_to(self._vault.folder) else str(place)
        before = read_if_there(shown, place)
        held = decode(before or b"")
        after = encode(blocks.put(shown, held, WORD, text)[0] if text else blocks.take_out(shown, held, WORD))
        edits = (
            [_Edit(place, shown, before, after, 0, "Rules and policies as they are now.")]
            if after != (before or b"")
            else []
        )
        return AgentsMd(text, self._write_edits("export", edits, dry_run=dry_run))

    def _target(self, name: str, scope: str, folder: str | os.PathLike[str] | None, *, is_named: bool) -> _Target:
        from memory_kb.agents.files import SCOPES, list_files
        from memory_kb.agents.known import find_agent

        agent = find_agent(name)
        if scope not in SCOPES:
            raise UsageError(f"unknown scope {scope!r}", f"it may be {' or '.join(SCOPES)}")
        root = (
            self._person
            if scope == "user"
            else Path(os.path.realpath(Path(folder).expanduser() if folder else self._vault.folder))
        )
        if not root.is_dir():
            raise UsageError(f"the folder {root} does not exist", "name the folder of the project")
        return _Target(agent, scope, root, list_files(agent, scope, self._setup(agent, scope, root, is_named=is_named)))

    @property
    def _person(self) -> Path:
        return Path(self._vault.environ.get("HOME") or "~").expanduser()

    def _setup(self, agent: Agent, scope: str, root: Path, *, is_named: bool) -> Setup:
        from memory_kb.agents.files import Setup

        place = str(self._vault.folder)
        is_found = scope == "user" or root.is_relative_to(self._vault.folder)
        hook_vault = place if is_named or not is_found else ""
        server_vault = hook_vault
        if scope == "project" and agent.vault and not is_named:
            server_vault = _from_project(agent.vault, root, self._vault.folder) or place
        command = ("memory-kb",) if scope == "project" else find_command(self._vault.environ.get("PATH"))
        return Setup(command, server_vault, hook_vault, is_windows=os.name == "nt")

    def _traces(self, scope: str) -> Traces:
        from memory_kb.agents.traces import Traces
        from memory_kb.notes.vault import MACHINE

        return Traces(self._vault.home / MACHINE if scope == "user" else self._vault.machine)

    def _keep(self, traces: Traces, scope: str, known: dict[str, Trace]) -> None:
        """Write the record of what is installed, where something is new in it."""
        if known == traces.read():
            return
        try:
            if scope == "user":
                self._writer.prepare_home()
            traces.write(known)
        except OSError as exc:
            hint = "uninstall will still take our own parts out"
            raise VaultNotFound(f"what was installed cannot be noted in {traces.file}: {exc.strerror}", hint) from exc

    def _place(self, target: _Target, wanted: AgentFile) -> tuple[Path, str]:
        """Return a file of the agent, links followed, and its path in output."""
        from memory_kb.agents.files import place_file

        places = [
            Path(place_file(name, target.folder, target.agent.homes, self._vault.environ)) for name in wanted.names
        ]
        file = Path(os.path.realpath(next((place for place in places if place.exists()), places[0])))
        top = Path(os.path.realpath(target.folder))
        if target.scope == "project" and not file.is_relative_to(top):
            raise UnreadableInput(
                f"{wanted.names[0]} is not written: a link leads out of {top}, to {file}", "put a file in its place"
            )
        return file, self._vault.show(file) if file.is_relative_to(self._vault.folder) else str(file)

    def _write_edits(self, verb: str, edits: Sequence[_Edit], *, dry_run: bool) -> RunReport:
        """Write files of an agent: those in the vault's folder as a run, the others beside it."""
        from memory_kb.notes.changes import FileEdit, Staged, discard, prune_folders, sync_folders
        from memory_kb.notes.composing import FileOutcome, diff

        inner = [edit for edit in edits if edit.file.is_relative_to(self._vault.folder)]
        outer = [edit for edit in edits if edit not in inner]
        plan = list(map(_change, inner))
        if dry_run:
            run = self._writer.run(verb, plan, dry_run=True)
            told = diff(FileOutcome(edit.shown, edit.before, edit.after) for edit in outer)
            return replace(run, changes=(*run.changes, *_views(outer)), diff=f"{run.diff}{told}")
        files = [FileEdit(edit.shown, edit.file, edit.before, edit.after, prune=edit.folders) for edit in outer]
        staged: list[Staged] = []
        try:
            staged.extend(map(Staged, files))
            run = self._writer.run(verb, plan)
            for one in staged:
                one.commit()
            sync_folders(files)
        finally:
            discard(staged)
        for edit in inner:
            if edit.after is None:
                prune_folders(edit.file, edit.folders)
        return replace(run, changes=(*run.changes, *_views(outer)))

    def _remarks(self, target: _Target) -> Iterator[str]:
        import shutil

        if target.scope == "project" and shutil.which("memory-kb", path=self._vault.environ.get("PATH")) is None:
            yield "memory-kb is not on your PATH, and what a project's files say is what everybody runs: put it there"
        if target.agent.name == "codex" and target.scope == "project":
            yield "Codex reads a project's .codex folder once you trust the project"


def _from_project(variable: str, root: Path, vault: Path) -> str | None:
    """Return a vault by an agent's variable for the project, which holds in every clone; None where they lie apart."""
    if not (root.is_relative_to(vault) or vault.is_relative_to(root)):
        return None
    way = Path(os.path.relpath(vault, root)).as_posix()
    return variable if way == "." else f"{variable}/{way}"


def _say_left(report: RunReport, left: Sequence[str], advice: str) -> RunReport:
    """Return a report that tells of servers that somebody wrote by hand under our name."""
    told = (f"{file} has a server of its own called memory-kb, which is left as it is; {advice}" for file in left)
    return replace(report, notices=(*report.notices, *told))


def _change(edit: _Edit) -> Change:
    from memory_kb.notes.plans import Change, Remove, WriteFile, hash_of

    action = Remove() if edit.after is None else WriteFile(edit.after)
    return Change(edit.shown, action, edit.reason, planned=None if edit.before is None else hash_of(edit.before))


def _views(edits: Sequence[_Edit]) -> Iterator[ChangeView]:
    from memory_kb.reports import ChangeView

    for edit in edits:
        word = "create" if edit.before is None else "remove" if edit.after is None else "write"
        yield ChangeView(word, edit.shown, None, edit.reason)


def find_command(path: str | None) -> tuple[str, ...]:
    """Return the words that start this memory-kb from anywhere."""
    import shutil

    beside = Path(sys.executable).with_name("memory-kb.exe" if os.name == "nt" else "memory-kb")
    found = shutil.which("memory-kb", path=path) or (str(beside) if beside.exists() else None)
    return (found,) if found else (sys.executable, "-m", "memory_kb")
