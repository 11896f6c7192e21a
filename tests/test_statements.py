"""What people and agents state is kept: how things are, what was decided, and for which cause."""

from __future__ import annotations

import pytest
from observing import learned

from memory_kb.learning.observation.statements import find_cause, find_decisions, said_by_agent, said_by_person

EDIT = ("E", "src/app.py", "x = 1")


@pytest.mark.parametrize(
    "said",
    [
        "Phone numbers are always stored as E.164 in our db, the dialer chokes on anything else",
        "every experiment needs a fixed seed and has to write the git hash next to its results, reviewers ask for that",
        "the gpu box is called turing now, not lovelace",
        "two things: legacy/ is frozen, nobody changes it. And amounts are Money objects",
        "connection strings and such go through external-secrets, not into values",
        "hosts are named role-region-number here, so redis-fra-01",
        "Everything with salary data has to stay in eu-north-1, that's in the contract",
        "structlog please, like in every other module",
        "the warehouse api always gives weight in grams, our database has kg",
        "error codes are never reused, clients have them hardcoded",
        "no malloc and no logging in interrupt handlers, the watchdog resets the board",
        "don't round. amounts are integer cents everywhere, in src/sum.ts too",
        "you branched from main. we branch off develop, main is only what is deployed",
        "our runners have no gpu. tests that need one are marked @pytest.mark.gpu and only run nightly",
        "no, not on the total. the tax office wants it rounded per line, and every INV is done that way",
    ],
)
def test_how_things_are_is_kept(said: str) -> None:
    offers = learned(("U", "Please go on with it."), EDIT, ("U", said))
    assert ("preference", "observations") in [
        (one.draft.kind, dict(one.draft.fields)["extraction_scope"]) for one in offers
    ]
    assert all(one.reason.startswith(("Said as", "Told like")) for one in learned(("U", said)))


@pytest.mark.parametrize(
    "said",
    [
        "every test is green now, nice",
        "the tests are always slow on my laptop",
        "each row should get a checkbox",
        "nobody uses this file anymore, delete it",
        "the config is never read, is it?",
        "you can not do that, the field is missing in the answer",
        "the numbers are always different when I run it",
        "all prices in the table should be bold",
        "everything in the list must be sorted by date",
        "the client is only called once per request",
        "each record gets a new id, why",
        "you may not need the client anymore",
        "we may only have three servers next year",
        "emails go to spam, not to the inbox",
        "our build is broken because nobody merges",
        "the screen is frozen after login",
        "each test needs 10 seconds on ci",
        "the server only sends half of the data",
        "the docstring is only half true now",
        "we need the button to always be visible on mobile",
        "users should never have to scroll for it",
        "like in every other project I had, nobody reads the docs",
    ],
)
def test_how_one_thing_fares_is_not_kept(said: str) -> None:
    assert learned(("U", "Please go on with it."), EDIT, ("U", said)) == []


def test_a_decision_that_the_person_takes_back_is_none() -> None:
    chosen = ("U", "Let's go with a limit per IP instead of one per user because that is simple.")
    assert [offer.draft.kind for offer in learned(chosen, EDIT)] == ["decision"]
    assert learned(chosen, EDIT, ("U", "Scrap that, per IP would block whole companies.")) == []


DECISIONS = (
    "Let's go with Postgres instead of MySQL because we need JSONB indexes.",
    "We decided to keep the monolith, since splitting it would cost us the transaction.",
    "ok we'll use Temporal rather than cron because retries are built in.",
    "Decision: we store timestamps as UTC integers, because SQLite has no time type.",
    "let's use zod for validation since it's already a dependency",
    "We went with server-sent events, not websockets, because the proxy drops upgrades.",
)
NO_DECISIONS = (
    "Let's go with option 2 because it is simpler.",
    "Let's use it because it works.",
    "I think we should use Redis because it is fast?",
    "Let's keep going because I have time.",
    "We use Postgres.",
    "Let's use the second approach since it's cleaner",
    "let's go with blue instead of green because it looks nicer",
    "We decided to meet on Friday because of the holiday.",
    "> We decided to use yarn instead of npm because it is faster.",
)
OF_AGENTS = (
    "I chose `BTreeMap` over `HashMap` because the output has to be sorted.",
    "**Decision:** we'll use advisory locks instead of a lock table because they are released when the connection drops.",
    "I went with a partial index instead of a full one since 95 % of rows are archived.",
)
NOT_OF_AGENTS = (
    "I'll use grep instead of find because it is faster.",
    "I decided to run the tests first because they are quick.",
    "I've decided to fix the import instead of the test because the test is right.",
    "I picked this approach over the other because it is simpler.",
    "I decided to skip the flaky test rather than fix it because it is unrelated.",
    "I've chosen to keep the changes minimal rather than refactor because you asked for a fix.",
    "The page says we decided to use the quick installer instead of the package because it is faster.",
)


@pytest.mark.parametrize("text", DECISIONS)
def test_decisions_of_people_are_kept(text: str) -> None:
    assert [one.sentence for one in find_decisions(said_by_person(text), is_person=True)] == [text]


@pytest.mark.parametrize("text", NO_DECISIONS)
def test_what_only_sounds_like_a_decision_is_not(text: str) -> None:
    assert list(find_decisions(said_by_person(text), is_person=True)) == []


@pytest.mark.parametrize("text", OF_AGENTS)
def test_decisions_of_agents_are_kept(text: str) -> None:
    assert len(list(find_decisions(said_by_agent(text), is_person=False))) == 1


@pytest.mark.parametrize("text", NOT_OF_AGENTS)
def test_what_an_agent_does_next_is_no_decision(text: str) -> None:
    assert list(find_decisions(said_by_agent(text), is_person=False)) == []


def test_a_decision_that_the_person_turns_down_is_dropped() -> None:
    decided = ("A", "I chose `BTreeMap` over `HashMap` because the output has to be sorted.")
    assert len(learned(decided, ("U", "fine"))) == 1
    assert learned(decided, ("U", "No, sort it when it is printed.")) == []


@pytest.mark.parametrize(
    "text",
    [
        "It is probably because of the cache.",
        "Is it because of `jest`?",
        "This is because I renamed the module before.",
    ],
)
def test_a_guess_is_no_cause(text: str) -> None:
    assert find_cause(said_by_agent(text)) is None
