"""What a tool call does, told by its name and arguments: one family, one target, one word."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.observation.chains import read_chain
from memory_kb.text import shorten

#: What is run to see whether the work is right; their last results tell the outcome.
CHECKS = ("test", "build", "lint", "deploy")
_LONGEST, _LONGEST_LINE = 20_000, 4_000
_SHOWN, _LEAST, _PARTS = 100, 30, 8
#: What goes without saying where something else was done on the same line.
_MINOR = frozenset({"git add", "mkdir", "sleep", "chmod"})
_EDITORS = re.compile(
    r"(?i)^(?:(?:multi|notebook)?_?edit\w*|write\w*|create_?file|apply_?patch|update_?file|(?:str_)?replace\w*|patch|insert\w*)$"
)
_LOOKERS = re.compile(
    r"(?i)^(?:read|view|open|grep|glob|ls|list|search|find|fetch|web_?search|web_?fetch|notebook_?read|cat)(?:_?\w+)?$"
)
_SHELLS = re.compile(
    r"(?i)^(?:bash|sh|shell|local_shell|exec\w*|terminal|run_?(?:shell_?|terminal_?)?(?:cmd|command)|container\.exec|powershell)$"
)
_PLANNERS = re.compile(
    r"(?i)^(?:todo_?\w*|update_plan|exit_?plan_?mode|enter_?plan_?mode|ask_?user\w*|write_stdin|kill_?\w*|bash_?output)$"
)
_PATH_NAMES = ("file_path", "notebook_path", "path", "target_file", "filename", "file")
_TEXT_NAMES = ("pattern", "query", "url", "description", "name", "value")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_ADDED = re.compile(r"^\*\*\* Add File: (.+)$", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?.*", re.DOTALL)
_WRITTEN = re.compile(r"^(?:cat|tee)\s*(?:>+)?\s*([\w./~-]+)\s*<<|^sed\s+(?:-\S+\s+)*-i\b.*?\s([\w./~-]+)\s*$")
_EXPORTED = re.compile(r"export ([A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s$`]*))")
_PREFIX = re.compile(
    r"^(?:(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|\S*)|sudo|time|nohup|env|timeout\s+\S+|nice(?:\s+-n\s*\S+)?|(?:uv|poetry|pipenv|hatch|pdm)\s+run|npx|"
    r"bundle\s+exec|python\S*\s+-m)\s+)+"
)
_SUBCOMMANDED = """
    git npm yarn pnpm bun cargo go docker docker-compose kubectl helm terraform make just rake alembic pip pip3 uv poetry gh glab dotnet mvn
    gradle ./gradlew mix swift bundle systemctl brew apt apt-get composer php manage.py flutter deno fly heroku gcloud aws az ansible
"""
_WITH_SUBCOMMAND = frozenset(_SUBCOMMANDED.split())
# Programs that take options before the subcommand, and options that take a value there.
_WITH_OPTIONS = frozenset(
    {"yarn", "git", "kubectl", "docker", "docker-compose", "helm", "terraform", "npm", "pnpm", "make"}
)
_WITH_VALUE = frozenset(
    {
        "-n",
        "-C",
        "-c",
        "-f",
        "--namespace",
        "--context",
        "--prefix",
        "--project",
        "--file",
        "-p",
        "--filter",
        "-F",
        "-w",
        "--workspace",
    }
)
_DEEPER = re.compile(
    r"^(?:npm|yarn|pnpm|bun) run$|^docker compose$|^uv pip$|^kubectl rollout$|^gh (?:pr|run|release)$|^(?:aws|gcloud|az) \S+$"
)
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (word, re.compile(pattern, re.IGNORECASE))
    for word, pattern in (
        ("commit", r"^git commit\b"),
        (
            "deploy",
            (
                r"^(?:\S*/)?[\w.-]*deploy[\w.-]*(?:\s|$)|^(?:npm|yarn|pnpm|make|just|rake|mix|fly|flyctl|vercel|netlify|serverless"
                r"|gcloud \S+)(?: run)? \S*deploy"
                r"|^kubectl (?:apply|set|rollout (?:restart|status))\b|^helm (?:upgrade|install)|^terraform apply|^ansible-playbook"
            ),
        ),
        (
            "test",
            (
                r"^(?:\S*/)?(?:pytest|py\.test|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|unittest|ava|playwright test|cypress)\b"
                r"|^(?:npm|yarn|pnpm|bun|cargo|go|make|mix|dotnet|mvn|gradle|\./gradlew|swift|rake|just|flutter|deno|manage\.py)(?: run)? "
                r"(?:\S*test\S*|check|verify|jest|mocha)\b|^(?:\S*/)?(?:run[_-]?)?tests?(?:[_.-]\w+)*$|^nextest"
            ),
        ),
        (
            "lint",
            (
                r"^(?:ruff|mypy|gofmt|actionlint|markdownlint|eslint|flake8|pylint|pyright|prettier|shellcheck|golangci-lint|black"
                r"|tsc --noEmit|lint-imports)\b"
                r"|^cargo (?:check|clippy|fmt)|\b(?:lint|typecheck|type-check|vet)\b"
            ),
        ),
        (
            "build",
            (
                r"^(?:npm|yarn|pnpm|bun|make|just|gradle|\./gradlew|next|vite|hatch|uv|poetry|cargo|go|docker|docker compose|dotnet|swift)(?: run)? "
                r"(?:build|compile|all|package|publish)\b|^(?:tsc|webpack|build|cmake|ninja|mvn package|make$)\b"
            ),
        ),
        (
            "install",
            r"^(?:pip3?|uv|poetry|npm|yarn|pnpm|bun|apt|apt-get|brew|cargo|gem|bundle|composer|uv pip) (?:install|add|i|ci|sync|remove)\b",
        ),
        (
            "look",
            (
                r"^\S+ (?:list|ls|show|status|info|describe|version|--version|-version|-V)\b|"
                r"^(?:nvidia-smi|top|free|uname|id|whoami|ls|cat|head|tail|grep|rg|ag|find|fd|pwd|wc|tree|which|ps|lsof|netstat|ss|env"
                r"|printenv|echo|stat|file|less|jq|awk|sed|du"
                r"|df|diff|sort|date|type"
                r"|nl|sleep|cd|true|test|\[|alembic (?:heads|current|history|branches)|gh (?:issue|pr|run|release|repo) (?:view|list|status"
                r"|diff|checks)|docker(?: compose)? (?:ps|logs|images|inspect|top|version|stats)|kubectl (?:get|logs|describe|top"
                r"|config|version)"
                r"|git (?:status|diff|log|show|branch|blame|remote|fetch|rev-parse|ls-files|grep|stash list))(?:\s|$)"
            ),
        ),
    )
)
_RANK = ("deploy", "test", "build", "commit", "lint", "install", "run", "edit", "look", "plan")


class Call(NamedTuple):
    """What a call does.

    Attributes:
        kind: edit, look, plan, run, install, commit, or one of `CHECKS`.
        family: what calls of one sort have in common, such as `git push` or `Edit`.
        targets: what it is done to; empty for everything or for nothing in particular.
        shown: the call in a few words.
        made: files that it makes anew.
        also: what else a line for the shell does.
        line: the line for the shell that it stands on, where there are several commands.
        place: where it stands there; `joiner` is what stands before it.
        then: what would have been run after it, had it not failed.
    """

    kind: str
    family: str
    targets: tuple[str, ...] = ()
    shown: str = ""
    made: tuple[str, ...] = ()
    also: tuple[Call, ...] = ()
    line: str = ""
    place: int = 0
    joiner: str = ""
    then: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Call, ...]:
        """What the line does, in its order."""
        return tuple(sorted((*self.also, self._replace(also=())), key=lambda part: part.place))

    @property
    def told(self) -> str:
        """The line in a few words; what only gets files ready for a commit is left out."""
        parts = [
            part
            for part in self.parts
            if not self.also or (part.family not in _MINOR and (part.kind != "look" or part.place == self.place))
        ] or [self]
        room = max(_LEAST, _SHOWN * 2 // len(parts)) if len(parts) > 1 else _SHOWN
        return "".join(
            f"{_joined(part.joiner) if number else ''}{shorten(part.shown, room)}" for number, part in enumerate(parts)
        )


def read_call(tool: str | None, args: Mapping[str, Any] | None, cwd: str | None = None) -> Call:
    """Tell what a tool call does.

    Example:
        >>> read_call("Bash", {"command": "cd api && uv run pytest -x tests/test_a.py 2>&1 | tail -5"})[:4]
        ('test', 'pytest', ('tests/test_a.py',), 'uv run pytest -x tests/test_a.py')
        >>> read_call("Edit", {"file_path": "/home/ana/api/src/a.py", "old_string": "x"}, "/home/ana/api")[:3]
        ('edit', 'Edit', ('src/a.py',))
    """
    tool, args = tool or "tool", args or {}
    command = _command_of(args)
    if command is None and _SHELLS.match(tool) and isinstance(args.get("value"), str):
        command = args["value"]
    if command is not None:
        return read_command(command, cwd)
    kind = (
        "plan"
        if _PLANNERS.match(tool)
        else "edit"
        if _EDITORS.match(tool)
        else "look"
        if _LOOKERS.match(tool)
        else None
    )
    if kind == "edit":
        return _read_edit(tool, args, cwd)
    path = next((args[name] for name in _PATH_NAMES if isinstance(args.get(name), str)), None)
    text = path or next((args[name] for name in _TEXT_NAMES if isinstance(args.get(name), str)), "")
    target = short_path(text, cwd) if path else _clean(text)
    return Call(kind or _kind_of(tool.lower()), tool, (target,) if target else (), f"{tool} {target}".strip())


def _command_of(args: Mapping[str, Any]) -> str | None:
    found = args.get("command", args.get("cmd"))
    if isinstance(found, list):
        words = [str(word) for word in found]
        is_wrapped = (
            len(words) > 2 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1].startswith("-")
        )
        return words[2] if is_wrapped else " ".join(map(shlex.quote, words))
    return found if isinstance(found, str) else None


def _read_edit(tool: str, args: Mapping[str, Any], cwd: str | None) -> Call:
    path = next((args[name] for name in _PATH_NAMES if isinstance(args.get(name), str)), None)
    if path:
        files = (short_path(path, cwd),)
        is_whole = tool.lower().startswith(("write", "create"))
        return Call("edit", tool, files, f"{tool} {files[0]}", files if is_whole else ())
    patch = "\n".join(text[:_LONGEST] for text in args.values() if isinstance(text, str))
    return _read_patch(patch, cwd) or Call("edit", tool, (), tool)


def _read_patch(patch: str, cwd: str | None) -> Call | None:
    files = tuple(dict.fromkeys(short_path(found.strip(), cwd) for found in _PATCHED.findall(patch)))
    made = tuple(short_path(found.strip(), cwd) for found in _ADDED.findall(patch))
    return Call("edit", "Edit", files, f"Edit {', '.join(files[:3])}", made) if files else None


def read_command(command: str, cwd: str | None = None) -> Call:
    """Tell what a line for the shell does: the most telling of its commands stands for it.

    Example:
        >>> read_command("git add -A && git commit -m 'Fix the login' && git push").family
        'git commit'
        >>> read_command("cat > notes.txt <<'EOF'\\ntests\\nEOF").made
        ('notes.txt',)
    """
    command = command[:_LONGEST].strip()
    patched = _read_patch(command, cwd) if "*** " in command else None
    if patched:
        return patched
    written = _read_written(command, cwd)
    if written and (written.made or len(read_chain(command)) == 1):
        return written
    calls = read_parts(command, cwd)
    if not calls:
        return Call("look", "cd", (), _clean(command))
    first = min(reversed(calls), key=lambda call: _RANK.index(call.kind))
    also = tuple(sorted((call for call in calls if call is not first), key=lambda call: call.kind == "look"))[:_PARTS]
    return first._replace(also=also, line=command[:_LONGEST_LINE] if len(calls) > 1 else "")


def _read_written(command: str, cwd: str | None) -> Call | None:
    """Return the edit that a command is, which writes or changes a file by itself."""
    written = _WRITTEN.match(command)
    if not written:
        return None
    file = short_path(written[1] or written[2], cwd)
    return Call("edit", "Edit", (file,), f"Edit {file}", (file,) if written[1] else ())


def read_parts(command: str, cwd: str | None = None) -> list[Call]:
    """Return what each command of a line does, but for those that only prepare the shell."""
    found, exported = [], ""
    for place, link in enumerate(read_chain(_HEREDOC.sub("", command))):
        if not _is_aside(link.first):
            part = _read_written(link.first, cwd) or _read_simple(exported + link.first, cwd)
            found.append(part._replace(place=place, joiner=link.joiner))
        elif (setting := _EXPORTED.fullmatch(link.first)) and not setting[1].startswith("PATH="):
            exported += f"{setting[1]} "
    return found


def _joined(joiner: str) -> str:
    return "; " if joiner in (";", "\n") else f" {joiner or '&&'} "


def bare_command(shown: str) -> str:
    """Return a command without the settings and runners before it.

    Example:
        >>> bare_command("KEY=a.txt sops -d x.yaml"), bare_command("uv run pytest -q")
        ('sops -d x.yaml', 'pytest -q')
    """
    return _PREFIX.sub("", shown + " ").strip() or shown


def _is_aside(part: str) -> bool:
    return part.split(maxsplit=1)[0] in (
        "cd",
        "export",
        "source",
        ".",
        "set",
        "#",
        "then",
        "fi",
        "do",
        "done",
        "else",
        "pushd",
        "popd",
    )


def _read_simple(part: str, cwd: str | None) -> Call:
    part = re.sub(r"(?<!\s)\s+\d?>{1,2}\s*(?:&\d|\S+)", "", part).strip()
    bare = bare_command(part)
    try:
        words = shlex.split(bare)
    except ValueError:
        words = bare.split()
    if len(words) > 1 and re.fullmatch(r"python[\d.]*|node|ruby|bash|sh", words[0]) and not words[1].startswith("-"):
        words = [words[1].rpartition("/")[2] if words[1].endswith("manage.py") else words[1], *words[2:]]
    if not words:
        return Call("look", "cd", (), _clean(part))
    family, rest = (
        words[0].rpartition("/")[2] if "/" in words[0] and not words[0].startswith("./") else words[0],
        words[1:],
    )
    if family == "yarn" and rest[:1] == ["workspace"]:
        rest = rest[2:]
    while family in _WITH_OPTIONS and len(rest) > 1 and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
    while rest and not rest[0].startswith("-") and (family in _WITH_SUBCOMMAND or _DEEPER.match(family)):
        family, rest = f"{family} {rest[0]}", rest[1:]
        if not _DEEPER.match(family):
            break
    kind = _kind_of(" ".join((family, *rest[:1])))
    # Of what a flag is given, only the paths are targets.
    everything = (".", "./...", "...", "--", "&")
    targets = [
        word
        for before, word in zip(["", *rest], rest, strict=False)
        if not word.startswith("-") and (not before.startswith("-") or "/" in word)
    ]
    if kind not in (*CHECKS, "look", "run"):
        targets = []
    return Call(
        kind,
        family,
        tuple(dict.fromkeys(short_path(_clean(word), cwd) for word in targets[:20] if word not in everything)),
        _clean(part),
    )


def _kind_of(words: str) -> str:
    return next((kind for kind, shape in _KINDS if shape.search(words)), "run")


def short_path(path: str, cwd: str | None = None) -> str:
    """Return a path from the folder that the session works in.

    Example:
        >>> short_path("/home/ana/api/src/a.py", "/home/ana/api"), short_path("./a.py")
        ('src/a.py', 'a.py')
    """
    path = path.strip().removeprefix("./")
    base = (cwd or "").rstrip("/")
    if base and path.startswith(base + "/"):
        path = path[len(base) + 1 :]
    return re.sub(r"^/(?:home|Users)/[^/]+/", "~/", path)[:200]


def _clean(text: str) -> str:
    """Return a command on one line, without credentials, cut."""
    return shorten(redact(text[:2000]).text, _SHOWN)
