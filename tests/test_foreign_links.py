"""Links as site generators and Obsidian write them are no mistakes, in `lint` and in an editor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files

from memory_kb import KnowledgeBase

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("See [b](@/posts/b.md) and [c](@site/docs/c.md).\n", [], id="folder-of-a-site"),
        pytest.param("See [b](at@/b.md).\n", ["the link to 'at@/b.md' leads to no file"], id="no-folder-of-a-site"),
        pytest.param("Tea.\n\n%% write this:\n![[tea#Milk]] %%\n", [], id="commented-out"),
        pytest.param(
            "100%% tea.\n\n[[tea#Milk]]\n",
            ["the wikilink to 'tea#Milk' leads to a note without the heading 'Milk'"],
            id="no-comment",
        ),
        pytest.param(
            "```python\n# %%\n```\n\n[[tea#Milk]]\n\n```python\n# %%\n```\n",
            ["the wikilink to 'tea#Milk' leads to a note without the heading 'Milk'"],
            id="cells-of-code",
        ),
        pytest.param("%% [x](gone.md) %%\n", ["the link to 'gone.md' leads to no file"], id="a-comment-links"),
        pytest.param("Text.\n\n---\n\n## YAML\n\n```yaml\nid: a\n```\n\n---\n\nMore.\n", [], id="rules-around-code"),
    ],
)
def test_what_lint_says(vault: Vault, open_kb: Open, text: str, said: list[str]) -> None:
    folder = vault({"a.md": text, "tea.md": "# Tea\n"})
    with open_kb(folder) as kb:
        kb.sync()
        assert [one.message for one in kb.lint()] == said
        assert [one.message for one in kb.examine("a.md", text)] == said


def test_a_commented_link_is_a_link(vault: Vault, open_kb: Open) -> None:
    folder = vault({"a.md": "%% see [[tea#Milk]] %%\n", "tea.md": "# Tea\n"})
    with open_kb(folder) as kb:
        kb.sync()
        assert [one.entry.path for one in kb.links("tea.md").incoming if one.entry] == ["a.md"]
