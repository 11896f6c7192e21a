"""How what is told is worded: the clause that lasts, letter for letter, with a title that ends where a clause does."""

from __future__ import annotations

import pytest

from memory_kb.learning.intake import Offer
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.learning.speech.reading import Capture
from memory_kb.learning.speech.telling import read_told
from memory_kb.learning.speech.wording import headline, strip_wording
from memory_kb.model import Location
from memory_kb.notes.events import Event

#: What stands before the part that lasts, the part, and what stands behind it.
CUT = [
    ("", "money is stored as integer cents everywhere in our database", ", so fix the serializer and rerun the tests"),
    ("", "the reporting service is owned by the data team in Lisbon", ", so open a ticket with them please"),
    ("", "topics are declared in our topology repo, auto create is switched off on the brokers", ", so drop that"),
    ("no, ", "we moved all our services from jenkins to buildkite last spring", ""),
    ("nope, ", "our scanners in the warehouse still run Android 8 and never get updates", ""),
    ("yeah and ", "our customers in Japan are still on version 3 of the api, it stays until 2027", ""),
    ("btw ", "our staging database is wiped every sunday night by the platform team", ""),
    ("one thing: ", "our vendor reuses order ids every january, they are not unique over years", ""),
    ("move that out please, ", "controllers in our services only translate http, queries live in the repositories", ""),
    ("nein, ", "wir haben jest im märz rausgeworfen, alle tests laufen bei uns über vitest", ""),
    (
        "",
        "die beträge laufen bei uns überall als integer in cent",
        ", also bitte die tests anpassen und den parser ändern",
    ),
    ("non, ", "les montants circulent toujours en centimes entre nos services", ", donc corrige le DTO"),
    ("", "les exports de la compta sortent toujours en latin-1 chez nous", ", refais le stp"),
    ("no, ", "los precios siempre van en céntimos en toda nuestra app", ", así que cambia el modelo"),
    ("ojo, ", "los dispositivos del almacén siguen en android 7 y no se actualizan", ""),
    ("não, ", "o nosso cluster de homologação é desligado toda noite para economizar", ", então refaz por favor"),
    ("no, ", "gli ordini da gennaio stanno nelle tabelle HPOS, le altre non si usano più da noi", ""),
    ("ああ、", "うちの決済サンドボックスは国内の固定IPからしか叩けないから", "、踏み台経由で試して"),
    ("不用，", "我们的字段空值统一用下划线命名，驼峰只在前端内部用", "，你看下新加的那个"),
]

#: Sentences in which nothing is cut: what looks like an order holds always, bears a condition, or is how something is done.
WHOLE = [
    "migrations that ran on main are frozen in our repo, never edit them, write a new one instead",
    "our runners have no docker, only podman, unless you ask the platform team for a privileged one",
    "if a migration locks the users table for more than a second on prod, split it into batches",
    "when our nightly firmware build fails it is nearly always the old runner in Graz, restart it with the clean flag",
    "in our team a release is always cut from main, never from a branch: bump the version, tag it, push the tag",
    "our customers in Japan never get updates on fridays, because their support is closed until monday",
    "everything in our design system comes from tokens.css except the email templates, these are inline",
    "write the dumps to /scratch, our share under /data is always full with the runs of the other group",
    "no blocking delays in our bootloader code, the watchdog is 40 ms",
    "kommentare im code schreiben wir bei uns immer auf englisch, weil das team in posen mitliest",
    "chez nous on ne déploie jamais le vendredi, sauf si le support a donné son accord par écrit",
]


def told(message: str) -> Capture:
    (found,) = read_told(message)
    return found


def say(*said: tuple[str, str]) -> list[Offer]:
    return list(
        find_learnings(
            [Event(seq=seq, session="s", role=role, content=text) for seq, (role, text) in enumerate(said, 1)],
            Location(),
        )
    )


@pytest.mark.parametrize(("before", "part", "behind"), CUT, ids=[one[1][:30] for one in CUT])
def test_an_opening_and_an_order_for_now_are_not_kept(before: str, part: str, behind: str) -> None:
    assert told(before + part + behind).text == part


@pytest.mark.parametrize("message", WHOLE, ids=[one[:30] for one in WHOLE])
def test_a_clause_that_belongs_to_what_is_told_is_kept(message: str) -> None:
    assert told(message).text == message


AMOUNTS = "Our amounts are always stored in cents, conversions happen in the view and nowhere else."


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (f"{AMOUNTS} Clean that up please, a colleague of mine got locked out last time.", AMOUNTS),
        (
            f"{AMOUNTS} Run `make money` on our server, the view is made by it.",
            f"{AMOUNTS} Run `make money` on our server, the view is made by it.",
        ),
    ],
)
def test_a_sentence_of_orders_behind_is_not_kept_unless_it_shows_how(message: str, kept: str) -> None:
    assert told(message).text == kept


def test_the_thing_itself_stands_in_what_is_kept() -> None:
    found = told(
        "nope, our staging database is wiped every sunday night by the platform team, so rerun the import please"
    )
    assert found.span in found.text
    assert found.title == "Our staging database is wiped every sunday night by the platform team"


@pytest.mark.parametrize(
    ("message", "title"),
    [
        (
            "The mobile apps out there were compiled years ago and still send 3 for color, so numbers in orders.proto never get reused or moved.",
            "Numbers in orders.proto never get reused or moved",
        ),
        (
            "le trésorier ouvre ça dans un vieux Excel, donc chez nous les CSV c'est toujours point-virgule et UTF-8 avec BOM",
            "Chez nous les CSV c'est toujours point-virgule et UTF-8 avec BOM",
        ),
        (
            "our staging is overwritten from a prod dump every sunday night by the platform team, so nothing survives there",
            None,
        ),
    ],
)
def test_the_title_is_what_follows_where_that_tells_more(message: str, title: str | None) -> None:
    found = told(message)
    assert found.text == message
    assert found.title == (title or "Our staging is overwritten from a prod dump every sunday night by the platform…")


ASKED = (
    ("user", "Move the settings screen to compose, please."),
    ("assistant", "Done. I could raise minSdk to 26 now."),
)


def test_an_objection_is_cut_and_still_kept_with_what_it_answers() -> None:
    (offer,) = say(*ASKED, ("user", "nope, 24 has to stay, the red cross volunteers carry those old samsung tablets"))
    kept, context = offer.draft.text.split("\n")
    assert kept == "24 has to stay, the red cross volunteers carry those old samsung tablets"
    assert context == "**Context:** said when the agent had said: `I could raise minSdk to 26 now.`"


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [
        ("they are generated by the platform team and nobody on our side ever edits them", False),
        ("our dashboards are generated by the platform team and nobody on our side ever edits them", True),
        ("it's because the public schema is frozen, new tables go under the reporting schema.", True),
    ],
)
def test_what_names_nothing_is_kept_only_with_what_it_answers(answer: str, is_kept: bool) -> None:
    assert bool(say(("user", "Look at the logs."), ("user", answer))) is is_kept
    assert (
        len(
            say(
                ("user", "Look at the logs."),
                ("assistant", "I could not find where the dashboards are kept."),
                ("user", answer),
            )
        )
        == 1
    )


def test_what_takes_back_what_was_said_is_no_fact() -> None:
    assert read_told("no actually dont, forget that, the licence for our cluster runs out on friday anyway") == ()


def test_a_correction_is_kept_without_the_order_before_it() -> None:
    rule = "The files in config/crd and everything that is generated must never be edited by hand, they come out of `make manifests`."
    events = [
        Event(seq=1, session="s", role="user", content="Add a field to the type."),
        Event(
            seq=2,
            session="s",
            type="tool_call",
            tool="Edit",
            call_id="a",
            args={"file_path": "config/crd/backups.yaml", "new_string": "x"},
        ),
        Event(seq=3, session="s", type="tool_result", call_id="a", ok=True, content="ok"),
        Event(seq=4, session="s", role="user", content=f"revert that second edit. {rule}"),
    ]
    (offer,) = find_learnings(events, Location())
    assert offer.draft.source == "extracted"
    assert f"**Signal:** {rule}" in offer.draft.text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Short enough, so it stays as it is", "Short enough, so it stays as it is"),
        (
            "Die Beträge laufen bei uns überall als Integer in Cent, weil der Steuerberater jede Rundung einzeln prüft",
            "Die Beträge laufen bei uns überall als Integer in Cent…",
        ),
        (
            "We write British English throughout (customise, licence as a noun, and so on), and the product has two words",
            "We write British English throughout (customise, licence as a noun, and so on)…",
        ),
        (
            "We decided against exceptions in the engine since the console toolchains build with -fno-exceptions",
            "We decided against exceptions in the engine…",
        ),
        (
            "Every time before somebody runs the whole suite of tests run `docker compose up -d, --wait` first",
            "Every time before somebody runs the whole suite of tests…",
        ),
        (
            "Yes, but everything that is generated ends up in one of the folders below services/billing/src/generated/money",
            "Yes, but everything that is generated ends up in one of the folders below…",
        ),
        ("A" * 100, "A" * 79 + "…"),
    ],
)
def test_a_title_ends_where_a_clause_or_a_word_does(text: str, title: str) -> None:
    assert headline(text) == title


@pytest.mark.parametrize(
    "opening",
    [
        "no, ",
        "yeah, ",
        "btw ",
        "uh careful, ",
        "sí, ",
        "oui, ",
        "uy no, así no, ",
        "two little things: ",
        "Bitte merken Sie sich außerdem: ",
        "au fait ",
        "ちなみに",
        "much better :) ",
        "haha yes, ",
        "nee ",
        "B. ",
        "F2 then, ",
        "the second one, ",
        "die zweite, ",
        "dus hoe het werkt: ",
        "so here's how it works: ",
        "第二个，",
    ],
)
def test_a_title_does_not_begin_with_what_says_nothing(opening: str) -> None:
    assert strip_wording(f"{opening}the depot runs on local time") == "the depot runs on local time"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("no no dont touch the seeds", "dont touch the seeds"),
        ("attends ne vide pas la table", "ne vide pas la table"),
        ("wait thats the vendor's copy", "thats the vendor's copy"),
        ("yes always pack before upload", "always pack before upload"),
        ("no actually revert, the kiosks run iOS 15", "revert, the kiosks run iOS 15"),
        ("wait for the lock before writing", "wait for the lock before writing"),
        ("no tests in CI", "no tests in CI"),
        ("B and C share a volume", "B and C share a volume"),
        ("C: is mounted read only there", "C: is mounted read only there"),
        ("3 replicas, never less", "3 replicas, never less"),
        ("the second replica is read only", "the second replica is read only"),
    ],
)
def test_a_title_loses_only_what_leads_to_it(said: str, title: str) -> None:
    assert strip_wording(said) == title


def context(*between: Event) -> list[str]:
    opening = (
        Event(seq=1, session="s", role="user", content="Fix the map pod."),
        Event(seq=2, session="s", role="assistant", content="I take the newest compiler for it."),
        Event(seq=3, session="s", role="user", content="ok go"),
    )
    told = Event(
        seq=9, session="s", role="user", content="thats checked in, our ci boxes are on arm, their path is different"
    )
    found = [one.draft.text for one in find_learnings((*opening, *between, told), Location())]
    return [text.partition("Context:** ")[2] for text in found]


def test_what_points_at_something_is_kept_with_what_the_agent_did_or_said_since() -> None:
    edit = (
        Event(
            seq=4,
            session="s",
            type="tool_call",
            tool="Edit",
            call_id="a",
            args={"file_path": "ios/Podfile", "new_string": "x"},
        ),
        Event(seq=5, session="s", type="tool_result", call_id="a", ok=True, content="done"),
    )
    saying = Event(seq=4, session="s", role="assistant", content="I compile the map pod as C++17.")
    assert context(*edit) == ["said when the agent had edited `ios/Podfile`."]
    assert context(saying) == ["said when the agent had said: `I compile the map pod as C++17.`"]
    assert context() == []
