"""What a person states with an explicit marker is kept; questions, complaints, orders for now and text of tools are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_kb import KnowledgeBase
from memory_kb.store.session_events import Event

if TYPE_CHECKING:
    from conftest import Files

Open = Callable[..., KnowledgeBase]

KEPT = [
    ("thanks! can you also remember that the CI runner has no Docker?", "fact", "The CI runner has no Docker"),
    ("btw we only deploy on Tuesdays, never push to main", "policy", "We only deploy on Tuesdays, never push to main"),
    ("I told you already, we never mock the database", "policy", "We never mock the database"),
    ("From now on, sign all release commits.", "policy", "Sign all release commits."),
    ("No, we use pnpm, not npm. Fix the login.", "preference", "We use pnpm, not npm."),
    ("I told you already, we don't mock the database", "policy", "We don't mock the database"),
    ("btw we deploy only on Tuesdays, fix the login", "policy", "We deploy only on Tuesdays, fix the login"),
    ("We use Jest for unit tests.", "preference", "We use Jest for unit tests."),
    ("We switched from pnpm to bun.", "preference", "We switched from pnpm to bun."),
    ("Please keep in mind that staging runs Postgres 15.", "fact", "Staging runs Postgres 15."),
    ("I prefer small commits with one thought each.", "preference", "I prefer small commits with one thought each."),
    ("Danke! Ab jetzt alle Preise in Cent speichern.", "policy", "Alle Preise in Cent speichern."),
    ("Désormais, écris les tests en français.", "policy", "Écris les tests en français."),
    ("Toujours écrire les tests en français.", "policy", "Toujours écrire les tests en français."),
    ("Nie direkt in den Hauptzweig pushen.", "policy", "Nie direkt in den Hauptzweig pushen."),
    ("Verwende nie npm, sondern pnpm.", "policy", "Verwende nie npm, sondern pnpm."),
    ("今後は必ずテストを先に書いてください。", "policy", "必ずテストを先に書いてください。"),
    ("以后提交信息一律用英文写,不要用中文写提交信息。", "policy", "提交信息一律用英文写,不要用中文写提交信息。"),
    ("С этого момента пиши комментарии на английском.", "policy", "Пиши комментарии на английском."),
    ("Recuerda que los tests usan Postgres 15.", "fact", "Los tests usan Postgres 15."),
    ("give me commands with uv run, from now on", "policy", "Give me commands with uv run."),
    ("recuerda que user_files tiene RLS en todo.", "fact", "user_files tiene RLS en todo."),
    ("Fix the login, and remember that the CI has no Docker.", "fact", "The CI has no Docker."),
    ("We should never run in mock mode in production.", "policy", "We should never run in mock mode in production."),
    ("I'd like all branch names to start with 'wip/'.", "policy", "I'd like all branch names to start with 'wip/'."),
    ("no, never `bun link` a session version", "policy", "Never `bun link` a session version"),
    ("Next time, tell me first if the task exists already.", "policy", "Tell me first if the task exists already."),
    (
        "Always keep secrets in the vault and never log them.",
        "policy",
        "Always keep secrets in the vault and never log them.",
    ),
]
PASSED = [
    "Should we always use zod for validation?",
    "You never listen to what I say here.",
    "Never mind, that was the wrong branch.",
    "I never said that we should drop the table.",
    "For now always restart the server after a change.",
    "Do anything you like with the old scripts, always.",
    "Use a map here, the list is too slow.",
    "> Always use tabs in this file.\nWhat do you think of it?",
    "```\nAlways use tabs in this file.\n```\nFix the login now.",
    "<task-notification>Always use tabs in this file.</task-notification>",
    "Remember that the password is hunter2x9! for the admin.",
    "Remember, we are all here to help each other grow.",
    "In the future, I'd like to add authentication to the agent.",
    "From now on, please include them consistently.",
    "Moving forward, I'd like to discuss your goals.",
    "From now on I am just testing what you have done.",
    "We don't need a shadow at the top of the page.",
    "We dont add that to the db, skip it.",
    "Going forward, be consistent with that convention.",
    "Some more changes are required:\n- The footer is too high.",
    "I want to discuss a few things with you going forward.",
    "Make sure all the tests in this folder pass.",
    "Start the server with npm and open the page.",
    "Think about the rule so that you always do this going forward.",
    "The task list should always use that normal format.",
    "Next time I'll watch more closely what you are doing.",
    "Toujours rien dans l'application, regarde encore.",
    "On a toujours le même problème avec la carte.",
    "Nie potrzebujemy wsparcia wielu języków.",
    "Ale nie wiem, gdzie to jest.",
    "Zdjęcie nie wyświetla się na stronie.",
    "Dorénavant tu peux indiquer ça dans le fichier de notes.",
    "Immer noch derselbe Fehler beim Start des Servers.",
    "Seen in the browser (index):1 Uncaught TypeError: no such module. Paths must start with a slash.",
]


def test_a_marked_sentence_is_kept_without_its_lead_in(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for said, kind, text in KEPT:
        (kept,) = kb.capture(said, session="s").kept
        assert (kept.action, kept.kind, kept.text, kept.source) == ("created", kind, text, "user_explicit")


def test_what_is_not_stated_is_not_kept(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for said in PASSED:
        assert kb.capture(said, session="s").kept == (), said


def test_what_the_agent_said_first_is_nobodys_statement(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    plan = "Always use four slashes for absolute paths."
    kb.sessions.append(
        [Event(role="assistant", content=f"I suggest: {plan}"), Event(role="user", content=plan)], session="s"
    )
    assert kb.capture(session="s").kept == ()


@pytest.mark.parametrize(
    "said",
    [
        "By default the whole amount is selected.",
        "Use a table instead of a list.",
        "Always show all the options there are.",
    ],
)
def test_what_may_describe_the_product_waits_for_review(said: str, folder: Path, open_kb: Open) -> None:
    (kept,) = open_kb(folder).capture(said, session="s").kept
    assert (kept.path or "").startswith("memory/review/")


def test_a_newer_statement_supersedes_the_older_one(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    (old,) = kb.capture("Always start function names with 'f_'.", session="a").kept
    (new,) = kb.capture("From now on, start all function names with 'fn_'.", session="b").kept
    assert [hit.id for hit in kb.search("start function names").hits] == [new.id]
    replaced = kb.show(old.id or "").metadata
    assert replaced["status"] == "retired"
    assert {"to": new.id, "relation": "superseded_by"} in replaced["links"]


@pytest.mark.parametrize(
    ("older", "newer", "is_replaced"),
    [
        ("We use pnpm, not npm.", "We use pnpm, not yarn.", False),
        ("We use tabs in Go files, not spaces.", "We use spaces, not tabs.", False),
        ("Never use mocks in tests.", "We use stubs in tests, not mocks.", False),
        ("Always add docstrings to functions.", "From now on, never add docstrings to functions.", True),
        ("Never force push in this repository.", "Always force push in this repository on my own branches.", False),
    ],
)
def test_what_a_newer_statement_denies_is_superseded(
    older: str, newer: str, is_replaced: bool, folder: Path, open_kb: Open
) -> None:
    kb = open_kb(folder)
    (old,) = kb.capture(older, session="a").kept
    kb.capture(newer, session="b")
    assert (kb.show(old.id or "").metadata.get("status") == "retired") is is_replaced


@pytest.mark.parametrize(
    "said",
    [
        "Required: every pull request has a changelog entry.",
        "Must run the migrations before the deploy.",
        "The legacy API returns not JSON but XML.",
    ],
)
def test_a_bare_must_is_proposed(said: str, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    (one,) = kb.capture(said, session="a").kept
    assert kb.show(one.id or "").metadata["status"] == "proposed"


CHANGES = [
    "Always start function names with 'a_'.",
    "For function names, please start them with 'b_' from now on.",
    "Start function argument names with 'x_'.",
    "From now on, start function names with 'a_' again.",
]


@pytest.mark.parametrize("is_one_session", [True, False])
def test_of_a_rule_that_was_changed_only_the_newest_is_left(is_one_session: bool, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for number, said in enumerate([CHANGES] if is_one_session else [[one] for one in CHANGES]):
        kb.capture(said, session=f"s{number}")
    hits = kb.search("start function names").hits
    assert {hit.text.strip() for hit in hits} == {
        "Start function names with 'a_' again.",
        "Start function argument names with 'x_'.",
    }


def test_bare_constraints_wait_for_review(folder: Path, open_kb: Open) -> None:
    (kept,) = open_kb(folder).capture("All commits must be signed by a maintainer.", session="s").kept
    assert (kept.path or "").startswith("memory/review/")


@pytest.mark.parametrize(("chosen", "where"), [("keep", "learnings"), ("propose", "review"), ("off", None)])
def test_capture_at_the_end_of_a_session_follows_the_setting(
    chosen: str, where: str | None, folder: Path, open_kb: Open
) -> None:
    (folder / "memory/config.yaml").write_text(f"learning: {{capture: '{chosen}'}}\n", encoding="utf-8")
    kb = open_kb(folder)
    kb.sessions.append([Event(role="user", content="From now on, sign all release commits.")], session="s")
    kb.sessions.end("s", outcome="success")
    found = [file.parent.name for file in (folder / "memory").rglob("sign-all*.md")]
    assert found == ([where] if where else [])


def run(call: str, command: str, output: str, *, ok: bool) -> list[Event]:
    return [
        Event(type="tool_call", tool="Bash", call_id=call, args={"command": command}),
        Event(type="tool_result", tool="Bash", call_id=call, content=output, ok=ok),
    ]


def edit(call: str, file: str) -> list[Event]:
    return [
        Event(
            type="tool_call", tool="Edit", call_id=call, args={"file_path": file, "old_string": "a", "new_string": "b"}
        ),
        Event(type="tool_result", tool="Edit", call_id=call, content="done", ok=True),
    ]


FAILED = run("1", "npm ci", "npm error code ERESOLVE could not resolve", ok=False)
WORKED = run("2", "npm ci --legacy-peer-deps", "added 9 packages", ok=True)


@pytest.mark.parametrize(
    ("events", "count"),
    [
        ([*FAILED, *WORKED], 1),
        ([*FAILED, *edit("e", "package.json"), *WORKED], 0),
        ([*FAILED, *run("i", "npm install left-pad", "added 1", ok=True), *WORKED], 0),
        (
            [
                *run("1", "git push", "error: failed to push some refs", ok=False),
                *run("2", "git push --force", "ok", ok=True),
            ],
            0,
        ),
        ([*run("1", "npm ci", "Request interrupted by user", ok=False), *WORKED], 0),
    ],
    ids=["retry", "edit between", "install between", "force", "interrupt"],
)
def test_a_small_change_that_made_a_command_work_is_proposed(
    events: list[Event], count: int, folder: Path, open_kb: Open
) -> None:
    kb = open_kb(folder)
    for session in ("a", "b"):
        kb.sessions.append([Event(role="user", content="Set it up."), *events], session=session)
        kb.sessions.end(session, outcome="success")
    proposals = kb.list(status=["proposed"])
    assert len(proposals) == count
    for one in proposals:
        text = kb.show(one.id).text or ""
        assert "`npm ci` fails with" in text
        assert "reinforcement_count: 1" in text


def test_a_change_that_was_reverted_on_request_is_proposed(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    events = [
        Event(role="user", content="Make the config nested."),
        *edit("e", "config.py"),
        Event(role="user", content="Please revert that, the config must stay flat."),
        *run("r", "git checkout config.py", "Updated 1 path", ok=True),
    ]
    kb.sessions.append(events, session="s")
    kb.sessions.end("s", outcome="success")
    texts = [kb.show(one.id).text or "" for one in kb.list(status=["proposed"])]
    assert any("`config.py` was reverted on request: “Please revert that" in text for text in texts)


@pytest.mark.parametrize(
    ("text", "count"), [("The suite needs Redis on port 6380.", 1), ("Invoices are sent by the treasurer.", 0)]
)
@pytest.mark.parametrize("has_changed", [True, False])
def test_only_what_a_session_used_is_reinforced(
    text: str, count: int, has_changed: bool, folder: Path, open_kb: Open
) -> None:
    kb = open_kb(folder)
    learned = kb.learn(text)
    kb.sessions.start("s")
    events = [*run("1", "docker start redis", "ok", ok=True), Event(role="assistant", content="The suite needs Redis.")]
    kb.sessions.append([*events, *(edit("e", "a.py") if has_changed else [])], session="s")
    kb.context("suite Redis treasurer invoices", session="s")
    kb.sessions.end("s", outcome="success")
    found = kb.show(learned.id).metadata["reinforcement_count"]
    assert found == (count if has_changed else 0)


@pytest.mark.parametrize("has_changed", [True, False])
@pytest.mark.parametrize("is_shown", [True, False])
def test_a_fact_that_an_outcome_names_as_used_is_reinforced(
    is_shown: bool, has_changed: bool, folder: Path, open_kb: Open
) -> None:
    kb = open_kb(folder)
    named, other = kb.learn("Invoices are sent by the treasurer."), kb.learn("Receipts are kept by the janitor.")
    kb.sessions.start("s", agent="coder")
    kb.sessions.append(edit("e", "a.py") if has_changed else [Event(role="user", content="Look.")], session="s")
    question = "who sends invoices and keeps receipts" if is_shown else "janitor"
    kb.context(question, agent="coder", task_id="t1", session="s")
    kb.outcome("coder", "t1", "success", used=[named.id], session="s")
    for _ in range(2):
        kb.sessions.end("s", outcome="success")
    counts = [kb.show(one.id).metadata["reinforcement_count"] for one in (named, other)]
    assert counts == [int(has_changed), 0]


@pytest.mark.parametrize(
    ("said", "count"),
    [
        (("From now on, run the migrations before the suite.", "From now on, run all migrations before the suite."), 1),
        (("I decided to run the migrations before the suite.",) * 2, 0),
    ],
    ids=["stated", "said by the agent"],
)
def test_without_a_model_a_pattern_comes_of_what_was_stated_in_two_episodes(
    said: tuple[str, str], count: int, folder: Path, open_kb: Open
) -> None:
    kb = open_kb(folder)
    counts = []
    for session, text in zip("ab", said, strict=True):
        role = "user" if count else "assistant"
        events = [Event(role="user", content="Set up the shop."), Event(role=role, content=text), *edit("e", "a.py")]
        kb.sessions.append(events, session=session)
        kb.sessions.end(session, outcome="success")
        kb.consolidate()
        counts.append(sum("migrations" in (kb.show(one.id).text or "") for one in kb.list(kind="rule")))
    assert counts == [0, count]


WISH = "By the way, I prefer small commits with one thought each."


def test_a_wish_of_three_sessions_is_one_entry(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase]
) -> None:
    folder = vault({"memory/config.yaml": ""})
    kb = open_kb(folder)
    for session in ("s1", "s2", "s3"):
        kb.sessions.start(session)
        events = [
            Event(role="user", content=f"Fix the failing card test. {WISH}"),
            Event(type="tool_call", tool="Bash", call_id="a", args={"command": "npm test"}),
            Event(type="tool_result", call_id="a", ok=False, content="Error: Cannot find module 'jest'"),
            Event(
                type="tool_call",
                tool="Edit",
                call_id="b",
                args={"file_path": "tests/card.test.ts", "old_string": "a", "new_string": "b"},
            ),
            Event(type="tool_result", call_id="b", ok=True, content="done"),
        ]
        kb.sessions.append(events, session=session)
        kb.sessions.end(session, outcome="success")
    entries = [memory for memory in kb.list() if memory.kind != "episode"]
    assert [memory.kind for memory in entries] == ["preference"]
    assert "I prefer small commits with one thought each." in (text := (folder / entries[0].path).read_text())
    assert "reinforcement_count: 2" in text


FACT = "the office printer in hall 3 only reads utf-16 since may"
