"""Relative Markdown links between notes, and what a name means where several notes have it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import write_files

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.markdown.links import find_links, rewrite_anchors

if TYPE_CHECKING:
    from conftest import Files


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[x](../y.md#a-part)", [("../y.md", "a-part")]),
        ('[x](y.md "A title") [z](<my y.md> (other))', [("y.md", ""), ("my y.md", "")]),
        ("[x](my%20y.md) [a [b] c](d_(e).md)", [("my y.md", ""), ("d_(e).md", "")]),
        ("[![alt](p.png)](y.md) ![[z]]", [("y.md", ""), ("z", "")]),
        ("Read [it][y].\r\n\r\n[y]: y.md#b 'Title'\r\n[^1]: z.md\r\n", [("y.md", "b")]),
        ("[x](https://a.org/y.md) [x](//a.org/y.md) [x](mailto:y.md) [x](y.txt) [x](#a)", []),
        ("`[x](y.md)` \\[x\\](y.md) no](y.md)\n\n    [x](y.md)\n\n```\n[x](y.md)\n[y]: y.md\n```\n", []),
    ],
)
def test_what_a_markdown_link_is(text: str, found: list[tuple[str, str]]) -> None:
    assert [(link.target, link.anchor) for link in find_links(text)] == found


def test_links_into_the_note_itself_follow_a_heading() -> None:
    text = "[[#Old|x]] [[# Old]] [y](#old 'Title') [z](<#old>) [a][b] [c](d.md) `[[#Old]]`\n\n[b]: #old\n[//]: # (a comment)\n"
    assert rewrite_anchors(text, lambda link: "New" if link.is_wikilink else "new") == (
        "[[#New|x]] [[# New]] [y](#new 'Title') [z](<#new>) [a][b] [c](d.md) `[[#Old]]`\n\n[b]: #new\n[//]: # (a comment)\n"
    )


NOTES = {
    "guide/start.md": "# Start\n\nSee [how](../api/calls.md#retry-twice), [gone](gone.md) and [no part](../api/calls.md#nope).\n",
    "guide/more.md": "# More\n\nRead [it][calls] or [it](<../api/calls.md> 'Calls'), `[x](../api/calls.md)`.\n\n[calls]: ../api/calls.md#retry-twice\n",
    "api/calls.md": "# Calls\n\n## Retry twice\n\nBack to the [start](/guide/start.md), [picture](p.png), [licence](../LICENCE.txt), [data](../.raw/x.md).\n",
    ".raw/x.md": "Left out.\n",
}


@pytest.fixture
def notes(vault: Callable[[Files], Path]) -> Path:
    return vault(NOTES)


def test_markdown_links_are_links(notes: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    with open_kb(notes) as kb:
        kb.sync()
        report = kb.links("api/calls.md")
        first = report.outgoing[0]
        assert (first.target, first.entry and first.entry.path) == ("/guide/start.md", "guide/start.md")
        assert {one.entry.path for one in report.incoming if one.entry} == {"guide/more.md", "guide/start.md"}
        links = kb.link_map()
        paths = [node.path for node in links.nodes]
        assert {(paths[edge.source], paths[edge.target]) for edge in links.edges} == {
            ("guide/start.md", "api/calls.md"),
            ("guide/more.md", "api/calls.md"),
            ("api/calls.md", "guide/start.md"),
        }


def test_lint_reports_links_to_nothing(notes: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    with open_kb(notes) as kb:
        kb.sync()
        assert [(problem.path, problem.line, problem.message) for problem in kb.lint()] == [
            ("guide/start.md", 3, "the link to '../api/calls.md#nope' leads to a note without the heading 'nope'"),
            ("guide/start.md", 3, "the link to 'gone.md' leads to no file"),
        ]
        told = [one.message for one in kb.examine("guide/start.md", NOTES["guide/start.md"])]
        assert sorted(told) == [problem.message for problem in kb.lint()]


def test_a_renamed_file_takes_its_links_along(notes: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    with open_kb(notes) as kb:
        kb.sync()
        kb.rename("api/calls.md", "api requests", file=True)
        assert (notes / "api/api requests.md").is_file()
        for path, text in NOTES.items():
            if path.startswith("guide"):
                expected = text.replace("<../api/calls.md>", "<../api/api requests.md>")
                expected = expected.replace("(../api/calls.md#", "(../api/api%20requests.md#")
                expected = expected.replace("]: ../api/calls.md", "]: ../api/api%20requests.md")
                assert (notes / path).read_text(encoding="utf-8") == expected
        kb.sync()
        assert {one.entry.path for one in kb.links("api/api requests.md").incoming if one.entry} == {
            "guide/more.md",
            "guide/start.md",
        }


def test_a_name_means_the_note_beside_it_then_the_shortest_path(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase]
) -> None:
    folder = vault(
        {
            "a/deep/tea.md": "Green.\n",
            "b/tea.md": "Black.\n",
            "c/tea.md": "White.\n",
            "a/deep/x.md": "[[tea]]\n",
            "b/y.md": "[[Tea]]\n",
            "z.md": "[[tea]] [[deep/tea]] [[./c/tea]]\n",
        }
    )
    with open_kb(folder) as kb:
        kb.sync()

        def leads(path: str) -> list[str | None]:
            return [one.entry.path if one.entry else None for one in kb.links(path).outgoing]

        assert leads("a/deep/x.md") == ["a/deep/tea.md"]
        assert leads("b/y.md") == ["b/tea.md"]
        assert leads("z.md") == ["b/tea.md", "a/deep/tea.md", "c/tea.md"]
        message = "the link to 'tea' may mean c/tea.md as well as b/tea.md, which it leads to; write the path"
        assert [str(problem) for problem in kb.lint()] == [f"z.md:1: {message}"]
        assert [one.message for one in kb.examine("z.md", "[[tea]]\n")] == [message]


def test_a_moved_note_is_found_by_its_links_and_finds_its_own(
    notes: Path, open_kb: Callable[..., KnowledgeBase]
) -> None:
    write_files(
        notes,
        {
            "a/x.md": "# X\n\n[y](y.md#Part) ![p](img/p%201.png) `[y](y.md)` [[y]] [web](https://e.org/y.md)\n",
            "a/y.md": "# Y\n\n## Part\n\n[x](x.md) [[x]]\n",
            "a/img/p 1.png": b"png",
            "b.md": "# B\n\n[x](a/x.md 'T') [[a/x|it]] `[[a/x]]`\n",
        },
    )
    kb = open_kb(notes)
    kb.sync()
    run_ = kb.rename("a/x.md", "new/deep", folder=True)
    moved = (notes / "new/deep/x.md").read_text()
    assert "[y](../../a/y.md#Part) ![p](../../a/img/p%201.png) `[y](y.md)` [[y]] [web](https://e.org/y.md)" in moved
    assert "[x](../new/deep/x.md) [[x]]" in (notes / "a/y.md").read_text()
    assert "[x](new/deep/x.md 'T') [[new/deep/x|it]] `[[a/x]]`" in (notes / "b.md").read_text()
    for wrong in ("../out", ".hidden"):
        with pytest.raises(UsageError):
            kb.rename("new/deep/x.md", wrong, folder=True)
    kb.undo(run_.run)
    assert (notes / "a/x.md").exists() and not (notes / "new/deep/x.md").exists()


def test_a_note_is_moved_to_no_folder_where_nothing_finds_it(
    open_kb: Callable[..., KnowledgeBase], folder: Path
) -> None:
    write_files(folder, {"memory/rules/x.md": "---\nid: x\n---\nRedis.\n"})
    (folder / "memory/link").symlink_to("rules")
    kb = open_kb(folder)
    for wrong in ("rules/deep", "", "memory/link", "memory/jobs/j/tasks/t/worktree"):
        with pytest.raises(UsageError, match="no note of this vault"):
            kb.rename("x", wrong, folder=True)
    kb.rename("x", "memory/rules/deep", folder=True)
    assert kb.show("x").path == "memory/rules/deep/x.md"
