"""Search: who may be found at all, by status, kind, scope, job, task and filter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conftest import Files
from support import entry, found, ids

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]


# -- visibility -----------------------------------------------------------------------------

ALL_STATUSES = ["active", "compacted", "archived", "retired", "rejected", "proposed"]


@pytest.mark.parametrize(
    ("path", "fields", "is_found", "asked_for"),
    [
        ("memory/learnings/a.md", {"status": "active"}, True, {"status": ["active"]}),
        ("memory/learnings/a.md", {"status": "compacted"}, True, {"status": ["compacted"]}),
        ("memory/learnings/a.md", {"status": "archived"}, True, {"status": ["archived"]}),
        ("memory/archive/2026-01/a.md", {}, True, {"status": ["archived"]}),
        ("memory/learnings/a.md", {"status": "retired"}, False, {"status": ["retired"]}),
        ("memory/learnings/a.md", {"status": "rejected"}, False, {"status": ["rejected"]}),
        ("memory/learnings/a.md", {"status": "proposed"}, False, {"status": ["proposed"]}),
        ("memory/review/a.md", {}, False, {"status": ["proposed"]}),
        ("memory/learnings/a.md", {"links": "[{to: b, relation: superseded_by}]"}, True, {"status": ["active"]}),
        ("memory/handoffs/a.md", {"kind": "handoff"}, False, {"kind": ["handoff"]}),
        ("memory/ledgers/a.md", {"kind": "ledger"}, False, {"kind": ["ledger"]}),
        ("institutional.md", {}, True, {"learning_type": ["institutional"]}),
        ("memory/institutional.md", {}, True, {"learning_type": ["institutional"]}),
        ("memory/proxy-tasks/a.md", {}, True, {"learning_type": ["proxy"]}),
        ("memory/proxy-tasks/nginx-proxy.md", {}, True, {"learning_type": ["proxy"]}),
        ("memory/learnings/nginx-proxy.md", {}, True, {"learning_type": ["task"]}),
        ("memory/proxy.md", {}, False, {"learning_type": ["proxy"]}),
        ("memory/jobs/api/proxy.md", {}, False, {"learning_type": ["proxy"]}),
    ],
    ids=[
        "active",
        "compacted",
        "archived",
        "archive folder",
        "retired",
        "rejected",
        "proposed",
        "review folder",
        "superseded",
        "handoff",
        "ledger",
        "institutional beside",
        "institutional inside",
        "proxy task",
        "proxy task by a like name",
        "a name that ends in proxy",
        "proxy",
        "proxy of a job",
    ],
)
def test_who_is_found_by_a_search(
    vault: Vault, open_kb: Open, path: str, fields: dict[str, object], is_found: bool, asked_for: dict[str, list[str]]
) -> None:
    kb = open_kb(vault({"memory/config.yaml": "", path: entry("A zebra.", **(fields or {"id": "x"}))}))
    assert found(kb, "zebra") == ([path] if is_found else [])
    assert found(kb, "zebra", **asked_for) == [path]


def test_an_archived_hit_is_marked(vault: Vault, open_kb: Open) -> None:
    (hit,) = (
        open_kb(vault({"memory/config.yaml": "", "memory/archive/2026-01/a.md": "A zebra.\n"})).search("zebra").hits
    )
    assert hit.status == "archived"


def test_a_retired_entry_that_is_asked_for_scores_0(vault: Vault, open_kb: Open) -> None:
    (hit,) = (
        open_kb(vault({"memory/learnings/a.md": entry("A zebra.", id="x", status="retired")}))
        .search("zebra", status=["retired"])
        .hits
    )
    assert (hit.score, hit.parts.prominence) == (0.0, 0.0)


SCOPED: dict[str, str | bytes] = {
    "memory/learnings/p.md": "A zebra.\n",
    "memory/jobs/api/learnings/j.md": "A zebra.\n",
    "memory/jobs/api/tasks/one/learnings/t.md": "A zebra.\n",
    "memory/jobs/api/tasks/two/learnings/u.md": "A zebra.\n",
    "memory/jobs/web/learnings/k.md": "A zebra.\n",
    "memory/jobs/web/tasks/one/learnings/v.md": "A zebra.\n",
    "../home/learnings/g.md": "A zebra.\n",
}


SEEN: list[tuple[dict[str, Any], str]] = [
    ({}, "gjkptuv"),
    ({"job": "api"}, "gjp"),
    ({"job": "api", "task": "one"}, "gjpt"),
    ({"job": "web", "task": "one"}, "gkpv"),
    ({"job": "none"}, "gp"),
    ({"job": "api", "scope": ["job"]}, "j"),
    ({"scope": ["task"]}, "tuv"),
    ({"scope": ["team"]}, "tuv"),
    ({"scope": ["session"]}, "jk"),
    ({"scope": ["global"]}, "g"),
    ({"scope": ["project", "global"]}, "gp"),
]


def test_jobs_and_tasks_do_not_see_their_siblings(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault(SCOPED))
    for how, seen in SEEN:
        assert "".join(sorted(Path(path).stem for path in found(kb, "zebra", limit=20, **how))) == seen, how


def test_a_task_without_its_job_is_an_error(vault: Vault, open_kb: Open) -> None:
    with pytest.raises(UsageError):
        open_kb(vault(SCOPED)).search("zebra", task="one")


@pytest.mark.parametrize(
    ("paths", "how", "winner"),
    [
        (["memory/learnings/a.md", "../home/learnings/a.md"], {}, 0),
        (["memory/jobs/api/learnings/a.md", "memory/learnings/a.md", "../home/learnings/a.md"], {"job": "api"}, 0),
        (["memory/jobs/api/tasks/one/a.md", "memory/jobs/api/learnings/a.md"], {}, 0),
        (["memory/jobs/api/learnings/a.md", "memory/learnings/a.md"], {"job": "web"}, 1),
        (["memory/jobs/api/tasks/two/a.md", "memory/learnings/a.md"], {"job": "api", "task": "one"}, 1),
    ],
    ids=[
        "project over global",
        "job over both",
        "task over job",
        "another job does not count",
        "another task does not count",
    ],
)
def test_of_the_same_id_the_most_specific_scope_wins(
    vault: Vault, open_kb: Open, paths: list[str], how: dict[str, object], winner: int
) -> None:
    kb = open_kb(
        vault(
            {"memory/config.yaml": ""}
            | {path: entry(f"Zebra text {number}.", id="same", kind="fact") for number, path in enumerate(paths)}
        )
    )
    assert found(kb, "zebra", **how) == [paths[winner].replace("../home", "~global")]


def test_the_same_id_twice_within_one_scope_loses_nothing(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(
        vault(
            {
                f"docs/{name}.md": entry(f"The {name} zebra.", id="overview", type="docs")
                for name in ("red", "green", "blue")
            }
        )
    )
    assert sorted(found(kb, "zebra")) == ["docs/blue.md", "docs/green.md", "docs/red.md"]


# -- filters --------------------------------------------------------------------------------

FILTERED: dict[str, str | bytes] = {
    "memory/rules/pit.md": entry(
        "A zebra.",
        id="pit",
        kind="pitfall",
        tags="[Network, 'deep sea', Übung]",
        applies_to="['src/**/*.py']",
        created_at="'2026-03-01'",
    ),
    "memory/learnings/fact.md": entry("A zebra.", id="fact", kind="fact", tags="[net]", created_at="'2026-02-28'"),
    "memory/skills/skill.md": entry("A zebra.", id="skill", kind="workflow", applies_to="[docs, '*.sql']"),
    "memory/learnings/wish.md": entry(
        "A zebra.", id="wish", type="directive", tags="network", created_at="2026-11-20T10:00:00Z"
    ),
}


FILTER_RESULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": ["pitfall"]}, ["pit"]),
    ({"kind": ["anti-pattern", "fact"]}, ["fact", "pit"]),
    ({"kind": ["procedure"]}, ["skill"]),
    ({"kind": "skill"}, ["skill"]),
    ({"type": ["directive"]}, ["wish"]),
    ({"type": ["corrective", "procedural"]}, ["pit", "skill"]),
    ({"tag": ["network"]}, ["pit", "wish"]),
    ({"tag": ["NET"]}, ["fact"]),
    ({"tag": ["deep sea"]}, ["pit"]),
    ({"tag": ["übung"]}, ["pit"]),
    ({"tag": ["net", "network"]}, ["fact", "pit", "wish"]),
    ({"tag": ["work"]}, []),
    ({"tag": ["network,deep sea"]}, []),
    ({"since": date(2026, 3, 1)}, ["pit", "wish"]),
    ({"since": date(2026, 2, 28)}, ["fact", "pit", "wish"]),
    ({"since": date(2027, 1, 1)}, []),
    ({"kind": ["pitfall"], "tag": ["net"]}, []),
    ({"file": "src/api/users.py"}, ["pit"]),
    ({"file": "./src/api/users.py"}, ["pit"]),
    ({"file": "src\\api\\users.py"}, ["pit"]),
    ({"file": "src/users.py"}, ["pit"]),
    ({"file": "lib/users.py"}, []),
    ({"file": "docs/guide/a.md"}, ["skill"]),
    ({"file": "db/deep/up.sql"}, ["skill"]),
    ({"file": "documents/a"}, []),
]


def test_filters(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault(FILTERED))
    for how, expected in FILTER_RESULTS:
        assert sorted(ids(kb, "zebra", **how)) == expected, how
        if "file" in how:
            assert sorted(ids(kb, "", **how)) == expected, how


@pytest.mark.parametrize(
    "how",
    [{"kind": ["novel"]}, {"type": ["x"]}, {"scope": ["galaxy"]}, {"status": ["gone"]}, {"learning_type": ["y"]}],
    ids=str,
)
def test_a_filter_that_is_no_word_of_the_format_is_an_error(
    vault: Vault, open_kb: Open, how: dict[str, list[str]]
) -> None:
    with pytest.raises(UsageError, match="unknown"):
        open_kb(vault(FILTERED)).search("zebra", **how)  # type: ignore[arg-type]


def test_a_rare_filter_finds_what_the_best_hits_do_not_hold(vault: Vault, open_kb: Open) -> None:
    files = {
        f"memory/learnings/{number:03}.md": entry("Zebra zebra zebra.", id=f"n{number}", kind="fact")
        for number in range(500)
    }
    files["memory/rules/rare.md"] = entry(
        "One zebra among so many other words that it ranks last of all of them here.", id="rare", kind="pitfall"
    )
    kb = open_kb(vault(files))
    assert ids(kb, "zebra", kind=["pitfall"]) == ["rare"]


def test_a_file_alone_finds_the_strongest_entries_for_it(vault: Vault, open_kb: Open) -> None:
    files = {
        "memory/rules/weak.md": entry("One.", id="weak", kind="rule", importance=0.2, applies_to="['src/**']"),
        "memory/rules/strong.md": entry("Two.", id="strong", kind="rule", importance=0.9, applies_to="['src/**']"),
        "memory/rules/old.md": entry(
            "Three.", id="old", kind="rule", importance=0.9, applies_to="['src/**']", created_at="'2020-01-01'"
        ),
        "memory/rules/other.md": entry("Four.", id="other", kind="rule", importance=0.9),
    }
    result = open_kb(vault(files)).search(file="src/a.py")
    assert [hit.id for hit in result.hits] == ["strong", "weak", "old"]
    assert [hit.parts.bm25 for hit in result.hits] == [None, None, None]
    assert result.degraded == ()
