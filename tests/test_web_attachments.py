"""Pictures of a vault on its page."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pages
import pytest

from memory_kb import KnowledgeBase
from memory_kb.web.attachments import check_attachment, find_beside

if TYPE_CHECKING:
    from pages import Start


start = pages.start
PNG = b"\x89PNG\r\n\x1a\n"
FILES = {
    "memory/learnings/a.md": "---\nid: a\nkind: fact\n---\n# A\n\n![[pic.png|300]] ![x](../../art/draw.svg)\n",
    "art/pic.png": PNG,
    "art/draw.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    ".secret/key.png": PNG,
    "notes.txt": "no",
}


@pytest.mark.slow
def test_pictures_are_sent_with_their_type_and_run_nothing(start: Start) -> None:
    server = start(FILES)
    text = server.ask("/entry?id=a").text
    assert '<img src="/attachment?name=pic.png&amp;from=memory%2Flearnings%2Fa.md" alt="pic.png" width="300"' in text
    picture = server.ask("/attachment?name=PIC.png&from=memory/learnings/a.md")
    assert (picture.status, picture.headers["content-type"]) == (200, "image/png")
    drawing = server.ask("/attachment?name=../../art/draw.svg&from=memory/learnings/a.md")
    assert (drawing.status, drawing.headers["content-type"]) == (200, "image/svg+xml")
    assert drawing.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    for name in (
        "notes.txt",
        "art",
        "../../../../etc/passwd",
        ".secret/key.png",
        "key.png",
        "memory/learnings/a.md",
        "%00.png",
    ):
        assert server.ask(f"/attachment?name={name}").status == 404, name


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_no_link_leads_out_of_the_vault(vault: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    folder = vault(FILES)
    (tmp_path / "outside.png").write_bytes(PNG)
    (folder / "art/out.png").symlink_to(tmp_path / "outside.png")
    (folder / "art/hidden.png").symlink_to(folder / ".secret/key.png")
    with KnowledgeBase.open(folder, home=home) as kb:
        here = kb.vault
    assert find_beside(here, "pic.png", "art/x.md") == (folder / "art/pic.png").resolve()
    assert [check_attachment(here, f"art/{name}.png") for name in ("out", "hidden", "../.secret/key")] == [None] * 3
