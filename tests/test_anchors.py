"""Links into notes: headings and blocks are led to, told of where they are missing, and shown on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Files, Run, write_files
from lsp_client import Editor

from memory_kb.markdown.headings import find_anchor
from memory_kb.web.render import LinkBase, render_note

Vault = Callable[[Files], Path]

TEA = "---\ntags: [x]\n---\n# Tea\n\n## Why *we* use: `uv`?\n\nBoil. ^b1\n\n- One ^li\n"
TEA += "\n```\n# Not this\nNor ^this\n```\n\nUnder\n-----\n\n![[pic.png]]^pic\n"
LINKS = "[[Tea#Tea]] [[Tea#why we use uv]] [[tea#Tea#Under]] ![[Tea#^B1]] [[Tea#^li]] [[Tea#^pic]] [[Tea]]"
MISSING = "[[Tea#Not this]] [[Tea#^this]] [[Tea#Under#Tea]] [[Tea#tags]] [[Twin#Nope]] [[gone#Nope]] ![[pic.png#x]]"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_files(
        tmp_path / "notes",
        {"sub/Tea.md": TEA, "a/Twin.md": "One.", "b/Twin.md": "Two.", "Links.md": f"{LINKS}\n{MISSING}\n"},
    )


@pytest.fixture
def editor(notes: Path, home: Path) -> Iterator[Editor]:
    one = Editor(home, "--vault", notes, cwd=notes)
    one.start()
    yield one
    one.kill()


UNCLEAR = "the link to 'Twin' may mean b/Twin.md as well as a/Twin.md, which it leads to; write the path"
SAID = [
    "the wikilink to 'Tea#Not this' leads to a note without the heading 'Not this'",
    "the wikilink to 'Tea#Under#Tea' leads to a note without the heading 'Under#Tea'",
    "the wikilink to 'Tea#^this' leads to a note without the block ^this",
    "the wikilink to 'Tea#tags' leads to a note without the heading 'tags'",
]


@pytest.mark.slow
def test_missing_headings_and_blocks_are_reported_by_lint_and_in_an_editor(
    run: Run, notes: Path, editor: Editor
) -> None:
    done = run("--vault", notes, "lint")
    last = LINKS.count("\n") + 2
    assert sorted(done.stdout.splitlines()) == [f"Links.md:{last}: {said}" for said in (UNCLEAR, *SAID)]
    uri = editor.open(notes / "Links.md")
    told = editor.diagnostics(uri)
    assert sorted(one["message"] for one in told) == [
        UNCLEAR,
        *SAID,
        "the wikilink to 'gone' leads to no entry",
        "there is no file 'pic.png' in the vault",
    ]
    assert {one["severity"] for one in told if one["message"] != UNCLEAR} == {3}
    first = next(one for one in told if one["message"] == SAID[0])
    assert first["range"] == {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 14}}


def test_links_lead_into_the_note(notes: Path, editor: Editor) -> None:
    uri = editor.open(notes / "Links.md")
    lines = {
        "[[Tea#Te": 3,
        "[[Tea#why": 5,
        "[[tea#Tea#U": 16,
        "[[Tea#^B": 7,
        "[[Tea#^li": 9,
        "[[Tea#^pic": 19,
        "[[Tea]": 3,
    }
    places = {word: editor.ask("textDocument/definition", editor.at(uri, word)) for word in lines}
    assert {word: place["range"]["start"]["line"] for word, place in places.items()} == lines
    assert {place["uri"] for place in places.values()} == {(notes / "sub/Tea.md").as_uri()}


def test_headings_of_every_form_are_completed(notes: Path, editor: Editor) -> None:
    uri = editor.open(notes / "New.md", "[[Tea#")
    assert [item["label"] for item in editor.complete(uri, "[[Tea#")][:3] == ["Tea", "Why *we* use: `uv`?", "Under"]


@pytest.mark.parametrize(
    ("text", "anchor", "is_there"),
    [
        ("## Do it: now", "Do it now", True),
        ("## Do it: now", "do-it--now", True),
        ("## [[Link|Shown]] here", "Link Shown here", True),
        ("## 4.1 is/isnt: `Array.of`", "41-isisnt-arrayof", True),
        ("## Result\n\n## Result\n", "result-1", True),
        ("## Result\n\n## Result\n", "result-2", False),
        ("#NoSpace", "NoSpace", False),
        ("####### Seven", "Seven", False),
        ("## 数据库\n", "数据库", True),
        ("Text\n===\n", "Text", True),
        ("---\nid: a\n---\nText\n===\n", "Text", True),
        ("---\nid: a\n---\nText\n", "id: a", False),
        ("A list:\n- x\n---\n", "x", False),
        ("a ^b^c", "^c", False),
        ("^alone", "^alone", True),
        ("x^2\n", "^2", False),
        ("Line. ^a-1  \r\nmore", "^a-1", True),
    ],
)
def test_what_a_heading_or_block_is(text: str, anchor: str, is_there: bool) -> None:
    assert (find_anchor(text, anchor) is not None) is is_there


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("![[Tea#^b1]]", '<p><a href="/go?to=Tea#at-%5Eb1" class="wiki embed">Tea#^b1</a></p>'),
        ("[[Tea#A b: c|x]]", '<p><a href="/go?to=Tea#at-a-b-c" class="wiki">x</a></p>'),
        (
            "![[a.png|300]] ![[b.pdf]]",
            '<p><img src="/attachment?name=a.png" alt="a.png" width="300" loading="lazy"> <a class="picture" href="/attachment?name=b.pdf">file: b.pdf</a></p>',
        ),
        ("![[<b>.png]]", '<p><img src="/attachment?name=%3Cb%3E.png" alt="&lt;b&gt;.png" loading="lazy"></p>'),
        ("## A *b*: c", '<h2 id="at-a-b-c">A <em>b</em>: c</h2>'),
        ("Boil. ^b1", '<p id="at-^b1">Boil.</p>'),
        ("- One ^li", '<ul>\n<li id="at-^li">One</li>\n</ul>'),
        ("2 ^ 3 and `x ^y`", "<p>2 ^ 3 and <code>x ^y</code></p>"),
        ("[x](b.md#Do%20it) [y](#Do-it)", '<p><a href="/entry?id=b.md#at-do-it">x</a> <a href="#at-do-it">y</a></p>'),
        ("wow![[Tea]]!", '<p>wow<a href="/go?to=Tea" class="wiki embed">Tea</a>!</p>'),
        ("`![[Tea]]`", "<p><code>![[Tea]]</code></p>"),
    ],
)
def test_embeds_places_and_links_to_them_are_drawn(text: str, drawn: str) -> None:
    assert render_note(text, LinkBase("a.md")).strip() == drawn


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("## Hosting {#sec-hosting}", "sec-hosting"),
        ("## Hosting {: .wide #host }", "host"),
        ("## Vérifier l'accès à Noël", "verifier-lacces-a-noel"),
        ("## Vérifier l'accès à Noël", "vérifier-laccès-à-noël"),
    ],
)
def test_other_site_generators_name_headings_too(heading: str, anchor: str) -> None:
    found = find_anchor(f"# Tea\n\n{heading}\n\nText.\n", anchor)
    assert found is not None and found.start == 7
    assert find_anchor(f"# Tea\n\n{heading}\n", f"{anchor}-2") is None


def test_braces_in_code_name_no_place() -> None:
    note = "# Blocks\n\nSay `{{#each}}`.\n\n```hbs\n{{#each people}}\n```\n\n## Each\n"
    found = find_anchor(note, "each")
    assert found is not None and note[found.start : found.end] == "## Each"
    assert find_anchor(note.replace("## Each", "## All"), "each") is None
