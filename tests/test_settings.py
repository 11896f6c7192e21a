"""Settings: defaults, who overrides whom, what a vault's own file may not say, and how much it may ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from conftest import Files, Run, write_files

from memory_kb import KnowledgeBase
from memory_kb.errors import InvalidSettings
from memory_kb.settings import (
    TOKENIZERS,
    IndexSettings,
    LoadedSettings,
    Ranking,
    ScopeWeights,
    Settings,
    load_settings,
    merge_settings,
)

MakeVault = Callable[[Files], Path]


def load(
    tmp_path: Path,
    home: str | bytes | None = None,
    vault: str | bytes | None = None,
    environ: Mapping[str, str] | None = None,
) -> LoadedSettings:
    for name, text in (("home.yaml", home), ("vault.yaml", vault)):
        if text is not None:
            write_files(tmp_path, {name: text})
    return load_settings(tmp_path / "home.yaml", tmp_path / "vault.yaml", environ or {})


def test_the_defaults(tmp_path: Path) -> None:
    """The numbers of the format."""
    loaded = load(tmp_path)
    assert loaded == LoadedSettings(Settings(), ())
    ranking = loaded.settings.ranking
    assert (ranking.prominence_exponent, ranking.half_life_days, ranking.decay_floor, ranking.mmr_lambda) == (
        0.1,
        90.0,
        0.1,
        0.7,
    )
    assert [ranking.scope.of(scope) for scope in ("task", "job", "project", "global")] == [1.5, 1.2, 1.2, 1.0]
    assert (ranking.fusion, ranking.vector_weight, ranking.text_weight) == ("weighted", 0.7, 0.3)
    assert loaded.settings.embeddings == ("auto", None, None, 0)
    assert loaded.settings.llm == ("none", None, None, 1.0, (), 200)
    assert loaded.settings.watch == (0.3, 60.0, False)
    assert loaded.settings.index == IndexSettings(None, "porter unicode61 remove_diacritics 2", 4_000_000)


HOME = "ranking: {half_life_days: 30, decay_floor: 0.2, mmr_lambda: 0.3, scope: {task: 3}}\nignore: [home]\n"
VAULT = "ranking: {half_life_days: 40, decay_floor: 0.25, scope: {job: 2}}\n"


@pytest.mark.parametrize(
    ("home", "vault", "environ", "ranking"),
    [
        pytest.param(None, None, {}, Ranking(), id="nothing"),
        pytest.param(HOME, None, {}, Ranking(0.1, 30, 0.2, 0.3, ScopeWeights(task=3)), id="home"),
        pytest.param(None, VAULT, {}, Ranking(0.1, 40, 0.25, 0.7, ScopeWeights(job=2)), id="vault"),
        pytest.param(HOME, VAULT, {}, Ranking(0.1, 40, 0.25, 0.3, ScopeWeights(task=3, job=2)), id="vault-over-home"),
        pytest.param(
            HOME,
            VAULT,
            {"MEMORY_KB_RANKING_HALF_LIFE_DAYS": "50"},
            Ranking(0.1, 50, 0.25, 0.3, ScopeWeights(task=3, job=2)),
            id="environment-over-both",
        ),
        pytest.param(
            None, None, {"MEMORY_KB_RANKING_PROMINENCE_EXPONENT": "0", "OTHER": "1"}, Ranking(0.0), id="environment"
        ),
        pytest.param("ranking:\n", "ranking: {half_life_days: ~}", {}, Ranking(), id="empty-values-set-nothing"),
        pytest.param(
            "\ufeffranking: {half_life_days: 30}", "# nothing\n", {}, Ranking(half_life_days=30), id="byte-order-mark"
        ),
        pytest.param("ranking:\r\n  half_life_days: 30\r\n", "", {}, Ranking(half_life_days=30), id="crlf"),
        pytest.param(
            "ranking: {scope: {global: 0.5}}", None, {}, Ranking(scope=ScopeWeights(global_=0.5)), id="global-scope"
        ),
        pytest.param("ranking: {half_life_days: '30'}", None, {}, Ranking(half_life_days=30), id="number-in-quotes"),
    ],
)
def test_who_overrides_whom(
    tmp_path: Path, home: str | None, vault: str | None, environ: dict[str, str], ranking: Ranking
) -> None:
    loaded = load(tmp_path, home, vault, environ)
    assert (loaded.settings.ranking, loaded.warnings) == (ranking, ())


@pytest.mark.parametrize(
    ("vault", "environ", "ignore"),
    [
        pytest.param("", {}, ("node_modules",), id="default"),
        pytest.param("ignore: [drafts, '*.tmp.md']", {}, ("drafts", "*.tmp.md"), id="list"),
        pytest.param("ignore: drafts", {}, ("drafts",), id="one"),
        pytest.param("ignore: []", {}, (), id="none"),
        pytest.param("ignore: [drafts]", {"MEMORY_KB_IGNORE": "a,b/**"}, ("a", "b/**"), id="environment"),
        pytest.param("ignore: [drafts]", {"MEMORY_KB_IGNORE": ""}, (), id="empty-environment"),
    ],
)
def test_what_is_ignored(tmp_path: Path, vault: str, environ: dict[str, str], ignore: tuple[str, ...]) -> None:
    assert load(tmp_path, None, vault, environ).settings.ignore == ignore


def test_only_the_user_says_where_the_index_is(tmp_path: Path) -> None:
    from_vault = load(tmp_path, "", "index: {path: /elsewhere, max_file_bytes: 10}\n")
    assert from_vault.settings.index == IndexSettings(None, max_file_bytes=10)
    assert from_vault.warnings == (
        f"{tmp_path / 'vault.yaml'}: index.path is ignored here; a vault may not say where files are written or sent, your own configuration may",
    )
    assert load(tmp_path, "index: {path: /mine}\n", "index: {path: /elsewhere}\n").settings.index.path == "/mine"
    assert load(tmp_path, "", "", {"MEMORY_KB_INDEX_PATH": "/env"}).settings.index.path == "/env"
    assert load(tmp_path, "index: {path: /mine}\n", "", {"MEMORY_KB_INDEX_PATH": "/env"}).warnings == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("colour: 1", "colour"),
        ("ranking: {colour: 1}", "ranking.colour"),
        ("ranking: {scope: {galaxy: 2}}", "ranking.scope.galaxy"),
        ("ranking: {scope: {global_: 2}}", "ranking.scope.global_"),
        ("ranking.half_life_days: 3", "ranking.half_life_days"),
        ("7: x", "7"),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_its_file(tmp_path: Path, text: str, name: str) -> None:
    for home, vault, file in ((text, "", "home.yaml"), ("", text, "vault.yaml")):
        loaded = load(tmp_path, home, vault)
        assert loaded.warnings == (f"{tmp_path / file}: unknown setting {name}",)
        assert loaded.settings == Settings()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("ranking: {half_life_days: 30}\nbad: x: y\n", 2, id="two-colons"),
        pytest.param("# one\n\nignore:\n\t- x\n", 4, id="tab"),
        pytest.param("- a\n- b\n", 1, id="list"),
        pytest.param("just words\n", 1, id="words"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    for home, vault, file in ((text, "", "home.yaml"), ("", text, "vault.yaml")):
        with pytest.raises(InvalidSettings) as caught:
            load(tmp_path, home, vault)
        assert str(caught.value).startswith(f"{tmp_path / file}:{line}: the file is not")
        assert "frontmatter" not in str(caught.value)
        assert caught.value.exit_code == 3


@pytest.mark.parametrize("data", [b"ignore: [caf\xe9]\n", b"\xff\xfei\x00"], ids=["latin-1", "utf-16"])
def test_a_file_that_is_no_utf_8_is_named(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InvalidSettings, match=r"vault\.yaml cannot be read"):
        load(tmp_path, None, data)


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "vault.yaml").mkdir()
    with pytest.raises(InvalidSettings, match=r"vault\.yaml cannot be read"):
        load(tmp_path)


BAD = [
    pytest.param("ranking: 3", "ranking takes a group of settings, not 3", id="group"),
    pytest.param("ranking: [half_life_days]", "ranking takes a group of settings", id="list-for-group"),
    pytest.param("ranking: {half_life_days: soon}", "ranking.half_life_days takes a number, not 'soon'", id="word"),
    pytest.param("ranking: {half_life_days: [1]}", "ranking.half_life_days takes a number", id="list"),
    pytest.param("ranking: {half_life_days: 0}", "ranking.half_life_days is out of range", id="zero"),
    pytest.param("ranking: {half_life_days: -1}", "ranking.half_life_days is out of range", id="negative"),
    pytest.param("ranking: {half_life_days: .nan}", "ranking.half_life_days is out of range", id="nan"),
    pytest.param("ranking: {half_life_days: .inf}", "ranking.half_life_days is out of range", id="infinite"),
    pytest.param("ranking: {half_life_days: 1" + "0" * 400 + "}", "ranking.half_life_days", id="beyond-floats"),
    pytest.param("ranking: {half_life_days: 0x" + "f" * 5_000 + "}", "ranking.half_life_days", id="beyond-printing"),
    pytest.param("ranking: {mmr_lambda: 1.1}", "ranking.mmr_lambda is out of range", id="lambda"),
    pytest.param("ranking: {decay_floor: 2}", "ranking.decay_floor is out of range", id="floor"),
    pytest.param("ranking: {scope: {task: -1}}", "ranking.scope.task is out of range", id="scope"),
    pytest.param("index: {tokenizer: magic}", "index.tokenizer is 'magic'", id="tokenizer"),
    pytest.param("index: {tokenizer: [porter ascii]}", "index.tokenizer is", id="tokenizer-list"),
    pytest.param("index: {max_file_bytes: lots}", "index.max_file_bytes takes a number", id="bytes"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_value_that_cannot_be_is_named_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load(tmp_path, "", text)
    assert str(caught.value).startswith(f"{tmp_path / 'vault.yaml'}: {message}")
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"the environment: ranking\.mmr_lambda takes a number, not 'x'"):
        load(tmp_path, environ={"MEMORY_KB_RANKING_MMR_LAMBDA": "x"})


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_every_tokenizer_may_be_chosen(tmp_path: Path, tokenizer: str) -> None:
    assert load(tmp_path, "", f"index: {{tokenizer: {tokenizer}}}").settings.index.tokenizer == tokenizer


def test_merging_leaves_what_it_is_given_alone() -> None:
    settings = Settings()
    merged, warnings = merge_settings(settings, {"ranking": {"scope": {"task": 9}}}, "x", is_trusted=False)
    assert (merged.ranking.scope.task, settings.ranking.scope.task, warnings) == (9.0, 1.5, [])


@pytest.mark.parametrize(
    ("config", "files"),
    [("memory/config.yaml", {}), (".memory-kb/config.yaml", {"a.md": "x"})],
    ids=["memory", "plain"],
)
def test_a_vault_brings_its_own_file(vault: MakeVault, home: Path, config: str, files: Files) -> None:
    folder = vault({config: "ranking: {half_life_days: 7}\ncolour: 1\n", **files})
    write_files(home, {"config.yaml": "ranking: {half_life_days: 8, decay_floor: 0.5}\n"})
    with KnowledgeBase.open(folder, home, environ={}) as kb:
        assert (kb.vault.settings.ranking.half_life_days, kb.vault.settings.ranking.decay_floor) == (7.0, 0.5)
        assert kb.vault.warnings == (f"{folder / config}: unknown setting colour",)


def test_an_index_of_a_vault_is_where_the_user_wants_it(vault: MakeVault, home: Path, tmp_path: Path) -> None:
    folder = vault({"a.md": "Walrus.\n"})
    write_files(home, {"config.yaml": f"index: {{path: '{tmp_path / 'machines'}'}}\n"})
    with KnowledgeBase.open(folder, home, environ={}) as kb:
        assert [hit.path for hit in kb.search("walrus").hits] == ["a.md"]
        assert kb.vault.machine.parent == tmp_path / "machines"
        assert kb.vault.machine.name.startswith("vault-")
    assert sorted(os.listdir(folder)) == ["a.md"], "nothing is written into the vault"


def test_the_command_says_what_is_wrong_with_a_file(vault: MakeVault, run: Run) -> None:
    folder = vault({"memory/config.yaml": "a: b\nbad: x: y\n"})
    done = run("search", "x", "--vault", folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{folder / 'memory/config.yaml'}:2:" in done.stderr
    write_files(folder, {"memory/config.yaml": "colour: 1\n"})
    done = run("search", "x", "--vault", folder)
    assert done.returncode == 0
    assert f"{folder / 'memory/config.yaml'}: unknown setting colour" in done.stderr


Open = Callable[..., KnowledgeBase]
ASKED = [
    ("index", "max_file_bytes", 10**12, 32_000_000),
    ("watch", "debounce", 86_400, 10),
    ("watch", "reconcile_seconds", 10**9, 3_600),
    ("context", "layer_tokens", 10**9, 20_000),
    ("context", "max_chars", 10**9, 100_000),
]


@pytest.mark.parametrize(("group", "name", "asked", "most"), ASKED, ids=[name for _, name, _, _ in ASKED])
def test_a_vault_cannot_raise_a_limit_past_its_maximum(
    folder: Path, home: Path, open_kb: Open, group: str, name: str, asked: int, most: int
) -> None:
    write_files(folder, {"memory/config.yaml": f"{group}:\n  {name}: {asked}\n"})
    kb = open_kb(folder)
    assert getattr(getattr(kb.vault.settings, group), name) == most
    assert any(f"{group}.{name} is {most:,} here" in warning for warning in kb.vault.warnings)
    write_files(home, {"config.yaml": f"{group}:\n  {name}: {most * 2}\n"})
    assert getattr(getattr(open_kb(folder).vault.settings, group), name) == most * 2


def test_a_vault_may_still_lower_and_raise_within_it(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"memory/config.yaml": "index:\n  max_file_bytes: 9000000\ncontext:\n  max_chars: 500\n"})
    kb = open_kb(folder)
    assert (kb.vault.settings.index.max_file_bytes, kb.vault.settings.context.max_chars, kb.vault.warnings) == (
        9_000_000,
        500,
        (),
    )
