"""The commands skills and procedure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import (
    Family,
    allow_secret_option,
    dry_run_option,
    flag,
    hide_options,
    limit_option,
    option,
    place_options,
    tag_option,
    text_argument,
    verb,
)
from memory_kb.cli.output import (
    CONFLICT,
    Options,
    as_plain,
    clean,
    format_id,
    one_line,
    pick,
    print_listing,
    print_notes,
    print_problems,
    say,
)
from memory_kb.cli.print_runs import finish_run
from memory_kb.cli.search import show_verb
from memory_kb.errors import UsageError
from memory_kb.model import SOURCES, Problem
from memory_kb.text import shorten

if TYPE_CHECKING:
    from memory_kb.skills.skill import Skill, SkillMoved, SkillWritten

_ORDERS = ("thompson", "mean", "ucb")
_FORCE = flag("--force", "Keep it even if one of that name was forgotten.")
_HIDE = hide_options("skills")
_SEED = option("--seed", "Draw the same samples every time.", type=int, metavar="NUMBER")


@click.group("skills", cls=Family, alone="list")
def skills_verb() -> None:
    """Find, store and judge what agents know how to do.

    \b
    memory-kb skills search "cut a release"
    memory-kb skills import ~/.claude/skills
    """


skills_verb.add_command(show_verb)


@verb("search", skills_verb)
@click.argument("query", nargs=-1)
@limit_option("The most skills to print.", 5)
@_SEED
@_HIDE
def search_verb(options: Options, /, query: tuple[str, ...], **chosen: Any) -> None:
    """Find skills that fit QUERY, in the order in which to try them.

    Their place is drawn from how often they worked, so that new ones get their turn (Thompson sampling).

    \b
    memory-kb skills search "cut a release" --seed 1 --json
    """
    result = options.kb.skills.search(" ".join(query), **chosen)
    print_listing(options, as_plain(result), _skill_rows(result.skills), "No skill fits.")
    if not options.as_json:
        print_notes(result.degraded)


@verb("rank", skills_verb)
@option("--by", "A sample, the mean, or the upper bound.", choice=_ORDERS, default="thompson")
@_SEED
@_HIDE
def rank_verb(options: Options, /, **chosen: Any) -> None:
    """List all skills, best first.

    \b
    memory-kb skills rank --by ucb
    """
    _print_ranked(options, **chosen)


@verb("list", skills_verb)
def list_verb(options: Options) -> None:
    """List all skills, those that worked most often first."""
    _print_ranked(options, by="mean")


def _print_ranked(options: Options, by: str, **chosen: Any) -> None:
    skills = options.kb.skills.rank(by, **chosen)
    fields = {"skills": skills}
    print_listing(options, fields, _skill_rows(skills), "There is no skill yet; `memory-kb skills create` makes one.")


def _skill_rows(skills: Sequence[Skill]) -> Iterator[tuple[str, ...]]:
    for skill in skills:
        counts = f"{skill.success_count} of {skill.success_count + skill.failure_count} worked"
        place = f"{skill.path}:{skill.line}"
        yield (
            f"{skill.score:.3f}",
            skill.name,
            counts,
            place,
            format_id(skill.id),
            shorten(skill.description or "", 100),
        )


@verb("create", skills_verb)
@click.argument("name")
@option("--description", "What it is for, and when to use it.")
@option("--step steps", "A step; may be given several times, with {parameters}.", many=True, metavar="TEXT")
@option("--prerequisite prerequisites", "What must be there before.", many=True, metavar="TEXT")
@option("--error errors", "What goes wrong, and what helps.", many=True, metavar="'ERROR: FIX'")
@option("--exit-criterion exit_criteria", "How to see that it is done.", many=True, metavar="TEXT")
@option("--template", "A prompt or a piece of code with {parameters}; a single - reads it from stdin.", metavar="TEXT")
@tag_option()
@option("--created-by", "Who made it.", metavar="WHO")
@option("--source", "How it is known.", choice=SOURCES)
@place_options()
@_FORCE
@allow_secret_option
@dry_run_option()
def create_verb(options: Options, /, name: str, template: str | None, **chosen: Any) -> int:
    """Store a skill called NAME, or change the one of that name.

    What is not given stays as it is there, its counters too.

    \b
    memory-kb skills create "Release train" --step "Tag {version}." --step "Push the tag." --tag release
    memory-kb skills create "Release train" --error "tag exists: bump the version"
    """
    if template == "-":
        template = text_argument([template], errors="replace").rstrip("\n")
    fields: dict[str, Any] = {
        key: value or None if isinstance(value, tuple) else value for key, value in chosen.items()
    }
    written = options.kb.skills.create(name, template=template, dry_run=options.dry_run, **fields)
    return _finish_skill(options, written)


@verb("procedure")
@click.argument("name")
@click.argument("steps", metavar="STEP...", nargs=-1)
@option("--context", "Where it applies.")
@tag_option()
@option("--source", "How it is known.", choice=SOURCES)
@place_options()
@_FORCE
@allow_secret_option
@dry_run_option()
def procedure_verb(
    options: Options, /, name: str, steps: tuple[str, ...], context: str | None, tags: tuple[str, ...], **chosen: Any
) -> int:
    """Store a workflow with its steps, or update it.

    A single - as STEP reads them from stdin, one a line.

    \b
    memory-kb procedure "Release train" "Tag {version}." "Push the tag." --context "Every Monday."
    printf 'Stop the workers.\\nMigrate.\\n' | memory-kb procedure "Online migration" -
    """
    if steps == ("-",):
        steps = tuple(text_argument(steps, errors="replace").splitlines())
    written = options.kb.procedure(name, steps, context, tags=tags or None, dry_run=options.dry_run, **chosen)
    return _finish_skill(options, written)


@verb("feedback", skills_verb)
@click.argument("skill", metavar="ID|NAME")
@click.argument("outcome", type=click.Choice(["success", "failure"]))
@dry_run_option()
def feedback_verb(options: Options, /, skill: str, outcome: str) -> int:
    """Record that a skill worked, or did not. Every call counts.

    \b
    memory-kb skills feedback release-train success
    """
    written = options.kb.skills.feedback(skill, outcome, dry_run=options.dry_run)
    return _finish_skill(options, written)


def _finish_skill(options: Options, written: SkillWritten) -> int:
    line = f"{written.action} {one_line(written.path)}  {format_id(written.id)}"
    return finish_run(options, written.run, pick(written, "id", "name", "path", "action"), said=line)


@verb("import", skills_verb)
@click.argument("source", metavar="FILE|FOLDER")
@flag("--update", "Take the text of the file over where a skill is there already.")
@flag("--with-files", "Copy the files beside a SKILL.md too; else they are only listed.")
@place_options()
@flag("--force", "Bring in what was forgotten before.")
@dry_run_option()
def import_verb(options: Options, /, source: str, **chosen: Any) -> int:
    """Import skills: a catalogue skills.yaml, a SKILL.md, or a folder with any number of both.

    How often they worked comes with them. Importing again changes nothing.

    \b
    memory-kb skills import skills.yaml
    memory-kb skills import ~/.claude/skills --with-files
    """
    report = options.kb.skills.import_(source, dry_run=options.dry_run, **chosen)

    def show() -> None:
        _print_moved(report.skills, report.problems, is_preview=options.dry_run)

    return finish_run(options, report.run, pick(report, "skills", "problems"), report=show)


@verb("export", skills_verb)
@click.argument("target", metavar="FILE|FOLDER")
@click.argument("names", metavar="[ID|NAME]...", nargs=-1)
@flag("--with-files", "Write the files that were imported with a skill too.")
@flag("--force", "Replace files that say something else.")
@dry_run_option()
def export_verb(options: Options, /, target: str, names: tuple[str, ...], **chosen: Any) -> int:
    """Write skills to a catalogue, or as folders with a SKILL.md each.

    A name that ends in .yaml makes a catalogue.

    \b
    memory-kb skills export skills.yaml
    memory-kb skills export ~/.claude/skills release-train
    """
    if not target.strip():
        raise UsageError("there is no place to write to", "try: memory-kb skills export skills.yaml")
    report = options.kb.skills.export(target, names, dry_run=options.dry_run, **chosen)
    left = any(one.action == "left" for one in report.files)
    if not options.printed_as_json(pick(report, "files", "problems")):
        _print_moved(report.files, report.problems, is_preview=options.dry_run)
        if not report.files:
            say("There are no skills.")
    return CONFLICT if left else 0


def _print_moved(moved: Sequence[SkillMoved], problems: Sequence[Problem], *, is_preview: bool) -> None:
    print_problems(problems)
    show, word = (say, "would be ") if is_preview else (click.echo, "")
    for one in moved:
        said = f"  ({clean(one.message)})" if one.message else ""
        show(f"{word}{one.action} {one_line(one.path or one.name)}{said}")
