"""Run the tests in processes forked after collection: what is imported and collected once serves all of them."""

from __future__ import annotations

import itertools
import os
import signal
import struct
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import NoReturn

import pytest

_NUMBER = struct.Struct("I")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the number of processes."""
    parser.addoption("--workers", type=int, default=0, metavar="N", help="run the tests in N processes, one file each")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the files of tests in several processes, where that is asked for, and report here what they report."""
    config = session.config
    count = config.getoption("workers")
    if not count or config.option.collectonly or session.testsfailed or not hasattr(os, "fork"):
        return None
    files = _divide(session.items)
    config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # one for all
    waiting, offered = os.pipe()
    # The last begin first: they take longest.
    os.write(offered, b"".join(map(_NUMBER.pack, reversed(range(len(files))))))
    os.close(offered)
    workers: dict[Connection, int] = {}
    try:
        for _ in range(count):
            here, there = Pipe(duplex=False)
            pid = os.fork()
            if pid == 0:
                _work(session, files, waiting, there)
            there.close()
            workers[here] = pid
        _report(session, workers)
    finally:
        for pid in workers.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(waiting)
    return True


def _divide(tests: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """Return the tests of each file, and last, as if of one file, those of the files that load big packages.

    These take seconds to load, which one worker shall spend.
    """
    loading = {test.path for test in tests if _loads_much(test)}
    files = [list(of_file) for _, of_file in itertools.groupby(tests, lambda test: test.path)]
    together = [test for test in tests if test.path in loading]
    return [file for file in files if file[0].path not in loading] + [together] * bool(together)


def _loads_much(test: pytest.Item) -> bool:
    """Return whether a test needs the packages of providers, or those of the protocol of models."""
    modules = {getattr(value, "__module__", None) for value in vars(getattr(test, "module", test)).values()}
    return "fake" in getattr(test, "fixturenames", ()) or "mcp_client" in modules


def _report(session: pytest.Session, workers: dict[Connection, int]) -> None:
    """Pass on what the workers report until all have ended."""
    hook = session.config.hook
    running: dict[Connection, str] = {}
    while workers:
        for connection in wait(list(workers)):
            assert isinstance(connection, Connection)
            try:
                data = connection.recv()
            except EOFError:
                session.shouldfail = f"a worker died in {running.get(connection)}"
                raise session.Failed(session.shouldfail) from None
            if data is None:
                os.waitpid(workers.pop(connection), 0)
                continue
            report = hook.pytest_report_from_serializable(config=session.config, data=data)
            if report.when == "setup":
                running[connection] = report.nodeid
                hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
            hook.pytest_runtest_logreport(report=report)
            if report.when == "teardown":
                hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)


def _work(
    session: pytest.Session, files: Sequence[list[pytest.Item]], waiting: int, connection: Connection
) -> NoReturn:
    """Run files until none waits, and end without what the process that collected them has to do at its end."""
    code = 1
    try:
        plugins = session.config.pluginmanager
        plugins.unregister(name="terminalreporter")
        plugins.register(_Sender(session.config, connection))
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        tests = itertools.chain(_tests(files, waiting), [None])
        for test, following in itertools.pairwise(tests):
            assert test
            session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        connection.send(None)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever ends it is shown
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _tests(files: Sequence[list[pytest.Item]], waiting: int) -> Iterator[pytest.Item]:
    """Yield the tests of the files whose numbers this process is the first to read."""
    while number := os.read(waiting, _NUMBER.size):
        yield from files[_NUMBER.unpack(number)[0]]


class _Sender:
    """Sends the reports of a worker's tests to the process that shows them."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._connection.send(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))
