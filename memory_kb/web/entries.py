"""The pages of one entry: as it reads, its links, who saw it, its changes, and editing it."""

from __future__ import annotations

import shlex
import subprocess
import threading
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from memory_kb.errors import AmbiguousId, ChangedOnDisk, MemoryKBError, UsageError
from memory_kb.index.listing import resolve
from memory_kb.kb import KnowledgeBase
from memory_kb.learning.entries import Source
from memory_kb.model import RunReport
from memory_kb.settings import Ranking
from memory_kb.web.charts import Aged, Curve, draw_curve
from memory_kb.web.render import MAX_CHARACTERS, LinkBase, render
from memory_kb.web.site import BadForm, Parameters, Site, one, see_other

if TYPE_CHECKING:
    from starlette.requests import Request

_LONGEST_FORM = 1_000_000


class EntryAddress(NamedTuple):
    """An entry as an address names it: `at` is its place, where its id alone does not tell."""

    id: str
    at: str

    def find(self, kb: KnowledgeBase) -> Source:
        """Return the entry as it stands in its file.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: there are several, and the place does not tell which.
        """
        try:
            return kb.source(self.id)
        except AmbiguousId:
            if not self.at:
                raise
            return kb.source(self.at)

    def name(self, kb: KnowledgeBase) -> str:
        """Return what the verbs call it."""
        try:
            kb.show(self.id)
        except AmbiguousId:
            return self.at or self.id
        return self.id


def read_wanted(parameters: Parameters) -> EntryAddress:
    """Return the entry that an address or a form names."""
    return EntryAddress(one(parameters, "id", 1_000), one(parameters, "at", 1_000))


async def show_entry(desk: Site, request: Request) -> Response:
    """An entry as it reads."""
    wanted = read_wanted(request.query_params)

    def look(kb: KnowledgeBase) -> tuple[Source, Curve, Ranking]:
        source, ranking = wanted.find(kb), kb.vault.settings.ranking
        return source, draw_curve(_age(source), kb.today(), ranking), ranking

    source, curve, ranking = await desk.read(look)
    leads = None
    if "[[" in source.body:
        links = await desk.keep("names", lambda kb: kb.link_map())
        names = links.names
        path = source.view.path
        leads = lambda name: resolve(names, name, path) is not None  # noqa: E731
    is_plain = len(source.body) > MAX_CHARACTERS
    body = None if is_plain else Markup(render(_without_title(source), LinkBase(source.view.path, leads)))  # noqa: S704 - the renderer escapes
    return desk.page(
        request, "entry.html", source=source, view=source.view, entry=source.entry, curve=curve, ranking=ranking, body=body,
        said=one(request.query_params, "said"), run=one(request.query_params, "run"),
    )  # fmt: skip


async def show_links(desk: Site, request: Request) -> Response:
    """What it links to, and what links to it."""
    wanted = read_wanted(request.query_params)
    report = await desk.study(lambda kb: kb.links(wanted.name(kb)))
    return desk.page(request, "links.html", report=report, wanted=wanted)


async def show_exposure(desk: Site, request: Request) -> Response:
    """Who was shown it, and what became of them."""
    wanted = read_wanted(request.query_params)
    seen = await desk.study(lambda kb: kb.exposure(wanted.name(kb)))
    return desk.page(request, "exposure.html", seen=seen, wanted=wanted)


async def show_changes(desk: Site, request: Request) -> Response:
    """What runs changed in it, and what git knows of that."""
    wanted = read_wanted(request.query_params)
    past = await desk.study(lambda kb: kb.past_of(wanted.name(kb)))
    return desk.page(request, "changes.html", past=past, wanted=wanted)


async def show_hash(desk: Site, request: Request) -> Response:
    """The hash of an entry as it is, for a page that edits it."""
    wanted = read_wanted(request.query_params)
    return JSONResponse({"hash": (await desk.read(wanted.find)).hash})


async def show_form(desk: Site, request: Request) -> Response:
    """A form with the text of an entry."""
    wanted = read_wanted(request.query_params)
    source = await desk.read(wanted.find)
    if source.uneditable:
        raise UsageError(f"{source.view.path} cannot be edited here: {source.uneditable}", "use an editor")
    return _draw_form(desk, request, wanted, source, source.text)


async def save(desk: Site, request: Request) -> Response:
    """Write what the form says, if the entry is still what the form was made from."""
    try:
        fields = await desk.form(request)
    except BadForm as exc:
        # Nothing is written, but what somebody typed is given back to be sent once more.
        return await _give_back(
            desk, request, exc.fields, "The server was started anew since you opened this form. Save once more."
        )
    wanted, was = read_wanted(fields), one(fields, "was")
    text = one(fields, "text", _LONGEST_FORM)
    try:
        run = await desk.write(lambda kb: kb.edit(wanted.name(kb), text, was))
    except ChangedOnDisk:
        return await _give_back(desk, request, fields, "")
    except MemoryKBError as exc:
        return await _give_back(desk, request, fields, f"{exc}{f'; {exc.hint}' if exc.hint else ''}")
    if run.conflicts:
        return await _give_back(desk, request, fields, " ".join(conflict.message for conflict in run.conflicts))
    return see_other(_say(wanted, "saved" if run.changes else "same", run))


async def _give_back(desk: Site, request: Request, fields: Parameters, problem: str) -> Response:
    """Draw the form with what was typed, beside what stands in the file if that is another now."""
    wanted, text = read_wanted(fields), one(fields, "text", _LONGEST_FORM)
    source = await desk.read(wanted.find)
    is_other = source.hash != one(fields, "was")
    return _draw_form(
        desk,
        request,
        wanted,
        source,
        text.replace("\r\n", "\n"),
        problem=problem,
        theirs=source.text if is_other else None,
    )


def _draw_form(
    desk: Site,
    request: Request,
    wanted: EntryAddress,
    source: Source,
    text: str,
    *,
    problem: str = "",
    theirs: str | None = None,
) -> Response:
    from difflib import unified_diff

    diff = (
        "\n".join(unified_diff((theirs or "").splitlines(), text.splitlines(), "in the file now", "yours", lineterm=""))
        if theirs
        else ""
    )
    status = 409 if theirs is not None else 422 if problem else 200
    return desk.page(
        request,
        "edit.html",
        status=status,
        wanted=wanted,
        source=source,
        view=source.view,
        text=text,
        problem=problem,
        theirs=theirs,
        diff=diff,
    )


async def forget(desk: Site, request: Request) -> Response:
    """Retire an entry."""
    fields = await desk.form(request)
    wanted = read_wanted(fields)
    retired = await desk.write(lambda kb: kb.forget(wanted.name(kb)))
    return see_other(_say(wanted, "retired" if retired.run and retired.run.changes else "same", retired.run))


async def undo(desk: Site, request: Request) -> Response:
    """Take a run back."""
    fields = await desk.form(request)
    run, back = one(fields, "run"), one(fields, "back", 2_000)
    if not run:
        raise UsageError("no run is named")
    done = await desk.write(lambda kb: kb.undo(run))
    if done.conflicts:
        return desk.page(
            request,
            "error.html",
            status=409,
            title="Not all was taken back",
            sentence=" ".join(one.message for one in done.conflicts),
            hint=None,
            choices=(),
        )
    # Only ever a path of this page: two slashes would name another host.
    to = back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/health"
    return see_other(to)


async def open_editor(desk: Site, request: Request) -> Response:
    """Open the file of an entry with the command that whoever started the server set."""
    fields = await desk.form(request)
    if not desk.house.editor or not desk.house.is_local:
        raise UsageError(
            "no editor is set", "start the server with MEMORY_KB_EDITOR set, such as to `code -g {file}:{line}`"
        )
    wanted = read_wanted(fields)
    source = await desk.read(wanted.find)
    start_editor(desk.house.editor, source.file, source.view.line)
    return see_other(_say(wanted, "opened", None))


def start_editor(command: str, file: str, line: int) -> None:
    """Start an editor, without a shell; the file is added where the command has no place for it.

    Raises:
        UsageError: there is no such command.
    """
    words = [word.replace("{file}", file).replace("{line}", str(line)) for word in shlex.split(command)]
    try:
        started = subprocess.Popen(  # noqa: S603 - the user's own command, from their own environment
            words if "{file}" in command else [*words, file],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except (OSError, IndexError) as exc:
        raise UsageError(f"the editor cannot be started: {exc}", "MEMORY_KB_EDITOR names it") from exc
    threading.Thread(target=started.wait, name="memory-kb editor", daemon=True).start()


def _say(wanted: EntryAddress, said: str, run: RunReport | None) -> str:
    pairs = {"id": wanted.id, "at": wanted.at, "said": said, "run": (run.run if run else None) or ""}
    return f"/entry?{urlencode({name: value for name, value in pairs.items() if value})}"


def _age(source: Source) -> Aged:
    entry = source.entry
    return Aged(entry.importance, entry.reinforcement_count, entry.status, entry.seen, _read_day(entry.created_at))


def _read_day(text: str | None) -> date | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).date() if text else None
    except ValueError:
        return None


def _without_title(source: Source) -> str:
    """Return the body without a first heading that is the entry's title, which stands above it."""
    body = source.body.lstrip("\r\n")
    first, _, rest = body.partition("\n")
    return rest if first.startswith("#") and first.lstrip("#").strip() == source.view.title.strip() else body
