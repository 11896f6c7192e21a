"""What all page handlers share: their request, worker threads, templates and errors."""

from __future__ import annotations

import hmac
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from memory_kb import __version__
from memory_kb.editing.source import Source
from memory_kb.errors import (
    AmbiguousId,
    ChangedOnDisk,
    MemoryKBError,
    UnknownEntry,
    UnreadableInput,
    UsageError,
    VaultBusy,
)
from memory_kb.kb import KnowledgeBase
from memory_kb.vault import lower_priority
from memory_kb.web.filters import FILTERS
from memory_kb.web.page_query import MAX_WORD, PageQuery, Parameters, param, read_page_query
from memory_kb.web_queries import FilterValues
from memory_kb.workers import GRACE_SECONDS, NamedVault, Workers, make_say

_T = TypeVar("_T")
_FOLDER = Path(__file__).parent
STATIC = _FOLDER / "static"
#: The status and the title of the page that reports an error.
_STATUS: dict[type[MemoryKBError], tuple[int, str]] = {
    UnreadableInput: (404, "Nothing there"),
    AmbiguousId: (409, "Not clear"),
    ChangedOnDisk: (409, "Not clear"),
    UsageError: (400, "Not understood"),
    VaultBusy: (503, "Busy"),
    MemoryKBError: (500, "That did not work"),
}


class SiteInfo(NamedTuple):
    """What the pages know about the server and its vault.

    Only a page that no other machine can reach (`is_local`) shows paths of files. `mark` is in every form of these
    pages, and other sites do not know it.
    """

    name: str
    mark: str
    is_local: bool
    vaults: tuple[str, ...] = ()


class EntryAddress(NamedTuple):
    """An entry as an address names it: `at` is its place, if its id alone is ambiguous."""

    id: str
    at: str


class PageRequest(NamedTuple):
    """A request, and the vault of the thread that answers it.

    `fields` are the parameters of the address, or those of the form that was sent.
    """

    site: Site
    kb: KnowledgeBase
    http: Request
    fields: Parameters

    @property
    def query(self) -> PageQuery:
        return read_page_query(self.fields)

    @property
    def wanted(self) -> EntryAddress:
        return EntryAddress(self.param("id", 1_000), self.param("at", 1_000))

    def entry(self) -> str:
        """Return what the verbs call the entry that is asked about."""
        try:
            self.kb.show(self.wanted.id)
        except AmbiguousId:
            return self.wanted.at or self.wanted.id
        return self.wanted.id

    def source(self) -> Source:
        """Return the entry that is asked about, as it is in its file."""
        return self.kb.source(self.entry())

    def param(self, name: str, longest: int = MAX_WORD) -> str:
        """Return the last value of a name, or nothing."""
        return param(self.fields, name, longest)

    def cached(self, name: str, work: Callable[[KnowledgeBase], _T]) -> _T:
        """Return the result of a read, cached until the index changes."""
        return self.site.cached(self.kb, name, work)

    def choices(self) -> FilterValues:
        """Return the filters of the vault; one with a single word changes nothing."""
        return self.cached("choices", lambda kb: kb.filter_values())

    def page(self, template: str, **values: Any) -> Response:
        return self.site.page(self.http, template, **values)


#: What answers a request, in a thread that may wait for the disk; and which thread that is.
Handler = Callable[[PageRequest], Response]
Effort = Literal["read", "slow-read", "write"]


class Site:
    """The threads, templates and caches of all pages."""

    def __init__(self, named: NamedVault, info: SiteInfo) -> None:
        self.info = info
        self._workers = Workers(named, make_say("serve"), trust_watcher=True)
        self.looks = BackgroundLooks(named)
        self._cache: dict[str, tuple[int, Any]] = {}
        #: Set while the index may lack what a write of ours changed, if somebody else was indexing at that moment.
        self._is_behind = threading.Event()
        self._templates = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._templates.filters.update(FILTERS)
        self._templates.globals.update(info=info, version=__version__)

    async def run(self, effort: Effort, work: Callable[[KnowledgeBase], _T]) -> _T:
        """Run some work in the thread for that; a read that follows a write sees it."""
        if effort == "write":
            try:
                return await self._workers.writing.ask(work)
            finally:
                self._is_behind.set()
        worker = self._workers.reading if effort == "read" else self._workers.slow_reading
        return await worker.ask(self._with_latest_writes(work))

    def cached(self, kb: KnowledgeBase, name: str, work: Callable[[KnowledgeBase], _T]) -> _T:
        """Return the result of a read, cached until the index changes."""
        # What changes while it is read makes it old.
        entry, generation = self._cache.get(name), kb.generation
        if entry is None or entry[0] != generation:
            entry = self._cache[name] = (generation, work(kb))
        value: _T = entry[1]
        return value

    def _with_latest_writes(self, work: Callable[[KnowledgeBase], _T]) -> Callable[[KnowledgeBase], _T]:
        """Return a read that compares the files first where the watcher may not have indexed a write yet."""

        def read(kb: KnowledgeBase) -> _T:
            if self._is_behind.is_set():
                self._is_behind.clear()
                _compare_files(kb)
            try:
                return work(kb)
            except UnknownEntry:
                _compare_files(kb)  # It may have been made a moment ago.
                return work(kb)

        return read

    def warm(self, *, is_watching: bool) -> None:
        """Open the vault and read what the first page shows; then begin to watch, which would delay that."""
        first = self._workers.reading.submit(lambda kb: self.cached(kb, "recent", lambda kb: kb.recent()))
        if is_watching:
            first.add_done_callback(lambda _: self._workers.watcher.begin())

    def close(self, patience: float = GRACE_SECONDS) -> None:
        """Accept no more work, and wait for writes that have begun."""
        self.looks.end()
        self._workers.close(patience=patience)

    def page(
        self, request: Request, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
    ) -> Response:
        """Render a template, or only its part where htmx asks for that."""
        values = {"asked": PageQuery()} | {name: param(request.query_params, name) for name in ("said", "run")} | values
        is_part = "hx-request" in request.headers and "hx-history-restore-request" not in request.headers
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        text = self._templates.get_template(template).render(
            request=request, mark=self.info.mark, is_part=is_part, here=here, **values
        )
        return HTMLResponse(text, status, headers={"vary": "HX-Request", **(headers or {})})

    async def _answer(self, http: Request, route: PageRoute) -> Response:
        fields: Parameters = http.query_params
        if route.method == "POST":
            fields = await _read_form(http)
            if not hmac.compare_digest(fields.get("mark", "").encode(), self.info.mark.encode()):
                sentence = "This form did not come from a page of this vault. Nothing was written."
                hint = "go back, load the page again, and send it once more"
                return self.error_page(http, 403, "Not written", sentence, hint)
        return await self.run(route.effort, lambda kb: route.handler(PageRequest(self, kb, http, fields)))

    def handle(self, route: PageRoute) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers the requests of a route: its handler, in the thread for that, with errors as pages."""

        async def handling(request: Request) -> Response:
            try:
                return await self._answer(request, route)
            except MemoryKBError as exc:
                return self.explain(request, exc)
            except Exception as exc:  # noqa: BLE001 - any error is reported on a page
                traceback.print_exception(exc, file=sys.stderr)
                sentence = f"memory-kb failed with an internal error ({type(exc).__name__}); nothing is lost."
                return self.error_page(request, 500, "Internal error", sentence)

        return handling

    def explain(self, request: Request, error: MemoryKBError) -> Response:
        status, title = next(shown for kind, shown in _STATUS.items() if isinstance(error, kind))
        choices = error.candidates if isinstance(error, AmbiguousId) else ()
        hint = None if isinstance(error, UnknownEntry | AmbiguousId) else error.hint
        return self.error_page(request, status, title, str(error), hint, choices)

    def error_page(
        self, request: Request, status: int, title: str, sentence: str, hint: str | None = None, choices: Any = ()
    ) -> Response:
        """Draw what went wrong, what to do about it, and the entries that may be meant."""
        said = {"title": title, "sentence": sentence, "hint": hint, "choices": choices}
        return self.page(request, "error.html", status=status, **said)


def _compare_files(kb: KnowledgeBase) -> None:
    kb.index.use(lambda _: kb.index.refresh(ask_watcher=False))


class PageRoute(NamedTuple):
    """What answers at a path.

    Attributes:
        effort: `read` for what is quick, `slow-read` for what would delay answers to typing, `write`.
    """

    method: str
    path: str
    effort: Effort
    handler: Handler


async def _read_form(request: Request) -> Parameters:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise UsageError("this address takes a form of the page, and nothing else")
    try:
        text = (await request.body()).decode("utf-8", "replace")
        return Parameters(parse_qsl(text, keep_blank_values=True, max_num_fields=200))
    except (ValueError, ClientDisconnect):
        raise UsageError("that is more than a form of this page holds") from None


def see_other(address: str) -> Response:
    """Send the browser on after a form, so that loading again sends nothing again."""
    return RedirectResponse(address, 303)


#: Seconds between two looks, however much changes; and after which one is old, since code that is cited, pictures and
#: rights change beside the index.
_PAUSE_SECONDS, _OLD_SECONDS = 60.0, 600.0


class BackgroundLooks:
    """The processes of `lint` and `doctor`, one at a time of each; what they find is stored in the machine folder."""

    def __init__(self, named: NamedVault) -> None:
        self._named = named
        self._going: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: dict[str, float] = {}
        self._lock = threading.Lock()

    def begin(self, verb: str, *, is_due: bool) -> bool:
        """Begin an examination that is due, or whose last result is old; return whether one is running."""
        with self._lock:
            now = time.monotonic()
            if verb in self._going and self._going[verb].poll() is None:
                return True
            if now - self._begun.get(verb, now - _OLD_SECONDS) < (_PAUSE_SECONDS if is_due else _OLD_SECONDS):
                return False
            self._begun[verb], self._going[verb] = now, self._start(verb)
            return True

    def end(self) -> None:
        with self._lock:
            for process in self._going.values():
                process.kill()
                process.wait()

    def _start(self, verb: str) -> subprocess.Popen[bytes]:
        places = (("--vault", self._named.vault), ("--home", self._named.home))
        chosen = [word for name, place in places if place for word in (name, place)]
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-P", "-m", "memory_kb", verb, *chosen],
            env=self._named.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        lower_priority(process.pid)
        return process
