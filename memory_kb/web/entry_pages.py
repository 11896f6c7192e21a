"""The pages of one entry: its text, links, exposure and changes, and the form that edits it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from memory_kb.editing.source import Source
from memory_kb.errors import ChangedOnDisk, MemoryKBError, UsageError, explain_failure
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.links import find_links
from memory_kb.regular_files import read_file
from memory_kb.reports import RunReport
from memory_kb.text import load_json, read_words
from memory_kb.web.filters import draw_curve
from memory_kb.web.page_query import LONGEST_FORM
from memory_kb.web.properties import find_properties, note_from_form, split_frontmatter
from memory_kb.web.render import (
    MAX_RENDERED,
    Embedded,
    LinkBase,
    find_contents,
    find_embeds,
    render_note,
    without_title,
)
from memory_kb.web.site import EntryAddress, PageRequest, see_other

#: A shorter note needs no table of contents; more notes than that are not shown in one.
_FEW_HEADINGS, _MOST_EMBEDS = 3, 30
_MOST_FOLDERS, _MOST_NAMES, _MOST_REMARKS = 500, 8, 20


def show_entry(request: PageRequest) -> Response:
    """An entry as it reads."""
    kb = request.kb
    source = request.source()
    view, metadata = source.view, source.view.metadata
    text = without_title(source.body.lstrip("\r\n"), view.title)
    first = view.line + source.text[: len(source.text) - len(text)].count("\n")
    place = _place_of(request, view.path, text)._replace(passage=_read_passage(request.param("lines"), first))
    is_plain = len(source.body) > MAX_RENDERED
    contents = find_contents(text)
    return request.page(
        "entry.html", choices=request.choices(), source=source, view=view, entry=source.entry,
        curve=draw_curve(source.entry, kb.today(), kb.vault.settings.ranking), ranking=kb.vault.settings.ranking,
        body=None if is_plain else render_note(text, place),
        contents=contents if len(contents) >= _FEW_HEADINGS else (),
        aliases=read_words(metadata.get("aliases", metadata.get("alias"))) if metadata else (),
    )  # fmt: skip


def _place_of(request: PageRequest, path: str, text: str) -> LinkBase:
    """Return what links of a text lead to, with the notes that it shows."""
    kb, keeps_lines = request.kb, request.cached("lines", lambda kb: _keeps_lines(kb.vault.folder))
    if "[[" not in text:
        return LinkBase(path, keeps_lines=keeps_lines)
    embeds = find_embeds(text)[:_MOST_EMBEDS]
    embedded: dict[str, Embedded] = {}
    for name, note in (kb.follow(path, embeds) if embeds else {}).items():
        with contextlib.suppress(MemoryKBError):
            embedded[name] = (note.path, kb.source(f"{note.path}:{note.line}").body)
    texts = (text, *(body for _, body in embedded.values()))
    asked = frozenset(link.target for one in texts for link in find_links(one) if link.is_wikilink)
    known = frozenset(kb.follow(path, sorted(asked)))
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


def show_part(request: PageRequest) -> Response:
    """A part of an entry's page that takes a slow read: its links, its exposure, or what changed in it."""
    kb, part = request.kb, request.http.url.path.rpartition("/")[2]
    look = {"links": kb.links, "exposure": kb.exposure, "changes": kb.past_of}[part]
    return request.page(f"{part}.html", found=look(request.entry()), wanted=request.wanted)


def show_hash(request: PageRequest) -> Response:
    """The hash of an entry as it is, for a page that edits it."""
    return JSONResponse({"hash": request.source().hash})


def show_form(request: PageRequest) -> Response:
    """A form with the text of an entry."""
    source = request.source()
    if source.uneditable:
        raise UsageError(f"{source.view.path} cannot be edited here: {source.uneditable}", "use an editor")
    return _draw_form(request, source, source.text)


def show_new(request: PageRequest) -> Response:
    """A form for a note that is not there yet."""
    return _draw_new(request, "", request.param("folder", 1_000) or None)


def create(request: PageRequest) -> Response:
    """Make a note of what the form says."""
    title, folder, text = request.param("title"), request.param("folder"), request.param("text", LONGEST_FORM)
    try:
        path, run = request.kb.create(title, folder, text)
    except MemoryKBError as exc:
        return _draw_new(request, explain_failure(exc), folder)
    return see_other(_after(EntryAddress(path, ""), "saved", run))


def _draw_new(request: PageRequest, problem: str, folder: str | None) -> Response:
    paths = request.cached("folders", lambda kb: {one.path.rpartition("/")[0] for one in kb.list()})
    usual = "memory/learnings" if request.kb.vault.memory else ""
    return request.page(
        "new.html", status=422 if problem else 200, title=request.param("title"),
        folder=usual if folder is None else folder,
        folders=sorted(path for path in paths if path and not path.startswith("~"))[:_MOST_FOLDERS],
        text=request.param("text", LONGEST_FORM).replace("\r\n", "\n"), problem=problem,
    )  # fmt: skip


def preview(request: PageRequest) -> Response:
    """What is being written, as it will read."""
    _, body = split_frontmatter(request.param("text", MAX_RENDERED).replace("\r\n", "\n"))
    return request.page("preview.html", body=render_note(body, _place_of(request, _read_path(request), body)))


def show_remarks(request: PageRequest) -> Response:
    """The findings of `lint` in a text that is being written."""
    text = note_from_form(request.fields)
    remarks = request.kb.examine(_read_path(request), text)
    shown = [one for one in remarks if one.weight != "hint"][:_MOST_REMARKS]
    lines = [(text.count("\n", 0, one.span.start) + 1, one.weight, one.message) for one in shown]
    return request.page("remarks.html", remarks=lines)


def _read_path(request: PageRequest) -> str:
    """Return the path of the note that is being written; one that is new is in the folder that its form names."""
    path, folder = request.param("path", 1_000), request.param("folder").strip("/")
    return path or (f"{folder}/new.md" if folder else "new.md")


def complete(request: PageRequest) -> Response:
    """Names of entries and tags that go with a word, for the editor."""
    found = request.kb.suggest(request.param("word"), _MOST_NAMES, of_tags=bool(request.param("tag")))
    return JSONResponse([{"label": one.label, "text": one.text} for one in found])


def rename(request: PageRequest) -> Response:
    """Give an entry another title, its file another name or folder, and rewrite the links to it."""
    wanted, way = request.wanted, request.param("way")
    way = way if way in ("file", "folder") else "title"
    run = request.kb.rename(request.entry(), request.param("new"), **{way: True})
    moved = next((change.to for change in run.changes if change.to), None)
    if run.conflicts:
        raise ChangedOnDisk(run.conflicts[0].path)
    return see_other(_after(EntryAddress(moved, "") if moved else wanted, "renamed" if run.changes else "same", run))


def save(request: PageRequest) -> Response:
    """Write what the form says, if the entry is still what the form was made from."""
    try:
        run = request.kb.edit(request.entry(), note_from_form(request.fields), request.param("was"))
    except ChangedOnDisk:
        return _give_back(request, "")
    except MemoryKBError as exc:
        return _give_back(request, explain_failure(exc))
    if run.conflicts:
        return _give_back(request, " ".join(conflict.message for conflict in run.conflicts))
    return see_other(_after(request.wanted, "saved" if run.changes else "same", run))


def _give_back(request: PageRequest, problem: str) -> Response:
    """Draw the form with what was typed, beside the text of the file if that has changed."""
    text = request.param("head", LONGEST_FORM) + request.param("text", LONGEST_FORM)
    with contextlib.suppress(MemoryKBError):
        text = note_from_form(request.fields)
    source = request.source()
    text = text.replace("\r\n", "\n")
    theirs = source.text if source.hash != request.param("was") else None
    base = request.param("base", LONGEST_FORM).replace("\r\n", "\n")
    merged = _merge(base, text, theirs.replace("\r\n", "\n")) if theirs is not None and base else None
    return _draw_form(request, source, text, problem, theirs, merged)


def _merge(base: str, mine: str, theirs: str) -> str | None:
    """Return both changes of a text put together; None where both changed the same lines."""
    from memory_kb.git.merge_texts import CannotMerge, merge_lines

    try:
        merged = merge_lines(base, mine, theirs)
    except CannotMerge:
        return None
    return None if merged.conflicts else merged.text


def _draw_form(
    request: PageRequest,
    source: Source,
    text: str,
    problem: str = "",
    theirs: str | None = None,
    merged: str | None = None,
) -> Response:
    from difflib import unified_diff

    lines = (theirs.splitlines(), text.splitlines()) if theirs else ([], [])
    diff = "\n".join(unified_diff(*lines, "in the file now", "yours", lineterm=""))
    status = 409 if theirs is not None else 422 if problem else 200
    head, body = split_frontmatter(text if merged is None else merged)
    entries = parse_document(head, source.view.path).entries
    return request.page(
        "edit.html", status=status, mine=split_frontmatter(text), head=head, body=body,
        properties=find_properties(entries[0].metadata) if entries else (), wanted=request.wanted,
        source=source, view=source.view, problem=problem, theirs=theirs, merged=merged, diff=diff,
    )  # fmt: skip


def forget(request: PageRequest) -> Response:
    """Retire an entry."""
    retired = request.kb.forget(request.entry())
    return see_other(_after(request.wanted, "retired" if retired.run and retired.run.changes else "same", retired.run))


def undo(request: PageRequest) -> Response:
    """Revert a run."""
    run, back = request.param("run"), request.param("back", 2_000)
    if not run:
        raise UsageError("no run is named")
    done = request.kb.undo(run)
    if done.conflicts:
        sentence = " ".join(one.message for one in done.conflicts)
        return request.site.error_page(request.http, 409, "Not all was reverted", sentence)
    # Only ever a path of this page: two slashes would name another host.
    to = back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/health"
    return see_other(to)


def _after(wanted: EntryAddress, said: str, run: RunReport | None) -> str:
    pairs = {"id": wanted.id, "at": wanted.at, "said": said, "run": (run.run if run else None) or ""}
    return f"/entry?{urlencode({name: value for name, value in pairs.items() if value})}"
