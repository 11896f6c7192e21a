"""The commands skills and procedure."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memory_kb.cli.app import Family, allow_secret_option, shared_options
from memory_kb.cli.output import (
    CONFLICT,
    Options,
    clean,
    end_run,
    finish_run,
    one_line,
    print_json,
    print_preview,
    print_problems,
    run_as_json,
    say,
    style,
    tell_id,
)
from memory_kb.errors import UsageError
from memory_kb.model import SOURCES
from memory_kb.text import shorten

if TYPE_CHECKING:
    from memory_kb.learning.skills import Skill, SkillMoved, SkillWritten

_F = TypeVar("_F", bound=Callable[..., Any])
_ORDERS = ("thompson", "mean", "ucb")
_FORCE = click.option("--force", is_flag=True, help="Keep it even if one of that name was forgotten.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
_SEED = click.option("--seed", type=int, metavar="NUMBER", help="Draw the same samples every time.")


def _placed(function: _F) -> _F:
    """Add the options that say where a skill belongs."""
    for option in (
        click.option("--task", help="Keep it with this task of --job."),
        click.option("--job", help="Keep it with this job."),
        click.option(
            "--scope",
            type=click.Choice(["project", "global"]),
            default="project",
            show_default=True,
            help="Where it holds.",
        ),
    ):
        function = option(function)
    return function


@click.group("skills", cls=Family, alone="list")
def skills_verb() -> None:
    """Find, keep and judge what agents know how to do.

    \b
    memory-kb skills search "cut a release"
    memory-kb skills create "Release train" --description "Weekly release" --step "Tag the build." --step "Push the tag."
    memory-kb skills feedback release-train success
    memory-kb skills import ~/.claude/skills
    """


@skills_verb.command("search")
@shared_options
@click.argument("query", nargs=-1)
@click.option("-k", "--limit", type=click.IntRange(0), default=5, show_default=True, help="The most skills to print.")
@_SEED
@click.option("--job", help="Hide the skills of other jobs.")
@click.option("--task", help="Hide the skills of other tasks of --job.")
@click.pass_obj
def search_verb(options: Options, /, query: tuple[str, ...], **chosen: Any) -> None:
    """Find skills that fit QUERY, in the order in which to try them.

    Their place is drawn from how often they worked, so that new ones get their turn (Thompson sampling).

    \b
    memory-kb skills search flaky test
    memory-kb skills search "cut a release" --seed 1 --json
    """
    with options.open() as kb:
        result = kb.skills.search(" ".join(query), **chosen)
    if options.as_json:
        print_json(dataclasses.asdict(result))
        return
    for note in result.degraded:
        say(f"note: {note}")
    _print_skills(result.skills)


@skills_verb.command("rank")
@shared_options
@click.option(
    "--by",
    type=click.Choice(_ORDERS),
    default="thompson",
    show_default=True,
    help="A sample, the mean, or the upper bound.",
)
@_SEED
@click.option("--job", help="Hide the skills of other jobs.")
@click.option("--task", help="Hide the skills of other tasks of --job.")
@click.pass_obj
def rank_verb(options: Options, /, **chosen: Any) -> None:
    """List all skills, best first.

    \b
    memory-kb skills rank --by ucb
    """
    with options.open() as kb:
        skills = kb.skills.rank(chosen.pop("by"), **chosen)
    if options.as_json:
        print_json({"skills": [dataclasses.asdict(skill) for skill in skills]})
    else:
        _print_skills(skills)


@skills_verb.command("list")
@shared_options
def list_verb() -> None:
    """List all skills, those that worked most often first."""
    click.get_current_context().invoke(rank_verb, by="mean", seed=None, job=None, task=None)


def _print_skills(skills: Sequence[Skill]) -> None:
    for place, skill in enumerate(skills, 1):
        counts = f"{skill.success_count} of {skill.success_count + skill.failure_count} worked"
        about = f"  {clean(shorten(skill.description, 100))}" if skill.description else ""
        score = style(f"{skill.score:.3f}", fg="cyan")
        click.echo(
            f"{style(f'{place:>2}.', dim=True)} {style(one_line(skill.name), bold=True)}  {score}  {style(counts, dim=True)}"
        )
        click.echo(
            f"    {style(f'{one_line(skill.path)}:{skill.line}', fg='green')}{about}  {style(tell_id(skill.id), dim=True)}"
        )
    if not skills:
        say("No skill fits.")


@skills_verb.command("create")
@shared_options
@click.argument("name")
@click.option("--description", help="What it is for, and when to use it.")
@click.option(
    "--step", "steps", multiple=True, metavar="TEXT", help="A step; may be given several times, with {parameters}."
)
@click.option("--prerequisite", "prerequisites", multiple=True, metavar="TEXT", help="What must be there before.")
@click.option("--error", "errors", multiple=True, metavar="'ERROR: FIX'", help="What goes wrong, and what helps.")
@click.option("--exit-criterion", "exit_criteria", multiple=True, metavar="TEXT", help="How to see that it is done.")
@click.option(
    "--template", metavar="TEXT", help="A prompt or a piece of code with {parameters}; a single - reads it from stdin."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; may be given several times.")
@click.option("--created-by", metavar="WHO", help="Who made it.")
@click.option("--source", type=click.Choice(SOURCES), help="How it is known.")
@_placed
@_FORCE
@allow_secret_option
@_DRY_RUN
@click.pass_obj
def create_verb(options: Options, /, name: str, template: str | None, dry_run: bool, **chosen: Any) -> int:
    """Keep a skill called NAME, or change the one of that name.

    What is not given stays as it is there, its counters too.

    \b
    memory-kb skills create "Release train" --step "Tag {version}." --step "Push the tag." --tag release
    memory-kb skills create "Release train" --error "tag exists: bump the version"
    cat prompt.txt | memory-kb skills create "Review a migration" --template -
    """
    told: dict[str, Any] = {key: value or None if isinstance(value, tuple) else value for key, value in chosen.items()}
    if template == "-":
        template = _read_stdin().rstrip("\n")
    with options.open() as kb:
        written = kb.skills.create(name, told.pop("description"), template=template, dry_run=dry_run, **told)
    return _finish(options, written, dry_run=dry_run)


@click.command("procedure")
@shared_options
@click.argument("name")
@click.argument("steps", metavar="STEP...", nargs=-1)
@click.option("--context", help="Where it applies.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; may be given several times.")
@click.option("--source", type=click.Choice(SOURCES), help="How it is known.")
@_placed
@_FORCE
@allow_secret_option
@_DRY_RUN
@click.pass_obj
def procedure_verb(
    options: Options,
    /,
    name: str,
    steps: tuple[str, ...],
    context: str | None,
    tags: tuple[str, ...],
    dry_run: bool,
    **chosen: Any,
) -> int:
    """Save a workflow with its steps, or bring it up to date.

    A single - as STEP reads them from stdin, one a line.

    \b
    memory-kb procedure "Release train" "Tag {version}." "Push the tag." --context "Every Monday."
    printf 'Stop the workers.\\nMigrate.\\n' | memory-kb procedure "Online migration" -
    """
    if steps == ("-",):
        steps = tuple(_read_stdin().splitlines())
    with options.open() as kb:
        written = kb.procedure(name, steps, context, tags=tags or None, dry_run=dry_run, **chosen)
    return _finish(options, written, dry_run=dry_run)


def _read_stdin() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin else ""


@skills_verb.command("feedback")
@shared_options
@click.argument("skill", metavar="ID|NAME")
@click.argument("outcome", type=click.Choice(["success", "failure"]))
@_DRY_RUN
@click.pass_obj
def feedback_verb(options: Options, /, skill: str, outcome: str, dry_run: bool) -> int:
    """Record that a skill worked, or did not. Every call counts.

    \b
    memory-kb skills feedback release-train success
    """
    with options.open() as kb:
        written = kb.skills.feedback(skill, outcome, dry_run=dry_run)
    return _finish(options, written, dry_run=dry_run)


def _finish(options: Options, written: SkillWritten, *, dry_run: bool) -> int:
    def show() -> None:
        if not written.run.conflicts:
            click.echo(f"{written.action} {one_line(written.path)}  {tell_id(written.id)}")

    told = {"id": written.id, "name": written.name, "path": written.path, "action": written.action}
    return finish_run(options, written.run, dry_run=dry_run, told=told, show=show)


@skills_verb.command("import")
@shared_options
@click.argument("source", metavar="FILE|FOLDER")
@click.option("--update", is_flag=True, help="Take the text of the file over where a skill is there already.")
@click.option("--with-files", is_flag=True, help="Copy the files beside a SKILL.md too; else they are only listed.")
@_placed
@click.option("--force", is_flag=True, help="Bring in what was forgotten before.")
@_DRY_RUN
@click.pass_obj
def import_verb(options: Options, /, source: str, dry_run: bool, **chosen: Any) -> int:
    """Bring skills in: a catalogue skills.yaml, a SKILL.md, or a folder with any number of both.

    How often they worked comes with them. Importing again changes nothing.

    \b
    memory-kb skills import skills.yaml
    memory-kb skills import ~/.claude/skills --with-files
    """
    with options.open() as kb:
        report = kb.skills.import_(source, dry_run=dry_run, **chosen)
    if options.as_json:
        listed = {
            "skills": [one._asdict() for one in report.skills],
            "problems": [one._asdict() for one in report.problems],
        }
        print_json(listed | run_as_json(report.run, dry_run=dry_run))
        return CONFLICT if report.run.conflicts else 0
    print_problems(report.problems)
    if dry_run:
        print_preview(report.run)
    _print_moved(report.skills, would=dry_run)
    if report.run.run:
        say(f"`memory-kb undo {report.run.run}` takes this back.")
    return end_run(report.run)


@skills_verb.command("export")
@shared_options
@click.argument("target", metavar="FILE|FOLDER")
@click.argument("names", metavar="[ID|NAME]...", nargs=-1)
@click.option("--with-files", is_flag=True, help="Write the files that were imported with a skill too.")
@click.option("--force", is_flag=True, help="Replace files that say something else.")
@_DRY_RUN
@click.pass_obj
def export_verb(options: Options, /, target: str, names: tuple[str, ...], dry_run: bool, **chosen: Any) -> int:
    """Write skills to a catalogue, or as folders with a SKILL.md each.

    A name that ends in .yaml makes a catalogue.

    \b
    memory-kb skills export skills.yaml
    memory-kb skills export ~/.claude/skills release-train
    """
    if not target.strip():
        raise UsageError("there is no place to write to", "try: memory-kb skills export skills.yaml")
    with options.open() as kb:
        report = kb.skills.export(target, names, dry_run=dry_run, **chosen)
    left = any(one.action == "left" for one in report.files)
    if options.as_json:
        print_json(
            {
                "files": [one._asdict() for one in report.files],
                "problems": [one._asdict() for one in report.problems],
            }
        )
        return CONFLICT if left else 0
    print_problems(report.problems)
    _print_moved(report.files, would=dry_run)
    if not report.files:
        say("There are no skills.")
    return CONFLICT if left else 0


def _print_moved(moved: Sequence[SkillMoved], *, would: bool) -> None:
    for one in moved:
        said = f"  ({clean(one.message)})" if one.message else ""
        line = f"{one.action} {one_line(one.path or one.name)}{said}"
        if would:
            say(f"would be {line}")
        else:
            click.echo(line)
