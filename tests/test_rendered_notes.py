"""What Obsidian and GitHub write in notes, as the page shows it."""

from __future__ import annotations

import pytest

from memory_kb.web.render import LinkBase, render_note


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "> [!NOTE]\n> Careful.",
            '<div class="callout callout-note"><p class="callout-title">Note</p><p>Careful.</p></div>',
        ),
        (
            "> [!faq]- Are *they* folded?\n> Yes.\n>\n> > [!tip]+ In\n> > Deep.",
            (
                '<details class="callout callout-faq"><summary class="callout-title">Are <em>they</em> folded?</summary><p>Yes.</p>'
                '<details class="callout callout-tip" open=""><summary class="callout-title">In</summary><p>Deep.</p></details></details>'
            ),
        ),
        (
            "> [!tip] <script>\n> x",
            '<div class="callout callout-tip"><p class="callout-title">&lt;script&gt;</p><p>x</p></div>',
        ),
        (
            "> [x] quote\n\n> > deep",
            "<blockquote><p>[x] quote</p></blockquote><blockquote><blockquote><p>deep</p></blockquote></blockquote>",
        ),
        (
            "> > [!tip]\n> > x\n>\n> y",
            '<blockquote><div class="callout callout-tip"><p class="callout-title">Tip</p><p>x</p></div><p>y</p></blockquote>',
        ),
        (
            "A ==*b* c== and a == b == c `==d==`",
            "<p>A <mark><em>b</em> c</mark> and a == b == c <code>==d==</code></p>",
        ),
        (
            "Seen %%hidden%% 50% `%%x%%`\n\n%%\nall\n\nof this\n%%\n\nEnd",
            "<p>Seen  50% <code>%%x%%</code></p><p>End</p>",
        ),
        ("%% never closed", "<p>%% never closed</p>"),
        ("[[#Do it]] [[#Do it|how]]", '<p><a href="#at-do-it">Do it</a> <a href="#at-do-it">how</a></p>'),
    ],
)
def test_obsidian_and_github_markdown(text: str, shown: str) -> None:
    assert str(render_note(text, LinkBase("a.md"))).replace(">\n<", "><").strip() == shown


def test_tasks_footnotes_and_tables_need_no_style() -> None:
    drawn = render_note(
        "- [x] done\n- [ ] open\n\n|a|b|\n|:-:|--:|\n|1|2|\n\nSee[^1].\n\n[^1]: The note.\n", LinkBase("a.md")
    )
    assert drawn.count('type="checkbox"') == 2 and drawn.count("checked") == 1 and drawn.count("disabled") == 2
    assert '<td class="align-center">1</td>' in drawn and '<th class="align-right">b</th>' in drawn
    assert "style=" not in drawn
    assert '<a href="#fn1"' in drawn and '<li id="fn1"' in drawn and "The note." in drawn


EMBEDDED = {"Tea": ("sub/Tea.md", "# Tea\n\n## Steps\n\nBoil **it**.\n\n![[Other]]\n\n## After\n\nDrink.\n")}


def test_a_note_shows_another_one_or_one_part_of_it() -> None:
    place = LinkBase("a.md", lambda _: True, EMBEDDED)
    whole = render_note("Before.\n\n![[Tea]]\n\nInline ![[Tea]].\n", place)
    assert whole.count('<div class="embedded">') == 1 and "<strong>it</strong>" in whole and "Drink." in whole
    part = render_note("![[Tea#Steps]]", place)
    assert "Boil" in part and "Drink." not in part and 'href="/go?to=Other' in part
    assert ' id="at-steps"' not in part, "two places of one name"


def test_the_lines_of_a_hit_are_marked() -> None:
    text = "# A\n\nOne.\n\n- two\n- three\n\nFour.\n"
    shown = render_note(text, LinkBase("a.md", passage=range(4, 6)))
    assert shown.count("passage") == 2 and '<ul class="passage" id="passage">' in shown


def test_code_of_a_known_language_is_coloured_and_escaped() -> None:
    shown = render_note('```python\nif a < "<b>": pass\n```\n\n```nonsense\n<b>\n```\n', LinkBase("a.md"))
    assert '<span class="k">if</span>' in shown and "<b>" not in shown
    assert '<code class="language-nonsense">&lt;b&gt;' in shown


def test_formulas_are_mathml_without_styles() -> None:
    pytest.importorskip("math_core", reason="the extra `web` of an older installation")
    drawn = render_note(
        "It is $e^{x}$, for $5 or $10.\n\n$$\n\\begin{aligned}a&=\\text{<b>}\\\\c&=d\\end{aligned}\n$$\n",
        LinkBase("a.md"),
    )
    assert drawn.startswith("<p>It is <math><msup><mi>e</mi><mi>x</mi></msup></math>, for $5 or $10.</p>")
    assert '<math tabindex="0" display="block">' in drawn and '<mtd class="align-right near-right">' in drawn
    assert " style=" not in drawn and "<b>" not in drawn


@pytest.mark.parametrize("formula", ["\\nonsense{<b>}", "{" * 3_000 + "}" * 3_000, "x" * 9_000])
def test_a_formula_that_cannot_be_read_is_shown_as_written(formula: str) -> None:
    drawn = render_note(f"Is ${formula}$.", LinkBase("a.md"))
    assert '<code class="formula"' in drawn and "<b>" not in drawn


def test_sounds_films_and_documents_of_the_vault() -> None:
    drawn = render_note("![[a.mp3]] ![[b.mp4]] [paper](c.pdf)", LinkBase("n/x.md"))
    assert '<audio controls preload="metadata" src="/attachment?name=a.mp3&amp;from=n%2Fx.md"' in drawn
    assert '<video controls preload="metadata" src="/attachment?name=b.mp4&amp;from=n%2Fx.md"' in drawn
    assert 'href="/attachment?name=c.pdf&amp;from=n%2Fx.md"' in drawn
