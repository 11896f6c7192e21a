"""What stands between `<private>` tags reaches no log, no entry and no model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run

from memory_kb import KnowledgeBase
from memory_kb.store.session_events import Event

Vault = Callable[[Files], Path]
SECRET = "wombat"
SAID = f"Deploy with quokka. <private>The lead is {SECRET}.</private> Then rest."


def bytes_below(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"a <private>{SECRET}</private>b", "a b"),
        (f"a <PRIVATE >{SECRET}</Private>b", "a b"),
        (f"a <private>x\n{SECRET}", "a "),
        (f"a <private>x<private>y</private>{SECRET}</private>b", "a b"),
        (f"```\n<private>{SECRET}</private>\n```\na", "```\n\n```\na"),
        ("a </private> b", "a </private> b"),
        ("a <privates>b", "a <privates>b"),
    ],
    ids=["plain", "case", "unclosed", "nested", "fence", "stray", "other-tag"],
)
def test_logs_hold_no_private_words(vault: Vault, said: str, kept: str) -> None:
    folder = vault({"memory/config.yaml": ""})
    with KnowledgeBase.open(folder) as kb:
        session = kb.sessions.start("s1").session
        kb.sessions.append([Event(role="user", content=said)], session=session)
        kb.sessions.append(
            [Event(type="tool_call", tool="Write", args={"content": said, said: [said]})], session=session
        )
        told = [event for event in kb.sessions.replay(session) if event.content]
    assert [event.content for event in told] == [kept]
    assert SECRET.encode() not in bytes_below(folder)


def test_a_long_text_is_cut_before_its_middle_is(vault: Vault) -> None:
    folder = vault({"memory/config.yaml": ""})
    with KnowledgeBase.open(folder) as kb:
        kb.sessions.append([Event(role="user", content=f"<private>{'x ' * 150_000}</private>{SECRET}")], session="s1")
        kb.sessions.append([Event(role="user", content=f"<private>{'x ' * 150_000}{SECRET}")], session="s2")
        assert [event.content for event in kb.sessions.replay("s1")] == [SECRET]
    assert SECRET.encode() not in (folder / "memory/.memory-kb/sessions/s2.jsonl").read_bytes()


def test_what_is_learned_has_no_private_words(vault: Vault, run: Run) -> None:
    folder = vault({"memory/config.yaml": ""})
    run("learn", SAID, "--tag", f"ops<private>{SECRET}</private>", cwd=folder)
    run("handoff", "create", "--from", "a", "--to", "b", "--done", SAID, cwd=folder)
    run("ledger", "set", "eng", "--task", SAID, cwd=folder)
    run("search", f"quokka <private>{SECRET}</private>", cwd=folder)
    everything = bytes_below(folder)
    assert everything.count(b"quokka") >= 3
    assert SECRET.encode() not in everything


def test_a_text_that_is_all_private_is_refused(vault: Vault, run: Run) -> None:
    done = run("learn", f"<private>{SECRET}", cwd=vault({"memory/config.yaml": ""}))
    assert done.returncode != 0
    assert "no text" in done.stderr


def test_a_note_keeps_its_private_part_and_the_index_does_not(vault: Vault, run: Run) -> None:
    text = f"# Deploys\n\nQuokka runs them.\n<private>{SECRET}\n\n{SECRET}</private>\n\n## After\n\nBilby rests.\n"
    folder = vault({"memory/config.yaml": "", "memory/notes/deploys.md": text})
    with KnowledgeBase.open(folder) as kb:
        assert not kb.search(SECRET).hits
        hit = kb.search("bilby").hits[0]
        assert "[private]" in hit.text
        assert SECRET not in kb.context("quokka deploys").text
        assert SECRET not in kb.search("quokka").hits[0].text
    assert (folder / "memory/notes/deploys.md").read_text(encoding="utf-8") == text
    assert SECRET.encode() not in bytes_below(folder / "memory/.memory-kb")
