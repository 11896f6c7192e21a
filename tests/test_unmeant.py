"""What is only supposed, and what is mockery, is neither a correction nor a decision nor a lesson."""

from __future__ import annotations

import pytest

from memory_kb.learning.episodic.sayings import read_person
from memory_kb.learning.observation.corrections import Did, find_correction
from memory_kb.learning.observation.statements import find_decisions, said_by_person
from memory_kb.learning.speech.unmeant import meant

DID = (Did("edited", "src/api.ts", 3),)

SUPPOSED = [
    "Let's say we chose Postgres over Mongo because of transactions.",
    "say we decided to use gRPC instead of REST because of streaming, what then",
    "Suppose we always deployed from the release branch.",
    "Supposing that we never cached anything, how slow would it be",
    "Assume we went with Redis instead of Memcached because of persistence.",
    "assuming for a moment that we never delete rows, how big does the table get",
    "Imagine we always shipped the debug build.",
    "What if we decided to use Deno instead of Node because of permissions.",
    "If we went with event sourcing we must never edit an event.",
    "If we pick plan B we should always lock the row, but I prefer plan A.",
    "if I were you I'd never touch the schema",
    "Hypothetically we could decide to use Rust instead of Go because of latency.",
    "Would it be better to always use ULIDs for the keys",
    "In theory we should never block the event loop, right",
    "Just for the sake of argument: we always run two replicas.",
    "if we ever moved to Azure we should never use the storage emulator",
    "Let's pretend we decided on Svelte instead of React because of size.",
    "thought experiment: never retry on the client",
    "angenommen wir nehmen Kafka statt Rabbit, weil die Reihenfolge zählt",
    "supposons qu'on utilise toujours des UUID",
    "imagina que siempre desplegamos los viernes",
    "Let's assume they decided on Vue instead of Angular because of the docs.",
    "Suppose you never got a webhook; how long do we wait",
    "what would happen if we always used the replica",
    "If they chose MySQL over Postgres because of hosting, fine, whatever.",
    "Let us say we never allow nulls. Does the importer break then?",
    "Say the client always sends two requests.",
    "I wonder whether we should always use cursors in this repo",
    "Could we always run it in docker in this project",
    "imagine if we never merged on red",
    "if we decided to drop IE11 we'd never need the polyfills",
    "gesetzt den Fall wir deployen immer freitags",
    "mettons qu'on ne supprime jamais rien",
]
MOCKING = [
    "yeah right, let's always commit the node_modules folder, great plan.",
    "Oh sure, always disable the type checker, who needs safety.",
    "let's never write docs, that went so well last time",
    "wow, never seen such a clean diff. let's always rename everything while we're at it",
    "Because obviously we should always swallow every exception. Genius.",
    "oh great, never test anything, what could go wrong",
    "Brilliant. Always put secrets into the repo, why not.",
    "nice, let's always use eval in this codebase then, security is overrated",
    "always force-push to main, said no one ever",
    "Fantastic, let's never run the tests again. They only get in the way, right?",
    "sure, because we always wanted global state in this repo. slow clap",
    "sure let's never use types again /s",
    "oh wonderful, let's always mock everything, tests are for losers anyway",
    "sure sure, never read the docs, that's how pros do it",
    "great job, always break main on fridays, love it",
    "Let's never use indexes, the database loves full scans.  Bravo.",
    "why not always copy the whole file while you're at it",
    "yes of course, always hardcode the password, nobody will ever find it 🙄",
    "clearly we should never validate input. because users are so trustworthy",
    "congrats, let's always delete failing tests in this repo, problem solved",
]
MEANT = [
    "Great, let's always use UTC from now on.",
    "Sure, never edit the generated client by hand.",
    "ok, let's use zod for validation, because ajv's types are a mess",
    "If we add a migration, always run make schema.",
    "if we ever need a queue, use the existing SQS one, never a new one",
    "I'd say we use Kafka instead of NATS because replay matters.",
    "Never assume the clock is in UTC in this codebase.",
    "Assume nothing about the order of keys, always sort them.",
    "We decided to use Kafka instead of Rabbit because of the ordering.",
    "When you change the schema, always regenerate the client.",
    "We would break the mobile app, so never rename a field in `api.proto`.",
    "Nice work. Always put new handlers into src/handlers.",
    "No, we always return a Result in this codebase, what would be thrown is lost.",
    "Always check what happens if the token is expired.",
    "Right, and never log the payload in production.",
    "wow that was fast. next time always run the linter first",
    "Never ever suppose that the cache is warm in tests of this repo.",
    "Oh, and always say why in the commit message in this repo.",
    "What would help: always run the seed script before the e2e tests.",
    "let's say 30 seconds for the timeout, and never more in this repo",
    "Say 'merchant', never 'vendor' in this codebase.",
    "Of course, always escape the input in templates.",
    "If a test is flaky never retry it in this repo.",
    "Love it. From now on always add a screenshot to the PR.",
    "we should never use index as key in this codebase",
    "great. let's go with SQS because nobody wants to run brokers",
    "I suppose so. Always use the v2 client in this repo.",
    "Clearly documented in the ADR: we never call billing directly.",
    "never again merge without a review in this repo",
    "use `fmt`, if you go with println the linter complains, never println",
]


def kept(message: str) -> list[object]:
    """Return all that would be learned of a message that follows an edit."""
    said = said_by_person(message)
    found = [find_correction(message, DID), *find_decisions(said, is_person=True), *read_person(message).lessons]
    return [one for one in found if one]


@pytest.mark.parametrize("message", SUPPOSED)
def test_what_is_only_supposed_teaches_nothing(message: str) -> None:
    assert kept(message) == []


@pytest.mark.parametrize("message", MOCKING)
def test_mockery_teaches_nothing(message: str) -> None:
    assert kept(message) == []


@pytest.mark.parametrize("message", MEANT)
def test_what_is_meant_stays(message: str) -> None:
    said = said_by_person(message)
    assert meant(said) == said


def test_what_follows_from_a_supposition_is_supposed_too() -> None:
    assert meant(
        ("Imagine we moved to Mongo.", "Then we'd never use transactions.", "Anyway, always pin the driver.")
    ) == ("Anyway, always pin the driver.",)


def test_the_sentence_beside_mockery_is_not_meant_either() -> None:
    assert meant(("Let's always use any.", "Brilliant idea.", "Now fix the build.")) == ("Now fix the build.",)
