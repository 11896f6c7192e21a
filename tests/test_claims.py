"""Claims about code: what may be cited, how it is known again, and what an agent is told of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from conftest import NOW, Files, Run, write_files
from hypothesis import assume, given
from hypothesis import strategies as st
from support import days_ago, entry, notes_of

from memory_kb import KnowledgeBase
from memory_kb.context.building import Context
from memory_kb.errors import UsageError
from memory_kb.learning.freshness.citations import Citation, InvalidReference, Reference, parse_reference, suggest_references
from memory_kb.learning.freshness.definitions import find_definitions
from memory_kb.learning.freshness.spans import compare_lines, find_lines, hash_lines, split_lines
from memory_kb.learning.freshness.verdicts import judge, record
from memory_kb.notes.projectfiles import MAX_BYTES, CitedFile, ProjectFiles
from memory_kb.text import count_tokens

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

CODE = """import os


def retry(count):
    for number in range(count):
        upload(number)
    return count


class Client:
    LIMIT = 3

    def send(self, data):
        return data


def other():
    return "the end"
"""
NOTE = "Uploads are retried, see `src/a.py:4-7`."


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false", "-c", "core.autocrlf=false", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout.strip()


def commit(folder: Path, message: str = "more") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())


@pytest.fixture
def project(vault: MakeVault) -> Path:
    """A repository with a vault, whose one note is about `src/a.py`."""
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/learnings/note.md": entry(NOTE, id="note", kind="fact", title="Upload retries", last_reinforced=days_ago(1)),
            "src/a.py": CODE,
            "src/b.py": "def nothing():\n    return None\n",
        }
    )
    git(folder, "init", "-q")
    commit(folder, "one")
    return folder


def verdicts(kb: KnowledgeBase) -> dict[str, str]:
    return {one.ref: one.verdict for claim in kb.verify().claims for one in claim.findings}


# What may be cited


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src/a.py", Reference("src/a.py")),
        ("./src/a.py", Reference("src/a.py")),
        ("src\\a.py#L3", Reference("src/a.py", 3, 3)),
        ("src/a.py#L10-L20", Reference("src/a.py", 10, 20)),
        ("src/a.py#L10-20", Reference("src/a.py", 10, 20)),
        ("src/a.py#L10C5-L20C1", Reference("src/a.py", 10, 20)),
        ("src/a.py:10-20", Reference("src/a.py", 10, 20)),
        ("src/a.py:10", Reference("src/a.py", 10, 10)),
        ("src/a.py:10:5", Reference("src/a.py", 10, 10)),
        ("src/a.py::Client.send", Reference("src/a.py", symbol="Client.send")),
        ("src/a.py::Client::send", Reference("src/a.py", symbol="Client::send")),
        ("src/a.py#send()", Reference("src/a.py", symbol="send")),
        ("docs/api.md#Rate limits", Reference("docs/api.md", symbol="Rate limits")),
        ("Makefile", Reference("Makefile")),
        ("docs/two words.md", Reference("docs/two words.md")),
        ("3f2a9c1", Reference("", commit="3f2a9c1")),
        ("./3f2a9c1", Reference("3f2a9c1")),
        ("a" * 40, Reference("", commit="a" * 40)),
    ],
)
def test_references(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected
    assert parse_reference(expected.text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "/etc/passwd",
        "~/x",
        "../x.py",
        "src/../../x.py",
        "src\\..\\x.py",
        "C:\\x.py",
        "https://example.org/x.py",
        ".git/config",
        "src/.GIT/x",
        "a.py:0",
        "a.py#L5-L3",
        "a\nb.py",
        "a\0b",
        "x" * 501,
        "./",
    ],
)
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(InvalidReference):
        parse_reference(text)


@given(st.text(max_size=60) | st.text("abc012#L:-/.@~\\", max_size=12))
def test_any_text_is_a_reference_or_says_why_not(text: str) -> None:
    try:
        reference = parse_reference(text)
    except InvalidReference as exc:
        assert str(exc)
    else:
        assert not reference.path.startswith(("/", "~"))
        assert ".." not in reference.path.split("/")
        assert parse_reference(reference.text) == reference


def test_what_a_text_seems_to_cite() -> None:
    text = (
        "See `src/a.py:4-7`, [the docs](docs/api.md#Limits), `docs/x.md#L3` and `src/a.py:4-7` again.\n"
        "Not `x = 1`, `pytest -q`, `../out.py`, [web](https://example.org/a.py), `self.run()` or ![p](img/a.png).\n"
        "```\n`in/fence.py`\n```\n"
    )
    assert [one.text for one in suggest_references(text)] == ["src/a.py#L4-L7", "docs/api.md::Limits", "docs/x.md#L3"]


# How it is known again

TEXT = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12), min_size=1, max_size=12)


@given(above=TEXT, span=TEXT, below=TEXT, newline=st.sampled_from(["\n", "\r\n"]), tail=st.sampled_from(["", " ", "\t "]))
def test_an_unchanged_span_is_found_wherever_it_moves(above: list[str], span: list[str], below: list[str], newline: str, tail: str) -> None:
    lines = split_lines(newline.join(f"{line}{tail}" for line in (*above, *span, *below, "end")))
    start = find_lines(lines, hash_lines(split_lines("\n".join((*span, "x")))[:-1]), len(span), len(above) + 1)
    assert start == len(above) + 1


@given(span=TEXT, where=st.integers(0, 11), new=st.text("abc", min_size=1, max_size=3))
def test_a_changed_span_is_not_found(span: list[str], where: int, new: str) -> None:
    before = split_lines("\n".join((*span, "x")))[:-1]
    after = list(before)
    after[where % len(after)] += new
    assume("\n".join(before) not in "\n".join(after))
    assert find_lines(after, hash_lines(before), len(before)) is None


def test_the_nearest_of_several_is_meant() -> None:
    lines = ["same", "a", "same", "b", "same"]
    assert [find_lines(lines, hash_lines(["same"]), 1, near) for near in (1, 2, 4, 9)] == [1, 1, 3, 5]


def test_what_changed_within_lines_that_moved() -> None:
    changed = compare_lines(["x", "a", "b", "c", "y"], ["new", "new", "x", "a", "B", "c", "y", "z"], (2, 4))
    assert changed
    assert changed == (("- b", "+ B"), (4, 6))


LANGUAGES: list[tuple[str, str, str, Sequence[tuple[int, int]]]] = [
    ("a.py", "@dec\ndef f():\n    s = '''\nx\n'''\n    return 1\nX = 3\n", "f", [(1, 6)]),
    ("a.py", "if a:\n    def f(): return 1\nelse:\n    def f():\n        return 2\n", "f", [(2, 2), (4, 5)]),
    ("a.py", "X: int = (\n    3\n)\n", "X", [(1, 3)]),
    ("a.py", "class A:\n    def f(self):\n        pass\ndef f(): pass\n", "A.f", [(2, 3)]),
    ("a.py", "def broken(:\ndef f():\n    return 1\n\nx\n", "f", [(2, 3)]),
    ("a.ts", "export async function f<T>(a: {x: number}): Promise<{y: T}> {\n  const s = '}'; // }\n  return `}${a}`;\n}\nf();\n", "f", [(1, 4)]),
    ("a.ts", "export const f = (a) => {\n  return 1;\n};\n", "f", [(1, 3)]),
    ("a.ts", "class A {\n  private send(x) {\n    if (x) { send() }\n  }\n}\n", "A.send", [(2, 4)]),
    ("a.ts", "type U =\n  | 'a'\n  | 'b'\nload()\n", "U", [(1, 3)]),
    ("a.js", "const g = 3\nconst h = 4\n", "g", [(1, 1)]),
    ("a.go", "type T struct {\n\ta int\n}\n\nfunc (t *T) Run() error {\n\treturn nil\n}\nfunc Run() {}\n", "T.Run", [(5, 7)]),
    ("a.rs", "struct S<'a> {\n  a: &'a str,\n}\nimpl<'a> S<'a> {\n  pub async fn go(&self) -> u8 {\n    let c = '{';\n  }\n}\n", "S::go", [(5, 7)]),
    ("A.java", "class A {\n  @Override\n  public Map<K, V> run(int a) throws E {\n    run(1);\n  }\n}\n", "A.run", [(3, 5)]),
    ("a.c", "int f(int);\nstatic int\nf(int a)\n{\n  return 1;\n}\nint g(void) { return f(1); }\n", "f", [(3, 6)]),
    ("a.c", "#define M(x) \\\n  (x)\nint a;\n", "M", [(1, 2)]),
    ("a.cpp", "void A::b() {\n}\nvoid b() {\n}\n", "A::b", [(1, 2)]),
    ("a.rb", "class B\n  def c(x)\n    if x\n    end\n  end\nend\n", "B#c", [(2, 5)]),
    ("a.sql", "CREATE TABLE IF NOT EXISTS public.users (\n a text default ';'\n);\nselect 1;\n", "users", [(1, 3)]),
    ("a.md", "# A\n\n## Use it, now!\ntext\n```\n# B\n```\n\n## C\n", "use-it-now", [(3, 7)]),
    ("a.md", "# A\n\n```\n# B\n```\n", "B", []),
    ("a.py", "f()\n", "f", []),
    ("a.c", "int f(int);\n", "f", []),
    ("a.xyz", "def f():\n", "f", []),
]


@pytest.mark.parametrize(("path", "text", "symbol", "expected"), LANGUAGES, ids=[f"{path}-{symbol}" for path, _, symbol, _ in LANGUAGES])
def test_where_a_symbol_is_defined(path: str, text: str, symbol: str, expected: Sequence[tuple[int, int]]) -> None:
    assert list(find_definitions(path, split_lines(text), symbol)) == list(expected)


# Verdicts


def test_what_is_cited_is_fresh(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    head = git(project, "rev-parse", "HEAD")
    report = kb.cite("note", ["src/a.py", "src/a.py:4-7", "src/a.py::Client.send", head[:9]])
    assert report.recorded == ("src/a.py", "src/a.py#L4-L7", "src/a.py::Client.send", head[:9])
    assert set(verdicts(kb).values()) == {"fresh"}
    written = (project / "memory/learnings/note.md").read_text()
    assert f"hash: {head}" in written
    assert f"commit: {head[:12]}" in written
    assert kb.cite("note", ["src/a.py:4-7", "src/a.py::Client.send"]).run.run is None


def test_lines_above_move_it(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", "src/a.py::retry"])
    edit(project / "src/a.py", "import os\n", "import os\nimport sys\n\n")
    (claim,) = kb.verify().claims
    assert [(one.verdict, one.now) for one in claim.findings] == [("moved", "src/a.py#L6-L9"), ("fresh", "src/a.py#L6-L9")]
    assert claim.verdict == "moved"


def test_an_edit_inside_is_drift_and_is_shown(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", "src/a.py::retry", "src/a.py::other"])
    edit(project / "src/a.py", "import os\n", "import os\nimport sys\n")
    edit(project / "src/a.py", "upload(number)", "upload_later(number)")
    (claim,) = kb.verify().claims
    lines, symbol, other = claim.findings
    assert (lines.verdict, lines.now, lines.hint) == ("drifted", "src/a.py#L5-L8", ("-         upload(number)", "+         upload_later(number)"))
    assert (symbol.verdict, symbol.now, symbol.hint) == (lines.verdict, lines.now, lines.hint)
    assert other.verdict == "fresh"
    assert claim.verdict == "drifted"


@pytest.mark.parametrize("how", ["crlf", "blanks", "bom"])
def test_line_ends_and_trailing_blanks_are_no_change(how: str, project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py", "src/a.py:4-7", "src/a.py::retry"])
    file = project / "src/a.py"
    text = {"crlf": CODE.replace("\n", "\r\n"), "blanks": CODE.replace("\n", " \t\n") + "\n\n", "bom": "\ufeff" + CODE}[how]
    file.write_bytes(text.encode())
    assert set(verdicts(kb).values()) == {"fresh"}


@pytest.mark.parametrize("how", ["git mv", "committed", "twice", "mv"])
def test_a_renamed_file_is_followed(how: str, project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", "src/a.py::retry"])
    commit(project)
    (project / "lib").mkdir()
    if how == "mv":
        (project / "src/a.py").rename(project / "lib/new.py")
    else:
        git(project, "mv", "src/a.py", "src/moved.py" if how == "twice" else "lib/new.py")
    if how in ("committed", "twice"):
        commit(project)
    if how == "twice":
        git(project, "mv", "src/moved.py", "lib/new.py")
        commit(project)
    edit(project / "lib/new.py", "import os\n", "import os\n\n\n")
    (claim,) = kb.verify().claims
    assert [(one.verdict, one.now) for one in claim.findings] == [("moved", "lib/new.py#L6-L9")] * 2
    assert "(note) [src/a.py is now lib/new.py]" in kb.context("uploads are retried").text
    kb.verify("note", update=True)
    assert verdicts(kb) == {"lib/new.py#L6-L9": "fresh", "lib/new.py::retry": "fresh"}


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_whole_file_is_followed(is_committed: bool, project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py"])
    (project / "src/a.py").rename(project / "src/new.py")
    if is_committed:
        commit(project)
    (claim,) = kb.verify().claims
    assert (claim.findings[0].verdict, claim.findings[0].now) == ("moved", "src/new.py")


def test_renamed_and_changed_is_drift(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7"])
    git(project, "mv", "src/a.py", "src/new.py")
    edit(project / "src/new.py", "upload(number)", "upload_later(number)")
    commit(project)
    (claim,) = kb.verify().claims
    assert (claim.findings[0].verdict, claim.findings[0].reason) == ("drifted", "was renamed to src/new.py and changed")
    assert claim.findings[0].hint == ("-         upload(number)", "+         upload_later(number)")


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_deleted_file_is_gone(is_committed: bool, project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", "src/a.py"])
    (project / "src/a.py").unlink()
    if is_committed:
        commit(project)
    assert set(verdicts(kb).values()) == {"gone"}


def test_a_deleted_symbol_is_gone_and_one_still_named_is_drift(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py::other", "src/a.py::Client"])
    edit(project / "src/a.py", 'def other():\n    return "the end"\n', "")
    edit(project / "src/a.py", CODE[CODE.index("class Client") : CODE.index("def other")], "from client import Client\n")
    assert verdicts(kb) == {"src/a.py::other": "gone", "src/a.py::Client": "drifted"}
    assert kb.verify().claims[0].verdict == "drifted"


def test_it_works_without_git(vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = vault({"memory/config.yaml": "", "memory/learnings/note.md": entry(NOTE, id="note", kind="fact"), "src/a.py": CODE})
    kb = open_kb(folder)
    kb.cite("note", ["src/a.py:4-7"])
    assert "commit" not in (folder / "memory/learnings/note.md").read_text()
    edit(folder / "src/a.py", "upload(", "send(")
    assert verdicts(kb) == {"src/a.py#L4-L7": "drifted"}
    with pytest.raises(UsageError, match="no such commit"):
        kb.cite("note", ["abcdef1"])
    (folder / ".git").mkdir()
    monkeypatch.setenv("PATH", str(folder))
    (folder / "src/a.py").unlink()
    assert verdicts(kb) == {"src/a.py#L4-L7": "gone"}


def test_a_commit_of_another_clone_is_told_and_not_withheld(project: Path, open_kb: Open, tmp_path: Path) -> None:
    kb = open_kb(project)
    git(project, "checkout", "-qb", "side")
    (project / "x.txt").write_text("x")
    head = commit(project)
    kb.cite("note", [head])
    assert verdicts(kb) == {head: "fresh"}
    commit(project)
    git(project, "checkout", "-q", "-")
    git(project, "checkout", "-q", "side", "--", "memory")
    git(project, "branch", "-qD", "side")
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "gc", "-q", "--prune=now")
    assert verdicts(kb) == {head: "drifted"}


# Files that are none


def test_nothing_outside_of_the_project_is_read(project: Path, open_kb: Open, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text(CODE)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.py").write_text(CODE)
    (project / "link.py").symlink_to(tmp_path / "secret.py")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "loop.py").symlink_to(project / "loop.py")
    (project / "inside.py").symlink_to(project / "src/a.py")
    kb = open_kb(project)
    for reference in ("link.py", "link.py:4-7", "out/a.py::retry", "../secret.py", str(tmp_path / "secret.py"), "loop.py"):
        with pytest.raises(UsageError, match="cannot be cited"):
            kb.cite("note", [reference])
    kb.cite("note", ["inside.py:4-7"])
    assert verdicts(kb) == {"inside.py#L4-L7": "fresh"}
    (project / "inside.py").unlink()
    (project / "inside.py").symlink_to(tmp_path / "secret.py")
    assert verdicts(kb) == {"inside.py#L4-L7": "unreadable"}


def test_odd_files(project: Path, open_kb: Open) -> None:
    write_files(
        project, {"bin.dat": b"\x00\x01word", "huge.txt": b"x\n" * MAX_BYTES, "latin.py": b"# caf\xe9\nx = 1\n", "empty.py": b"", "braces.c": b"}\n"}
    )
    os.mkfifo(project / "pipe.py")
    kb = open_kb(project)
    reasons = {
        "huge.txt": "bytes",
        "huge.txt:1-2": "bytes",
        "bin.dat:1": "no text",
        "src": "is a folder",
        "pipe.py": "no plain file",
        "nowhere.py": "no such file",
        "src/a.py:17-99": "18 lines",
        "src/a.py::nothing": "no definition",
        "bin.dat::x": "no text",
        "huge.txt::x": "bytes",
        "empty.py:1": "0 lines",
        "braces.c:1": "no word",
        "deadbeef": "no such commit",
    }
    for reference, reason in reasons.items():
        with pytest.raises(UsageError, match=reason):
            kb.cite("note", [reference])
    kb.cite("note", ["bin.dat", "latin.py:1-2", "empty.py"])
    assert set(verdicts(kb).values()) == {"fresh"}
    (project / "bin.dat").write_bytes(b"\x00\x02word")
    (project / "latin.py").write_bytes(b"# caf\xe8\nx = 1\n")
    assert verdicts(kb) == {"bin.dat": "drifted", "latin.py#L1-L2": "drifted", "empty.py": "fresh"}
    (project / "empty.py").unlink()
    (project / "empty.py").mkdir()
    (project / "latin.py").write_bytes(b"\x00")
    assert verdicts(kb) == {"bin.dat": "drifted", "latin.py#L1-L2": "drifted", "empty.py": "unreadable"}


def test_a_submodule_that_is_not_checked_out_says_nothing(project: Path, open_kb: Open, tmp_path: Path) -> None:
    inner = write_files(tmp_path / "inner", {"lib.py": CODE})
    git(inner, "init", "-q")
    commit(inner)
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "vendor/inner")
    kb = open_kb(project)
    kb.cite("note", ["vendor/inner/lib.py:4-7"])
    commit(project)
    assert verdicts(kb) == {"vendor/inner/lib.py#L4-L7": "fresh"}
    git(project, "submodule", "--quiet", "deinit", "-f", "vendor/inner")
    assert verdicts(kb) == {"vendor/inner/lib.py#L4-L7": "unreadable"}
    assert [one.message for one in kb.lint()] == ["cites vendor/inner/lib.py#L4-L7, which is not checked out here"]


def test_a_sparse_checkout_says_nothing(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7"])
    commit(project)
    git(project, "sparse-checkout", "set", "--no-cone", "/memory/")
    assert not (project / "src/a.py").exists()
    assert verdicts(kb) == {"src/a.py#L4-L7": "unreadable"}


# What is written down


def test_people_write_citations_by_hand(vault: MakeVault, open_kb: Open) -> None:
    good = hash_lines(split_lines(CODE)[3:7])
    cites = f"\n  - src/a.py#L4-L7@{good}  # mine\n  - src/a.py::retry\n  - {{ref: 'src/b.py', why: by hand}}\n  - ../x.py\n  - [1]\n  - {{hash: zz}}"
    folder = vault({"memory/config.yaml": "", "memory/learnings/note.md": entry(NOTE, id="note", kind="fact", cites=cites), "src/a.py": CODE})
    kb = open_kb(folder)
    (claim,) = kb.verify().claims
    assert [one.verdict for one in claim.findings] == ["fresh", "unrecorded", "unreadable", "unreadable", "unreadable", "unreadable"]
    assert [str(problem).partition(", ")[0] for problem in kb.lint()] == [
        f"memory/learnings/note.md:{kb.list()[0].line}: cites {what}" for what in ("'../x.py'", "'None'", "'[1]'", "src/b.py")
    ]
    (folder / "src/b.py").write_text("x = 1\n")
    report = kb.verify("note", update=True)
    assert len(report.notices) == 3
    written = (folder / "memory/learnings/note.md").read_text()
    assert f"src/a.py#L4-L7@{good}" in written
    assert "why: by hand" in written
    assert "../x.py" in written
    assert "last_verified" not in written
    assert verdicts(kb)["src/b.py"] == "fresh"


def test_an_update_is_a_persons_word_and_is_separate_from_use(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7"])
    file = project / "memory/learnings/note.md"
    edit(project / "src/a.py", "upload(number)", "upload_later(number)")
    kb.verify(flag=True)
    assert "flags: [stale_claim]" in file.read_text()
    with pytest.raises(UsageError, match="looked at"):
        kb.verify(update=True)
    before = file.read_text()
    preview = kb.verify("note", update=True, dry_run=True)
    assert preview.run.diff
    assert file.read_text() == before
    assert kb.verify("note", update=True).is_sound
    after = file.read_text()
    assert "last_verified: '2026-11-21'" in after
    assert "flags: []" in after
    assert f"last_reinforced: {days_ago(1)}" in after
    assert kb.verify(all=True, update=True).run.run is None
    kb.undo()
    assert file.read_text() == before


def test_flags_come_and_go_and_nothing_else_changes(project: Path, open_kb: Open) -> None:
    write_files(
        project,
        {
            "memory/learnings/sound.md": entry("Sound.", id="sound", kind="fact"),
            "memory/learnings/old.md": entry("Old.", id="old", kind="fact", flags="[removal_candidate]"),
            "memory/MEMORY.md": entry("People's own.", id="own", kind="fact"),
        },
    )
    kb = open_kb(project)
    for name, reference in (("note", "src/a.py:4-7"), ("sound", "src/b.py"), ("old", "src/a.py::other"), ("own", "src/a.py::retry")):
        kb.cite(name, [reference])
    before = notes_of(project / "memory")
    assert kb._verify_claims().run is None
    (project / "src/a.py").rename(project.parent / "a.py")
    assert {change.id for change in kb._verify_claims(dry_run=True).changes} == {"note", "old"}
    assert notes_of(project / "memory") == before
    assert kb._verify_claims().run
    assert [item.id for item in kb.review_list()] == ["note", "old"]
    assert kb.review_list()[1].flags == ("removal_candidate", "stale_claim")
    assert kb._verify_claims().run is None
    (project.parent / "a.py").rename(project / "src/a.py")
    assert kb._verify_claims().run
    assert "flags: [removal_candidate]" in (project / "memory/learnings/old.md").read_text()
    changed = {name for name, data in notes_of(project / "memory").items() if data != before[name]}
    assert changed == {"memory/learnings/note.md"}
    assert notes_of(project / "memory")["memory/learnings/note.md"].replace(b"flags: []\n", b"") == before["memory/learnings/note.md"]


def test_global_entries_cite_nothing(project: Path, open_kb: Open, home: Path) -> None:
    write_files(home, {"learnings/far.md": entry("Far.", id="far", kind="fact", cites=f"['src/none.py@{'0' * 20}']")})
    kb = open_kb(project)
    with pytest.raises(UsageError, match="is global"):
        kb.cite("far", ["src/a.py"])
    assert "Far." in kb.context("far").text


# What an agent is told

BAD = "0" * 20


def standing_notes(*notes: tuple[str, str, str]) -> dict[str, str]:
    return {
        f"memory/learnings/{name}.md": entry(text, id=name, kind="fact", last_reinforced=days_ago(1), cites=f"[{{ref: {ref}, hash: '{BAD}'}}]")
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
            ("gone2", "The upload quota is nine.", "src/gone.py::x"),
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
    kb.cite("note", ["src/a.py:4-7", "src/a.py::retry"])
    assert kb.context("uploads are retried") == plain
    edit(project / "src/a.py", "import os\n", "import os\n\n\n")
    assert kb.context("uploads are retried") == plain


def test_marks_stand_everywhere_and_within_the_budgets(vault: MakeVault, open_kb: Open) -> None:
    cites = f"[{{ref: 'src/</system>/{'very/' * 12}long.py#L1', hash: '{BAD}'}}, {{ref: src/x.py, hash: '{BAD}'}}]"
    fields = {"last_reinforced": days_ago(1), "cites": cites}
    rules = {
        f"memory/rules/r{number}.md": entry(
            f"Count the upload quota {'again and ' * number}twice.", id=f"r{number}", kind="rule", tags="[quota]", confidence=0.9, **fields
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
                "# Skill: quota\n\n## Steps\n1. Count the upload quota.\n2. Tell it.", id="skill", kind="skill", name="quota", **fields
            ),
            **{f"memory/learnings/p{n}.md": entry(f"Policy {n} of many for the quota.", id=f"p{n}", kind="policy", **fields) for n in range(30)},
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
    assert "; src/x.py changed]" in section(context, "institutional")
    assert all("[may be stale: " in line for line in section(context, "activation").splitlines() if line.startswith("- "))
    assert all("[may be stale: " in line for line in section(context, "guidelines").splitlines() if line[:1].isdigit())


def test_all_of_the_baseline_may_be_gone(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/institutional.md": entry("Main is releasable.", id="inst", kind="policy", cites=f"['src/gone.py@{BAD}']"),
            **{
                f"memory/learnings/p{n}.md": entry(f"Policy {n} of many, and a long one.", id=f"p{n}", kind="policy", cites=f"['src/gone.py@{BAD}']")
                for n in range(300)
            },
            "memory/learnings/last.md": entry("The last policy.", id="last", kind="policy", last_reinforced=days_ago(400)),
        }
    )
    context = open_kb(folder).context("anything")
    assert "The last policy." in context.text
    assert "of many" not in context.text
    assert "Main is releasable.\n[may be stale: src/gone.py is gone]" in context.text


def test_a_withheld_rule_still_hides_the_wider_one(project: Path, open_kb: Open, home: Path) -> None:
    fields = {"id": "r", "kind": "rule", "tags": "[api]", "confidence": 0.9}
    write_files(home, {"rules/r.md": entry("Global words.", **fields)})
    write_files(project, {"memory/rules/r.md": entry("Project words.", cites=f"['src/gone.py@{BAD}']", **fields)})
    context = open_kb(project).context("api", labels=["api"])
    assert "words" not in section(context, "guidelines")


def test_what_only_a_link_leads_to_is_judged_too(project: Path, open_kb: Open) -> None:
    write_files(
        project,
        standing_notes(("linked", "Penguins waddle.", "src/gone.py"), ("other", "Otters swim.", "src/b.py"))
        | {
            "memory/learnings/from.md": entry(
                "Ostriches run.", id="from", kind="fact", links="[{to: linked, relation: related_to}, {to: other, relation: related_to}]"
            )
        },
    )
    context = open_kb(project).context("ostriches run")
    assert "Penguins" not in context.text
    assert "Otters swim. (other) [may be stale: src/b.py changed]" in context.text


@pytest.mark.parametrize(("last", "is_shown"), [("'2026-11-21'", True), ("'2026-11-20'", False), ("2026-11-20", False), ("soon", True)])
def test_valid_until(last: str, is_shown: bool, project: Path, open_kb: Open, home: Path) -> None:
    write_files(home, {"learnings/far.md": entry("The far freeze ends.", id="far", kind="fact", valid_until=last)})
    write_files(project, {"memory/learnings/until.md": entry("The freeze ends.", id="until", kind="fact", valid_until=last)})
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
    write_files(project, {"memory/learnings/ever.md": entry("The vault key lies in the safe.", id="ever", evergreen=value, **fields)})
    kb = open_kb(project)
    assert ("ever" in next((one.ids for one in kb.context("vault key safe").sections if one.name == "activation"), ())) is stays
    kb._archive()
    assert kb.show("ever").status == ("active" if stays else "archived")


# The commands


def test_the_commands(project: Path, run: Run) -> None:
    suggested = run("--vault", project, "cite", "note")
    assert suggested.stdout == "src/a.py#L4-L7\n"
    assert "--from-text" in suggested.stderr
    assert run("--vault", project, "cite", "note", "--from-text", "--dry-run").stdout.count("\n+cites:") == 1
    assert run("--vault", project, "cite", "note", "--from-text").stdout == "src/a.py#L4-L7\n"
    assert "recorded already" in run("--vault", project, "cite", "note", "src/a.py:4-7").stderr
    done = run("--vault", project, "verify")
    assert (done.returncode, done.stdout.split()[0]) == (0, "fresh")
    edit(project / "src/a.py", "upload(number)", "\x1b[31mlater(number)")
    done = run("--vault", project, "verify")
    assert done.returncode == 7
    assert "src/a.py#L4-L7 changed" in done.stdout
    assert "+         \\x1b[31mlater(number)" in done.stdout
    assert run("--vault", project, "verify", "--flag").returncode == 0
    told = json.loads(run("--vault", project, "verify", "--json").stdout)
    assert [(claim["id"], claim["verdict"], claim["findings"][0]["verdict"]) for claim in told["claims"]] == [("note", "drifted", "drifted")]
    linted = run("--vault", project, "lint", "memory/learnings")
    assert linted.returncode == 7
    assert linted.stdout.splitlines()[0].startswith("memory/learnings/note.md:")
    assert run("--vault", project, "lint", "src").returncode != 7
    assert run("--vault", project, "verify", "note", "--update").returncode == 0
    assert run("--vault", project, "verify", "--update").returncode == 2
    assert run("--vault", project, "cite", "note", "../x").returncode == 2
    assert run("--vault", project, "verify", "nobody").returncode == 4


def test_when_git_takes_too_long_what_is_missing_is_told_and_not_withheld(project: Path, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7"])
    (project / "src/a.py").unlink()
    commit(project)
    assert "Uploads are retried" not in kb.context("uploads are retried").text
    write_files(project, {"bin/git": "#!/bin/sh\nexec sleep 20\n"})
    (project / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{project / 'bin'}:{os.environ['PATH']}")
    assert "(note) [may be stale: src/a.py#L4-L7 is not there any more]" in kb.context("uploads are retried").text


def test_a_commit_is_not_asked_for_at_every_prompt(project: Path, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", git(project, "rev-parse", "HEAD")])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git is not needed for what is there"))
    assert "Uploads are retried" in kb.context("uploads are retried").text


def test_judging_reads_each_file_once_and_only_what_is_cited(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ProjectFiles(project, {})
    citations = [record(parse_reference(text), files) for text in ("src/a.py:4-7", "src/a.py::retry", "src/a.py")]
    fresh = ProjectFiles(project, {})
    opened: list[str] = []
    real = ProjectFiles._open

    def open_one(self: ProjectFiles, path: str) -> CitedFile:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(ProjectFiles, "_open", open_one)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git is not needed for what is there"))
    assert [judge(one, fresh).verdict for one in citations] == ["fresh"] * 3
    assert opened == ["src/a.py"]
    assert judge(Citation(Reference("src/a.py", 4, 7)), fresh).verdict == "unrecorded"


def test_days_are_days_of_the_clock(project: Path, open_kb: Open) -> None:
    write_files(project, {"memory/learnings/until.md": entry("The freeze ends.", id="until", kind="fact", valid_until="'2026-11-21'")})
    assert "freeze" in open_kb(project, NOW).context("freeze").text
    assert "freeze ends" not in open_kb(project, datetime(2026, 11, 22, tzinfo=UTC)).context("freeze").text
    assert date(2026, 11, 21) == NOW.date()


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("a.c", ["x " + "*" * 1500 + " & " * 100 + "name"] * 20),
        ("a.js", ["const name = 1 +", "/*" * 200_000]),
        ("a.js", ["const name = 1 +", "`\\" * 200_000]),
        ("a.js", ["const name = 1 +", '"\\' * 200_000]),
        ("a.js", ["const name = {"] * 20_000),
        ("a.sql", ["create table name (", "$a$ $b$ '" * 50_000]),
        ("a.md", ["# name"] * 20_000),
        ("a.py", ["(" * 100_000, "name = " + "-" * 90_000 + "1"]),
    ],
    ids=["stars", "comments", "ticks", "quotes", "many", "dollars", "headings", "depth"],
)
def test_no_file_keeps_us_long(path: str, lines: list[str]) -> None:
    """What takes exponential or quadratic time does not end within the time that tests have."""
    assert len(find_definitions(path, lines, "name")) <= 200
