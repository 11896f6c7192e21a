"""CONTINUITY.md: two sections are memory-kb's, every other byte is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run
from hypothesis import given
from hypothesis import strategies as st
from support import entry

from memory_kb import KnowledgeBase, injected_text
from memory_kb.errors import CannotSplice, UsageError
from memory_kb.memory import Memory
from memory_kb.model import Location
from memory_kb.store.file_edits import NoteText
from memory_kb.text import decode
from memory_kb.vault import hold_lock
from memory_kb.working.continuity import CONTINUITY_SECTIONS, find_damage, first_own_words, name_line, plan_continuity

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

BEGIN, AVOID, END = "<!-- memory-kb:begin relevant -->", "<!-- memory-kb:begin avoid -->", "<!-- memory-kb:end -->"


def continued(entry_id: str, kind: str, title: str) -> Memory:
    return Memory(entry_id, "a.md", "", Location(), title, "", kind)


RELEVANT = (
    continued("sem-001", "rule", "Zyzzyva first."),
    continued("api-implementation", "skill", "Build an endpoint."),
)
MISTAKES = (continued("p-1", "pitfall", "Never zyzzyva twice."),)
BOTH = f"{BEGIN}\nold\n{END}\n\n{AVOID}\n{END}\n"


def planned(text: str, relevant: tuple[Memory, ...] = RELEVANT, avoid: tuple[Memory, ...] = MISTAKES) -> str | None:
    """Return what a plan makes of a text; None where it changes nothing."""
    change = plan_continuity(
        "CONTINUITY.md", NoteText("CONTINUITY.md", text.encode("utf-8", "surrogateescape")), relevant, avoid
    )
    assert change is None or change.action == "write"
    return decode(change.data) if change else None


def outside(text: str) -> str:
    """Return a text without what stands between the marks of our sections, found line by line."""
    kept: list[str] = []
    is_ours = False
    for line in text.split("\n"):
        if is_ours and line.strip("\ufeff \t\r") == END:
            is_ours = False
        if not is_ours:  # a mark has the line end of its section
            kept.append(line.rstrip("\r") if line.strip("\ufeff \t\r") in (BEGIN, AVOID, END) else line)
        if line.strip("\ufeff \t\r") in (BEGIN, AVOID):
            is_ours = True
    return "\n".join(kept)


def marks_in(text: str) -> list[int]:
    """Return how often each of our sections begins."""
    lines = [line.strip("\ufeff \t\r") for line in text.split("\n")]
    return [lines.count(BEGIN), lines.count(AVOID)]


def test_the_exact_form() -> None:
    assert planned("# Now\n\nFix it.\n") == (
        "# Now\n\nFix it.\n\n"
        "<!-- memory-kb:begin relevant -->\n## Relevant Memories (Auto-Retrieved)\n\n"
        "- [sem-001] Zyzzyva first.\n- [skill: api-implementation] Build an endpoint.\n<!-- memory-kb:end -->\n\n"
        "<!-- memory-kb:begin avoid -->\n## Mistakes to Avoid (From Learnings)\n\n- Never zyzzyva twice.\n<!-- memory-kb:end -->\n"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"Mine.\n{BEGIN}\n- [a] One.\n", 2),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", 1),
        (f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n", 1),
        (f"{BEGIN}\n{AVOID}\n{END}\n{END}\n", 1),
        (f"{BEGIN}\n<!-- memory-kb:end relevant -->\n", 1),
        (f"{BEGIN}\nx\n<!-- memory-kb:end --\n", 1),
    ],
)
def test_damaged_marks_are_reported_and_nothing_is_written(text: str, line: int) -> None:
    assert (find_damage("CONTINUITY.md", text) or "").startswith(f"CONTINUITY.md:{line}: ")
    with pytest.raises(CannotSplice, match=rf"CONTINUITY\.md:{line}: "):
        planned(text)


@pytest.mark.parametrize(
    "text",
    [
        BOTH,
        f"{AVOID}\n{END}\nbetween\n{BEGIN}\n{END}\nafter",
        f"Top.\n\n  {BEGIN}\nold\n{END}\nBelow without a newline",
        f"{END}\nMine.\n",
        f"The block from `{BEGIN}` to\nthe next {END} is not mine.\n",
        "\ufeff# Now\r\n\r\nFix it.",
        "",
        "\ufeff",
        "no newline",
        "<!-- memory-kb:begin -->\nsomebody's block\n<!-- memory-kb:end -->\n",
        "bytes \udcff that are no UTF-8\n",
        "<!-- a comment -->\n---\nid: x\n---\n",
    ],
)
def test_all_else_stays_byte_for_byte(text: str) -> None:
    made = planned(text)
    assert made is not None
    assert outside(made).startswith(outside(text))
    assert marks_in(made) == [1, 1]
    assert planned(made) is None


def test_line_ends_are_the_files_own() -> None:
    made = planned("# Now\r\n")
    assert made
    assert made.count("\n") == made.count("\r\n")


def test_nothing_to_say_makes_nothing() -> None:
    assert plan_continuity("CONTINUITY.md", None, (), ()) is None
    assert planned("Mine.\n", (), ()) is None
    emptied = planned(BOTH, (), ())
    assert emptied
    assert "old" not in emptied
    assert CONTINUITY_SECTIONS["relevant"] in emptied


def test_a_summary_cannot_fake_a_mark() -> None:
    evil = continued(f"x{END}", "fact", f"one\n{END}\n{BEGIN} memory-kb:begin\u2028# Head " + "long " * 60)
    made = planned("", (evil,), (evil,))
    assert made
    assert find_damage("CONTINUITY.md", made) is None
    assert planned(made, (evil,), (evil,)) is None
    assert len(name_line(evil)) < 200


PIECES = [
    *("Mine.", "", "# Now", "## Plan", "- [a] item", "```", "---", "<!-- note -->", "é 検索", "tab\t", "\x0c"),
    *(
        BEGIN,
        AVOID,
        END,
        f"  {END}",
        "<!-- memory-kb:begin -->",
        "<!-- memory-kb:begin relevant",
        "<!-- memory-kb:",
        END.upper(),
    ),
    *(CONTINUITY_SECTIONS["relevant"], CONTINUITY_SECTIONS["avoid"], f"x {BEGIN}", "memory-kb:end"),
]
texts = st.builds(
    lambda lines, newline, bom, tail: bom + newline.join(lines) + tail * newline,
    st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from([BOTH.strip(), f"{BEGIN}\nold\n{END}"])), max_size=9),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
    st.integers(0, 2),
)


@given(text=texts, count=st.integers(0, 2))
def test_any_file(text: str, count: int) -> None:
    """Whatever is in the file: it is refused whole, or only what is ours changes, once."""
    relevant, avoid = RELEVANT[:count], MISTAKES[:count]
    if find_damage("CONTINUITY.md", text):
        with pytest.raises(CannotSplice):
            planned(text, relevant, avoid)
        return
    made = planned(text, relevant, avoid)
    if made is None:
        assert not count or (BEGIN in text and AVOID in text)
        return
    assert outside(made).startswith(outside(text))
    assert marks_in(made) == [1, 1]
    assert planned(made, relevant, avoid) is None
    assert "yzzyva" not in injected_text.remove_injected(made)


def test_what_is_ours_is_known_as_ours() -> None:
    made = planned("")
    assert made
    assert injected_text.classify_own_text(made) == "whole"
    assert first_own_words("Fix the parser.\n" + made, 100) == "Fix the parser."


# -- the verb ------------------------------------------------------------------------------

VAULT = {
    "memory/config.yaml": "",
    "memory/learnings/redis.md": entry(
        "Redis sessions expire after an hour.", id="redis", kind="fact", title="Redis sessions"
    ),
    "memory/learnings/old.md": entry("Redis sessions live for ever.", id="old", kind="fact", status="archived"),
    "memory/learnings/older.md": entry(
        "Redis sessions are slow.", id="older", kind="fact", links="[{to: redis, relation: superseded_by}]"
    ),
    "memory/rules/flush.md": entry("Never flush redis sessions at noon.", id="flush", kind="pitfall"),
    "memory/skills/move.md": entry(
        "# Skill: move\n\n1. Move redis sessions.", id="move", kind="skill", name="move", description="Move sessions"
    ),
    "memory/ledgers/a.md": entry("Redis sessions.", id="ledger-a", kind="ledger", agent_id="a"),
    "memory/learnings/far.md": entry("Lunch is at twelve.", id="far", kind="fact"),
}


def test_refresh_and_again(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(VAULT | {"memory/CONTINUITY.md": "# Now\n\nMoving redis sessions.\n"})
    kb = open_kb(folder)
    report = kb.continuity.refresh()
    text = (folder / "memory/CONTINUITY.md").read_text()
    assert text.startswith("# Now\n\nMoving redis sessions.\n\n")
    assert set(report.relevant) == {"redis", "move"}
    assert report.avoid == ("flush",)
    assert "- [redis] Redis sessions\n" in text
    assert "- [skill: move] Move sessions\n" in text
    assert "\n- Never flush redis sessions at noon.\n" in text
    assert kb.continuity.refresh().run.run is None
    assert kb.search("Auto-Retrieved").hits == ()
    for name in report.relevant:
        assert kb.show(name).id == name


def test_a_new_file_and_taking_it_back(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(VAULT)
    kb = open_kb(folder)
    assert kb.continuity.refresh("redis sessions", dry_run=True).run.diff.startswith(
        "--- /dev/null\n+++ memory/CONTINUITY.md\n"
    )
    assert not (folder / "memory/CONTINUITY.md").exists()
    kb.continuity.refresh("redis sessions")
    assert (folder / "memory/CONTINUITY.md").exists()
    kb.undo()
    assert not (folder / "memory/CONTINUITY.md").exists()


def test_the_file_of_a_job(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        VAULT
        | {
            "memory/jobs/api/learnings/a.md": entry("Redis of the api.", id="api"),
            "memory/jobs/web/learnings/w.md": entry("Redis of the web.", id="web"),
        }
    )
    report = open_kb(folder).continuity.refresh("redis", job="api")
    assert report.path == "memory/jobs/api/CONTINUITY.md"
    assert "api" in report.relevant
    assert "web" not in report.relevant


def test_a_plain_folder_does_not_echo_itself(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"redis.md": "Redis sessions expire.\n", "CONTINUITY.md": "Redis sessions now.\n"})
    kb = open_kb(folder)
    kb.continuity.refresh()
    assert kb.continuity.refresh().run.run is None
    assert (folder / "CONTINUITY.md").read_text().count("- [") == 1


def test_nothing_to_go_by(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(VAULT))
    with pytest.raises(UsageError, match="nothing says"):
        kb.continuity.refresh()
    assert kb.continuity.refresh(only_if_there=True).run.run is None


def test_what_is_shown_is_logged_as_put_before_the_agent(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(VAULT))
    kb.continuity.refresh("redis sessions")
    line = json.loads((kb.vault.machine / "log/retrievals.jsonl").read_text().splitlines()[-1])
    assert (line["verb"], line["injected"]) == ("continuity", True)
    assert "flush" in line["ids"]


def test_damage_ends_with_six_and_leaves_the_file(vault: MakeVault, run: Run) -> None:
    damaged = f"Mine.\n{BEGIN}\n"
    folder = vault(VAULT | {"memory/CONTINUITY.md": damaged})
    done = run("--vault", folder, "continuity", "refresh", "--task", "redis sessions")
    assert done.returncode == 6
    assert "memory/CONTINUITY.md:2" in done.stderr
    assert (folder / "memory/CONTINUITY.md").read_text() == damaged
    shown = run("--vault", folder, "continuity", "show", "--json")
    assert json.loads(shown.stdout)["problem"].startswith("memory/CONTINUITY.md:2")


def test_the_command(vault: MakeVault, run: Run) -> None:
    folder = vault(VAULT)
    assert "There is no memory/CONTINUITY.md" in run("--vault", folder, "continuity", "show").stderr
    told = json.loads(run("--vault", folder, "continuity", "refresh", "--task", "redis sessions", "--json").stdout)
    assert (told["path"], told["avoid"]) == ("memory/CONTINUITY.md", ["flush"])
    assert CONTINUITY_SECTIONS["avoid"] in run("--vault", folder, "continuity", "show").stdout
    again = run("--vault", folder, "continuity", "refresh", "--task", "redis sessions")
    assert (again.returncode, again.stdout) == (0, "")


def test_a_context_in_a_session_keeps_it_up(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(VAULT | {"memory/CONTINUITY.md": "# Now\r\n\r\nMoving redis sessions. \u00e9\r\n"})
    file = folder / "memory/CONTINUITY.md"
    before = file.read_bytes()
    kb = open_kb(folder)
    kb.context("redis sessions")
    assert file.read_bytes() == before
    kb.context("redis sessions", session="s1")
    after = file.read_bytes()
    assert after.startswith(before)
    assert b"- [redis] Redis sessions" in after
    assert b"Never flush redis sessions at noon." in after
    kb.context("redis sessions", session="s1")
    assert file.read_bytes() == after
    kb.undo()
    assert file.read_bytes() == before


def test_a_context_makes_no_continuity_and_fails_for_none(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(VAULT)
    kb = open_kb(folder)
    assert kb.context("redis sessions", session="s1").text
    assert not (folder / "memory/CONTINUITY.md").exists()
    damaged = "Mine.\n<!-- memory-kb:begin relevant -->\n- [a] One.\n"
    (folder / "memory/CONTINUITY.md").write_text(damaged)
    context = kb.context("redis sessions", session="s1")
    assert context.text
    assert any("memory/CONTINUITY.md was left as it is" in reason for reason in context.degraded)
    assert (folder / "memory/CONTINUITY.md").read_text() == damaged


def test_a_context_does_not_wait_for_other_writers(
    vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_kb.working.continuity._PATIENCE", 0.1)
    folder = vault(VAULT | {"memory/CONTINUITY.md": "Moving redis sessions.\n"})
    kb = open_kb(folder)
    kb.sync()
    with hold_lock(kb.vault.machine / "lock", 0):
        context = kb.context("redis sessions", session="s1")
    assert any("was left as it is" in reason for reason in context.degraded)
    assert (folder / "memory/CONTINUITY.md").read_text() == "Moving redis sessions.\n"


def test_a_context_writes_nothing_into_a_plain_folder(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"redis.md": "Redis sessions expire.\n", "CONTINUITY.md": "Redis sessions now.\n"})
    assert open_kb(folder).context("redis sessions", session="s1").text
    assert (folder / "CONTINUITY.md").read_text() == "Redis sessions now.\n"


def test_what_no_context_gives_is_not_named(vault: MakeVault, open_kb: Open) -> None:
    files = {
        "memory/learnings/out.md": entry(
            "Redis sessions are sold.", id="out", kind="fact", source="external_unverified"
        ),
        "memory/rules/bad.md": entry("Redis sessions are shared.", id="bad", kind="rule", confidence=0.01),
    }
    report = open_kb(vault(VAULT | files)).continuity.refresh("redis sessions")
    assert set(report.relevant) == {"redis", "move"}


def test_an_episode_that_failed_is_no_example(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(
        vault(
            {
                f"memory/episodes/{outcome}.md": entry(
                    f"Zyzzyva login, {outcome}.", id=f"ep-{outcome}", kind="episode", outcome=outcome
                )
                for outcome in ("success", "failure", "mixed")
            }
        )
    )
    assert kb.continuity.refresh("zyzzyva login").relevant == ("ep-success",)
    text = kb.context("zyzzyva login").text
    assert "failure" not in text
    assert text.index("login, success") < text.index("login, mixed")
