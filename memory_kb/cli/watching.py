"""The verb watch."""

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

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import FileProgress, print_json, print_note_problems, say
from memory_kb.kb import KnowledgeBase
from memory_kb.reports import WatchReport

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
    """The watcher in a thread, so that signals are heard whatever it is doing."""

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
            problems = [dataclasses.asdict(problem) for problem in report.problems]
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
