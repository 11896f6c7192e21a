"""A decision is heard with its reason in the next sentence, said in passing, or as a verdict on what else there was."""

from __future__ import annotations

import pytest

from memory_kb.learning.observation.drafts import from_decision
from memory_kb.learning.observation.statements import find_decisions, said_by_person

#: A message, and what must stand in its decision and the reason of it.
DECIDED = [
    ("ok let's go with RabbitMQ. NATS would be faster but nobody here has ever run it", ("RabbitMQ", "nobody here")),
    (
        "let's use Vite then. webpack is way too slow for this and we only have one entry point",
        ("Vite", "one entry point"),
    ),
    ("Then we'll use Postgres. We already run it and the team knows it.", ("Postgres", "already run it")),
    (
        "let's stick with Celery. Temporal would be nicer, but it is one more cluster to patch",
        ("Celery", "one more cluster"),
    ),
    ("we decided on Terraform. Pulumi needs everybody to learn it first", ("Terraform", "Pulumi")),
    ("I'd go with SQLite here since there is only ever one writer", ("SQLite", "one writer")),
    ("ok S3 it is, because the CDN reads from there anyway", ("S3", "CDN")),
    ("a full ORM is overkill, plain SQL is fine, we have five queries", ("ORM", "five queries")),
    ("I think Kubernetes is too much for us, ECS is enough, there are two containers", ("ECS", "two containers")),
    ("GraphQL is more than we need. REST is fine, the app has three screens.", ("REST", "three screens")),
    (
        "we don't need a FIFO queue, a standard one is fine since the consumers are idempotent",
        ("standard", "idempotent"),
    ),
    ("going with cursor pagination, offsets get slow beyond a million rows", ("cursor", "offsets")),
    ("let's go for MapLibre instead of Mapbox. The licence of Mapbox costs 500 a month.", ("MapLibre", "500 a month")),
    ("alright let's go with gRPC. plain HTTP would do but we need streaming both ways", ("streaming",)),
    ("we're going with Fastify. Express is hardly maintained any more", ("Express",)),
    ("Redis Streams is overkill for that, a cron job is plenty, it runs twice a day", ("cron",)),
    ("ok then Tailwind it is. nobody on the team likes writing BEM", ("BEM",)),
    ("I prefer to go with OpenTelemetry since all our vendors read it", ("vendors",)),
    ("let's standardize on pnpm. yarn breaks with our workspaces", ("yarn",)),
]
NOT_DECIDED = [
    "let's go with RabbitMQ. Write the adapter first.",
    "let's go with it. NATS would be faster but nobody has run it",
    "ok let's go with RabbitMQ. what would NATS give us?",
    "let's start. Kafka would be too much but whatever",
    "let's go with blue. green looks too much like a warning",
    "the tooltip is overkill, the label is fine",
    "that is overkill, this is fine, thanks",
    "I think the test is fine, the fixture is too big",
    "is a full ORM overkill, or is plain SQL fine?",
    "maybe Kubernetes is too much, perhaps ECS is enough, not sure",
    "let's go to lunch. Pizza is fine.",
    "we'll use the second option. It is simpler.",
    "Suppose we decided on Terraform. Pulumi needs everybody to learn it first",
    "let's use the staging database for now. prod is locked",
    "I'd go with you. The meeting is at ten.",
    "going with the flow here, nothing to decide",
    "let's go with the flow. It'll be fine",
    "let's use your branch. mine is broken",
    "we'll go with dinner at six. seven is too late",
    "the padding is too much, 4px is fine, it's a badge",
    "let's keep going. the next one is easy",
    "ok let's go with that then. thanks, great work",
    "your answer is more than I need, two lines are enough",
    "we'll use this one for the demo today. the other is broken",
    "a loop is fine here, the list is short",
    "let's go with RabbitMQ. Did you see my message?",
]
TITLES = [
    (
        "we decided against GraphQL for the public API last week, by the way, since the mobile apps cache by URL.",
        "We decided against GraphQL for the public API, since the mobile apps cache by URL",
    ),
    (
        "btw yesterday we agreed on Vitest for all new packages because jest is slow.",
        "We agreed on Vitest for all new packages because jest is slow",
    ),
    ("ok, so let's go with UUIDv7 for all new tables.", "Let's go with UUIDv7 for all new tables"),
]


def decided(message: str) -> list[str]:
    return [one.words for one in find_decisions(said_by_person(message), is_person=True)]


@pytest.mark.parametrize(("message", "parts"), DECIDED, ids=[one[0][:40] for one in DECIDED])
def test_a_decision_is_kept_with_its_reason(message: str, parts: tuple[str, ...]) -> None:
    (found,) = decided(message)
    assert all(part in found for part in parts)


@pytest.mark.parametrize("message", NOT_DECIDED)
def test_a_choice_of_the_moment_is_no_decision(message: str) -> None:
    assert decided(message) == []


def test_what_follows_from_a_decision_stands_with_it() -> None:
    (found,) = decided(
        "yes. we decided against GraphQL for the public API, since the mobile apps cache by URL. so REST it stays"
    )
    assert "so REST it stays" in found


@pytest.mark.parametrize(("sentence", "title"), TITLES)
def test_a_title_leaves_out_what_is_said_in_passing(sentence: str, title: str) -> None:
    (found,) = find_decisions((sentence,), is_person=True)
    made = from_decision(found, 1, "the user", None)
    assert made.title == title
    assert dict(made.lines)["Decision"] == sentence


@pytest.mark.parametrize(
    "said",
    [
        "Two options: keep the index per shard sorted by time and walk both, or cap the shard size at which we try to merge.",
        "Clock skew is what changes it: the sync compares the time with a threshold, so one second decides whether a row is dropped.",
    ],
)
def test_what_an_agent_offers_or_finds_is_no_decision(said: str) -> None:
    assert list(find_decisions((said,), is_person=False, answered="the shards get too big")) == []


AGREED = "uploads over 2 GB go through the worker, since the proxy cuts them off."


@pytest.mark.parametrize(
    ("answered", "said", "is_decision"),
    [
        ("the proxy cuts them off over 2 gb", f"Agreed: {AGREED}", True),
        ("does the proxy cut them off? over 2 gb that is", f"Agreed: {AGREED}", False),
        ("and what is better, uploads through the worker or not", AGREED, False),
        ("the proxy cuts them off over 2 gb", f"Right, I keep the {AGREED}", False),
    ],
)
def test_an_answer_or_a_plan_of_the_agent_is_no_agreement(answered: str, said: str, is_decision: bool) -> None:
    assert [one.sentence for one in find_decisions((said,), is_person=False, answered=answered)] == [
        AGREED
    ] * is_decision
