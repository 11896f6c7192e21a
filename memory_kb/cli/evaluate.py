"""The commands eval, ci and benefit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import flag, option, verb
from memory_kb.cli.output import (
    FINDINGS,
    Options,
    ProgressLine,
    as_plain,
    echo,
    pick,
    print_notes,
    print_problems,
    print_rows,
    print_text,
    say,
    style,
    write,
)

if TYPE_CHECKING:
    from memory_kb.git.comparison import CiReport, ContextChange
    from memory_kb.git.evaluation import EvalReport
    from memory_kb.git.metrics import QuestionResult


@verb("eval")
@option("--propose", "Propose so many queries as YAML, from your searches and notes.", within=(1, 1000), metavar="N")
def eval_verb(options: Options, /, propose: int | None) -> int:
    """Measure how well the queries of queries.yaml find their notes.

    It measures grep too, for comparison, and exits with 7 when a query finds none of the entries it expects, or expects
    one that is missing. recall@N is the share of the expected entries that are among the first N hits; hit@N is the
    share of the queries that have at least one there. Nothing of this counts as use of the notes.

    \b
    memory-kb eval
    memory-kb eval --propose 10 >> memory/queries.yaml
    """
    if propose:
        from memory_kb.store.saved_queries import write_queries

        proposed = options.kb.eval_propose(propose)
        if not options.printed_as_json({"queries": [pick(one, "question", "expect") for one in proposed]}):
            write(write_queries(proposed))
            say("Read them before you keep them: a proposal expects what is found today.")
        return 0
    report = options.kb.eval()
    fields = pick(report, "path", "rows", "problems", "degraded")
    if not options.printed_as_json(fields | {"queries": [_outcome_as_json(one) for one in report.outcomes]}):
        _print_eval(report)
    return FINDINGS if report.missed or report.problems else 0


def _outcome_as_json(one: QuestionResult) -> dict[str, Any]:
    top = one.top[: one.query.k]
    return pick(one.query, "question", "k") | pick(one, "ranks", "rank") | {"found": one.is_found, "top": top}


def _print_eval(report: EvalReport) -> None:
    print_problems(report.problems)
    print_notes(report.degraded)
    cuts = list(report.rows[0].recall)
    head = ("", *(f"recall@{cut}" for cut in cuts), f"hit@{cuts[-1]}", "MRR")
    rows = [
        (row.name, *(f"{row.recall[cut]:.2f}" for cut in cuts), f"{row.hits[cuts[-1]]:.2f}", f"{row.mrr:.2f}")
        for row in report.rows
    ]
    print_rows([head, *rows], numbers=True)
    for one in report.missed:
        rank = f"rank {one.rank}" if one.rank else "nowhere"
        expected = ", ".join(one.query.expect)
        echo(f"{style('missed', fg='red')}  {one.query.question}  ({rank}; expected {expected})")
    if report.missed:
        query = report.missed[0].query
        say(f'`memory-kb why-not "{query.question}" {query.expect[0]}` says why.')


@verb("ci")
@click.argument("range_", metavar="[BASE..HEAD]", required=False)
@flag("--staged", "From HEAD to what is staged, for a pre-commit hook.")
@option("--max-tokens", "What the context of a query may cost, unless it says so itself.", within=(1,), metavar="N")
@flag("--strict", "Look for contradictions in every note, and fail on what was wrong before too.")
@option("--output", "Write the Markdown report there as well.", type=click.Path(dir_okay=False), metavar="FILE")
def ci_verb(options: Options, /, range_: str | None, output: str | None, **chosen: Any) -> int:
    """Show how a change of the notes changes what is found.

    Asks the saved queries of the later queries.yaml at both revisions and prints a Markdown report. Exits with 7 on
    lost recall, and on secrets, dangling links, queries that expect a missing entry, double ids, contradictions without
    a link and contexts over their budget that were not there before. BASE...HEAD compares with where the two parted.

    \b
    memory-kb ci main...HEAD
    memory-kb ci v1.0..v2.0 --output report.md --max-tokens 2000
    """
    from memory_kb.git.ci_report import as_markdown

    report = options.kb.ci(range_, **chosen)
    text = as_markdown(report)
    if output:
        Path(output).write_text(text, encoding="utf-8", newline="\n")
    if not options.printed_as_json(ci_as_json(report)):
        print_text(text)
    return 0 if report.is_sound else FINDINGS


def ci_as_json(report: CiReport) -> dict[str, Any]:
    """Return a report in the form that `--json` promises."""
    fields: dict[str, Any] = {name: pick(getattr(report, name), "name", "revision") for name in ("base", "head")}
    fields |= {"sound": report.is_sound, "recall": {"before": report.rows[0], "after": report.rows[1]}}
    fields |= pick(report, "findings", "known", "unasked", "notices")
    fields["queries"] = [
        {
            "verdict": one.verdict,
            "before": one.before and _outcome_as_json(one.before),
            "after": _outcome_as_json(one.after),
        }
        for one in report.queries
    ]
    fields["contexts"] = [
        pick(one, "task", "added", "removed")
        | {"same": one.is_same, "tokens": _before_and_after(one, "tokens"), "text": _before_and_after(one, "text")}
        for one in report.contexts
    ]
    return {name: as_plain(value) for name, value in fields.items()}


def _before_and_after(one: ContextChange, name: str) -> dict[str, Any]:
    return {"before": getattr(one.before, name), "after": getattr(one.after, name)}


@verb("benefit")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option("--html", "Also write a page with every count.", type=click.Path(path_type=Path, dir_okay=False))
@option(
    "--project",
    "Whose git history has the project's notes [default: where the sessions ran].",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
)
def benefit_verb(options: Options, /, folder: Path, html: Path | None, project: Path | None) -> None:
    """Count from your own transcripts in DIR what a memory would have saved, before you install one.

    Sessions are replayed in order of time; each is given what the hooks would have given it from the sessions that were
    over before it began. It counts, by facts of the logs, what an earlier session knew and this one found out again:
    the command that went through after others had failed, a file that was edited, an error, what you had said before.
    The notes of the project are those of its git history at that time.

    The memory is compared with none at all, with grep over the same notes, and with the MEMORY.md, CLAUDE.md or
    AGENTS.md of that time. Nothing is kept, nothing leaves the machine, and no model is asked.

    \b
    memory-kb benefit ~/.claude/projects
    memory-kb benefit ~/.codex/sessions --html benefit.html
    """
    from memory_kb.benefit import HEAD, describe_last_way, list_rows, render_report, replay

    with ProgressLine("Replaying", "sessions") as progress:
        made = replay(folder, progress, project)
    if html:
        html.write_text(render_report(made, str(folder)), encoding="utf-8")
    if options.printed_as_json(vars(made)):
        return
    again = sum(made.found_again.values())
    found = f"{again:,} things were found out that an earlier session knew"
    echo(f"{made.sessions:,} sessions, {made.prompts:,} prompts; {found}.")
    print_rows([HEAD, *list_rows(made)], numbers=True)
    never, wrong = len(made.never_paid), len(made.wrong)
    echo(
        f"{made.entries_given:,} entries were given; {never:,} of them never paid, {wrong:,} name a command that failed."
    )
    echo(describe_last_way(made))
    print_notes(made.problems[:5])
    if html:
        say(f"{html} has every count")
