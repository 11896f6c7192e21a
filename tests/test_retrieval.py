"""Search: who is found, in which order, with which text, whatever the question looks like."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import NOW, Files, write_files
from hypothesis import example, given
from hypothesis import strategies as st
from support import assert_equals_rebuild, days_ago, entry, found

from memory_kb import KnowledgeBase

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]


# -- order ----------------------------------------------------------------------------------


def test_the_entry_with_most_of_the_words_comes_first(vault: Vault, open_kb: Open) -> None:
    names = {
        "a": "A flaky thing happened here today.",
        "b": "The flaky websocket test happened here.",
        "c": "A flaky websocket happened here today.",
    }
    kb = open_kb(
        vault({f"memory/learnings/{name}.md": entry(text, id=name, kind="fact") for name, text in names.items()})
    )
    hits = kb.search("flaky websocket test").hits
    assert hits[0].id == "b"
    assert [hit.id for hit in sorted(hits, key=lambda hit: -hit.score)] == ["b", "c", "a"]


def test_a_title_that_is_the_query_comes_before_a_longer_one(vault: Vault, open_kb: Open) -> None:
    notes = {"whole": "Flaky tests", "longer": "Flaky tests and flaky builds of nightly tests"}
    others = {f"memory/learnings/{number}.md": f"# Note {number}\n\nAbout nothing.\n" for number in range(9)}
    said = "Tests are flaky where they wait."
    files = {f"memory/learnings/{name}.md": entry(f"# {title}\n\n{said}", id=name) for name, title in notes.items()}
    assert [hit.id for hit in open_kb(vault(files | others)).search("flaky tests").hits] == ["whole", "longer"]


@pytest.mark.parametrize("query", ["appearance", "look and feel", "外観設定"])
def test_a_note_is_found_by_all_its_names(vault: Vault, open_kb: Open, query: str) -> None:
    files = {
        f"memory/learnings/{number}.md": f"# Note {number}\n\nSee Appearance for its look.\n" for number in range(9)
    }
    files["memory/learnings/Appearance.md"] = (
        "---\naliases: [Look and feel, 外観設定]\n---\n### Colours\n\nLight or dark.\n"
    )
    first = open_kb(vault(files)).search(query).hits[0]
    assert (first.path, first.title) == ("memory/learnings/Appearance.md", "Colours")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Wann sind die Prüfungen?", "Die Prüfung ist am Montag."),
        ("Где хранятся документы?", "Каждый документ лежит в синей папке."),
        ("Πού είναι τα κλειδιά;", "Το κλειδί βρίσκεται κάτω από το χαλί."),
        ("deploying", "Each deployment waits for approval."),
        ("deployments", "We deploy after approval."),
    ],
)
def test_other_forms_of_a_word_are_found(vault: Vault, open_kb: Open, query: str, text: str) -> None:
    files = {f"memory/learnings/{number}.md": f"Order {number} was sent out today.\n" for number in range(9)}
    files["memory/learnings/wanted.md"] = f"{text}\n"
    assert [hit.path for hit in open_kb(vault(files)).search(query).hits] == ["memory/learnings/wanted.md"]


@pytest.mark.parametrize(("spoken", "first"), [(12, "person"), (0, "manual")])
def test_where_people_speak_i_and_my_count(vault: Vault, open_kb: Open, spoken: int, first: str) -> None:
    files = {f"memory/learnings/{number}.md": f"My day {number}: I ate soup.\n" for number in range(spoken)}
    files |= {f"memory/learnings/o{number}.md": f"Order {number} was sent out today.\n" for number in range(60)}
    files["memory/learnings/person.md"] = entry(
        "I put my bicycle there, below my window, and then I went up to my room.", id="person", kind="fact"
    )
    files["memory/learnings/manual.md"] = entry(
        "Put a bicycle into the shed, then lock the door.", id="manual", kind="fact"
    )
    assert open_kb(vault(files)).search("where did I put my bicycle?").hits[0].id == first


def test_in_the_log_of_a_conversation_a_person_counts_more_than_an_assistant(vault: Vault, open_kb: Open) -> None:
    said = "The release goes out on Thursday, from the branch of that week. "
    turns = (
        f"## {who}\n\n{text}{f'Of {who} nothing else is known. ' * 30}\n"
        for who, text in (("System", ""), ("Assistant", said), ("User", said))
    )
    chat = {"memory/learnings/chat.md": "# Chat\n\n" + "\n".join(turns)}
    others = {f"memory/learnings/{number}.md": f"Order {number} was sent out today.\n" for number in range(9)}
    hits = open_kb(vault(chat | others)).search("when does the release go out?").hits
    assert ["User" in hit.text for hit in hits[:2]] == [True, False]
    assert hits[0].parts.relevance > hits[1].parts.relevance > 0.5


def test_what_is_about_the_same_as_the_best_hit_is_above_what_says_as_much(vault: Vault, open_kb: Open) -> None:
    files = {
        "best.md": "To undo a broken release, roll the chart back to its last revision in the cluster.\n",
        "a.md": "The second release of the band had twelve songs and a drummer from another town.\n",
        "b.md": "Every release of the chart gets a revision, and the cluster keeps ten of these.\n",
    }
    others = {f"o{number}.md": f"Order {number} was sent out today.\n" for number in range(20)}
    hits = open_kb(vault(files | others)).search("undo a broken release", explain=True).hits
    assert [hit.path for hit in hits] == ["best.md", "b.md", "a.md"]
    assert "x similarity to the best" in hits[1].explanation[1]


def test_what_shares_nothing_with_the_others_is_not_similar_to_them(vault: Vault, open_kb: Open) -> None:
    files = {
        "a.md": "An ox, stone glacier whisk.\n",
        "b.md": "An ox, quokka saffron tariff anchor.\n",
        "c.md": "An ox, clock wombat ledger numbat steam.\n",
    }
    others = {f"o{number}.md": f"Order {number} was sent out today.\n" for number in range(9)}
    folder = {f"memory/learnings/{name}": text for name, text in (files | others).items()}
    hits = open_kb(vault(folder | {"memory/config.yaml": ""})).search("ox", explain=True).hits
    assert [hit.path[-4:] for hit in hits] == ["a.md", "b.md", "c.md"]
    assert not [hit for hit in hits if "similarity" in hit.explanation[1]]


def test_similarity_does_not_depend_on_what_was_indexed_first(vault: Vault, open_kb: Open, tmp_path: Path) -> None:
    texts = [
        "red roof tiles",
        "blue sea waves",
        "green forest paths",
        "red roof paint",
        "blue sea birds",
        "old iron gates",
    ]
    folder = vault({f"o{number}.md": f"Order {number} was sent out today.\n" for number in range(9)})
    kb = open_kb(folder)
    kb.sync()
    for number, text in reversed(list(enumerate(texts))):
        write_files(folder, {f"{number}.md": f"The painter likes {text} most.\n"})
        kb.sync()
    assert_equals_rebuild(kb, tmp_path / "fresh", ("what does a painter need", "painter orders"))


def test_a_lone_hit_scores_above_0_with_a_full_text_part(vault: Vault, open_kb: Open) -> None:
    (hit,) = (
        open_kb(vault({"memory/learnings/a.md": "A zebra.\n", "memory/learnings/b.md": "A camel.\n"}))
        .search("zebra")
        .hits
    )
    assert hit.score > 0
    assert (hit.parts.bm25, hit.parts.relevance, hit.parts.vector) == (1.0, 1.0, None)


def test_a_word_in_every_entry_still_finds_every_entry(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault({f"memory/learnings/{number}.md": "Zebra.\n" for number in range(7)}))
    hits = kb.search("zebra").hits
    assert len(hits) == 7
    assert all(hit.score > 0 for hit in hits)


@pytest.mark.parametrize(
    ("fields", "prominence"),
    [
        ({"importance": 0.9, "created_at": days_ago(3_650)}, 0.09),
        ({"importance": 0.2, "created_at": days_ago(3_650)}, 0.02),
        ({"importance": 0.5, "last_reinforced": days_ago(90), "reinforcement_count": 3}, 1.0),
        ({"importance": 0.5, "created_at": days_ago(400), "last_reinforced": days_ago(90)}, 0.25),
        ({"importance": 0.5, "date": days_ago(180)}, 0.125),
        ({"importance": 0.5}, 0.5),
        ({"importance": 0.5, "created_at": days_ago(-30)}, 0.5),
        ({"kind": "policy"}, 0.95),
        ({"kind": "fact"}, 0.4),
        ({"kind": "fact", "priority": "critical"}, 0.95),
        ({"id": "x"}, 0.5),
    ],
    ids=[
        "old and important",
        "old and minor",
        "reinforced",
        "reinforced date counts",
        "date",
        "undated is new",
        "future is new",
        "policy",
        "fact",
        "priority",
        "no kind",
    ],
)
def test_prominence_of_an_entry(vault: Vault, open_kb: Open, fields: dict[str, object], prominence: float) -> None:
    (hit,) = open_kb(vault({"memory/learnings/a.md": entry("A zebra.", **fields)})).search("zebra").hits
    assert hit.parts.prominence == pytest.approx(prominence, abs=1e-5)
    assert hit.parts.prominence_factor == pytest.approx(max(prominence, 0.01) ** 0.1, abs=1e-5)
    assert hit.score == pytest.approx(hit.parts.prominence_factor * 1.2, abs=1e-5)


@pytest.mark.parametrize(
    ("path", "age"),
    [
        ("memory/episodes/2026-08-23/a.md", 90),
        ("memory/learnings/2026-08-23 notes.md", 90),
        ("memory/archive/2025-01-01/2026-08-23.md", 90),
        ("memory/learnings/12026-08-23.md", 0),
        ("memory/archive/2026-01/a.md", 0),
    ],
    ids=["folder", "name", "the last one", "longer number", "only a month"],
)
def test_the_age_of_an_undated_entry_is_that_of_its_path(vault: Vault, open_kb: Open, path: str, age: int) -> None:
    (hit,) = open_kb(vault({path: "A zebra.\n"})).search("zebra", status=["active", "archived"]).hits
    assert hit.parts.prominence == pytest.approx(0.5 * 0.5 ** (age / 90), abs=1e-5)


@pytest.mark.parametrize(
    ("path", "scope", "weight"),
    [
        ("memory/jobs/api/tasks/t1/learnings/a.md", "task", 1.5),
        ("memory/jobs/api/learnings/a.md", "job", 1.2),
        ("memory/learnings/a.md", "project", 1.2),
        ("MEMORY.md", "project", 1.2),
        ("../home/learnings/a.md", "global", 1.0),
    ],
)
def test_scope_follows_from_the_path_and_weighs(
    vault: Vault, open_kb: Open, path: str, scope: str, weight: float
) -> None:
    (hit,) = open_kb(vault({"memory/config.yaml": "", path: "A zebra.\n"})).search("zebra").hits
    assert (hit.scope, hit.parts.scope) == (scope, weight)
    assert hit.score == pytest.approx(0.5**0.1 * weight, rel=1e-4)


def test_a_superseded_entry_scores_half(vault: Vault, open_kb: Open) -> None:
    link = "[{to: new, relation: superseded_by}]"
    files = {
        "memory/learnings/a.md": entry("A zebra.", id="old", links=link),
        "memory/learnings/b.md": entry("A zebra.", id="new"),
    }
    new, old = open_kb(vault(files)).search("zebra").hits
    assert (new.id, old.id) == ("new", "old")
    assert old.score == pytest.approx(new.score / 2, rel=1e-4)


@pytest.mark.parametrize("link", ["supersedes", "superseded_by"])
def test_a_superseded_entry_that_fits_better_stays_below_its_successor(vault: Vault, open_kb: Open, link: str) -> None:
    to_new = {"links": "[{to: new, relation: superseded_by}]"} if link == "superseded_by" else {}
    to_old = {"links": "[{to: old, relation: supersedes}]"} if link == "supersedes" else {}
    stale = "The nightly zebra census counts zebras at the river."
    files = {
        "memory/learnings/a.md": entry(stale, id="old", importance=1.0, reinforcement_count=20, **to_new),
        "memory/learnings/b.md": entry("The count of zebras is done by day.", id="new", importance=0.1, **to_old),
    }
    files |= {f"memory/learnings/{number}.md": f"Otters of pond {number} sleep.\n" for number in range(9)}
    new, old = open_kb(vault(files)).search("nightly zebra census at the river").hits
    assert (new.id, old.id) == ("new", "old")
    assert old.parts.relevance > new.parts.relevance
    assert old.score == pytest.approx(new.score / 2, rel=1e-4)


@pytest.mark.parametrize(
    ("query", "is_told"), [("wombats burrow underneath eucalyptus otters", True), ("otters", False)]
)
def test_where_words_find_little_the_answer_says_how_to_search_by_meaning(
    vault: Vault, open_kb: Open, query: str, is_told: bool
) -> None:
    files = {f"memory/learnings/{number}.md": f"Otters sleep in pond {number}.\n" for number in range(9)}
    result = open_kb(vault(files)).search(query)
    assert len(result.hits) == 9
    assert any("to search by meaning too: pip install" in note for note in result.degraded) == is_told


@given(
    st.lists(
        st.lists(st.sampled_from(["zebra", "camel", "llama", "tapir", "otter", "heron"]), min_size=1, max_size=30),
        min_size=2,
        max_size=12,
    )
)
def test_a_better_bm25_gives_a_higher_score_at_equal_metadata(bodies: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = write_files(
            Path(name),
            {f"notes/{number}.md": f"# N{number}\n\n{' '.join(words)}\n" for number, words in enumerate(bodies)},
        )
        with KnowledgeBase.open(folder, folder / "none", environ={"HOME": name}, clock=lambda: NOW) as kb:
            hits = kb.search("zebra camel", limit=50).hits
    assert all(
        one.score >= other.score for one in hits for other in hits if (one.parts.bm25 or 0) > (other.parts.bm25 or 0)
    )
    assert not hits or hits[0].parts.bm25 == max(hit.parts.bm25 or 0 for hit in hits) == 1.0


def test_a_match_beside_a_far_better_one_still_scores_above_0(vault: Vault, open_kb: Open) -> None:
    files: dict[str, str | bytes] = {f"memory/learnings/{number}.md": "A zebra.\n" for number in range(4)}
    kb = open_kb(vault(files | {"memory/learnings/camel.md": "A zebra and a camel.\n"}))
    hits = kb.search("zebra camel").hits
    assert [hit.path for hit in hits[:1]] == ["memory/learnings/camel.md"]
    assert all(hit.score > 0 for hit in hits)


# -- limits ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """A vault in which far more entries fit a query than compete for the first places."""
    place = tmp_path_factory.mktemp("herd")
    files: dict[str, str | bytes] = {}
    for number in range(320):
        body = (
            "A zebra and "
            + "other animals at the river. " * (1 + number % 17)
            + ("zebra " * (number % 5))
            + f"station{number % 7}"
        )
        files[f"vault/memory/learnings/{number:03}.md"] = entry(
            body, id=f"n{number}", kind="fact", importance=0.3 + number % 7 / 10
        )
    files["home/learnings/again.md"] = entry(
        "A zebra once, much later in a text about other things. " + "Filler words stand here. " * 50,
        id="n5",
        kind="fact",
    )
    long = "\n\n".join(
        f"## Part {part}\n\nA zebra at gate{part}. " + "It walks slowly past us. " * 25 for part in range(8)
    )
    files["vault/memory/learnings/long.md"] = entry(long, id="long", kind="fact")
    write_files(place, files)
    with KnowledgeBase.open(place / "vault", place / "home", environ={"HOME": str(place)}, clock=lambda: NOW) as kb:
        kb.sync()
        yield kb


@pytest.mark.slow
@given(
    st.integers(0, 340),
    st.integers(0, 60),
    st.sampled_from(["zebra", "zebra river station3", '"other animals" zebra', "gate3 walks"]),
)
@example(49, 2, "zebra")
@example(199, 2, "zebra")
@example(200, 140, "zebra")
def test_the_first_hits_are_the_same_for_every_limit(herd: KnowledgeBase, limit: int, more: int, query: str) -> None:
    fewer, all_of_them = (herd.search(query, limit=count, sync=False).hits for count in (limit, limit + more))
    assert all_of_them[:limit] == fewer
    assert [hit.rank for hit in all_of_them] == list(range(1, len(all_of_them) + 1))


def test_every_limit_gives_each_passage_once(herd: KnowledgeBase) -> None:
    hits = herd.search("zebra", limit=1_000, sync=False).hits
    places = [(hit.path, hit.line) for hit in hits]
    assert len(set(places)) == len(places)
    assert {f"memory/learnings/{number:03}.md" for number in range(320)} <= {hit.path for hit in hits}


def test_the_same_id_in_the_home_stays_hidden_however_many_hits_are_asked_for(herd: KnowledgeBase) -> None:
    assert "~global/learnings/again.md" not in found(herd, "zebra", limit=1_000, sync=False)


def test_the_best_score_is_first_and_never_displaced(herd: KnowledgeBase) -> None:
    for query in ("zebra", "zebra station1", "river animals", "gate2"):
        hits = herd.search(query, limit=50, sync=False).hits
        assert hits[0].score == max(hit.score for hit in hits)


def test_a_budget_of_characters_ends_the_list_at_the_first_hit_that_does_not_fit(herd: KnowledgeBase) -> None:
    hits = herd.search("zebra", limit=20, sync=False).hits
    lengths = [len(hit.text) for hit in hits]
    for count in (0, 1, 3, 19):
        assert herd.search("zebra", limit=20, max_chars=max(1, sum(lengths[:count])), sync=False).hits == hits[:count]
    assert herd.search("zebra", limit=20, max_chars=0, sync=False).hits == hits


def test_an_exact_repetition_is_shown_once_with_both_places(vault: Vault, open_kb: Open) -> None:
    twin = "The zebra crossed the river at noon."
    files = {f"memory/learnings/{name}.md": entry(twin, id=name, importance=0.9) for name in ("a", "b")}
    files["memory/learnings/c.md"] = entry("Our zebra policy: feed at dawn, never at dusk.", id="c", importance=0.8)
    files["memory/learnings/d.md"] = entry(
        "Someone else saw one zebra far away, long ago, in some other land.", id="d", importance=0.1
    )
    first, *others = open_kb(vault(files)).search("zebra").hits
    assert [hit.id for hit in others] == ["c", "d"]
    assert {first.path, *(copy.rpartition(":")[0] for copy in first.copies)} == {
        "memory/learnings/a.md",
        "memory/learnings/b.md",
    }


# -- any question ---------------------------------------------------------------------------


@given(
    st.one_of(
        st.text(max_size=100),
        st.text(st.characters(), max_size=40),
        st.text(st.sampled_from("\"'-+*:^(){}.,!#/ zebraCgate0検索\x00\ud800"), max_size=40),
    )
)
@example("edge-case foo.bar")
@example('zebra "')
@example("title:zebra NEAR(a b) ^zebra* {content}: -")
def test_no_question_raises(herd: KnowledgeBase, text: str) -> None:
    result = herd.search(text, limit=5, sync=False)
    assert result.query == text
    assert len(result.hits) <= 5


@pytest.mark.parametrize(
    "how",
    [
        {"file": "\udcff.py"},
        {"tag": ["\udcff"]},
        {"job": "\udcff"},
        {"file": "a\x00b"},
        {"file": "[!]"},
        {"job": "it's; --"},
    ],
    ids=str,
)
def test_no_filter_value_raises(herd: KnowledgeBase, how: dict[str, object]) -> None:
    assert isinstance(found(herd, "zebra", limit=5, sync=False, **how), list)


@pytest.mark.parametrize(
    "text", ["", "  ", "?!", "-zebra", '""'], ids=["empty", "blank", "signs", "only excluded", "quotes"]
)
def test_a_question_without_words_says_so(herd: KnowledgeBase, text: str) -> None:
    result = herd.search(text, sync=False)
    assert (result.hits, result.degraded) == ((), ("the query has no words to look for",))


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_mode_that_is_not_there_is_answered_in_text_and_said(herd: KnowledgeBase, mode: str) -> None:
    result = herd.search("zebra", mode=mode, sync=False)
    assert (len(result.hits), result.mode) == (10, "text")
    assert "text search" in result.degraded[0]


# -- words ----------------------------------------------------------------------------------

NAMES: dict[str, str | bytes] = {
    "memory/learnings/dash.md": "Use foo-bar for retries.\n",
    "memory/learnings/snake.md": "The column user_name is unique.\n",
    "memory/learnings/version.md": "Broken since v1.2.3 of the client.\n",
    "memory/learnings/otherversion.md": "Fixed in v1.3.0 of the client.\n",
    "memory/learnings/cpp.md": "The core is written in C++ for speed.\n",
    "memory/learnings/csharp.md": "The plugin is written in C# by them.\n",
    "memory/learnings/c.md": "The driver is written in C only.\n",
    "memory/learnings/camel.md": "Call getUserName() first.\n",
    "memory/learnings/spaced.md": "To get user name and mail, log in.\n",
    "memory/learnings/path.md": "See src/api/users.py for that.\n",
    "memory/learnings/kensaku.md": "この検索機能は速い。\n",
    "memory/learnings/tokyo.md": "東京都の天気\n",
    "memory/learnings/korean.md": "한국어를 검색합니다.\n",
    "memory/learnings/umlaut.md": "Die Größe der Tür ändern.\n",
    "memory/learnings/mixed.md": "Obsidian同期の設定\n",
    "memory/learnings/running.md": "Running the migrations took hours.\n",
}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    place = tmp_path_factory.mktemp("names")
    with KnowledgeBase.open(
        write_files(place / "vault", NAMES), place / "home", environ={"HOME": str(place)}, clock=lambda: NOW
    ) as kb:
        kb.sync()
        yield kb


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("foo-bar", "dash"),
        ("user_name", "snake"),
        ("v1.2.3", "version"),
        ("C++", "cpp"),
        ("c++", "cpp"),
        ("C#", "csharp"),
        ("getUserName", "camel"),
        ("getUserName()", "camel"),
        ("src/api/users.py", "path"),
        ("users.py", "path"),
        ("検索", "kensaku"),
        ("検索機能", "kensaku"),
        ("能", "kensaku"),
        ("機", "kensaku"),
        ("速い", "kensaku"),
        ("東京", "tokyo"),
        ('"東京都"', "tokyo"),
        ("都", "tokyo"),
        ("검색", "korean"),
        ("groesse größe", "umlaut"),
        ("grosse tur andern", "umlaut"),
        ("同期", "mixed"),
        ("obsidian", "mixed"),
        ("migration run", "running"),
        ("what about the MIGRATIONS?", "running"),
    ],
)
def test_the_first_hit_for_a_name_or_script(names: KnowledgeBase, query: str, first: str) -> None:
    assert found(names, query, sync=False)[:1] == [f"memory/learnings/{first}.md"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("getUserName", {"camel", "spaced"}),
        ('"user name"', {"snake", "spaced"}),
        ('"user mail"', set()),
        ("client -broken", {"otherversion"}),
        ('client -"since v1"', {"otherversion"}),
        ("written -C++ -C#", {"c"}),
        ("京東", set()),
        ('"検索機能は"', {"kensaku"}),
        ('"機能検索"', set()),
        ('client "the client"', {"version", "otherversion"}),
        ("Is it the client -broken?", {"version", "otherversion"}),
        ('Is the "broken" client fixed.', {"version", "otherversion"}),
        ("クライアント（client -broken）？", {"version", "otherversion"}),
    ],
)
def test_exactly_these_are_found(names: KnowledgeBase, query: str, expected: set[str]) -> None:
    assert {Path(path).stem for path in found(names, query, sync=False)} == expected


def test_a_sentence_in_quotes_counts_as_words_too(names: KnowledgeBase) -> None:
    assert found(names, '"The client is broken since v1.2.3."', sync=False)[0] == "memory/learnings/version.md"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("reindex", "Now re-index the notes."),
        ("worktree", "Make a work tree for each branch."),
        ("confgiuration", "The configuration is in a file."),
        ("deploment of the site", "The deployment takes an hour."),
        ("Uploads of a certficate", "A certificate is uploaded by hand."),
    ],
)
def test_a_word_that_no_note_says_is_found_as_notes_spell_it(
    vault: Vault, open_kb: Open, query: str, text: str
) -> None:
    kb = open_kb(vault({"memory/learnings/note.md": f"{text}\n", "memory/learnings/other.md": "The zebra runs.\n"}))
    result = kb.search(query)
    assert [hit.path for hit in result.hits] == ["memory/learnings/note.md"]
    assert "instead" in result.degraded[0]


def test_a_word_that_a_note_says_is_not_found_in_another_spelling(vault: Vault, open_kb: Open) -> None:
    texts = {
        "form": "The contract should be signed.",
        "other": "The contrast is low.",
        "employ": "We employ two people.",
    }
    kb = open_kb(vault({f"memory/learnings/{name}.md": f"{text}\n" for name, text in texts.items()}))
    assert found(kb, "contract") == ["memory/learnings/form.md"]
    assert found(kb, "zebra") == found(kb, "contrack") == found(kb, "shoulder") == []


@pytest.mark.parametrize("query", ["--stream", "events_log", "@events/log", "log[events]"])
def test_a_note_with_the_signs_of_the_query_is_before_one_with_its_words(
    vault: Vault, open_kb: Open, query: str
) -> None:
    words = " ".join(re.findall("[a-z]+", query))
    texts = {
        "words": f"{words.capitalize()} and {words}: what is said of {words}.",
        "signs": f"Here is {query} in use.",
    }
    kb = open_kb(vault({f"memory/learnings/{name}.md": f"{text}\n" for name, text in texts.items()}))
    assert found(kb, query)[0] == "memory/learnings/signs.md"


@pytest.mark.parametrize("query", ["??=", ' "??=" ', "`??=`"])
def test_signs_without_a_word_are_found_as_they_are(vault: Vault, open_kb: Open, query: str) -> None:
    texts = {"signs": "A default is set by ??= here.", "others": "Is it? It is = there."}
    kb = open_kb(vault({f"memory/learnings/{name}.md": f"{text}\n" for name, text in texts.items()}))
    result = kb.search(query)
    assert ([hit.path for hit in result.hits], result.degraded) == (["memory/learnings/signs.md"], ())
    assert kb.context(query).text == ""


def test_quotes_among_signs_that_a_note_writes_are_looked_for(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(
        vault({"memory/learnings/a.md": 'It ends with `"],` as here.\n', "memory/learnings/b.md": "[1], [2],\n"})
    )
    assert found(kb, '"],') == ["memory/learnings/a.md"]


def test_a_name_in_camel_case_is_before_its_words(vault: Vault, open_kb: Open) -> None:
    texts = {
        "words": "# Import map\n\nAn import map says where modules are. Write the import map.",
        "name": "The option is called importMap.",
    }
    kb = open_kb(vault({f"memory/learnings/{name}.md": f"{text}\n" for name, text in texts.items()}))
    assert found(kb, "importMap")[0] == "memory/learnings/name.md"


def test_an_option_of_a_command_that_a_note_writes_is_a_word(vault: Vault, open_kb: Open) -> None:
    texts = {"command": "Delete it with `rm -rf build` or `rm -r build`.", "slow": "The build is slow, not so-rf."}
    kb = open_kb(vault({f"memory/learnings/{name}.md": f"{text}\n" for name, text in texts.items()}))
    assert found(kb, "rm -rf build") == ["memory/learnings/command.md", "memory/learnings/slow.md"]
    assert found(kb, "delete -RF")[0] == "memory/learnings/command.md"
    assert found(kb, "build -slow") == ["memory/learnings/command.md"]
    assert found(kb, "build -so") == ["memory/learnings/command.md"]
    assert found(kb, "rm -rf -slow") == ["memory/learnings/command.md"]
    assert found(kb, '"is slow" -rf') == ["memory/learnings/slow.md"]


def test_what_stands_in_quotes_in_a_question_counts_even_if_it_is_a_common_word(vault: Vault, open_kb: Open) -> None:
    texts = {"who": "Run who to see the users.", "manual": "The manual is on paper."}
    kb = open_kb(vault({f"memory/learnings/{name}.md": f"{text}\n" for name, text in texts.items()}))
    assert set(found(kb, 'Is there a manual of "who"?')) == {f"memory/learnings/{name}.md" for name in texts}
    assert found(kb, "Is there a manual of who?") == ["memory/learnings/manual.md"]


def test_a_phrase_that_occurs_nowhere_is_asked_again_as_words_if_there_are_others(names: KnowledgeBase) -> None:
    result = names.search('"client broken" v1', sync=False)
    assert result.hits[0].path == "memory/learnings/version.md"
    assert "looked for all the words instead" in result.degraded[0]
    alone = names.search('"client broken"', sync=False)
    assert (alone.hits, alone.degraded) == ((), ())


# -- texts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_neighbouring_passages_become_one_hit_with_the_text_between_them(
    vault: Vault, open_kb: Open, newline: str
) -> None:
    parts = [f"## Part {part}\n\n" + ("The zebra grazes here quietly. " * 15).strip() for part in range(2)]
    rest = [f"## Rest {part}\n\n" + ("Nothing of interest stands in this part. " * 20).strip() for part in range(3)]
    text = "\n\n".join([*parts, *rest]).replace("\n", newline) + newline
    (hit,) = open_kb(vault({"memory/learnings/a.md": text.encode()})).search("zebra").hits
    assert (hit.line, hit.end_line) == (1, 7)
    assert hit.text.split() == "\n\n".join(parts).split()
    assert hit.text.replace("\r", "") == "\n\n".join(parts)


def test_a_long_note_gives_a_hit_for_each_distant_passage(vault: Vault, open_kb: Open) -> None:
    filler = "Nothing of interest stands in this part. " * 25
    text = "\n\n".join(
        f"## Part {part}\n\n{'The zebra of gate' + str(part) + ' sleeps. ' if part in (1, 6) else ''}{filler}"
        for part in range(8)
    )
    hits = open_kb(vault({"memory/learnings/a.md": entry(text, id="long", kind="fact")})).search("zebra").hits
    assert [hit.id for hit in hits] == ["long", "long"]
    assert sorted(hit.text.count("gate1") + 2 * hit.text.count("gate6") for hit in hits) == [1, 2]


def test_chunks_of_different_entries_in_one_file_never_become_one(vault: Vault, open_kb: Open) -> None:
    text = "\n".join(entry(f"A zebra, number {number}.", id=f"e{number}", kind="fact") for number in range(3))
    hits = open_kb(vault({"memory/learnings/a.md": text})).search("zebra").hits
    assert sorted((hit.id, hit.text) for hit in hits) == [
        (f"e{number}", f"A zebra, number {number}.") for number in range(3)
    ]


def test_the_text_of_every_hit_is_at_its_lines(herd: KnowledgeBase) -> None:
    for hit in herd.search("zebra gate3 station2", limit=100, sync=False).hits:
        lines = (herd.vault.resolve(hit.path)).read_text().split("\n")
        assert hit.text in "\n".join(lines[hit.line - 1 : hit.end_line])
        assert all(line in hit.text for line in lines[hit.line : hit.end_line - 1])


def test_an_explanation_names_every_factor(herd: KnowledgeBase) -> None:
    hit = herd.search("zebra", limit=1, explain=True, sync=False).hits[0]
    assert hit.explanation[0].startswith("score ")
    assert {line.partition(":")[0].partition(" ")[0] for line in hit.explanation} >= {
        "score",
        "relevance",
        "prominence",
    }
    assert hit.score == pytest.approx(hit.parts.relevance * hit.parts.prominence_factor * hit.parts.scope, abs=1e-5)


def test_a_plain_folder_of_notes_needs_no_frontmatter_and_has_project_scope(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(
        vault(
            {
                "jobs/x/a.md": "A zebra.\n",
                "archive/b.md": "A zebra.\n",
                ".obsidian/c.md": "A zebra.\n",
                "node_modules/d.md": "A zebra.\n",
            }
        )
    )
    assert sorted((hit.path, hit.scope, hit.status) for hit in kb.search("zebra").hits) == [
        ("archive/b.md", "project", "active"),
        ("jobs/x/a.md", "project", "active"),
    ]


def test_an_explanation_of_nothing_is_no_negative_number(vault: Vault, open_kb: Open) -> None:
    """In a vault of one note every word has a BM25 of nearly 0."""
    (hit,) = open_kb(vault({"a.md": "Deploys need approvals.\n"})).search("approvals", explain=True).hits
    assert "0.42 x section 1.0000 + 0.28 x passage 1.0000 + 0.3 x note 1.0000 = 1.0000" in hit.explanation[1]
