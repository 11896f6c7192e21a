"""The commands index, status, doctor, lint, model, cache and watch."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from datetime import datetime

import click

from memory_kb.cli.app import Family, flag, option, verb
from memory_kb.cli.output import (
    Options,
    ProgressLine,
    as_plain,
    echo,
    format_counts,
    pick,
    print_findings,
    print_problems,
    print_table,
    say,
)
from memory_kb.cli.print_hits import index_and_print
from memory_kb.errors import UsageError
from memory_kb.reports import WatchReport
from memory_kb.text import pluralize


@verb("index", dry_run="Show what would be indexed and embedded, and what that costs; write nothing.")
@flag("--rebuild", "Start from nothing; searches see the old state until it is done.")
@flag("--no-embed", "Index the words only.")
def index_verb(options: Options, /, rebuild: bool, no_embed: bool) -> None:
    """Update the index from the files. Searches do this by themselves.

    With an embedding provider, vectors are made too, for what has none yet. They are kept as they come: after Ctrl-C
    the next run makes the rest.

    \b
    memory-kb index --dry-run
    memory-kb --vault ~/notes index --rebuild
    """
    if not options.dry_run:
        if rebuild:
            from memory_kb.vault import lower_priority

            lower_priority()
        index_and_print(options, rebuild=rebuild, embed=not no_embed)
        return
    status = options.kb.status()
    estimate = None if no_embed else options.kb.estimate()
    counts = {name: len(getattr(status, name)) for name in ("added", "changed", "removed")}
    if options.printed_as_json(counts | {"embed": estimate, "dry_run": True}):
        return
    rows: dict[str, object] = {f"to be {name}": pluralize(count, "file") for name, count in counts.items()}
    if estimate:
        price = "no price known" if estimate.usd is None else f"about ${estimate.usd:,.4f}"
        rows["to be embedded"] = f"{pluralize(estimate.texts, 'passage')}, about {estimate.tokens:,} tokens, {price}"
    print_table(rows)


@verb("status")
@flag("--check", "Read every file: finds an edit that kept size and time, too.")
def status_verb(options: Options, /, check: bool) -> None:
    """Compare disk and index as they are now. Nothing is changed.

    Files are compared by size and time. An edit that kept both is found by --check and `doctor`, and indexed by `index
    --rebuild`.

    \b
    memory-kb status --json
    memory-kb status --check
    """
    status = options.kb.status(check=check)
    if options.printed_as_json(as_plain(status) | {"pending": status.pending}):
        return
    when = status.indexed_at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if status.indexed_at else "never"
    counts = {"new": len(status.added), "changed": len(status.changed), "gone": len(status.removed)}
    rows: dict[str, object] = {
        "vault": status.vault,
        "home": status.home,
        "index": status.index,
        "files": f"{status.files:,}",
        "not indexed yet": format_counts(counts) if status.pending else "none",
        "last change": f"{when} (generation {status.generation})",
        "problems": f"{len(status.problems):,}",
    }
    for one in status.vectors:
        missing = f", {one.missing:,} still without" if one.missing else ""
        rows[f"vectors of {one.model}"] = f"{one.chunks:,} passages{missing}"
    if team := status.team:
        rows["team's index"] = team.problem or team.server
        rows["this vault there"] = team.name or "not part of it"
        rows["nearest passages"] = team.nearest
    for vault in team.vaults if team else ():
        at = f" at {vault.revision[:10]}" if vault.revision else ""
        state = f"{vault.vectors:,} vectors{at} (generation {vault.generation})"
        rows[f"vault {vault.name}"] = f"{vault.chunks:,} passages, {state}"
    print_table(rows)


_ALL = flag("--all whole", "List every finding, not the first 50.")


@verb("doctor")
@flag("--fix", "Repair what is safe: the index, and leftovers of killed writes.")
@flag("--adopt", "Show what a machine folder holds that was set aside; with --fix, take its sessions and vectors over.")
@option("--agent", "Instead, call each hook and the server as this agent would.", metavar="NAME")
@option("--user scope", "With --agent: as installed for all you do.", flag_value="user", default="project")
@_ALL
def doctor_verb(options: Options, /, fix: bool, adopt: bool, agent: str | None, scope: str, whole: bool) -> int:
    """Do what `lint` does, and compare the index with the notes. Exits with 7 when there is something to fix.

    Beyond `lint` it compares the bytes of every file with the index, checks the database and looks for killed runs. With
    --fix it repairs these.

    \b
    memory-kb doctor --fix
    memory-kb doctor --adopt --fix
    """
    kb = options.kb
    if agent:
        from memory_kb.cli.agents import print_checks

        return print_checks(kb.prove_agent(agent, scope=scope))
    if adopt:
        for line in kb.adopt(dry_run=not fix) or ("Nothing was set aside.",):
            say(line)
    findings = kb.doctor(fix=fix)
    for line in findings.repaired if not options.as_json else ():
        say(f"repaired: {line}")
    return print_findings(options, findings.problems, findings, whole=whole)


@verb("lint")
@click.argument("paths", nargs=-1)
@_ALL
def lint_verb(options: Options, /, paths: tuple[str, ...], whole: bool) -> int:
    """Check the notes, or those at PATHS.

    It checks fields, blocks, ids, links and secrets, and exits with 7 when it finds something. It lists an unknown
    word once, and no more than 50 findings; --all lists every one.

    \b
    memory-kb lint
    memory-kb lint memory/rules
    """
    return print_findings(options, options.kb.lint(paths), whole=whole)


_MEGABYTE = 1_000_000


@click.group("model", cls=Family)
def model_verb() -> None:
    """Fetch embedding models to this machine.

    \b
    memory-kb model fetch
    """


@verb("fetch", model_verb)
@click.argument("name", required=False)
def fetch_verb(options: Options, /, name: str | None) -> None:
    """Download an embedding model, so that searches by meaning need no key and no network.

    NAME is a sentence-transformers model with an ONNX export, `onnx/model.onnx`, as the Hugging Face hub calls it.
    An interrupted download is continued.

    \b
    memory-kb model fetch
    memory-kb model fetch intfloat/multilingual-e5-small
    """
    from memory_kb.providers.model_files import DEFAULT_MODEL, fetch_model, models_folder

    models = models_folder(os.environ)
    if models is None:
        raise UsageError("there is no home folder to keep models in", "set MEMORY_KB_MODELS to a folder")
    folder = fetch_model(name or DEFAULT_MODEL, models, environ=os.environ)
    if not options.printed_as_json({"path": str(folder)}):
        echo(str(folder))
        first = f"Set embeddings.model to {name}, then " if name not in (None, DEFAULT_MODEL) else ""
        say(f"{first}`memory-kb index` makes the vectors.")


@click.group("cache", cls=Family)
def cache_verb() -> None:
    """Prune the cache of embeddings, which is kept by text.

    \b
    memory-kb cache prune --dry-run
    """


@verb("prune", cache_verb, dry_run="Show what would be deleted.")
@option("--keep-days", "Keep what was of use this recently.", type=click.FloatRange(0), default=30.0)
@option("--max-mb", "Keep no more than this, whatever its age.", type=click.FloatRange(0))
def prune_verb(options: Options, /, keep_days: float, max_mb: float | None) -> None:
    """Delete cached vectors of texts that no note has any more.

    \b
    memory-kb cache prune
    memory-kb cache prune --keep-days 0 --max-mb 200
    """
    most = None if max_mb is None else int(max_mb * _MEGABYTE)
    pruned = options.kb.prune_cache(keep_days=keep_days, max_bytes=most, dry_run=options.dry_run)
    if options.printed_as_json(pruned._asdict() | {"dry_run": options.dry_run}):
        return
    done = "would be deleted" if options.dry_run else "deleted"
    freed, kept = pruned.freed / _MEGABYTE, pruned.kept / _MEGABYTE
    echo(f"{pruned.deleted:,} vectors {done} ({freed:.1f} MB), {kept:.1f} MB kept")


#: Seconds after which the process ends even if a request is not finished; it may be killed at any time.
_GRACE_SECONDS = 0.8
_CTRL_C = 130


@verb("watch")
@flag("--stdin until_stdin_ends", "End when standard input is closed, as when the parent process dies.")
@flag("--poll", "Compare at intervals instead of waiting for file events. Automatic where none arrive.")
def watch_verb(options: Options, /, until_stdin_ends: bool, poll: bool) -> int:
    """Keep the index up to date while files change, until Ctrl-C. One line for every batch.

    While nothing happens, maintenance that is due is done, once a week; `memory-kb undo` reverts it.

    \b
    memory-kb watch
    memory-kb --vault ~/notes watch --json
    """
    from memory_kb.vault import lower_priority

    lower_priority()
    end = _End()
    for number, code in ((signal.SIGINT, _CTRL_C), (signal.SIGTERM, 0)):
        # Who starts us in the background of a shell wants Ctrl-C ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, functools.partial(end.begin, code))
    if until_stdin_ends:
        threading.Thread(target=_wait_for_stdin, args=(end,), name="memory-kb stdin", daemon=True).start()
    with ProgressLine() as progress:

        def say_more(sentence: str) -> None:
            progress.clear()
            say(sentence)

        options.kb.watch(
            functools.partial(_print_batch, options),
            on_notice=say_more,
            stop=end.stop,
            poll=poll or None,
            progress=progress,
            maintain=True,
        )
    return end.code


class _End:
    """Whether a watch should end, and with which exit code."""

    def __init__(self) -> None:
        self.stop, self.code = threading.Event(), 0

    def begin(self, code: int, *_: object) -> None:
        """End the watch soon; asked again, at once."""
        if self.stop.is_set():
            os._exit(code)
        self.code = code
        last = threading.Timer(_GRACE_SECONDS, os._exit, (code,))
        last.daemon = True
        last.start()
        self.stop.set()


def _wait_for_stdin(end: _End) -> None:
    try:
        while os.read(sys.stdin.fileno(), 4096):
            pass
    except (OSError, ValueError):
        pass
    if not end.stop.is_set():
        end.begin(0)


def _print_batch(options: Options, report: WatchReport) -> None:
    if options.printed_as_json(as_plain(report) | {"seconds": round(report.seconds, 3)}):
        return
    print_problems(report.problems)
    counts = pick(report, "added", "changed", "removed")
    if said := format_counts({word: count for word, count in counts.items() if count}):
        echo(f"{datetime.now().astimezone():%H:%M:%S}  {said} in {report.seconds:.2f} s")
