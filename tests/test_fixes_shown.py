"""What a fix says can be done again: commands stand whole, and for what they are right for."""

from __future__ import annotations

import pytest
from chaining import learned

from memory_kb.learning.intake import Offer
from memory_kb.learning.observation.commandlines import parse_line
from memory_kb.learning.observation.forms import cut, plain, show

NO_SETTING = "ERROR! ANSIBLE_VAULT_PASSWORD_FILE is not set"
UNREACHED = "ERROR Can't connect to the API: Error resolving IP address of lamp.local"


def fix(failed: str, error: str, worked: str) -> Offer:
    (offer,) = learned(("-", failed, error), ("+", worked, "ok"))
    return offer


@pytest.mark.parametrize(
    "value", ["192.168.40.23", "b8:27:eb:12:aa:01", "0483A2F", "4f2d9e1aa0b7", "lamp-2.local", "/dev/ttyUSB0"]
)
def test_what_is_of_one_thing_is_said_of_its_command_alone(value: str) -> None:
    offer = fix("esphome logs lamp.yaml", UNREACHED, f"esphome logs lamp.yaml --device {value}")
    assert offer.draft.title == f"`esphome logs lamp.yaml` works with `--device {value}`"
    assert f"**Recovery:** `esphome logs lamp.yaml --device {value}` worked." in offer.draft.text
    assert "Prevention" not in offer.draft.text


@pytest.mark.parametrize("value", ["cuda", "127.0.0.1", "serial-port"])
def test_what_holds_for_all_is_said_of_all(value: str) -> None:
    offer = fix("esphome logs lamp.yaml", UNREACHED, f"esphome logs lamp.yaml --device {value}")
    assert offer.draft.text.endswith(f"**Prevention:** Run `esphome logs` with `--device {value}`.")


def test_the_command_of_a_program_is_named() -> None:
    offer = fix(
        "cd ios && pod install",
        '[!] CocoaPods could not find compatible versions for pod "Fire"',
        "cd ios && pod install --repo-update",
    )
    assert offer.draft.title == "`pod install` works with `--repo-update`"


def test_a_recovery_is_whole_and_a_title_names_no_half_of_an_option() -> None:
    worked = "ansible-playbook -i inventories/production site.yml --vault-password-file ~/.config/ansible/vault_password -e region=europe-west1 -e zone=b"
    offer = fix("ansible-playbook -i inventories/production site.yml", NO_SETTING, worked)
    assert f"**Recovery:** `{worked}` worked." in offer.draft.text
    assert offer.draft.title == "`ansible-playbook` works with `--vault-password-file` and `-e`"


def test_an_option_keeps_its_quotes() -> None:
    offer = fix(
        "packit build .", "error: unsupported platform: no matching platform", "packit build --on 'Ubuntu LTS' ."
    )
    assert offer.draft.title == "`packit build` works with `--on 'Ubuntu LTS'`"


@pytest.mark.parametrize("value", ["$(gh auth token)", '"$(gh auth token)"', "$GITHUB_PAT", "${GITHUB_PAT}"])
def test_what_stands_elsewhere_is_no_secret(value: str) -> None:
    offer = fix(
        "npm ci",
        "npm error code E401\nnpm error Unable to authenticate, need: Basic",
        f"NODE_AUTH_TOKEN={value} npm ci",
    )
    assert offer.draft.title == f"`npm ci` needs `NODE_AUTH_TOKEN={value}`"
    assert f"`NODE_AUTH_TOKEN={value} npm ci` worked." in offer.draft.text


@pytest.mark.parametrize(
    "value", ["hunter2", "'hunter 2'", "$(echo hunter2)", '"$(printf hunter2)"', "x$(gh auth token)"]
)
def test_a_secret_is_replaced_whole(value: str) -> None:
    assert plain(f"NODE_AUTH_TOKEN={value} npm ci", 80) == "NODE_AUTH_TOKEN=… npm ci"


def test_a_command_is_cut_between_its_words() -> None:
    line = "deploy --to 'the second of our clusters' --as $(whoami | tr a-z A-Z) --now"
    assert [cut(line, limit) for limit in (20, 50, 60, 99)] == [
        "deploy --to…",
        "deploy --to 'the second of our clusters' --as…",
        "deploy --to 'the second of our clusters' --as…",
        line,
    ]
    assert show(parse_line("NAMES='a b c' run")[0], 99) == "`NAMES='a b c' run`"


def test_what_is_put_in_and_too_long_for_a_title_stands_whole_in_the_recovery() -> None:
    value = "$(aws codeartifact get-authorization-token --domain acme --query authorizationToken --output text)"
    offer = fix(
        "npm ci",
        "npm error code E401\nnpm error Unable to authenticate, need: Basic",
        f"NODE_AUTH_TOKEN={value} npm ci",
    )
    assert offer.draft.title == "`npm ci` needs `NODE_AUTH_TOKEN=…`"
    assert offer.draft.text.endswith(f"**Recovery:** `NODE_AUTH_TOKEN={value} npm ci` worked.")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://mirror.example.org/simple", "https://mirror.example.org/simple"),
        ("https://mirror.example.org,direct", "https://mirror.example.org,direct"),
        ("https://kim:pw@mirror.example.org/simple", "…"),
        ("https://hooks.example.org/services/T0A1/B93kd82jd", "…"),
        ("postgres://kim@localhost/ledger", "…"),
    ],
)
def test_an_address_is_hidden_only_where_it_may_hold_a_secret(value: str, shown: str) -> None:
    assert plain(f"KIT_URL={value} kit build", 110) == f"KIT_URL={shown} kit build"
