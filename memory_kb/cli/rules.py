"""The commands rules and sweep."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, shared_options
from memory_kb.cli.output import (
    Options,
    clean,
    finish_run,
    one_line,
    print_json,
    print_problems,
    say,
    style,
    tell_id,
    wrap,
)
from memory_kb.errors import UsageError
from memory_kb.model import SCOPES
from memory_kb.text import counted

if TYPE_CHECKING:
    from memory_kb.learning.playbook import PlaybookRule
    from memory_kb.learning.playbook_file import RuleImported
    from memory_kb.reports import RunReport

_DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")


@click.group("rules", cls=Family, alone="list")
def rules_verb() -> None:
    """List, choose and judge rules and pitfalls: the playbook.

    \b
    memory-kb rules list
    memory-kb rules select --label streaming --type bug
    memory-kb rules feedback 69712e00 success
    memory-kb rules import playbook.yaml --dry-run
    """


@rules_verb.command("list")
@shared_options
@click.option("--kind", type=click.Choice(["rule", "pitfall"]), help="Only rules, or only pitfalls.")
@click.option("--tag", multiple=True, metavar="TAG", help="Only those with this tag; may be given several times.")
@click.option("--scope", multiple=True, type=click.Choice(SCOPES), help="Only this scope; may be given several times.")
@click.option("--job", help="Hide the rules of other jobs.")
@click.option("--task", help="Hide the rules of other tasks of --job.")
@click.pass_obj
def list_verb(options: Options, /, **chosen: Any) -> None:
    """List the rules and pitfalls in force, the surest first, with the confidence that is left of each.

    \b
    memory-kb rules list --tag sse
    """
    with options.open() as kb:
        rules = kb.rules.list(**{name: value for name, value in chosen.items() if value})
    if options.as_json:
        print_json({"rules": [_rule_as_json(rule) for rule in rules]})
        return
    for rule in rules:
        marks = [rule.maturity, rule.kind, rule.scope, *(["pinned"] if rule.is_pinned else []), *rule.flags]
        counts = f"{rule.success_count}+ {rule.failure_count}-"
        click.echo(f"{style(f'{rule.confidence:.2f}', fg='cyan')}  {style(tell_id(rule.id), dim=True)}")
        click.echo(wrap(clean(rule.text), 6))
        click.echo(
            f"      {style(', '.join(map(clean, marks)), dim=True)}  {counts}  {style(f'{one_line(rule.path)}:{rule.line}', fg='green')}"
        )
    if not rules:
        say('No rules yet; try: memory-kb learn "Buffer chunks until the delimiter." --kind rule --tag sse')


@rules_verb.command("select")
@shared_options
@click.option(
    "--label", "labels", multiple=True, metavar="LABEL", help="A label of the task; may be given several times."
)
@click.option("--type", "type_", metavar="TYPE", help="The type of the task, such as bug.")
@click.option("--job", help="Hide the rules of other jobs.")
@click.option("--task", help="Hide the rules of other tasks of --job.")
@click.option(
    "--max-tokens", type=click.IntRange(0), metavar="N", help="What both lists may cost together [default: 500]."
)
@click.option(
    "--max-rules", type=click.IntRange(0), metavar="N", help="How many rules and pitfalls at most [default: 10]."
)
@click.pass_obj
def select_verb(options: Options, /, type_: str | None, **chosen: Any) -> None:
    """Print the rules and pitfalls for a task, ready for a prompt, best first.

    A rule fits by its tags; a label or type that is none of them changes nothing.

    \b
    memory-kb rules select --label streaming --label sse --type bug
    """
    with options.open() as kb:
        selection = kb.rules.select(type=type_, **chosen)
    if options.as_json:
        rules, pitfalls = (
            [_rule_as_json(rule) for rule in listed] for listed in (selection.rules, selection.anti_patterns)
        )
        sums = {"total_score": selection.total_score, "token_count": selection.token_count, "text": selection.text}
        print_json({"rules": rules, "anti_patterns": pitfalls} | sums)
    elif selection.text:
        click.echo(clean(selection.text))
    else:
        say("No rule fits; `memory-kb rules list` shows their tags with --json.")


@rules_verb.command("feedback")
@shared_options
@click.argument("rule", metavar="ID")
@click.argument("outcome", type=click.Choice(["success", "failure", "mixed", "helpful", "harmful"]))
@click.option("--reason", metavar="TEXT", help="Why, for the log.")
@_DRY_RUN
@click.pass_obj
def feedback_verb(options: Options, /, rule: str, outcome: str, reason: str | None, dry_run: bool) -> int:
    """Count an outcome of rule ID: success adds 0.05 to what is left of its confidence, failure takes 0.20.

    Every call is one more outcome; `memory-kb outcome` credits what a task was shown, once.

    \b
    memory-kb rules feedback 69712e00 failure --reason "broke the release build"
    """
    with options.open() as kb:
        run = kb.rules.feedback(rule, outcome, reason=reason, dry_run=dry_run)
    return end_writing(options, run, {}, dry_run=dry_run)


@rules_verb.command("import")
@shared_options
@click.argument("source", metavar="FILE")
@click.option(
    "--scope", type=click.Choice(["project", "global"]), default="project", show_default=True, help="Where they hold."
)
@click.option("--job", help="Keep them with this job.")
@click.option("--task", help="Keep them with this task of --job.")
@_DRY_RUN
@click.pass_obj
def import_verb(options: Options, /, source: str, dry_run: bool, **chosen: Any) -> int:
    """Bring in the rules of a YAML playbook, ours or one of cass, under their own ids.

    What is known already stays as it is, so a file may be imported again.

    \b
    memory-kb rules import playbook.yaml
    memory-kb rules import ~/.cass-memory/playbook.yaml --scope global --dry-run
    """
    with options.open() as kb:
        report = kb.rules.import_(source, dry_run=dry_run, **chosen)
    if not options.as_json:
        print_problems(report.problems)
        for one in report.rules:
            _tell_imported(one, source)
        if not dry_run:
            counts = {
                word: sum(one.action == word for one in report.rules)
                for word in ("created", "known", "forgotten", "refused")
            }
            click.echo(", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "nothing to import")
    told = {
        "rules": [one._asdict() for one in report.rules],
        "problems": [problem._asdict() for problem in report.problems],
    }
    return end_writing(options, report.run, told, dry_run=dry_run, is_quiet=True)


def _tell_imported(one: RuleImported, source: str) -> None:
    if one.message:
        say(f"{one_line(source)}:{one.line}: {one.action}: {one.message}")


@rules_verb.command("export")
@shared_options
@click.option("--yaml", "is_yaml", is_flag=True, help="Print a playbook.yaml that `rules import` reads back.")
@click.option("--scope", multiple=True, type=click.Choice(SCOPES), help="Only this scope; may be given several times.")
@click.option("--tag", multiple=True, metavar="TAG", help="Only those with this tag; may be given several times.")
@click.pass_obj
def export_verb(options: Options, /, is_yaml: bool, scope: tuple[str, ...], tag: tuple[str, ...]) -> None:
    """Print all rules and pitfalls in force: as text for a prompt or an AGENTS.md, or as YAML.

    \b
    memory-kb rules export --yaml > playbook.yaml
    memory-kb rules export --tag python >> AGENTS.md
    """
    from memory_kb.learning.playbook import format_for_prompt

    words: dict[str, Any] = {name: value for name, value in (("scope", scope), ("tag", tag)) if value}
    with options.open() as kb:
        if is_yaml and not options.as_json:
            click.echo(kb.rules.export(**words), nl=False)
            return
        rules = kb.rules.list(**words)
    if options.as_json:
        print_json({"rules": [_rule_as_json(rule) for rule in rules]})
    elif rules:
        click.echo(clean(format_for_prompt(rules)))


@rules_verb.command("allow")
@shared_options
@click.argument("rule", metavar="RULE")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def allow_verb(options: Options, /, rule: str, yes: bool) -> None:
    """Let the command in the check: of RULE be run by ci and backtest, that very text, here and nowhere else.

    A changed command has to be allowed anew. `checks` in your own configuration allows commands for every vault.

    \b
    memory-kb rules allow 69712e00
    """
    with options.open() as kb:
        found = kb.rules.find(rule)
        command, is_allowed = kb.rules.check_of(found)
        if not command:
            raise UsageError(f"rule {found.id} has no check:", "add a command to its frontmatter")
        if not options.as_json:
            click.echo(clean(command))
        if not (is_allowed or yes):
            if not sys.stdin.isatty():
                raise UsageError("nobody is there to ask", "read the command, then --yes allows it")
            if not click.confirm(f"Let {found.path} run this as you?", default=False, err=True):
                return
        kb.rules.allow(found.id, command)
    if options.as_json:
        print_json({"rule": found.id, "check": command, "allowed": True})


@rules_verb.command("backtest")
@shared_options
@click.argument("rule", metavar="RULE")
@click.pass_obj
def backtest_verb(options: Options, /, rule: str) -> None:
    """Count the past commits that broke RULE, how many were fixed within a week, and the edits of agents it refused.

    The rule has forbid: or require: in its frontmatter, regular expressions for the files of its applies_to. At most
    2,000 commits of the branch that is checked out are looked through. A check: that `rules allow` allowed is run on
    the newest 20 of these that touch its files, in a temporary folder.

    \b
    memory-kb rules backtest 69712e00
    """
    with options.open() as kb:
        made = kb.git.backtest(kb.rules.find(rule))
        refused = kb.rules.refusals(made.rule)
    if options.as_json:
        breaches = [one._asdict() for one in made.breaches]
        print_json(
            {
                "rule": made.rule,
                "commits": made.commits,
                "broken": made.broken,
                "mended": made.mended,
                "breaches": breaches,
                "refused": refused.sessions,
                "broken_after_refusal": refused.broken,
            }
        )
        return
    for one in made.breaches:
        after = f"  fixed by {one.mended_by}" if one.mended_by else ""
        click.echo(
            f"{one.commit}  {one.day}  {clean(one.path)}:{one.line}  {clean(one.text or 'lacks what is required')}{after}"
        )
    click.echo(
        f"{made.commits:,} commits: {made.broken:,} broke the rule, {made.mended:,} of these were fixed within a week"
    )
    if refused.sessions:
        click.echo(
            f"agents: an edit was refused in {counted(refused.sessions, 'session')}, and made all the same in {refused.broken:,}"
        )


@click.command("sweep")
@shared_options
@_DRY_RUN
@click.pass_obj
def sweep_verb(options: Options, /, dry_run: bool) -> int:
    """Move rules between levels of trust, and flag doubtful ones.

    The levels are nascent, established and proven.

    A rule moves one level a day at most. Nothing is deleted: `memory-kb review list` shows what was flagged.

    \b
    memory-kb sweep --dry-run
    """
    with options.open() as kb:
        report = kb.sweep(dry_run=dry_run)
    told = {"promoted": len(report.promoted), "demoted": len(report.demoted), "flagged": len(report.flagged)}
    if not options.as_json and not dry_run:
        click.echo(", ".join(f"{count:,} {word}" for word, count in told.items()))
    return end_writing(options, report.run, told, dry_run=dry_run, is_quiet=True)


def end_writing(
    options: Options, run: RunReport, told: dict[str, Any], *, dry_run: bool, is_quiet: bool = False
) -> int:
    """Show a run in the way that was asked for; return the exit code.

    With `is_quiet` the verb has said itself what it did.
    """

    def show() -> None:
        moved = {change.path: change.to for change in run.changes if change.to}
        for path, reason in dict.fromkeys((change.path, change.reason) for change in run.changes):
            click.echo(f"{one_line(moved.get(path) or path)}  {clean(reason)}")
        if not run.changes and not run.conflicts:
            say("Nothing changed: it is so already.")

    return finish_run(options, run, dry_run=dry_run, told=told, show=(lambda: None) if is_quiet else show)


def _rule_as_json(rule: PlaybookRule) -> dict[str, Any]:
    return {"last_applied": rule.last_applied and rule.last_applied.isoformat()} | {
        name: value for name, value in rule._asdict().items() if name != "last_applied"
    }
