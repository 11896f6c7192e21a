"""Remove the text of an entry from everything: notes, journal, sessions, logs, caches.

The entry itself is deleted last, since its text is what the other places are searched for: a purge that was killed is
completed by the next one. Derived files that cannot be searched are deleted, and made again when needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memory_kb.credentials import locate_secrets
from memory_kb.errors import ChangedOnDisk, UnreadableInput
from memory_kb.index.indexing import drop_vectors, scrub_all
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning.render_entry import plan_erasure
from memory_kb.markdown.splice import find_entry
from memory_kb.regular_files import DATABASE, MACHINE, SESSIONS_DATABASE, SIDE_FILES, open_for_reading, visible_files
from memory_kb.reports import EntryView, Purged, RunReport
from memory_kb.store.changes import Change, move, write_file
from memory_kb.store.file_edits import NoteText, read_note_text
from memory_kb.store.git_command import ask_git
from memory_kb.store.journal import Run
from memory_kb.store.json_lines import dump_line, parse_line, replace_lines
from memory_kb.store.session_log import SessionFiles
from memory_kb.store.worktrees import find_repository
from memory_kb.store.writer import Writer
from memory_kb.text import decode, encode
from memory_kb.vault import Vault

#: What is written in place of the text; it is plain in YAML, in JSON and in Markdown.
REPLACEMENT = "(purged)"
#: A piece of fewer words is said by others too. A long word counts as several, and so does text without spaces.
_FEWEST_WORDS, _FEWEST_WORDS_OF_A_WHOLE, _LONG_WORD = 5, 3, 12
#: A longer piece is found by its paragraphs.
_MOST_WORDS = 2_000
_WORD = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile(r"[0-9A-Za-z]+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n")
_PARAGRAPH_END = re.compile(r"\n\s*\n")
#: Between two words: spacing, punctuation, or an escape of JSON; in a line of JSON no quote that ends a text of it.
_BETWEEN, _BETWEEN_IN_JSON = r"(?:[\W_]|\\[nrt])+", r"(?:[^\w\"]|_|\\(?:[nrt\"]|u[0-9a-f]{4}))+"
_NOT_INSIDE_A_WORD = (r"(?:(?<![^\W_])|(?<=\\[nrt]))", r"(?![^\W_])")
#: The databases in use, which SQLite cleans itself.
_LIVE = frozenset(name + side for name in (DATABASE, SESSIONS_DATABASE) for side in SIDE_FILES)
#: Folders of a machine folder that follow from notes, or from questions that can be asked again, also of earlier versions.
_DERIVED = ("revisions", "answers", "tmp", "lint", "vectors")
#: A larger file is none that a person writes notes in.
_MAX_BYTES = 50_000_000
_GIT_SECONDS = 120
#: So many commits are named.
_MOST_NAMED = 20


class PurgedText(NamedTuple):
    """The text to purge, which is found in any case, spacing and punctuation.

    `whole` is the text, its paragraphs and the credentials in it, None where that is too short to be looked for;
    `parts` are those, its sentences and lines, for files that nobody edits, and `in_json` the same for lines of JSON.
    Each has one of the `marks`, in lower case.
    """

    whole: re.Pattern[str] | None
    parts: re.Pattern[str] | None
    in_json: re.Pattern[str] | None
    marks: tuple[bytes, ...]

    def may_be_in(self, data: bytes) -> bool:
        lower = data.lower()
        return any(mark in lower for mark in self.marks)

    def is_in(self, text: str) -> bool:
        return bool(self.parts and self.may_be_in(text.encode("utf-8", "replace")) and self.parts.search(text))

    def cut_from_note(self, data: bytes) -> bytes:
        """Return the bytes of a note without what is whole, every other byte as it was."""
        return self._cut(self.whole, data)

    def cut_from_line(self, line: bytes) -> bytes:
        """Return a line of a log without the text; a JSON object stays one."""
        return self._cut(self.in_json if line.startswith(b"{") else self.parts, line)

    def _cut(self, pattern: re.Pattern[str] | None, data: bytes) -> bytes:
        if pattern is None or not self.may_be_in(data):
            return data
        return encode(pattern.sub(REPLACEMENT, decode(data)))


def read_purged_text(body: str, title: str, names: Iterable[str]) -> PurgedText:
    """Return the text of an entry that is to be purged.

    `names` are those of its file, made from its first words.

    Example:
        >>> text = read_purged_text("The staging password is *hunter two*.", "", [])
        >>> text.cut_from_line(b"> the staging\\n> password is hunter  two!")
        b'> (purged)!'
    """
    secrets = [body[found.start : found.end] for found in locate_secrets(body)]
    paragraphs = _PARAGRAPH_END.split(body)
    whole = {*_worth_finding([body], _FEWEST_WORDS_OF_A_WHOLE), *_worth_finding([*paragraphs, title], _FEWEST_WORDS)}
    whole |= set(_worth_finding(secrets, 1))
    sentences = [piece for paragraph in paragraphs for piece in _SENTENCE_END.split(paragraph)]
    lines = body.splitlines()
    parts = whole | set(_worth_finding([*sentences, *lines, *names], _FEWEST_WORDS))
    plain = ([word for word in piece if _ASCII_WORD.fullmatch(word)] for piece in parts)
    marks = {max(words, key=len, default="").lower().encode() for words in plain}
    return PurgedText(_compile(whole), _compile(parts), _compile(parts, _BETWEEN_IN_JSON), tuple(marks))


def _worth_finding(pieces: Iterable[str], fewest: int) -> Iterator[tuple[str, ...]]:
    for piece in pieces:
        words = tuple(_WORD.findall(piece))
        count = sum(max(1, len(word.encode("utf-8", "replace")) // _LONG_WORD) for word in words)
        if count >= fewest and len(words) <= _MOST_WORDS:
            yield words


def _compile(pieces: set[tuple[str, ...]], between: str = _BETWEEN) -> re.Pattern[str] | None:
    if not pieces:
        return None

    def spelled(word: str) -> str:  # also as it is escaped in JSON inside of JSON
        return "".join(sign if sign.isascii() else f"(?:{sign}|{re.escape(json.dumps(sign)[1:-1])})" for sign in word)

    # Of pieces that begin alike the longest is found.
    ordered = sorted(pieces, key=lambda words: (-sum(map(len, words)), words))
    choice = "|".join(between.join(map(spelled, words)) for words in ordered)
    before, after = _NOT_INSIDE_A_WORD
    return re.compile(f"{before}(?:{choice}){after}", re.IGNORECASE)


def purge(
    entry: EntryView, vault: Vault, writer: Writer, index: VaultIndex, *, dry_run: bool
) -> tuple[RunReport, Purged]:
    """Erase an entry and every repetition of its text; return what was changed, and where it was deleted.

    The vault's lock is held. Where somebody else writes to a note meanwhile, ChangedOnDisk leaves the entry its text.
    """
    note = read_note_text(vault, entry.path)
    found = find_entry(note.text, note.path, entry.id)
    is_erased = bool(found.metadata.get("tombstone"))
    body = "" if is_erased else note.text[found.body.start : found.body.end]
    text = read_purged_text(body, "" if is_erased else entry.title, [_slug_of(entry)])
    everywhere = _Purge(entry, vault, writer, text, dry_run)
    copies, left = everywhere.plan_copies(note, (found.span.start, found.span.end))
    reports = [writer.run("forget", copies, dry_run=dry_run)]
    if reports[0].conflicts:
        raise ChangedOnDisk(reports[0].conflicts[0].path)
    held = tuple(everywhere.ask_repositories(body))
    files = tuple(everywhere.clean_machines())
    runs = everywhere.drop_runs()
    if not dry_run:
        drop_vectors(index, vault, text.is_in)
    if not is_erased:
        note = read_note_text(vault, entry.path)
        reports.append(writer.run("forget", [plan_erasure(note, entry.id, vault.clock())], dry_run=dry_run))
    if not dry_run:
        if _slug_of(entry) not in ("", "purged"):
            note = read_note_text(vault, entry.path)
            to = f"{entry.path.rpartition('/')[0]}/purged-{entry.id[:8]}.md"
            renamed = move(note, to, "Its name repeats the text that is purged.", entry.id)
            reports.append(writer.run("forget", [renamed]))
        everywhere.drop_runs()
        left += scrub_all(index, vault)
    if not is_erased and text.whole is None:
        left += ("the text is too short to be looked for in other files; only the entry itself is purged",)
    return _join_reports(reports), Purged(files, runs, left, held)


def _slug_of(entry: EntryView) -> str:
    """Return the words of a file's name that were made of the text."""
    name = entry.path.rpartition("/")[2]
    return name.removesuffix(f"-{entry.id[:8]}.md") if name.endswith(f"-{entry.id[:8]}.md") else ""


def _join_reports(reports: list[RunReport]) -> RunReport:
    """Return several runs as one that cannot be undone, since the journal does not have them any more."""
    return RunReport(
        None,
        "forget",
        tuple(change for report in reports for change in report.changes),
        tuple(conflict for report in reports for conflict in report.conflicts),
        "".join(report.diff for report in reports),
        tuple(notice for report in reports for notice in report.notices),
    )


@dataclass(frozen=True)
class _Purge:
    _entry: EntryView
    _vault: Vault
    _writer: Writer
    _text: PurgedText
    _dry_run: bool

    def plan_copies(self, own: NoteText, span: tuple[int, int]) -> tuple[list[Change], tuple[str, ...]]:
        """Plan to take the text out of other notes, and out of the entry's own file around the entry.

        Other notes lose the text where they have all of it, or a paragraph or credential of it. Return also what they
        keep.
        """
        plan: list[Change] = []
        left: list[str] = []
        for path, file in self._notes():
            try:
                data = own.data if path == own.path else file.read_bytes()
            except OSError as exc:
                left.append(f"{path} cannot be read: {exc.strerror}")
                continue
            if path == own.path:
                before, kept, after = own.text[: span[0]], own.text[span[0] : span[1]], own.text[span[1] :]
                cut = self._text.cut_from_note(encode(before)) + encode(kept) + self._text.cut_from_note(encode(after))
            else:
                cut = self._text.cut_from_note(data)
            if cut != data:
                try:
                    self._writer.writable(path)
                    plan.append(write_file(NoteText(path, data), decode(cut), "It repeats a text that is purged."))
                except UnreadableInput:
                    left.append(f"{path} repeats the text, and is not a file that memory-kb writes")
            elif path != own.path and self._text.is_in(decode(data)):
                left.append(f"{path} repeats a sentence of the text")
        return plan, tuple(left)

    def _notes(self) -> Iterator[tuple[str, Path]]:
        """Yield the files of the vault and its home that may repeat a text, by their path in output."""
        vault, seen = self._vault, set[str]()
        for root in vault.roots:
            beside = sorted(root.folder.parent.glob("*.md")) if root.folder == vault.memory else ()
            is_plain = vault.memory is None and root.folder == vault.folder
            inside = (one for one in visible_files(root.folder) if not is_plain or one.name.lower().endswith(".md"))
            for file in (*root.top_notes, *beside, *inside):
                real = os.path.realpath(file)
                if real not in seen and file.is_file() and not file.is_symlink() and file.stat().st_size <= _MAX_BYTES:
                    seen.add(real)
                    yield vault.show(file), file

    def drop_runs(self) -> int:
        """Take the runs out of the journal that wrote the entry or repeat its text; return how many."""
        journal = self._writer.journal
        gone = {record.id for record in journal.runs() if self._is_concerned(record)}
        has_other_lines = journal.size and self._text.may_be_in(journal.file.read_bytes())
        if (gone or has_other_lines) and not self._dry_run:
            journal.drop(gone)
        return len(gone)

    def _is_concerned(self, record: Run) -> bool:
        said = [file.path for file in record.files]
        for decision in record.decisions:
            if decision.entry_id == self._entry.id:
                return True
            said += [decision.path, decision.reason]
            with contextlib.suppress(UnreadableInput, KeyError, TypeError, ValueError):
                splices = self._writer.journal.unpack(decision).splices
                said += [decode(data) for splice in splices for data in (splice.before, splice.after)]
        return any(map(self._text.is_in, said))

    def clean_machines(self) -> Iterator[str]:
        """Take the text out of all machine folders, those that were set aside too; yield what changes."""
        beside, ours = (self._vault.memory or self._vault.folder, self._vault.home), self._vault.machine
        places = {ours, *(place for folder in beside for place in folder.glob(f"{MACHINE}*") if place.is_dir())}
        for place in sorted({Path(os.path.realpath(place)) for place in places}):
            live = _LIVE if str(place) == os.path.realpath(ours) else ()
            for name in _DERIVED:
                if any(file.is_file() for file in (place / name).rglob("*")):
                    if not self._dry_run:
                        shutil.rmtree(place / name, ignore_errors=True)
                    yield f"{place / name}{os.sep}"
            for file in sorted(file for file in place.rglob("*") if file.is_file() and not file.is_symlink()):
                inside = file.relative_to(place).parts
                is_left = file == self._writer.journal.file or inside[0] in _DERIVED or str(Path(*inside)) in live
                if not is_left and self._clean_file(file, place):
                    yield str(file)

    def _clean_file(self, file: Path, machine: Path) -> bool:
        if any(file.name.startswith(name) for name in (DATABASE, SESSIONS_DATABASE)):
            # What SQLite stores cannot be cut from outside; an index is made again, a damaged one is of no use.
            is_damaged = ".broken" in file.name or ".foreign" in file.name
            is_there = is_damaged or self._text.may_be_in(file.read_bytes())
        elif file.parent.name == "blobs":
            is_there = self._text.is_in(decode(file.read_bytes()))
        else:
            return self._clean_log(file, machine)
        if is_there and not self._dry_run:
            file.unlink(missing_ok=True)
        return is_there

    def _clean_log(self, file: Path, machine: Path) -> bool:
        """Take the text out of a file of lines, which is written anew, complete or not at all."""
        with contextlib.ExitStack() as stack:
            if not self._dry_run and file.parent == machine / "sessions" and file.suffix == ".jsonl":
                stack.enter_context(SessionFiles(machine).writing(file.stem))
            try:
                old = stack.enter_context(open_for_reading(file))
            except FileNotFoundError:  # what a killed purge left, now renamed to the file that it was for
                return False
            is_there = any(self._cut_line(line) != line for line in old)
            if is_there and not self._dry_run:
                with open_for_reading(file) as lines:
                    replace_lines(file, map(self._cut_line, lines))
            return is_there

    def _cut_line(self, line: bytes) -> bytes:
        """Return a log line without the text, and without a query that found the entry: it has words of the text."""
        if b'"query"' in line and self._entry.id.encode() in line:
            found = parse_line(line) or {}
            if "query" in found and isinstance(found.get("ids"), list) and self._entry.id in found["ids"]:
                line = dump_line({name: value for name, value in found.items() if name != "query"})
        return self._text.cut_from_line(line)

    def ask_repositories(self, body: str) -> Iterator[str]:
        """Yield what the history of git still contains, and what to do about it."""
        vault, line = self._vault, max(body.splitlines(), key=len, default="").strip()
        tops = {find_repository(folder) for folder in (vault.folder, vault.home)}
        for top in sorted(top for top in tops if top):
            # Without the text, that of a purge which is completed, the history of the file is what is known.
            file = os.path.relpath(vault.resolve(self._entry.path), top)
            chosen = ("-S", line) if line else ("--", f":(literal){file}")
            output = ask_git(top, vault.environ, ["log", "--all", "--reflog", "--format=%h", *chosen], _GIT_SECONDS)
            if output is None:
                yield f"git could not be asked whether the history of {top} contains the text"
                continue
            if commits := list(dict.fromkeys(output.decode().split())):
                more = f" and {len(commits) - _MOST_NAMED:,} more" if len(commits) > _MOST_NAMED else ""
                yield (
                    f"commits of {top} contain the text: {', '.join(commits[:_MOST_NAMED])}{more}; write it on a line of "
                    "a file outside and run `git filter-repo --replace-text FILE`, then `git push --force`; other "
                    "clones keep it until they are made anew"
                )
                continue
            staged = ["grep", "--cached", "-q", "-F", "-e", line]
            if line and ask_git(top, vault.environ, staged, _GIT_SECONDS) is not None:
                yield f"the staged files of {top} contain the text; `git add` the purged notes, then `git gc --prune=now`"
