"""Rank skills by their outcomes, and plan to create or update one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import NamedTuple

from memory_kb.credentials import texts_of
from memory_kb.errors import Forgotten, UsageError
from memory_kb.learning.playbook import in_force
from memory_kb.learning.render_entry import Draft, check_draft, refuse_secrets, render_new_entry, without_empty
from memory_kb.markdown.splice import Value, find_entry, newline_of, refuse_broken
from memory_kb.memory import Memory
from memory_kb.model import Hit, Location, Problem
from memory_kb.reports import RunReport
from memory_kb.skills.skill_text import SkillText, render_skill, update_body, without_label
from memory_kb.store.changes import Change, create_file, set_body, set_fields
from memory_kb.store.file_edits import NoteText
from memory_kb.text import as_text, fold_case, make_slug

#: What skills are ordered by: a sample of the distribution, its mean, or its upper bound.
SKILL_ORDERS = ("thompson", "mean", "ucb")
_DEVIATIONS = 1.96
#: A skill competes if it fits a query at least this well beside the best.
_FITTING = 0.5


class Skill(NamedTuple):
    """A skill as it is listed; `text` is its body, `score` what it was ordered by.

    Its chance to succeed is a beta distribution from a uniform prior: `alpha` is one more than its successes, `beta`
    one more than its failures, and `ucb` the mean and 1.96 standard deviations.
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


class SkillSearch(NamedTuple):
    """The skills that fit a query in the order to try them, and how far the search can be trusted."""

    query: str
    mode: str
    skills: tuple[Skill, ...]
    degraded: tuple[str, ...] = ()


class SkillDraft(NamedTuple):
    """A skill to keep; the parts of its text, and tags, that are None stay as they are in a skill that exists.

    `body` is the whole body where it is known already. `fields` and `id` are for a new skill, `path` and `line` are
    where it was read.
    """

    text: SkillText
    tags: tuple[str, ...] | None = None
    source: str | None = None
    body: str | None = None
    fields: Mapping[str, Value] = {}
    id: str | None = None
    path: str = ""
    line: int = 1


class SkillWritten(NamedTuple):
    """A skill that was stored; `action` is created, updated, unchanged, or counted for feedback."""

    id: str
    name: str
    path: str
    action: str
    run: RunReport


class SkillMoved(NamedTuple):
    """What was done with one skill of an import, or of one file of an export.

    `action` is created, updated, known, forgotten or refused for what came in, and written, unchanged or left for what
    went out.
    """

    name: str
    id: str
    path: str
    action: str
    message: str = ""


class SkillsImported(NamedTuple):
    """The result of an import of skills."""

    skills: tuple[SkillMoved, ...]
    run: RunReport
    problems: tuple[Problem, ...] = ()


class SkillsExported(NamedTuple):
    """The result of an export of skills, file by file."""

    files: tuple[SkillMoved, ...]
    problems: tuple[Problem, ...] = ()


def make_skill(memory: Memory) -> Skill:
    """Return an entry of kind skill as it is listed."""
    wins, losses = memory.count("success_count"), memory.count("failure_count")
    alpha, beta = wins + 1.0, losses + 1.0
    mean = alpha / (alpha + beta)
    deviation = math.sqrt(alpha * beta / (alpha + beta + 1)) / (alpha + beta)
    return Skill(
        id=memory.id,
        name=name_of(memory),
        description=memory.word("description"),
        tags=memory.tags,
        success_count=wins,
        failure_count=losses,
        alpha=alpha,
        beta=beta,
        mean=round(mean, 6),
        ucb=round(mean + _DEVIATIONS * deviation, 6),
        created_by=memory.word("created_by"),
        created_at=memory.created_at,
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
        text=memory.text,
    )


def name_of(memory: Memory) -> str:
    """Return what a skill is called: its name, else its title without the word `Skill:`."""
    return memory.word("name") or without_label(memory.title) or memory.id


def is_named(memory: Memory, name: str) -> bool:
    """Return whether a skill has a name, in any case of letters."""
    return fold_case(name_of(memory)) == fold_case(name)


def is_usable(memory: Memory) -> bool:
    """Return whether an entry is a live skill that nothing has superseded."""
    return memory.kind == "skill" and memory.is_live and not memory.is_superseded


def usable_skills(memories: Iterable[Memory]) -> list[Memory]:
    """Return the live skills in force; of one id at several scopes the most specific."""
    return [memory for memory in in_force(memories) if is_usable(memory)]


def rank_skills(skills: Iterable[Skill], by: str, rng: Random) -> tuple[Skill, ...]:
    """Return skills best first, with their scores; `thompson` draws one sample for each, in the order of their ids."""
    if by not in SKILL_ORDERS:
        raise UsageError(f"skills cannot be ranked by {by!r}", f"it may be {', '.join(SKILL_ORDERS)}")

    def score(skill: Skill) -> float:
        return {"mean": skill.mean, "ucb": skill.ucb}.get(by) or rng.betavariate(skill.alpha, skill.beta)

    in_order = sorted(skills, key=lambda skill: (skill.id, skill.path))
    scored = [skill._replace(score=round(score(skill), 6)) for skill in in_order]
    return tuple(sorted(scored, key=lambda skill: (-(skill.score or 0.0), fold_case(skill.name), skill.id, skill.path)))


def choose_candidates(hits: Sequence[Hit], skills: Iterable[Skill], count: int) -> list[Skill]:
    """Return the skills that fit a query at least half as well as the best, which comes first."""
    known = {skill.id: skill for skill in skills}
    best = max((hit.parts.relevance for hit in hits), default=0.0)
    fitting = dict.fromkeys(hit.id for hit in hits if hit.id in known and hit.parts.relevance >= _FITTING * best)
    return [known[name] for name in fitting][:count]


def check_skill(draft: SkillDraft, *, allow_secret: bool = False) -> SkillDraft:
    """Return a draft with its name on one line, and its words checked."""
    name = as_text(draft.text.name)
    if name is None or not name.strip("#"):
        raise UsageError("a skill has no name", 'try: memory-kb skills create "Release train" --step "Tag the build."')
    text = draft.text._replace(name=name, description=as_text(draft.text.description))
    whole = Draft(render_skill(text), "skill", name, draft.tags or (), source=draft.source)
    check_draft(whole, allow_secret=allow_secret)
    refuse_secrets(draft.body or "", *texts_of(draft.fields), allow=allow_secret)
    return draft._replace(text=text)


def find_same_skill(memories: Iterable[Memory], draft: SkillDraft, place: Location, *, force: bool) -> Memory | None:
    """Return the live skill of a scope that has the draft's name; Forgotten where one was, unless `force`."""
    name = draft.text.name
    here = [memory for memory in memories if memory.kind == "skill" and memory.place[:3] == place[:3]]
    same = [memory for memory in here if is_named(memory, name)]
    if live := next(filter(is_usable, same), None):
        return live
    # Of one whose text was deleted the id is left.
    same += [memory for memory in here if memory.metadata.get("tombstone") and memory.id == make_slug(name)]
    gone = next((memory for memory in same if memory.status in ("retired", "rejected")), None)
    if gone and not force:
        raise Forgotten(gone.id, gone.path)
    return None


def plan_new_skill(draft: SkillDraft, entry_id: str, path: str, now: datetime, reason: str) -> Change:
    """Plan the file of a new skill, with the counters of one that was never tried unless it brings its own."""
    named = without_empty({"name": draft.text.name, "description": draft.text.description})
    body = draft.body if draft.body is not None else render_skill(draft.text)
    kept = Draft(body, "skill", tags=draft.tags or (), source=draft.source, fields={**named, **draft.fields})
    return create_file(path, render_new_entry(kept, entry_id, now), reason, entry_id)


def plan_skill_update(
    note: NoteText, entry_id: str, draft: SkillDraft, reason: str, fields: Mapping[str, Value] | None = None
) -> list[Change]:
    """Plan to change those parts of a skill that a draft speaks of; its counters stay, as does all else of the entry."""
    entry = find_entry(note.text, note.path, entry_id)
    refuse_broken(entry, note.path)
    body, described = note.text[entry.body.start : entry.body.end], as_text(entry.metadata.get("description"))
    new = draft.body
    if new is None:
        new = update_body(body, draft.text, described, newline_of(note.text))
    values: dict[str, Value] = dict(fields or {})
    if draft.text.description is not None and draft.text.description != described:
        values["description"] = draft.text.description
    if draft.tags is not None and draft.tags != entry.tags:
        values["tags"] = list(draft.tags)
    said, says = ([line.rstrip() for line in text.strip().splitlines()] for text in (body, new))
    changes = [set_body(note, entry_id, new, reason)] if said != says else []
    return [*changes, set_fields(note, entry_id, values, reason)] if values else changes
