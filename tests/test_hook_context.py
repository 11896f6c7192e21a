"""What hooks put before an agent: at the start what always holds, at a prompt what bears on it, else nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Files, Run

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_agent
from memory_kb.agents.payloads import read_hook_call
from memory_kb.store.logs import RetrievalLog
from memory_kb.text import count_tokens

Vault = Callable[[Files], Path]
Ask = Callable[..., str]

TRIVIAL = [
    "yes",
    "no",
    "ok",
    "y",
    "Yes, please.",
    "thanks!",
    "Thank you, that is all.",
    "continue",
    "go on",
    "go ahead",
    "keep going",
    "looks good to me",
    "LGTM",
    "commit",
    "commit and push",
    "push it",
    "run the tests",
    "run the tests again",
    "fix the failing tests",
    "now fix it",
    "try again",
    "undo that",
    "stop",
    "next",
    "option 2",
    "lass die Tests noch einmal laufen",
    "bitte committen und pushen",
    "ejecuta las pruebas otra vez",
    "relance les tests encore une fois",
    "запусти тесты ещё раз",
    "テストをもう一度実行してください",
    "再运行一次测试",
    "테스트를 다시 실행해 주세요",
    "1",
    "/compact",
    "do it",
    "explain",
    "<task-notification><task-id>a1</task-id><summary>the quokka fixture upload queue finished</summary></task-notification>",
    '<teammate-message teammate_id="b">the quokka fixture of the upload test sleeps</teammate-message>',
    "[Request interrupted by user]",
]


def note(entry_id: str, kind: str, text: str, **fields: str) -> str:
    said = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return f"---\nid: {entry_id}\nkind: {kind}\n{said}---\n{text}\n"


NOTES = {
    "memory/config.yaml": "embeddings:\n  provider: none\n",
    "memory/institutional.md": "We ship on Mondays.\n",
    "memory/learnings/wish.md": note("wish-1", "fact", "Answers come in Danish.", source="user_explicit"),
    "memory/learnings/policy.md": note("pol-1", "policy", "All timestamps are UTC.", priority="critical"),
    "memory/learnings/low.md": note("low-1", "preference", "Tabs are fine.", priority="normal"),
    "memory/learnings/upload.md": note("up-1", "fact", "The upload test is flaky because the quokka fixture sleeps."),
    "memory/rules/one.md": note("rule-1", "rule", "Queue long uploads.", confidence="0.8"),
    "memory/handoffs/handoff-001.md": note(
        "handoff-001", "handoff", "# Handoff: planner to coder\n\n## Done\n\n- Wrote the plan."
    ),
    "memory/episodes/a.md": note(
        "ep-2026-01-01-001", "episode", "x", title="Moved the queue", outcome="success", created_at="2026-01-01"
    ),
    "memory/learnings/vault.md": note("name-1", "fact", "The vault of the bank has two doors."),
    "memory/review/p.md": note("prop-1", "fact", "Perhaps so.", status="proposed"),
}


@pytest.fixture
def ask(open_kb: Callable[..., KnowledgeBase]) -> Ask:
    """A function that calls a hook and returns the context it gives."""

    def call(folder: Path, event: str, session: str = "s", **values: Any) -> str:
        agent = find_agent("claude-code")
        payload = {"session_id": session, "cwd": str(folder)} | values
        kb = open_kb(folder)
        kb.sync()  # a hook itself gives up indexing after 0.4 seconds
        output = kb.hook(event, read_hook_call(agent, event, json.dumps(payload).encode()), agent).output
        text = json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""
        assert isinstance(text, str)
        return text

    return call


def test_a_session_starts_with_what_always_holds(vault: Vault, ask: Ask) -> None:
    told = ask(vault(NOTES), "session-start", source="startup")
    for words in (
        "We ship on Mondays.",
        "Answers come in Danish. (wish-1)",
        "All timestamps are UTC. (pol-1)",
        "Queue long uploads.",
        "[handoff] Handoff: planner to coder: Done: Wrote the plan. (handoff-001)",
        "## Last episode\n- [episode] Moved the queue. 2026-01-01, outcome success. (ep-2026-01-01-001)",
        "1 proposal waits for the person's review",
    ):
        assert words in told
    assert told.index("Mondays") < told.index("Danish")
    assert "Tabs are fine" not in told
    assert "two doors" not in told  # nothing by the folder's name, which is `vault`
    assert "Left out" not in told


@pytest.mark.parametrize("source", ["compact", "clear"])
def test_what_a_compaction_or_a_clear_took_comes_again(source: str, vault: Vault, ask: Ask) -> None:
    folder = vault(NOTES)
    first = ask(folder, "session-start", source="startup")
    prompt = "Why is the upload test with the quokka fixture flaky?"
    assert "fixture sleeps" in ask(folder, "prompt", prompt=prompt)
    assert ask(folder, "prompt", prompt=f"Once more. {prompt}") == ""
    assert ask(folder, "session-start", source=source) == first
    assert "fixture sleeps" in ask(folder, "prompt", prompt=f"Again: {prompt}")


def test_a_resumed_session_gets_only_what_is_new(vault: Vault, ask: Ask) -> None:
    folder = vault(NOTES)
    ask(folder, "session-start", source="startup")
    assert ask(folder, "session-start", source="resume") == ""
    (folder / "memory/learnings/new.md").write_text(note("new-1", "policy", "Logs are JSON.", priority="high"))
    told = ask(folder, "session-start", source="resume", session="s")
    assert told == "" or "Logs are JSON." in told  # the same within seconds is one call of two configurations
    ask(folder, "prompt", prompt="yes")
    told = ask(folder, "session-start", source="resume")
    assert "Logs are JSON." in told
    assert "UTC" not in told


def test_a_session_without_an_id_that_goes_on_gets_its_start(vault: Vault, ask: Ask) -> None:
    assert "All timestamps are UTC." in ask(vault(NOTES), "session-start", session="", source="resume")


def test_a_subagent_is_shown_what_names_a_file_apart_from_its_session(vault: Vault, ask: Ask) -> None:
    fact = note("enc-1", "fact", "Encoding is a hot path: no logging.", applies_to="[src/a.py]")
    folder = vault(
        {"memory/config.yaml": NOTES["memory/config.yaml"], "memory/learnings/a.md": fact, "src/a.py": "x = 1\n"}
    )
    tool = {
        "tool_name": "Read",
        "tool_input": {"file_path": str(folder / "src/a.py")},
        "tool_response": {"type": "text"},
    }

    given = [
        "hot path" in ask(folder, "tool", **tool, **who, tool_use_id=f"toolu_{number}")
        for number, who in enumerate(({"agent_id": "a1"}, {"agent_id": "a1"}, {}, {}, {"agent_id": "b2"}))
    ]
    assert given == [True, False, True, False, True]


def test_a_session_that_goes_on_gets_nothing_that_comes_of_itself(vault: Vault, ask: Ask) -> None:
    own = {
        "memory/learnings/own.md": note(
            "own-1", "preference", "Logs are JSON.", source="user_explicit", priority="high", session_id="s"
        ),
        "memory/episodes/own.md": note(
            "ep-2026-02-01-001", "episode", "Looked at the quokka fixture of the upload test.", session_id="s"
        ),
    }
    folder = vault({"memory/config.yaml": NOTES["memory/config.yaml"]} | own)
    prompt = "Why is the upload test with the quokka fixture flaky?"
    assert ask(folder, "session-start", source="resume") == ""
    assert ask(folder, "prompt", prompt=prompt) == ""
    assert "Logs are JSON." in ask(folder, "session-start", source="compact")
    assert "Logs are JSON." in ask(folder, "session-start", source="resume", session="other")
    assert "ep-2026-02-01-001" in ask(folder, "prompt", prompt=prompt, session="third")


def test_the_start_has_a_budget_and_says_what_it_leaves_out(vault: Vault, ask: Ask) -> None:
    many = {
        f"memory/learnings/w{number}.md": note(
            f"many-{number:03}",
            "preference",
            f"Standing wish {number}: {'word ' * 30}.",
            source="user_explicit",
            created_at=f"2024-01-{number % 28 + 1:02}",
            reinforcement_count="9" if number == 77 else "0",
        )
        for number in range(200)
    }
    always = "We ship on Mondays. " * 300
    told = ask(vault(NOTES | many | {"memory/institutional.md": "Short."}), "session-start")
    assert count_tokens(told) <= 1_500 + 120
    assert "Left out for room: " in told
    assert "many-077" in told
    assert "handoff-001" in told
    assert "rule-1" in told
    again = ask(vault({"memory/institutional.md": always}), "session-start", session="t")
    assert again.count("We ship on Mondays.") == 300
    assert "many-077" in again


def test_quotes_and_dashes_of_a_prompt_are_text(vault: Vault, ask: Ask) -> None:
    prompt = 'The "upload test" is flaky with the -quokka fixture'
    assert "fixture sleeps" in ask(vault(NOTES), "prompt", prompt=prompt)


def test_trivial_prompts_get_nothing(busy: Path, ask: Ask) -> None:
    assert [prompt for prompt in TRIVIAL if ask(busy, "prompt", prompt=prompt)] == []


@pytest.fixture
def busy(vault: Vault) -> Path:
    """A vault with notes that say the words of trivial prompts."""
    words = (
        "Run the tests again before you commit and push.",
        "Fix failing tests first, then continue.",
        "Yes or no.",
        "Bitte die Tests noch einmal laufen lassen, dann committen und pushen.",
        "Ejecuta las pruebas otra vez, por favor.",
        "Continue, relance les tests encore une fois.",
        "Запусти тесты ещё раз, пожалуйста.",
        "テストをもう一度実行してからコミットしてください",
        "再运行一次测试然后提交并推送",
    )
    return vault(NOTES | {f"memory/learnings/t{i}.md": note(f"t-{i}", "fact", text) for i, text in enumerate(words)})


@pytest.mark.parametrize(
    "prompt",
    [
        "Write a haiku about the autumn wind over the harbour.",
        "The upload of my holiday pictures to the printer's web shop takes ages, which camera should I buy?",
        "Write unit tests for the new settings page, and fix the flaky one.",
        "Which port does the billing service listen on in staging?",
    ],
)
def test_a_prompt_about_something_else_gets_nothing(prompt: str, vault: Vault, ask: Ask) -> None:
    assert ask(vault(NOTES), "prompt", prompt=prompt) == ""


def test_a_prompt_in_chinese_is_as_long_as_its_words(vault: Vault, ask: Ask) -> None:
    long = "数据库迁移脚本要在部署之前运行。" + "其他的步骤以后再说,不急。" * 60
    others = {f"memory/learnings/o{i}.md": note(f"o-{i}", "fact", f"第{i}栋房子是蓝色的。") for i in range(40)}
    folder = vault(NOTES | others | {"memory/learnings/m.md": note("m-1", "fact", long)})
    assert "数据库迁移脚本" in ask(folder, "prompt", prompt="部署前要运行数据库迁移脚本吗")
    assert ask(folder, "prompt", prompt="再运行一次测试") == ""


def test_a_prompt_with_other_forms_of_the_words_of_a_note(vault: Vault, ask: Ask) -> None:
    others = {f"memory/learnings/o{i}.md": note(f"o-{i}", "fact", f"Дом номер {i} синий.") for i in range(40)}
    said = "Резервные копии базы данных хранятся в отдельном бакете."
    folder = vault(NOTES | others | {"memory/learnings/b.md": note("b-1", "fact", said)})
    assert "бакете" in ask(folder, "prompt", prompt="Где лежат резервная копия базы, в каком бакет хранится?")


def test_a_prompt_gets_three_entries_and_600_tokens_at_most(vault: Vault, ask: Ask) -> None:
    text = "The quokka fixture of the upload test sleeps. " + "It sleeps for long and longer still in every run. " * 40
    others = {f"memory/learnings/o{i}.md": note(f"o-{i}", "fact", f"House {i} is painted blue.") for i in range(120)}
    few = {f"memory/learnings/q{i}.md": note(f"q-{i}", "fact", f"{text} {i}") for i in range(9)}
    folder = vault(NOTES | others | few)
    told = ask(folder, "prompt", prompt="Why is the upload test with the quokka fixture flaky?")
    assert told.count("\n- [") == 3
    assert count_tokens(told) <= 600
    more = ask(folder, "prompt", prompt="And what else is known of the quokka fixture in the upload test?")
    shown = [line.rpartition("(")[2] for line in told.splitlines() if line.startswith("- [")]
    assert not any(name in more for name in shown)


def test_words_of_a_prompt_count_together_in_one_section(vault: Vault, ask: Ask) -> None:
    long = "\n\n".join(
        f"## Part {part}\n\n{'Houses are painted blue again. ' * 60}{word}."
        for part, word in enumerate(("wombats", "quokkas", "numbats"))
    )
    folder = vault(NOTES | {"memory/learnings/long.md": note("long-1", "fact", long)})
    prompt = "Where do the wombats keep what the quokkas took from the numbats?"
    assert ask(folder, "prompt", prompt=prompt) == ""
    (folder / "memory/learnings/near.md").write_text(
        note("near-1", "fact", "Quokkas took it from numbats, and wombats know.")
    )
    told = ask(folder, "prompt", session="other", prompt=prompt)
    assert "near-1" in told
    assert "long-1" not in told


def test_a_prompt_in_a_script_without_spaces_gets_what_bears_on_it(vault: Vault, ask: Ask) -> None:
    folder = vault(
        NOTES
        | {"memory/learnings/ja.md": note("ja-1", "fact", "請求書の取り込みにはウォンバットのロケールが必要です。")}
    )
    assert "ja-1" in ask(folder, "prompt", prompt="請求書の取り込みに失敗しました。ロケールは何が必要ですか?")


def test_a_note_of_this_session_comes_at_the_next_prompt(
    vault: Vault, ask: Ask, open_kb: Callable[..., KnowledgeBase]
) -> None:
    folder = vault(NOTES)
    ask(folder, "session-start")
    open_kb(folder).learn("The invoice importer needs the wombat locale.", kind="fact")
    assert "wombat locale" in ask(folder, "prompt", prompt="Which locale does the invoice importer need?")


def test_one_switch_turns_injection_off(vault: Vault, ask: Ask, run: Run) -> None:
    prompt = "Why is the upload test with the quokka fixture flaky?"
    folder = vault(NOTES | {"memory/config.yaml": "context:\n  hooks: off\n"})
    assert ask(folder, "session-start") == ""
    assert ask(folder, "prompt", prompt=prompt) == ""
    assert (folder / "memory/.memory-kb/sessions/s.jsonl").exists()
    (folder / "memory/config.yaml").write_text("embeddings:\n  provider: none\n")
    payload = json.dumps({"session_id": "t", "cwd": str(folder), "prompt": prompt})
    for setting, is_silent in (("off", True), ("on", False)):
        done = run("hook", "session-start", stdin=payload, env={"MEMORY_KB_CONTEXT_HOOKS": setting}, cwd=folder)
        assert (done.stdout == "") is is_silent
        (folder / "memory/.memory-kb/sessions/t.jsonl").unlink()


def test_the_floor_is_a_setting(vault: Vault, ask: Ask) -> None:
    prompt = (
        "The upload test is slow and its quokka waits for the network of the warehouse computers in Lisbon and Porto."
    )
    strict, lax = (NOTES | {"memory/config.yaml": f"context:\n  floor: {floor}\n"} for floor in (0.9, 0.05))
    folder = vault(lax)
    assert "up-1" in ask(folder, "prompt", prompt=prompt)
    (folder / "memory/config.yaml").write_text(str(strict["memory/config.yaml"]))
    assert ask(folder, "prompt", session="other", prompt=prompt) == ""


def test_an_episode_reads_as_sentences(vault: Vault, ask: Ask) -> None:
    episode = (
        "---\nid: ep-1\nkind: episode\ntitle: Why does the numbat importer drop rows?\noutcome: success\nfiles:\n- rows.py\n"
        "created_at: '2026-01-02T00:00:00Z'\n---\n# Why does the numbat importer drop rows?\n\n## Action log\n\n- t=4 pytest -> fail\n"
    )
    folder = vault({"memory/episodes/e.md": episode})
    told = ask(folder, "prompt", prompt="The numbat importer seems to drop rows, why?")
    assert "[episode] Why does the numbat importer drop rows? 2026-01-02, outcome success. Files: rows.py." in told
    assert "t=4" not in told


def test_what_hooks_showed_is_left_out_of_a_context_until_a_compaction(
    vault: Vault, ask: Ask, open_kb: Callable[..., KnowledgeBase]
) -> None:
    folder, prompt = vault(NOTES), "Why is the upload test with the quokka fixture flaky?"
    assert "up-1" in ask(folder, "prompt", prompt=prompt)
    log = RetrievalLog(folder / "memory/.memory-kb/log")
    assert "up-1" in log.shown_in("s")
    kb = open_kb(folder)
    assert "up-1" in kb.context(prompt).ids
    assert "up-1" not in kb.context(prompt, without=log.shown_in("s")).ids
    ask(folder, "session-start", source="compact")
    assert "up-1" not in log.shown_in("s")


def test_sessions_with_the_same_words_do_not_make_them_common(vault: Vault, ask: Ask) -> None:
    title = "Why does the upload test with the quokka fixture fail?"
    episodes = {
        f"memory/episodes/e{i}.md": f"---\nid: ep-{i}\nkind: episode\ntitle: {title}\n---\n# {title}\n"
        for i in range(9)
    }
    log = vault(NOTES | episodes)
    assert "quokka" in ask(log, "prompt", prompt=title)


def test_sessions_that_began_with_the_same_words_leave_room_for_what_is_known(vault: Vault, ask: Ask) -> None:
    prompt = "The numbat importer drops rows of the wombat ledger after a restart in the burrow, find out why"
    episodes = {
        f"memory/episodes/e{i}.md": note(f"ep-{i}", "episode", f"## Goal\n\n- {prompt}", title=f"Session {i}")
        for i in range(3)
    }
    known = {
        "memory/learnings/k1.md": note("k-1", "fact", "The numbat importer drops rows; restart the wombat first."),
        "memory/learnings/k2.md": note("k-2", "pitfall", "A restart of the numbat importer drops rows of the ledger."),
    }
    filler = {f"memory/learnings/f{i}.md": note(f"f-{i}", "fact", f"Quokka {i} likes tea.") for i in range(60)}
    told = ask(vault(NOTES | episodes | known | filler), "prompt", prompt=prompt)
    assert [entry_id in told for entry_id in ("k-1", "k-2")] == [True, True]
    assert told.count("[episode]") == 1


def test_words_that_all_sessions_begin_with_bring_none_of_them(vault: Vault, ask: Ask) -> None:
    order = "Solve the ticket as the manual checklist describes, with a reproduction first:"
    subjects = ["numbat", "wombat", "bilby", "dingo", "echidna", "possum", "kookaburra", "cassowary", "platypus"]
    episodes = {
        f"memory/episodes/e{i}.md": f"---\nid: ep-{i}\nkind: episode\ntitle: {order}\n---\n# {order} {subject} burrow\n"
        for i, subject in enumerate(subjects)
    }
    log = vault(NOTES | episodes)
    assert ask(log, "prompt", prompt=f"{order} wallaby eats grass") == ""
