"""The commands rules, sweep, skills and procedure."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import (
    Family,
    flag,
    job_options,
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
    dim_id,
    echo,
    format_counts,
    format_place,
    one_line,
    pick,
    print_document,
    print_listing,
    print_problems,
    print_text,
    say,
    style,
    wrap,
    write,
)
from memory_kb.cli.print_runs import finish_run
from memory_kb.cli.search import show_verb
from memory_kb.errors import UsageError
from memory_kb.model import SCOPES, SOURCES, Problem
from memory_kb.text import pluralize, short_id, shorten

if TYPE_CHECKING:
    from memory_kb.skills.skill import Skill, SkillMoved, SkillWritten


_TAG = option("--tag", "Only those with this tag; may be given several times.", many=True, metavar="TAG")
_SCOPE = option("--scope", "Only this scope; may be given several times.", choice=SCOPES, many=True)
_HIDE_RULES = job_options("Hide the rules of other jobs.", "Hide the rules of other tasks of --job.")


@click.group("rules", cls=Family, alone="list")
def rules_verb() -> None:
    """List, choose and judge rules and pitfalls: the playbook.

    \b
    memory-kb rules select --label streaming --type bug
    """


rules_verb.add_command(show_verb)


@verb("list", rules_verb)
@option("--kind", "Only rules, or only pitfalls.", choice=["rule", "pitfall"])
@_TAG
@_SCOPE
@_HIDE_RULES
def list_rules(options: Options, /, **chosen: Any) -> None:
    """List the rules and pitfalls in force, the surest first, with the confidence that is left of each.

    \b
    memory-kb rules list --tag sse
    """
    rules = options.kb.rules.list(**{name: value for name, value in chosen.items() if value})
    if options.printed_as_json({"rules": rules}):
        return
    for rule in rules:
        marks = [rule.maturity, rule.kind, rule.scope, *(["pinned"] if rule.is_pinned else []), *rule.flags]
        counts = f"{rule.success_count}+ {rule.failure_count}-"
        place = format_place(rule.path, rule.line)
        echo(f"{style(f'{rule.confidence:.2f}', fg='cyan')}  {dim_id(rule.id)}")
        print_text(wrap(rule.text, 6))
        echo(f"      {style(', '.join(marks), dim=True)}  {counts}  {place}")
    if not rules:
        say('No rules yet; try: memory-kb learn "Buffer chunks until the delimiter." --kind rule --tag sse')


@verb("select", rules_verb)
@option("--label labels", "A label of the task; may be given several times.", many=True, metavar="LABEL")
@option("--type type_", "The type of the task, such as bug.", metavar="TYPE")
@_HIDE_RULES
@option("--max-tokens", "What both lists may cost together [default: 500].", within=(0,), metavar="N")
@option("--max-rules", "How many rules and pitfalls at most [default: 10].", within=(0,), metavar="N")
def select_rules(options: Options, /, type_: str | None, **chosen: Any) -> None:
    """Print the rules and pitfalls for a task, ready for a prompt, best first.

    A rule fits when a label or the type is one of its tags; a label that no rule has changes nothing.

    \b
    memory-kb rules select --label streaming --label sse --type bug
    """
    selection = options.kb.rules.select(type=type_, **chosen)
    fields = pick(selection, "rules", "anti_patterns", "total_score", "token_count", "text")
    empty = "No rule fits; `memory-kb rules list` shows their tags with --json."
    print_document(options, fields, selection.text, empty)


@verb("feedback", rules_verb, dry_run=True)
@click.argument("rule", metavar="ID")
@click.argument("outcome", type=click.Choice(["success", "failure", "mixed", "helpful", "harmful"]))
@option("--reason", "Why, for the log.", metavar="TEXT")
def rule_feedback(options: Options, /, rule: str, outcome: str, reason: str | None) -> int:
    """Count an outcome of rule ID: success adds 0.05 to its confidence as it is today, failure subtracts 0.20.

    Every call is one more outcome; `memory-kb outcome` credits what a task was shown, once.

    \b
    memory-kb rules feedback 69712e00 failure --reason "broke the release build"
    """
    return finish_run(options, options.kb.rules.feedback(rule, outcome, reason=reason, dry_run=options.dry_run))


@verb("import", rules_verb, dry_run=True)
@click.argument("source", metavar="FILE")
@place_options("Where they hold.", "them")
def import_rules(options: Options, /, source: str, **chosen: Any) -> int:
    """Import the rules of a playbook in YAML, from `rules export --yaml` or cass-memory, under their own ids.

    What is known already stays as it is, so a file may be imported again.

    \b
    memory-kb rules import ~/.cass-memory/playbook.yaml --scope global --dry-run
    """
    report = options.kb.rules.import_(source, dry_run=options.dry_run, **chosen)

    def show_problems() -> None:
        print_problems(report.problems)
        for one in report.rules:
            if one.message:
                say(f"{source}:{one.line}: {one.action}: {one.message}")

    said = format_counts(Counter(one.action for one in report.rules)) or "nothing to import"
    return finish_run(options, report.run, pick(report, "rules", "problems"), report=show_problems, said=said)


@verb("export", rules_verb)
@flag("--yaml is_yaml", "Print a playbook.yaml that `rules import` reads back.")
@_SCOPE
@_TAG
def export_rules(options: Options, /, is_yaml: bool, **chosen: Any) -> None:
    """Print all rules and pitfalls in force: as text for a prompt or an AGENTS.md, or as YAML.

    \b
    memory-kb rules export --yaml > playbook.yaml
    memory-kb rules export --tag python >> AGENTS.md
    """
    from memory_kb.learning.playbook import format_for_prompt

    words: dict[str, Any] = {name: value for name, value in chosen.items() if value}
    if is_yaml and not options.as_json:
        write(options.kb.rules.export(**words))
        return
    rules = options.kb.rules.list(**words)
    if not options.printed_as_json({"rules": rules}) and rules:
        print_text(format_for_prompt(rules))


@verb("allow", rules_verb)
@click.argument("rule", metavar="RULE")
@flag("--yes", "Do not ask.")
def allow_check(options: Options, /, rule: str, yes: bool) -> None:
    """Allow `ci` to run the command in the check: of RULE, as it is now, on this machine.

    A changed command has to be allowed anew. `checks` in your own configuration allows commands for every vault.

    \b
    memory-kb rules allow 69712e00
    """
    kb = options.kb
    found = kb.memories.find(rule)
    command, is_allowed = kb.rules.check_of(found)
    if not command:
        raise UsageError(f"rule {found.id} has no check:", "add a command to its frontmatter")
    if not options.as_json:
        print_text(command)
    if not (is_allowed or yes):
        if not sys.stdin.isatty():
            raise UsageError("nobody is there to ask", "read the command, then --yes allows it")
        if not click.confirm(one_line(f"Let {found.path} run this as you?"), default=False, err=True):
            return
    kb.rules.allow(found.id, command)
    options.printed_as_json({"rule": found.id, "check": command, "allowed": True})


@verb("backtest", rules_verb)
@click.argument("rule", metavar="RULE")
def backtest_rule(options: Options, /, rule: str) -> None:
    """Count the past commits that broke RULE, how many were fixed within a week, and the edits of agents it refused.

    The rule has forbid: or require: in its frontmatter, regular expressions for the files of its applies_to. At most
    2,000 commits of the branch that is checked out are looked through.

    \b
    memory-kb rules backtest 69712e00
    """
    kb = options.kb
    made = kb.git.backtest(kb.memories.find(rule))
    refused = kb.rules.refusals(made.rule)
    fields = pick(made, "rule", "commits", "broken", "mended", "breaches")
    if options.printed_as_json(fields | {"refused": refused.sessions, "broken_after_refusal": refused.broken}):
        return
    for one in made.breaches:
        after = f"  fixed by {one.mended_by}" if one.mended_by else ""
        text = one.text or "lacks what is required"
        echo(f"{one.commit}  {one.day}  {one.path}:{one.line}  {text}{after}")
    broken = f"{made.broken:,} broke the rule, {made.mended:,} of these were fixed within a week"
    echo(f"{made.commits:,} commits: {broken}")
    if refused.sessions:
        sessions = pluralize(refused.sessions, "session")
        echo(f"agents: an edit was refused in {sessions}, and made all the same in {refused.broken:,}")


@verb("sweep", dry_run=True)
def sweep_verb(options: Options, /) -> int:
    """Move rules between levels of trust, and flag doubtful ones.

    The levels are nascent, established and proven. A rule moves one level a day at most. Nothing is deleted: `memory-kb
    review list` shows what was flagged.

    \b
    memory-kb sweep --dry-run
    """
    report = options.kb.sweep(dry_run=options.dry_run)
    counts = {name: len(getattr(report, name)) for name in ("promoted", "demoted", "flagged")}
    return finish_run(options, report.run, counts, said=format_counts(counts))


_ORDERS = ("thompson", "mean", "ucb")
_FORCE = flag("--force", "Keep it even if one of that name was forgotten.")
_HIDE_SKILLS = job_options("Hide the skills of other jobs.", "Hide the skills of other tasks of --job.")
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
@_HIDE_SKILLS
def search_skills(options: Options, /, query: tuple[str, ...], **chosen: Any) -> None:
    """Find skills that fit QUERY, in the order in which to try them.

    Their order is drawn at random, weighted by how often they worked, so that new ones get their turn (Thompson
    sampling).

    \b
    memory-kb skills search "cut a release" --seed 1 --json
    """
    result = options.kb.skills.search(" ".join(query), **chosen)
    print_listing(options, result, map(_skill_row, result.skills), "No skill fits.", result.degraded)


@verb("rank", skills_verb)
@option("--by", "A sample, the mean, or the upper bound.", choice=_ORDERS, default="thompson")
@_SEED
@_HIDE_SKILLS
def rank_skills(options: Options, /, **chosen: Any) -> None:
    """List all skills, best first.

    \b
    memory-kb skills rank --by ucb
    """
    _print_ranked(options, **chosen)


@verb("list", skills_verb)
def list_skills(options: Options) -> None:
    """List all skills, those that worked most often first."""
    _print_ranked(options, by="mean")


def _print_ranked(options: Options, by: str, **chosen: Any) -> None:
    skills = options.kb.skills.rank(by, **chosen)
    empty = "There is no skill yet; `memory-kb skills create` makes one."
    print_listing(options, {"skills": skills}, map(_skill_row, skills), empty)


def _skill_row(skill: Skill) -> tuple[str, ...]:
    counts = f"{skill.success_count} of {skill.success_count + skill.failure_count} worked"
    about = shorten(skill.description or "", 100)
    return (f"{skill.score:.3f}", skill.name, counts, f"{skill.path}:{skill.line}", short_id(skill.id), about)


@verb("create", skills_verb, allow_secret=True, dry_run=True)
@click.argument("name")
@option("--description", "What it is for, and when to use it.")
@option("--step steps", "A step; may be given several times, with {parameters}.", many=True, metavar="TEXT")
@option("--prerequisite prerequisites", "What must be there before.", many=True, metavar="TEXT")
@option("--error errors", "What goes wrong, and what helps.", many=True, metavar="'ERROR: FIX'")
@option("--exit-criterion exit_criteria", "How to see that it is done.", many=True, metavar="TEXT")
@option("--template", "A prompt or a piece of code with {parameters}; a single - reads it from stdin.", metavar="TEXT")
@tag_option
@option("--created-by", "Who made it.", metavar="WHO")
@option("--source", "How it is known.", choice=SOURCES)
@place_options()
@_FORCE
def create_skill(options: Options, /, name: str, template: str | None, **chosen: Any) -> int:
    """Store a skill called NAME, or change the one of that name.

    What is not given stays as it is there, its counters too.

    \b
    memory-kb skills create "Release train" --step "Tag {version}." --step "Push the tag." --tag release
    memory-kb skills create "Release train" --error "tag exists: bump the version"
    """
    if template == "-":
        template = text_argument([template], errors="replace").rstrip("\n")
    fields: dict[str, Any] = {key: None if value == () else value for key, value in chosen.items()}
    return _finish_skill(options, options.kb.skills.create(name, template=template, dry_run=options.dry_run, **fields))


@verb("procedure", allow_secret=True, dry_run=True)
@click.argument("name")
@click.argument("steps", metavar="STEP...", nargs=-1)
@option("--context", "Where it applies.")
@tag_option
@option("--source", "How it is known.", choice=SOURCES)
@place_options()
@_FORCE
def procedure_verb(options: Options, /, name: str, steps: tuple[str, ...], tags: tuple[str, ...], **chosen: Any) -> int:
    """Store a workflow with its steps, or update it.

    A single - as STEP reads them from stdin, one a line.

    \b
    memory-kb procedure "Release train" "Tag {version}." "Push the tag." --context "Every Monday."
    printf 'Stop the workers.\\nMigrate.\\n' | memory-kb procedure "Online migration" -
    """
    if steps == ("-",):
        steps = tuple(text_argument(steps, errors="replace").splitlines())
    written = options.kb.procedure(name, steps, tags=tags or None, dry_run=options.dry_run, **chosen)
    return _finish_skill(options, written)


@verb("feedback", skills_verb, dry_run=True)
@click.argument("skill", metavar="ID|NAME")
@click.argument("outcome", type=click.Choice(["success", "failure"]))
def skill_feedback(options: Options, /, skill: str, outcome: str) -> int:
    """Record that a skill worked, or did not. Every call counts.

    \b
    memory-kb skills feedback release-train success
    """
    return _finish_skill(options, options.kb.skills.feedback(skill, outcome, dry_run=options.dry_run))


def _finish_skill(options: Options, written: SkillWritten) -> int:
    line = f"{written.action} {written.path}  {short_id(written.id)}"
    return finish_run(options, written.run, pick(written, "id", "name", "path", "action"), said=line)


@verb("import", skills_verb, dry_run=True)
@click.argument("source", metavar="FILE|FOLDER")
@flag("--update", "Take the text of the file over where a skill is there already.")
@flag("--with-files", "Copy the files beside a SKILL.md too; else they are only listed.")
@place_options()
@flag("--force", "Bring in what was forgotten before.")
def import_skills(options: Options, /, source: str, **chosen: Any) -> int:
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


@verb("export", skills_verb, dry_run=True)
@click.argument("target", metavar="FILE|FOLDER")
@click.argument("names", metavar="[ID|NAME]...", nargs=-1)
@flag("--with-files", "Write the files that were imported with a skill too.")
@flag("--force", "Replace files that say something else.")
def export_skills(options: Options, /, target: str, names: tuple[str, ...], **chosen: Any) -> int:
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
    show, word = (say, "would be ") if is_preview else (echo, "")
    for one in moved:
        said = f"  ({one.message})" if one.message else ""
        show(f"{word}{one.action} {one.path or one.name}{said}")
