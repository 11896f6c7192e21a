"""The commands index, status, doctor, lint, model, cache and watch."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, shared_options
from memory_kb.cli.output import (
    FINDINGS,
    FileProgress,
    Options,
    print_findings,
    print_json,
    print_note_problems,
    print_table,
    say,
)
from memory_kb.cli.plain import index_notes
from memory_kb.errors import UsageError
from memory_kb.kb import KnowledgeBase
from memory_kb.model import Problem

if TYPE_CHECKING:
    from memory_kb.reports import TeamState, WatchReport


@click.command("index")
@shared_options
@click.option("--rebuild", is_flag=True, help="Start from nothing; searches see the old state until it is done.")
@click.option("--no-embed", is_flag=True, help="Index the words only.")
@click.option(
    "--dry-run", is_flag=True, help="Tell what would be indexed and embedded, and what that costs; write nothing."
)
@click.pass_obj
def index_verb(options: Options, /, rebuild: bool, no_embed: bool, dry_run: bool) -> None:
    """Bring the index to what the files say. Searches do this by themselves.

    With an embedding provider, vectors are made too, for what has none yet. They are kept as they
    come: Ctrl-C loses nothing, and nothing is paid for twice.

    \b
    memory-kb index
    memory-kb index --dry-run
    memory-kb --vault ~/notes index --rebuild
    """
    if dry_run:
        _print_plan(options, embed=not no_embed)
        return
    index_notes(options, rebuild=rebuild, embed=not no_embed)


def _print_plan(options: Options, *, embed: bool) -> None:
    """Return what `index` would do."""
    with options.open() as kb:
        status = kb.status()
        estimate = kb.estimate() if embed else None
    counts = {"added": len(status.added), "changed": len(status.changed), "removed": len(status.removed)}
    if options.as_json:
        print_json(counts | {"embed": estimate and estimate._asdict(), "dry_run": True})
        return
    rows: dict[str, object] = {f"to be {name}": f"{count:,} files" for name, count in counts.items()}
    if estimate:
        price = (
            "no price known"
            if estimate.usd is None
            else f"about ${estimate.usd:,.4f}"
            if estimate.usd
            else "free of charge"
        )
        rows["to be embedded"] = f"{estimate.texts:,} passages, about {estimate.tokens:,} tokens, {price}"
    print_table(rows)


@click.command("status")
@shared_options
@click.option("--check", is_flag=True, help="Read every file: finds an edit that kept size and time, too.")
@click.pass_obj
def status_verb(options: Options, /, check: bool) -> None:
    """Compare disk and index as they are now. Nothing is changed.

    By size and time; an edit of the same size with its time put back shows with --check, or in `doctor`, and `index --rebuild` takes it in.

    \b
    memory-kb status --json
    memory-kb status --check
    """
    with options.open() as kb:
        status = kb.status(check=check)
    if options.as_json:
        print_json(
            dataclasses.asdict(status)
            | {
                "pending": status.pending,
                "problems": [problem._asdict() for problem in status.problems],
                "vectors": [one._asdict() for one in status.vectors],
                "team": status.team
                and status.team._asdict() | {"vaults": [one._asdict() for one in status.team.vaults]},
            }
        )
        return
    when = status.indexed_at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if status.indexed_at else "never"
    pending = (
        f"{len(status.added):,} new, {len(status.changed):,} changed, {len(status.removed):,} gone"
        if status.pending
        else "none"
    )
    print_table(
        {
            "vault": status.vault,
            "home": status.home,
            "index": status.index,
            "files": f"{status.files:,}",
            "not indexed yet": pending,
            "last change": f"{when} (generation {status.generation})",
            "problems": f"{len(status.problems):,}",
        }
        | {
            f"vectors of {one.model}": f"{one.chunks:,} passages{f', {one.missing:,} still without' if one.missing else ''}"
            for one in status.vectors
        }
        | (_describe_team(status.team) if status.team else {})
    )


def _describe_team(team: TeamState) -> dict[str, object]:
    """Return the rows for the team's index."""
    rows: dict[str, object] = {
        "team's index": team.problem or team.server,
        "this vault there": team.name or "not part of it",
    }
    if not team.problem:
        rows["nearest passages"] = team.nearest
    for vault in team.vaults:
        at = f" at {vault.revision[:10]}" if vault.revision else ""
        rows[f"vault {vault.name}"] = (
            f"{vault.chunks:,} passages, {vault.vectors:,} vectors{at} (generation {vault.generation})"
        )
    return rows


def _report(
    options: Options,
    problems: tuple[Problem, ...],
    extra: dict[str, Any],
    repaired: tuple[str, ...] = (),
    *,
    whole: bool,
) -> int:
    if options.as_json:
        print_json({"problems": [problem._asdict() for problem in problems]} | extra)
        return FINDINGS if problems else 0
    for line in repaired:
        say(f"repaired: {line}")
    print_findings(problems, whole=whole)
    say(f"{len(problems):,} finding{'' if len(problems) == 1 else 's'}" if problems else "Nothing to fix.")
    return FINDINGS if problems else 0


all_option = click.option("--all", "whole", is_flag=True, help="List every finding instead of totals and examples.")


@click.command("doctor")
@shared_options
@click.option("--fix", is_flag=True, help="Repair what is safe: the index, and leftovers of killed writes.")
@click.option(
    "--adopt",
    is_flag=True,
    help="Show what a machine folder holds that was set aside; with --fix, take its sessions and vectors over.",
)
@click.option("--agent", metavar="NAME", help="Instead, call each hook and the server as this agent would.")
@click.option(
    "--user", "scope", flag_value="user", default="project", help="With --agent: as installed for all you do."
)
@all_option
@click.pass_obj
def doctor_verb(options: Options, /, fix: bool, adopt: bool, agent: str | None, scope: str, whole: bool) -> int:
    """Do what `lint` does, and hold the index against the notes. Exits with 7 when there is something to fix.

    Beyond lint it reads every file and cuts it up anew, checks the database, looks for killed runs, and with --fix repairs these.

    \b
    memory-kb doctor
    memory-kb doctor --fix
    memory-kb doctor --adopt --fix
    memory-kb doctor --agent codex
    """
    with options.open() as kb:
        if agent:
            from memory_kb.cli.agents import print_checks

            return 0 if print_checks(kb.prove_agent(agent, scope=scope)) else FINDINGS
        if adopt:
            for line in kb.adopt(dry_run=not fix) or ("Nothing was set aside.",):
                say(line)
        findings = kb.doctor(fix=fix)
    return _report(options, findings.problems, {"repaired": list(findings.repaired)}, findings.repaired, whole=whole)


@click.command("lint")
@shared_options
@click.argument("paths", nargs=-1)
@all_option
@click.pass_obj
def lint_verb(options: Options, /, paths: tuple[str, ...], whole: bool) -> int:
    """Check the notes, or those at PATHS.

    Fields, blocks, ids, links, secrets. Exits with 7 on findings. Of over 50 the totals by sort come first;
    --all lists them one by one.

    \b
    memory-kb lint
    memory-kb lint memory/rules
    """
    with options.open() as kb:
        problems = kb.lint(paths)
    return _report(options, problems, {}, whole=whole)


_MEGABYTE = 1_000_000


@click.group("model", cls=Family)
def model_verb() -> None:
    """Embedding models on this machine.

    \b
    memory-kb model fetch
    """


@model_verb.command("fetch")
@shared_options
@click.argument("name", required=False)
@click.pass_obj
def fetch_verb(options: Options, /, name: str | None) -> None:
    """Download an embedding model, so that searches by meaning need no key and no network.

    NAME is a sentence-transformers model with an ONNX export, as the Hugging Face hub calls it. An interrupted
    download is continued.

    \b
    memory-kb model fetch
    memory-kb model fetch intfloat/multilingual-e5-small
    """
    import os

    from memory_kb.providers.model_config import DEFAULT_MODEL, models_folder
    from memory_kb.providers.model_fetch import fetch_model

    models = models_folder(os.environ)
    if models is None:
        raise UsageError("there is no home folder to keep models in", "set MEMORY_KB_MODELS to a folder")
    folder = fetch_model(name or DEFAULT_MODEL, models, environ=os.environ)
    if options.as_json:
        print_json({"path": str(folder)})
        return
    click.echo(str(folder))
    is_usual = name in (None, DEFAULT_MODEL)
    say(
        "`memory-kb index` makes the vectors."
        if is_usual
        else f"Set embeddings.model to {name}, then `memory-kb index` makes the vectors."
    )


@click.group("cache", cls=Family)
def cache_verb() -> None:
    """The cache of embeddings, by text.

    \b
    memory-kb cache prune --dry-run
    """


@cache_verb.command("prune")
@shared_options
@click.option(
    "--keep-days", type=click.FloatRange(0), default=30.0, show_default=True, help="Keep what was of use this recently."
)
@click.option("--max-mb", type=click.FloatRange(0), help="Keep no more than this, whatever its age.")
@click.option("--dry-run", is_flag=True, help="Tell what would be deleted.")
@click.pass_obj
def prune_verb(options: Options, /, keep_days: float, max_mb: float | None, dry_run: bool) -> None:
    """Delete cached vectors of texts that no note has any more.

    \b
    memory-kb cache prune
    memory-kb cache prune --keep-days 0 --max-mb 200
    """
    with options.open() as kb:
        pruned = kb.prune_cache(
            keep_days=keep_days, max_bytes=None if max_mb is None else int(max_mb * _MEGABYTE), dry_run=dry_run
        )
    if options.as_json:
        print_json(pruned._asdict() | {"dry_run": dry_run})
        return
    verb = "would be deleted" if dry_run else "deleted"
    click.echo(
        f"{pruned.deleted:,} vectors {verb} ({pruned.freed / _MEGABYTE:.1f} MB), {pruned.kept / _MEGABYTE:.1f} MB kept"
    )


#: Seconds after which the process ends even if a statement or a request is not finished; both may
#: be killed at any time.
_GRACE_SECONDS = 0.8
_CTRL_C = 130


@click.command("watch")
@shared_options
@click.option(
    "--stdin",
    "until_stdin_ends",
    is_flag=True,
    help="End when standard input is closed, as when the parent process dies.",
)
@click.option(
    "--poll",
    is_flag=True,
    help="Compare at intervals instead of waiting for file events. Chosen by itself where none come.",
)
@click.pass_obj
def watch_verb(options: Options, /, until_stdin_ends: bool, poll: bool) -> int:
    """Keep the index up to date while files change, until Ctrl-C. One line for every batch.

    While nothing happens, maintenance that is due is done, once a week; `memory-kb undo` takes it back.

    \b
    memory-kb watch
    memory-kb --vault ~/notes watch --json
    """
    with options.open() as kb:
        return _Service(kb, options, poll=poll or None).run(until_stdin_ends=until_stdin_ends)


class _Service:
    """The watcher in a thread, so that signals are handled whatever it is doing."""

    def __init__(self, kb: KnowledgeBase, options: Options, *, poll: bool | None) -> None:
        self._kb, self._as_json, self._poll = kb, options.as_json, poll
        self._stop, self._ended, self._bell = threading.Event(), threading.Event(), _Bell()
        self._exit_code = 0
        self._error: BaseException | None = None
        self._first_words = contextlib.ExitStack()

    def run(self, *, until_stdin_ends: bool) -> int:
        thread = threading.Thread(target=self._watch, name="memory-kb watch", daemon=True)
        with contextlib.closing(self._bell), _handling(self._end, self._bell):
            thread.start()
            if until_stdin_ends:
                threading.Thread(target=self._wait_for_stdin, name="memory-kb stdin", daemon=True).start()
            while not self._ended.is_set():
                self._bell.wait()
        if self._error:
            raise self._error
        return self._exit_code

    def _watch(self) -> None:
        try:
            with self._first_words:
                progress = self._first_words.enter_context(FileProgress())
                self._kb.watch(
                    self._print, on_notice=self._say, stop=self._stop, poll=self._poll, progress=progress, maintain=True
                )
        except BaseException as exc:  # noqa: BLE001 - raised again in the main thread
            self._error = exc
        finally:
            self._ended.set()
            self._bell.ring()

    def _end(self, exit_code: int) -> None:
        if self._stop.is_set():
            os._exit(exit_code)
        self._exit_code = exit_code
        self._stop.set()
        last = threading.Timer(_GRACE_SECONDS, os._exit, (exit_code,))
        last.daemon = True
        last.start()

    def _wait_for_stdin(self) -> None:
        try:
            while sys.stdin and os.read(sys.stdin.fileno(), 4096):
                pass
        except (OSError, ValueError):
            pass
        if not self._stop.is_set():
            self._end(0)

    def _say(self, sentence: str) -> None:
        self._first_words.close()
        say(sentence)

    def _print(self, report: WatchReport) -> None:
        if self._as_json:
            problems = [problem._asdict() for problem in report.problems]
            print_json(dataclasses.asdict(report) | {"problems": problems, "seconds": round(report.seconds, 3)})
            return
        print_note_problems(report.problems)
        counts = {"added": report.added, "changed": report.changed, "removed": report.removed}
        said = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)
        if said:
            click.echo(f"{datetime.now().astimezone():%H:%M:%S}  {said} in {report.seconds:.2f} s")


class _Bell:
    """Something to wait for that signals ring too.

    One that comes just before the wait begins would not end the wait for a lock, and looking for
    it now and then would wake an idle machine.
    """

    def __init__(self) -> None:
        self._heard, self._rung = socket.socketpair()
        self._rung.setblocking(False)

    def wait(self) -> None:
        """Wait until it rings."""
        self._heard.recv(64)

    def ring(self) -> None:
        """End the wait; this may be called when nobody waits any more."""
        with contextlib.suppress(OSError):
            self._rung.send(b"\0")

    def fileno(self) -> int:
        """Return what the system writes to when there is a signal."""
        return self._rung.fileno()

    def close(self) -> None:
        self._heard.close()
        self._rung.close()


@contextlib.contextmanager
def _handling(end: Callable[[int], None], bell: _Bell) -> Iterator[None]:
    """Call `end` with an exit code at Ctrl-C and SIGTERM, and ring the bell."""
    codes = {signal.SIGINT: _CTRL_C, signal.SIGTERM: 0}

    def handle(number: int, _: FrameType | None) -> None:
        end(codes[signal.Signals(number)])

    # Who starts us in the background of a shell wants Ctrl-C ignored.
    heard = [number for number in codes if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heard}
    usual = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(usual)
        for number, handler in before.items():
            signal.signal(number, handler)
