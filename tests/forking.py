"""Run the command in processes forked from one that has loaded it already.

Each is a process of its own, as fresh as one that was started, at a tenth of the cost.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

#: What an interpreter reads when it starts: a process that is given one of these must be started.
_OF_INTERPRETERS = ("PYTHON", "LC_", "LANG", "TZ", "LD_")

#: Modules that load much, and that few commands use.
_SERVERS = ("lsp", "mcp", "serve")
_OF_SERVERS = ("memory_kb.mcp", "memory_kb.web", "memory_kb.lsp", "memory_kb.serving")

#: Packages that many commands load when they first need them.
_OFTEN_USED = ("frontmatter", "yaml")


def command(*arguments: str | Path, env: Mapping[str, str] | None = None) -> list[str]:
    """Return what to start for `memory-kb` with arguments and these variables: where it can be forked, its stand-in."""
    if not can_fork(env or {}):
        return [sys.executable, "-m", "memory_kb", *map(str, arguments)]
    serves = any(word in _SERVERS for word in arguments)
    stand_in = Path(__file__).with_name("forked.py")
    return [sys.executable, "-S", "-E", str(stand_in), fork_server(serves).address, *map(str, arguments)]


@functools.cache
def fork_server(serves: bool = False) -> ForkServer:
    """Return this process's fork server of all commands, or of those that serve, which load more."""
    server = ForkServer(serves)
    atexit.register(server.close)
    return server


class ForkServer:
    """A process that has loaded memory-kb, and forks for each command."""

    def __init__(self, serves: bool) -> None:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory(prefix="fork", ignore_cleanup_errors=True)
        self.address = f"{self._folder.name}/s"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.address)
            listening.listen(64)
            paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno()), *(["serves"] if serves else [])],
                pass_fds=[listening.fileno()],
                env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
            )

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str | None, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end, as `subprocess.run` does."""
        request = json.dumps([arguments, str(folder), dict(environment)]).encode() + b"\n"
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            streams[0].write((stdin or "").encode())
            streams[0].seek(0)
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.settimeout(timeout)
            connection.connect(self.address)
            socket.send_fds(connection, [request[:1]], [stream.fileno() for stream in streams])
            connection.sendall(request[1:])
            answers = stack.enter_context(connection.makefile("r"))
            pid = int(answers.readline())
            try:
                code = int(answers.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout) from None
            for stream in streams:
                stream.seek(0)
            output, errors = (stream.read().decode().replace("\r\n", "\n") for stream in streams[1:])
        return subprocess.CompletedProcess(list(arguments), code, output, errors)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def can_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a command with these variables of its own may be forked."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds") and not any(map(_is_of_interpreters, environment))


def _is_of_interpreters(name: str) -> bool:
    return name.startswith(_OF_INTERPRETERS)


def _serve(listening: socket.socket, serves: bool) -> None:
    import memory_kb

    left_out = ("memory_kb.__main__", *(() if serves else _OF_SERVERS))
    for module in pkgutil.walk_packages(memory_kb.__path__, "memory_kb."):
        if not module.name.startswith(left_out):
            importlib.import_module(module.name)
    for name in _OFTEN_USED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer(connection)
        connection.close()


def _answer(connection: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    first, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with contextlib.suppress(OSError), connection.makefile("rw") as lines:  # who asked may have been killed
        arguments, folder, environment = json.loads(first.decode() + lines.readline())
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become(arguments, folder, environment, streams)
        threading.Thread(target=_end_with, args=(connection, pid), daemon=True).start()
        for stream in streams:
            os.close(stream)
        for line in _numbers(pid):
            with contextlib.suppress(OSError):
                lines.write(f"{line}\n")
                lines.flush()
    os._exit(0)


def _numbers(pid: int) -> Iterator[int]:
    yield pid
    yield os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _end_with(connection: socket.socket, pid: int) -> None:
    """Kill the command when who asked for it is killed."""
    if not connection.recv(1):
        os.kill(pid, signal.SIGKILL)


def _become(arguments: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]) -> None:
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.argv = ["memory-kb", *arguments]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from memory_kb.cli import main

        main()
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    except BaseException:  # noqa: BLE001 - a process shows whatever ends it
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), "serves" in sys.argv)
