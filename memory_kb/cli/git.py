"""The commands git, commit, undo, eval and ci."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, shared_options
from memory_kb.cli.output import (
    CONFLICT,
    FINDINGS,
    Options,
    clean,
    end_run,
    finish_run,
    one_line,
    print_json,
    print_preview,
    run_as_json,
    say,
    style,
)
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.reports import RunReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_kb.git.ci import EvalReport
    from memory_kb.git.comparison import CiReport
    from memory_kb.reports import RunView
    from memory_kb.search.evaluation import Outcome, Row


@click.group("git", cls=Family)
def git_verb() -> None:
    """Make a repository understand memories.

    \b
    memory-kb git install
    memory-kb git install --uninstall
    """


@git_verb.command("install")
@shared_options
@click.option("--uninstall", is_flag=True, help="Take everything out again.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, write nothing.")
@click.pass_obj
def install_command(options: Options, /, uninstall: bool, dry_run: bool) -> None:
    """Merge memory files entry by entry and field by field when branches meet.

    Lines in the vault's .gitattributes name the files; commit them. The driver itself is in this clone's configuration, so that
    everybody runs this once in theirs; who does not merges as before.

    \b
    memory-kb git install
    memory-kb git install --uninstall --dry-run
    """
    with options.open() as kb:
        setup = kb.git.install(uninstall=uninstall, dry_run=dry_run)
    if options.as_json:
        print_json({"done": setup.done, "attributes": setup.attributes, "driver": setup.driver, "dry_run": dry_run})
        return
    for line in setup.done:
        click.echo(f"{'would have ' if dry_run else ''}{one_line(line)}")
    if not setup.done:
        say("Everything is as it should be already; nothing was changed.")
    elif not uninstall and not dry_run:
        say("Next: commit .gitattributes; in every other clone, run `memory-kb git install` once.")


@git_verb.command("merge-file", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="BASE OURS THEIRS PATH [MARKER_SIZE]")
def merge_file_command(words: tuple[str, ...]) -> int:
    """Merge a memory file of two branches; git calls this."""
    from memory_kb.git.merge_driver import answer

    return answer(words)


@click.command("commit")
@shared_options
@click.argument("run", metavar="[RUN]", required=False)
@click.option("-m", "--message", metavar="TEXT", help="The first line of the message; what was learned follows it.")
@click.option("--session", metavar="ID", help="All that the end of this session wrote.")
@click.option("--dry-run", is_flag=True, help="Show the message and the files, commit nothing.")
@click.pass_obj
def commit_verb(options: Options, /, run: str | None, message: str | None, session: str | None, dry_run: bool) -> None:
    """Commit the files that the last run wrote, and no others.

    The message says what was learned.

    What else is staged or changed stays as it is. In the middle of a merge or rebase nothing is committed.

    \b
    memory-kb commit
    memory-kb commit --session 0b1c42
    memory-kb commit 3f9a0c12 -m "memory: what the incident taught us"
    """
    with options.open() as kb:
        report = kb.commit(run, message=message, session=session, dry_run=dry_run)
    if options.as_json:
        print_json(dataclasses.asdict(report) | {"dry_run": dry_run})
        return
    for notice in report.notices:
        say(f"note: {one_line(notice)}")
    for one in report.commits:
        if one.commit:
            click.echo(f"{style(one.commit[:12], fg='green')} {clean(one.subject)}")
        else:
            click.echo("\n".join(map(clean, one.message.rstrip().split("\n"))))
        for file in one.files:
            click.echo(f"  {one_line(file)}")


@click.command("undo")
@shared_options
@click.argument("named", metavar="[RUN]...", nargs=-1)
@click.option("--session", metavar="ID", help="Take back all that the end of this session wrote.")
@click.option(
    "--list",
    "is_list",
    is_flag=True,
    help="Show the runs that can be taken back, newest first; with --session, only its own.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def undo_verb(options: Options, /, named: tuple[str, ...], session: str | None, is_list: bool, dry_run: bool) -> int:
    """Undo what the last run wrote, or those named.

    Every file becomes what it was, byte for byte.

    Files that somebody has edited since are left, and the exit code is 6. Without a name, each undo goes one run further
    back; an undo is undone by its own name.

    \b
    memory-kb undo
    memory-kb undo --list
    memory-kb undo 3f9a0c12 --dry-run
    memory-kb undo --session 0b1c42 --dry-run
    memory-kb undo 77ab0c1e 3f9a0c12
    """
    with options.open() as kb:
        if is_list:
            return _list_runs(options, kb.runs(session))
        if session is not None and named:
            raise UsageError("a run and a session are named", "name the one or the other")
        if session is not None:
            return _finish_all(options, kb.undo_session(session, dry_run=dry_run), dry_run=dry_run)
        if len(named) > 1:
            return _finish_all(options, kb.undo_runs(named, dry_run=dry_run), dry_run=dry_run)
        report = kb.undo(*named, dry_run=dry_run)
    return finish_run(options, report, dry_run=dry_run, show=lambda: _show(report))


def _finish_all(options: Options, reports: Sequence[RunReport], *, dry_run: bool) -> int:
    """Print several runs, with one way back for all of them; return the exit code."""
    if options.as_json:
        print_json({"runs": [run_as_json(report, dry_run=dry_run) for report in reports]})
        return CONFLICT if any(report.conflicts for report in reports) else 0
    if not reports:
        say("All of it is taken back already.")
    for report in reports:
        if dry_run:
            print_preview(report)
        else:
            _show(report)
    made = [report.run for report in reports if report.run]
    if made:
        say(f"`memory-kb undo {' '.join(reversed(made))}` takes this back.")
    notices = tuple(dict.fromkeys(notice for report in reports for notice in report.notices))
    return end_run(
        RunReport(
            None,
            "undo",
            conflicts=tuple(conflict for report in reports for conflict in report.conflicts),
            notices=notices,
        )
    )


def _show(report: RunReport) -> None:
    for change in report.changes:
        click.echo(f"{_PAST[change.action]} {one_line(change.path)}")
    if not (report.changes or report.conflicts):
        say("There is nothing to take back.")


_PAST = {"create": "brought back", "restore": "restored", "remove": "removed"}


def _list_runs(options: Options, runs: tuple[RunView, ...]) -> int:
    if options.as_json:
        print_json({"runs": [dataclasses.asdict(run) for run in runs]})
        return 0
    for run in runs:
        state = f" (taken back by {run.undone_by})" if run.undone_by else ""
        click.echo(
            f"{style(run.run, fg='green')}  {run.time}  {clean(run.verb):<10}  {one_line(run.summary)}{style(state, dim=True)}"
        )
    if not runs:
        say("No run has changed anything yet.")
    return 0


@click.command("eval")
@shared_options
@click.option(
    "--propose",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Propose so many queries as YAML, from your searches and notes.",
)
@click.pass_obj
def eval_verb(options: Options, /, propose: int | None) -> int:
    """Measure how well the queries of queries.yaml find their notes.

    grep is measured beside it.

    Exits with 7 when a query finds none of what it expects, or expects what is nowhere. recall@N is the share of the expected entries among
    the first N hits, hit@N the share of the questions that find one of theirs there. Nothing of it counts as use of the notes.

    \b
    memory-kb eval
    memory-kb eval --propose 10 >> memory/queries.yaml
    """
    with options.open() as kb:
        if propose:
            return _propose(options, kb.eval_propose(propose))
        report = kb.eval()
    if options.as_json:
        print_json(_eval_as_json(report))
    else:
        _print_eval(report)
    return FINDINGS if report.missed or report.problems else 0


def _propose(options: Options, queries: Any) -> int:
    from memory_kb.store.queries import write_queries

    if options.as_json:
        print_json({"queries": [{"question": one.question, "expect": list(one.expect)} for one in queries]})
    else:
        click.echo(write_queries(queries), nl=False)
        say(
            "Read them before you keep them: a proposal expects what is found today."
            if queries
            else "There is nothing left to propose."
        )
    return 0


def _eval_as_json(report: EvalReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "rows": [_row(row) for row in report.rows],
        "queries": [_outcome(one) for one in report.outcomes],
        "problems": [problem._asdict() for problem in report.problems],
        "degraded": list(report.degraded),
    }


def _row(row: Row) -> dict[str, Any]:
    recall, hits = ({str(cut): value for cut, value in shares.items()} for shares in (row.recall, row.hits))
    return {"name": row.name, "questions": row.questions, "recall": recall, "hits": hits, "mrr": row.mrr}


def _outcome(one: Outcome) -> dict[str, Any]:
    query = one.query
    return {
        "question": query.question,
        "k": query.k,
        "ranks": dict(one.ranks),
        "rank": one.rank,
        "found": one.is_found,
        "top": list(one.top[: query.k]),
    }


def _print_eval(report: EvalReport) -> None:
    for problem in report.problems:
        say(one_line(str(problem)))
    for reason in report.degraded:
        say(f"note: {one_line(reason)}")
    cuts = list(report.rows[0].recall)
    width = max(len(row.name) for row in report.rows)
    click.echo(style(f"{'':{width}}  {'  '.join(f'recall@{cut}' for cut in cuts)}  hit@{cuts[-1]}   MRR", dim=True))
    for row in report.rows:
        shares = "  ".join(f"{row.recall[cut]:{len(f'recall@{cut}')}.2f}" for cut in cuts)
        click.echo(f"{row.name:{width}}  {shares}  {row.hits[cuts[-1]]:{len(f'hit@{cuts[-1]}')}.2f}  {row.mrr:.2f}")
    for one in report.missed:
        rank = f"rank {one.rank}" if one.rank else "nowhere"
        click.echo(
            f"{style('missed', fg='red')}  {clean(one.query.question)}  ({rank}; expected {one_line(', '.join(one.query.expect))})"
        )
    if report.missed:
        say(
            f'`memory-kb why-not "{clean(report.missed[0].query.question)}" {one_line(report.missed[0].query.expect[0])}` says why.'
        )


@click.command("ci")
@shared_options
@click.argument("range_", metavar="[BASE..HEAD]", required=False)
@click.option("--staged", is_flag=True, help="From HEAD to what is staged, for a pre-commit hook.")
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="What the context of a query may cost, unless it says so itself.",
)
@click.option("--strict", is_flag=True, help="Examine every note, and fail on what was wrong before too.")
@click.option(
    "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the Markdown report there as well."
)
@click.pass_obj
def ci_verb(
    options: Options, /, range_: str | None, staged: bool, max_tokens: int | None, strict: bool, output: str | None
) -> int:
    """Show how a change of the notes changes what is found.

    Asks the standing queries of queries.yaml at both revisions and prints a Markdown report; where the later ones are gone or cannot be read,
    the earlier ones are asked. Exits with 7 on lost recall, and on secrets, dangling links, queries that expect what is nowhere, double ids,
    contradictions without a link and contexts over their budget that were not there before.
    BASE...HEAD compares with where the two parted. Without standing queries only the notes that the change can make a difference to are examined.

    \b
    memory-kb ci main...HEAD
    memory-kb ci v1.0..v2.0 --output report.md --max-tokens 2000
    memory-kb ci --staged
    """
    from memory_kb.git.ci_report import as_markdown

    with options.open() as kb:
        report = kb.ci(range_, staged=staged, max_tokens=max_tokens, strict=strict)
    text = as_markdown(report)
    if output:
        try:
            Path(output).write_text(text, encoding="utf-8", newline="\n")
        except OSError as exc:
            raise UnreadableInput(f"{output} cannot be written: {exc.strerror}") from exc
    if options.as_json:
        print_json(ci_as_json(report))
    else:
        click.echo("\n".join(map(clean, text.split("\n"))), nl=False)
    return 0 if report.is_sound else FINDINGS


def ci_as_json(report: CiReport) -> dict[str, Any]:
    """Return a report in the form that `--json` promises."""
    return {
        "base": {"name": report.base.name, "revision": report.base.revision},
        "head": {"name": report.head.name, "revision": report.head.revision},
        "sound": report.is_sound,
        "findings": [one._asdict() for one in report.findings],
        "known": [one._asdict() for one in report.known],
        "recall": {"before": _row(report.rows[0]), "after": _row(report.rows[1])},
        "queries": [
            {
                "verdict": one.verdict,
                "before": _outcome(one.before) if one.before else None,
                "after": _outcome(one.after),
            }
            for one in report.queries
        ],
        "contexts": [
            {
                "task": one.task,
                "same": one.is_same,
                "tokens": {"before": one.before.tokens, "after": one.after.tokens},
                "added": list(one.added),
                "removed": list(one.removed),
                "text": {"before": one.before.text, "after": one.after.text},
            }
            for one in report.contexts
        ],
        "unasked": list(report.unasked),
        "notices": list(report.notices),
    }
