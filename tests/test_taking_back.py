"""What a person said is taken back in many words: by name, by pointing at it, by what stands in its place."""

from __future__ import annotations

import pytest

from memory_kb.learning.speech.retractions import Retractions, settle

#: What was said, what the agent answered, what takes it back: for certain, or so that it has to be asked.
NAMED = [
    (
        "Always write the tests in Gherkin.",
        "The suite is plain Python. Really?",
        "Ah. Strike that about Gherkin, I was thinking of the other team.",
    ),
    (
        "Never use enums in this codebase.",
        "There are nine. Shall I remove them?",
        "hm. forget the enums thing, that's our Java style guide",
    ),
    ("Always call the tables in the plural.", "Ok.", "Never mind what I told you about the plural tables."),
    ("From now on squash every branch.", "Ok.", "ignore the bit about squashing, I confused two repos"),
    ("I prefer sagas for side effects.", "We use thunks.", "what I said about sagas was meant for the mobile app"),
    ("Always indent with four spaces here.", "Ok.", "the four spaces rule is for another project, sorry"),
    ("Always pin the base image.", "Ok.", "undo what I said about pinning"),
    ("Nimm immer Tabs statt Leerzeichen.", "Ok.", "Vergiss das mit den Tabs, das war ein anderes Projekt."),
    ("Utilise toujours des tabulations.", "D'accord.", "Oublie ce que j'ai dit sur les tabulations."),
    ("Usa siempre tabuladores.", "Vale.", "Olvida lo de los tabuladores, era para otro proyecto."),
    ("コメントは必ず英語で書いてください。", "はい。", "コメントの件は忘れてください。"),
    ("Never use default exports.", "Fine.", "Strike my remark on default exports please."),
    ("Immer Konstruktor-Injection verwenden.", "Ok.", "Was ich zur Konstruktor-Injection gesagt habe, gilt nicht."),
    ("Always validate input with joi.", "We have zod.", "you're right. scrap the joi thing, that was at my old job"),
    ("Never nest ternaries.", "Ok.", "forget about what I said regarding ternaries"),
    (
        "We always write the changelog in French.",
        "Really?",
        "no. the French changelog was for another client, ignore it",
    ),
    ("Always expose ports above 9000.", "Ok.", "I was wrong about the ports"),
    ("Never import lodash.", "Ok.", "please disregard my comment about lodash"),
    ("Immer Yarn benutzen.", "Ok.", "Ignorier, was ich über Yarn gesagt habe."),
    ("Toujours utiliser yarn.", "Ok.", "ignore ce que j'ai dit à propos de yarn"),
    ("Usa siempre yarn.", "Vale.", "ignora lo que dije sobre yarn"),
]
POINTED = [
    ("Always write ADRs for new services.", "Ok.", "oops, wrong window"),
    ("Never use raw SQL.", "There is a lot of it.", "Oh. Ignore that please, it was for a different chat."),
    ("Always deploy with helm.", "Ok.", "Hm, I mixed that up with my other project."),
    ("We never use feature branches.", "Ok.", "sorry, that one was meant for somebody else"),
    ("Always use dark colours.", "Ok.", "strike that"),
    ("Always prefix hooks with use.", "Ok.", "actually no, forget I said anything"),
    ("Immer mit make bauen.", "Ok.", "Sorry, falsches Fenster."),
    ("Immer mit make bauen.", "Ok.", "Streich das wieder, ich hab mich vertan."),
    ("Toujours compiler avec make.", "Ok.", "Oublie ça, je me suis trompé de projet."),
    ("Siempre compila con make.", "Ok.", "Perdón, me equivoqué de ventana, ignora eso."),
    ("必ずmakeでビルドしてください。", "はい。", "すみません、別のプロジェクトと間違えました。今のは忘れてください。"),
    ("Always build with bazel.", "Ok.", "Hmm, that was nonsense. Forget what I said."),
    ("Never commit lockfiles.", "Ok.", "I got confused with another repo, disregard that"),
    ("Always tag the release by hand.", "Ok.", "actually never mind that rule"),
    ("Always use camelCase in SQL.", "Ok.", "uh, wrong repo, sorry"),
    ("Never write docstrings.", "Ok.", "oh no, that message was for my colleague"),
    ("Always mock the clock.", "Ok.", "Ugh, I take it back."),
    ("Always mock the clock.", "Ok.", "forget it, I was confusing this with the billing service"),
    ("Always mock the clock.", "Ok.", "please ignore my previous message"),
    ("Always mock the clock.", "Ok.", "my mistake, different codebase"),
    ("Immer Docker verwenden.", "Ok.", "ach nee, das war fürs andere Projekt"),
    ("Immer Docker verwenden.", "Ok.", "Das nehme ich zurück."),
    ("Toujours docker.", "Ok.", "pardon, c'était pour un autre projet"),
    ("Siempre docker.", "Ok.", "Me he confundido, olvídalo."),
    ("必ずDockerを使ってください。", "はい。", "やっぱりさっきのは無しで。"),
]
REPLACED = [
    ("Always order the list by name please.", "Ok.", "no wait, by last login"),
    ("Always store the times in CET.", "Ok.", "sorry, I meant UTC"),
    ("Always round to two digits.", "Ok.", "hm no, I was wrong, to three"),
    ("Name the branches after the ticket, always.", "Ok.", "correction: after the milestone"),
    ("From now on indent with tabs.", "Ok.", "no wait, make that two spaces"),
    ("Always group the imports by package.", "Ok.", "oh wait, no, by layer"),
    ("Sortiere Listen immer nach Datum.", "Ok.", "nein warte, nach Betrag"),
    ("Trie toujours par date.", "Ok.", "non attends, par montant"),
    ("Ordena siempre por fecha.", "Ok.", "no espera, por importe"),
    ("Always sort the users by age.", "Ok.", "hang on, by signup date"),
    ("Always write amounts in dollars.", "Ok.", "oops, I mean cents"),
    ("Always start the port range at 8000.", "Ok.", "sorry no, at 9000"),
    ("Immer auf zwei Stellen runden.", "Ok.", "Quatsch, auf drei"),
    ("Always log to stdout.", "Ok.", "actually, to stderr"),
]
STANDS = [
    ("Always sort by date here please.", "Ok.", "no wait, show me the page first"),
    ("Always sort by date here please.", "Done.", "By the way, I was wrong about the invoice number."),
    ("Always indent with tabs.", "Which file next?", "never mind, I do it myself"),
    ("Always store the times in UTC.", "Ok.", "sorry, I meant the other file"),
    ("Always write tests in Gherkin.", "Ok.", "Forget the login page, go on with the cart."),
    ("Never use enums in this codebase.", "Ok.", "Strike the last paragraph of the readme."),
    ("Always build with bazel.", "Ok.", "The build was wrong, I mixed up the flags in the Makefile."),
    ("Always pin the base image.", "Pinned.", "Ignore the warnings of the linter."),
    ("We never use feature branches.", "Ok.", "This was meant to be a POST request, not a GET."),
    ("Never log user names.", "Ok.", "Forget about the old logs, they rotate anyway."),
    ("Always order the list by name.", "Ok.", "Wait, by when will this be done?"),
    ("Nimm immer Tabs.", "Ok.", "Vergiss nicht, die Tests laufen zu lassen."),
    ("Utilise toujours des tabulations.", "Ok.", "N'oublie pas les tests."),
    ("Usa siempre tabuladores.", "Ok.", "No olvides los tests."),
    ("コメントは必ず英語で書いてください。", "はい。", "テストも忘れないでください。"),
    ("Always run the linter.", "Ran it.", "You mixed it up with the formatter."),
    ("Never push to master.", "Ok.", "don't forget what I said about master"),
    ("Never use floats for money.", "Ok.", "Ah right, use Decimal here then."),
    ("Always answer in English.", "Ok.", "Ok, undo the last commit please."),
    ("Always sort the users by age.", "Ok.", "hang on, let me look at the table"),
    ("Always validate input with joi.", "Ok.", "scrap the old validator file"),
    ("Never nest ternaries.", "Ok.", "I mixed up the arguments, see line 4"),
    ("Always mock the clock.", "Ok.", "that was for free, thanks"),
    ("Always mock the clock.", "Done. Shall I also mock the network?", "forget it"),
    ("Always mock the clock.", "Ok.", "sorry, I meant to attach the log"),
    ("Always log to stdout.", "Ok.", "actually, to be sure, run the tests again"),
    ("Always write amounts in cents.", "Ok.", "no wait, the header is missing"),
    ("Immer Docker verwenden.", "Ok.", "Das war für mich neu, danke."),
    ("Never import lodash.", "Ok.", "my mistake, I forgot to save the file"),
    ("Never import lodash.", "Ok.", "ignore the lodash warnings in the legacy folder for now"),
    ("Always use camelCase.", "Ok.", "You took the wrong repo, look into the other one"),
]


def judge(*said: str) -> str | None:
    """Return what becomes of the first of some words that a person and an agent say in turn."""
    session = Retractions()
    taken = list(session.state("it", said[0], said[0]))
    for number, text in enumerate(said[1:]):
        if number % 2:
            taken += session.hear(text)
        else:
            session.answer(text)
    return settle(taken).get("it")


@pytest.mark.parametrize("said", NAMED, ids=[one[2] for one in NAMED])
def test_what_is_taken_back_by_name_holds_no_more_however_late(said: tuple[str, str, str]) -> None:
    assert judge(*said) == "withdrawn"
    assert judge(*said[:2], "Now write the login page.", "Done.", said[2]) == "withdrawn"


@pytest.mark.parametrize("said", POINTED, ids=[one[2] for one in POINTED])
def test_what_somebody_points_back_at_does_not_stand(said: tuple[str, str, str]) -> None:
    assert judge(*said) in ("withdrawn", "doubtful")


@pytest.mark.parametrize("said", REPLACED, ids=[one[2] for one in REPLACED])
def test_what_gets_another_choice_in_its_place_does_not_stand(said: tuple[str, str, str]) -> None:
    assert judge(*said) in ("withdrawn", "doubtful")


@pytest.mark.parametrize("said", STANDS, ids=[one[2] for one in STANDS])
def test_what_is_said_of_something_else_takes_nothing_back(said: tuple[str, str, str]) -> None:
    assert judge(*said) is None


@pytest.mark.parametrize(
    ("said", "done", "then", "doubt"),
    [
        (
            "our kiosk build wants minSdk 26 from here",
            "build.gradle minSdk = 26",
            "hm no actually revert, the tablets in the halls run 8",
            "withdrawn",
        ),
        (
            "die Exporte laufen bei uns mit Semikolon",
            "export.py delimiter Semikolon",
            "ach doch nicht, mach das wieder rückgängig",
            "withdrawn",
        ),
        (
            "notre cache Redis dure 60 secondes",
            "settings.py Redis cache 60",
            "finalement remets comme avant",
            "withdrawn",
        ),
        ("el worker va con 8 hilos en el nodo grande", "worker.yml hilos: 8", "mejor revierte eso", "withdrawn"),
        ("キャッシュは Redis に置く方針です", "settings.py Redis", "やっぱり元に戻して", "withdrawn"),
        ("our kiosk build wants minSdk 26 from here", "build.gradle minSdk = 26", "put it back please", "doubtful"),
        ("our kiosk build wants minSdk 26 from here", "README.md typo", "hm no actually revert", None),
        (
            "le cache de la table des tarifs dure une heure",
            "cache.py tarifs 3600",
            "enlève le log des tarifs du coup",
            None,
        ),
        ("on ne vide jamais la table des tarifs", "tarifs.py", "finalement annule", None),
        ("never edit minSdk by hand", "build.gradle minSdk = 26", "hm no actually revert", None),
        ("our kiosk build wants minSdk 26 from here", "build.gradle minSdk = 26", "the revert button is gone", None),
    ],
)
def test_what_was_done_for_it_and_put_back_takes_it_back(said: str, done: str, then: str, doubt: str | None) -> None:
    session = Retractions()
    assert not list(session.state("a", said, said))
    session.do(done)
    assert settle(session.hear(then)).get("a") == doubt
