"""`lint` names the line at which something stands, not that of its entry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files

from memory_kb import KnowledgeBase

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

LONG = "intro\n\n" + "".join(f"{number}\n" for number in range(1, 51)) + "\n"
PARAGRAPHS = "".join(f"Paragraph {number} says a little about the mill.\n\n" for number in range(200))
KEY = "AKIA" + "ABCDEFGHIJKLMNOP"


@pytest.mark.parametrize(
    ("text", "lines", "said"),
    [
        pytest.param(f"{LONG}The key is {KEY}.\n", [54], "AWS access key", id="secret"),
        pytest.param(f"# {KEY}\n\n{PARAGRAPHS}", [1], "AWS access key", id="secret-in-the-title"),
        pytest.param(f"{PARAGRAPHS}One {KEY}.\n\nTwo {KEY}.\n", [401, 403], "AWS access key", id="secrets"),
        pytest.param(f"{LONG}See [[nowhere]] and [[nowhere]].\n", [54], "the wikilink to 'nowhere'", id="wikilink"),
        pytest.param(
            f"{PARAGRAPHS}See [[nowhere]].\n", [401], "the wikilink to 'nowhere'", id="wikilink-in-a-later-passage"
        ),
        pytest.param(f"One.\n\n{LONG}See [[b-id#Lacking]] after [[b-id]].\n", [56], "Lacking", id="heading"),
        pytest.param(
            "---\nid: a\nlinks:\n  - to: b-id\n  - {to: no-id, relation: supersedes}\n---\nText.\n",
            [5],
            "supersedes link to 'no-id'",
            id="link",
        ),
        pytest.param("---\nkind: fact\nid: b-id\n---\nText.\n", [3], "the id b-id is also used", id="id"),
        pytest.param(
            "One.\n\n---\nid: x\nkind: fact\nvalid_until: soon\n---\n\nText.\n", [6], "valid_until soon", id="claim"
        ),
        pytest.param(f"---\nid: x\n---\n{LONG}<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n", [57], "conflict", id="conflict"),
    ],
)
def test_the_line_of_a_finding(vault: Vault, open_kb: Open, text: str, lines: list[int], said: str) -> None:
    other = "---\nid: b-id\n---\n# B\n"
    kb = open_kb(vault({"memory/config.yaml": "", "memory/a.md": other, "memory/z.md": text}))
    found = [problem for problem in kb.lint() if said in problem.message]
    assert [problem.line for problem in found] == lines
