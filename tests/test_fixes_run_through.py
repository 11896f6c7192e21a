"""What a program that was not found is run through, and the setting that says where it is."""

from __future__ import annotations

import pytest
from chaining import learned

NO_EMBER = "zsh: command not found: ember"
NO_SERVER = "--- FAIL: TestAll (0.01s)\n  [FAILED] Unexpected error:\n  fork/exec /usr/local/kit/bin/server: no such file or directory\nFAIL\tacme/it"

FIXES = {
    "a word in front": ("ember test test/auth", "vm ember test test/auth", "`ember` fails here, `vm ember` works"),
    "words in front": ("ruby a.rb", "asdf exec ruby a.rb", "`ruby` fails here, `asdf exec ruby` works"),
    "words in front of another file": (
        "flutter test test/a",
        "fvm flutter test test/b",
        "`flutter test` fails here, `fvm flutter test` works",
    ),
    "words that end with dashes": (
        "node a.js",
        "mise exec -- node a.js",
        "`node` fails here, `mise exec -- node` works",
    ),
    "a container": (
        "cargo build",
        "toolbox run -c dev cargo build",
        "`cargo build` fails here, `toolbox run -c dev cargo build` works",
    ),
    "a folder that is named": (
        "terraform plan",
        "direnv exec . terraform plan",
        "`terraform plan` fails here, `direnv exec . terraform plan` works",
    ),
}


@pytest.mark.parametrize(("failed", "worked", "title"), FIXES.values(), ids=FIXES)
def test_what_a_missing_program_is_run_through_is_kept(failed: str, worked: str, title: str) -> None:
    (offer,) = learned(
        ("-", failed, f"zsh: command not found: {failed.split(maxsplit=1)[0]}"),
        ("+", "ls -a", ".git"),
        ("+", worked, "ok"),
    )
    assert offer.draft.title == title
    assert f"`{worked}` worked." in offer.draft.text


NOTHING = {
    "the program is installed": [("-", "ember", NO_EMBER), ("+", "brew info ember"), ("+", "brew install ember")],
    "words that are installed": [("-", "ember test", NO_EMBER), ("+", "pkgx add ember test")],
    "it is looked for": [("-", "ember test", NO_EMBER), ("+", "type ember test"), ("+", "whereis ember test")],
    "something else is run": [("-", "ember test", NO_EMBER), ("+", "vm ember build")],
    "the word means something else": [("-", "ember test", NO_EMBER), ("+", "deploy --app ember")],
    "another failure": [("-", "ember test", "E   assert 1 == 2\n1 failed"), ("+", "vm ember test", "ok")],
    "another program was not found": [("-", "ember test", "gcc: command not found"), ("+", "vm ember test", "ok")],
}


@pytest.mark.parametrize("steps", NOTHING.values(), ids=NOTHING)
def test_words_in_front_that_do_not_run_it_are_no_wrapper(steps: list[tuple[str, ...]]) -> None:
    assert [offer.draft.text for offer in learned(*steps)] == []


def test_a_setting_of_what_another_command_answers_is_kept_where_a_program_could_not_be_started() -> None:
    worked = 'KIT_ASSETS="$(./bin/setup-kit use 1.31.0 --bin-dir ./bin -p path)" go test ./internal/...'
    (offer,) = learned(("-", "go test ./internal/...", NO_SERVER), ("+", worked, "ok  acme/it 11.8s"))
    assert "`go test` needs `KIT_ASSETS=" in (offer.draft.title or "")
    assert f"`{worked}` worked." in offer.draft.text


def test_a_setting_after_a_test_that_failed_for_a_file_teaches_nothing() -> None:
    failed = (
        "--- FAIL: TestRead (0.01s)\n    read_test.go:12: open testdata/a.txt: no such file or directory\nFAIL\tacme/it"
    )
    assert learned(("-", "go test ./read/...", failed), ("+", "UPDATE=1 go test ./read/...", "ok  acme/it 0.8s")) == []
