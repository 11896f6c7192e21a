"""Send the pictures, recordings and documents that notes show."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from starlette.responses import FileResponse, Response

from memory_kb.errors import UnknownEntry
from memory_kb.store.attachments import list_attachments
from memory_kb.store.safe_paths import explain_parts
from memory_kb.vault import GLOBAL_PREFIX, Vault
from memory_kb.web.render import TYPES
from memory_kb.web.site import PageRequest

#: A picture runs no script and loads nothing, even when it is opened alone; browsers show no PDF in a sandbox.
_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


def send_attachment(request: PageRequest) -> Response:
    """A picture or document of the vault, as a note names it."""
    name, vault = request.param("name", 1_000), request.kb.vault
    file = find_beside(vault, name, request.param("from", 1_000))
    if file is None:
        files = request.kept("attachments", lambda kb: list_attachments(kb.vault.folder))
        path = next(iter(files.get(name.casefold(), ())), None)
        file = check_attachment(vault, path) if path else None
    if file is None:
        return request.site.explain(request.http, UnknownEntry(name))
    kind = TYPES[file.suffix.lower()]
    return FileResponse(file, media_type=kind, headers={"content-security-policy": _POLICY} if "image" in kind else {})


def find_beside(vault: Vault, name: str, source: str) -> Path | None:
    """Return the file that a path leads to from a note's folder or from the top of the vault, or None."""
    for folder in dict.fromkeys((posixpath.dirname(source), "")):
        path = posixpath.normpath(posixpath.join("/", folder, name)).lstrip("/")
        file = check_attachment(vault, path)
        if file:
            return file
    return None


def check_attachment(vault: Vault, path: str) -> Path | None:
    """Return the file of a path in output if it is of a known type, not hidden and inside the vault, else None."""
    root = vault.home if path.startswith(GLOBAL_PREFIX) else vault.folder
    try:
        real, top = Path(os.path.realpath(vault.resolve(path))), Path(os.path.realpath(root))
        asked = explain_parts(Path(path.removeprefix(GLOBAL_PREFIX)).parts)
        if asked or not real.is_relative_to(top) or explain_parts(real.relative_to(top).parts) or not real.is_file():
            return None
    except (OSError, ValueError):
        return None
    return real if real.suffix.lower() in TYPES else None
