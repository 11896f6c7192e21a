"""Run the command in this process, or in one forked from a process that has loaded it already.

A forked one is as fresh as one that was started, at a tenth of the cost.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn
from unittest import mock

from patience import be_patient

from memory_kb.cli import main

#: What an interpreter reads when it starts: a process that is given one of these must be started.
_OF_INTERPRETERS = ("PYTHON", "LC_", "LANG", "TZ", "LD_")

#: The variable that names the folder of the servers' addresses.
_ADDRESSES = "FORK_SERVERS"

#: Modules that load much, and that few commands use.
_SERVERS = ("lsp", "mcp", "serve")
_OF_SERVERS = ("memory_kb.mcp", "memory_kb.web", "memory_kb.lsp", "memory_kb.workers", "memory_kb.http_server")

#: Packages that many commands load when they first need them.
_OFTEN_USED = ("frontmatter", "yaml", "watchdog.observers")
_OFTEN_USED_BY_SERVERS = (
    *("uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto", "uvicorn.loops.auto", "uvicorn.lifespan.off"),
    *("markdown_it", "mdit_py_plugins.footnote", "mdit_py_plugins.dollarmath", "mdit_py_plugins.gfm_autolink"),
    "pygments.lexers",
)


def command(*arguments: str | Path, env: Mapping[str, str] | None = None) -> list[str]:
    """Return what to start for `memory-kb` with arguments and these variables: where it can be forked, its stand-in."""
    if not can_fork(env or {}):
        return [sys.executable, "-m", "memory_kb", *map(str, arguments)]
    serves = any(word in _SERVERS for word in arguments)
    stand_in = Path(__file__).with_name("forked.py")
    return [sys.executable, "-S", "-E", str(stand_in), _address(serves), *map(str, arguments)]


def _address(serves: bool) -> str:
    """Return where the fork server of all commands listens, or that of those that serve, which load more."""
    return f"{os.environ[_ADDRESSES]}/{'serves' if serves else 'any'}"


def offer_fork_servers(at_once: bool) -> None:
    """Have each fork server start when it is first asked, by this process or by those that it starts, or at once.

    What starts at once loads while this process collects the tests, when another processor has nothing to do.
    """
    if _ADDRESSES in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="fork", ignore_cleanup_errors=True)
    os.environ[_ADDRESSES] = folder.name
    atexit.register(folder.cleanup)
    for name in ("any", "serves"):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"{folder.name}/{name}")
            listening.listen(64)
            pid = os.fork()
            if pid == 0:
                _start(listening, name, at_once)
        atexit.register(os.waitpid, pid, 0)
        atexit.register(os.kill, pid, signal.SIGKILL)


def _start(listening: socket.socket, name: str, at_once: bool) -> None:
    """Become a fork server, at once or as soon as somebody connects."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not at_once:
            select.select([listening], [], [])
        paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.set_inheritable(listening.fileno(), True)
        environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(paths)}
        os.execve(sys.executable, [sys.executable, __file__, str(listening.fileno()), name], environment)
    finally:
        os._exit(1)


class _Ended(BaseException):
    """The command has ended with this code."""


def run_here(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str | None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in this process, as `subprocess.run` does in another."""
    streams = [io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline="") for text in (stdin or "", "", "")]
    left = Path.cwd()
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2], argv=["", *arguments]),
        mock.patch.object(os, "_exit", _end),
        mock.patch.object(os, "setpriority", create=True),  # somebody waits for this process
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "subprocess .* is still running")  # what a hook leaves behind
        os.chdir(folder)
        try:
            main()
        except _Ended as ended:
            code = ended.args[0]
        finally:
            os.chdir(left)
    output, errors = (_written(stream) for stream in streams[1:])
    return subprocess.CompletedProcess(arguments, code, output, errors)


def _end(code: int) -> NoReturn:
    raise _Ended(code)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read().replace("\r\n", "\n")


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
    for name in (*_OFTEN_USED, *(_OFTEN_USED_BY_SERVERS if serves else ())):
        importlib.import_module(name)
    be_patient()
    _warm_up()
    if serves:
        importlib.import_module("lsprotocol.converters").get_converter()  # resolves the types of the protocol
        _keep_templates()
    gc.freeze()  # what is never looked at is shared by all
    ended, ends = socket.socketpair()
    for end in (ended, ends):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ends.fileno(), warn_on_full_buffer=False)
    running: dict[socket.socket, int] = {}
    while True:
        for asking in select.select([listening, ended, *running], [], [])[0]:
            if asking is listening:
                _begin(listening, running)
            elif asking is ended:
                ended.recv(4096)
                _report(running)
            elif asking in running:
                # Who asked for the command was killed.
                os.kill(running[asking], signal.SIGKILL)


def _warm_up() -> None:
    """Run commands that need what most commands need, so that it is there in all that follow."""
    from memory_kb.cli import run

    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nothing:
        os.environ.update(HOME=folder, MEMORY_KB_HOME=f"{folder}/home", MEMORY_KB_EMBEDDINGS_PROVIDER="none")
        Path(folder, "memory").mkdir()
        Path(folder, "memory/config.yaml").touch()
        Path(folder, "memory/note.md").write_text("---\nid: note\nkind: fact\n---\nA word.\n")
        with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            for words in (["index"], ["search", "word"], ["context", "word"]):
                run(["--vault", folder, *words])
    os.environ.clear()
    os.environ.update(environment)


def _keep_templates() -> None:
    """Have the templates of the page compiled by the first that needs them, for all that follow."""
    from jinja2 import Environment, FileSystemBytecodeCache

    from memory_kb.web import site

    cache = FileSystemBytecodeCache(os.environ[_ADDRESSES])
    mock.patch.object(site, "Environment", functools.partial(Environment, bytecode_cache=cache)).start()


def _begin(listening: socket.socket, running: dict[socket.socket, int]) -> None:
    """Fork for a command."""
    connection, _ = listening.accept()
    request = ""
    streams: list[int] = []
    with contextlib.suppress(OSError), connection.makefile() as lines:  # who asked may have been killed
        first, streams, _, _ = socket.recv_fds(connection, 1, 3)
        request = first.decode() + lines.readline()
    if request.endswith("\n"):
        pid = os.fork()
        if pid == 0:
            for other in (listening, connection, *running):
                other.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            arguments, folder, environment = json.loads(request)
            _become(arguments, folder, environment, streams)
        running[connection] = pid
        _answer(connection, pid)
    for stream in streams:
        os.close(stream)


def _report(running: dict[socket.socket, int]) -> None:
    """Say of the commands that ended how they did."""
    for connection, pid in list(running.items()):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            del running[connection]
            _answer(connection, os.waitstatus_to_exitcode(status))
            connection.close()


def _answer(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(f"{number}\n".encode())


def _become(arguments: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]) -> None:
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
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
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2] == "serves")
