"""Imports of skills from files and folders, and the files of an export."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.credentials import find_secret
from memory_kb.errors import CannotSplice, Forgotten, UnreadableInput, UsageError
from memory_kb.learning.skill_files import FoundSkill, KeptSkill, parse_catalogue, parse_skill_file
from memory_kb.learning.skill_text import SkillText
from memory_kb.learning.skills import (
    SkillDraft,
    SkillMoved,
    check_skill,
    find_same,
    key_of,
    name_of,
    plan_new_skill,
    plan_skill_update,
)
from memory_kb.model import Location, Problem
from memory_kb.store.files import FileEdit, apply, read_if_there
from memory_kb.store.plan import Change, Memory, WriteFile
from memory_kb.store.targets import find_target
from memory_kb.text import hash_of

if TYPE_CHECKING:
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

CATALOGUES = (".yaml", ".yml", ".json")
_CATALOGUE_NAMES = ("skills.yaml", "skills.yml")
_SKILL_FILE = "skill.md"
#: Bytes of a file that is read, and of one that is copied; files listed for one skill.
_MAX_READ, _MAX_COPIED, _MAX_BUNDLED = 4_000_000, 5_000_000, 500


class SkillSource(NamedTuple):
    """A skill from outside, and the folder of the files that go with it."""

    found: FoundSkill
    folder: Path | None = None


#: Returns the id and path of a new skill, given the skills that there are and the names that are planned.
NameSkill = Callable[["SkillDraft", "Location", "Sequence[Memory]", "Sequence[str]"], "tuple[str, str]"]


class SkillBatch:
    """The skills of one import while it is planned."""

    def __init__(
        self,
        memories: Sequence[Memory],
        name_skill: NameSkill,
        vault: Vault,
        writer: Writer,
        place: Location,
        *,
        update: bool,
        force: bool,
    ) -> None:
        self._memories = memories
        self._name_skill = name_skill
        self._vault = vault
        self._writer = writer
        self._place = place
        self._update = update
        self._force = force
        self._planned: list[str] = []
        self._names: dict[str, str] = {}
        self.changes: list[Change] = []
        self.moved: list[SkillMoved] = []

    def take(self, found: FoundSkill) -> None:
        """Plan what one skill needs, and note what becomes of it."""
        where, name = f"{found.path}:{found.line}", found.draft.text.name
        try:
            self.moved.append(self._take(found, where))
        except Forgotten as exc:
            self.moved.append(SkillMoved(name, "", "", "forgotten", f"{exc} (or import with --force)"))
        except UsageError as exc:
            self.moved.append(SkillMoved(name, "", "", "refused", f"{where}: {exc}"))

    def _take(self, found: FoundSkill, where: str) -> SkillMoved:
        draft = check_skill(found.draft)
        name = draft.text.name
        key = key_of(name)
        if key in self._names:
            return SkillMoved(name, "", self._names[key], "known", f"{where} has the name of one before it")
        same = None
        try:
            same = find_same(self._memories, draft, self._place)
        except Forgotten:
            if not self._force:
                raise
        if same:
            self._names[key] = same.path
            try:
                return self._meet(same, found)
            except CannotSplice as exc:
                return SkillMoved(name, same.id, same.path, "refused", f"{where}: {exc}")
        entry_id, path = self._name_skill(draft, self._place, self._memories, self._planned)
        self._planned += [entry_id, path]
        self._names[key] = path
        reason = f"Imported from {Path(found.path).name}."
        self.changes.append(plan_new_skill(draft, entry_id, path, self._vault.clock(), reason))
        return SkillMoved(name, entry_id, path, "created")

    def _meet(self, same: Memory, found: FoundSkill) -> SkillMoved:
        """Plan for a skill that is there already: more outcomes count, its text stays unless it is to change."""
        counts = {"success_count": found.success_count, "failure_count": found.failure_count}
        more = {name: count for name, count in counts.items() if count > same.count(name)}
        note, reason = self._writer.read(same.path), f"Imported again from {Path(found.path).name}."
        whole = plan_skill_update(note, same.id, found.draft, reason, more)
        counted = plan_skill_update(note, same.id, SkillDraft(SkillText(found.draft.text.name)), reason, more)
        change = whole if self._update else counted
        self.changes += [change] if change else []
        differs = not self._update and whole != counted
        message = "it says something else than the file; --update takes the file's text over" if differs else ""
        return SkillMoved(name_of(same), same.id, same.path, "updated" if change else "known", message)

    def copy(self, source: SkillSource) -> Iterator[Problem]:
        """Plan copies of the files that go with the skill just taken, and yield why some are not copied."""
        last = self.moved[-1]
        for inner in source.found.bundled if last.path and source.folder else ():
            file, path = Path(source.folder or "", inner), f"{last.path.removesuffix('.md')}/{inner}"
            try:
                data = _read_bytes(file, _MAX_COPIED)
                held = find_target(self._vault, path)
                before = held.read_bytes() if held.exists() else None
            except (OSError, UnreadableInput) as exc:
                yield Problem(str(file), 1, f"not copied: {exc}")
                continue
            if before == data:
                continue
            if secret := find_secret(data.decode("utf-8", "replace")):
                yield Problem(str(file), 1, f"not copied: it contains what looks like {secret}")
            elif before is not None and not self._update:
                yield Problem(str(file), 1, f"not copied: {path} says something else; --update takes it over")
            else:
                planned = None if before is None else hash_of(before)
                reason = f"It goes with the skill {last.name}."
                self.changes.append(Change(path, WriteFile(data), reason, planned=planned))


def read_sources(source: Path, problems: list[Problem]) -> Iterator[SkillSource]:
    """Yield the skills of a file or of all below a folder; one that cannot be read becomes a problem."""
    if not source.is_dir():
        yield from _read_one(source, problems)
        return
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if name.lower() not in (_SKILL_FILE, *_CATALOGUE_NAMES) or file.is_symlink():
                continue
            try:
                yield from _read_one(file, problems)
            except UnreadableInput as exc:
                problems.append(Problem(str(file), 1, str(exc)))


def _read_one(file: Path, problems: list[Problem]) -> Iterator[SkillSource]:
    text = _read_bytes(file, _MAX_READ).decode("utf-8", "replace")
    if file.suffix.lower() in CATALOGUES:
        skills, wrong = parse_catalogue(text, str(file))
        problems += wrong
        yield from map(SkillSource, skills)
    elif file.name.lower() == _SKILL_FILE:
        folder = Path(os.path.abspath(file)).parent
        bundled = _list_files(folder, file.name, problems)
        yield SkillSource(parse_skill_file(text, str(file), folder.name, bundled), folder)
    elif file.suffix.lower() == ".md":
        yield SkillSource(parse_skill_file(text, str(file), file.stem))
    else:
        raise UsageError(f"{file} is neither a catalogue nor a SKILL.md", "its name must end in .yaml or .md")


def _list_files(top: Path, own: str, problems: list[Problem]) -> tuple[str, ...]:
    """Return the files below a skill's folder but for its `SKILL.md`, hidden ones and links left out."""
    found: list[str] = []
    for folder, folders, names in os.walk(top):
        here = Path(folder)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not (here / name / "SKILL.md").exists()
        )
        for name in sorted(names):
            is_own = here == top and name == own
            if not is_own and not name.startswith(".") and name.isprintable() and not (here / name).is_symlink():
                found.append((here / name).relative_to(top).as_posix())
    if len(found) > _MAX_BUNDLED:
        problems.append(Problem(str(top), 1, f"has {len(found):,} files; the first {_MAX_BUNDLED} are listed"))
    return tuple(found[:_MAX_BUNDLED])


def _read_bytes(file: Path, limit: int) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as exc:
        raise UnreadableInput(f"{file} cannot be read: {exc.strerror}") from exc
    if len(data) > limit:
        raise UnreadableInput(f"{file} is larger than {limit // 1_000_000} MB")
    return data


def write_out(name: str, entry_id: str, file: Path, data: bytes, *, force: bool, dry_run: bool) -> SkillMoved:
    """Write a file outside of the notes, complete or not at all."""
    before = read_if_there(str(file), file)
    if before == data:
        return SkillMoved(name, entry_id, str(file), "unchanged")
    if before is not None and not force:
        message = "there is a file that says something else; --force replaces it"
        return SkillMoved(name, entry_id, str(file), "left", message)
    if not dry_run:
        apply(FileEdit(str(file), file, before, data))
    return SkillMoved(name, entry_id, str(file), "written")


def read_bundled(vault: Vault, kept: KeptSkill, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield the files that were copied in with a skill; one that cannot be read becomes a problem."""
    memory = kept.memory
    base = vault.resolve(memory.path.removesuffix(".md"))
    for inner in memory.words("bundled_files"):
        file = base / inner
        message = f"{inner} leads out of the skill's folder; not written"
        try:
            if file.resolve().is_relative_to(base.resolve()):
                yield inner, file.read_bytes()
                continue
        except OSError as exc:
            message = f"{inner} was not copied in with the skill ({exc.strerror}); not written"
        problems.append(Problem(memory.path, memory.line, message))
