"""Record every run with the bytes before and after, so that it can be completed or reverted.

A run is all that one verb writes at a time: its changes are made together or not at all, and `undo` reverts them
together.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.errors import UnreadableInput
from memory_kb.machine_seal import sign
from memory_kb.markdown.splice import Splice
from memory_kb.regular_files import make_folder, open_for_reading, open_regular
from memory_kb.store.file_edits import FileEdit, apply
from memory_kb.store.json_lines import append_lines, dump_line, parse_line, read_raw_lines, replace_lines
from memory_kb.store.render_changes import Decision
from memory_kb.text import hash_of

#: More bytes than this are kept beside the log.
_INLINE = 4_096
#: The end of the log that is read to see whether the last run came to its end.
_TAIL = 65_536
_NAME = "decisions.jsonl"
_SIDES = ("before", "after")


class FileRecord(NamedTuple):
    """A file of a run: its hashes before and after, None for no file, and how many folders were made for it."""

    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    made: int = 0


class Run(NamedTuple):
    """What a verb writes at once, or wrote.

    Attributes:
        undoes: the run that it reverts.
        occasion: what the verb is part of, such as the end of a session.
        decisions: its changes; the bytes of those in the log are still packed.
        left: the files that it left as they were, because somebody else had written there.
        has_ended: whether the run came to its end, well or with files left.
        start: where in the log it begins.
    """

    id: str
    time: str
    verb: str
    files: tuple[FileRecord, ...]
    undoes: str | None = None
    occasion: str | None = None
    decisions: tuple[Decision, ...] = ()
    left: tuple[str, ...] = ()
    has_ended: bool = False
    start: int = 0

    @property
    def written(self) -> tuple[FileRecord, ...]:
        """The files that it wrote."""
        return tuple(file for file in self.files if file.path not in self.left)

    @property
    def made(self) -> tuple[Decision, ...]:
        """The changes that were really made."""
        return tuple(one for one in self.decisions if one.path not in self.left and one.to not in self.left)


class Journal:
    """The record of all runs of one vault; the vault's lock must be held to write to it.

    A run without the signature of this machine for this vault is none: it came with a clone or an archive, or was torn.
    """

    def __init__(self, folder: Path, seal: bytes) -> None:
        self._folder, self._seal = folder, seal
        self.file = folder / _NAME

    @property
    def scratch(self) -> Path:
        """The folder of temporary files, in the machine folder, where git ignores them."""
        return self._folder.parent / "tmp"

    def begin(self, run: Run) -> int:
        """Record a run that is about to happen, forced to the disk; return where it begins.

        Raises:
            UnreadableInput: it cannot be written; the log is as it was.
        """
        start = self.size
        try:
            make_folder(self._folder)
            common = {"run": run.id, "time": run.time, "verb": run.verb}
            head: dict[str, Any] = common | {
                "undoes": run.undoes,
                "occasion": run.occasion,
                "changes": len(run.decisions),
            }
            head |= {"files": [file._asdict() for file in run.files]}
            lines = []
            for number, one in enumerate(run.decisions, 1):
                what = {"n": number, "action": one.action, "path": one.path, "to": one.to, "id": one.entry_id}
                lines.append(common | what | {"reason": one.reason, "splices": list(map(self._pack, one.splices))})
            head["seal"] = self._sign(head, map(dump_line, lines))
            append_lines(self.file, [head, *lines], force=True)
        except OSError as exc:
            self.strike_out(start)
            hint = "check the space on the disk and who owns the folder"
            raise UnreadableInput(
                f"the log {self.file} cannot be written: {exc.strerror}; no note was changed", hint
            ) from exc
        return start

    def _sign(self, head: Mapping[str, Any], changes: Iterable[bytes]) -> str:
        """Return the signature of a run, which distinguishes one of this machine from one that came with a clone."""
        first = dump_line({name: value for name, value in head.items() if name != "seal"})
        return sign(self._seal, b"run\n" + first + b"".join(changes))

    def end(self, run: str, left: Sequence[str] = (), how: str = "done") -> None:
        """Record that a run has ended, how, and which files it left as they were.

        Where that fails, the next run finds out by itself.
        """
        with contextlib.suppress(OSError):
            append_lines(self.file, [{"run": run, "end": how, "left": list(left)}])

    def strike_out(self, start: int) -> None:
        """Take the last run, which changed nothing, out of the log."""
        with contextlib.suppress(OSError), os.fdopen(open_regular(self.file, os.O_RDWR), "r+b") as stream:
            stream.truncate(start)

    @property
    def size(self) -> int:
        """The bytes of the log."""
        with contextlib.suppress(FileNotFoundError):
            return self.file.stat().st_size
        return 0

    def _pack(self, splice: Splice) -> Mapping[str, Any]:
        return splice._asdict() | {side: self._pack_bytes(getattr(splice, side)) for side in _SIDES}

    def _pack_bytes(self, data: bytes) -> str | Mapping[str, str]:
        if len(data) > _INLINE:
            name = hash_of(data)
            blob = make_folder(self._folder / "blobs") / name
            if not blob.exists():
                apply(FileEdit(f"the log's copy {blob}", None, data, mode=0o600), blob, blob.parent)
            return {"blob": name}
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}

    def unpack(self, decision: Decision) -> Decision:
        """Return a decision of the log with its bytes.

        Raises:
            UnreadableInput: they are gone.
        """
        splices = tuple(
            Splice(one["path"], one["at"], self._unpack_bytes(one["before"]), self._unpack_bytes(one["after"]))
            for one in decision.packed
        )
        return decision._replace(splices=splices)

    def _unpack_bytes(self, packed: str | Mapping[str, str]) -> bytes:
        if isinstance(packed, str):
            return packed.encode()
        if "base64" in packed:
            try:
                return base64.b64decode(packed["base64"])
            except ValueError as exc:
                raise UnreadableInput(f"the log {self.file} is damaged: {exc}") from exc
        blob = self._folder / "blobs" / packed["blob"]
        try:
            with open_for_reading(blob) as stream:
                return stream.read()
        except OSError as exc:
            raise UnreadableInput(f"the log's copy {blob} cannot be read: {exc.strerror}") from exc

    def replay(self, file: FileRecord, run: Run, held: bytes | None, *, is_forward: bool) -> FileEdit:
        """Return the edit that brings a file, which holds these bytes, from before a run to after it, or back.

        Raises:
            UnreadableInput: the log no longer has the bytes.
        """
        data = held or b""
        decisions = [self.unpack(one) for one in run.decisions if file.path in (one.path, one.to)]
        splices = [splice for one in decisions for splice in one.splices if splice.path == file.path]
        for splice in splices if is_forward else (one.reverse for one in reversed(splices)):
            data = data[: splice.at] + splice.after + data[splice.at + len(splice.before) :]
        wanted = file.after if is_forward else file.before
        if wanted is not None and hash_of(data) != wanted:
            raise UnreadableInput(f"the log no longer has what {file.path} was")
        after = None if wanted is None else data
        return FileEdit(file.path, held, after, file.mode, 0 if is_forward else file.made)

    def unfinished(self) -> Run | None:
        """Return the run that was killed, if the last one was."""
        if not (size := self.size):
            return None
        with open_for_reading(self.file) as stream:
            stream.seek(max(0, size - _TAIL))
            last = stream.read().rstrip(b"\n").rpartition(b"\n")[2]
        if "end" in (parse_line(last) or {}):
            return None
        *_, run = [None, *self.runs()]
        return run if run and not run.has_ended else None

    def creations(self) -> dict[str, str]:
        """Return the entries that runs of this log ever made, with the time of the run; "" where the log forgot it."""
        lines = read_raw_lines(self.file, b'"create"', b'"made"')
        return {entry_id: str(line.get("time") or "") for _, line in lines for entry_id in _made_by(line)}

    def trim(self, before: str) -> int:
        """Drop the runs from before a moment; return how many."""
        gone = {run.id for run in self.runs() if run.time < before}
        if gone:
            self.drop(gone)
        return len(gone)

    def drop(self, gone: Collection[str]) -> None:
        """Drop some runs with the bytes that only they need, and all lines that are of no run.

        The ids of the entries that they made are kept: those do not come back by themselves. The
        vault's lock is held, and no run is unfinished.
        """
        left = [run for run in self.runs() if run.id not in gone]
        names = {run.id for run in left}
        made, kept = set[str](), list[bytes]()
        for raw, line in read_raw_lines(self.file):
            made.update(_made_by(line))
            kept += [raw] if str(line.get("run")) in names else []
        replace_lines(self.file, [*([dump_line({"made": sorted(made)})] if made else []), *kept])
        packed = (splice[side] for run in left for one in run.decisions for splice in one.packed for side in _SIDES)
        needed = {data["blob"] for data in packed if isinstance(data, dict) and "blob" in data}
        for blob in (self._folder / "blobs").glob("*"):
            if blob.name not in needed:
                blob.unlink(missing_ok=True)

    def undoings(self) -> Iterator[Run]:
        """Yield the runs that undid others, without their decisions, oldest first."""
        for _, line in read_raw_lines(self.file, b'"undoes": "'):
            if "files" in line and line.get("undoes"):
                yield Run(str(line.get("run")), "", "", (), str(line["undoes"]))

    def runs(self) -> Iterator[Run]:
        """Yield the runs, oldest first; lines that cannot be read are skipped."""
        try:
            stream = open_for_reading(self.file)
        except FileNotFoundError:
            return
        with stream:
            lines: list[tuple[bytes, Mapping[str, Any]]] = []
            start = place = 0
            for raw in stream:
                line = parse_line(raw)
                if line and "files" in line:
                    yield from self._read_run(lines, start)
                    lines, start = [], place
                if line:
                    lines.append((raw, line))
                place += len(raw)
            yield from self._read_run(lines, start)

    def _read_run(self, lines: Sequence[tuple[bytes, Mapping[str, Any]]], start: int) -> Iterator[Run]:
        """Yield the run of some lines, if this machine signed it."""
        first = lines[0][1] if lines else {}
        own = [(raw, line) for raw, line in lines[1:] if line.get("run") == first.get("run")]
        changes = [(raw, line) for raw, line in own if "splices" in line]
        if not first or first.get("seal") != self._sign(first, (raw for raw, _ in changes)):
            return
        ends = [line for _, line in own if isinstance(line.get("left"), list)]
        yield Run(
            first["run"],
            first["time"],
            first["verb"],
            tuple(map(_file_record, first["files"])),
            first["undoes"],
            first.get("occasion"),
            decisions=tuple(_read_decision(line) for _, line in changes),
            left=tuple(map(str, ends[-1]["left"])) if ends else (),
            has_ended=bool(ends),
            start=start,
        )


def _read_decision(line: Mapping[str, Any]) -> Decision:
    packed = tuple(line["splices"])
    return Decision(line["action"], line["path"], line["reason"], line.get("id"), line.get("to"), packed=packed)


def _made_by(line: Mapping[str, Any]) -> Sequence[str]:
    """Return the ids of the entries that a line of the log says were made."""
    if isinstance(line.get("made"), list):
        return [str(entry_id) for entry_id in line["made"]]
    return [str(line["id"])] if line.get("action") == "create" and line.get("id") else []


def _file_record(file: Mapping[str, Any]) -> FileRecord:
    return FileRecord(**{name: value for name, value in file.items() if name in FileRecord._fields})
