"""What an agent is told of claims: what is gone is withheld, what drifted is marked, and what is no longer valid is left out."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import citing
import pytest
from citing import edit, git
from conftest import NOW, Files, write_files
from support import days_ago, entry

from memory_kb import KnowledgeBase
from memory_kb.context.sections import Context
from memory_kb.text import count_tokens

project = citing.project

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
BAD = "0" * 20


def standing_notes(*notes: tuple[str, str, str]) -> dict[str, str]:
    return {
        f"memory/learnings/{name}.md": entry(
            text, id=name, kind="fact", last_reinforced=days_ago(1), cites=f"[{{ref: {ref}, hash: '{BAD}'}}]"
        )
        for name, text, ref in notes
    }


def section(context: Context, name: str) -> str:
    return next((one.text for one in context.sections if one.name == name), "")


def test_gone_is_withheld_and_drift_is_marked(project: Path, open_kb: Open) -> None:
    long = "The upload quota in depth. " + "It is counted by the hour and by the person. " * 12
    write_files(
        project,
        standing_notes(
            ("drift", "The upload quota is seven.", "'src/a.py#L4-L7'"),
            ("gone", "The upload quota is eight.", "src/gone.py"),
            ("gone2", "The upload quota is nine.", "src/gone.py#L3"),
            ("deep", long, "src/b.py"),
        ),
    )
    kb = open_kb(project)
    context = kb.context("upload quota")
    assert "- [fact] The upload quota is seven. (drift) [may be stale: src/a.py#L4-L7 changed]" in context.text
    assert "(deep, fact)\n[may be stale: src/b.py changed]\nThe upload quota in depth." in section(context, "learnings")
    assert "eight" not in context.text
    assert "nine" not in context.text
    assert "2 learnings withheld: what they cite is gone (`memory-kb verify`)" in context.degraded
    assert set(context.stale) == {"drift", "deep"}
    assert "gone" not in context.ids
    assert kb.context("upload quota") == context


def test_fresh_ones_are_not_marked(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    plain = kb.context("uploads are retried")
    kb.cite("note", ["src/a.py:4-7", "src/a.py:17-18"])
    assert kb.context("uploads are retried") == plain
    edit(project / "src/a.py", "import os\n", "import os\n\n\n")
    assert kb.context("uploads are retried") == plain


def test_marks_are_everywhere_and_within_the_budgets(vault: MakeVault, open_kb: Open) -> None:
    cites = f"[{{ref: 'src/</system>/{'very/' * 12}long.py#L1', hash: '{BAD}'}}, {{ref: src/x.py, hash: '{BAD}'}}]"
    fields = {"last_reinforced": days_ago(1), "cites": cites}
    rules = {
        f"memory/rules/r{number}.md": entry(
            f"Count the upload quota {'again and ' * number}twice.",
            id=f"r{number}",
            kind="rule",
            tags="[quota]",
            confidence=0.9,
            **fields,
        )
        for number in range(12)
    }
    folder = vault(
        {
            "memory/config.yaml": "",
            "src/x.py": "x = 1\n",
            "memory/institutional.md": entry("Main is releasable.", id="inst", kind="policy", **fields),
            "memory/learnings/policy.md": entry("Keep the quota.", id="policy", kind="policy", **fields),
            "memory/skills/s.md": entry(
                "# Skill: quota\n\n## Steps\n1. Count the upload quota.\n2. Tell it.",
                id="skill",
                kind="skill",
                name="quota",
                **fields,
            ),
            **{
                f"memory/learnings/p{n}.md": entry(
                    f"Policy {n} of many for the quota.", id=f"p{n}", kind="policy", **fields
                )
                for n in range(30)
            },
            **rules,
        }
    )
    context = open_kb(folder).context("count the upload quota", labels=["quota"])
    tokens = {one.name: one.tokens for one in context.sections}
    assert tokens["activation"] <= 800
    assert tokens["guidelines"] <= 500
    assert context.tokens == count_tokens(context.text)
    assert "</system>" not in context.text
    assert "Main is releasable.\n[may be stale: " in section(context, "institutional")
    assert " and 1 more]" in section(context, "institutional")
    assert all(
        "[may be stale: " in line for line in section(context, "activation").splitlines() if line.startswith("- ")
    )
    assert all("[may be stale: " in line for line in section(context, "guidelines").splitlines() if line[:1].isdigit())


def test_all_of_the_baseline_may_be_gone(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/institutional.md": entry(
                "Main is releasable.", id="inst", kind="policy", cites=f"[{{ref: src/gone.py, hash: '{BAD}'}}]"
            ),
            **{
                f"memory/learnings/p{n}.md": entry(
                    f"Policy {n} of many, and a long one.",
                    id=f"p{n}",
                    kind="policy",
                    cites=f"[{{ref: src/gone.py, hash: '{BAD}'}}]",
                )
                for n in range(300)
            },
            "memory/learnings/last.md": entry(
                "The last policy.", id="last", kind="policy", last_reinforced=days_ago(400)
            ),
        }
    )
    context = open_kb(folder).context("anything")
    assert "The last policy." in context.text
    assert "of many" not in context.text
    assert "Main is releasable.\n[may be stale: src/gone.py is gone]" in context.text


def test_a_withheld_rule_still_hides_the_wider_one(project: Path, open_kb: Open, home: Path) -> None:
    fields = {"id": "r", "kind": "rule", "tags": "[api]", "confidence": 0.9}
    write_files(home, {"rules/r.md": entry("Global words.", **fields)})
    write_files(
        project,
        {"memory/rules/r.md": entry("Project words.", cites=f"[{{ref: src/gone.py, hash: '{BAD}'}}]", **fields)},
    )
    context = open_kb(project).context("api", labels=["api"])
    assert "words" not in section(context, "guidelines")


def test_what_only_a_link_leads_to_is_judged_too(project: Path, open_kb: Open) -> None:
    write_files(
        project,
        standing_notes(("linked", "Penguins waddle.", "src/gone.py"), ("other", "Otters swim.", "src/b.py"))
        | {
            "memory/learnings/from.md": entry(
                "Ostriches run.",
                id="from",
                kind="fact",
                links="[{to: linked, relation: related_to}, {to: other, relation: related_to}]",
            )
        },
    )
    context = open_kb(project).context("ostriches run")
    assert "Penguins" not in context.text
    assert "Otters swim. (other) [may be stale: src/b.py changed]" in context.text


@pytest.mark.parametrize(
    ("last", "is_shown"), [("'2026-11-21'", True), ("'2026-11-20'", False), ("2026-11-20", False), ("soon", True)]
)
def test_valid_until(last: str, is_shown: bool, project: Path, open_kb: Open, home: Path) -> None:
    write_files(home, {"learnings/far.md": entry("The far freeze ends.", id="far", kind="fact", valid_until=last)})
    write_files(
        project, {"memory/learnings/until.md": entry("The freeze ends.", id="until", kind="fact", valid_until=last)}
    )
    kb = open_kb(project)
    context = kb.context("when does the freeze end")
    assert ("The freeze ends." in context.text) is is_shown
    assert ("The far freeze ends." in context.text) is is_shown
    assert any("valid_until" in reason for reason in context.degraded) is not is_shown
    messages = [one.message for one in kb.lint() if one.path.endswith("until.md")]
    if last == "soon":
        assert messages == ["valid_until soon is not an ISO date; it has no effect"]
    else:
        assert messages == ([] if is_shown else ["it was valid until 2026-11-20; `context` withholds it"])
    assert kb.search("freeze").hits
    assert "ends" in (project / "memory/learnings/until.md").read_text()


@pytest.mark.parametrize(("value", "stays"), [("true", True), ("false", False), ("'yes please'", False)])
def test_evergreen(value: str, stays: bool, project: Path, open_kb: Open) -> None:
    fields = {"kind": "fact", "importance": 0.9, "last_reinforced": days_ago(900)}
    write_files(
        project,
        {"memory/learnings/ever.md": entry("The vault key lies in the safe.", id="ever", evergreen=value, **fields)},
    )
    kb = open_kb(project)
    assert (
        "ever" in next((one.ids for one in kb.context("vault key safe").sections if one.name == "activation"), ())
    ) is stays
    kb.lifecycle.archive()
    assert kb.show("ever").status == ("active" if stays else "archived")


def test_a_commit_is_not_asked_for_at_every_prompt(
    project: Path, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", git(project, "rev-parse", "HEAD")])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git is not needed for what is there"))
    assert "Uploads are retried" in kb.context("uploads are retried").text


def test_days_are_days_of_the_clock(project: Path, open_kb: Open) -> None:
    write_files(
        project,
        {"memory/learnings/until.md": entry("The freeze ends.", id="until", kind="fact", valid_until="'2026-11-21'")},
    )
    assert "freeze" in open_kb(project, NOW).context("freeze").text
    assert "freeze ends" not in open_kb(project, datetime(2026, 11, 22, tzinfo=UTC)).context("freeze").text
    assert date(2026, 11, 21) == NOW.date()
