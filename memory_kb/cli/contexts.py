"""The verb context."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, print_json, say

if TYPE_CHECKING:
    from memory_kb.context.building import Context


@click.command("context")
@shared_options
@click.argument("task", nargs=-1)
@click.option(
    "--label", "labels", multiple=True, help="What kind of task it is; rules are chosen by it. May be given again."
)
@click.option("--type", "type_", help="One more label, such as bug.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file the task is about. May be given again.")
@click.option("--agent", help="Who gets it, for `outcome` later.")
@click.option("--job", help="The job it belongs to.")
@click.option(
    "--task", "task_id", help="What the task is called, for `outcome` later; with --job the task of that job."
)
@click.option("--session", metavar="ID", help="The session it happens in [default: $MEMORY_KB_SESSION].")
@click.pass_obj
def context_verb(options: Options, /, task: tuple[str, ...], type_: str | None, **chosen: Any) -> None:
    """Print what an agent should know before TASK, within its token budget.

    What always holds comes first, then what fits the task: learnings, procedures, rules, patterns to avoid.
    The text is marked as background, so that it is not learned from again. With --session a CONTINUITY.md that is there is brought
    up to date.

    \b
    memory-kb context "fix the flaky upload test" --label testing
    memory-kb context "speed up the report" --file src/report.py --json
    """
    with options.open() as kb:
        context = kb.context(" ".join(task), type=type_, **chosen)
    if options.as_json:
        print_json(as_json(context))
        return
    if context.text:
        click.echo("\n".join(map(clean, context.text.splitlines())))
    else:
        say("Nothing is known that has to do with this.")
    for reason in context.degraded:
        say(f"note: {reason}")


def as_json(context: Context) -> dict[str, Any]:
    """Return a context as the object that `--json` prints (S2-35, S0-46)."""
    rules = context.rules
    return {
        "text": context.text,
        "sections": [dataclasses.asdict(section) for section in context.sections],
        "relevant_patterns": [dataclasses.asdict(one) for one in context.relevant_patterns],
        "avoid_these": [dataclasses.asdict(one) for one in context.avoid_these],
        "applicable_skills": [dataclasses.asdict(one) for one in context.applicable_skills],
        "guidelines": {
            "rules": [
                {"id": rule.id, "text": rule.text, "confidence": rule.confidence, "score": rule.score}
                for rule in rules.rules
            ],
            "anti_patterns": [
                {"id": rule.id, "text": rule.text, "confidence": rule.confidence, "score": rule.score}
                for rule in rules.anti_patterns
            ],
            "total_score": rules.total_score,
            "token_count": rules.token_count,
        },
        "tokens": context.tokens,
        "stale": list(context.stale),
        "degraded": list(context.degraded),
    }
