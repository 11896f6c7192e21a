"""Run the tests in several processes, forked from the one that has imported and collected them all."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

#: What some tests of most files import, and what takes long.
_HEAVY = ("anthropic", "numpy", "openai", "watchdog.observers")

#: The bytes of a number in the queue of files.
_SIZE = 4


class Workers:
    """A plugin that has so many processes run the tests, each file in one of them."""

    def __init__(self, count: int) -> None:
        """Know how many."""
        self._count = count

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Have all tests run, and report on each as if this process had run it."""
        if session.testsfailed or session.config.option.collectonly:
            return None
        files = _by_file(session.items)
        for name in _HEAVY:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        gc.freeze()
        queue, numbers = os.pipe()
        os.write(numbers, b"".join(number.to_bytes(_SIZE, "big") for number in range(len(files))))
        os.close(numbers)
        workers: dict[Connection, int] = {}
        try:
            for _ in range(self._count):
                answers, sending = Pipe(duplex=False)
                pid = os.fork()
                if pid == 0:
                    _work(session, _next_items(files, queue), sending)
                sending.close()
                workers[answers] = pid
            _report(session, list(workers))
        except BaseException:
            for pid in workers.values():
                os.kill(pid, signal.SIGINT)
            raise
        finally:
            os.close(queue)
            for answers, pid in workers.items():
                answers.close()
                os.waitpid(pid, 0)
        return True


def _by_file(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """Return the tests of each file, first the files with the most slow tests."""
    files = [list(found) for _, found in itertools.groupby(items, lambda item: item.path)]
    return sorted(files, key=lambda found: -sum(item.get_closest_marker("slow") is not None for item in found))


def _next_items(files: Sequence[list[pytest.Item]], queue: int) -> Iterator[pytest.Item]:
    while number := os.read(queue, _SIZE):
        yield from files[int.from_bytes(number, "big")]


def _work(session: pytest.Session, items: Iterator[pytest.Item], sending: Connection) -> None:
    """Run tests, send what becomes of them, and end this process."""
    config = session.config
    try:
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(_Sender(config, sending))
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture.is_globally_capturing():  # into files of this process alone
            capture.stop_global_capturing()
            capture.start_global_capturing()
            capture.suspend_global_capture(in_=True)
        try:
            for item, following in itertools.pairwise(itertools.chain(items, [None])):
                assert item is not None
                sending.send(item.nodeid)
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.shouldfail or session.shouldstop:
                    break
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            config.hook.pytest_sessionfinish(session=session, exitstatus=pytest.ExitCode.INTERRUPTED)
        sending.send(None)
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    except BaseException:  # noqa: BLE001 - a process shows whatever ends it
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


class _Sender:
    """A plugin that sends each report to the process that prints them."""

    def __init__(self, config: pytest.Config, sending: Connection) -> None:
        self._config = config
        self._sending = sending

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send it as plain values."""
        self._sending.send(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def _report(session: pytest.Session, workers: list[Connection]) -> None:
    """Report what is sent, until all workers have ended or enough has failed."""
    hook = session.config.hook
    current: dict[Connection, str] = {}
    while workers:
        for answers in wait(workers):
            assert isinstance(answers, Connection)
            message = _receive(answers)
            if isinstance(message, str):
                current[answers] = message
            elif isinstance(message, dict):
                report = hook.pytest_report_from_serializable(config=session.config, data=message)
                _log(hook, report)
            else:
                workers.remove(answers)
                if isinstance(message, EOFError):
                    _log(hook, _death_in(current.get(answers, "the start")))
            if session.shouldfail:
                raise session.Failed(session.shouldfail)


def _receive(answers: Connection) -> Any:
    try:
        return answers.recv()
    except EOFError as ended:
        return ended


def _log(hook: Any, report: pytest.TestReport) -> None:
    if report.when == "setup":
        hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
    hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


def _death_in(nodeid: str) -> pytest.TestReport:
    location = (nodeid.partition("::")[0], None, nodeid)
    return pytest.TestReport(nodeid, location, {}, "failed", "The process that ran this test has died.", "call")
