"""The commands review, outcome, exposure, cite and verify."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, flag, option, verb
from memory_kb.cli.output import (
    FINDINGS,
    Options,
    as_plain,
    dim_id,
    echo,
    format_counts,
    format_place,
    pick,
    print_table,
    print_text,
    say,
    style,
    wrap,
)
from memory_kb.cli.print_runs import finish_run, print_preview, run_as_json
from memory_kb.errors import ChangedOnDisk, NoRepository, UsageError
from memory_kb.model import KIND_ALIASES, KINDS, SCOPES
from memory_kb.reports import RunReport
from memory_kb.text import pluralize, short_id

if TYPE_CHECKING:
    from memory_kb.kb import KnowledgeBase
    from memory_kb.learning.citations import ClaimView
    from memory_kb.learning.review import ReviewItem


_ALL_FROM = option("--all-from", "All that comes from this session.", metavar="SESSION")


@click.group("review", cls=Family, alone="list")
def review_verb() -> None:
    """Judge what waits for a person: proposals, and entries with flags. Editing `status:` in a file does the same.

    What is rejected does not come back.

    \b
    memory-kb review --all-from 0b1c42
    """


@verb("list", review_verb)
@option("--kind", "Only this kind; again for more.", choice=(*KINDS, *KIND_ALIASES), many=True, metavar="KIND")
@option("--scope", "Only this scope; may be given several times.", choice=SCOPES, many=True)
@option("--tag", "Only those with this tag; may be given several times.", many=True, metavar="TAG")
@_ALL_FROM
def list_verb(options: Options, /, all_from: str | None, **chosen: Any) -> None:
    """List what waits for a judgment with its whole text, the newest first, and what each judgment would do.

    \b
    memory-kb review list --kind pitfall
    """
    items = options.kb.review.list(session=all_from, **chosen)
    if options.printed_as_json({"items": items}):
        return
    for item in items:
        _print_item(item)
        print_text(wrap(item.text.rstrip(), 10))
        echo()
    judge = f"{len(items):,} wait: memory-kb review approve|edit|reject|snooze ID..."
    say(judge if items else "Nothing waits for review.")


def _print_item(item: ReviewItem) -> None:
    known = (item.kind, item.scope, item.status, *item.flags, *([item.created] if item.created else ()))
    marks = ", ".join(known)
    echo(f"{dim_id(item.id, 8)}  {style(item.title, bold=True)}")
    echo(f"          {style(marks, dim=True)}  {format_place(item.path, item.line)}")
    consequences = f"{item.reason} Approving {item.approving}; rejecting {item.rejecting}."
    print_text(wrap(consequences, 10))


@verb("show", review_verb)
@click.argument("entry", metavar="ID")
def show_verb(options: Options, /, entry: str) -> None:
    """Show an entry of the queue, and what approving it would write.

    \b
    memory-kb review show 69712e00
    """
    kb = options.kb
    view = kb.review.show(entry)
    past = _backtest(kb, view.item.id)
    fields = {"text": view.text, "approval": run_as_json(view.approval, dry_run=True), "backtest": past}
    if options.printed_as_json(as_plain(view.item) | fields):
        return
    _print_item(view.item)
    if past:
        print_text(wrap(past, 10))
    echo()
    print_text(view.text.rstrip())
    echo()
    print_preview(view.approval)


def _backtest(kb: KnowledgeBase, entry: str) -> str | None:
    """Return what an entry that guards would have stopped, and its command; None for others, and without git."""
    rule = kb.memories.find(entry)
    command, is_allowed = kb.rules.check_of(rule)
    lines = list[str]()
    if rule.word("forbid") or rule.word("require"):
        try:
            made = kb.git.backtest(rule)
            stopped = f"Of {pluralize(made.commits, 'commit')} it would have stopped {made.broken:,}"
            lines.append(f"{stopped}; {made.mended:,} of these were fixed within a week.")
        except NoRepository:
            pass
        except UsageError as exc:
            lines.append(str(exc))
    if command:
        allowed = "is allowed" if is_allowed else f"is not allowed: `rules allow {rule.id}`"
        lines.append(f"It checks with `{command}`, which {allowed}.")
    return "\n".join(lines) or None


@verb("scan", review_verb, dry_run=True)
def scan_verb(options: Options, /) -> int:
    """Propose a warning to replace each rule that failed three times and twice as often as it succeeded.

    \b
    memory-kb review scan --dry-run
    """
    report = options.kb.review.scan(dry_run=options.dry_run)
    notes = [f"not proposed: {refusal}" for refusal in report.refused]
    fields = pick(report, "proposed", "refused")
    return finish_run(options, report.run, fields, notes=notes, said=f"{len(report.proposed):,} proposed")


@verb("approve", review_verb, dry_run=True)
@click.argument("entries", metavar="ID...", nargs=-1)
@_ALL_FROM
def approve_verb(options: Options, /, entries: tuple[str, ...], all_from: str | None) -> int:
    """Approve proposals, and remove the flags of entries. Approving again changes nothing.

    \b
    memory-kb review approve 69712e00 --dry-run
    memory-kb review approve --all-from 0b1c42
    """
    kb = options.kb
    return finish_run(options, kb.review.approve(*entries, *_named(kb, all_from), dry_run=options.dry_run))


def _named(kb: KnowledgeBase, session: str | None) -> tuple[str, ...]:
    """Return what waits and comes from a session."""
    if session is None:
        return ()
    found = tuple(item.id for item in kb.review.list(session=session) if item.status == "proposed")
    if not found:
        raise UsageError(f"nothing waits that comes from {session}", "`memory-kb review` shows what waits")
    return found


@verb("edit", review_verb, allow_secret=True, dry_run=True)
@click.argument("entry", metavar="ID")
@click.argument("text", required=False)
def edit_verb(options: Options, /, entry: str, text: str | None) -> int:
    """Replace the text of a proposal by TEXT, or open it in your editor. It stays in the queue.

    \b
    memory-kb review edit 69712e00 "Timestamps are stored in UTC."
    """
    kb = options.kb
    if text is not None:
        return finish_run(options, kb.review.edit(entry, text, dry_run=options.dry_run))
    if not (sys.stdin.isatty() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise UsageError("nobody is there to edit it", "give the text: memory-kb review edit ID TEXT")
    source, run = kb.source(entry), RunReport(None, "review edit")
    edited = click.edit(source.body)
    if edited is not None:
        try:
            run = kb.review.edit(entry, edited, was=source.hash, dry_run=options.dry_run)
        except ChangedOnDisk:  # the person's text is not lost
            print_text(edited)
            raise
    return finish_run(options, run)


@verb("snooze", review_verb, dry_run=True)
@click.argument("entries", metavar="ID...", nargs=-1, required=True)
@option("--days", "For how long.", type=int, default=14)
def snooze_verb(options: Options, /, entries: tuple[str, ...], days: int) -> int:
    """Leave entries out of the queue for some days.

    \b
    memory-kb review snooze 69712e00 --days 30
    """
    return finish_run(options, options.kb.review.snooze(*entries, days=days, dry_run=options.dry_run))


@verb("reject", review_verb, dry_run=True)
@click.argument("entries", metavar="ID...", nargs=-1)
@_ALL_FROM
@option("--reason", "Why; it is kept in the entry.", metavar="TEXT")
def reject_verb(options: Options, /, entries: tuple[str, ...], all_from: str | None, reason: str | None) -> int:
    """Reject entries. They stay where they are, and what they say does not come back.

    \b
    memory-kb review reject 69712e00 --reason "only true for the old parser"
    """
    kb = options.kb
    run = kb.review.reject(*entries, *_named(kb, all_from), reason=reason, dry_run=options.dry_run)
    return finish_run(options, run)


@verb("outcome", dry_run=True)
@click.argument("agent")
@click.argument("task")
@click.argument("outcome", type=click.Choice(["success", "failure", "mixed"]))
@option("--used", "An entry that was used; may be given several times.", many=True, metavar="ID")
@option("--session", "Only what was shown in this session.", metavar="ID")
def outcome_verb(options: Options, /, agent: str, task: str, outcome: str, **chosen: Any) -> int:
    """Record how a task went, and credit what the agent used.

    Rules, pitfalls and skills are credited, each once: those named with --used, else those shown for TASK that the
    session made use of. That is so where a third of their longer words occur in what it did, and it changed a file or
    committed. Where nothing was shown for TASK by name, what hooks showed AGENT in its last session within a day counts
    as shown.

    The marks [memory-kb: helpful ID] and [memory-kb: harmful ID], as the agent writes them in its session, count too.
    While hooks log the session, the outcome is credited when it ends, if it changed a file or committed. With
    `reinforcement.counts: shown`, everything that was shown is credited.

    \b
    memory-kb outcome coder fix-login success
    memory-kb outcome coder fix-login failure --used 69712e00
    """
    report = options.kb.outcome(agent, task, outcome, dry_run=options.dry_run, **chosen)

    def show() -> None:
        for one in report.credits:
            form = "g" if one.kind == "skill" else ".2f"
            echo(f"{one.credit:<7}  {one.before:{form}} -> {one.after:{form}}  {dim_id(one.id)}  {one.title}")

    fields = pick(report, "agent", "task", "outcome", "notice", "credits", "known")
    return finish_run(options, report.run, fields, notes=filter(None, [report.notice]), report=show)


#: The last times that are listed; `--json` has all.
_SHOWN = 20


@verb("exposure")
@click.argument("wanted", metavar="ID")
def exposure_verb(options: Options, /, wanted: str) -> None:
    """Show which agents were given an entry, when, and with what outcome.

    When an entry turns out to be wrong, this shows which sessions and which other entries are affected. A deleted entry
    is found by its whole id.

    \b
    memory-kb exposure 69712e00
    memory-kb exposure 69712e00 --json
    """
    found = options.kb.exposure(wanted)
    if options.printed_as_json(as_plain(found) | {"totals": found.totals}):
        return
    total = found.totals
    place = format_place(found.path, found.line or 1) if found.path else "no longer in the notes"
    echo(f"{style(found.title or found.id, bold=True)}  {place}")
    rows: dict[str, object] = {
        "shown": f"{pluralize(total.shown, 'time')}, {total.injected:,} of them injected",
        "to": f"{pluralize(total.sessions, 'session')}, {pluralize(total.agents, 'agent')}, {pluralize(total.tasks, 'task')}",
        "tasks went": format_counts(total.outcomes),
        "sessions ended": format_counts(total.sessions_ended),
        "tokens": f"{total.tokens_each:,} each time, {total.tokens_injected:,} injected in all (by its current text)",
    }
    print_table(rows)
    for one in found.showings[-_SHOWN:]:
        who = {"agent": one.agent, "task": one.task, "session": one.session}
        named = " ".join(f"{name}={value}" for name, value in who.items() if value)
        went = f"credited {one.credit}" if one.credit else one.outcome or one.session_outcome
        echo(f"  {one.ts[:16]}  {one.verb:<8} {named}{f'  -> {went}' if went else ''}")
    if len(found.showings) > _SHOWN:
        say(f"These are the last {_SHOWN}; --json has all.")
    for entry in found.derived:
        place = format_place(entry.path, entry.line)
        echo(f"  {entry.relation}: {short_id(entry.id)} {entry.title}  {place}")
    if found.sources:
        echo(f"  made of: {', '.join(found.sources)}")
    since = f"goes back to {found.since[:10]}" if found.since else "has nothing yet"
    say(f"The log of this machine {since}.")


_VERDICT_COLOURS = {"drifted": "yellow", "gone": "red", "fresh": "green", "moved": "green"}


@verb("cite", dry_run=True)
@click.argument("wanted", metavar="ID")
@click.argument("references", metavar="[REF]...", nargs=-1)
@flag("--from-text", "Also what its text names in code spans and links.")
def cite_verb(options: Options, /, wanted: str, references: tuple[str, ...], from_text: bool) -> int:
    """Record which code an entry is about.

    `verify` then notices when that code changes. A REF is `path`, `path#L10-L20`, `path:10-20` or a commit; paths begin
    at the project's folder. It is kept in `cites:` with a hash of the text. Without any, the entry's own text is looked
    through for what could be cited.

    \b
    memory-kb cite 69712e00 src/upload.py#L40-L62
    memory-kb cite 69712e00 docs/api.md src/api/x.py#L10-L20
    """
    report = options.kb.cite(wanted, references, from_text=from_text, dry_run=options.dry_run)
    fields = pick(report, "id", "recorded", "suggested", "refused")
    notes = [f"not recorded: {reason}" for reason in report.refused] if not references else []

    def show() -> None:
        for reference in report.recorded or report.suggested:
            echo(reference)
        if report.recorded and not report.run.changes:
            say("All of it is recorded already.")
        elif report.suggested and not report.recorded:
            say("Its text names these; `--from-text` records them.")
        elif not report.recorded:
            say("No reference is given, and its text names no further file of the project.")

    return finish_run(options, report.run, fields, notes=notes, report=show)


@verb("verify", dry_run=True)
@click.argument("wanted", metavar="[ID]...", nargs=-1)
@flag("--all", "All entries that cite something, also with --update.")
@flag("--update", "They still hold: record what they cite as it is now.")
@flag("--flag", "Put those that drifted or are gone in the review queue.")
def verify_verb(options: Options, /, wanted: tuple[str, ...], update: bool, flag: bool, **chosen: bool) -> int:
    """Check whether the code that entries cite has changed.

    Exits with 7 when something drifted or is gone. `context` marks what drifted and leaves out what is gone.

    \b
    memory-kb verify 69712e00 --update
    memory-kb verify --flag
    """
    report = options.kb.verify(*wanted, update=update, flag=flag, dry_run=options.dry_run, **chosen)

    def show() -> None:
        for claim in report.claims:
            _print_claim(claim)
        if not report.claims:
            say("No entry cites anything yet; `memory-kb cite ID REF` records what one is about.")

    fields = pick(report, "claims", "notices")
    code = finish_run(options, report.run, fields, notes=report.notices, report=show)
    return code or (0 if report.is_sound or flag else FINDINGS)


def _print_claim(claim: ClaimView) -> None:
    verdict = style(f"{claim.verdict:<10}", fg=_VERDICT_COLOURS.get(claim.verdict))
    place = style(f"{claim.path}:{claim.line}", dim=True)
    echo(f"{verdict}  {claim.title}  {place}  {short_id(claim.id)}")
    for one in claim.findings:
        if one.verdict == "fresh":
            continue
        said = one.reason
        if one.verdict == "unrecorded":
            said = "has no recorded hash; `cite` or `verify --update` records one"
        elif one.verdict == "drifted" and one.now not in ("", one.ref):
            said += f" (now {one.now})"
        echo(f"    {one.ref} {said}")
        for line in one.hint:
            echo(f"      {style(line[:160], dim=True)}")
