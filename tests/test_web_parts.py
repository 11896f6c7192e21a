"""The parts of the page: its colours, its HTML of notes, its marks, its curves, its pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pages
import pytest
from conftest import NOW, REPOSITORY

from memory_kb import KnowledgeBase
from memory_kb.context.highlight import read_query_words
from memory_kb.markdown.document import parse_document
from memory_kb.settings import Ranking
from memory_kb.store.project_files import Attachments
from memory_kb.web.app import check_attachment
from memory_kb.web.filters import Curve, draw_curve
from memory_kb.web.render import LinkBase, render_note
from memory_kb.web.vault_pages import render_passage

if TYPE_CHECKING:
    from pages import Start


def _palettes() -> list[dict[str, str]]:
    css = (REPOSITORY / "memory_kb/web/static/page.css").read_text()
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    )
    return [light, light | dark]


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", _palettes(), ids=["light", "dark"])
def test_colours_can_be_told_apart(palette: dict[str, str]) -> None:
    """WCAG 2.2: 4.5 for text (1.4.3 AA), 3 for what tells where a field or the focus is (1.4.11)."""

    def contrast(a: str, b: str) -> float:
        high, low = sorted((_luminance(palette[a]), _luminance(palette[b])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    grounds = ("paper", "surface", "sunken")
    text = [
        (ink, ground)
        for ink in ("ink", "muted", "accent", "good", "warn", "bad")
        for ground in grounds
        if (ink, ground) != ("warn", "sunken")
    ]
    text += [("on-accent", "accent"), ("on-mark", "mark"), ("ink", "added"), ("ink", "removed")]
    assert {pair: round(contrast(*pair), 2) for pair in text if contrast(*pair) < 4.5} == {}
    assert {
        pair: round(contrast(*pair), 2)
        for pair in [("edge", "paper"), ("edge", "surface"), ("accent", "line")]
        if contrast(*pair) < 3
    } == {}


@pytest.mark.parametrize(
    ("text", "stays", "goes"),
    [
        ("<script>x</script>", "&lt;script&gt;", "<script"),
        ("[a](javascript:x)", "[a](javascript:x)", "href"),
        ("[a](java&#10;script:x)", "", 'href="java'),
        ("[a](DATA:text/html,x)", "", "href"),
        ("[a](file:///etc/passwd)", "", "href"),
        ("[a](//evil.example)", "", "href"),
        ('[a](https://x.example "t")', 'rel="noopener noreferrer"', "onerror"),
        ("![a](x.png)", "/attachment?name=x.png", "evil"),
        ("![a](https://evil.example/t.png)", "picture: a", "<img"),
        ('<https://x.example/?a="b>', "", "<b"),
        ("[[a|<b>]]", "&lt;b&gt;", "<b>"),
        ('[["onclick=x]]', "%22onclick", '"onclick'),
        ("[a](../../../../etc/passwd.md)", "id=..%2F", "://"),
        ("| a |\n|---|\n| [[b\\|c]] |", ">c</a>", "b|c"),
        ("`[[a]]`", "<code>[[a]]</code>", "<a"),
    ],
)
def test_notes_become_harmless_html(text: str, stays: str, goes: str) -> None:
    made = render_note(text, LinkBase("memory/learnings/a.md"))
    assert stays in made and goes not in made


@pytest.mark.parametrize(
    "text",
    [
        "> " * 500 + "x",
        "[" * 1500,
        "*a " * 1500,
        "[[" * 1500,
        "| a " * 600 + "\n" + "|---" * 600,
        "\0\ud800"[:1] + "x",
    ],
)
def test_rendering_comes_to_an_end(text: str) -> None:
    assert render_note(text, LinkBase("a.md"))


@pytest.mark.parametrize(
    ("query", "text", "hits"),
    [
        ("", "text", []),
        ("tests", "Testing a test, tested", ["Testing", "test", "tested"]),
        ('"flaky test"', "a flaky slow test", ["flaky", "test"]),
        ("café straße", "CAFÉ Straße", ["CAFÉ", "Straße"]),
        ("検索", "全文検索です", ["検索"]),
        ("re", "re retry red", ["re", "retry", "red"]),
        ("re ", "re retry red", ["re"]),
        ("a.*(", "a.*( b", ["a"]),
    ],
)
def test_what_was_asked_for_is_marked(query: str, text: str, hits: list[str]) -> None:
    pieces = read_query_words(query).split(text)
    assert pieces[1::2] == hits
    assert "".join(pieces) == text


def test_a_missing_note_can_be_made() -> None:
    html = render_note("[[trips/Rome.md#May|Rome]] ![[Oslo]]", LinkBase("a.md", lambda _: False))
    assert (
        '<a href="/new?title=Rome&amp;folder=trips" class="wiki missing" title="no note is called that yet: make it">Rome</a>'
        in html
    )
    assert '<a href="/new?title=Oslo" class="wiki embed missing"' in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A #work/deep tag.", '<a href="/browse?tag=work%2Fdeep" class="tag">#work/deep</a> tag.'),
        ("Issue #12, a#b, `#no`.", "Issue #12, a#b, <code>#no</code>."),
        ("See https://a.org/x_(y)?z=1, twice.", '<a href="https://a.org/x_(y)?z=1" rel="noopener noreferrer" class="away">https://a.org/x_(y)?z=1</a>, twice.'),
        ("`https://a.org` [x https://b.org](https://c.org)", '<code>https://a.org</code> <a href="https://c.org" rel="noopener noreferrer" class="away">x https://b.org</a>'),
        ("http://a.org/#frag", '<a href="http://a.org/#frag" rel="noopener noreferrer" class="away">http://a.org/#frag</a>'),
    ],
)  # fmt: skip
def test_tags_and_addresses_are_links(text: str, shown: str) -> None:
    assert (
        render_note(text, LinkBase("a.md"))
        == f"<p>{'A ' if text.startswith('A') else 'See ' if text.startswith('See') else ''}{shown}</p>\n"
    )


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("One.\n\nThe **retry** rule.\n", "how do I retry", "<p>The <strong><mark>retry</mark></strong> rule.</p>\n"),
        ("- [x] seed\n- [ ] [[other|the seed]]\n", "seed", "☑"),
        ("| a | b |\n|---|---|\n" + "| x | y |\n" * 30 + "| last | z |\n", "last", "<td><mark>last</mark></td>"),
        ("```py\n" + "x = 1\n" * 40 + "needle = 2\n```\n", "needle", "<mark>needle</mark>"),
        ("> [!tip]- Folded\n> the body\n", "body", '<p class="callout-title">Folded</p>\n<p>the <mark>body</mark></p>'),
        ("![A *cat*](cat.png) and [dog](https://dog.org)\n", "cat", '<span class="picture">A <mark>cat</mark></span> and dog'),
        ("<script>alert(1)</script> & evil\n", "evil script", "&lt;<mark>script</mark>&gt;alert(1)"),
        ("$x^2$ grows\n", "x grows", "<mark>grows</mark>"),
    ],
    ids=["stop words", "tasks", "table", "code", "callout", "picture and link", "raw HTML", "formula"],
)  # fmt: skip
def test_a_passage_is_rendered_and_leads_nowhere(text: str, query: str, shown: str) -> None:
    html = render_passage(text, query, "a.md")
    assert shown in html and not re.search(r"<(?:a|img|input|script|details)\b|\bid=|\bhref=", html)


def test_a_curve_follows_the_formulas() -> None:
    today = NOW.date()

    def draw(importance: float, reinforced: int, status: str, seen: date) -> Curve:
        head = f"importance: {importance}\nreinforcement_count: {reinforced}\nstatus: {status}\nlast_reinforced: {seen}"
        curve = draw_curve(parse_document(f"---\n{head}\n---\nTea.\n", "a.md").entries[0], today, Ranking())
        assert curve
        return curve

    curve = draw(0.5, 3, "active", date(2026, 8, 23))
    assert curve.value == pytest.approx(0.5 * 0.5 * 4)
    assert "it was 2.00 on 2026-08-23 and will be 0.50 on 2027-02-19" in curve.sentence
    assert curve.past.startswith("M34.0 ")
    assert curve.past.endswith(f"{curve.now} {curve.height}") and curve.future.startswith(
        f"M{curve.now} {curve.height}"
    )
    assert draw(0.0, 0, "active", date(2999, 1, 1)).value == 0.0


def test_it_is_the_released_code_of_others() -> None:
    static = REPOSITORY / "memory_kb/web/static"
    for name in ("htmx", "force-graph", "mermaid.tiny"):
        assert (static / f"{name}.LICENSE.txt").stat().st_size > 500
        assert re.search(rf"{re.escape(name)} \d", (static / "README.txt").read_text())


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
    assert Attachments(here).find("pic.png", "art/x.md") == "art/pic.png"
    assert check_attachment(here, "art/pic.png") == (folder / "art/pic.png").resolve()
    assert [check_attachment(here, f"art/{name}.png") for name in ("out", "hidden", "../.secret/key")] == [None] * 3
