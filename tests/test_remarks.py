"""What one message says is kept once: all of it, and sentences about one thing together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memory_kb import KnowledgeBase
from memory_kb.learning.intake import Offer, settle
from memory_kb.learning.observation.corrections import Did
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.learning.observation.remarks import read_remarks
from memory_kb.learning.speech.clauses import is_for_now
from memory_kb.model import Location
from memory_kb.notes.events import Event

Open = Callable[..., KnowledgeBase]

SEVERAL = [
    (
        "Always run the linter. Always write a changelog entry too. Never touch dist.",
        ["Always run the linter.", "Always write a changelog entry too.", "Never touch dist."],
    ),
    (
        "remember that the demo tenant is called blue-fox. And never seed tenants from production data.",
        ["the demo tenant is called blue-fox.", "And never seed tenants from production data."],
    ),
    (
        "Fix the footer. Never use inline styles. From now on use the design tokens.",
        ["Never use inline styles.", "From now on use the design tokens."],
    ),
    (
        "always pin actions by hash\nnever use latest tags\nthanks",
        ["always pin actions by hash", "never use latest tags"],
    ),
]

#: A refused command, what was said to it, and what must stand in the one entry.
TOGETHER = [
    ("pip install httpx", "no, we use uv here. `uv add`, never pip", ("we use uv here", "`uv add`, never pip")),
    (
        "npm install left-pad",
        "stop, we use pnpm in this repo. never npm, always `pnpm add`",
        ("we use pnpm", "never npm"),
    ),
    (
        "git push origin main",
        "no. never push to main directly. open a PR to main with `gh pr create`",
        ("never push to main", "gh pr create"),
    ),
    (
        "kubectl apply -f x.yml",
        "no, don't kubectl apply by hand. Always go through argo, never kubectl",
        ("kubectl apply by hand", "argo"),
    ),
]


def offers(*events: Event) -> list[Offer]:
    return [one for one in settle(find_learnings(events, Location())) if one.doubt is None]


def refusal(command: str, said: str) -> tuple[Event, ...]:
    return (
        Event(seq=1, session="s", role="user", content="Go on."),
        Event(seq=2, session="s", type="tool_call", tool="Bash", call_id="a", args={"command": command}),
        Event(
            seq=3,
            session="s",
            type="tool_result",
            call_id="a",
            ok=False,
            content="The user doesn't want to proceed with this tool use.",
        ),
        Event(seq=4, session="s", role="user", content=said),
    )


@pytest.mark.parametrize(("message", "texts"), SEVERAL, ids=[one[0][:30] for one in SEVERAL])
def test_all_that_a_message_says_is_kept(message: str, texts: list[str]) -> None:
    found = offers(Event(seq=5, session="s", role="user", content=message))
    assert [one.draft.text for one in found] == texts
    assert len({one.key for one in found}) == len(texts)


def test_what_the_message_alone_would_give_has_the_key_of_the_message() -> None:
    (first, second) = offers(
        Event(seq=5, session="s", role="user", content="The footer is wrong. Never touch dist. Always run the linter.")
    )
    assert first.key == "capture/s/5"
    assert second.key.startswith("capture/s/5/")


def test_the_keys_of_the_others_do_not_depend_on_their_order() -> None:
    keys = [
        {one.draft.text: one.key for one in offers(Event(seq=5, session="s", role="user", content=text))}
        for text in (
            "Never touch dist. Always run the linter. Never push.",
            "Never touch dist. Never push on fridays. Always run the linter.",
        )
    ]
    assert keys[0]["Always run the linter."] == keys[1]["Always run the linter."]


@pytest.mark.parametrize(("command", "said", "parts"), TOGETHER, ids=[one[0] for one in TOGETHER])
def test_sentences_about_one_thing_are_one_entry(command: str, said: str, parts: tuple[str, ...]) -> None:
    (found,) = offers(*refusal(command, said))
    assert all(part in found.draft.text for part in parts)


def test_a_rule_about_something_else_stays_apart_from_a_refusal() -> None:
    found = offers(
        *refusal(
            "alembic upgrade head", "no, use `make migrate` instead of alembic. Never log the payload of a webhook."
        )
    )
    assert len(found) == 2
    assert any("make migrate" in one.draft.text and "webhook" not in one.draft.text for one in found)


def test_what_is_not_meant_is_not_kept_beside_what_is() -> None:
    said = read_remarks("Suppose we never cached. Always run the linter.", (Did("looked"),))
    assert [one.text for _, one in said.captures] == ["Always run the linter."]


def test_what_is_put_right_is_kept_as_it_is_then() -> None:
    events = [
        Event(seq=1, session="s", role="user", content="Always sort by date here please"),
        Event(seq=2, session="s", role="assistant", content="Ok."),
        Event(seq=3, session="s", role="user", content="no wait, I was wrong, by amount"),
    ]
    assert [one.draft.text for one in offers(*events)] == ["Always sort by amount here please"]


def test_the_end_of_a_session_keeps_each_once(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.session_append([Event(ts="2026-03-01T10:00:00Z", session="s", role="user", content=SEVERAL[0][0])])
    kb.extract("s")
    before = sorted(one.text for one in kb._memories())
    assert len(before) == 3
    assert kb.capture(session="s").run.run is None
    assert sorted(one.text for one in kb._memories()) == before


@pytest.mark.parametrize(
    "message",
    [
        "enlève le cache du coup, il sert à rien et ça fausse nos mesures par rapport au papier",
        "push everything, not the fixtures tho, theyre huge, gitignore em",
        "cool. can u make me a table of the slowest queries per service, not the nightly ones",
        "Open the pull request, assign Piotr, label with team OPS-12",
        "nice! while ur at it raise the minimum node to 22, the fastify docs say its faster",
        "eh never mind, it says 3 replicas so its fine",
        "kannst du noch die tabelle pro standort rausgeben, nicht die vom lager",
        "ya que estás sube minSdk a 26, la documentación dice que va mejor",
    ],
)
def test_what_is_for_the_work_at_hand_is_not_kept(message: str) -> None:
    assert read_remarks(message, ()) == ((), None, None)


@pytest.mark.parametrize(
    ("sentence", "is_it"),
    [
        ("put the migrations into db/migrate, the runner on prod never looks anywhere else", False),
        ("stripe test mode runs on the account of our bookkeeper", False),
        ("can you always squash before merging", False),
        ("remove that flag, it does nothing", True),
        ("could u rename that flag", True),
    ],
)
def test_an_order_that_tells_more_than_its_reason_is_not_for_now(sentence: str, is_it: bool) -> None:
    assert is_for_now(sentence) is is_it


def test_neighbours_that_say_one_thing_are_kept_as_one_and_called_by_what_says_more() -> None:
    message = "utf-16 not utf-8! the label printers in hall 3 only read utf-16, with utf-8 they print boxes. thanks"
    ((mark, found),) = read_remarks(message, ()).captures
    assert (mark, found.text) == ("", message.removesuffix(" thanks"))
    assert found.title.startswith("The label printers in hall 3 only read utf-16")
