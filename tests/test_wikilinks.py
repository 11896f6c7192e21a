"""Links in notes: what is one, what only looks like one, and that everybody who asks agrees."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_kb import KnowledgeBase
from memory_kb.markdown.links import find_links, find_tags, rewrite_targets
from memory_kb.web.render import LinkBase, render_note

if TYPE_CHECKING:
    from conftest import Files

CODE = """Use `[[code]]` in a template, and ``a ` [[two]] ticks``.

```sh
if [[ -f x ]]; then echo [[fence]]; fi
```

    indented [[indented]]

- item

  ~~~
  [[in the item]]
  ~~~

  goes on with [[real]]

      [[deep]]

> ```
> [[quoted fence]]
> ```
> quoted [[also real]]

Prose.
Escaped \\[[escaped]] but not \\\\[[third]]. <!-- [[comment]] --> A lone ` tick, [[fourth|4]] ![[fifth]]

Another ` tick.

<!--
[[hidden]]
-->
[[ sixth ]] 見[[2024]]
"""
NAMES = ["real", "also real", "third", "fourth", "fifth", "sixth", "2024"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "---\ntitle: a ` tick [[not a\n---\n"])
def test_code_holds_no_links(newline: str, before: str) -> None:
    text = (before + CODE).replace("\n", newline)
    links = [link for link in find_links(text) if link.is_wikilink]
    assert [link.target for link in links] == NAMES
    assert [text[link.span.start : link.span.end] for link in links] == NAMES
    assert [text[link.whole.start : link.whole.end] for link in links][-3:] == ["![[fifth]]", "[[ sixth ]]", "[[2024]]"]
    start, end = text.index("Prose"), text.index("Another")
    assert [link.target for link in find_links(text, start, end)] == ["third", "fourth", "fifth"]


def test_a_rename_leaves_code_alone() -> None:
    renamed = rewrite_targets(CODE, lambda name: f"{name}!")
    assert renamed == re.sub(rf"(?<!\d)({'|'.join(NAMES)})(?=\||\]\]| \]\])", r"\1!", CODE)


def test_pages_show_the_same_links() -> None:
    shown = re.findall(r"href=\"/go\?to=([^\"]+)\" class=\"wiki(?: embed)?\">", render_note(CODE, LinkBase("a.md")))
    assert [name.replace("+", " ").replace("%20", " ") for name in shown] == NAMES


def test_tags_in_code_and_comments_are_none() -> None:
    assert find_tags(
        "#one `#two` <!-- #three --> a ` tick\n\n#four and a ` tick\n\n- x\n  ```\n  #five\n  ```\n  #six"
    ) == ("one", "four", "six")


def test_the_index_and_lint_agree(vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase]) -> None:
    """A fence too long for one chunk of the index goes on in the next."""
    long = "```sh\n" + "echo one two three four five six [[shell]]\n\n" * 100 + "```\n\nSee [[b]] and `[[c]]`.\n"
    folder = vault(
        {
            "memory/learnings/a.md": f"---\nid: a\nkind: fact\n---\n{long}",
            "memory/learnings/b.md": f"---\nid: b\nkind: fact\n---\n{CODE}",
            "memory/learnings/c.md": "---\nid: c\nkind: fact\n---\nNothing.\n",
        }
    )
    with open_kb(folder) as kb:
        kb.sync()
        told = [re.findall(r"wikilink to '(.*)' leads", problem.message)[0] for problem in kb.lint()]
        assert sorted(told) == sorted(NAMES)
        assert [link.target for link in kb.links("a").outgoing] == ["b"]
        assert [link.target for link in kb.links("b").outgoing] == NAMES
        assert kb.links("c").incoming == ()
        kb.rename("c", "see")
        assert "`[[c]]`" in (folder / "memory/learnings/a.md").read_text(encoding="utf-8")
