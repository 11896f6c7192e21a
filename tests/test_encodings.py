"""Notes that are no UTF-8: they are found by their words, never written anew, and told before lesser things."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run

from memory_kb import KnowledgeBase
from memory_kb.errors import CannotSplice
from memory_kb.index.note_chunks import read_raw
from memory_kb.model import FileStat
from memory_kb.text import decode_text

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

TEXT = "# Grüße\n\nDer Schlüssel für die Waschküche – „hier“ – hängt im Flur.\n"
CODINGS = ["cp1252", "utf-16", "utf-16-le-marked", "utf-16-be-marked"]


def encoded(text: str, coding: str) -> bytes:
    return (
        ("\ufeff" + text).encode(coding.removesuffix("-marked")) if coding.endswith("-marked") else text.encode(coding)
    )


@pytest.mark.parametrize("coding", CODINGS)
def test_umlauts_are_found_in_any_coding(vault: Vault, open_kb: Open, coding: str) -> None:
    data = encoded(TEXT, coding)
    folder = vault({"memory/learnings/a.md": data, "memory/learnings/b.md": "Nothing.\n"})
    kb = open_kb(folder)
    (hit,) = kb.search("Schlüssel Waschküche").hits
    assert (hit.title, hit.text.strip()) == ("Grüße", TEXT.strip())
    assert "Waschküche" in (kb.show(hit.id).text or "")
    assert "Waschküche" in kb.context("Schlüssel der Waschküche").text
    assert [problem.path for problem in kb.lint()] == ["memory/learnings/a.md"]
    assert (folder / "memory/learnings/a.md").read_bytes() == data


def test_a_stray_byte_does_not_spoil_the_rest(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/learnings/a.md": "Schlüssel, ".encode() + b"Waschk\xfcche.\n"}))
    assert kb.search("Schlüssel Waschküche").hits[0].text.strip() == "Schlüssel, Waschküche."


def test_words_without_spaces_are_found_in_utf_16(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/learnings/a.md": "東京都の天気\n".encode("utf-16")}))
    assert len(kb.search("天気").hits) == 1


def test_a_write_to_a_latin_1_note_keeps_its_bytes(vault: Vault, open_kb: Open) -> None:
    data = TEXT.encode("cp1252")
    folder = vault({"memory/learnings/a.md": data})
    kb = open_kb(folder)
    kb.forget("memory/learnings/a.md")
    assert (folder / "memory/learnings/a.md").read_bytes().endswith(b"---\n" + data)


@pytest.mark.parametrize("delete", [False, True])
def test_a_note_in_utf_16_is_not_written_to(vault: Vault, open_kb: Open, delete: bool) -> None:
    data = TEXT.encode("utf-16")
    folder = vault({"memory/learnings/a.md": data})
    kb = open_kb(folder)
    with pytest.raises(CannotSplice, match="is UTF-16; save it as UTF-8 first"):
        kb.forget("memory/learnings/a.md", delete=delete)
    assert (folder / "memory/learnings/a.md").read_bytes() == data


def test_what_loses_text_is_reported_before_unknown_words(run: Run, vault: Vault) -> None:
    files: dict[str, str | bytes] = {
        f"memory/a{number:02}.md": f"---\nkind: recipe{number}\n---\nText.\n" for number in range(12)
    }
    files |= {"memory/config.yaml": "", "memory/y.md": b"\xff\xfen\x00", "memory/z.md": b"caf\xe9\n"}
    lines = run("--vault", vault(files), "index").stderr.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["memory/y.md", "memory/z.md", "memory/a00.md"]
    assert lines[10] == "… and 4 more; `memory-kb lint` lists them all"


def test_a_cut_goes_through_no_sign_of_utf_16(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(("\ufeff" + "über\n" * 100).encode("utf-16-le"))
    data = read_raw(FileStat.of("a.md", str(file), os.lstat(file)), 61).data
    assert set(decode_text(data)) <= set("\ufeffüber\n")
