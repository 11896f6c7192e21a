"""Playbooks in YAML and skills as SKILL.md, in and out."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.credentials import find_secret
from memory_kb.errors import CannotSplice, Forgotten, UnreadableInput, UsageError
from memory_kb.learning.skills import SkillDraft, SkillText, make_skill, make_slug, parse_skill, render_skill
from memory_kb.markdown.fields import parse_date, read_text, read_words
from memory_kb.model import Location, Problem
from memory_kb.store.plan import Change, Memory
from memory_kb.text import shorten, slugify
from memory_kb.yaml_loader import InvalidBlock, load_mapping

if TYPE_CHECKING:
    import yaml

    from memory_kb.learning.skills import SkillMoved
    from memory_kb.store.plan import Change
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


#: A catalogue may be as large as this many blocks of frontmatter.
_SCALE = 64
#: Fields of our own that a foreign file's words must not be read as.
OWN_FIELDS = frozenset(
    (
        *(
            "id",
            "kind",
            "type",
            "domain",
            "importance",
            "phase",
            "status",
            "reinforcement_count",
            "last_reinforced",
            "created_at",
            "title",
            "tags",
        ),
        *(
            "priority",
            "applies_to",
            "source",
            "extraction_scope",
            "session_id",
            "session_task",
            "agent",
            "sources",
            "links",
            "flags",
            "pinned",
        ),
        *(
            "promoted_from",
            "promoted_at",
            "confidence",
            "maturity",
            "success_count",
            "failure_count",
            "usage_count",
            "last_applied",
            "category",
        ),
        *(
            "name",
            "description",
            "created_by",
            "date",
            "created",
            "template",
            "alpha",
            "beta",
            "imported",
            "bundled_files",
            "tombstone",
            "is_body",
        ),
    )
)
_SKILLFILES_LISTS = ("prerequisites", "steps", "errors", "exit_criteria")
#: What of ours a SKILL.md carries in its `metadata`, whose values are texts.
_METADATA = "memory-kb-"
_OPENING = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_PAIR = re.compile(r"([\w-]+)[ \t]*:[ \t]*(.*)")
_PLAIN_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_PLAIN_NAME, _MAX_DESCRIPTION = 64, 1024


class FoundSkill(NamedTuple):
    """A skill that a file holds, with the outcomes it brings, and where it stands."""

    draft: SkillDraft
    success_count: int
    failure_count: int
    path: str
    line: int = 1
    bundled: tuple[str, ...] = ()


class KeptSkill(NamedTuple):
    """A skill of the vault with its body as it is written."""

    memory: Memory
    body: str


# -- the catalogue -------------------------------------------------------------------------


def parse_catalogue(text: str, path: str) -> tuple[tuple[FoundSkill, ...], tuple[Problem, ...]]:
    """Read a catalogue: a list of skills, by itself or below `skills`, or skills by their ids.

    A skill without a name becomes a problem, and the others go on.

    Raises:
        UnreadableInput: it is no YAML, or holds no skills.

    Example:
        >>> found, _ = parse_catalogue("- name: Ship\\n  template: make {target}\\n  alpha: 8.0\\n  beta: 2.0\\n", "skills.yaml")
        >>> found[0].draft.text.template, found[0].success_count, found[0].failure_count
        ('make {target}', 7, 1)
    """
    text = text.removeprefix("\ufeff")
    start = re.match(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?:---[ \t]*\r?\n)?", text)
    skipped = text.count("\n", 0, start.end()) if start else 0
    rest = text[start.end() if start else 0 :]
    is_list = re.match(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:-[ \t\r\n]|\[)", rest) is not None
    whole, first = (f"skills:\n{_indented(rest)}", skipped) if is_list else (rest, skipped + 1)
    try:
        held = load_mapping(whole, _SCALE)
    except InvalidBlock as exc:
        raise UnreadableInput(
            f"{path}:{first + exc.line}: {str(exc).replace('the frontmatter', 'the catalogue')}", "mend the YAML"
        ) from exc
    listed = held.get("skills", held)
    items = (
        [(None, item) for item in listed]
        if isinstance(listed, list)
        else list(listed.items())
        if isinstance(listed, dict)
        else []
    )
    if not items:
        raise UnreadableInput(
            f"{path}:1: there are no skills in it",
            "a catalogue is a list of skills with `name`, `description` and `template`",
        )
    lines = _item_lines(whole, has_key="skills" in held)
    found, problems = [], []
    for (key, item), line in zip(items, lines, strict=False):
        skill = _read_item(item, key, path, first + line) if isinstance(item, dict) else None
        if skill:
            found.append(skill)
        else:
            problems.append(Problem(path, first + line, "a skill without a name; passed over, give it a `name`"))
    return tuple(found), tuple(problems)


def _indented(text: str) -> str:
    return text if text.lstrip()[:1] == "-" else "".join(f"  {line}" for line in text.splitlines(keepends=True))


def _item_lines(whole: str, *, has_key: bool) -> list[int]:
    """Return the line of each item, counted from 0."""
    import yaml

    from memory_kb.yaml_loader import yaml_loader

    node: Any = yaml.compose(whole, yaml_loader())
    if has_key:
        node = next(value for key, value in node.value if key.value == "skills")
    return [(child[0] if isinstance(child, tuple) else child).start_mark.line for child in node.value]


def _read_item(item: Mapping[str, Any], key: str | None, path: str, line: int) -> FoundSkill | None:
    entry_id = read_text(item.get("id")) or key
    name = read_text(item.get("name")) or entry_id
    if name is None:
        return None
    description, template = read_text(item.get("description")), item.get("template")
    template = None if template is None else str(template)
    lists = {
        part: tuple(str(one) for one in item[part]) for part in _SKILLFILES_LISTS if isinstance(item.get(part), list)
    }
    body = (
        template if template is not None and (item.get("is_body") is True or template.startswith("# Skill: ")) else None
    )
    text = SkillText(name, description, template=None if body is not None else template, **lists)
    wins, losses = _count(item, "success_count", "alpha"), _count(item, "failure_count", "beta")
    fields: dict[str, Any] = {"success_count": wins, "failure_count": losses}
    fields |= {name: str(item[name]) for name in ("created_at", "last_applied") if parse_date(item.get(name))}
    fields |= {
        name: value
        for name, value in item.items()
        if name not in OWN_FIELDS and name not in _SKILLFILES_LISTS and value is not None
    }
    tags = read_words(item.get("tags")) if item.get("tags") else None
    draft = SkillDraft(
        text, tags, created_by=read_text(item.get("created_by")), body=body, fields=tuple(fields.items()), id=entry_id
    )
    return FoundSkill(draft, wins, losses, path, line)


def _count(item: Mapping[str, Any], name: str, parameter: str) -> int:
    """Return a count, or what a parameter of the distribution says of it."""
    for key, less in ((name, 0), (parameter, 1)):
        value = item.get(key)
        try:
            if value is not None and not isinstance(value, bool):
                return min(1_000_000_000, max(0, round(float(value)) - less))
        except (TypeError, ValueError, OverflowError):
            continue
    return 0


def render_catalogue(skills: Iterable[KeptSkill]) -> str:
    """Return skills as a catalogue.

    A skill that is more than a template is its whole body in the place of one.
    """
    return _dump({"skills": [_catalogue_item(skill) for skill in skills]})


def _catalogue_item(kept: KeptSkill) -> dict[str, Any]:
    skill, body = make_skill(kept.memory), _newlines(kept.body).strip("\n")
    said = parse_skill(body, skill.name)
    is_plain = (
        render_skill(SkillText(skill.name, skill.description, template=said.template)) == body
        and said.template is not None
    )
    item = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "template": said.template if is_plain else body,
        "tags": list(skill.tags),
        "success_count": skill.success_count,
        "failure_count": skill.failure_count,
        "alpha": skill.alpha,
        "beta": skill.beta,
        "created_by": skill.created_by,
        "created_at": skill.created_at,
    }
    if not is_plain and not body.startswith("# Skill: "):
        item["is_body"] = True
    return item | {
        name: value
        for name, value in kept.memory.metadata.items()
        if name not in OWN_FIELDS and name not in _SKILLFILES_LISTS
    }


# -- folders with a SKILL.md ---------------------------------------------------------------


def parse_skill_file(text: str, path: str, folder: str, bundled: Sequence[str] = ()) -> FoundSkill:
    """Read a `SKILL.md`: its frontmatter, further keys included, and its body as it is.

    A block that is not quite YAML, as where a description has a colon in it, is read line by line.
    `folder` names a skill that does not name itself.

    Example:
        >>> found = parse_skill_file("---\\nname: pdf\\ndescription: Use when: a PDF is asked for\\n---\\nRead it.\\n", "pdf/SKILL.md", "pdf")
        >>> found.draft.text.description, found.draft.body
        ('Use when: a PDF is asked for', 'Read it.')
    """
    head, body, line = _cut_skill(text)
    own = head.get("metadata")
    metadata = dict(own) if isinstance(own, dict) else {}
    ours = {
        name: metadata.pop(f"{_METADATA}{name}")
        for name in ("name", "tags", "success-count", "failure-count", "created-by")
        if f"{_METADATA}{name}" in metadata
    }
    name = read_text(ours.get("name")) or read_text(head.get("name")) or folder
    fields: dict[str, Any] = {}
    wins, losses = (_count({"count": ours.get(f"{which}-count")}, "count", "") for which in ("success", "failure"))
    fields |= {"success_count": wins, "failure_count": losses}
    fields |= {key: value for key, value in head.items() if key not in OWN_FIELDS and key != "metadata"}
    if metadata or (own and not isinstance(own, dict)):
        fields["metadata"] = metadata or own
    set_aside = {key: value for key, value in head.items() if key in OWN_FIELDS - {"name", "description"}}
    if set_aside:
        fields["imported"] = set_aside
    if bundled:
        fields["bundled_files"] = list(bundled)
    tags = read_words(ours["tags"] if "tags" in ours else head.get("tags")) or None
    said = parse_skill(body, name)
    description = read_text(head.get("description")) or said.description
    draft = SkillDraft(
        SkillText(name, description),
        tags,
        created_by=read_text(ours.get("created-by")),
        body=body.strip("\r\n").rstrip(),
        fields=tuple(fields.items()),
    )
    return FoundSkill(draft, wins, losses, path, line, tuple(bundled))


def _cut_skill(text: str) -> tuple[dict[str, Any], str, int]:
    """Return the frontmatter of a text, its body, and the line that the frontmatter begins at."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return {}, text.removeprefix("\ufeff"), 1
    block = text[opening.end() : closing.start()]
    try:
        return load_mapping(block), text[closing.end() :], 2
    except InvalidBlock:
        return _read_lines(block), text[closing.end() :], 2


def _read_lines(block: str) -> dict[str, Any]:
    """Read a block as lines of `key: value`; an indented line goes on with the one before."""
    head: dict[str, Any] = {}
    last = ""
    for line in block.splitlines():
        found = _PAIR.match(line)
        if found:
            last = found[1]
            head[last] = "" if found[2] in ("|", ">", "|-", ">-") else found[2].strip().strip("\"'")
        elif last and line.strip():
            head[last] = f"{head[last]} {line.strip()}".strip()
    return head


def plain_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a name as folders of skills have it: small ASCII letters, digits and dashes.

    Example:
        >>> plain_name("Café: Größe!"), plain_name("ship", {"ship"})
        ('cafe-groe', 'ship-2')
    """
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = make_slug(folded)[:_MAX_PLAIN_NAME].strip("-")
    if slugify(folded) == "note" and "note" not in folded.lower():
        plain = f"skill-{hashlib.sha256(name.encode('utf-8', 'replace'), usedforsecurity=False).hexdigest()[:8]}"
    names = (f"{plain}-{number}" if number > 1 else plain for number in range(1, 1_000_000))
    return next(name for name in names if name not in taken)


def render_skill_file(kept: KeptSkill, plain: str) -> str:
    """Return a skill as a `SKILL.md` whose folder has a plain name.

    What was imported comes back as it was; outcomes and tags go into `metadata`.
    """
    skill = make_skill(kept.memory)
    meta = kept.memory.metadata
    body = _newlines(kept.body).strip("\n").rstrip()
    restored = meta.get("imported")
    restored = dict(restored) if isinstance(restored, dict) else {}
    own = meta.get("metadata")
    metadata: dict[str, Any] = dict(own) if isinstance(own, dict) else {}
    told = {
        "name": skill.name if skill.name != plain else None,
        "tags": ", ".join(skill.tags) if skill.tags != read_words(restored.get("tags")) else None,
        "success-count": str(skill.success_count) if skill.success_count else None,
        "failure-count": str(skill.failure_count) if skill.failure_count else None,
        "created-by": skill.created_by,
    }
    metadata |= {f"{_METADATA}{name}": value for name, value in told.items() if value}
    description = (
        skill.description
        or parse_skill(body).description
        or next((line for line in body.splitlines() if line.strip("# ")), skill.name)
    )
    head: dict[str, Any] = {"name": plain, "description": shorten(description, _MAX_DESCRIPTION)}
    head |= {name: value for name, value in meta.items() if name not in OWN_FIELDS and name != "metadata"} | restored
    if metadata or own:
        head["metadata"] = metadata or own
    return f"---\n{_dump(head)}---\n\n{body}\n"


def is_plain_name(name: str) -> bool:
    """Tell whether a name can be that of a folder as it is.

    Example:
        >>> is_plain_name("release-train"), is_plain_name("Release train")
        (True, False)
    """
    return _PLAIN_NAME.fullmatch(name) is not None and len(name) <= _MAX_PLAIN_NAME


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _dump(value: object) -> str:
    import yaml

    return str(yaml.dump(value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=1 << 20))


@functools.cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    class SkillDumper(yaml.SafeDumper):
        """The safe dumper with texts of several lines as they are."""

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    SkillDumper.add_representer(str, represent_text)
    SkillDumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign]
    return SkillDumper


CATALOGUES = (".yaml", ".yml", ".json")
_SKILL_FILE = "skill.md"
#: Bytes of a file that is read, and of one that is copied; files listed for one skill.
_MAX_READ, _MAX_COPIED, _MAX_BUNDLED = 4_000_000, 5_000_000, 500


class _Source(NamedTuple):
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
        self._name_skill = name_skill
        self._vault = vault
        self._writer = writer
        self._place = place
        self._update = update
        self._force = force
        self._memories = memories
        self._planned: list[str] = []
        self._names: dict[str, str] = {}
        self.changes: list[Change] = []
        self.moved: list[SkillMoved] = []

    def take(self, source: _Source) -> None:
        """Plan what one skill needs, and note what becomes of it."""
        from memory_kb.learning.skills import check_skill, find_same, key_of, plan_new_skill

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
        entry_id, path = self._name_skill(draft, self._place, self._memories, self._planned)
        self._planned += [entry_id, path]
        self._names[key] = path
        self.changes.append(
            plan_new_skill(draft, entry_id, path, self._vault.clock(), f"Imported from {Path(found.path).name}.")
        )
        self._note(draft.text.name, entry_id, path, "created")

    def _meet(self, same: Memory, found: FoundSkill) -> None:
        """Plan for a skill that is there already: more outcomes count, its text stays unless it is to change."""
        from memory_kb.learning.skills import SkillDraft, SkillText, name_of, plan_skill_update

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
        from memory_kb.store.plan import Change, WriteFile
        from memory_kb.store.targets import find_target
        from memory_kb.text import hash_of

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
        from memory_kb.learning.skills import SkillMoved

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
    from memory_kb.learning.skills import SkillMoved
    from memory_kb.store.files import FileEdit, apply, read_if_there

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
