"""Verbs that measure what is found: eval and ci."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.indexing import FINDINGS
from memory_kb.cli.output import clean, one_line, print_json, say, style
from memory_kb.errors import UnreadableInput

if TYPE_CHECKING:
    from memory_kb.context.differences import CiReport
    from memory_kb.retrieval.measures import Outcome, Row
    from memory_kb.verbs.evaluating import EvalReport


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
    """Ask the standing queries of queries.yaml and measure what is found, beside grep.

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
    from memory_kb.notes.queries import write_queries

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
        "problems": [dataclasses.asdict(problem) for problem in report.problems],
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
            f'`memory-kb why-not "{clean(report.missed[0].query.question)}" {one_line(report.missed[0].query.expect[0])}` tells why.'
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
@click.option("--strict", is_flag=True, help="What was wrong before fails too.")
@click.option(
    "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the Markdown report there as well."
)
@click.pass_obj
def ci_verb(
    options: Options, /, range_: str | None, staged: bool, max_tokens: int | None, strict: bool, output: str | None
) -> int:
    """Tell what a change of the notes does to what is found and to what agents are told.

    Asks the standing queries of queries.yaml at both revisions and prints a Markdown report; where the later ones are gone or cannot be read,
    the earlier ones are asked. Exits with 7 on lost recall, and on secrets, dangling links, queries that expect what is nowhere, double ids,
    contradictions without a link and contexts over their budget that were not there before.
    BASE...HEAD compares with where the two parted.

    \b
    memory-kb ci main...HEAD
    memory-kb ci v1.0..v2.0 --output report.md --max-tokens 2000
    memory-kb ci --staged
    """
    from memory_kb.context.pullrequest import as_markdown

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
        "findings": [dataclasses.asdict(one) for one in report.findings],
        "known": [dataclasses.asdict(one) for one in report.known],
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
