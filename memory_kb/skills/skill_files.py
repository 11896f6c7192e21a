"""Read and write skills as files of other tools: YAML catalogues and folders with a SKILL.md."""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.playbook_file import cut_items, read_items
from memory_kb.learning.render_entry import without_empty
from memory_kb.markdown.fields import FIELDS
from memory_kb.markdown.lists_and_fences import plain_lines
from memory_kb.memory import Memory
from memory_kb.model import Problem
from memory_kb.regular_files import read_file, visible_files
from memory_kb.skills.skill import SkillDraft, SkillMoved, make_skill
from memory_kb.skills.skill_text import SkillText, parse_skill, render_skill
from memory_kb.store.file_edits import FileEdit, apply, read_if_there
from memory_kb.text import as_text, first_free, hash_of, make_slug, parse_date, printable, read_words, shorten, slugify
from memory_kb.yaml_loader import InvalidBlock, YamlItem, load_mapping

if TYPE_CHECKING:
    import yaml


#: A skill of a catalogue may be as large as this many blocks of frontmatter.
_SCALE = 64
#: Fields of our own that a foreign file's words must not be read as.
_OWN = (FIELDS.keys() - {"aliases"}) | {
    *("extraction_scope", "session_task", "created", "created_by", "template", "alpha", "beta"),
    *("imported", "bundled_files", "tombstone", "is_body", "metadata"),
}
#: What of ours a SKILL.md carries in its `metadata`, whose values are texts.
_METADATA = "memory-kb-"
_CARRIED = ("name", "tags", "success-count", "failure-count", "created-by")
_FRONTMATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_MAX_PLAIN_NAME, _MAX_DESCRIPTION = 64, 1024
CATALOGUES = (".yaml", ".yml", ".json")
_CATALOGUE_NAMES = ("skills.yaml", "skills.yml")
_SKILL_FILE = "skill.md"
#: Bytes of a file that is read, and of one that is copied.
_MAX_READ, MAX_COPIED = 4_000_000, 5_000_000


def parse_catalogue(text: str, path: str) -> tuple[tuple[SkillDraft, ...], tuple[Problem, ...]]:
    """Read a catalogue: a list of skills, by itself or below `skills`."""
    items = cut_items(text, path, ("skills",), "skills")
    if not items:
        raise UnreadableInput(f"{path}:1: there are no skills in it", "a skill has a `name`, and mostly a `template`")

    def make(values: Mapping[str, Any], item: YamlItem) -> SkillDraft | None:
        return _read_item(values, path, item.line)

    return read_items(items, path, "a skill without a name; skipped, give it a `name`", make, _SCALE)


def _read_item(item: Mapping[str, Any], path: str, line: int) -> SkillDraft | None:
    entry_id = as_text(item.get("id"))
    name = as_text(item.get("name")) or entry_id
    if name is None or not item:
        return None
    template = None if item.get("template") is None else str(item["template"])
    is_body = template is not None and (item.get("is_body") is True or template.startswith("# Skill: "))
    text = SkillText(name, as_text(item.get("description")), template=None if is_body else template)
    fields: dict[str, Any] = without_empty({"created_by": as_text(item.get("created_by"))})
    fields |= {
        "success_count": _count(item, "success_count", "alpha"),
        "failure_count": _count(item, "failure_count", "beta"),
    }
    fields |= {name: str(item[name]) for name in ("created_at", "last_applied") if parse_date(item.get(name))}
    fields |= {name: value for name, value in _foreign(item).items() if value is not None}
    return SkillDraft(
        text,
        read_words(item["tags"]) if item.get("tags") else None,
        body=template if is_body else None,
        fields=fields,
        id=entry_id,
        path=path,
        line=line,
    )


def _foreign(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _OWN}


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _count(item: Mapping[str, Any], name: str, parameter: str = "") -> int:
    """Return a count, or what a parameter of the distribution, one more than it, says of it."""
    for key, less in ((name, 0), (parameter, 1)):
        if item.get(key) is not None:
            with suppress(TypeError, ValueError, OverflowError):
                return min(1_000_000_000, max(0, round(float(item[key])) - less))
    return 0


def render_catalogue(skills: Iterable[Memory]) -> str:
    """Return skills with their whole texts as a catalogue; what is more than a template is in the place of one."""
    return _dump({"skills": [_catalogue_item(skill) for skill in skills]})


def _catalogue_item(memory: Memory) -> dict[str, Any]:
    skill, body = make_skill(memory), plain_lines(memory.text).strip("\n")
    template = parse_skill(body).template
    is_plain = (
        template is not None and render_skill(SkillText(skill.name, skill.description, template=template)) == body
    )
    item: dict[str, Any] = {"id": skill.id, "name": skill.name, "description": skill.description}
    item |= {"template": template if is_plain else body, "tags": list(skill.tags)}
    names = ("success_count", "failure_count", "alpha", "beta", "created_by", "created_at")
    item |= {name: getattr(skill, name) for name in names}
    if not is_plain and not body.startswith("# Skill: "):
        item["is_body"] = True
    return item | _foreign(memory.metadata)


def parse_skill_file(text: str, path: str, folder: str) -> SkillDraft:
    """Read a `SKILL.md`: its frontmatter, further keys included, and its body as it is.

    `folder` names a skill that does not name itself.

    Raises:
        UnreadableInput: its frontmatter is no YAML.
    """
    block = _FRONTMATTER.match(text)
    try:
        head, body = (load_mapping(block[1]), text[block.end() :]) if block else ({}, text.removeprefix("\ufeff"))
    except InvalidBlock as exc:
        raise UnreadableInput(f"{path}:{exc.line + 2}: {exc}", "fix the line and import it again") from exc
    metadata = _mapping(head.get("metadata"))
    ours = {name: metadata.pop(f"{_METADATA}{name}", None) for name in _CARRIED}
    fields: dict[str, Any] = without_empty({"created_by": as_text(ours["created-by"])})
    fields |= {"success_count": _count(ours, "success-count"), "failure_count": _count(ours, "failure-count")}
    fields |= _foreign(head) | without_empty({"metadata": metadata or None})
    name = as_text(ours["name"]) or as_text(head.get("name")) or folder
    described = as_text(head.get("description")) or parse_skill(body).description
    return SkillDraft(
        SkillText(name, None if described == name else described),  # a file has to describe its skill somehow
        read_words(head.get("tags") if ours["tags"] is None else ours["tags"]) or None,
        body=body.strip("\r\n").rstrip(),
        fields=fields,
        path=path,
        line=2 if block else 1,
    )


def plain_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a name as the folder of a skill: lower-case ASCII letters, digits and dashes."""
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = make_slug(folded)[:_MAX_PLAIN_NAME].strip("-")
    if slugify(folded) == "note" and "note" not in folded.lower():
        plain = f"skill-{hash_of(printable(name).encode())[:8]}"
    return first_free(plain, taken.__contains__)


def render_skill_file(memory: Memory, plain: str) -> str:
    """Return a skill with its whole text as a `SKILL.md` whose folder has a plain name.

    Further keys of a file that was imported come back; outcomes and tags go into `metadata`.
    """
    skill, body = make_skill(memory), plain_lines(memory.text).strip("\n").rstrip()
    carried = {
        "name": skill.name if skill.name != plain else None,
        "tags": ", ".join(skill.tags),
        "success-count": str(skill.success_count) if skill.success_count else None,
        "failure-count": str(skill.failure_count) if skill.failure_count else None,
        "created-by": skill.created_by,
    }
    metadata = _mapping(memory.metadata.get("metadata"))
    metadata |= {f"{_METADATA}{name}": value for name, value in carried.items() if value}
    description = skill.description or parse_skill(body).description or skill.name
    head = {"name": plain, "description": shorten(description, _MAX_DESCRIPTION)} | _foreign(memory.metadata)
    if metadata:
        head["metadata"] = metadata
    return f"---\n{_dump(head)}---\n\n{body}\n"


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
    return SkillDumper


def read_sources(source: Path, problems: list[Problem]) -> Iterator[SkillDraft]:
    """Yield the skills of a file or of all below a folder; one that cannot be read becomes a problem."""
    if not source.is_dir():
        yield from _read_one(source, problems)
        return
    for file in visible_files(source):
        if file.name.lower() not in (_SKILL_FILE, *_CATALOGUE_NAMES) or file.is_symlink():
            continue
        try:
            yield from _read_one(file, problems)
        except UnreadableInput as exc:
            problems.append(Problem(str(file), 1, str(exc)))


def _read_one(file: Path, problems: list[Problem]) -> Iterator[SkillDraft]:
    text = read_limited(file, _MAX_READ).decode("utf-8", "replace")
    if file.suffix.lower() in CATALOGUES:
        skills, wrong = parse_catalogue(text, str(file))
        problems += wrong
        yield from skills
    elif file.suffix.lower() == ".md":
        is_folder = file.name.lower() == _SKILL_FILE
        yield parse_skill_file(text, str(file), Path(os.path.abspath(file)).parent.name if is_folder else file.stem)
    else:
        raise UsageError(f"{file} is neither a catalogue nor a SKILL.md", "its name must end in .yaml or .md")


def list_files(top: Path) -> list[str]:
    """Return the files below a skill's folder, except `SKILL.md`, hidden files, links and other skills."""
    files = [file.relative_to(top) for file in visible_files(top)]
    skills = {file.parent for file in files if file.name.lower() == _SKILL_FILE and file.parent != Path()}
    own = (file for file in files if skills.isdisjoint(file.parents) and str(file).lower() != _SKILL_FILE)
    kept = (file for file in own if not file.name.startswith(".") and not (top / file).is_symlink())
    return [file.as_posix() for file in kept if file.name.isprintable()]


def read_limited(file: Path, limit: int) -> bytes:
    """Return the bytes of a file, which may not be larger than the limit."""
    try:
        data = read_file(file, limit + 1)
    except OSError as exc:
        raise UnreadableInput(f"{file} cannot be read: {exc.strerror}", "name a file, or a folder of skills") from exc
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
        apply(FileEdit(str(file), before, data), file)
    return SkillMoved(name, entry_id, str(file), "written")
