"""Scripts whose words carry marks, or take letters before and behind them: Hebrew, Arabic, those of India, Ethiopic; and Korean."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_agent
from memory_kb.agents.payloads import read_hook_call

Vault = Callable[[Files], Path]
OpenKb = Callable[..., KnowledgeBase]

#: A note, and a word of it in another form, by language.
FORMS = {
    "ar": ("رفع الموظف دعوى بالمحكمة صباح الأحد", "المحكمة"),
    "he": ("הישיבה על התקציב תיערך במשרדים החדשים", "משרדי"),
    "fa": ("کتابخانه‌ها فردا صبح باز می‌شوند", "کتابخانهٔ"),
    "hi": ("पुस्तकालयों की सूची दीवार पर लगी है", "पुस्तकालय"),
    "bn": ("গ্রন্থাগারের চাবি দারোয়ানের কাছে থাকে", "গ্রন্থাগার"),
    "te": ("గ్రంథాలయంలో కొత్త పుస్తకాలు ఉన్నాయి", "గ్రంథాలయం"),
    "am": ("የቤተመጻሕፍቱ ቁልፍ ከጥበቃው ዘንድ ይገኛል", "ቤተመጻሕፍት"),
}


@pytest.mark.parametrize(("text", "word"), FORMS.values(), ids=FORMS)
def test_a_word_is_found_in_its_other_forms(text: str, word: str, vault: Vault, open_kb: OpenKb) -> None:
    files = {f"memory/{name}.md": f"{other}\n" for name, (other, _) in FORMS.items()}
    hits = open_kb(vault(files | {"memory/mine.md": f"{text}\n"})).search(word).hits
    assert {hit.text for hit in hits} == {text}


def test_question_words_do_not_lead_to_notes_that_say_them(vault: Vault, open_kb: OpenKb) -> None:
    notes = {
        "memory/temple.md": "Candi Borobudur dibangun oleh wangsa Syailendra pada abad kesembilan.\n",
        "memory/game.md": "Siapa dia? Kapan dan di mana? Siapa pun boleh menebak kapan saja.\n",
        "memory/others.md": "".join(
            f"## Candi {number}\n\nBorobudur dan candi nomor {number} dibangun.\n\n" for number in range(9)
        ),
    }
    hits = open_kb(vault(notes)).search("kapan dan oleh siapa candi Borobudur dibangun?").hits
    assert hits[0].path == "memory/temple.md"
    assert "memory/game.md" not in [hit.path for hit in hits]


def test_optional_marks_make_no_difference(vault: Vault, open_kb: OpenKb) -> None:
    kb = open_kb(vault({"memory/a.md": "סיסמת הָאֶבֶן נמצאת בכספת\n", "memory/b.md": "وصل مُحَمَّدَان إلى المكتب\n"}))
    assert [hit.path for hit in kb.search("האבן").hits] == ["memory/a.md"]
    assert [hit.path for hit in kb.search("محمدان").hits] == ["memory/b.md"]


def test_vowels_tell_statements_apart(folder: Path, run: Run) -> None:
    first, other = "दिन में दो बार सर्वर को रोकना मना है", "दान में दो बार सर्वर को रोकना मना है"
    made = [json.loads(run("learn", text, "--json", cwd=folder).stdout) for text in (first, other, first)]
    assert [one["action"] for one in made] == ["created", "created", "reinforced"]
    assert "दिन-में-दो-बार" in made[0]["path"]


def test_a_context_has_what_is_said_with_marks(vault: Vault, open_kb: OpenKb) -> None:
    files = {f"memory/{name}.md": f"{text}\n" for name, (text, _) in FORMS.items()}
    context = open_kb(vault(files)).context("पुस्तकालय की सूची कहाँ है")
    assert FORMS["hi"][0] in context.text
    assert FORMS["bn"][0] not in context.text


#: A note, a prompt with other forms of its words, and one about something else.
PROMPTS = {
    "ar": (
        "توقفت الطابعات في المكتبة بعد تحديث الشبكات، فأعدنا ضبط العناوين",
        "لماذا لا تعمل طابعات المكتبات منذ تحديث شبكتنا وضبط عناوينها؟",
        "كيف نكتب اختبارا جديدا لواجهة المستخدم قبل نهاية الأسبوع؟",
    ),
    "ko": (
        "업로드 서버가 재시작되면 대기열의 메시지가 사라지므로 디스크에 저장한다",
        "업로드 서버를 재시작하면 왜 대기열의 메시지가 사라지나요?",
        "내일 오전 회의에서 발표할 자료를 어떻게 준비하면 좋을까요?",
    ),
}


@pytest.mark.parametrize(("wanted", "about", "beside"), PROMPTS.values(), ids=PROMPTS)
def test_a_prompt_brings_a_note_with_other_forms_of_its_words(
    wanted: str, about: str, beside: str, vault: Vault, open_kb: OpenKb
) -> None:
    others = {f"memory/n{number}.md": f"اجتماع رقم {number} حول ميزانية القسم\n" for number in range(20)}
    folder = vault({"memory/config.yaml": "", "memory/wanted.md": f"{wanted}\n", **others})
    kb, agent = open_kb(folder), find_agent("claude-code")
    kb.sync()

    def ask(prompt: str) -> str:
        payload = {"session_id": "s", "cwd": str(folder), "prompt": prompt}
        output = kb.hook("prompt", read_hook_call(agent, "prompt", json.dumps(payload).encode()), agent).output
        return str(json.loads(output)["hookSpecificOutput"]["additionalContext"]) if output else ""

    assert wanted in ask(about)
    assert not ask(beside)


def test_tags_and_headings_hold_marks(vault: Vault, run: Run) -> None:
    text = "# हिन्दी\n\n## सेटिंग्स का पृष्ठ\n\nSee [it](#सेटिंग्स-का-पृष्ठ). #हिन्दी #ไทยที่\n"
    folder = vault({"memory/config.yaml": "", "memory/a.md": text})
    for tag in ("हिन्दी", "ไทยที่"):
        assert "memory/a.md" in run("list", "--tag", tag, cwd=folder).stdout
    assert run("lint", cwd=folder).returncode == 0


@pytest.mark.parametrize("is_composed", [True, False])
@pytest.mark.parametrize("text", ["서버 재시작 절차", "Tiếng Việt", "Αθήνα", "Übergröße"])
def test_letters_are_the_same_with_their_marks_apart(text: str, is_composed: bool, vault: Vault, run: Run) -> None:
    forms = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    name, other = forms if is_composed else forms[::-1]
    notes = {f"memory/{name}.md": "Text.\n", "memory/b.md": f"A link to [[{other}]].\n", "memory/c.md": "Others.\n"}
    folder = vault({"memory/config.yaml": "", **notes})
    first = json.loads(run("search", other, "--json", cwd=folder).stdout)["hits"][0]
    assert first["path"] == f"memory/{name}.md"
    assert run("lint", cwd=folder).returncode == 0


def test_a_statement_is_known_with_its_marks_apart(folder: Path, run: Run) -> None:
    for text in ("Die Übergröße prüft der Zähler täglich um fünf", "서버는 매주 월요일 새벽에 다시 시작한다"):
        made = [
            json.loads(run("learn", unicodedata.normalize("NFC", text), "--json", cwd=folder).stdout)["action"],
            json.loads(run("learn", unicodedata.normalize("NFD", text), "--json", cwd=folder).stdout)["action"],
        ]
        assert made == ["created", "reinforced"]


def test_a_renamed_file_or_heading_takes_along_links_with_marks_apart(vault: Vault, run: Run) -> None:
    apart = unicodedata.normalize("NFD", "Übergröße")
    linking = "[[Übergröße]], [x](Übergröße.md), [[übergröße#Prüfung]]\n"
    own = unicodedata.normalize("NFD", "# Zähler\n\n## Prüfung\n\nText.\n")
    folder = vault({"memory/config.yaml": "", f"memory/{apart}.md": own, "memory/b.md": linking})
    assert run("lint", cwd=folder).returncode == 0
    assert run("rename", f"memory/{apart}.md", "Maße", "--file", cwd=folder).returncode == 0
    assert (folder / "memory/b.md").read_text() == "[[Maße]], [x](Maße.md), [[Maße#Prüfung]]\n"
    assert run("lint", cwd=folder).returncode == 0
