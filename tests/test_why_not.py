"""why-not: the step at which a search loses an entry, for every step there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Files, Run, write_files
from fake_provider import FakeProvider
from support import days_ago, entry

from memory_kb import KnowledgeBase
from memory_kb.errors import UnknownEntry
from memory_kb.store.logs import Retrieval, RetrievalLog

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

NOTES: Files = {
    "memory/config.yaml": "ignore: [drafts]\n",
    "memory/learnings/plain.md": entry(
        "Otters hold hands while they sleep.", id="plain", tags="[sea]", created_at="'2026-05-01'"
    ),
    "memory/learnings/gone.md": entry("Otters were retired.", id="gone", status="retired"),
    "memory/rules/rule.md": entry("Otters need rules.", id="rule", kind="rule", applies_to="['src/**']"),
    "memory/handoffs/hand.md": entry("Otters handed over.", id="hand", kind="handoff"),
    "memory/proxy.md": entry("Otters by proxy.", id="proxy"),
    "memory/jobs/a/learnings/job.md": entry("Otters of job a.", id="job"),
    "memory/twice.md": entry("Otters at the project.", id="twice"),
    "memory/jobs/a/twice.md": entry("Otters at the job.", id="twice"),
    "memory/drafts/draft.md": "Otters in a draft.",
    "memory/.hidden.md": "Otters in hiding.",
    "memory/data.txt": "Otters in a text file.",
}


STEPS: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("otters", "plain", {}, "found", "at rank"),
    ("otters", "memory/learnings/plain.md:2", {}, "found", "at rank"),
    ("otters", "gone", {}, "hidden", "only with --status retired"),
    ("otters", "gone", {"status": "retired"}, "found", ""),
    ("otters", "plain", {"status": "retired"}, "filtered", "--status asks for retired"),
    ("otters", "hand", {}, "hidden", "only with --kind handoff"),
    ("otters", "plain", {"kind": "rule"}, "filtered", "its kind is fact, and --kind asks for rule"),
    ("otters", "proxy", {}, "hidden", "--learning-type proxy"),
    ("otters", "plain", {"learning_type": "proxy"}, "filtered", "--learning-type"),
    ("otters", "plain", {"type": "corrective"}, "filtered", "--type"),
    ("otters", "plain", {"scope": "global"}, "filtered", "--scope"),
    ("otters", "rule", {"tag": "sea"}, "filtered", "--tag"),
    ("otters", "plain", {"since": date(2026, 6, 1)}, "filtered", "--since"),
    ("otters", "plain", {"file": "src/a.py"}, "filtered", "--file"),
    ("", "rule", {"file": "src/a.py"}, "found", ""),
    ("otters", "job", {"job": "b"}, "filtered", "--job or --task"),
    ("badgers quokkas", "plain", {}, "no-shared-term", "none of the words badgers, quokkas"),
    ('"hold paws" otters', "plain", {}, "found", ""),
    ('otters "of job"', "plain", {}, "phrase", 'does not say "of job"'),
    ("otters -sleep", "plain", {}, "excluded", 'says "sleep"'),
    ("otters", "memory/twice.md:5", {}, "shadowed", "more specific scope"),
    ("otters", "plain", {"max_chars": 10}, "budget", "--max-chars 10"),
    ("otters", "memory/drafts/draft.md", {}, "not-indexed", "the setting ignore"),
    ("otters", "memory/.hidden.md", {}, "not-indexed", "hidden folders"),
    ("otters", "memory/data.txt", {}, "not-indexed", ".md"),
]


def test_the_step_at_which_it_was_lost(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(NOTES))
    for query, wanted, how, step, said in STEPS:
        answer = kb.why_not(query, wanted, **how)
        assert answer.step == step, answer
        assert said in answer.reason
        hits = kb.search(query, **how).hits
        is_found = wanted in {key for hit in hits for key in (hit.id, f"{hit.path}:2", f"{hit.path}:5")}
        assert is_found == (step == "found")


def test_an_entry_that_is_nowhere_is_an_error(vault: MakeVault, open_kb: Open) -> None:
    with pytest.raises(UnknownEntry):
        open_kb(vault(NOTES)).why_not("otters", "nothing-like-it")


def test_outside_the_pool_it_says_what_the_last_one_has(vault: MakeVault, open_kb: Open) -> None:
    notes = {f"n{number:03}.md": "otters otters otters" for number in range(205)}
    kb = open_kb(vault(notes | {"weak.md": entry("otters " + "and much else besides " * 40, id="weak")}))
    answer = kb.why_not("otters", "weak")
    assert answer.step == "outside-pool"
    assert answer.score is not None
    assert answer.needed is not None
    assert 0 < answer.score < answer.needed


def test_the_words_that_an_entry_has_and_lacks_are_named_the_rarest_first(vault: MakeVault, open_kb: Open) -> None:
    notes = {f"n{number:02}.md": f"Otters sleep in burrow {number}, with moss." for number in range(70)}
    files = notes | {"moss.md": entry("Moss, and otherwise nothing.", id="moss"), "fern.md": "Ferns."}
    answer = open_kb(vault(files)).why_not("otters sleep moss ferns", "moss")
    assert 'shares "moss" and lacks ferns, ' in answer.reason + " ".join(answer.details), answer


@pytest.mark.parametrize(
    ("fields", "folder", "step"),
    [
        ({"created_at": days_ago(900), "importance": "1.0"}, "learnings", "decayed"),
        ({"importance": "0.6"}, "jobs/a/tasks/t", "scope"),
        ({"importance": "0.01"}, "jobs/a/tasks/t", "score"),
        ({"importance": "0.39"}, "learnings", "score"),
    ],
)
def test_the_factor_that_kept_it_down(
    fields: dict[str, str], folder: str, step: str, vault: MakeVault, open_kb: Open
) -> None:
    """Of the factors in which hits above it are better."""
    others = {
        f"memory/{folder}/c{number}.md": entry(f"Otters swim in river number {number}.", id=f"c{number}")
        for number in range(12)
    }
    it = {"memory/learnings/it.md": entry("Otters swim in river number 99.", id="it", **fields)}
    kb = open_kb(vault({"memory/config.yaml": ""} | others | it))
    answer = kb.why_not("otters swim", "it", limit=5)
    assert answer.step == step, answer
    assert answer.score is not None
    assert answer.needed is not None
    assert answer.score < answer.needed
    assert any("importance" in line for line in answer.details)


def test_near_repetitions_are_distinguished_from_low_scores(vault: MakeVault, open_kb: Open) -> None:
    twins = {
        f"memory/learnings/t{number}.md": entry(
            f"Otters swim in the green river at dawn with {number} friends.", id=f"t{number}"
        )
        for number in range(4)
    }
    other = {
        "memory/learnings/other.md": entry(
            "Otters dive, too, and sea lions bark all day long on the pier.", id="other", importance="0.45"
        )
    }
    kb = open_kb(vault({"memory/config.yaml": "ranking: {mmr_lambda: 0.3}\n"} | twins | other))
    shown = [hit.id for hit in kb.search("otters swim", limit=2).hits]
    lost = next(name for name in ("t1", "t2", "t3", "t0") if name not in shown)
    assert {kb.why_not("otters swim", name, limit=2).step for name in shown} == {"found"}
    assert kb.why_not("otters swim", lost, limit=2).step in ("variety", "score")


def test_with_vectors_it_says_how_near_it_is(tmp_path: Path, home: Path) -> None:
    with FakeProvider() as fake:
        notes = {f"n{number:03}.md": f"automobile automobile{number}" for number in range(150)}
        folder = write_files(tmp_path / "vault", notes | {"far.md": entry("Nothing but rivers and gardens.", id="far")})
        environ = {
            "HOME": str(home.parent),
            "MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url,
            "MEMORY_KB_EMBEDDINGS_MODEL": "m",
        }
        with KnowledgeBase.open(folder, home, environ=environ) as kb:
            kb.sync()
            answer = kb.why_not("vehicle", "far")
            assert answer.step == "no-shared-term"
            assert "in meaning" in answer.reason
            assert kb.why_not("vehicle", "far", mode="vector").step == "outside-pool"


def test_the_command(vault: MakeVault, run: Run) -> None:
    folder = vault(NOTES)
    done = run("--vault", folder, "why-not", "otters", "gone")
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "hidden: its status is retired, which is found only with --status retired",
    )
    done = run("--vault", folder, "why-not", "otters", "plain", "--json")
    answer = json.loads(done.stdout)
    assert (answer["step"], answer["id"], answer["rank"] >= 1) == ("found", "plain", True)
    assert run("--vault", folder, "why-not", "otters", "nothing").returncode == 4


PROMPT = "Why is the upload test with the quokka fixture flaky?"


@pytest.mark.parametrize(
    ("prompt", "wanted", "how", "step", "said"),
    [
        ("run the tests again", "up", {}, "few-words", "too few words of its own"),
        (PROMPT, "up", {}, "found", "quokka"),
        (PROMPT, "up", {"session": "s"}, "shown", "shown it already"),
        (PROMPT, "otter", {}, "few-rare-words", "it shares none of the rare words of the prompt; 3 are needed"),
        (PROMPT, "near", {}, "few-rare-words", "it shares quokka of the rare words of the prompt; 3 are needed"),
        (
            f"{PROMPT} Or is it Kubernetes, Terraform, Ansible, Puppet, Chef, Vagrant or Nomad?",
            "up",
            {},
            "below-floor",
            "context.floor",
        ),
    ],
)
def test_why_a_prompt_got_nothing(
    prompt: str, wanted: str, how: dict[str, str], step: str, said: str, vault: MakeVault, open_kb: Open
) -> None:
    others = {f"memory/learnings/o{i}.md": entry(f"House {i} is painted blue.", id=f"o-{i}") for i in range(40)}
    notes = {
        "memory/learnings/up.md": entry("The upload test is flaky because the quokka fixture sleeps.", id="up"),
        "memory/learnings/near.md": entry("A quokka was here.", id="near"),
        "memory/learnings/otter.md": entry("Otters hold hands.", id="otter"),
    }
    folder = vault({"memory/config.yaml": "context: {floor: 0.7}\n", **others, **notes})
    kb = open_kb(folder)
    RetrievalLog(kb.vault.machine / "log").append(
        Retrieval(NOW.isoformat(), "context", ("up",), session="s", injected=True)
    )
    answer = kb.why_silent(prompt, wanted, **how)
    assert (answer.step, said in answer.reason) == (step, True), answer


def test_the_command_explains_a_silent_prompt(vault: MakeVault, run: Run) -> None:
    folder = vault({"memory/config.yaml": "", "memory/learnings/up.md": entry("The upload test is flaky.", id="up")})
    done = run("--vault", folder, "why-not", "--prompt", "yes", "up")
    assert (
        done.stdout
        == "few-words: the prompt has too few words of its own (yes): orders and short answers get nothing\n"
    )
