"""Words and meaning together: how the two sides are brought to one scale, and what each can do alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from conftest import NOW, write_files
from hypothesis import given
from hypothesis import strategies as st
from support import entry, found, ids

from memory_kb import KnowledgeBase
from memory_kb.index.port import Cosines, VectorTable
from memory_kb.model import Filters
from memory_kb.search.scoring import WEIGHTS, RelevanceParts, fuse
from memory_kb.search.vector_scores import (
    Nearness,
    score_nearness,
    scores_of,
)
from memory_kb.settings import Ranking

if TYPE_CHECKING:
    from fake_provider import FakeProvider

Open = Callable[..., KnowledgeBase]
FILLER = {
    f"filler{number:02}.md": f"Sentence {number} on gardens, rivers{number} and mountains{number}."
    for number in range(40)
}


@pytest.fixture
def open_with(tmp_path: Path, home: Path, fake: FakeProvider) -> Iterator[Open]:
    """A function that makes a vault of some notes, indexed with the fake server's vectors."""
    opened: list[KnowledgeBase] = []

    def open_one(notes: dict[str, str], **more: str) -> KnowledgeBase:
        folder = write_files(tmp_path / "vault", notes)
        environ = {
            "HOME": str(home.parent),
            "MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url,
            "MEMORY_KB_EMBEDDINGS_MODEL": "m",
        } | more
        opened.append(KnowledgeBase.open(folder, home, environ=environ, clock=lambda: NOW))
        opened[-1].sync()
        return opened[-1]

    yield open_one
    for kb in opened:
        kb.close()


# -- what each side finds ----------------------------------------------------------------------


def test_the_same_thing_in_other_words_is_found_first(open_with: Open) -> None:
    kb = open_with(FILLER | {"car.md": "Our automobile stands outside."})
    assert found(kb, "vehicle", mode="text") == []
    hit = kb.search("vehicle").hits[0]
    assert (hit.path, hit.parts.bm25) == ("car.md", 0.0)
    assert hit.parts.vector is not None
    assert hit.parts.vector > 0.3


def test_a_word_that_only_one_note_has_is_found_whatever_the_vectors_say(open_with: Open, fake: FakeProvider) -> None:
    notes = FILLER | {"name.md": "Ticket QX-9981 is about gardens, rivers and mountains."}
    kb = open_with(notes)
    hits = kb.search("QX-9981").hits
    assert hits[0].path == "name.md"


def test_keywords_alone_and_meaning_alone_can_each_win() -> None:
    """Of the two weights, .7 and .3, neither side has to give way to a middling match of the other."""
    strong, weak = 1.0, 0.2
    by_words, by_meaning, middling = fuse(RelevanceParts([strong, 0.0, weak], [0.0, strong, weak]), 3, Ranking())
    assert by_meaning > middling
    assert by_words > middling


def test_vectors_change_the_order(open_with: Open) -> None:
    """D-3: of two notes with the same word, the one that also means it comes first."""
    kb = open_with(FILLER | {"a.md": "The lock of the harbour.", "b.md": "The lock of the automobile."})
    query = "lock vehicle"
    assert found(kb, query, mode="text")[0] == "a.md"
    assert found(kb, query)[0] == "b.md"


def test_a_lone_note_scores_above_0(open_with: Open) -> None:
    kb = open_with({"car.md": "Our automobile stands outside."})
    (hit,) = kb.search("vehicle").hits
    assert hit.score > 0


# -- filters, phrases, limits ---------------------------------------------------------------------


@pytest.mark.slow
def test_filters_apply_before_the_cut(open_with: Open) -> None:
    """Two hundred nearer notes without the tag do not crowd out the one that has it."""
    notes = {f"near{number:03}.md": entry(f"automobile number{number}", tags="[other]") for number in range(200)}
    notes |= {f"else{number:03}.md": f"Something{number} else{number} about{number}." for number in range(600)}
    kb = open_with(notes | {"far.md": entry("Some automobile among gardens and lakes.", tags="[wanted]")})
    assert found(kb, "vehicle", tag="wanted") == ["far.md"]
    assert "far.md" not in found(kb, "vehicle", limit=20)


@pytest.mark.parametrize("query", ["vehicle error", "lock retry", "rivers3 vehicle"])
def test_the_first_hits_are_the_same_for_every_limit(query: str, open_with: Open) -> None:
    notes = FILLER | {
        f"car{number}.md": f"The automobile {number} has a fault, and a reattempt{number} is made."
        for number in range(30)
    }
    kb = open_with(notes)
    longest = ids(kb, query, limit=60)
    assert len(longest) >= 12
    for limit in (1, 2, 5, 10, 29, 31):
        assert ids(kb, query, limit=limit) == longest[:limit]


def test_phrases_and_excluded_words_hold_for_meaning_too(open_with: Open) -> None:
    kb = open_with(
        FILLER | {"car.md": "Our automobile stands outside.", "bus.md": "The automobile of the harbour town."}
    )
    assert "bus.md" not in found(kb, "vehicle -harbour")
    assert found(kb, '"harbour town" vehicle') == ["bus.md"]


def test_the_modes(open_with: Open) -> None:
    kb = open_with(FILLER | {"car.md": "Our automobile stands outside."})
    assert kb.search("vehicle rivers3").mode == "hybrid"
    by_vector = kb.search("vehicle rivers3", mode="vector")
    assert by_vector.mode == "vector"
    assert {hit.parts.bm25 for hit in by_vector.hits} == {None}
    by_text = kb.search("vehicle rivers3", mode="text")
    assert (by_text.mode, [hit.path for hit in by_text.hits], by_text.hits[0].parts.vector) == (
        "text",
        ["filler03.md"],
        None,
    )


def test_weights_and_fusion_are_settings(open_with: Open) -> None:
    notes = FILLER | {
        "car.md": "Our automobile stands outside.",
        "word.md": "A vehicle registration office for rivers, seas, lakes, oceans and ponds.",
    }
    assert (
        found(open_with(notes, MEMORY_KB_RANKING_VECTOR_WEIGHT="1", MEMORY_KB_RANKING_TEXT_WEIGHT="0"), "vehicle")[0]
        == "car.md"
    )
    assert (
        found(open_with(notes, MEMORY_KB_RANKING_VECTOR_WEIGHT="0", MEMORY_KB_RANKING_TEXT_WEIGHT="1"), "vehicle")[0]
        == "word.md"
    )
    assert {"car.md", "word.md"} <= set(found(open_with(notes, MEMORY_KB_RANKING_FUSION="rrf"), "vehicle"))


def test_explain_adds_up_both_sides(open_with: Open) -> None:
    kb = open_with(FILLER | {"car.md": "Our automobile stands outside, for a vehicle of gardens."})
    lines = kb.search("vehicle registration", explain=True).hits[0].explanation
    (line,) = [line for line in lines if "nearness in meaning" in line]
    weight, near, rest, words, relevance = map(float, re.findall(r"\d\.\d+", line))
    assert min(weight, near, rest, words) > 0
    assert weight * near + rest * words == pytest.approx(relevance, abs=2e-4)


# -- the scale of the vector side ------------------------------------------------------------------


def compare(cosines: np.ndarray) -> Cosines:
    """Compare a question with vectors that have exactly these cosines with it."""
    rows = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1).astype(np.float32)
    return VectorTable(np.arange(len(cosines)), rows).compare(np.array([1, 0], np.float32))


def score(cosines: np.ndarray) -> np.ndarray:
    return score_nearness(compare(cosines)).scores


COSINES = st.lists(st.floats(-0.25, 0.75, width=32), min_size=3, max_size=300).filter(
    lambda values: max(values) - min(values) > 0.1
)


@given(COSINES, st.sampled_from([(0.6, 0.35), (0.75, 0.15), (0.9, 0.05)]))
def test_models_whose_cosines_lie_high_and_narrow_give_the_same_order(
    values: list[float], lie: tuple[float, float]
) -> None:
    cosines = np.array(values)
    here, there = score(cosines), score(lie[0] + lie[1] * cosines)
    clear = np.abs(cosines[:, None] - cosines[None, :]) > 0.01
    below = (here[:, None] < here[None, :]) & clear
    assert not (below & (there[:, None] > there[None, :] + 1e-4)).any()


def test_in_a_large_vault_the_range_of_the_model_does_not_matter() -> None:
    cosines = np.random.default_rng(7).normal(0.1, 0.08, 3000).clip(-1, 0.9)
    cosines[5] = 0.7
    plain = score(cosines)
    assert plain[5] > 0.5
    assert score(0.75 + 0.15 * cosines) == pytest.approx(plain, abs=0.06)


@given(COSINES)
def test_scores_lie_between_0_and_1_and_keep_the_order(values: list[float]) -> None:
    scores = score(np.array(values))
    assert float(scores.min()) >= 0.0
    assert float(scores.max()) <= 1.0
    order = np.argsort(values)
    assert (np.diff(scores[order]) >= -1e-6).all()


def test_chunks_without_a_vector_are_left_out() -> None:
    near = np.array([0.5, 0.25, 0.125], np.float32)
    nearness = Nearness(np.array([4, 8]), near[:2], np.array([0, 1, 3]), near)
    assert scores_of(nearness, [8, 3, 4, 9]) == {8: [0.25, 0.125], 4: [0.5]}


def test_the_passage_that_means_it_is_returned_of_a_long_note(open_with: Open) -> None:
    other = "\n\n".join(
        f"Paragraph {number} on gardens. " + f"Rivers{number} and mountains. " * 15 for number in range(4)
    )
    kb = open_with(
        FILLER | {"long.md": f"{other}\n\n{'Our automobile stands outside. ' * 14}\n\n{'Lakes and seas. ' * 30}"}
    )
    hit = kb.search("vehicle").hits[0]
    assert (hit.path, "automobile" in hit.text) == ("long.md", True)
    assert len(hit.text) < 1_000


OTHERS = [f"On gardens {number}. " + f"Rivers{number} and mountains. " * 20 for number in range(3)]
CAR = "Our automobile stands outside. " * 14


def test_a_passage_is_as_near_by_itself_as_among_others(open_with: Open) -> None:
    kb = open_with(FILLER | {"alone.md": CAR, "among.md": "\n\n".join([OTHERS[0], CAR, OTHERS[1]])})
    alone, among = kb.search("vehicle", mode="vector").hits[:2]
    assert {alone.path, among.path} == {"alone.md", "among.md"}
    assert among.parts.vector == pytest.approx(alone.parts.vector, abs=0.01)


def test_each_passage_of_a_note_that_means_it_is_found(open_with: Open) -> None:
    kb = open_with(FILLER | {"long.md": "\n\n".join([CAR, OTHERS[0], CAR.replace("outside", "inside"), OTHERS[1]])})
    texts = [hit.text for hit in kb.search("vehicle", mode="vector").hits if "automobile" in hit.text]
    assert ["inside" in text for text in texts].count(True) == 1
    assert len(texts) == 2


def test_a_note_that_says_the_query_as_it_is_comes_before_one_that_means_the_same(open_with: Open) -> None:
    words = "The vehicle is kept in the yard."
    said = f"{OTHERS[0][:300]} {words} {OTHERS[1][:300]}"
    kb = open_with(FILLER | {"said.md": said, "meant.md": "Automobile, automobile, yard kept."})
    assert found(kb, words)[0] == "said.md"


@pytest.mark.parametrize("every", [1, 2, 3, 7, 30])
def test_filters_leave_the_best_of_those_that_pass(open_with: Open, every: int) -> None:
    """However many of the best matches a filter takes out, those it leaves come in their order."""
    kinds = ["fact" if number % every == 0 else "pitfall" for number in range(60)]
    notes = {
        f"{number:02}.md": entry(f"# N{number}\n\n{'otter ' * (60 - number)} and others", id=f"n{number}", kind=kind)
        for number, kind in enumerate(kinds)
    }
    index = open_with(notes, MEMORY_KB_EMBEDDINGS_PROVIDER="none").index.index
    everything = index.match('"otter"', WEIGHTS, Filters(), 100)
    assert [candidate.rank for candidate in everything] == sorted(candidate.rank for candidate in everything)
    assert len(everything) == 60
    passing = {
        candidate.key
        for candidate in index.candidates([candidate.key for candidate in everything], Filters(kinds=("fact",)))
    }
    assert len(passing) == kinds.count("fact")
    for limit in (1, 3, 10, 60):
        expected = [candidate for candidate in everything if candidate.key in passing][:limit]
        assert index.match('"otter"', WEIGHTS, Filters(kinds=("fact",)), limit) == expected


def test_a_long_section_without_vectors_is_found_by_its_words_beside_others_with_vectors(open_with: Open) -> None:
    kb = open_with(FILLER)
    lines = "\n\n".join(f"Plain words of paragraph {number}, which go on for a while. " * 4 for number in range(4))
    write_files(kb.vault.folder, {f"late{number:02}.md": f"{lines}\n\nWombat {number}.\n" for number in range(40)})
    kb.sync(embed=False)
    result = kb.search("wombat 7", sync=False, mode="hybrid")
    assert result.hits[0].path == "late07.md"
    assert "no vector yet" in " ".join(result.degraded)
