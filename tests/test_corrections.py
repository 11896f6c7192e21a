"""What a person objects to is kept where it holds from now on, and not where it is a wish for this once."""

from __future__ import annotations

import pytest
from conftest import NOW
from observing import learned, session

from memory_kb.learning.observation.corrections import Did, find_correction
from memory_kb.learning.speech.capture import hear, offer_captures
from memory_kb.model import Location


@pytest.mark.parametrize(
    "piece", ["no", "no, ", "nononono. ", "a ", "x is ", "we use, ", "logs always ", "every a ", "no a and no b in "]
)
def test_a_long_message_of_one_piece_is_read_at_once(piece: str) -> None:
    """Were an expression to go back and forth in it, this would not end."""
    assert find_correction((piece * 2_000)[:2_000], (Did("edited", "src/app.py", 3),)) is None


def test_what_a_short_objection_was_about() -> None:
    steps = [
        ("U", "Add the type."),
        ("E", "src/generated/api.ts", "type Sort"),
        ("U", "stop"),
        ("U", "src/generated is generated, dont touch it by hand."),
    ]
    (offer,) = learned(*steps)
    assert "dont touch it by hand" in offer.draft.text


EDITED = {
    "No, tests go into tests/unit, not next to the source. Please move it.": "src/cart.test.ts",
    "Stop using print for debugging, we have structlog in this repo.": "app/main.py",
    "That's not how we do it here. Feature flags live in config/flags.yaml and are read through `flags.is_on`.": "app/checkout.py",
    "You hard-coded the URL again. All endpoints come from settings.py.": "client.py",
    "wrong, prices are stored in cents, never as floats": "models/price.py",
    "Don't bump the version in package.json by hand; release-please does that.": "package.json",
    "We never log request bodies. Remove that.": "api/middleware.go",
    "Please revert. Public functions in lib/ must not change their signature, other teams depend on them.": "lib/api.py",
}
RAN = {
    "don't use docker-compose, we use podman on this machine": "docker-compose up -d",
    "I told you: the staging database is shared, don't reset it.": "python manage.py flush --noinput",
    "no no no. don't run the full e2e suite, it takes 40 minutes. run `make e2e-smoke` instead": "make e2e",
    "why did you add lodash? We don't add dependencies for one function.": "npm install lodash",
}
ONE_OFF = (
    "no, that's still broken",
    "No, revert that.",
    "don't worry about it",
    "wait, which file is that in?",
    "You forgot the semicolon on line 12.",
    "That's wrong. The third test should expect 5 instead of 4.",
    "no, the left one should go into the right column",
    "Use the other function.",
    "instead of a list return a dict here",
    "Don't push yet.",
    "No, we can do that tomorrow.",
    "you used the wrong variable, it should be total",
    "I said blue, not green",
    "No, just skip it for now and go on with the login page",
    "don't change anything else, only fix the typo",
    "we don't have much time, hurry",
    "Never mind. Use your judgement.",
    "never mind the warning, it goes away after a reinstall",
    "don't ever do that again",
    "We never got around to cleaning that up.",
    "stop. the server is still running, kill it first",
    "no, it goes into the second paragraph",
    "It still fails with the same error, you didn't fix anything.",
    "I don't want a modal, use a drawer instead",
    "no, don't create a new file, put the function into utils.py",
    "No. The endpoint is called /v2/users, not /users.",
    "Use `useMemo` instead of `useCallback` here.",
)


@pytest.mark.parametrize(
    ("message", "did"),
    [
        *((text, Did("edited", file, 3)) for text, file in EDITED.items()),
        *((text, Did("ran", line, 3)) for text, line in RAN.items()),
    ],
)
def test_corrections_that_hold_are_kept(message: str, did: Did) -> None:
    found = find_correction(message, (did,))
    assert found
    assert found.scope == "observations"
    assert all(sentence.strip() in message for sentence in found.signal.split(". ")[:1])


@pytest.mark.parametrize("message", ONE_OFF)
def test_wishes_for_this_once_are_not(message: str) -> None:
    assert find_correction(message, (Did("edited", "src/page.tsx", 3),)) is None


def test_a_no_is_not_taken_for_an_objection_where_it_belongs_to_the_sentence() -> None:
    found = find_correction("No secrets may be committed, they must come from Vault.", (Did("edited", ".env", 3),))
    assert found is None or found.signal.startswith("No secrets")


def test_a_correction_names_what_was_refused() -> None:
    offers = learned(
        ("X", "git push origin main"), ("U", "Don't push to main, ever. Changes go through a pull request.")
    )
    assert [offer.draft.kind for offer in offers] == ["preference"]
    assert "was refused to run `git push origin main`" in offers[0].draft.text
    assert dict(offers[0].draft.fields)["source_events"] == ["3", "1"]


def test_a_correction_holds_for_the_file_that_it_names() -> None:
    steps = (("E", "src/api.gen.ts"), ("U", "No, don't edit api.gen.ts by hand. It's generated, run `make gen`."))
    assert [offer.draft.applies_to for offer in learned(*steps)] == [("src/api.gen.ts",)]


def test_a_preference_is_the_same_offer_for_capture_and_here() -> None:
    steps = (
        ("U", "Always use zod for validation."),
        ("E", "src/form.ts"),
        ("U", "never hardcode colours, use the design tokens"),
    )
    captured = offer_captures(hear(session(*steps)), NOW, Location())
    found = learned(*steps)
    assert [offer.key for offer in found] == [offer.key for offer in captured]
    assert [offer.draft.text for offer in found] == [offer.draft.text for offer in captured]
    assert len(found) == 2


def test_when_to_ask_is_kept_with_what_is_known_of_the_person() -> None:
    (offer,) = learned(
        ("E", "a.go"), ("U", "You don't need to ask me before running tests, but ask before you add a dependency.")
    )
    fields = dict(offer.draft.fields)
    assert (fields["extraction_scope"], fields["type"], offer.place.learning_type) == (
        "escalation",
        "directive",
        "proxy",
    )
    assert "**Direction:** More autonomous, Escalate more" in offer.draft.text


def test_what_to_run_instead_is_kept_with_a_correction() -> None:
    said = "no no no. never bare tox, it takes my .env. thats why the guard is there, i lost a day once. bin/check does it right. commit then"
    found = find_correction(said, (Did("ran", "tox -e py312", 3),))
    assert found is not None
    assert found.signal.startswith("never bare tox")
    assert found.signal.endswith("bin/check does it right.")
