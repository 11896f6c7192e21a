"""The pages of one entry: its text, links, exposure and changes, and the form that edits it."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from memory_kb.editing.source import Source
from memory_kb.errors import AmbiguousId, ChangedOnDisk, MemoryKBError, UsageError, explain_failure
from memory_kb.kb import KnowledgeBase
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.links import find_links
from memory_kb.plainfiles import read_file
from memory_kb.reports import RunReport
from memory_kb.settings import Ranking
from memory_kb.text import load_json, read_words
from memory_kb.web.charts import Aged, Curve, draw_curve
from memory_kb.web.properties import find_properties, note_from_form, split_text
from memory_kb.web.render import MAX_CHARACTERS, Embedded, LinkBase, find_contents, find_embeds, render, without_title
from memory_kb.web.site import LONGEST_FORM, BadForm, Handler, Parameters, Site, param, see_other

if TYPE_CHECKING:
    from starlette.requests import Request

#: A shorter note needs no table of contents; more notes than that are not shown in one.
_FEW_HEADINGS, _MOST_EMBEDS = 3, 30
_MOST_FOLDERS, _MOST_NAMES, _MOST_REMARKS = 500, 8, 20
_RESTARTED = "The server was started anew since you opened this form. Save once more."


class EntryAddress(NamedTuple):
    """An entry as an address names it: `at` is its place, if its id alone is ambiguous."""

    id: str
    at: str

    def find(self, kb: KnowledgeBase) -> Source:
        """Return the entry as it is in its file."""
        return kb.source(self.name(kb))

    def name(self, kb: KnowledgeBase) -> str:
        """Return what the verbs call it."""
        try:
            kb.show(self.id)
        except AmbiguousId:
            return self.at or self.id
        return self.id


def read_wanted(parameters: Parameters) -> EntryAddress:
    """Return the entry that an address or a form names."""
    return EntryAddress(param(parameters, "id", 1_000), param(parameters, "at", 1_000))


async def show_entry(site: Site, request: Request) -> Response:
    """An entry as it reads."""
    wanted = read_wanted(request.query_params)

    def look(kb: KnowledgeBase) -> tuple[Source, Curve | None, Ranking]:
        source, ranking = wanted.find(kb), kb.vault.settings.ranking
        entry = source.entry
        if entry.seen is None:  # the curve would be a level line
            return source, None, ranking
        aged = Aged(entry.importance, entry.reinforcement_count, entry.status, entry.seen)
        return source, draw_curve(aged, kb.today(), ranking), ranking

    source, curve, ranking = await site.read(look)
    text = without_title(source.body.lstrip("\r\n"), source.view.title)
    place = await _place_of(site, source.view.path, text)
    first = source.view.line + source.text[: len(source.text) - len(text)].count("\n")
    place = place._replace(passage=_read_passage(param(request.query_params, "lines"), first))
    is_plain = len(source.body) > MAX_CHARACTERS
    body = None if is_plain else Markup(render(text, place))  # noqa: S704 - the renderer escapes
    contents = find_contents(text)
    return site.page(
        request, "entry.html", choices=await site.choices(), source=source, view=source.view, entry=source.entry, curve=curve, ranking=ranking, body=body,
        contents=contents if len(contents) >= _FEW_HEADINGS else (),
        aliases=read_words(view_of.get("aliases", view_of.get("alias"))) if (view_of := source.view.metadata) else (),
        said=param(request.query_params, "said"), run=param(request.query_params, "run"),
    )  # fmt: skip


async def _place_of(site: Site, path: str, text: str) -> LinkBase:
    """Return what links of a text lead to, with the notes that it shows."""
    keeps_lines = await site.keep("lines", lambda kb: _keeps_lines(kb.vault.folder), is_quick=True)
    if "[[" not in text:
        return LinkBase(path, keeps_lines=keeps_lines)
    embeds = find_embeds(text)[:_MOST_EMBEDS]

    def read(kb: KnowledgeBase) -> tuple[frozenset[str], frozenset[str], dict[str, Embedded]]:
        found = {}
        notes = kb.follow(path, embeds) if embeds else {}
        for name, note in notes.items():
            with contextlib.suppress(MemoryKBError):
                found[name] = (note.path, kb.source(f"{note.path}:{note.line}").body)
        texts = (text, *(body for _, body in found.values()))
        asked = frozenset(link.target for one in texts for link in find_links(one) if link.is_wikilink)
        return asked, frozenset(kb.follow(path, sorted(asked))), found

    asked, known, embedded = await site.read(read)
    return LinkBase(path, lambda name: name in known or name not in asked, embedded, keeps_lines=keeps_lines)


def _keeps_lines(folder: Path) -> bool:
    """Return whether Obsidian shows the lines of this vault as they are written, its default."""
    try:
        settings = load_json(read_file(folder / ".obsidian/app.json"))
    except (OSError, ValueError):
        return (folder / ".obsidian").is_dir()
    return not (isinstance(settings, dict) and settings.get("strictLineBreaks"))


def _read_passage(lines: str, first: int) -> range:
    """Return the lines of a text that begins at line `first` of its file, as an address names them: `8-12`."""
    start, _, end = lines.partition("-")
    if not (start.isdecimal() and (end or start).isdecimal()):
        return range(0)
    return range(max(0, int(start[:9]) - first), max(0, int((end or start)[:9]) - first + 1))


def _part(template: str, look: Callable[[KnowledgeBase, str], object]) -> Handler:
    """Return the handler of a part of an entry's page that takes a slow read."""

    async def show(site: Site, request: Request) -> Response:
        wanted = read_wanted(request.query_params)
        found = await site.study(lambda kb: look(kb, wanted.name(kb)))
        return site.page(request, template, found=found, wanted=wanted)

    return show


#: What it links to and what links to it; who was shown it; what runs and commits changed in it.
show_links = _part("links.html", lambda kb, name: kb.links(name))
show_exposure = _part("exposure.html", lambda kb, name: kb.exposure(name))
show_changes = _part("changes.html", lambda kb, name: kb.past_of(name))


async def show_hash(site: Site, request: Request) -> Response:
    """The hash of an entry as it is, for a page that edits it."""
    wanted = read_wanted(request.query_params)
    return JSONResponse({"hash": (await site.read(wanted.find)).hash})


async def show_form(site: Site, request: Request) -> Response:
    """A form with the text of an entry."""
    wanted = read_wanted(request.query_params)
    source = await site.read(wanted.find)
    if source.uneditable:
        raise UsageError(f"{source.view.path} cannot be edited here: {source.uneditable}", "use an editor")
    return _draw_form(site, request, wanted, source, source.text)


async def show_new(site: Site, request: Request) -> Response:
    """A form for a note that is not there yet."""
    asked = request.query_params
    return await _draw_new(site, request, param(asked, "title"), "", "", param(asked, "folder", 1_000) or None)


async def create(site: Site, request: Request) -> Response:
    """Make a note of what the form says."""
    try:
        fields = await site.form(request)
    except BadForm as exc:
        fields = exc.fields
        return await _draw_new(site, request, param(fields, "title"), param(fields, "text", LONGEST_FORM), _RESTARTED)
    title, folder, text = param(fields, "title"), param(fields, "folder"), param(fields, "text", LONGEST_FORM)
    try:
        path, run = await site.write(lambda kb: kb.create(title, folder, text))
    except MemoryKBError as exc:
        return await _draw_new(site, request, title, text, explain_failure(exc), folder)
    return see_other(_after(EntryAddress(path, ""), "saved", run))


async def _draw_new(
    site: Site, request: Request, title: str, text: str, problem: str, folder: str | None = None
) -> Response:
    def look(kb: KnowledgeBase) -> tuple[list[str], str]:
        folders = {one.path.rpartition("/")[0] for one in kb.list() if not one.path.startswith("~")}
        return sorted(folders - {""})[:_MOST_FOLDERS], "memory/learnings" if kb.vault.memory else ""

    folders, usual = await site.keep("folders", look)
    status = 422 if problem else 200
    return site.page(
        request, "new.html", status=status, title=title, folder=usual if folder is None else folder, folders=folders,
        text=text.replace("\r\n", "\n"), problem=problem,
    )  # fmt: skip


async def preview(site: Site, request: Request) -> Response:
    """What is being written, as it will read."""
    fields = await site.form(request)
    _, body = split_text(param(fields, "text", MAX_CHARACTERS).replace("\r\n", "\n"))
    place = await _place_of(site, _read_path(fields), body)
    return site.page(request, "preview.html", body=Markup(render(body, place)))  # noqa: S704 - the renderer escapes


async def show_remarks(site: Site, request: Request) -> Response:
    """What is to be fixed in what is being written, by the rules of `lint`."""
    fields = await site.form(request)
    text, path = note_from_form(fields), _read_path(fields)
    remarks = await site.study(lambda kb: kb.examine(path, text))
    shown = [
        (text.count("\n", 0, one.span.start) + 1, one.weight, one.message) for one in remarks if one.weight != "hint"
    ]
    return site.page(request, "remarks.html", remarks=shown[:_MOST_REMARKS])


def _read_path(fields: Parameters) -> str:
    """Return the path of the note that is being written; one that is new is in the folder that its form names."""
    path, folder = param(fields, "path", 1_000), param(fields, "folder").strip("/")
    return path or (f"{folder}/new.md" if folder else "new.md")


async def complete(site: Site, request: Request) -> Response:
    """Names of entries and tags that go with a word, for the editor."""
    word, is_tag = param(request.query_params, "word"), bool(param(request.query_params, "tag"))
    found = await site.study(lambda kb: kb.suggest(word, _MOST_NAMES, of_tags=is_tag))
    return JSONResponse([suggested._asdict() for suggested in found])


async def rename(site: Site, request: Request) -> Response:
    """Give an entry another title, its file another name or folder, and rewrite the links to it."""
    fields = await site.form(request)
    wanted, new, way = read_wanted(fields), param(fields, "new"), param(fields, "way")
    way = way if way in ("file", "folder") else "title"
    run = await site.write(lambda kb: kb.rename(wanted.name(kb), new, **{way: True}))
    moved = next((change.to for change in run.changes if change.to), None)
    if run.conflicts:
        raise ChangedOnDisk(run.conflicts[0].path)
    return see_other(_after(EntryAddress(moved, "") if moved else wanted, "renamed" if run.changes else "same", run))


async def save(site: Site, request: Request) -> Response:
    """Write what the form says, if the entry is still what the form was made from."""
    try:
        fields = await site.form(request)
    except BadForm as exc:
        # Nothing is written, but what somebody typed is given back to be sent once more.
        return await _give_back(site, request, exc.fields, _RESTARTED)
    wanted, was = read_wanted(fields), param(fields, "was")
    try:
        text = note_from_form(fields)
        run = await site.write(lambda kb: kb.edit(wanted.name(kb), text, was))
    except ChangedOnDisk:
        return await _give_back(site, request, fields, "")
    except MemoryKBError as exc:
        return await _give_back(site, request, fields, explain_failure(exc))
    if run.conflicts:
        return await _give_back(site, request, fields, " ".join(conflict.message for conflict in run.conflicts))
    return see_other(_after(wanted, "saved" if run.changes else "same", run))


async def _give_back(site: Site, request: Request, fields: Parameters, problem: str) -> Response:
    """Draw the form with what was typed, beside what is in the file if that is another now."""
    wanted, text = read_wanted(fields), param(fields, "head", LONGEST_FORM) + param(fields, "text", LONGEST_FORM)
    with contextlib.suppress(MemoryKBError):
        text = note_from_form(fields)
    source = await site.read(wanted.find)
    text = text.replace("\r\n", "\n")
    theirs = source.text if source.hash != param(fields, "was") else None
    base = param(fields, "base", LONGEST_FORM).replace("\r\n", "\n")
    merged = _merge(base, text, theirs.replace("\r\n", "\n")) if theirs is not None and base else None
    return _draw_form(site, request, wanted, source, text, problem=problem, theirs=theirs, merged=merged)


def _merge(base: str, mine: str, theirs: str) -> str | None:
    """Return both changes of a text put together; None where both changed the same lines."""
    from memory_kb.git.merge_texts import CannotMerge, GitTexts

    try:
        merged = GitTexts().merge(base, mine, theirs)
    except CannotMerge:
        return None
    return None if merged.conflicts else merged.text


def _draw_form(
    site: Site,
    request: Request,
    wanted: EntryAddress,
    source: Source,
    text: str,
    *,
    problem: str = "",
    theirs: str | None = None,
    merged: str | None = None,
) -> Response:
    from difflib import unified_diff

    lines = (theirs.splitlines(), text.splitlines()) if theirs else ([], [])
    diff = "\n".join(unified_diff(*lines, "in the file now", "yours", lineterm=""))
    status = 409 if theirs is not None else 422 if problem else 200
    head, body = split_text(text if merged is None else merged)
    entries = parse_document(head, source.view.path).entries
    return site.page(
        request,
        "edit.html",
        mine=split_text(text),
        head=head,
        body=body,
        properties=find_properties(entries[0].metadata) if entries else (),
        status=status,
        wanted=wanted,
        source=source,
        view=source.view,
        problem=problem,
        theirs=theirs,
        merged=merged,
        diff=diff,
    )


async def forget(site: Site, request: Request) -> Response:
    """Retire an entry."""
    fields = await site.form(request)
    wanted = read_wanted(fields)
    retired = await site.write(lambda kb: kb.forget(wanted.name(kb)))
    return see_other(_after(wanted, "retired" if retired.run and retired.run.changes else "same", retired.run))


async def undo(site: Site, request: Request) -> Response:
    """Revert a run."""
    fields = await site.form(request)
    run, back = param(fields, "run"), param(fields, "back", 2_000)
    if not run:
        raise UsageError("no run is named")
    done = await site.write(lambda kb: kb.undo(run))
    if done.conflicts:
        sentence = " ".join(one.message for one in done.conflicts)
        return site.error_page(request, 409, "Not all was reverted", sentence)
    # Only ever a path of this page: two slashes would name another host.
    to = back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/health"
    return see_other(to)


async def open_editor(site: Site, request: Request) -> Response:
    """Open the file of an entry with the command that whoever started the server set."""
    fields = await site.form(request)
    if not site.info.editor or not site.info.is_local:
        raise UsageError(
            "no editor is set", "start the server with MEMORY_KB_EDITOR set, such as to `code -g {file}:{line}`"
        )
    wanted = read_wanted(fields)
    source = await site.read(wanted.find)
    start_editor(site.info.editor, source.file, source.view.line)
    return see_other(_after(wanted, "opened", None))


def start_editor(command: str, file: str, line: int) -> None:
    """Start an editor, without a shell; the file is added where the command has no place for it."""
    words = [word.replace("{file}", file).replace("{line}", str(line)) for word in shlex.split(command)]
    try:
        started = subprocess.Popen(  # noqa: S603 - the user's own command, from their own environment
            words if "{file}" in command else [*words, file],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except (OSError, IndexError) as exc:
        raise UsageError(f"the editor cannot be started: {exc}", "MEMORY_KB_EDITOR names it") from exc
    threading.Thread(target=started.wait, name="memory-kb editor", daemon=True).start()


def _after(wanted: EntryAddress, said: str, run: RunReport | None) -> str:
    pairs = {"id": wanted.id, "at": wanted.at, "said": said, "run": (run.run if run else None) or ""}
    return f"/entry?{urlencode({name: value for name, value in pairs.items() if value})}"
