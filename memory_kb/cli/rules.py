"""The commands rules and sweep."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import click

from memory_kb.cli.app import Family, dry_run_option, flag, hide_options, option, place_options, verb
from memory_kb.cli.output import Options, clean, dim_id, format_place, one_line, pick, print_problems, say, style, wrap
from memory_kb.cli.print_runs import finish_run
from memory_kb.cli.search import show_verb
from memory_kb.errors import UsageError
from memory_kb.model import SCOPES
from memory_kb.text import pluralize

_TAG = option("--tag", "Only those with this tag; may be given several times.", many=True, metavar="TAG")
_SCOPE = option("--scope", "Only this scope; may be given several times.", choice=SCOPES, many=True)
_HIDE = hide_options("rules")


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
@_HIDE
def list_verb(options: Options, /, **chosen: Any) -> None:
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
        click.echo(f"{style(f'{rule.confidence:.2f}', fg='cyan')}  {dim_id(rule.id)}")
        click.echo(wrap(clean(rule.text), 6))
        click.echo(f"      {style(', '.join(map(clean, marks)), dim=True)}  {counts}  {place}")
    if not rules:
        say('No rules yet; try: memory-kb learn "Buffer chunks until the delimiter." --kind rule --tag sse')


@verb("select", rules_verb)
@option("--label labels", "A label of the task; may be given several times.", many=True, metavar="LABEL")
@option("--type type_", "The type of the task, such as bug.", metavar="TYPE")
@_HIDE
@option("--max-tokens", "What both lists may cost together [default: 500].", type=click.IntRange(0), metavar="N")
@option("--max-rules", "How many rules and pitfalls at most [default: 10].", type=click.IntRange(0), metavar="N")
def select_verb(options: Options, /, type_: str | None, **chosen: Any) -> None:
    """Print the rules and pitfalls for a task, ready for a prompt, best first.

    A rule fits by its tags; a label or type that is none of them changes nothing.

    \b
    memory-kb rules select --label streaming --label sse --type bug
    """
    selection = options.kb.rules.select(type=type_, **chosen)
    if options.printed_as_json(pick(selection, "rules", "anti_patterns", "total_score", "token_count", "text")):
        return
    if selection.text:
        click.echo(clean(selection.text))
    else:
        say("No rule fits; `memory-kb rules list` shows their tags with --json.")


@verb("feedback", rules_verb)
@click.argument("rule", metavar="ID")
@click.argument("outcome", type=click.Choice(["success", "failure", "mixed", "helpful", "harmful"]))
@option("--reason", "Why, for the log.", metavar="TEXT")
@dry_run_option()
def feedback_verb(options: Options, /, rule: str, outcome: str, reason: str | None) -> int:
    """Count an outcome of rule ID: success adds 0.05 to its confidence as it is today, failure subtracts 0.20.

    Every call is one more outcome; `memory-kb outcome` credits what a task was shown, once.

    \b
    memory-kb rules feedback 69712e00 failure --reason "broke the release build"
    """
    run = options.kb.rules.feedback(rule, outcome, reason=reason, dry_run=options.dry_run)
    return finish_run(options, run)


@verb("import", rules_verb)
@click.argument("source", metavar="FILE")
@place_options("Where they hold.", "them")
@dry_run_option()
def import_verb(options: Options, /, source: str, **chosen: Any) -> int:
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
                say(f"{one_line(source)}:{one.line}: {one.action}: {one.message}")

    counts = Counter(one.action for one in report.rules)
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items()) or "nothing to import"
    fields = pick(report, "rules", "problems")
    return finish_run(options, report.run, fields, report=show_problems, said=said)


@verb("export", rules_verb)
@flag("--yaml is_yaml", "Print a playbook.yaml that `rules import` reads back.")
@_SCOPE
@_TAG
def export_verb(options: Options, /, is_yaml: bool, scope: tuple[str, ...], tag: tuple[str, ...]) -> None:
    """Print all rules and pitfalls in force: as text for a prompt or an AGENTS.md, or as YAML.

    \b
    memory-kb rules export --yaml > playbook.yaml
    memory-kb rules export --tag python >> AGENTS.md
    """
    from memory_kb.learning.playbook import format_for_prompt

    words: dict[str, Any] = {name: value for name, value in (("scope", scope), ("tag", tag)) if value}
    kb = options.kb
    if is_yaml and not options.as_json:
        click.echo(kb.rules.export(**words), nl=False)
        return
    rules = kb.rules.list(**words)
    if not options.printed_as_json({"rules": rules}) and rules:
        click.echo(clean(format_for_prompt(rules)))


@verb("allow", rules_verb)
@click.argument("rule", metavar="RULE")
@flag("--yes", "Do not ask.")
def allow_verb(options: Options, /, rule: str, yes: bool) -> None:
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
        click.echo(clean(command))
    if not (is_allowed or yes):
        if not sys.stdin.isatty():
            raise UsageError("nobody is there to ask", "read the command, then --yes allows it")
        if not click.confirm(f"Let {found.path} run this as you?", default=False, err=True):
            return
    kb.rules.allow(found.id, command)
    options.printed_as_json({"rule": found.id, "check": command, "allowed": True})


@verb("backtest", rules_verb)
@click.argument("rule", metavar="RULE")
def backtest_verb(options: Options, /, rule: str) -> None:
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
        text = clean(one.text or "lacks what is required")
        click.echo(f"{one.commit}  {one.day}  {clean(one.path)}:{one.line}  {text}{after}")
    broken = f"{made.broken:,} broke the rule, {made.mended:,} of these were fixed within a week"
    click.echo(f"{made.commits:,} commits: {broken}")
    if refused.sessions:
        sessions = pluralize(refused.sessions, "session")
        click.echo(f"agents: an edit was refused in {sessions}, and made all the same in {refused.broken:,}")


@verb("sweep")
@dry_run_option()
def sweep_verb(options: Options, /) -> int:
    """Move rules between levels of trust, and flag doubtful ones.

    The levels are nascent, established and proven. A rule moves one level a day at most. Nothing is deleted: `memory-kb
    review list` shows what was flagged.

    \b
    memory-kb sweep --dry-run
    """
    report = options.kb.sweep(dry_run=options.dry_run)
    counts = {name: len(getattr(report, name)) for name in ("promoted", "demoted", "flagged")}
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items())
    return finish_run(options, report.run, counts, said=said)
