"""The addresses of the page: of entries, headings and attachments, and where a link that a note writes may lead."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import quote, unquote, urlencode, urlsplit

from memory_kb.markdown.headings import normal_heading

_SCHEMES = ("http", "https", "mailto")
_NOTE = re.compile(r"\.md$", re.IGNORECASE)
#: The only files that are sent, by how their names end.
ATTACHMENT_TYPES = {
    **{f".{name}": f"image/{name}" for name in ("avif", "bmp", "gif", "jpeg", "png", "webp")},
    ".jpg": "image/jpeg",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".wav": "audio/wav",
    ".mov": "video/quicktime",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}


def media_kind(name: str) -> str:
    """Return what a file is by its name: `image`, `audio`, `video`, `application`, or nothing that is sent."""
    _, dot, ending = name.rpartition(".")
    return ATTACHMENT_TYPES.get(f"{dot}{ending.lower()}", "").partition("/")[0]


def name_place(anchor: str) -> str:
    """Return what a heading or `^block` is called within a page; no other part of it is called so.

    Example:
        >>> name_place("Part#Why we **wait**"), name_place("^Rb1")
        ('at-why-we-wait', 'at-^rb1')
    """
    last = anchor.rpartition("#")[2].strip()
    return f"at-{last.casefold() if last.startswith('^') else normal_heading(last).replace(' ', '-')}"


def fragment(anchor: str) -> str:
    """Return what leads to a heading or `^block` within a page, at the end of an address."""
    return f"#{quote(name_place(anchor))}" if anchor.strip() else ""


def origin_of(path: str) -> dict[str, str]:
    """Return what an address says of the note that a link is in: its own folder is searched first."""
    return {"from": path} if "/" in path else {}


def link_attributes(address: str, path: str) -> dict[str, str | int | float]:
    """Return the attributes of a link as written in a note: elsewhere, or to a note beside it.

    Example:
        >>> link_attributes("../rules/b.md#x", "memory/learnings/a.md")
        {'href': '/entry?id=memory%2Frules%2Fb.md#at-x'}
    """
    parts = urlsplit(address)
    if parts.scheme:
        return {"href": address, "rel": "noopener noreferrer", "class": "away"}
    if not parts.path:
        return {"href": fragment(unquote(parts.fragment)) or "#"}
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path)))
    if media_kind(target):
        return {"href": attachment_address(unquote(parts.path), path)}
    query = {"id": target} if _NOTE.search(target) else {"to": posixpath.basename(target)}
    return {"href": f"/{'entry' if 'id' in query else 'go'}?{urlencode(query)}{fragment(unquote(parts.fragment))}"}


def attachment_address(name: str, path: str) -> str:
    """Return the address of an attachment, by the name that a note gives it."""
    return f"/attachment?{urlencode({'name': name} | origin_of(path))}"


def is_harmless(address: str) -> bool:
    """Return whether an address may be linked to.

    Example:
        >>> [is_harmless(one) for one in ("https://a.b", "b.md#x", "java\\tscript:x", "data:text/html,x", "//evil.example")]
        [True, True, False, False, False]
    """
    bare = re.sub(r"[\x00-\x20]", "", unquote(address))
    try:
        parts = urlsplit(bare)
    except ValueError:
        return False
    return parts.scheme.lower() in _SCHEMES if parts.scheme else not parts.netloc and not bare.startswith(("//", "\\"))


def entry_address(entry_id: str, path: str | None = None, line: int | None = None, page: str = "/entry") -> str:
    """Return the address of an entry; its place distinguishes it from others with the same id.

    Example:
        >>> entry_address("a b", "x.md", 3)
        '/entry?id=a+b&at=x.md%3A3'
    """
    pairs = {"id": entry_id} | ({"at": f"{path}:{line or 1}"} if path else {})
    return f"{page}?{urlencode(pairs)}"
