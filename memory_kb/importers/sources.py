"""Open a source to import: a file, a folder or a ZIP archive."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.importers import FORMATS, chat_exports
from memory_kb.importers.bullets import CURATED, DAY, topic_kind
from memory_kb.importers.notes import NotePiece, SourceNote, is_mem0, looks_like_basic_memory, read_source_note
from memory_kb.regular_files import read_file, visible_files
from memory_kb.text import load_json, readable_name
from memory_kb.vault import is_memory_folder

#: Larger notes are left out; so many bytes of a JSON file are read into memory.
_MAX_NOTE, _MAX_JSON = 5_000_000, 512_000_000
#: Notes that are looked at to recognise a folder.
_SAMPLE = 200
_CHATS = "conversations.json"
_INSTRUCTIONS = frozenset(
    {"agents.md", "claude.md", "gemini.md", "copilot-instructions.md", ".cursorrules", ".windsurfrules", ".clinerules"}
)
#: A rule of Cursor: Markdown below frontmatter that says for which files it holds.
_RULE = ".mdc"
_FOLDERS_LEFT = frozenset({"node_modules", "__pycache__", "venv", ".venv", "dist", "target"})


def detect(source: Path) -> str:
    """Return the format of an existing source, by its content."""
    found = _detect_folder(source) if source.is_dir() else _detect_file(source)
    if found is None:
        raise UsageError(f"the format of {source} is unknown", f"name its format with --format: {', '.join(FORMATS)}")
    return found


def _detect_folder(folder: Path) -> str | None:
    if (folder / _CHATS).is_file():
        return _detect_file(folder / _CHATS)
    files = list(islice(find_notes(folder), _SAMPLE))
    theirs = sum(looks_like_basic_memory(_read_or_empty(file)) for file in files)
    if files and theirs * 2 > len(files):
        return "basic-memory"
    if (folder / ".obsidian").is_dir():
        return "obsidian"
    if any(DAY.match(file.name) for file in files):
        return "daily-logs"
    are_rules = bool(files) and all(file.suffix.lower() == _RULE for file in files)
    if are_rules or any(file.parent == folder and _holds_instructions(file) for file in files):
        return "agents-md"
    if (folder / "MEMORY.md").is_file():
        return "daily-logs"
    # A project with its own memories is no folder of notes: they would be imported into themselves.
    return "obsidian" if files and not is_memory_folder(folder / "memory") else None


def _holds_instructions(file: Path) -> bool:
    return file.name.lower() in _INSTRUCTIONS or file.suffix.lower() == _RULE


def _detect_file(file: Path) -> str | None:
    if _holds_instructions(file):
        return "agents-md"
    if file.suffix.lower() == ".md":
        if file.name == "MEMORY.md" or DAY.match(file.name):
            return "daily-logs"
        return "basic-memory" if looks_like_basic_memory(_read_or_empty(file)) else "obsidian"
    first = next(iter(read_elements(file)), None)
    return "mem0" if is_mem0(first) else chat_exports.kind_of(first)


def read_texts(source: Path, format: str, problems: list[NotePiece]) -> Iterator[SourceNote]:
    """Yield the Markdown of a source, each file named from the source's own name.

    What cannot be read is added to `problems`.
    """
    if not source.is_dir():
        yield read_source_note(readable_name(source.name), _read_or_fail(source))
        return
    prefix = "" if format in ("agents-md", "daily-logs") else f"{readable_name(source.resolve().name)}/"
    for file in find_notes(source):
        if not (_holds_instructions(file) if format == "agents-md" else file.suffix.lower() != _RULE):
            continue
        path = f"{prefix}{readable_name(file.relative_to(source).as_posix())}"
        try:
            if not (why := _why_skipped(file, source, format)):
                yield read_source_note(path, _read_or_fail(file))
        except UnreadableInput as exc:
            why = str(exc)
        if why:
            problems.append(NotePiece("file", path, 1, why=why))


def _why_skipped(file: Path, source: Path, format: str) -> str:
    """Return why a file of a folder is not read; "" for one that is."""
    name = file.relative_to(source).as_posix()
    if readable_name(name) != name:
        return "its name is not valid UTF-8; give it another one and import it again"
    is_named = file.name in CURATED or DAY.match(file.name)
    if format == "daily-logs" and not (is_named or topic_kind(read_source_note(name, _read_or_empty(file)))):
        return f"no part of the log: that is {', '.join(CURATED)}, files called by a day and memories with a type"
    if file.is_symlink():
        return f"the same as {readable_name(file.resolve().relative_to(source.resolve()).as_posix())}"
    return f"larger than {_MAX_NOTE / 1e6:.0f} MB" if file.stat().st_size > _MAX_NOTE else ""


def find_notes(folder: Path) -> Iterator[Path]:
    """Yield the Markdown files of a folder at any depth, in order, without those of hidden folders and of tools."""
    for file in visible_files(folder, _FOLDERS_LEFT):
        is_text = file.name.lower().endswith((".md", _RULE)) and file.name[0] != "."
        if is_text and file.is_file() and _is_inside(file, folder):
            yield file


def _is_inside(file: Path, source: Path) -> bool:
    """Return whether a file is no link, or one to another file of its source: others are not followed."""
    return not file.is_symlink() or file.resolve().is_relative_to(source.resolve())


def _read_or_empty(file: Path) -> str:
    try:
        return _read_or_fail(file)
    except UnreadableInput:
        return ""


def _read_or_fail(file: Path) -> str:
    try:
        return _read_named(file, _MAX_NOTE).decode("utf-8-sig", "replace")
    except OSError as exc:
        raise UnreadableInput(f"{file} cannot be read: {exc.strerror}") from exc


def read_elements(source: Path) -> list[Any]:
    """Return the elements of an array in JSON, or under `results` or `memories` of an object; else the object itself."""
    try:
        found = load_json(_read_json(source).decode("utf-8-sig", "replace"))
    except ValueError as exc:
        raise UnreadableInput(
            f"{source} is not valid JSON: {exc}", "export it again, or name another --format"
        ) from exc
    if isinstance(found, dict):
        arrays = (found.get(name) for name in ("results", "memories"))
        found = next((one for one in arrays if isinstance(one, list)), [found])
    return found if isinstance(found, list) else [found]


def _read_json(source: Path) -> bytes:
    """Return the JSON of a source, which may be in an archive or folder."""
    file = source / _CHATS if source.is_dir() else source
    if source.is_dir() and not _is_inside(file, source):
        raise UnreadableInput(f"{file} is a link out of its folder", "name the file that it leads to")
    read = read_file if source.is_dir() else _read_named
    try:
        data = _read_archived(file) if file.is_file() and zipfile.is_zipfile(file) else read(file, _MAX_JSON + 1)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as exc:
        raise UnreadableInput(f"{file} cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
    if len(data) > _MAX_JSON:
        raise UnreadableInput(f"{file} is larger than {_MAX_JSON / 1e6:.0f} MB", "cut it into parts, an array each")
    return data


def _read_named(file: Path, most: int) -> bytes:
    """Return the first bytes of a file that a person names, which may be a pipe, as in `import <(jq . export.json)`."""
    with open(file, "rb") as stream:
        return stream.read(most)


def _read_archived(file: Path) -> bytes:
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.rpartition("/")[2] == _CHATS]
        if not names:
            hint = "name the archive that the data export gave, or a file of it"
            raise UnreadableInput(f"{file} holds no {_CHATS}", hint)
        with archive.open(min(names, key=len)) as stream:
            return stream.read(_MAX_JSON + 1)
