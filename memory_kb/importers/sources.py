"""Open a source to import: a file, a folder or a ZIP archive."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.importers import conversations, notes
from memory_kb.importers.bullets import CURATED, DAY, is_topic
from memory_kb.importers.notes import FORMATS, NotePiece, TextFile, left_out, looks_like
from memory_kb.store.json_arrays import iterate
from memory_kb.text import readable_name

#: A note larger than this is no note.
_MAX_NOTE = 5_000_000
#: The bytes of a JSON file that are read into memory.
_MAX_JSON = 512_000_000
_MOST_FILES = 100_000
_SAMPLE = 200
_CHATS = "conversations.json"
_INSTRUCTIONS = frozenset({"agents.md", "claude.md", "gemini.md"})
_FOLDERS_LEFT = frozenset({"node_modules", "__pycache__", "venv", ".venv", "dist", "target"})


def detect(source: Path) -> str:
    """Return the format of a source that is there, by what is in it.

    Raises:
        UsageError: it is none that is known.
    """
    found = _detect_folder(source) if source.is_dir() else _detect_file(source)
    if found is None:
        raise UsageError(f"the format of {source} is unknown", f"name its format with --format: {', '.join(FORMATS)}")
    return found


def _detect_folder(folder: Path) -> str | None:
    if (folder / _CHATS).is_file():
        return _detect_file(folder / _CHATS)
    files = [file for file, _ in zip(find_files(folder, (".md",)), range(_SAMPLE), strict=False)]
    theirs = sum(looks_like(_read(file)) for file in files)
    if files and theirs * 2 > len(files):
        return "basic-memory"
    if (folder / ".obsidian").is_dir():
        return "obsidian"
    if any(DAY.match(file.name) for file in files):
        return "daily-logs"
    if any((folder / name).is_file() for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md")):
        return "agents-md"
    if theirs:
        return "basic-memory"
    return "daily-logs" if (folder / "MEMORY.md").is_file() else None


def _detect_file(file: Path) -> str | None:
    if file.suffix.lower() == ".md":
        if file.name.lower() in _INSTRUCTIONS:
            return "agents-md"
        if file.name == "MEMORY.md" or DAY.match(file.name):
            return "daily-logs"
        return "basic-memory" if looks_like(_read(file)) else "obsidian"
    first = next(iterate(read_json(file), ("results", "memories")), None)
    if first is None or first.wrong:
        return None
    return "mem0" if notes.is_record(first.value) else conversations.kind_of(first.value)


def read_texts(source: Path, format: str, problems: list[NotePiece]) -> Iterator[TextFile]:
    """Yield the Markdown of a source, each file named from the source's own name.

    What cannot be read is added to `problems`.

    Raises:
        UnreadableInput: the source itself cannot be read.
    """
    if not source.is_dir():
        yield TextFile(readable_name(source.name), _read(source, must=True))
        return
    wanted = _INSTRUCTIONS if format == "agents-md" else None
    prefix = "" if format in ("agents-md", "daily-logs") else f"{readable_name(source.resolve().name)}/"
    for file in find_files(source, (".md",)):
        if wanted and file.name.lower() not in wanted:
            continue
        path = f"{prefix}{readable_name(file.relative_to(source).as_posix())}"
        why = _why_not(file, source, format)
        try:
            if not why:
                yield TextFile(path, _read(file, must=True))
        except UnreadableInput as exc:
            why = str(exc)
        if why:
            problems.append(left_out("file", path, 1, why))


def _why_not(file: Path, source: Path, format: str) -> str:
    """Return why a file of a folder is not read; "" for one that is."""
    name = file.relative_to(source).as_posix()
    if readable_name(name) != name:
        return "its name is not valid UTF-8; give it another one and import it again"
    if format == "daily-logs" and not (file.name in CURATED or DAY.match(file.name) or is_topic(_read(file))):
        return f"no part of the log: that is {', '.join(CURATED)}, files called by a day and memories with a type"
    real = file.resolve()
    if file.is_symlink() and real != file and real.is_relative_to(source.resolve()):
        return f"the same as {readable_name(real.relative_to(source.resolve()).as_posix())}"
    return f"larger than {_MAX_NOTE / 1e6:.0f} MB" if file.stat().st_size > _MAX_NOTE else ""


def find_files(folder: Path, endings: Sequence[str]) -> Iterator[Path]:
    """Yield the files of a folder at any depth, in order; hidden folders and tools' own are passed over."""
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _FOLDERS_LEFT)
        for name in sorted(names):
            if name.lower().endswith(tuple(endings)) and not name.startswith("."):
                file = Path(place, name)
                if file.is_file() and _is_inside(file, folder):
                    yield file
                    count += 1
        if count > _MOST_FILES:
            raise UsageError(f"{folder} holds more than {_MOST_FILES:,} files", "import its parts one by one")


def _is_inside(file: Path, source: Path) -> bool:
    """Return whether a file is what it seems, or a link to another file of its source: others are not followed."""
    return not file.is_symlink() or file.resolve().is_relative_to(source.resolve())


def _read(file: Path, *, must: bool = False) -> str:
    try:
        with open(file, "rb") as stream:
            return stream.read(_MAX_NOTE).decode("utf-8-sig", "replace")
    except OSError as exc:
        if must:
            raise UnreadableInput(f"{file} cannot be read: {exc.strerror}") from exc
        return ""


def read_json(source: Path) -> str:
    """Return the JSON of a source, which may be in an archive or folder.

    Raises:
        UnreadableInput: it cannot be read, is too long, or an archive holds no conversations.
    """
    file = source / _CHATS if source.is_dir() else source
    if source.is_dir() and not _is_inside(file, source):
        raise UnreadableInput(f"{file} is a link out of its folder", "name the file that it leads to")
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                names = (one for one in archive.namelist() if one.rpartition("/")[2] == _CHATS)
                if (name := min(names, key=len, default=None)) is None:
                    raise UnreadableInput(
                        f"{file} holds no {_CHATS}", "name the archive that the data export gave, or a file of it"
                    )
                with archive.open(name) as stream:
                    data = stream.read(_MAX_JSON + 1)
        else:
            with open(file, "rb") as stream:
                data = stream.read(_MAX_JSON + 1)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as exc:
        raise UnreadableInput(f"{file} cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
    if len(data) > _MAX_JSON:
        raise UnreadableInput(f"{file} is larger than {_MAX_JSON / 1e6:.0f} MB", "cut it into parts, an array each")
    return data.decode("utf-8", "replace")
