"""Parse, write and update the Markdown of a skill, keeping what people wrote."""

from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.errors import CannotSplice
from memory_kb.markdown.lists_and_fences import (
    Section,
    clean_item,
    fence,
    find_fence,
    find_items,
    find_sections,
    has_open_fence,
    plain_lines,
    read_list,
    render_items,
)
from memory_kb.model import Span

#: The parts in the order of their sections, with the headings that are written.
PARTS = {
    "prerequisites": "Prerequisites",
    "steps": "Steps",
    "errors": "Common Errors & Fixes",
    "exit_criteria": "Exit Criteria",
    "template": "Template",
}
_PART_OF = {heading.lower(): part for part, heading in PARTS.items()}
_BLANK = " \t\r\n"


class SkillText(NamedTuple):
    """What a skill says; a part that is None is not spoken of. Each of `errors` reads `error: fix`."""

    name: str
    description: str | None = None
    prerequisites: tuple[str, ...] | None = None
    steps: tuple[str, ...] | None = None
    errors: tuple[str, ...] | None = None
    exit_criteria: tuple[str, ...] | None = None
    template: str | None = None


def render_skill(skill: SkillText) -> str:
    """Return the body of a new skill, with all sections but for a template that it has not got.

    Example:
        >>> render_skill(SkillText("Ship", "Weekly.", template="make {target}")).split("\\n\\n")[:3]
        ['# Skill: Ship', 'Weekly.', '## Prerequisites']
    """
    blocks = [f"# Skill: {skill.name}", skill.description or ""]
    for part, heading in PARTS.items():
        value = getattr(skill, part)
        if part != "template" or value is not None:
            blocks += [f"## {heading}", _render_part(part, value)]
    return "\n\n".join(filter(None, blocks))


def _render_part(part: str, value: Sequence[str] | str | None) -> str:
    if part == "template":
        return fence(str(value)) if value is not None else ""
    return render_items(tuple(value or ()), is_numbered=part == "steps")


def parse_skill(body: str) -> SkillText:
    """Read the body of a skill, however it was written.

    Example:
        >>> parse_skill("# Skill: Ship\\n\\n## steps\\n* Tag.\\n* Push,\\n  then rest.\\n\\n## Notes\\nFriday is bad.").steps
        ('Tag.', 'Push,\\nthen rest.')
    """
    text = plain_lines(body)
    sections = find_sections(text)
    parts = {part: _read_part(text, part, section.content) for part, section in _known(sections).items()}
    title = without_label(next((section.heading for section in sections if section.level == 1), ""))
    about = text[slice(*_preamble(text, sections))].strip().partition("\n\n")[0]
    return SkillText(title, " ".join(about.split()) or None, **parts)  # type: ignore[arg-type]


def without_label(title: str) -> str:
    """Return a title without the word `Skill:`."""
    head, colon, tail = title.partition(":")
    return tail.strip() if colon and head.strip().lower() == "skill" else title


def _read_part(text: str, part: str, place: Span) -> tuple[str, ...] | str:
    if part != "template":
        return read_list(text, place)
    found = find_fence(text, place)
    return text[slice(*found.inner)] if found else text[slice(*place)].strip("\n")


def _known(sections: Sequence[Section]) -> dict[str, Section]:
    """Return the sections that hold a part; the first of each."""
    known: dict[str, Section] = {}
    for section in sections:
        part = _PART_OF.get(" ".join(section.heading.lower().rstrip(":").split()))
        if part and section.level == 2:
            known.setdefault(part, section)
    return known


def _preamble(text: str, sections: Sequence[Section]) -> Span:
    """Return what comes before the first section of the second level, without the title."""
    if sections and sections[0].level == 1:
        return sections[0].content
    return Span(0, sections[0].span.start if sections else len(text))


def update_body(body: str, new: SkillText, described: str | None, newline: str = "\n") -> str:
    """Return a body with those parts replaced that `new` speaks of; every other byte stays.

    A part that says the same stays as it is written, a missing section is put at the end, and prose around a list
    stays. `described` is the description so far: where the body does not repeat it, people's words under the title
    stay.
    """
    if new.description is not None:
        body = _update_description(body, new.description, described or "", newline)
    for part in PARTS:
        value = getattr(new, part)
        if value is None:
            continue
        section = _known(find_sections(body)).get(part)
        rendered = _render_part(part, value).replace("\n", newline)
        if section is None:
            body = _append(body, part, rendered, newline)
        elif not _is_same_part(part, getattr(parse_skill(body), part), value):
            body = _replace(body, part, section.content, rendered, newline)
    return body


def _is_same_part(part: str, old: Sequence[str] | str, new: Sequence[str] | str) -> bool:
    if part == "template":
        return plain_lines(str(old)) == plain_lines(str(new))
    return list(map(clean_item, old)) == list(map(clean_item, new))


def _update_description(body: str, new: str, described: str, newline: str) -> str:
    sections = find_sections(body)
    place = _preamble(body, sections)
    old = body[slice(*place)]
    if not old.strip(_BLANK):
        has_title = bool(sections) and sections[0].level == 1
        return _put(body, place, new, newline) if has_title else body
    if " ".join(old.split()) != " ".join(described.split()):
        return body
    return body[: place.start] + old.replace(old.strip(), new, 1) + body[place.end :]


def _replace(body: str, part: str, place: Span, rendered: str, newline: str) -> str:
    """Put a part where its fence or list is; where its section has none, in place of the whole content."""
    if part == "template":
        found = find_fence(body, place)
        inner = found.outer if found else None
    else:
        # Prose by itself would be read as the part, so it goes with a list that is emptied.
        items = find_items(body, place) if rendered else []
        inner = Span(items[0].span.start, items[-1].span.end) if items else None
    if inner is None:
        return _put(body, place, rendered, newline)
    return body[: inner.start] + rendered + body[inner.end :]


def _put(body: str, place: Span, text: str, newline: str) -> str:
    """Return a body with the content of a section replaced; the blank lines behind it stay."""
    old = body[slice(*place)]
    lead = newline if body[: place.start].endswith("\n") else newline * 2
    blank = newline * (2 if place.end < len(body) else 1)
    tail = old[len(old.rstrip(_BLANK)) :] if old.strip(_BLANK) else blank
    return f"{body[: place.start]}{lead}{text}{tail}{body[place.end :]}"


def _append(body: str, part: str, rendered: str, newline: str) -> str:
    """Put a section at the end."""
    if has_open_fence(body):
        raise CannotSplice(f"{PARTS[part]} cannot be added to a text that ends in an open code fence; close the fence")
    block = f"## {PARTS[part]}{newline}{newline}{rendered}".rstrip()
    text = body.rstrip("\r\n")
    return f"{text}{newline * 2 if text else ''}{block}{body[len(text) :] or newline}"
