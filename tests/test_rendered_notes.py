"""What Obsidian and GitHub write in notes, as the page shows it."""

from __future__ import annotations

import pytest

from memory_kb.web.render import LinkBase, render


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
    assert render(text, LinkBase("a.md")).replace(">\n<", "><").strip() == shown


def test_tasks_footnotes_and_tables_need_no_style() -> None:
    drawn = render(
        "- [x] done\n- [ ] open\n\n|a|b|\n|:-:|--:|\n|1|2|\n\nSee[^1].\n\n[^1]: The note.\n", LinkBase("a.md")
    )
    assert drawn.count('type="checkbox"') == 2 and drawn.count("checked") == 1 and drawn.count("disabled") == 2
    assert '<td class="align-center">1</td>' in drawn and '<th class="align-right">b</th>' in drawn
    assert "style=" not in drawn
    assert '<a href="#fn1"' in drawn and '<li id="fn1"' in drawn and "The note." in drawn
