"""Which part of a large map of links is drawn: the busiest entries, with names on the biggest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import browsing, find_browser
from conftest import Files, write_files
from pages import Server

from memory_kb import KnowledgeBase

Open = Callable[..., KnowledgeBase]


def test_of_many_the_busiest_are_taken_with_the_links_between_them(
    vault: Callable[[Files], Path], open_kb: Open
) -> None:
    notes = {f"hub{hub}.md": f"# Hub {hub}\n\n[[hub{(hub + 1) % 3}]]\n" for hub in range(3)}
    notes |= {f"{hub}-{point}.md": f"# Point {hub} {point}\n\n[[hub{hub}]]\n" for hub in range(3) for point in range(4)}
    with open_kb(vault(notes | {"alone.md": "# Alone\n"})) as kb:
        found = kb.busiest_links(4, (), (), "")
        assert {node.path for node in found.nodes} == {"hub0.md", "hub1.md", "hub2.md", "0-0.md"}
        assert (len(found.edges), found.left_out) == (4, 11)


def test_only_wanted_entries_are_taken(vault: Callable[[Files], Path], open_kb: Open) -> None:
    notes = {f"a/{key}.md": f"# A{key}\n\n[[a/{(key + 1) % 5}]] [[b/0]]\n" for key in range(5)}
    notes |= {f"b/{key}.md": f"# B{key}\n\n[[b/{(key + 1) % 9}]]\n" for key in range(9)}
    with open_kb(vault(notes)) as kb:
        found = kb.busiest_links(100, (), (), "a/")
        assert {node.path for node in found.nodes} == {f"a/{key}.md" for key in range(5)}
        assert len(found.edges) == 5
        assert len(kb.busiest_links(100, (), (), "").nodes) == 14


def test_what_is_near_comes_first(vault: Callable[[Files], Path], open_kb: Open) -> None:
    notes = {f"{key}.md": f"# N{key}\n\n[[{key + 1}]]\n" for key in range(6)}
    with open_kb(vault(notes)) as kb:
        ids = [[node.path for node in kb.links_around("N2", "", steps, 10).nodes] for steps in (1, 2)]
        assert ids == [["1.md", "2.md", "3.md"], ["0.md", "1.md", "2.md", "3.md", "4.md"]]
        near = kb.links_around("N2", "", 3, 2)
        assert (len(near.nodes), near.left_out) == (2, 4)


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="no Chromium here")
def test_a_large_map_has_names_that_do_not_crowd_it(tmp_path: Path, home: Path) -> None:
    notes = {f"n{key}.md": f"# A note about subject {key}\n\n" for key in range(400)}
    for key in range(400):
        notes[f"n{key}.md"] += f"See [[n{key // 6}]].\n"
    server = Server(write_files(tmp_path / "notes", notes), home)
    with browsing(tmp_path / "browser") as opening:
        for width in (360, 800, 1440):
            tab = opening()
            tab.look(width, 900)
            tab.go(f"{server.address}/graph")
            tab.wait("document.querySelector('#graph')?.dataset.ready === '1'")
            tab.wait("Number(document.querySelector('#graph').dataset.labels) >= 5")
            assert tab.run("Number(document.querySelector('#graph').dataset.labels)") <= 18
            assert tab.run("document.documentElement.scrollWidth") == width
            assert tab.complaints == []
            tab.close()
    server.process.kill()
    server.process.communicate()
