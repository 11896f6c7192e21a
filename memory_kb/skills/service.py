"""The verbs of skills, and procedure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from memory_kb.credentials import find_secret
from memory_kb.errors import CannotSplice, Forgotten, UnreadableInput, UsageError
from memory_kb.learning.memories import Memories
from memory_kb.learning.playbook import plan_feedback
from memory_kb.learning.render_entry import without_empty
from memory_kb.memory import Memory
from memory_kb.model import LIVE_STATUSES, Location, Problem, make_filters
from memory_kb.search.query import Request
from memory_kb.search.service import Searching
from memory_kb.skills.skill import (
    Skill,
    SkillDraft,
    SkillMoved,
    SkillSearch,
    SkillsExported,
    SkillsImported,
    SkillWritten,
    check_skill,
    choose_candidates,
    find_same_skill,
    is_named,
    is_usable,
    make_skill,
    name_of,
    plan_new_skill,
    plan_skill_update,
    rank_skills,
    usable_skills,
)
from memory_kb.skills.skill_files import (
    CATALOGUES,
    MAX_COPIED,
    list_files,
    plain_name,
    read_limited,
    read_sources,
    render_catalogue,
    render_skill_file,
    write_out,
)
from memory_kb.skills.skill_text import SkillText
from memory_kb.store.changes import Change, Plan
from memory_kb.store.logs import log_shown
from memory_kb.store.safe_paths import find_target
from memory_kb.store.writer import Writer
from memory_kb.text import encode, first_free, fold_case, hash_of, make_slug
from memory_kb.vault import Vault

#: Candidates to search for per wanted skill, and passages per candidate: a long one may be found by several.
_POOL, _PASSAGES = 2, 4
_OUTCOMES = ("success", "failure")


@dataclass(slots=True)
class _Batch:
    """The skills of one import while it is planned: what is there, and what is taken, planned and known so far."""

    memories: Sequence[Memory]
    place: Location
    is_update: bool
    is_forced: bool
    names: set[str] = field(default_factory=set)
    planned: set[str] = field(default_factory=set)
    changes: list[Change] = field(default_factory=list)


@dataclass(frozen=True)
class Skills:
    """The verbs skills search, rank, create, feedback, and procedure."""

    _vault: Vault
    _writer: Writer
    _memories: Memories
    _searching: Searching

    def search(
        self,
        query: str = "",
        *,
        limit: int = 5,
        seed: int | None = None,
        job: str | None = None,
        task: str | None = None,
    ) -> SkillSearch:
        """Return the skills that fit a query, in the order in which to try them.

        A search of the skills gives the candidates, a sample of what is known of each its place.
        Without a query all compete. A `seed` makes the order the same every time.
        """
        limit = max(0, limit)
        memories = {memory.id: memory for memory in usable_skills(self.skills(job, task))}
        skills = list(map(make_skill, memories.values()))
        mode, degraded = "all", tuple[str, ...]()
        if query.strip():
            filters = make_filters(kind=["skill"], status=sorted(LIVE_STATUSES), job=job, task=task)
            request = Request(query, filters, _PASSAGES * _POOL * limit)
            result = self._searching.search_vault(request)
            mode, degraded = result.mode, result.degraded
            skills = choose_candidates(result.hits, skills, _POOL * limit)
        chosen = rank_skills(skills, "thompson", _random(seed))[:limit]
        log_shown(self._vault, "skills search", (skill.id for skill in chosen), query=query or None, task=task)
        whole = tuple(one._replace(text=self._memories.whole_text_of(memories[one.id])) for one in chosen)
        return SkillSearch(query, mode, whole, degraded)

    def rank(
        self, by: str = "thompson", *, seed: int | None = None, job: str | None = None, task: str | None = None
    ) -> tuple[Skill, ...]:
        """Return all live skills, best first, by a sample, the mean or the upper bound."""
        return rank_skills(map(make_skill, usable_skills(self.skills(job, task))), by, _random(seed))

    def create(
        self,
        name: str,
        description: str | None = None,
        *,
        template: str | None = None,
        steps: Sequence[str] | None = None,
        prerequisites: Sequence[str] | None = None,
        errors: Sequence[str] | None = None,
        exit_criteria: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        created_by: str | None = None,
        source: str | None = None,
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> SkillWritten:
        """Keep a skill, or change the one of that name in the same scope.

        What is not given stays as it is there, its counters too. `template` is a prompt or a piece of code with
        `{parameters}`; each of `errors` reads `error: fix`. One that was forgotten comes back with `force` alone.
        """
        lists = (_filled(prerequisites), _filled(steps), _filled(errors), _filled(exit_criteria))
        text = SkillText(name, description, *lists, template)
        fields = without_empty({"created_by": created_by})
        draft = SkillDraft(text, None if tags is None else tuple(tags), source, fields=fields)
        place = self._vault.place_for(scope, job, task)
        return self._store_skill("skills create", draft, place, force=force, dry_run=dry_run)

    def procedure(
        self,
        name: str,
        steps: Sequence[str],
        context: str | None = None,
        *,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> SkillWritten:
        """Save a workflow with its steps; one of that name is brought up to date. `context` says where it applies."""
        kept = tuple(filter(str.strip, steps))
        if not kept:
            raise UsageError(
                "a procedure has no steps", 'try: memory-kb procedure "Release train" "Tag the build." "Push the tag."'
            )
        draft = SkillDraft(SkillText(name, context, steps=kept), None if tags is None else tuple(tags), source)
        place = self._vault.place_for(scope, job, task)
        return self._store_skill("procedure", draft, place, force=force, dry_run=dry_run)

    def feedback(self, wanted: str, outcome: str, *, dry_run: bool = False) -> SkillWritten:
        """Count that a skill worked, or did not; it is named as any entry is, by its id or its title."""
        if outcome not in _OUTCOMES:
            raise UsageError(f"unknown outcome {outcome!r}", f"it may be {' or '.join(_OUTCOMES)}")

        def plan(one: Memory) -> Change | None:
            return plan_feedback(one, outcome, self._vault.today(), f"It was tried: {outcome}.")

        skill = self._find(wanted)
        run = self._memories.change_entries("skills feedback", [skill], plan, dry_run=dry_run)
        return SkillWritten(skill.id, name_of(skill), skill.path, "counted", run)

    def skills(self, job: str | None = None, task: str | None = None) -> tuple[Memory, ...]:
        """Return every skill, whatever its status, that a job and task see."""
        return self._memories.of_kinds("skill", job=job, task=task)

    def _find(self, wanted: str) -> Memory:
        found = self._memories.find(wanted)
        if not is_usable(found):
            raise UsageError(f"{found.id} is no skill in use", f"`memory-kb show {found.id}` shows it")
        return found

    def _store_skill(
        self, verb: str, draft: SkillDraft, place: Location, *, force: bool, dry_run: bool
    ) -> SkillWritten:
        draft = check_skill(draft, allow_secret=self._vault.allows_secrets)
        with self._writer.lock(place.scope, dry_run=dry_run):

            def plan(_: str = "") -> tuple[SkillMoved, Plan]:
                batch = _Batch(self.skills(), place, is_update=True, is_forced=force)
                return self._plan_skill(draft, batch, "Stored on request."), batch.changes

            stored, changes = plan()
            run = self._writer.run(verb, changes, replan=lambda path: plan(path)[1], dry_run=dry_run)
        return SkillWritten(stored.id, stored.name, stored.path, stored.action, run)

    def _plan_skill(self, draft: SkillDraft, batch: _Batch, reason: str) -> SkillMoved:
        """Plan a new skill, or to update the one of that name, which gets more outcomes and, in an update, the text."""
        same = find_same_skill(batch.memories, draft, batch.place, force=batch.is_forced)
        if same is None:
            entry_id, path = self._name_skill(draft, batch)
            batch.planned.update((entry_id, path))
            batch.changes.append(plan_new_skill(draft, entry_id, path, self._vault.clock(), reason))
            return SkillMoved(draft.text.name, entry_id, path, "created")
        counts = {name: int(str(draft.fields.get(name) or 0)) for name in ("success_count", "failure_count")}
        more = {name: count for name, count in counts.items() if count > same.count(name)}
        note = self._writer.read(same.path)
        wanted = draft if batch.is_update else SkillDraft(SkillText(draft.text.name))
        changes = plan_skill_update(note, same.id, wanted, reason, more)
        batch.changes += changes
        differs = not batch.is_update and plan_skill_update(note, same.id, draft, reason)
        message = "it says something else than the file; --update takes the file's text over" if differs else ""
        return SkillMoved(name_of(same), same.id, same.path, "updated" if changes else "unchanged", message)

    def _name_skill(self, draft: SkillDraft, batch: _Batch) -> tuple[str, str]:
        """Return the id and path of a new skill: its slug, with a number where that is taken.

        An id that another entry has, in any scope, is taken, unless that is a skill of the same name, which the new one
        is to hide.
        """
        folder, name = f"{self._vault.folder_of(batch.place)}skills/", draft.text.name
        hidden = {one.id for one in batch.memories if one.place[:3] != batch.place[:3] and is_named(one, name)}
        taken = {*batch.planned, *(one.id for one in self._memories.all() if one.id not in hidden)}
        wanted = draft.id if draft.id not in taken else None

        def is_taken(slug: str) -> bool:
            path = f"{folder}{slug}.md"
            return (not wanted and slug in taken) or path in taken or self._vault.resolve(path).exists()

        slug = first_free(make_slug(name), is_taken)
        return wanted or slug, f"{folder}{slug}.md"

    def import_(
        self,
        source: str | os.PathLike[str],
        *,
        update: bool = False,
        with_files: bool = False,
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> SkillsImported:
        """Import skills from a catalogue, a `SKILL.md`, or a folder with any number of both.

        Outcomes come with them. A skill that is there already keeps its text, and gets those outcomes it has fewer of,
        unless `update` takes the file's text over. With `with_files` the files beside a `SKILL.md` are copied too.
        """
        place = self._vault.place_for(scope, job, task)
        problems: list[Problem] = []
        sources = list(read_sources(Path(source).expanduser(), problems))
        if not sources and not problems:
            raise UnreadableInput(
                f"there are no skills in {source}", "name a skills.yaml, a SKILL.md, or a folder that holds some"
            )
        with self._writer.lock(place.scope, dry_run=dry_run):
            batch = _Batch(self.skills(), place, is_update=update, is_forced=force)
            moved = [self._import_skill(found, batch) for found in sources]
            if with_files:
                for found, one in zip(sources, moved, strict=True):
                    problems += self._copy_files(found, one, batch) if one.path else ()
            run = self._writer.run("skills import", batch.changes, dry_run=dry_run)
        return SkillsImported(tuple(moved), run, tuple(problems))

    def _import_skill(self, found: SkillDraft, batch: _Batch) -> SkillMoved:
        """Plan the changes for one skill of an import, and return what is done with it."""
        where, name = f"{found.path}:{found.line}", found.text.name
        try:
            draft = check_skill(found)
            name = draft.text.name
            if fold_case(name) in batch.names:
                return SkillMoved(name, "", "", "known", f"{where} has the name of one before it")
            batch.names.add(fold_case(name))
            moved = self._plan_skill(draft, batch, f"Imported from {Path(found.path).name}.")
            return moved._replace(action="known") if moved.action == "unchanged" else moved
        except Forgotten as exc:
            return SkillMoved(name, "", "", "forgotten", f"{exc} (or import with --force)")
        except (UsageError, CannotSplice) as exc:
            return SkillMoved(name, "", "", "refused", f"{where}: {exc}")

    def _copy_files(self, found: SkillDraft, moved: SkillMoved, batch: _Batch) -> Iterator[Problem]:
        """Plan copies of the files that go with a skill, and yield why some are not copied."""
        source = Path(found.path)
        for inner in list_files(source.parent) if source.name.lower() == "skill.md" else ():
            file, path = source.parent / inner, f"{moved.path.removesuffix('.md')}/{inner}"
            try:
                data = read_limited(file, MAX_COPIED)
                held = find_target(self._vault, path)
                before = held.read_bytes() if held.exists() else None
            except (OSError, UnreadableInput) as exc:
                yield Problem(str(file), 1, f"not copied: {exc}")
                continue
            if before == data:
                continue
            if secret := find_secret(data.decode("utf-8", "replace")):
                yield Problem(str(file), 1, f"not copied: it contains what looks like {secret}")
            elif before is not None and not batch.is_update:
                yield Problem(str(file), 1, f"not copied: {path} says something else; --update takes it over")
            else:
                planned = None if before is None else hash_of(before)
                batch.changes.append(
                    Change(path, "write", f"It goes with the skill {moved.name}.", planned=planned, data=data)
                )

    def export(
        self,
        target: str | os.PathLike[str],
        names: Sequence[str] = (),
        *,
        with_files: bool = False,
        force: bool = False,
        dry_run: bool = False,
    ) -> SkillsExported:
        """Write skills to a catalogue (a name that ends in .yaml), or as folders with a `SKILL.md`.

        A file that is there and says something else is left unless `force` is set. `names` are ids or names of
        skills, all where there are none; `with_files` also writes the files that were imported with them.
        """
        chosen = list(map(self._find, names)) or usable_skills(self.skills())
        once = {(memory.path, memory.id): memory for memory in chosen}.values()
        kept = list(map(self._memories.read_from_file, once))
        goal = Path(target).expanduser()
        if goal.suffix.lower() in CATALOGUES:
            written = write_out("", "", goal, encode(render_catalogue(kept)), force=force, dry_run=dry_run)
            return SkillsExported((written,) if kept else ())
        if goal.exists() and not goal.is_dir():
            raise UsageError(f"{target} is not a folder", "name a folder, or a catalogue whose name ends in .yaml")
        taken, files = list[str](), list[SkillMoved]()
        for one in kept:
            folder = plain_name(name_of(one), taken)
            taken.append(folder)
            own = [("SKILL.md", encode(render_skill_file(one, folder)))]
            beside = self._vault.resolve(one.path.removesuffix(".md"))
            # Elsewhere a folder beside a note has its name by chance.
            if with_files and beside.parent.name == "skills":
                own += [(name, read_limited(beside / name, MAX_COPIED)) for name in list_files(beside)]
            for inner, data in own:
                files.append(write_out(name_of(one), one.id, goal / folder / inner, data, force=force, dry_run=dry_run))
        return SkillsExported(tuple(files))


def _filled(items: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if items is None else tuple(filter(str.strip, items))


def _random(seed: int | None) -> Random:
    return Random(seed)  # noqa: S311 - it orders skills
