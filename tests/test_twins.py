"""A sentence that is said again is found again, however it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_kb import KnowledgeBase
from memory_kb.learning import twins
from memory_kb.learning.remember import Draft
from memory_kb.model import Location

MakeVault = Callable[[Files], Path]
SAID = "Use the retry queue for e-mails of user_name, never port 8081."


@pytest.mark.parametrize(
    "again",
    [
        SAID.upper(),
        SAID.replace(" ", "\n"),
        SAID.replace(",", " –"),
        f"**{SAID}**",
        SAID.replace("e-mails", "e mails"),
        f"- {SAID}",
        SAID.replace("retry", "`retry`"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_another_way_of_writing_is_the_same(folder: Path, open_kb: Callable[..., KnowledgeBase], again: str, is_first: bool) -> None:
    kb = open_kb(folder)
    one, other = (SAID, again) if is_first else (again, SAID)
    assert kb.learn(one).id == kb.learn(other).id


@pytest.mark.parametrize("again", [SAID.replace("never", "always"), SAID.replace("8081", "8082"), SAID.replace("retry ", ""), SAID + " Always."])
def test_another_sentence_is_not(folder: Path, open_kb: Callable[..., KnowledgeBase], again: str) -> None:
    kb = open_kb(folder)
    assert kb.learn(SAID).id != kb.learn(again).id


WORDS = st.lists(st.sampled_from(["use", "retry", "Queue", "mails", "user_name", "don't", "port", "8081", "naïve", "for", "re-run", "x"]), min_size=1)


@given(WORDS)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_asking_for_shared_words_loses_no_twin(folder: Path, home: Path, words: list[str]) -> None:
    text = " ".join(words)
    with pytest.MonkeyPatch.context() as patch, KnowledgeBase.open(folder, home, environ={}) as kb:
        first = kb.learn(text)
        found = kb._reading(lambda index: twins.find_twin(index, Draft(text), Location()))
        assert found is not None
        assert found.entry.entry_id == first.id
        patch.setattr(twins, "_shared_words", lambda _: None)
        assert found == kb._reading(lambda index: twins.find_twin(index, Draft(text), Location()))
