"""What the tests share: real vaults in temporary folders, and the command as a real process."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from forking import can_fork, command, offer_fork_servers, run_here
from hypothesis import HealthCheck, settings
from parallel import pytest_addoption, pytest_runtestloop  # noqa: F401 - hooks
from patience import be_patient

from memory_kb import KnowledgeBase

if TYPE_CHECKING:
    from asking import Clock, Make
    from fake_provider import FakeProvider
    from postgres_server import OpenTeam, Server
    from repositories import Clone

    from memory_kb.providers.protocols import Embedder

# Where the tests run in the background of a shell, Ctrl-C is ignored; the processes they start shall hear it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: The moment at which all tests take place.
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
REPOSITORY = Path(__file__).parent.parent

Files = Mapping[str, str | bytes]


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples at each run, fewer in the quick tier, and be nobody who has set anything.

    No test fails because the machine is busy.
    """
    is_quick = config.getoption("markexpr") == "not slow"
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    settings.register_profile(
        "tests", derandomize=True, deadline=None, max_examples=5 if is_quick else 100, suppress_health_check=checks
    )
    settings.load_profile("tests")
    be_patient()
    os.environ["HOME"] = os.devnull
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    if can_fork({}):
        offer_fork_servers(at_once=config.getoption("workers") > 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and later look for it seldom, as the command does."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000)
        gc.enable()


def write_files(folder: Path, files: Files) -> Path:
    """Write files below a folder, bytes as they are and text as UTF-8 with its own line ends."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


_NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder, numbered without a look at those of all other tests.

    It is the home of the person that this process is, with `open_kb` and with `run`: machine folders are signed with
    a person's secret. Without such a folder nobody has a home.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}_{os.getpid()}_{next(_NUMBERS)}"
    folder.mkdir(0o700)
    os.environ["HOME"] = str(folder)
    yield folder
    os.environ["HOME"] = os.devnull
    if request.config.getini("tmp_path_retention_policy") == "failed":
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A global home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def vault(tmp_path: Path) -> Callable[[Files], Path]:
    """A function that makes a folder with these files; `memory/...` paths make it a memory vault."""

    def make(files: Files) -> Path:
        folder = tmp_path / "vault"
        folder.mkdir(exist_ok=True)
        return write_files(folder, files)

    return make


@pytest.fixture
def folder(vault: Callable[[Files], Path]) -> Path:
    """An empty memory vault."""
    return vault({"memory/config.yaml": ""})


@pytest.fixture
def open_kb(home: Path) -> Iterator[Callable[..., KnowledgeBase]]:
    """A function that opens a folder as a knowledge base at `NOW`, closed when the test ends."""
    opened: list[KnowledgeBase] = []

    def open_one(folder: Path, now: datetime = NOW) -> KnowledgeBase:
        kb = KnowledgeBase.open(folder, home, environ={"HOME": str(home.parent)}, clock=lambda: now)
        opened.append(kb)
        return kb

    yield open_one
    for kb in opened:
        kb.close()


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_process(tmp_path: Path, home: Path) -> Run:
    """A function that runs `memory-kb` with arguments as a process of its own."""

    def run_command(
        *arguments: str | Path, cwd: Path | None = None, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments, env=env),
            cwd=cwd or tmp_path,
            input=stdin or "",
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            env=clean_environment(home) | dict(env or {}),
        )

    return run_command


@pytest.fixture
def run(tmp_path: Path, home: Path, run_process: Run) -> Run:
    """A function that runs `memory-kb` with arguments in this process, which is faster.

    What the interpreter reads when it starts needs a process of its own.
    """

    def run_command(
        *arguments: str | Path, cwd: Path | None = None, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        if not can_fork(env or {}):
            return run_process(*arguments, cwd=cwd, stdin=stdin, env=env)
        return run_here(list(map(str, arguments)), cwd or tmp_path, clean_environment(home) | dict(env or {}), stdin)

    return run_command


def clean_environment(home: Path) -> dict[str, str]:
    """Return the environment of a person who has set nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_KB", "XDG_"))}
    return kept | {"MEMORY_KB_HOME": str(home), "HOME": str(home.parent), "PYTHONPATH": str(REPOSITORY)}


_shared_context = functools.cache(ssl.create_default_context)


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    """A provider on this machine that answers like the real ones, without TLS.

    What each client loads for TLS nevertheless, all share.
    """
    from fake_provider import FakeProvider

    with mock.patch.object(ssl, "create_default_context", _shared_context), FakeProvider() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    """A clock on which the waits of providers take no time."""
    from asking import Clock

    return Clock()


@pytest.fixture(params=["openai", "gemini"])
def make(request: pytest.FixtureRequest, fake: FakeProvider, clock: Clock) -> Iterator[Make]:
    """A function that makes an embedder of either kind, which asks the fake and waits for nothing."""
    from asking import making

    with making(request.param, fake, clock) as make_one:
        yield make_one


@pytest.fixture
def openai(fake: FakeProvider, clock: Clock) -> Iterator[Embedder]:
    """An embedder that asks the fake and waits for nothing."""
    from asking import making

    with making("openai", fake, clock) as make_one:
        yield make_one()


@pytest.fixture(scope="module")
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the FILES of a test's module, made once."""
    from repositories import found

    return found(tmp_path_factory.mktemp("template"), Path("/nowhere"), request.module.FILES).folder


@pytest.fixture
def clone(template: Path, tmp_path: Path, home: Path) -> Clone:
    """A copy of that repository."""
    from repositories import copied

    return copied(template, tmp_path / "v", home)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server of our own, where there is one."""
    from postgres_server import Server

    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not installed")
    # Below a folder that others may enter: the server may have to run as another user.
    with tempfile.TemporaryDirectory(prefix="memory-kb-postgres-") as folder:
        Path(folder).chmod(0o755)
        found = Server(Path(folder) / "server")
        yield found
        found.stop()


@pytest.fixture
def open_team(server: Server, tmp_path: Path) -> Iterator[OpenTeam]:
    """A function that opens a folder as a vault of a team's index, all in one new database."""
    opened: list[KnowledgeBase] = []
    url = server.new_database()

    def open_one(folder: Path, name: str = "own", **settings: str) -> KnowledgeBase:
        environ = {
            "HOME": str(tmp_path),
            "MEMORY_KB_INDEX_URL": url,
            "MEMORY_KB_INDEX_VAULTS": f"{name}={folder}",
            "MEMORY_KB_EMBEDDINGS_PROVIDER": "none",
        }
        opened.append(KnowledgeBase.open(folder, tmp_path / "home", environ=environ | settings, clock=lambda: NOW))
        return opened[-1]

    yield open_one
    for kb in opened:
        kb.close()
