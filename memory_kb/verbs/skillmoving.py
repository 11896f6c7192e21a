"""Skills in and out: catalogues and folders of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.credentials import find_secret
from memory_kb.errors import CannotSplice, Forgotten, UnreadableInput, UsageError
from memory_kb.model import Location, Problem

if TYPE_CHECKING:
    from memory_kb.learning.memories import Memory
    from memory_kb.learning.procedures.skillfiles import FoundSkill
    from memory_kb.learning.procedures.skillplans import SkillMoved
    from memory_kb.notes.plans import Change
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.verbs.skills import Skills

CATALOGUES = (".yaml", ".yml", ".json")
_SKILL_FILE = "skill.md"
#: Bytes of a file that is read, and of one that is copied; files listed for one skill.
_MAX_READ, _MAX_COPIED, _MAX_BUNDLED = 4_000_000, 5_000_000, 500


class _Source(NamedTuple):
    """A skill from outside, and the folder of the files that go with it."""

    found: FoundSkill
    folder: Path | None = None


class SkillBatch:
    """The skills of one import while it is planned."""

    def __init__(
        self, skills: Skills, vault: Vault, writer: Writer, place: Location, *, update: bool, force: bool
    ) -> None:
        self._skills = skills
        self._vault = vault
        self._writer = writer
        self._place = place
        self._update = update
        self._force = force
        self._memories = skills.skills()
        self._planned: list[str] = []
        self._names: dict[str, str] = {}
        self.changes: list[Change] = []
        self.moved: list[SkillMoved] = []

    def take(self, source: _Source) -> None:
        """Plan what one skill needs, and note what becomes of it."""
        from memory_kb.learning.procedures.skillplans import check_skill, find_same, plan_new_skill
        from memory_kb.learning.procedures.skills import key_of

        found, name = source.found, source.found.draft.text.name
        try:
            draft = check_skill(found.draft)
            key = key_of(draft.text.name)
            if key in self._names:
                self._note(
                    name, "", self._names[key], "known", f"{found.path}:{found.line} has the name of one before it"
                )
                return
            same = find_same(self._memories, draft, self._place)
        except Forgotten as exc:
            if not self._force:
                self._note(name, "", "", "forgotten", f"{exc} (or import with --force)")
                return
            same = None
        except UsageError as exc:
            self._note(name, "", "", "refused", f"{found.path}:{found.line}: {exc}")
            return
        if same:
            self._names[key] = same.path
            try:
                self._meet(same, found)
            except CannotSplice as exc:
                self._note(name, same.id, same.path, "refused", f"{found.path}:{found.line}: {exc}")
            return
        entry_id, path = self._skills.name_skill(draft, self._place, self._memories, self._planned)
        self._planned += [entry_id, path]
        self._names[key] = path
        self.changes.append(
            plan_new_skill(draft, entry_id, path, self._vault.clock(), f"Imported from {Path(found.path).name}.")
        )
        self._note(draft.text.name, entry_id, path, "created")

    def _meet(self, same: Memory, found: FoundSkill) -> None:
        """Plan for a skill that is there already: more outcomes count, its text stays unless it is to change."""
        from memory_kb.learning.procedures.skillplans import SkillDraft, plan_skill_update
        from memory_kb.learning.procedures.skills import name_of
        from memory_kb.learning.procedures.skilltexts import SkillText

        counts = {"success_count": found.success_count, "failure_count": found.failure_count}
        more = {name: count for name, count in counts.items() if count > same.count(name)}
        note = self._writer.read(same.path)
        reason = f"Imported again from {Path(found.path).name}."
        whole = plan_skill_update(note, same.id, found.draft, reason, more)
        own = plan_skill_update(note, same.id, SkillDraft(SkillText(found.draft.text.name)), reason, more)
        change = whole if self._update else own
        self.changes += [change] if change else []
        message = (
            ""
            if self._update or whole == own
            else "it says something else than the file; --update takes the file's text over"
        )
        self._note(name_of(same), same.id, same.path, "updated" if change else "known", message)

    def copy(self, source: _Source, problems: list[Problem]) -> None:
        """Plan copies of the files that go with the skill just taken."""
        from memory_kb.notes.plans import Change, WriteFile, hash_of
        from memory_kb.notes.targets import find_target

        last = self.moved[-1]
        if not last.path or not source.folder:
            return
        for inner in source.found.bundled:
            path = f"{last.path.removesuffix('.md')}/{inner}"
            try:
                data = _read_bytes(source.folder / inner, _MAX_COPIED)
                held = find_target(self._vault, path)
                before = held.read_bytes() if held.exists() else None
            except (OSError, UnreadableInput) as exc:
                problems.append(Problem(str(source.folder / inner), 1, f"not copied: {exc}"))
                continue
            secret = find_secret(data.decode("utf-8", "replace"))
            if secret or (before is not None and before != data and not self._update):
                why = (
                    f"it contains what looks like {secret}"
                    if secret
                    else f"{path} says something else; --update takes it over"
                )
                problems.append(Problem(str(source.folder / inner), 1, f"not copied: {why}"))
            elif before != data:
                reason = f"It goes with the skill {last.name}."
                self.changes.append(
                    Change(path, WriteFile(data), reason, planned=None if before is None else hash_of(before))
                )

    def _note(self, name: str, entry_id: str, path: str, action: str, message: str = "") -> None:
        from memory_kb.learning.procedures.skillplans import SkillMoved

        self.moved.append(SkillMoved(name, entry_id, path, action, message))


def read_sources(source: Path, problems: list[Problem]) -> Iterator[_Source]:
    """Yield the skills of a file or of all below a folder; one that cannot be read becomes a problem."""
    if source.is_dir():
        for folder, folders, names in os.walk(source):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if Path(folder, name).is_symlink():
                    continue
                if name.lower() == _SKILL_FILE or name.lower() in ("skills.yaml", "skills.yml"):
                    try:
                        yield from _read_one(Path(folder) / name, problems)
                    except UnreadableInput as exc:
                        problems.append(Problem(str(Path(folder) / name), 1, str(exc)))
        return
    yield from _read_one(source, problems)


def _read_one(file: Path, problems: list[Problem]) -> Iterator[_Source]:
    from memory_kb.learning.procedures.skillfiles import parse_catalogue, parse_skill_file

    text = _read_bytes(file, _MAX_READ).decode("utf-8", "replace")
    if file.suffix.lower() in CATALOGUES:
        skills, wrong = parse_catalogue(text, str(file))
        problems += wrong
        yield from map(_Source, skills)
        return
    if file.suffix.lower() != ".md":
        raise UsageError(f"{file} is neither a catalogue nor a SKILL.md", "its name must end in .yaml or .md")
    has_folder = file.name.lower() == _SKILL_FILE
    folder = Path(os.path.abspath(file)).parent
    bundled = _list_files(folder, file.name, problems) if has_folder else ()
    yield _Source(
        parse_skill_file(text, str(file), folder.name if has_folder else file.stem, bundled),
        folder if has_folder else None,
    )


def _list_files(top: Path, own: str, problems: list[Problem]) -> tuple[str, ...]:
    """Return the files below a skill's folder but for its `SKILL.md`, hidden ones and links left out."""
    found: list[str] = []
    for folder, folders, names in os.walk(top):
        inner = Path(folder).relative_to(top)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not (Path(folder) / name / "SKILL.md").exists()
        )
        plain = (
            name
            for name in sorted(names)
            if not name.startswith(".") and not os.path.islink(os.path.join(folder, name))
        )
        found += [(inner / name).as_posix() for name in plain if not (folder == str(top) and name == own)]
    readable = [name for name in found if name.isprintable()]
    if len(readable) > _MAX_BUNDLED:
        problems.append(Problem(str(top), 1, f"has {len(readable):,} files; the first {_MAX_BUNDLED} are listed"))
    return tuple(readable[:_MAX_BUNDLED])


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
    from memory_kb.learning.procedures.skillplans import SkillMoved
    from memory_kb.notes.changes import FileEdit, apply, read_if_there

    before = read_if_there(str(file), file)
    if before == data:
        return SkillMoved(name, entry_id, str(file), "unchanged")
    if before is not None and not force:
        return SkillMoved(
            name, entry_id, str(file), "left", "there is a file that says something else; --force replaces it"
        )
    if not dry_run:
        apply(FileEdit(str(file), file, before, data))
    return SkillMoved(name, entry_id, str(file), "written")
