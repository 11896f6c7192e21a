"""Send the pictures, recordings and documents that notes show."""

from __future__ import annotations

import os
from pathlib import Path

from starlette.responses import FileResponse, Response

from memory_kb.errors import UnknownEntry
from memory_kb.store.attachments import Attachments
from memory_kb.store.safe_paths import explain_parts
from memory_kb.vault import GLOBAL_PREFIX, Vault
from memory_kb.web.render import TYPES
from memory_kb.web.site import PageRequest

#: A picture runs no script and loads nothing, even when it is opened alone; browsers show no PDF in a sandbox.
_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


def send_attachment(request: PageRequest) -> Response:
    """A picture or document of the vault, as a note names it."""
    name, vault = request.param("name", 1_000), request.kb.vault
    path = request.kept("attachments", lambda kb: Attachments(kb.vault)).find(name, request.param("from", 1_000))
    file = check_attachment(vault, path) if path else None
    if file is None:
        return request.site.explain(request.http, UnknownEntry(name))
    kind = TYPES[file.suffix.lower()]
    return FileResponse(file, media_type=kind, headers={"content-security-policy": _POLICY} if "image" in kind else {})


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
