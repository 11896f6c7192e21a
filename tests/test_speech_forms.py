"""Instructions and facts that are told by the form of a sentence, in words and languages that nobody listed."""

from __future__ import annotations

import time

import pytest

from memory_kb.learning.speech.capture import read_all, read_message


@pytest.mark.parametrize(
    ("said", "pattern", "kind"),
    [
        ("rspec over minitest in this repo", "preference", "preference"),
        ("please use testcontainers instead of h2", "preference", "preference"),
        ("Stop using console.log, we have a logger.", "preference", "preference"),
        ("dont put release notes into every answer", "preference", "preference"),
        ("we only write tagged templates in this codebase", "preference", "preference"),
        ("I cut the releases myself, leave them alone", "preference", "preference"),
        ("every time you add a migration, update the ERD", "preference", "preference"),
        ("how often must I say this: no business logic in controllers", "preference", "preference"),
        ("every tag has to be signed by the bot first", "constraint", "policy"),
        ("eval is forbidden in this repo", "constraint", "policy"),
        ("nothing gets deployed without a changelog entry", "constraint", "policy"),
        ("no, take Gradle instead of Maven", "correction", "fact"),
        ("all sums are kept in cents", "statement", "fact"),
        ("our ingress times out after 60 seconds", "statement", "fact"),
        ("port 9000 on the dev box is reserved for minio", "statement", "fact"),
        ("the retry limit is 4 on purpose", "statement", "fact"),
        ("heads up: every config change needs a redeploy", "statement", "fact"),
    ],
)
def test_the_form_of_a_sentence_tells_what_it_is(said: str, pattern: str, kind: str) -> None:
    (found,) = read_all(said)
    assert (found.pattern, found.kind, found.text) == (pattern, kind, said)


@pytest.mark.parametrize(
    "said",
    [
        "use the other link",
        "use rows instead of columns",
        "use foo.bar instead of foo.baz",
        "looks good, not perfect though",
        "we're on page 2, not 3",
        "don't reload after every keystroke",
        "stop the dev server please",
        "no more than ten lines please",
        "we only need the last commit",
        "every test fails in this repo",
        "all tests have to be fixed",
        "requests go to the wrong host",
        "the pod has 2 restarts",
        "staging is behind main by two commits",
        "whenever the socket closes, reconnect",
        "if you find the bug, tell me",
        "I do the deploy myself tonight",
        "did you leave that out on purpose",
    ],
)
def test_what_is_wanted_now_or_only_told_of_is_not_kept(said: str) -> None:
    assert read_all(said) == ()


@pytest.mark.parametrize(
    ("said", "pattern"),
    [
        ("Bitte nutze immer Konstanten statt magischer Zahlen.", "preference"),
        ("Wir nutzen hier nur noch Vite.", "preference"),
        ("Jeder Endpunkt muss einen Test haben.", "constraint"),
        ("Nein, nimm Vite statt Webpack.", "correction"),
        ("Écris toujours un test avant de corriger un bogue.", "preference"),
        ("Chez nous on écrit les tests avec Vitest.", "preference"),
        ("Siempre escribe pruebas antes de corregir.", "preference"),
        ("Nunca borres migraciones antiguas.", "preference"),
        ("Use sempre nomes em inglês.", "preference"),
        ("Usa sempre nomi in inglese.", "preference"),
        ("Gebruik altijd Engelse namen.", "preference"),
        ("コミットする前に必ずlintを実行してください。", "preference"),
        ("覚えておいてください：本番はVPNが必要です。", "request"),
        ("提交前请运行测试。", "preference"),
        ("记住：数据库的端口是 5544。", "request"),
    ],
)
def test_other_languages_are_read_by_their_tables(said: str, pattern: str) -> None:
    assert [one.pattern for one in read_all(said)] == [pattern]


@pytest.mark.parametrize(
    "said",
    [
        "Das geht immer noch nicht.",
        "Immer wenn ich klicke, passiert nichts.",
        "Nimm die zweite statt der ersten.",
        "Toujours le même problème.",
        "Ne change pas cette fonction.",
        "Siempre lo mismo con este error.",
        "No uses esa variable, usa la otra.",
        "Sempre lo stesso errore.",
        "Altijd hetzelfde probleem.",
        "このエラーを直してください。",
        "今回だけ英語で書いてください。",
        "不要改这个文件。",
    ],
)
def test_ordinary_talk_in_other_languages_is_not_kept(said: str) -> None:
    assert read_all(said) == ()


@pytest.mark.parametrize(
    "limit",
    [
        "until monday",
        "till the demo",
        "this week",
        "for the next two days",
        "until they publish a fix",
        "through the end of the month",
        "until the audit is over",
    ],
)
def test_what_has_an_end_is_not_kept(limit: str) -> None:
    assert read_message("always use the spare mirror for packages").capture
    assert read_message(f"always use the spare mirror for packages {limit}").capture is None


@pytest.mark.parametrize(
    "said",
    [
        "Immer den alten Schlüssel verwenden bis Freitag.",
        "Utilise toujours le miroir jusqu'à lundi.",
        "月曜日まで必ず古い鍵を使ってください。",
    ],
)
def test_an_end_is_seen_in_other_languages_too(said: str) -> None:
    assert read_message(said).capture is None


@pytest.mark.parametrize(
    "said",
    [
        "sure, let's always skip the tests, who needs quality",
        "Always ship on fridays. What a brilliant idea.",
        "let's say we always cached the answer",
        "suppose we never retried at all",
        "if we went with plan B we should never expose the port",
    ],
)
def test_what_is_not_meant_is_not_kept(said: str) -> None:
    assert read_message(said).capture is None


def test_misspelt_words_are_read_and_kept_as_they_were_written() -> None:
    (found,) = read_all("plase nevr comit generated files")
    assert (found.text, found.kind, found.span) == (
        "plase nevr comit generated files",
        "preference",
        "comit generated files",
    )
    (found,) = read_all("i perfer small funktions over big ones, so split this one")
    assert found.text == "i perfer small funktions over big ones"


def test_all_that_qualifies_is_kept_beside_a_request() -> None:
    said = "Never commit the lockfile by hand, and remember that the mirror is behind the VPN. Builds go through Buildkite, never by hand."
    assert [(one.pattern, one.text) for one in read_all(said)] == [
        ("preference", "Never commit the lockfile by hand"),
        ("request", "the mirror is behind the VPN."),
        ("statement", "Builds go through Buildkite, never by hand."),
    ]


def test_what_was_noted_for_the_harness_is_asked_to_be_remembered() -> None:
    found = read_message("<user-memory-input>use tabs in Makefiles</user-memory-input>").capture
    assert found
    assert (found.pattern, found.kind, found.text) == ("request", "preference", "use tabs in Makefiles")


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("again: never commit the vendored sources", "Never commit the vendored sources"),
        (
            "and all ids come from the sequence, never from the client btw",
            "All ids come from the sequence, never from the client",
        ),
        (
            "No, no uses Redux en este proyecto, aquí usamos Zustand.",
            "No uses Redux en este proyecto, aquí usamos Zustand",
        ),
        ("please always sign the tags, thanks", "Always sign the tags"),
    ],
)
def test_a_title_has_no_fillers(said: str, title: str) -> None:
    (found,) = read_all(said)
    assert (found.text, found.title) == (said, title)


@pytest.mark.parametrize(
    "piece",
    [
        "use a, not b ",
        "every a has to ",
        "immer a statt b ",
        "no more as in bs ",
        "the a api ",
        "必ず書いて",
        "whenever you a, ",
        "toujours de ",
        "a " * 9 + "everywhere ",
        "nevr ",
    ],
)
def test_a_long_message_of_one_piece_is_read_at_once(piece: str) -> None:
    began = time.perf_counter()
    read_all((piece * 2_000)[:1_990])
    assert time.perf_counter() - began < 1
