"""Which part of a large map of links is drawn: one that hangs together, with names on the biggest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import browsing, find_browser
from conftest import Files, write_files
from pages import Server

from memory_kb import KnowledgeBase
from memory_kb.index.link_map import Edge, LinkMap, Node, take_busiest

Open = Callable[..., KnowledgeBase]


def links(*pairs: tuple[int, int]) -> LinkMap:
    many = 1 + max(max(pair) for pair in pairs)
    nodes = tuple(
        Node(key, str(key), f"Note {key}", "fact", "project", "active", f"{key}.md", 1) for key in range(many)
    )
    return LinkMap(nodes, tuple(Edge(*pair, "mentions") for pair in pairs))


def degrees(found: LinkMap) -> Counter[int]:
    return Counter(key for edge in found.edges for key in (edge.source, edge.target))


#: Ten stars of five, which nothing holds together, and a note that everybody else links to.
STARS = [(10 * star, 10 * star + point) for star in range(10) for point in range(1, 6)]
HUB = [(200, other) for other in range(201, 280)]
CHAIN = [(201, 300), (300, 301), (301, 302)]


@pytest.mark.parametrize("limit", [2, 7, 20, 60, 500])
def test_whatever_is_taken_is_linked(limit: int) -> None:
    found = take_busiest(links(*STARS, *HUB, *CHAIN), limit)
    assert 0 < len(found.nodes) <= limit
    assert {node.key for node in found.nodes} == set(degrees(found))
    assert len(found.nodes) + found.left_out == 60 + 80 + 3


def test_the_busiest_bring_their_neighbours() -> None:
    found = take_busiest(links(*STARS), 18)
    assert len(found.nodes) == 18
    assert sorted(degrees(found).values(), reverse=True)[:3] == [5, 5, 5]


def test_one_hub_does_not_fill_the_map() -> None:
    found = take_busiest(links(*HUB, *STARS), 40)
    assert {0, 10} <= {node.key for node in found.nodes}
    assert degrees(found)[200] < 20


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
