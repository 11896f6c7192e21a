"""Questions are known without a question mark, and who asks why and says it tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_kb import KnowledgeBase
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.learning.speech.asking import asks
from memory_kb.learning.speech.capture import read_message
from memory_kb.learning.speech.telling import read_told
from memory_kb.model import Location
from memory_kb.notes.events import Event

if TYPE_CHECKING:
    from conftest import Files

QUESTIONS = [
    "whats the difference between a job and a task",
    "and how do i get rid of the old one",
    "ok so why is the staging cluster still on 1.29",
    "is there a way to see the queue length",
    "can u show me the plan",
    "any idea who owns that bucket",
    "wie geht das nochmal mit dem tunnel",
    "warum ist der build so langsam",
    "pourquoi le cache est vide",
    "cómo se llama la tabla de turnos",
    "por que o deploy parou",
    "hoe kan ik de queue leeg maken",
    "这个字段是什么意思呢",
    "ここは空でいいのかな",
]
STATEMENTS = [
    "what we ship is signed by the vendor",
    "how it works: the treasurer releases the invoice",
    "why are we on 3.9 still, bc torch needs it",
    "which means the export runs twice",
    "do the migration in two steps",
    "have the runner pull the image first",
    "where the customer has no VAT id we use the shop's",
    "was im Ordner gen liegt kommt aus dem Generator",
    "como regla general no se toca la tabla",
]


@pytest.mark.parametrize("said", QUESTIONS)
def test_a_question_needs_no_mark(said: str) -> None:
    assert asks(said)


@pytest.mark.parametrize("said", STATEMENTS)
def test_what_only_begins_like_a_question_is_none(said: str) -> None:
    assert not asks(said)


QUIET = [
    "the wifi in the lab is on the old router, dont write that anywhere",
    "the office is moving to Graz in may, never store it in any file",
    "der Tresor steht im Keller von Haus 2, schreib das bitte nirgends auf",
    "la caja fuerte está en el sótano, no lo escribas en ningún lado",
    "la cassaforte sta in cantina da sempre, ma non scriverlo in giro",
]


@pytest.mark.parametrize("message", QUIET)
def test_what_nobody_may_write_down_is_not_kept(message: str) -> None:
    said = [
        Event(seq=1, session="s", role="user", content="Good morning."),
        Event(seq=2, session="s", role="user", content=message),
    ]
    assert list(find_learnings(said, Location())) == []
    assert read_message(message).capture is None


def test_what_nobody_may_write_down_stands_in_no_note(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase]
) -> None:
    folder = vault({"memory/config.yaml": ""})
    kb = open_kb(folder)
    kb.session_start("s")
    said = [
        Event(role="user", content="Fix the label printer."),
        Event(role="assistant", content="Done."),
        Event(role="user", content=QUIET[0]),
    ]
    kb.session_append(
        [*said, Event(type="tool_call", tool="Bash", call_id="a", args={"command": "make print"})], session="s"
    )
    kb.session_end("s", outcome="success")
    notes = [file.read_text() for file in folder.rglob("*.md")]
    assert any("make print" in note for note in notes)
    assert not any("old router" in note for note in notes)


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("AccessDenied: the role billing of staging may never write to the queue of production", False),
        ("GL_INVALID_VALUE: the old driver in the lab only takes textures of 2048", False),
        ("the old driver in the lab only takes textures of 2048", True),
        ("ok and now the ticket: the old driver in the lab only takes textures of 2048", False),
        ("now our rule: customers in Japan never get updates on fridays, because support is closed", True),
        ("CloudFront: the old pages in our docs are only cached for a day", True),
    ],
)
def test_a_line_of_a_program_and_what_comes_next_tell_nothing(line: str, is_told: bool) -> None:
    assert bool(read_told(line)) == is_told


FEW = "0 and 1 belong to the vision group, we never put anything on those"


@pytest.mark.parametrize(
    ("between", "occasion"),
    [
        ([], "said when the agent had said: `The job needs two cards. Which ones are free?`"),
        ([("tool_call", "python train.py --cards 0,1")], "said when the agent had run `python train.py --cards 0,1`."),
    ],
)
def test_what_says_little_is_kept_with_what_it_was_said_about(between: list[tuple[str, str]], occasion: str) -> None:
    events = [
        Event(seq=1, session="s", role="user", content="start the training with the new config"),
        Event(seq=2, session="s", role="assistant", content="Done. The job needs two cards. Which ones are free?"),
    ]
    for _, command in between:
        events.append(Event(seq=3, session="s", type="tool_call", tool="Bash", call_id="a", args={"command": command}))
        events.append(
            Event(seq=4, session="s", type="tool_result", tool="Bash", call_id="a", ok=True, content="GPU 0\nGPU 1")
        )
    events.append(Event(seq=5, session="s", role="user", content=FEW))
    (offer,) = find_learnings(events, Location())
    assert offer.draft.text == f"{FEW}\n**Context:** {occasion}"
