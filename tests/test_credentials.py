"""Credentials: every known shape is named, and ordinary prose about them is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.credentials import find_secret, locate_secrets, redact

# Put together here, so that no file holds anything that looks real.
A1 = "aB3dE6gH9j"

SECRETS = [
    pytest.param("-----BEGIN " + "RSA PRIVATE KEY-----", "a private key", id="rsa-key"),
    pytest.param("-----BEGIN " + "PRIVATE KEY-----", "a private key", id="pkcs8-key"),
    pytest.param("-----BEGIN " + "OPENSSH PRIVATE KEY-----", "a private key", id="openssh-key"),
    pytest.param("AKIA" + "Q" * 16, "an AWS access key", id="aws"),
    pytest.param("ASIA" + "Z9" * 8, "an AWS access key", id="aws-session"),
    pytest.param("ghp_" + A1 * 4, "a GitHub token", id="github"),
    pytest.param("github_pat_" + A1 * 5, "a GitHub token", id="github-fine-grained"),
    pytest.param("glpat-" + A1 * 2, "a GitLab token", id="gitlab"),
    pytest.param("xoxb-" + "1234567890-" + A1, "a Slack token", id="slack"),
    pytest.param("sk_live_" + A1 * 2, "a Stripe key", id="stripe"),
    pytest.param("sk-" + A1 * 4, "an API key", id="openai"),
    pytest.param("sk-proj-" + A1 * 4, "an API key", id="openai-project"),
    pytest.param("sk-ant-" + "api03-" + A1 * 4, "an API key", id="anthropic"),
    pytest.param("AIza" + "x1B9e" * 7, "a Google API key", id="google"),
    pytest.param("npm_" + "x1" * 18, "an npm token", id="npm"),
    pytest.param("pypi-" + A1 * 6, "a PyPI token", id="pypi"),
    pytest.param("hf_" + A1 * 4, "a Hugging Face token", id="hugging-face"),
    pytest.param("eyJ" + A1 * 2 + ".eyJ" + A1 * 2 + "." + A1 * 2, "a signed web token", id="jwt"),
    pytest.param("the test key is sk_test_" + A1 * 2 + ", never the live one", "a Stripe key", id="stripe-test"),
    pytest.param("whsec_" + A1 * 2, "a Stripe key", id="stripe-webhook"),
    pytest.param("SG." + A1 * 2 + "." + A1 * 2, "a SendGrid key", id="sendgrid"),
    pytest.param("dckr_pat_" + A1 * 2, "an access token", id="docker"),
    pytest.param("curl -s -u admin:" + "s3cr3tpw https://api.example.org/x", "a password of a request", id="request"),
    pytest.param("http --auth=bot:" + "s3cr3tpw GET example.org", "a password of a request", id="other-request"),
    pytest.param("log in as ana, my password there is " + "Sonnenblume!42", "a password", id="told-there"),
    pytest.param("the password for the staging db is " + "Sonnenblume!42", "a password", id="told-for"),
    pytest.param("postgres://admin:" + "s3cr3tpw@db.example.org/app", "a password in an address", id="address"),
    pytest.param("https://bot:" + A1 + "@git.example.org", "a password in an address", id="https-address"),
    pytest.param("password: " + "hunter2hunter", "a password or key", id="password"),
    pytest.param("the db password is " + "hunter2-Sommer2026, use it", "a password", id="told"),
    pytest.param("user is ci@example.org and the app pw " + "mnop-qrst-test-0042", "a password", id="told-in-short"),
    pytest.param("the staging pass is " + "Kiesel7grau", "a password", id="told-pass"),
    pytest.param("le mdp c'est " + "galet7gris", "a password", id="told-french"),
    pytest.param("la contraseña es " + "guijarro7gris", "a password", id="told-spanish"),
    pytest.param("a senha é " + "seixo7cinza", "a password", id="told-portuguese"),
    pytest.param("het wachtwoord is " + "kiezel7grijs", "a password", id="told-dutch"),
    pytest.param("パスワードは " + "koishi7hai", "a password", id="told-japanese"),
    pytest.param("密码是 " + "shizi7hui", "a password", id="told-chinese"),
    pytest.param("credentials: admin / " + "Kiesel#7grau", "a password", id="told-pair"),
    pytest.param("the door pin is " + "4711", "a passcode", id="pin"),
    pytest.param("our deploy token " + "9f8e7d6c5b4a3x", "a token", id="told-token"),
    pytest.param("the hub token is " + "hf_" + "QuarzKiesel0000", "a token", id="told-marked-token"),
    pytest.param("upload token is " + "hb_" + "aBcDeFgHiJkLmNoP", "a token", id="told-token-in-turns"),
    pytest.param("PASSWORD=" + "hunter2hunter", "a password or key", id="variable"),
    pytest.param('"api_key": "' + A1 + '"', "a password or key", id="json"),
    pytest.param(json.dumps(json.dumps({"password": "hunter" + "2Zx9q"})), "a password or key", id="json-in-json"),
    pytest.param(
        reduce(lambda held, _: json.dumps({"a": held}), range(4), '{"password": "hunter' + '2Zx9q"}'),
        "a password or key",
        id="deep-json",
    ),
    pytest.param("PASSWORD=" + "hunter2hunter" + r"\nnext", "a password or key", id="escaped-line-end"),
    pytest.param("secret = '" + A1 + "'", "a password or key", id="quoted"),
    pytest.param("auth-token: " + A1, "a password or key", id="auth-token"),
    pytest.param("DB_PASSWORD=" + "hunter2hunter", "a password or key", id="prefixed-variable"),
    pytest.param("AWS_SECRET_ACCESS_KEY=" + A1 * 4, "a password or key", id="aws-secret"),
]

PROSE = [
    "",
    "The password lives in the team vault; ask Maria.",
    "password: see 1Password",
    "the password for that account is in 1Password",
    "the password there is not set by the script step2deploy",
    "docker run -u 1000:1000 curl-image and curl -u $USER:$PASS",
    "curl -u user:$TOKEN https://example.org",
    "sk_test_ keys are for the sandbox",
    "the password is argon2id-hashed before it is stored",
    "the password is base64-encoded and the password is required",
    "Rotate the API key every 90 days.",
    "the password is stored hashed, the pin is 4 digits, the key is user_id",
    "the pin is 4711 digits long, pin 13 is the LED, pin 2024.1.3 of the sdk",
    "token expires after 15 minutes, pass --verbose, pw reset for user42",
    "the token is my_refreshTokenValue, the secret is billing-serviceAccount, api key is kv_production",
    "pass python3.11 to tox, pass step2deploy the flag, tests pass on py312-linux",
    "cache key is deps-v2-linux18, ssh key is ed25519, the api key header is X-Api-Key2",
    "PASS=18 WARN=1, unit tests pass: 12/12 in 3.2s, password field1 and field2",
    "login page v2/step3, credentials for ci / deploy live in vault2, pw auth with oauth2",
    "密码是加密存储的, パスワードは8文字以上, das Passwort ist mit sha256 abgelegt",
    "token: <your-token>",
    "export TOKEN=$GITHUB_TOKEN",
    "password: ${DB_PASSWORD}",
    "password = os.environ['DB_PASSWORD']",
    "https://user:$PASS@example.org and https://user:{password}@example.org",
    "postgres://user:password@localhost/app",
    "https://user:****@example.org",
    "https://example.org:8080/a@b",
    "Commit 3f2a9c1d4e5b6a7980f1e2d3c4b5a69788990011 broke it.",
    "id 9e4d1c7b-e5d8-4f0f-9d3e-b4f5c0a1d6c2",
    "The key is to sleep: secretly, tokens: 500",
    "Use sk-learn, not sk-image; the AKIA prefix means a key.",
    "ssh-rsa public keys are fine; -----BEGIN CERTIFICATE----- too",
    "token budget: 2000",
    "Secret: keep calm and carry on",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "The token is deprecated! The secret is overestimated! Our API key: unavailable% for now",
    "mailto:someone@example.org, ssh://git@example.org/repo.git",
]


@pytest.mark.parametrize(("secret", "what"), SECRETS)
def test_a_credential_is_named_wherever_it_is(secret: str, what: str) -> None:
    for around in ("{}", "Deploy with {} on Mondays.", "```\n{}\n```", "- `{}`", "({})", "see:{}\r\n"):
        assert find_secret(around.replace("{}", secret)) == what


def test_a_credential_is_named_right_behind_a_script_without_spaces() -> None:
    missed = [case.id for case in SECRETS if find_secret(f"鍵は{case.values[0]}です") != case.values[1]]
    assert missed == []


@pytest.mark.parametrize("text", PROSE, ids=range(len(PROSE)))
def test_prose_about_credentials_is_none(text: str) -> None:
    assert find_secret(text) is None


@given(st.text(max_size=100))
def test_what_is_named_is_one_of_the_known_shapes(text: str) -> None:
    found = find_secret(text)
    assert found is None or found.startswith(("a ", "an "))
    assert find_secret(f"{text} AKIA{'Q' * 16} {text}") is not None


def test_no_text_takes_long() -> None:
    """Where the time grew with the square of the length, this would take long."""
    pieces = (
        "BEGIN RSA ",
        "-----BEGIN A ",
        "password: ",
        "a.b+c-",
        "eyJaaaaaaaaaaaa.",
        "http",
        "token=",
        "x://a:",
        "sk-",
        "aaaa1",
        "://:@",
        "curl -u a:",
        "password for the ",
        "pw a1",
        "pin 1234",
        "login a/",
        "token is a1b",
    )
    for piece in pieces:
        find_secret(piece * (20_000 // len(piece)))


NEW_SHAPES = [
    pytest.param(
        "https://hooks.slack.com/services/" + "T0" + A1[:8] + "/B0" + A1[:8] + "/" + A1 * 2 + "xyzw", id="webhook"
    ),
    pytest.param("git clone https://" + A1 * 3 + "@git.example.org/x.git", id="token-before-host"),
    pytest.param("Authorization: Basic " + "YWxpY2U6S2llc2VsN2dyYXU=", id="basic"),
    pytest.param("-----BEGIN PGP " + "PRIVATE KEY BLOCK-----", id="pgp"),
    pytest.param("SECRET_KEY_BASE=" + "3f" * 8 + "a9c1" * 16, id="rails"),
    pytest.param("AccountName=a;AccountKey=" + "aB3/" * 21 + "ab==;", id="azure"),
    pytest.param("ya29." + A1 * 4, id="google"),
    pytest.param("8123456789:AA" + A1 * 3 + "xyz", id="telegram"),
    pytest.param("key-" + "3f9a" * 8, id="mailgun"),
    pytest.param("gsk_" + A1 * 5, id="groq"),
    pytest.param("xai-" + A1 * 8, id="xai"),
    pytest.param("nvapi-" + (A1 + "-" + A1 + "_") * 3, id="nvidia"),
    pytest.param("sntrys_" + A1 * 6, id="sentry"),
    pytest.param("sbp_" + "3f9a" * 10, id="supabase"),
    pytest.param("NRAK-" + "Z9X8" * 6 + "ABC", id="new-relic"),
    pytest.param("glsa_" + "aB3d" * 8 + "_" + "3f9a1b2c", id="grafana"),
    pytest.param('{"auths": {"r.example.org": {"auth": "' + "YWxpY2U6S2llc2VsN2dyYXU=" + '"}}}', id="docker"),
    pytest.param("mysql -u root -p" + "Kiesel7grau shop", id="mysql"),
    pytest.param("the wifi password is " + "hunter2!", id="typed"),
]


@pytest.mark.parametrize("secret", NEW_SHAPES)
def test_what_services_give_out_is_found_and_taken_out(secret: str) -> None:
    assert find_secret(f"Deploy so: {secret}\nthen wait.")
    cleaned = redact(f"Deploy so: {secret}\nthen wait.")
    assert cleaned.found
    assert find_secret(cleaned.text) is None


@pytest.mark.parametrize(
    "text",
    [
        "pass result1 to Y and pass sha256sum to the check",
        "~cancellation_token",
        "static ~cancellation_token2() noexcept;",
        "PASSWD = &H10000",
        "bibtex_key: Achmann-Denkler2026-lx",
        'citation_key: "Adam2026-tz"',
        "partition_key: user2026-ab1",
        "memory/learnings/xai-how-models-explain-themselves-38e8b009.md",
        "https://www.youtube.com/redirect?event=video_description&redir_token=QUFFLUhqbTk4Zz",
        "Public Const PASSWD = &H1000000F",
        "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
        "GITHUB_TOKEN=ghp_" + "x" * 36,
    ],
)
def test_code_prose_and_placeholders_are_no_secrets(text: str) -> None:
    assert find_secret(text) is None


@pytest.mark.parametrize(
    "gap", ["\n", "\r\n", "\n    ", "\n> ", "\\\n", "\u200b", "\u200d", "\ufeff", "\u2060", "\u00ad"]
)
def test_a_key_broken_by_what_nobody_sees_is_found(gap: str) -> None:
    key = "ghp_" + A1 * 4
    broken = f"use {key[:17]}{gap}{key[17:]} there"
    assert find_secret(broken) == "a GitHub token"
    assert redact(broken).text == "use [redacted: a GitHub token] there"


def test_a_finding_says_what_and_where_without_the_value() -> None:
    (found,) = locate_secrets("Go online first.\nThe wifi password is " + "hunter2!")
    assert found
    assert (found.what, found.line, found.shown) == ("a password", 2, "The wifi password is hu…")
    assert "hunter2" not in found.described


def test_labelled_lines_and_documentation() -> None:
    root = Path(__file__).parent.parent
    command = [sys.executable, str(root / "scripts/eval"), "secrets", "--docs", str(root / "docs"), "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert report["lines"] == 300
    assert report["recall"] >= 0.95, report["missed"]
    assert len(report["alarmed"]) <= 2, report["alarmed"]
    (docs,) = report["docs"].values()
    assert [line for line in docs["which"] if "AKIAABCDEFGHIJKLMNOP" not in line] == []
