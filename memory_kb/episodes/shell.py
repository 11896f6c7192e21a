"""Parse a shell command line: its commands, their words, and how two of them differ."""

from __future__ import annotations

import re
import shlex
from difflib import SequenceMatcher
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex

#: An operator; quoted text and command substitutions are skipped first.
_OPERATOR = lazy_regex(
    r"""'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|`[^`]*(?:`|\Z)|\\.|\$\((?:[^()]|\((?:[^()]|\([^()]*\))*+\))*+(?:\)|\Z)"""
    r"""|[<>]&|&>|(?P<operator>&&|\|\||\|&|[;\n|&])""",
    re.DOTALL,
)
_HEREDOC = lazy_regex(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*(?:\n.*?^\s*\2[^\S\n]*$|.*)", re.DOTALL | re.MULTILINE)
_REDIRECTION = lazy_regex(r"\s+(?:(?:\d|&)?>{1,2}\s*(?:&\d|[^\s;|&]+)|<\s*[^\s<;|&]+)")
_QUOTING = lazy_regex(r"[\\'\"]")
#: What is run before a command without being its purpose.
_BEFORE = lazy_regex(
    r"(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)|(?:uv|poetry|pipenv|pdm|hatch) run|npx|bunx|(?:pnpm|yarn|npm) (?:exec|dlx)|bundle exec"
    r"|sudo|env|time|nohup|timeout \S+|(?:\S*/)?python[\d.]* -m)\s+(?=\S)"
)
#: Commands that only prepare the shell, wait or print.
_ASIDE = frozenset({
    "cd", "export", "set", "source", ".", "pushd", "popd", "echo", "true", "false", ":", "sleep", "printf", "then",
    "else", "fi", "do", "done", "for", "while", "if", "unset", "wait",
})  # fmt: skip
_SUBCOMMANDED = frozenset({
    "git", "npm", "yarn", "pnpm", "bun", "cargo", "go", "docker", "docker-compose", "kubectl", "helm", "terraform",
    "make", "just", "rake", "alembic", "pip", "pip3", "uv", "poetry", "gh", "glab", "dotnet", "mvn", "gradle",
    "mix", "swift", "bundle", "systemctl", "brew", "apt", "apt-get", "composer", "php", "flutter", "deno", "fly",
    "heroku", "gcloud", "aws", "az",
})  # fmt: skip
#: Options before a subcommand that take a value, and subcommands that have one of their own.
_WITH_VALUE = frozenset({"-n", "-C", "-c", "-f", "-p", "-F", "-w", "--namespace", "--context", "--prefix", "--filter"})
_DEEPER = frozenset({"npm run", "yarn run", "pnpm run", "bun run", "docker compose", "uv pip", "gh pr", "gh run"})
#: Operands that name everything.
_EVERYTHING = frozenset({".", "./...", "...", "--", "&"})
#: What deletes, restores, stops or overrides is never worth repeating.
_RISKY = lazy_regex(
    r"(?:^|[\s/-])(?:rm|rmdir|unlink|shred|truncate|drop|delete|clean|purge|prune|reset|restore|checkout|revert|stash|destroy|uninstall|"
    r"remove|kill|pkill|killall|force|no-verify|hard)(?=$|[\s=-])|\s-(?:D|f|rf|fr)\b",
    re.IGNORECASE,
)


class Command(NamedTuple):
    """One command of a line, without redirections and without what it is piped into.

    Attributes:
        settings: `NAME=value` and programs such as `uv run` before it, and options before its subcommand.
        family: the program with its subcommand, through whatever it is run; `rest` are the words behind it.
        is_piped: whether its own exit code is lost.
    """

    text: str
    settings: tuple[str, ...]
    family: str
    rest: tuple[str, ...] = ()
    is_piped: bool = False

    @property
    def is_aside(self) -> bool:
        """Whether it only prepares the shell, waits or prints."""
        return not self.family or self.family in _ASIDE or self.family.startswith("#")

    @property
    def words(self) -> tuple[str, ...]:
        """The program and what follows it."""
        return (*self.family.split(), *self.rest)

    @property
    def targets(self) -> tuple[str, ...]:
        """The words behind the family that are no options; what an option is given counts if it is a path.

        Example:
            >>> split_line("pytest -x -k login tests/test_a.py")[0].targets
            ('tests/test_a.py',)
        """
        return tuple(
            word
            for before, word in zip(("", *self.rest), self.rest, strict=False)
            if not word.startswith(("-", "+"))
            and (not before.startswith("-") or "/" in word)
            and word not in _EVERYTHING
        )


def split_line(line: str) -> tuple[Command, ...]:
    """Return the commands of a line; operators within quotes and `$(...)` are none, here-documents are left out.

    Example:
        >>> [(one.text, one.is_piped) for one in split_line("cd api && python -c 'a; b' 2>&1 | tail -1; (make)")]
        [('cd api', False), ("python -c 'a; b'", True), ('make', False)]
        >>> [split_line(line)[0].family for line in ("npm run lint", "CI=1 uv run pytest -q", "git -C api push origin", "/usr/bin/make all")]
        ['npm run lint', 'pytest', 'git push', 'make all']
    """
    line = _HEREDOC.sub("", line)
    found: list[Command] = []
    start, piped = 0, -1
    operators = [one.span() for one in _OPERATOR.finditer(line) if one["operator"]]
    for begin, end in [*operators, (len(line), len(line))]:
        operator = line[begin:end]
        if operator in ("|", "|&"):
            piped = begin if piped < 0 else piped
            continue
        text = line[start : piped if piped >= 0 else begin].strip()
        text = text.strip("(){} ").strip() if text[:1] in ("(", "{") or text.endswith(")") else text
        if text := _REDIRECTION.sub("", f" {text}").strip():
            found.append(_parse_command(text, is_piped=piped >= 0 or operator == "||"))
        start, piped = end, -1
    return tuple(found)


def _parse_command(text: str, *, is_piped: bool) -> Command:
    settings, bare = list[str](), text
    while before := _BEFORE.match(bare):
        settings.append(before[0].strip())
        bare = bare[before.end() :]
    try:
        words = shlex.split(bare) if _QUOTING.search(bare) else bare.split()
    except ValueError:
        words = bare.split()
    family, rest = [word.rpartition("/")[2] or word for word in words[:1]], words[1:]
    if family and family[0] in _SUBCOMMANDED:
        while len(rest) > 1 and rest[0].startswith("-"):
            size = 2 if rest[0] in _WITH_VALUE else 1
            settings, rest = [*settings, *rest[:size]], rest[size:]
        while rest and not rest[0].startswith("-"):
            family.append(rest.pop(0))
            if " ".join(family) not in _DEEPER:
                break
    return Command(text, tuple(settings), " ".join(family), tuple(rest), is_piped)


def is_risky(text: str) -> bool:
    """Return whether a command deletes, restores, stops or overrides something.

    Example:
        >>> is_risky("git checkout -- a.py"), is_risky("git push --force"), is_risky("npm test -- --ci")
        (True, True, False)
    """
    return _RISKY.search(text) is not None


def is_small_change(failed: Command, worked: Command) -> bool:
    """Return whether a command is another one with one small change in how it is run.

    That is an option more, less or another one, or a setting or runner before it. Another file, text, number or
    subcommand is other work, and so is less of them.

    Example:
        >>> def changed(one, other): return is_small_change(split_line(one)[0], split_line(other)[0])
        >>> changed("npm ci", "npm ci --legacy-peer-deps"), changed("pytest -q", "uv run pytest -q")
        (True, True)
        >>> changed("python a.py", "python b.py"), changed("npm run test", "npm run build"), changed("pytest -k login", "pytest -q")
        (False, False, False)
    """
    one, other = failed.words, worked.words
    if one == other:
        return failed.settings != worked.settings
    changes = [
        change for change in SequenceMatcher(None, one, other, autojunk=False).get_opcodes() if change[0] != "equal"
    ]
    if len(changes) != 1 or failed.settings != worked.settings:
        return False
    _, begin, end, other_begin, other_end = changes[0]
    before, after = one[begin:end], other[other_begin:other_end]
    are_options = all(words[0].startswith(("-", "+")) for words in (before, after) if words)
    return are_options and max(len(before), len(after)) <= 2 and set(before[1:]) <= set(after)
