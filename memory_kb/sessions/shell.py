"""Parse a shell command line: its commands, their words, and how two of them differ."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

#: An operator; quoted text and command substitutions are passed over first.
_OPERATOR = re.compile(
    r"""'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|`[^`]*(?:`|\Z)|\\.|\$\((?:[^()]|\((?:[^()]|\([^()]*\))*+\))*+(?:\)|\Z)"""
    r"""|[<>]&|&>|(?P<operator>&&|\|\||\|&|[;\n|&])""",
    re.DOTALL,
)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*(?:\n.*?^\s*\2[^\S\n]*$|.*)", re.DOTALL | re.MULTILINE)
_REDIRECTION = re.compile(r"\s+(?:(?:\d|&)?>{1,2}\s*(?:&\d|[^\s;|&]+)|<\s*[^\s<;|&]+)")
_QUOTING = re.compile(r"[\\'\"]")
_SETTING = re.compile(r"[A-Za-z_]\w*=")
#: What is run before a command without being its purpose, as words at its beginning.
_RUNNERS = tuple(
    tuple(words.split())
    for words in [
        "uv run",
        "poetry run",
        "pipenv run",
        "pdm run",
        "hatch run",
        "npx",
        "bunx",
        "pnpm exec",
        "pnpm dlx",
        "yarn dlx",
        "npm exec",
        "bundle exec",
        "sudo",
        "env",
        "time",
        "nohup",
    ]
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
#: Programs that take options before their subcommand, and those of the options that take a value.
_WITH_OPTIONS = frozenset({"git", "kubectl", "docker", "helm", "terraform", "npm", "pnpm", "yarn"})
_WITH_VALUE = frozenset({"-n", "-C", "-c", "-f", "-p", "-F", "-w", "--namespace", "--context", "--prefix", "--filter"})
_DEEPER = frozenset({"npm run", "yarn run", "pnpm run", "bun run", "docker compose", "uv pip", "gh pr", "gh run"})
#: Operands that name everything.
_EVERYTHING = frozenset({".", "./...", "...", "--", "&"})
_PYTHON = re.compile(r"(?:\S*/)?python[\d.]*$")
#: What deletes, restores, stops or overrides is never worth repeating.
_RISKY = re.compile(
    r"(?:^|[\s/-])(?:rm|rmdir|unlink|shred|truncate|drop|delete|clean|purge|prune|reset|restore|checkout|revert|stash|destroy|uninstall|"
    r"remove|kill|pkill|killall|force|no-verify|hard)(?=$|[\s=-])|\s-(?:D|f|rf|fr)\b",
    re.IGNORECASE,
)


class Command(NamedTuple):
    """One command of a line.

    Attributes:
        text: the command without redirections and without what it is piped into.
        settings: `NAME=value` and programs such as `uv run` before it.
        words: the program and what follows it.
        joiner: the operator before it, "" for the first.
        is_piped: whether its own exit code is lost.
    """

    text: str
    settings: tuple[str, ...]
    words: tuple[str, ...]
    joiner: str = ""
    is_piped: bool = False

    @property
    def program(self) -> str:
        """The name of what is run."""
        return self.words[0] if self.words else ""

    @property
    def is_aside(self) -> bool:
        """Whether it only prepares the shell, waits or prints."""
        return not self.words or self.program in _ASIDE or self.program.startswith("#")

    @property
    def bare(self) -> str:
        """The command without settings and runners.

        Example:
            >>> split_line("CI=1 uv run pytest -q")[0].bare
            'pytest -q'
        """
        return " ".join(self.words)

    @property
    def family(self) -> str:
        """The program with its subcommand, through whatever it is run.

        Example:
            >>> [split_line(line)[0].family for line in ("npm run lint", "uv run pytest -q", "git -C api push origin", "/usr/bin/make all")]
            ['npm run lint', 'pytest', 'git push', 'make all']
        """
        return " ".join(self._parts()[0])

    @property
    def targets(self) -> tuple[str, ...]:
        """The words behind the family that are no options; what an option is given counts if it is a path.

        Example:
            >>> split_line("pytest -x -k login tests/test_a.py")[0].targets
            ('tests/test_a.py',)
        """
        rest = self._parts()[1]
        return tuple(
            word
            for before, word in zip(["", *rest], rest, strict=False)
            if not word.startswith(("-", "+"))
            and (not before.startswith("-") or "/" in word)
            and word not in _EVERYTHING
        )

    def _parts(self) -> tuple[list[str], list[str]]:
        """Return the words of the family, and those behind it."""
        family, rest = list(self.words[:1]), list(self.words[1:])
        while family[:1] and family[0] in _WITH_OPTIONS and len(rest) > 1 and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
        while rest and not rest[0].startswith("-") and family[0] in _SUBCOMMANDED:
            family.append(rest.pop(0))
            if " ".join(family) not in _DEEPER:
                break
        return family, rest


def split_line(line: str) -> tuple[Command, ...]:
    """Return the commands of a line; operators within quotes and `$(...)` are none, here-documents are left out.

    Example:
        >>> [(one.joiner, one.text, one.is_piped) for one in split_line("cd api && python -c 'a; b' 2>&1 | tail -1; (make)")]
        [('', 'cd api', False), ('&&', "python -c 'a; b'", True), (';', 'make', False)]
    """
    line = _HEREDOC.sub("", line)
    found: list[Command] = []
    start, joiner, piped = 0, "", -1
    operators = [one.span() for one in _OPERATOR.finditer(line) if one["operator"]]
    for begin, end in [*operators, (len(line), len(line))]:
        operator = line[begin:end]
        if operator in ("|", "|&"):
            piped = begin if piped < 0 else piped
            continue
        text = _undirected(line[start : piped if piped >= 0 else begin])
        if text:
            found.append(_read(text, joiner if found else "", is_piped=piped >= 0 or operator == "||"))
            joiner = operator
        elif operator.strip():
            joiner = operator
        start, piped = end, -1
    return tuple(found)


def _undirected(text: str) -> str:
    text = text.strip().strip("(){} ").strip() if text.strip()[:1] in "({" or text.strip()[-1:] == ")" else text.strip()
    return _REDIRECTION.sub("", f" {text}").strip()


def _read(text: str, joiner: str, *, is_piped: bool) -> Command:
    try:
        words = shlex.split(text) if _QUOTING.search(text) else text.split()
    except ValueError:
        words = text.split()
    settings: list[str] = []
    while words:
        runner = next((one for one in _RUNNERS if tuple(words[: len(one)]) == one), None)
        if _SETTING.match(words[0]):
            settings.append(words.pop(0))
        elif words[0] == "timeout" and len(words) > 2:
            words = words[2:]
        elif runner and len(words) > len(runner):
            settings.append(" ".join(runner))
            words = words[len(runner) :]
        else:
            break
    if len(words) > 2 and _PYTHON.match(words[0]) and words[1] == "-m":
        settings.append(" ".join(words[:2]))
        words = words[2:]
    if words and "/" in words[0]:
        words[0] = words[0].rpartition("/")[2] or words[0]
    return Command(text, tuple(settings), tuple(words), joiner, is_piped)


def is_risky(text: str) -> bool:
    """Return whether a command deletes, restores, stops or overrides something.

    Example:
        >>> is_risky("git checkout -- a.py"), is_risky("git push --force"), is_risky("npm test -- --ci")
        (True, True, False)
    """
    return _RISKY.search(text) is not None


def _strip_common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two commands' words without those that they begin and end with alike."""
    shorter = min(len(one), len(other))
    head = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    tail = next((back for back in range(shorter - head) if one[-1 - back] != other[-1 - back]), shorter - head)
    return one[head : len(one) - tail], other[head : len(other) - tail]


def is_small_change(failed: Command, worked: Command) -> bool:
    """Return whether a command is another one with one small change in how it is run.

    That is an option more, less or another one, a setting or runner before it, or another subcommand.
    Another file, text or number is other work.

    Example:
        >>> def changed(one, other): return is_small_change(split_line(one)[0], split_line(other)[0])
        >>> changed("npm ci", "npm ci --legacy-peer-deps"), changed("pytest -q", "uv run pytest -q"), changed("npm run tests", "npm run test")
        (True, True, True)
        >>> changed("python a.py", "python b.py"), changed("npm ci", "make"), changed("pytest -q", "pytest -q")
        (False, False, False)
    """
    if failed.program != worked.program or failed.text == worked.text:
        return False
    if failed.words == worked.words:
        return failed.settings != worked.settings
    if failed.settings != worked.settings:
        return False
    before, after = _strip_common(failed.words, worked.words)
    if len(before) > 2 or len(after) > 2 or set(before) & set(after):
        return False
    if all(one[:1] in (["-"], []) or one[0].startswith(("-", "+")) for one in (list(before), list(after)) if one):
        return True
    is_subcommand = failed.program in _SUBCOMMANDED and len(before) == len(after) == 1
    return is_subcommand and all(re.fullmatch(r"[a-z][\w:-]*", one[0]) is not None for one in (before, after))
