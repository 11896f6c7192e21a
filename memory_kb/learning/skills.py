"""Find, rank, create and credit skills."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import NamedTuple

from memory_kb.credentials import locate_in
from memory_kb.errors import AmbiguousId, CannotSplice, Forgotten, SecretRefused, UnknownEntry, UsageError
from memory_kb.learning.new_entry import Draft, check_draft, render
from memory_kb.learning.playbook import in_force
from memory_kb.markdown.fields import read_text
from memory_kb.markdown.scanner import (
    Section,
    clean_item,
    fence,
    find_fence,
    find_items,
    find_sections,
    has_open_fence,
    plain_lines,
    render_items,
)
from memory_kb.markdown.splice import Value, change_fields, find_entry, newline_of, pin_id, refuse_broken
from memory_kb.model import LIVE_STATUSES, Hit, Location, Problem, RunReport, Span
from memory_kb.store.plan import Change, Memory, NoteText, create_file, replace_entry
from memory_kb.text import slugify

#: What skills are ordered by: a sample of the distribution, its mean, or its upper bound.
ORDERS = ("thompson", "mean", "ucb")
#: Standard deviations above the mean that the upper bound stands at.
_UPPER = 1.96
#: Candidates of a search for each hit that is wanted, and how well they must fit beside the best.
_POOL, _FITTING = 2, 0.5


class Beta(NamedTuple):
    """What is known of a skill's chance to succeed, from a uniform prior."""

    alpha: float = 1.0
    beta: float = 1.0

    @property
    def mean(self) -> float:
        """The chance that is expected.

        Example:
            >>> Beta(8, 2).mean, Beta().mean
            (0.8, 0.5)
        """
        return self.alpha / (self.alpha + self.beta)

    @property
    def sd(self) -> float:
        """How far the chance may be from that, as a standard deviation.

        Example:
            >>> round(Beta(8, 2).sd, 4), round(Beta().sd, 4)
            (0.1206, 0.2887)
        """
        total = self.alpha + self.beta
        return math.sqrt(self.alpha * self.beta / (total * total * (total + 1)))

    @property
    def ucb(self) -> float:
        """The mean and 1.96 standard deviations: high for what did well, and for what is new.

        Example:
            >>> round(Beta(8, 2).ucb, 3), round(Beta().ucb, 3)
            (1.036, 1.066)
        """
        return self.mean + _UPPER * self.sd


def make_beta(success_count: int, failure_count: int) -> Beta:
    """Return the distribution for some outcomes.

    Example:
        >>> make_beta(7, 1)
        Beta(alpha=8.0, beta=2.0)
    """
    return Beta(success_count + 1.0, failure_count + 1.0)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it is listed.

    Attributes:
        text: its body.
        score: what it was ordered by; None where nothing was.
    """

    id: str
    name: str
    description: str | None
    tags: tuple[str, ...]
    success_count: int
    failure_count: int
    alpha: float
    beta: float
    mean: float
    ucb: float
    created_by: str | None
    created_at: str | None
    scope: str
    path: str
    line: int
    text: str
    score: float | None = None

    @property
    def chance(self) -> Beta:
        """What is known of its chance to succeed."""
        return Beta(self.alpha, self.beta)


@dataclass(frozen=True, slots=True)
class SkillSearch:
    """The skills that fit a query in the order to try them, and how far the search can be trusted."""

    query: str
    mode: str
    skills: tuple[Skill, ...]
    degraded: tuple[str, ...] = ()


def make_skill(memory: Memory) -> Skill:
    """Return an entry of kind skill as it is listed.

    Example:
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "Ship", "1. Tag", metadata={"name": "Ship it", "success_count": 7, "failure_count": 1})
        >>> skill = make_skill(memory)
        >>> skill.name, skill.alpha, skill.beta, skill.mean
        ('Ship it', 8.0, 2.0, 0.8)
    """
    wins, losses = memory.count("success_count"), memory.count("failure_count")
    chance = make_beta(wins, losses)
    return Skill(
        id=memory.id,
        name=name_of(memory),
        description=memory.word("description"),
        tags=memory.tags,
        success_count=wins,
        failure_count=losses,
        alpha=chance.alpha,
        beta=chance.beta,
        mean=round(chance.mean, 6),
        ucb=round(chance.ucb, 6),
        created_by=memory.word("created_by"),
        created_at=memory.created_at,
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
        text=memory.text,
    )


def name_of(memory: Memory) -> str:
    """Return what a skill is called: its name, else its title without the word `Skill:`.

    Example:
        >>> from memory_kb.model import Location
        >>> name_of(Memory("x", "a.md", "", Location(), "Skill: Ship it", ""))
        'Ship it'
    """
    head, colon, tail = memory.title.partition(":")
    titled = tail.strip() if colon and head.strip().lower() == "skill" else memory.title
    return memory.word("name") or titled or memory.id


def key_of(name: str) -> str:
    """Return a name as names are compared: in one case, with single spaces.

    Example:
        >>> key_of(" Ship  IT ")
        'ship it'
    """
    return " ".join(name.casefold().split())


def is_usable(memory: Memory) -> bool:
    """Tell whether an entry is a live skill that nothing has superseded."""
    return memory.kind == "skill" and memory.status in LIVE_STATUSES and not memory.is_superseded


def usable_skills(memories: Iterable[Memory]) -> tuple[Skill, ...]:
    """Return the live skills in force; of one id at several scopes the most specific."""
    return tuple(make_skill(memory) for memory in in_force(memories) if is_usable(memory))


def rank_skills(skills: Sequence[Skill], by: str, rng: Random) -> tuple[Skill, ...]:
    """Return skills best first, each with the score it has got.

    `thompson` draws one sample for each skill from its distribution, in the order of their
    ids, so that one seed gives one order whatever order they come in. `mean` and `ucb` draw
    nothing. Equal scores stand in the order of names.

    Raises:
        UsageError: there is no such order.

    Example:
        >>> from memory_kb.model import Location
        >>> def skill(name, wins, losses):
        ...     metadata = {"success_count": wins, "failure_count": losses}
        ...     return make_skill(Memory(name, f"{name}.md", "", Location(), name, "", metadata=metadata))
        >>> [(one.name, one.score) for one in rank_skills([skill("new", 0, 0), skill("good", 7, 1)], "mean", Random(1))]
        [('good', 0.8), ('new', 0.5)]
        >>> [one.name for one in rank_skills([skill("good", 7, 1), skill("new", 0, 0)], "ucb", Random(1))]
        ['new', 'good']
    """
    if by not in ORDERS:
        raise UsageError(f"skills cannot be ranked by {by!r}", f"it may be {', '.join(ORDERS)}")
    scored = [
        replace(skill, score=round(_score(skill.chance, by, rng), 6))
        for skill in sorted(skills, key=lambda skill: (skill.id, skill.path))
    ]
    return tuple(sorted(scored, key=lambda skill: (-(skill.score or 0.0), key_of(skill.name), skill.id, skill.path)))


def _score(chance: Beta, by: str, rng: Random) -> float:
    if by == "thompson":
        return rng.betavariate(chance.alpha, chance.beta)
    return chance.mean if by == "mean" else chance.ucb


def count_pool(limit: int) -> int:
    """Return how many candidates compete for a number of hits."""
    return _POOL * limit


def choose_candidates(hits: Sequence[Hit], skills: Iterable[Skill], limit: int) -> tuple[Skill, ...]:
    """Return the skills that fit a query well enough to compete.

    They are the first of the search, twice as many as are wanted, without those that fit less
    than half as well as the best: how often a skill worked says nothing of what it is for.
    """
    known = {skill.id: skill for skill in skills}
    best = max((hit.parts.relevance for hit in hits), default=0.0)
    fitting = dict.fromkeys(hit.id for hit in hits if hit.id in known and hit.parts.relevance >= _FITTING * best)
    return tuple(known[name] for name in fitting)[: count_pool(limit)]


def find_skill(memories: Iterable[Memory], wanted: str) -> Memory:
    """Return the live skill of an id, a name, or the unique beginning of an id.

    Raises:
        UnknownEntry: there is none.
        AmbiguousId: there are several.
    """
    skills = [memory for memory in in_force(memories) if is_usable(memory)]
    for found in (
        [memory for memory in skills if memory.id == wanted],
        [memory for memory in skills if key_of(name_of(memory)) == key_of(wanted)],
        [memory for memory in skills if wanted and memory.id.startswith(wanted)],
    ):
        if len(found) > 1:
            raise AmbiguousId(wanted, [f"{memory.path}:{memory.line}" for memory in found])
        if found:
            return found[0]
    raise UnknownEntry(wanted)


#: The parts in the order of their sections, with the headings that are written.
PARTS = {
    "prerequisites": "Prerequisites",
    "steps": "Steps",
    "errors": "Common Errors & Fixes",
    "exit_criteria": "Exit Criteria",
    "template": "Template",
}
#: Further spellings that are read.
_SPELLINGS = {
    "prerequisite": "prerequisites",
    "step": "steps",
    "procedure": "steps",
    "common errors and fixes": "errors",
    "common errors": "errors",
    "exit criterion": "exit_criteria",
} | {heading.lower(): part for part, heading in PARTS.items()}
_BLANK = " \t\r\n"
_SIGN = re.compile(r"#{1,6}(?:\s|$)|`{3}|~{3}|-{3}|={3}|[-*+>](?:\s|$)|\d{1,9}[.)]\s")


@dataclass(frozen=True, slots=True)
class SkillText:
    """What a skill says; a part that is None is not spoken of.

    Attributes:
        description: what it is for and when, on one line.
        errors: each as `error: fix`.
        template: a prompt or a piece of code, as it is.
    """

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
        >>> print(render_skill(SkillText("Ship", steps=("Tag {version}.", "Push."), errors=("rejected: pull first",))))
        # Skill: Ship
        <BLANKLINE>
        ## Prerequisites
        <BLANKLINE>
        ## Steps
        <BLANKLINE>
        1. Tag {version}.
        2. Push.
        <BLANKLINE>
        ## Common Errors & Fixes
        <BLANKLINE>
        - rejected: pull first
        <BLANKLINE>
        ## Exit Criteria
    """
    blocks = [f"# Skill: {skill.name}", _paragraph(skill.description or "")]
    for part, heading in PARTS.items():
        value = getattr(skill, part)
        if part != "template" or value is not None:
            blocks += [f"## {heading}", render_part(part, value)]
    return "\n\n".join(filter(None, blocks))


def _paragraph(line: str) -> str:
    """Return a line that is read as plain words, whatever sign it begins with."""
    return f"\\{line}" if _SIGN.match(line) else line


def render_part(part: str, value: Sequence[str] | str | None) -> str:
    """Return what stands below the heading of a part."""
    if part == "template":
        return fence(str(value)) if value is not None else ""
    return render_items(tuple(value or ()), is_numbered=part == "steps")


def parse_skill(body: str, name: str = "") -> SkillText:
    """Read the body of a skill, however it was written; `name` stands in for one it does not tell.

    Example:
        >>> parse_skill("# Skill: Ship\\n\\n## steps\\n* Tag.\\n* Push,\\n  then rest.\\n\\n## Notes\\nFriday is bad.").steps
        ('Tag.', 'Push,\\nthen rest.')
    """
    text = plain_lines(body)
    sections = find_sections(text)
    parts = {part: _read_part(text, part, section) for part, section in _known(sections).items()}
    titled = next((section.heading for section in sections if section.level == 1), "")
    head, colon, tail = titled.partition(":")
    titled = tail.strip() if colon and head.strip().lower() == "skill" else titled
    about = text[slice(*_preamble(text, sections))].strip().partition("\n\n")[0]
    return SkillText(titled or name, " ".join(about.split()) or None, **parts)  # type: ignore[arg-type]


def _read_part(text: str, part: str, section: Section) -> tuple[str, ...] | str:
    if part == "template":
        found = find_fence(text, section.content)
        return text[slice(*found.inner)] if found else text[slice(*section.content)].strip("\n")
    items = find_items(text, section.content)
    prose = text[slice(*section.content)]
    return (
        tuple(item.text for item in items)
        if items
        else tuple(" ".join(block.split()) for block in prose.split("\n\n") if block.strip())
    )


def _known(sections: Sequence[Section]) -> dict[str, Section]:
    """Return the sections that hold a part; the first of each."""
    known: dict[str, Section] = {}
    for section in sections:
        part = _SPELLINGS.get(" ".join(section.heading.lower().rstrip(":").split()))
        if part and section.level == 2:
            known.setdefault(part, section)
    return known


def _preamble(text: str, sections: Sequence[Section]) -> Span:
    """Return what stands before the first section of the second level, without the title."""
    title = next((section for section in sections if section.level == 1), None)
    if title and title == sections[0]:
        return title.content
    return Span(0, sections[0].span.start if sections else len(text))


def update_body(body: str, new: SkillText, described: str | None, newline: str = "\n") -> str:
    """Return a body with those parts replaced that `new` speaks of; every other byte stays.

    A part that says the same already stays as it is written, a section that is missing is put where
    it belongs, and prose around a list stays around it. `described` is the description so far:
    where the body does not repeat it, people's words under the title stay.

    Raises:
        CannotSplice: a section would have to be put into a code fence that is never closed.

    Example:
        >>> body = "# Skill: Ship\\n\\n## Steps\\nIn order:\\n\\n1. Tag.\\n\\n## Links\\n"
        >>> print(update_body(body, SkillText("Ship", steps=("Push.",)), None))
        # Skill: Ship
        <BLANKLINE>
        ## Steps
        In order:
        <BLANKLINE>
        1. Push.
        <BLANKLINE>
        ## Links
        <BLANKLINE>
    """
    if new.description is not None:
        body = _update_description(body, new.description, described, newline)
    for part in PARTS:
        value = getattr(new, part)
        if value is None:
            continue
        section = _known(find_sections(body)).get(part)
        rendered = render_part(part, value).replace("\n", newline)
        if section is None:
            body = _insert(body, part, rendered, newline)
        elif _comparable(part, getattr(parse_skill(body), part)) != _comparable(part, value):
            body = _replace(body, part, section, rendered, newline)
    return body


def _comparable(part: str, value: Sequence[str] | str) -> object:
    return plain_lines(str(value)) if part == "template" else tuple(map(clean_item, value))


def _update_description(body: str, new: str, described: str | None, newline: str) -> str:
    sections = find_sections(body)
    place = _preamble(body, sections)
    said = body[slice(*place)]
    if not said.strip(_BLANK):
        title = sections[0] if sections and sections[0].level == 1 else None
        if title is None:
            return body
        line = body[: place.start] if body[: place.start].endswith("\n") else body[: place.start] + newline
        return f"{line}{newline}{_paragraph(new)}{newline}{newline if place.end < len(body) else ''}{body[place.end :]}"
    new = _paragraph(new)
    if " ".join(said.split()) != " ".join(_paragraph(described or "").split()):
        return body
    start = place.start + len(said) - len(said.lstrip())
    return body[:start] + new + body[place.start + len(said.rstrip()) :]


def _replace(body: str, part: str, section: Section, rendered: str, newline: str) -> str:
    place = section.content
    if part == "template":
        found = find_fence(body, place)
        inner = found.outer if found else None
    else:
        # Prose by itself would be read as the part, so it goes with a list that is emptied.
        items = find_items(body, place) if rendered else []
        inner = Span(items[0].span.start, items[-1].span.end) if items else None
    if inner is None:
        said = body[slice(*place)]
        head = body[: place.start] if body[: place.start].endswith("\n") else body[: place.start] + newline
        tail = (
            said[len(said.rstrip(_BLANK)) :]
            if said.strip(_BLANK)
            else newline
            if not body[place.end :]
            else newline * 2
        )
        return f"{head}{newline}{rendered}{tail}{body[place.end :]}"
    return body[: inner.start] + rendered + body[inner.end :]


def _insert(body: str, part: str, rendered: str, newline: str) -> str:
    """Put a section before the first of those that come after it, else at the end."""
    order = list(PARTS)
    later = [section for name, section in _known(find_sections(body)).items() if order.index(name) > order.index(part)]
    block = f"## {PARTS[part]}{newline}{newline}{rendered}".rstrip()
    if later:
        place = min(section.span.start for section in later)
        return f"{body[:place]}{block}{newline}{newline}{body[place:]}"
    if has_open_fence(body):
        raise CannotSplice(f"{PARTS[part]} cannot be added to a text that ends in an open code fence; close the fence")
    text = body.rstrip("\r\n")
    return f"{text}{newline * 2 if text else ''}{block}{body[len(text) :] or newline}"


#: Names that no file can have on some systems.
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "note", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
)
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """A skill to keep.

    Attributes:
        text: what it says; the parts that are None stay as they are in a skill that is there.
        tags: None leaves them as they are.
        body: the whole body where it is known already, as it is written for a new skill.
        fields: further values of a new skill's frontmatter.
        id: the id that a new skill should have.
    """

    text: SkillText
    tags: tuple[str, ...] | None = None
    source: str | None = None
    created_by: str | None = None
    body: str | None = None
    fields: tuple[tuple[str, Value], ...] = ()
    id: str | None = None


class SkillPlace(NamedTuple):
    """The id of a new skill and the file it goes to, below the scope's folder."""

    id: str
    file: str


@dataclass(frozen=True, slots=True)
class SkillWritten:
    """A skill that was told, and what was written for it.

    Attributes:
        action: `created`, `updated`, `unchanged`, or `counted` for feedback.
    """

    id: str
    name: str
    path: str
    action: str
    run: RunReport


class SkillMoved(NamedTuple):
    """What became of one skill of an import, or of one file of an export.

    `action` is `created`, `updated`, `known`, `forgotten` or `refused` for what came in, and
    `written`, `unchanged` or `left` for what went out.
    """

    name: str
    id: str
    path: str
    action: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class SkillsImported:
    """What an import of skills came to."""

    skills: tuple[SkillMoved, ...]
    run: RunReport
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillsExported:
    """What an export of skills came to, file by file."""

    files: tuple[SkillMoved, ...]
    problems: tuple[Problem, ...] = ()


def check_skill(draft: SkillDraft) -> SkillDraft:
    """Return a draft with its name on one line, and its words checked.

    Raises:
        UsageError: it has no name, or a word the format does not have.
        SecretRefused: it holds what looks like a credential.

    Example:
        >>> check_skill(SkillDraft(SkillText(" Ship  it "))).text.name
        'Ship it'
    """
    name = read_text(draft.text.name)
    if name is None or not name.strip("#"):
        raise UsageError("a skill has no name", 'try: memory-kb skills create "Release train" --step "Tag the build."')
    if len(name) > _MAX_NAME:
        raise UsageError(
            f"the name of a skill is longer than {_MAX_NAME} characters", "put what it does into the description"
        )
    text = SkillText(
        name,
        read_text(draft.text.description),
        *(getattr(draft.text, part) for part in ("prerequisites", "steps", "errors", "exit_criteria", "template")),
    )
    check_draft(Draft(render_skill(text), "skill", name, draft.tags or (), source=draft.source))
    secret = locate_in((draft.body or "", draft.created_by or "", *_texts(draft.fields)))
    if secret:
        raise SecretRefused(secret.described)
    return SkillDraft(text, draft.tags, draft.source, draft.created_by, draft.body, draft.fields, draft.id)


def _texts(value: object) -> Iterable[str]:
    """Yield every text in a value of frontmatter."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield f"{key}: {held}" if isinstance(held, str) else str(key)
            yield from _texts(held)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


def find_same(memories: Iterable[Memory], draft: SkillDraft, place: Location) -> Memory | None:
    """Return the live skill of a scope that has the draft's name, in any case of letters.

    One that was renamed is known by its id, if it is for the same; an id alone says little, since
    catalogues number their skills alike.

    Raises:
        Forgotten: there is none, but one that was retired or rejected.
    """
    here = [memory for memory in memories if memory.kind == "skill" and memory.place[:3] == place[:3]]
    key = key_of(draft.text.name)
    about = draft.text.description
    renamed = [
        memory
        for memory in here
        if draft.id and memory.id == draft.id and about and memory.word("description") == about
    ]
    same = [memory for memory in here if key_of(name_of(memory)) == key] + renamed
    live = next((memory for memory in same if is_usable(memory)), None)
    if live:
        return live
    erased = (
        memory
        for memory in here
        if memory.metadata.get("tombstone") and memory.id in (draft.id, make_slug(draft.text.name))
    )
    gone = next((memory for memory in (*same, *erased) if memory.status in ("retired", "rejected")), None)
    if gone:
        raise Forgotten(gone.id, gone.path)
    return None


def make_slug(name: str) -> str:
    """Return a name as a file name of safe characters, on any system.

    Example:
        >>> make_slug("../../Release: Train!"), make_slug("NUL"), make_slug("¡!")
        ('release-train', 'nul-skill', 'note-skill')
    """
    slug = slugify(unicodedata.normalize("NFC", name))
    return f"{slug}-skill" if slug in _RESERVED else slug


def name_skill(draft: SkillDraft, taken: Collection[str], is_free: Callable[[str], bool]) -> SkillPlace:
    """Return the id and the file of a new skill: its slug, with a number where that is taken.

    Example:
        >>> name_skill(SkillDraft(SkillText("Release Train")), {"release-train"}, lambda file: True)
        SkillPlace(id='release-train-2', file='skills/release-train-2.md')
    """
    slug = make_slug(draft.text.name)
    names = (f"{slug}-{number}" if number > 1 else slug for number in range(1, 1_000_000))
    wanted = draft.id if draft.id and draft.id not in taken else None
    found = next(name for name in names if is_free(f"skills/{name}.md") and (wanted or name not in taken))
    return SkillPlace(wanted or found, f"skills/{found}.md")


def plan_new_skill(draft: SkillDraft, entry_id: str, path: str, now: datetime, reason: str) -> Change:
    """Plan the file of a new skill, with the counters of one that was never tried unless it brings its own."""
    own: dict[str, Value] = {"name": draft.text.name}
    own |= {
        name: value
        for name in ("description", "created_by")
        if (value := getattr(draft.text if name == "description" else draft, name))
    }
    body = draft.body if draft.body is not None else render_skill(draft.text)
    fields = tuple((own | dict(draft.fields)).items())
    kept = Draft(body, "skill", tags=draft.tags or (), source=draft.source, fields=fields)
    return create_file(path, render(kept, entry_id, now), reason, entry_id)


def plan_skill_update(
    note: NoteText, entry_id: str, draft: SkillDraft, reason: str, fields: Mapping[str, Value] | None = None
) -> Change | None:
    """Plan to change those parts of a skill that a draft speaks of; None where all of them stand so already.

    Its counters stay, as does every other byte of the entry.

    Example:
        >>> note = NoteText("a.md", b"---\\nid: x\\nname: Ship\\nsuccess_count: 7 # in May\\n---\\n# Skill: Ship\\n\\n## Steps\\n\\n1. Tag.\\n")
        >>> print(plan_skill_update(note, "x", SkillDraft(SkillText("ship", steps=("Push.",))), "Told so.").action.text)
        ---
        id: x
        name: Ship
        success_count: 7 # in May
        ---
        # Skill: Ship
        <BLANKLINE>
        ## Steps
        <BLANKLINE>
        1. Push.
        <BLANKLINE>
    """
    newline = newline_of(note.text)
    found = find_entry(note.text, note.path, entry_id)
    refuse_broken(found, note.path)
    before = note.text[found.span.start : found.span.end]
    text = pin_id(before, note.path, entry_id, newline)
    entry = find_entry(text, note.path, entry_id)
    body = text[entry.body.start : entry.body.end]
    if draft.body is None:
        new = update_body(body, draft.text, read_text(entry.metadata.get("description")), newline)
    else:
        tail = body[len(body.rstrip()) :] or newline
        lead = body[: len(body) - len(body.lstrip("\r\n"))]
        new = (
            body
            if _said(body) == _said(draft.body)
            else lead + draft.body.strip("\r\n").replace("\r\n", "\n").replace("\n", newline) + tail
        )
    values: dict[str, Value] = dict(fields or {})
    if draft.text.description is not None and draft.text.description != read_text(entry.metadata.get("description")):
        values["description"] = draft.text.description
    if draft.tags is not None and draft.tags != entry.tags:
        values["tags"] = list(draft.tags)
    head = (
        text[: entry.body.start]
        if text[: entry.body.start].endswith("\n") or not new
        else text[: entry.body.start] + newline
    )
    changed = change_fields(head + new, note.path, entry_id, values.items(), newline)
    return replace_entry(note, entry_id, changed, reason) if changed != text else None


def _said(body: str) -> list[str]:
    return [line.rstrip() for line in body.strip().splitlines()]
