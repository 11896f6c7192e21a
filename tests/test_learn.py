"""Learning and forgetting: what is written, what is reinforced, what is refused, and no byte besides."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import frontmatter
import pytest
import yaml
from conftest import NOW, Files, Run, clean_environment, write_files
from forking import command
from hypothesis import example, given
from hypothesis import strategies as st
from support import notes_of
from watching import eventually

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_agent
from memory_kb.agents.payloads import read_hook_call
from memory_kb.errors import MemoryKBError, SecretRefused, UsageError
from memory_kb.learning.render_entry import Draft, check_draft, render_new_entry
from memory_kb.learning.text_comparison import fingerprint
from memory_kb.markdown.document import parse_document
from memory_kb.model import KIND_ALIASES, KINDS

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]

RULE = "Always freeze the clock before a test sleeps, or the event loop waits for real."
LATER = NOW + timedelta(days=10)


def test_many_notes_that_are_not_indexed_are_indexed_in_the_background(
    vault: MakeVault, open_kb: OpenKB, run: Run
) -> None:
    folder = vault({f"memory/learnings/n{i}.md": f"House {i} is painted blue.\n" for i in range(301)})
    assert run("learn", "Doors are green.", "--vault", folder).returncode == 0
    eventually(lambda: open_kb(folder).status().pending == 0)


# -- what is written ---------------------------------------------------------------------------


def test_a_learning_is_a_file_of_its_own(folder: Path, open_kb: OpenKB) -> None:
    learned = open_kb(folder).learn("Staging is reset every night.\n\nAt 02:00 UTC.", tags=["staging", "ci"])
    assert learned.action == "created"
    assert uuid.UUID(learned.id).version == 4
    assert learned.path == f"memory/learnings/staging-is-reset-every-night-{learned.id[:8]}.md"
    assert notes_of(folder) == {
        f"vault/{learned.path}": (
            f"---\nid: {learned.id}\nkind: fact\ntype: declarative\ndomain: team\nimportance: 0.4\nphase: unknown\nstatus: active\n"
            "reinforcement_count: 0\nlast_reinforced: '2026-11-21'\ncreated_at: '2026-11-21T12:00:00Z'\ntags: [staging, ci]\n---\n\n"
            "Staging is reset every night.\n\nAt 02:00 UTC.\n"
        ).encode()
    }


ALWAYS = [
    "id",
    "kind",
    "type",
    "domain",
    "importance",
    "phase",
    "status",
    "reinforcement_count",
    "last_reinforced",
    "created_at",
]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("handoff", "ledger")])
def test_the_fields_of_every_kind_stand_in_their_order(kind: str) -> None:
    draft = check_draft(Draft("Text.", kind, "Title", ("t",), "high", ("src/**",), "observed"))
    post = frontmatter.loads(render_new_entry(draft, "x", NOW))
    optional = ["title", "tags", "priority", "applies_to", "source"]
    evidence = {
        "rule": ["confidence", "maturity", "success_count", "failure_count"],
        "skill": ["confidence", "success_count", "failure_count"],
    }
    assert list(post.metadata) == [*ALWAYS, *optional, *evidence.get("rule" if kind == "pitfall" else kind, [])]
    assert (post["type"], post["importance"], post["created_at"], post["last_reinforced"]) == (
        KINDS[kind].type,
        0.8,
        "2026-11-21T12:00:00Z",
        "2026-11-21",
    )
    assert all(isinstance(post[name], str) for name in ("created_at", "last_reinforced")), "dates are quoted"


@pytest.mark.parametrize(
    "draft",
    [
        Draft("Text."),
        Draft("Text.", "rule"),
        Draft("Text.", "skill", "Title"),
        Draft("Text.", tags=("a", "b"), applies_to=("src/**",)),
    ],
)
def test_every_field_has_a_line_of_its_own(draft: Draft) -> None:
    block = render_new_entry(draft, "x", NOW).split("---\n")[1]
    assert [line.partition(":")[0] for line in block.splitlines()] == list(yaml.safe_load(block))
    assert block.startswith(f"id: x\nkind: {draft.kind}\n")


@pytest.mark.parametrize(
    ("kind", "priority", "source", "importance"),
    [
        pytest.param("policy", None, None, 0.95, id="policy"),
        pytest.param("fact", None, None, 0.4, id="fact"),
        pytest.param("fact", "critical", None, 0.95, id="priority-decides"),
        pytest.param("preference", None, None, 0.5, id="preference"),
        pytest.param("preference", None, "user_explicit", 0.95, id="preference-of-a-person"),
        pytest.param("preference", "normal", "user_explicit", 0.4, id="preference-with-priority"),
        pytest.param("fact", None, "user_explicit", 0.4, id="fact-of-a-person"),
    ],
)
def test_importance_follows_from_kind_priority_and_source(
    kind: str, priority: str | None, source: str | None, importance: float
) -> None:
    assert (
        frontmatter.loads(render_new_entry(Draft("Text.", kind, priority=priority, source=source), "x", NOW))[
            "importance"
        ]
        == importance
    )


@pytest.mark.parametrize(
    ("source", "confidence"),
    [(None, 0.5), ("user_explicit", 1.0), ("observed", 0.8), ("inferred", 0.8), ("external_unverified", 0.5)],
)
def test_confidence_follows_from_the_source(source: str | None, confidence: float) -> None:
    post = frontmatter.loads(render_new_entry(Draft("Text.", "rule", source=source), "x", NOW))
    assert (post["confidence"], post["maturity"]) == (confidence, "nascent")


@pytest.mark.parametrize(
    ("place", "beginning"),
    [
        pytest.param({}, "memory/learnings/", id="project"),
        pytest.param({"kind": "rule"}, "memory/rules/", id="rule"),
        pytest.param({"kind": "anti-pattern"}, "memory/rules/", id="pitfall-goes-to-the-rules"),
        pytest.param({"kind": "workflow"}, "memory/skills/", id="skill"),
        pytest.param({"kind": "episode"}, "memory/episodes/2026-11-21/", id="episode-has-a-day"),
        pytest.param({"job": "api"}, "memory/jobs/api/learnings/", id="job"),
        pytest.param({"job": "api", "task": "t1", "kind": "rule"}, "memory/jobs/api/tasks/t1/rules/", id="task"),
        pytest.param({"scope": "global"}, "~global/learnings/", id="global"),
        pytest.param({"scope": "global", "kind": "skill"}, "~global/skills/", id="global-skill"),
    ],
)
def test_where_a_learning_goes(
    folder: Path, home: Path, open_kb: OpenKB, place: dict[str, str], beginning: str
) -> None:
    kb = open_kb(folder)
    learned = kb.learn(RULE, **place)  # type: ignore[arg-type]
    assert learned.path == f"{beginning}always-freeze-the-clock-before-a-test-sleeps-or-the-event-{learned.id[:8]}.md"
    (path,) = notes_of(folder, home)
    assert path == learned.path.replace("~global", "home") if "scope" in place else path == f"vault/{learned.path}"
    shown = kb.show(learned.id)
    assert (shown.path, shown.scope) == (
        learned.path,
        "global" if "scope" in place else "task" if "task" in place else "job" if "job" in place else "project",
    )


def test_in_a_plain_folder_learnings_get_a_folder(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({"notes/a.md": "Mine.\n"})
    learned = open_kb(folder).learn(RULE)
    assert learned.path.startswith("learnings/always-freeze")
    assert set(notes_of(folder)) == {"vault/notes/a.md", f"vault/{learned.path}"}


def test_a_vault_inside_the_home_is_no_part_of_it(tmp_path: Path, open_kb: OpenKB) -> None:
    """The path that `learn` gives is the one that `show` takes."""
    folder = write_files(tmp_path / "home/work", {"memory/config.yaml": ""})
    kb = open_kb(folder)
    learned = kb.learn(RULE)
    assert learned.path.startswith("memory/learnings/")
    assert kb.show(learned.id).path == learned.path


@pytest.mark.parametrize(
    ("text", "title", "slug"),
    [
        pytest.param("## Retry, then: fail?", None, "retry-then-fail", id="heading"),
        pytest.param("Text", "Ünïcode & Søn", "ünïcode-søn", id="title"),
        pytest.param("検索は速い", None, "検索は速い", id="other-script"),
        pytest.param("../../etc/passwd", None, "etc-passwd", id="path"),
        pytest.param("🎉", None, "note", id="no-letters"),
        pytest.param("\n\n  > quote\nmore", None, "quote", id="first-line-with-words"),
        pytest.param("Text", "..", "note", id="dots"),
    ],
)
def test_the_name_of_the_file(folder: Path, open_kb: OpenKB, text: str, title: str | None, slug: str) -> None:
    learned = open_kb(folder).learn(text, title=title)
    assert learned.path == f"memory/learnings/{slug}-{learned.id[:8]}.md"
    assert (folder / learned.path).is_file()


TRICKY = [
    pytest.param("One.\n\n---\nid: other\n---\nTwo.", id="entry"),
    pytest.param("---\nid: other\nkind: rule\n---\nTwo.", id="entry-first"),
    pytest.param("One.\r\n\r\n---\r\nid: other\r\n---\r\nTwo.", id="entry-with-crlf"),
    pytest.param("One.\n\n---\nid: other\n---\nTwo.\n\n---\nkind: fact\n---\nThree.", id="two-entries"),
    pytest.param("One.\n \t\n---  \ntype: directive\n--- \nTwo.", id="spaces"),
    pytest.param("```\n\n---\nid: other\n---\n```\nText.", id="fence"),
    pytest.param("Rule below.\n\n---\n\nRule above.", id="rules"),
    pytest.param("```\nnever closed", id="unclosed-fence"),
    pytest.param("Text\n---", id="ends-with-dashes"),
    pytest.param("---", id="dashes-alone"),
]


@pytest.mark.parametrize("text", TRICKY)
def test_a_learning_stays_one_entry(folder: Path, open_kb: OpenKB, text: str) -> None:
    learned = open_kb(folder).learn(text)
    written = (folder / learned.path).read_bytes().decode()
    (entry,) = parse_document(written, learned.path).entries
    assert entry.id == learned.id
    assert written[entry.body.start :].split() == text.split()


PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=60).filter(str.strip)
MARKDOWN = (
    st.lists(
        st.sampled_from(
            ["", "---", "--- ", "id: a", "kind: rule", "```", "Text.", "# H", " ---", "\t", "...", "é", "x: ["]
        ),
        max_size=12,
    )
    .map("\n".join)
    .filter(str.strip)
)


@example("---\nid:0\n---", None, [], [], "fact")
@given(
    PLAIN | MARKDOWN,
    st.none() | PLAIN,
    st.lists(PLAIN, max_size=3),
    st.lists(PLAIN, max_size=2),
    st.sampled_from([*KINDS, *KIND_ALIASES]),
)
@example("0", "0\xa0", [], [], "policy")
def test_what_is_rendered_reads_back_as_one_entry(
    text: str, title: str | None, tags: list[str], globs: list[str], kind: str
) -> None:
    try:
        draft = check_draft(Draft(text, kind, title, tuple(tags), None, tuple(globs)))
    except SecretRefused:
        return
    written = render_new_entry(draft, "the-id", NOW)
    document = parse_document(written, "a.md")
    assert document.problems == ()
    (entry,) = document.entries
    assert (entry.id, entry.kind, entry.status) == ("the-id", KIND_ALIASES.get(kind, kind), "active")
    assert entry.metadata.get("title") == (title or None)
    assert entry.metadata.get("tags", []) == tags
    assert entry.metadata.get("applies_to", []) == globs
    assert written[entry.body.start :].split() == text.split()
    assert written.endswith("\n")
    assert fingerprint(written[entry.body.start :]) == fingerprint(text)


# -- what is refused ---------------------------------------------------------------------------

AWS = "AKIA" + "ABCDEFGH" * 2


@pytest.mark.parametrize(
    "draft",
    [
        pytest.param({"text": f"deploy with {AWS}"}, id="text"),
        pytest.param({"text": "Fine.", "title": f"key {AWS}"}, id="title"),
        pytest.param({"text": "Fine.", "tags": ["ok", AWS]}, id="tag"),
        pytest.param({"text": "Fine.", "applies_to": [f"src/{AWS}"]}, id="glob"),
        pytest.param({"text": "password: hunter2hunter", "force": True}, id="forced"),
        pytest.param({"text": f"key {AWS}", "scope": "global"}, id="global"),
        pytest.param({"text": f"key {AWS}", "job": "api", "task": "t"}, id="task"),
    ],
)
def test_a_credential_is_refused_and_nothing_is_written(
    folder: Path, home: Path, open_kb: OpenKB, draft: dict[str, object]
) -> None:
    with pytest.raises(SecretRefused) as caught:
        open_kb(folder).learn(**draft)  # type: ignore[arg-type]
    assert AWS not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert notes_of(folder, home) == {}
    assert not (folder / "memory/learnings").exists()
    assert not home.exists()


SENSELESS = {
    "empty": {"text": ""},
    "blank": {"text": " \n\t"},
    "kind": {"text": "x", "kind": "poem"},
    "priority": {"text": "x", "priority": "urgent"},
    "source": {"text": "x", "source": "hearsay"},
    "scope": {"text": "x", "scope": "galaxy"},
    "task-without-job": {"text": "x", "task": "t1"},
    "job-that-climbs": {"text": "x", "job": "../up"},
    "job-of-dots": {"text": "x", "job": ".."},
    "job-without-name": {"text": "x", "job": ""},
    "task-with-backslash": {"text": "x", "job": "j", "task": "a\\b"},
    "job-with-nul": {"text": "x", "job": "j\x00"},
    "job-with-line-break": {"text": "x", "job": "j\nk"},
    "global-job": {"text": "x", "job": "j", "scope": "global"},
    "not-utf-8": {"text": "bad \udcff"},
    "title-not-utf-8": {"text": "x", "title": "bad \udcff"},
}


def test_a_call_that_makes_no_sense_writes_nothing(folder: Path, home: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    for call in SENSELESS.values():
        with pytest.raises(UsageError):
            kb.learn(**call)  # type: ignore[arg-type]
    assert notes_of(folder, home) == {}


def test_a_file_in_the_way_is_an_error_with_a_name(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({"memory/config.yaml": "", "memory/learnings": "not a folder"})
    with pytest.raises(MemoryKBError, match="memory/learnings"):
        open_kb(folder).learn(RULE)


# -- twins -------------------------------------------------------------------------------------

OWN = (
    "\ufeff---\r\n# by hand\r\nid: clock   # mine\r\nkind: 'rule'\r\nunknown: {a: 1,   b: [x]}\r\n"
    'reinforcement_count: 2 # seen\r\ntags:\r\n  - tests\r\nlast_reinforced: "2026-01-01"   # then\r\nimportance: 0.80\r\n---\r\n'
    f"{RULE}\r\n"
)


def test_a_near_twin_is_reinforced_and_only_two_values_change(vault: MakeVault, open_kb: OpenKB) -> None:
    others = "\n---\nid: other\nkind: rule\nreinforcement_count: 2\n---\nSomething else altogether.  \n\n---\n\nwithout final newline \u2028"
    folder = vault(
        {
            "memory/rules/clock.md": OWN + others.replace("\n", "\r\n"),
            "memory/rules/z.md": "---\nid: z\nkind: rule\n---\nUnrelated.\n",
        }
    )
    before = notes_of(folder)
    learned = open_kb(folder).learn(RULE.upper() + "!!", kind="rule")
    assert (learned.id, learned.path, learned.action) == ("clock", "memory/rules/clock.md", "reinforced")
    expected = (OWN + others.replace("\n", "\r\n")).replace(
        "reinforcement_count: 2 # seen", "reinforcement_count: 3 # seen"
    )
    expected = expected.replace('"2026-01-01"   # then', '"2026-11-21"   # then')
    assert notes_of(folder) == before | {"vault/memory/rules/clock.md": expected.encode()}


def test_values_that_are_missing_are_added_when_a_twin_is_reinforced(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({"memory/a.md": f"---\nkind: rule # no id\n---\n{RULE}\n"})
    assert open_kb(folder).learn(RULE, kind="rule").action == "reinforced"
    assert (
        folder / "memory/a.md"
    ).read_text() == f"---\nkind: rule # no id\nreinforcement_count: 1\nlast_reinforced: '2026-11-21'\n---\n{RULE}\n"


def test_learning_twice_makes_one_file(folder: Path, open_kb: OpenKB) -> None:
    first = open_kb(folder).learn(RULE)
    again = open_kb(folder, LATER).learn(f"  {RULE.replace(' ', '  ')} ")
    assert (again.id, again.path, again.action) == (first.id, first.path, "reinforced")
    post = frontmatter.loads((folder / first.path).read_text())
    assert (post["reinforcement_count"], post["last_reinforced"], post["created_at"]) == (
        1,
        "2026-12-01",
        "2026-11-21T12:00:00Z",
    )
    assert len(notes_of(folder)) == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" ".join(f"word{n} goes with thing{n}." for n in range(200)), id="of-many-chunks"),
        pytest.param("検索は速い。索引は捨ててよい。", id="in-japanese"),
        pytest.param("to be or not to be", id="of-stop-words"),
        pytest.param("C++", id="of-one-name"),
        pytest.param("# Heading\n\n## Sub\n\nText below two headings.\n\n- a\n- b", id="with-headings"),
        pytest.param('Say "exactly this" and -never that', id="with-query-signs"),
        pytest.param("One.\n\n---\nid: other\n---\nTwo.", id="with-dashes"),
    ],
)
def test_any_text_has_its_twin(folder: Path, open_kb: OpenKB, text: str) -> None:
    kb = open_kb(folder)
    first = kb.learn(text)
    assert kb.learn(text).id == first.id
    assert len(notes_of(folder)) == 1


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"kind": "pitfall"}, id="kind"),
        pytest.param({"scope": "global"}, id="scope"),
        pytest.param({"job": "api"}, id="job"),
        pytest.param({"job": "api", "task": "t1"}, id="task"),
        pytest.param({"force": True}, id="forced"),
        pytest.param({"text": RULE + " Also pin the zone and the seed."}, id="more-words"),
    ],
)
def test_what_is_elsewhere_or_else_is_no_twin(
    folder: Path, home: Path, open_kb: OpenKB, second: dict[str, str]
) -> None:
    kb = open_kb(folder)
    first = kb.learn(RULE, kind="rule")
    before = (folder / first.path).read_bytes()
    other = kb.learn(**{"text": RULE, "kind": "rule", **second})  # type: ignore[arg-type]
    assert (other.action, other.id != first.id) == ("created", True)
    assert (folder / first.path).read_bytes() == before
    assert len(notes_of(folder, home)) == 2


@pytest.mark.parametrize(
    ("mine", "yours"),
    [
        ({"job": "a"}, {"job": "b"}),
        ({"job": "a", "task": "t"}, {"job": "a", "task": "u"}),
        ({"job": "a", "task": "t"}, {"job": "a"}),
    ],
)
def test_jobs_and_tasks_keep_their_own(
    folder: Path, open_kb: OpenKB, mine: dict[str, str], yours: dict[str, str]
) -> None:
    kb = open_kb(folder)
    first = kb.learn(RULE, **mine)  # type: ignore[arg-type]
    assert kb.learn(RULE, **yours).action == "created"  # type: ignore[arg-type]
    assert kb.learn(RULE, **mine).id == first.id  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "action"), [pytest.param(20, "reinforced", id="20-of-21"), pytest.param(19, "created", id="19-of-20")]
)
def test_alike_means_more_than_ninety_five_percent(folder: Path, open_kb: OpenKB, words: int, action: str) -> None:
    text = " ".join(f"w{n}" for n in range(words))
    kb = open_kb(folder)
    kb.learn(text)
    assert kb.learn(f"{text} more").action == action


def test_an_archived_or_proposed_entry_is_no_twin(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/archive/2026-01/a.md": f"---\nid: a\n---\n{RULE}\n",
            "memory/review/b.md": f"---\nid: b\n---\n{RULE}\n",
        }
    )
    before = notes_of(folder)
    learned = open_kb(folder).learn(RULE)
    assert learned.action == "created"
    assert {path: data for path, data in notes_of(folder).items() if path in before} == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Run the migration before the deploy.", "Run the deploy before the migration."),
        (
            "word " * 3 + " ".join(f"w{n}" for n in range(60)) + " timeout is 8 seconds",
            "word " * 3 + " ".join(f"w{n}" for n in range(60)) + " timeout is 30 seconds",
        ),
        (" ".join(f"a{n}" for n in range(60)) + " do cache", " ".join(f"a{n}" for n in range(60)) + " do not cache"),
    ],
    ids=["other order", "other number", "negated"],
)
def test_what_means_something_else_is_kept_however_alike(
    folder: Path, open_kb: OpenKB, first: str, second: str
) -> None:
    kb = open_kb(folder)
    assert kb.learn(first).action == "created"
    assert kb.learn(second).action == "created"


def test_what_people_keep_in_memory_md_is_not_touched(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({"memory/MEMORY.md": f"---\nid: mm\nkind: fact\n---\n{RULE}\n"})
    before = notes_of(folder)
    assert open_kb(folder).learn(RULE).action == "created"
    assert before.items() <= notes_of(folder).items()


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo terminal")
@pytest.mark.parametrize(
    ("named", "environment", "source"),
    [
        ((), {}, "user_explicit"),
        ((), {"CLAUDECODE": "1"}, None),
        ((), {"GEMINI_CLI": "1"}, None),
        (("--source", "inferred"), {}, "inferred"),
    ],
    ids=["a person", "claude code", "gemini cli", "named"],
)
def test_what_a_person_types_on_a_terminal_is_theirs(
    folder: Path, home: Path, named: tuple[str, ...], environment: dict[str, str], source: str | None
) -> None:
    wish = "Always answer in British English."
    learn = command("--vault", folder, "learn", wish, "--kind", "preference", *named)
    ours, theirs = os.openpty()
    try:
        env = clean_environment(home) | environment
        assert subprocess.run(learn, stdin=theirs, stdout=theirs, stderr=theirs, env=env, check=False).returncode == 0
    finally:
        os.close(theirs)
        os.close(ours)
    with KnowledgeBase.open(folder, home, environ={}) as kb:
        (entry,) = [kb.show(view.id) for view in kb.list(kind="preference")]
        assert entry.metadata.get("source") == source
        agent = find_agent("claude-code")
        call = read_hook_call(agent, "session-start", json.dumps({"session_id": "s", "cwd": str(folder)}).encode())
        assert (wish in kb.hook("session-start", call, agent).output) == (source == "user_explicit")


def test_what_comes_through_a_pipe_is_nobodys(folder: Path, run: Run, open_kb: OpenKB) -> None:
    run("--vault", folder, "learn", "The queue is SQS.")
    (entry,) = open_kb(folder).list(kind="fact")
    assert "source" not in open_kb(folder).show(entry.id).metadata


LIMIT = 1_000_000


def learn(folder: Path, home: Path, data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command("--vault", folder, "learn", "-", "--json"),
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
        env=clean_environment(home),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"x" * (LIMIT + 1), "longer than 1,000,000 characters", id="by-one"),
        pytest.param("\U0001f9a6".encode() * (LIMIT + 1), "longer than 1,000,000 characters", id="in-characters"),
        pytest.param(b"One\x00two.", "contains NUL bytes", id="nul"),
        pytest.param("Otters hold hands.".encode("utf-16"), "contains NUL bytes", id="utf-16"),
    ],
)
def test_what_is_no_learning_is_refused_in_one_sentence(folder: Path, home: Path, data: bytes, said: str) -> None:
    done = learn(folder, home, data)
    answer = json.loads(done.stderr or done.stdout)
    assert (done.returncode, answer["code"]) == (2, "usage")
    assert said in answer["error"]
    assert not (folder / "memory/learnings").exists()


@pytest.mark.slow
def test_a_long_one_is_kept(folder: Path, home: Path) -> None:
    assert learn(folder, home, "\U0001f9a6 ".encode() * (LIMIT // 2)).returncode == 0


def test_a_mark_before_the_text_is_no_part_of_it(run: Run, folder: Path) -> None:
    done = run("--vault", folder, "learn", "-", "--json", stdin="\ufeffBom text about otters.\n")
    note = (folder / json.loads(done.stdout)["path"]).read_bytes()
    assert b"\xef\xbb\xbf" not in note
    assert note.endswith(b"\nBom text about otters.\n")
    assert run("--vault", folder, "learn", "-", stdin="\ufeff \n").returncode == 2
