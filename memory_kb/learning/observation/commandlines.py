"""Take a line for the shell apart: what is run, through what, with what, and to what purpose."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.chains import Link, read_chain

#: A longer line is a program of its own.
_LONGEST = 2_000


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text.

    Example:
        >>> sorted(word_set("go cargo"))
        ['cargo', 'go']
    """
    return frozenset(words.split())


_SETTING = lazy_compile(r"[A-Za-z_]\w*=")
#: Words of a line that runs another one elsewhere, and of one that reads a file into the shell; the files that every shell reads by itself.
_FAR, _SOURCED = 3, 2
_STARTUP = lazy_compile(r"(?:^|/)\.(?:bash_?\w*|zsh\w*|profile)$")
# How options begin; a plus chooses the toolchain of cargo.
_SIGNS = ("-", "+")
_REDIRECTION = lazy_compile(r"(?<!\s)\s*(?:(?:\d|&)?>{1,2}\s*(?:&\d|[^\s;|&]+)|<\s*[^\s<;|&]+)")
# What a command is put in for, and what stands for it while the line is cut into words.
_PUT_IN, _HELD = lazy_compile(r"\$\([^()]*(?:\([^()]*\)[^()]*)*\)"), "\ufffc"
_NO_COMMAND = word_set(
    "cd export set source . pushd popd echo true false : sleep printf then else fi do done for while if unset alias trap wait break continue"
)
#: Names of tools and libraries, for tags and to tell them from other words.
TOOLS = word_set(
    "pytest ruff mypy uv poetry pip npm pnpm yarn bun jest vitest eslint prettier tsc node cargo rustc clippy go golangci-lint docker "
    "kubectl helm terraform make git alembic django "
    "postgres postgresql redis mysql sqlite sqlalchemy prisma sqlx gradle mvn maven bazel cmake nix github graphql openapi kafka celery "
    "fastapi flask rails react next nextjs vue svelte "
    "tailwind webpack vite turbo nx thiserror anyhow tokio pydantic numpy pandas duckdb eslint storybook playwright cypress lua ripgrep grep "
    "podman conda axios fetch lodash yarn docker-compose kubectl tabs spaces httpx requests structlog black isort biome"
)
#: Programs that only hand on to another one, and how many words of their own they have besides flags.
_RUNNERS: tuple[tuple[tuple[str, ...], int], ...] = tuple(
    (tuple(words.split()), more)
    for words, more in (
        ("uv run", 0),
        ("poetry run", 0),
        ("pipenv run", 0),
        ("pdm run", 0),
        ("hatch run", 0),
        ("npx", 0),
        ("bunx", 0),
        ("pnpm exec", 0),
        ("pnpm dlx", 0),
        ("yarn dlx", 0),
        ("npm exec", 0),
        ("bundle exec", 0),
        ("conda run", 0),
        ("mamba run", 0),
        ("op run", 0),
        ("doppler run", 0),
        ("infisical run", 0),
        ("dotenvx run", 0),
        ("aws-vault exec", 1),
        ("chamber exec", 1),
        ("sudo", 0),
        ("env", 0),
        ("time", 0),
        ("nohup", 0),
        ("xvfb-run", 0),
        ("timeout", 1),
        ("nice", 0),
        ("docker compose exec", 1),
        ("docker compose run", 1),
        ("docker-compose exec", 1),
        ("docker-compose run", 1),
        ("docker exec", 1),
        ("nix develop", 0),
        ("direnv exec", 1),
        ("mise exec", 0),
    )
)
#: Runners that do not change what is run.
_IDLE = frozenset({"time", "nohup", "timeout", "nice"})
#: Runners that end their own words with two dashes.
_DASHED = (
    ("op", "run"),
    ("doppler", "run"),
    ("infisical", "run"),
    ("dotenvx", "run"),
    ("aws-vault", "exec"),
    ("chamber", "exec"),
    ("npm", "exec"),
    ("mise", "exec"),
)
#: Options of runners that are followed by a value.
_WITH_VALUE = word_set(
    "-n -p --name --prefix --project --directory -C --with --extra --group -u --user -w --workdir -e --env -f --file --package"
)
#: Options that say where or with which file something is run.
_PLACES = word_set(
    "-p --port -C -f --directory --file --project --project-directory --prefix --profile --context --namespace --manifest-path --kubeconfig"
)
#: Programs of which short options name the space that they work in.
_IN_SPACES, _SPACES = frozenset({"helm", "kubectl", "oc"}), frozenset({"-n"})
_SCRIPT_RUNNERS = frozenset({"npm", "pnpm", "yarn", "bun"})
#: Runners of tests that need no script.
SCRIPT_TESTS = frozenset({"jest", "vitest", "mocha", "ava"})
_WITH_SUBCOMMAND = word_set(
    "cargo go docker docker-compose kubectl helm terraform make just rake alembic pip pip3 uv poetry pdm dotnet mvn gradle gradlew mix bundle "
    "composer php flutter deno golangci-lint rails prisma sqlx diesel flask django-admin manage.py supabase buf wrangler fly heroku gcloud aws "
    "brew apt apt-get systemctl git gh rustup nvm pyenv conda bazel swift idf.py dbt ct bq gsutil ng nx turbo tofu pulumi serverless vercel netlify "
    "sam cdk pio pod west colcon ros2 dvc airflow ./gradlew ./mvnw bin/rails oc az doctl hatch tox nox"
)
TARGET_RUNNERS = frozenset({"make", "just", "rake", "task"})
_TEST_TARGET = lazy_compile(r"^(?:unit-?)?(?:tests?|check|verify)(?:[:_-]|$)")
_PYTHON = lazy_compile(r"(?:python|pypy)[\d.]*$")
_GREEN = lazy_compile(r"true|:|exit 0")
_SHELL = lazy_compile(r"(?:ba|z|da|k)?sh$")
_CONFIGURATION = lazy_compile(r"[\w./~$-]*\.(?:xml|ya?ml|toml|json|ini|cfg|conf|properties|env)")


class Command(NamedTuple):
    """One command of a line.

    Attributes:
        shown: the command as it was written, without redirections.
        settings: `NAME=value` before it.
        runners: what it is run through, such as `uv run`, or the folder of a program.
        words: the program and all that follows it.
        is_piped: whether its own exit code is lost.
        place: where it stands among all commands of the line.
        is_excused: whether the line goes well though it fails, as before `|| true`.
    """

    shown: str
    settings: tuple[str, ...]
    runners: tuple[str, ...]
    words: tuple[str, ...]
    is_piped: bool = False
    place: int = 0
    is_excused: bool = False

    @property
    def program(self) -> str:
        """The name of what is run."""
        return self.words[0] if self.words else ""

    @property
    def family(self) -> str:
        """What commands with one purpose have in common, through whatever they are run.

        Example:
            >>> [parse_line(line)[-1].family for line in ("npm test", "pnpm run test:unit", "yarn workspace web test Cart", "uv run pytest -q")]
            ['js test', 'js test', 'js test', 'pytest']
        """
        return _family(self.words)

    @property
    def flags(self) -> frozenset[str]:
        """The options, without what they are given."""
        return frozenset(word.partition("=")[0] for word in self.words[1:] if word.startswith(_SIGNS) and len(word) > 1)

    @property
    def operands(self) -> tuple[str, ...]:
        """What is neither program, subcommand nor option."""
        skip = len(_family(self.words).split()) if self.program in _WITH_SUBCOMMAND else 1
        return tuple(word for word in self.words[skip:] if not word.startswith("-"))


def command_of(args: Mapping[str, Any] | None) -> str | None:
    """Return what a tool call gives to a shell, or None.

    Example:
        >>> command_of({"command": ["bash", "-lc", "npm test"]}), command_of({"file_path": "a.py"})
        ('npm test', None)
    """
    found = (args or {}).get("command", (args or {}).get("cmd"))
    if isinstance(found, list):
        words = [str(word) for word in found]
        is_wrapped = len(words) > 2 and _SHELL.search(words[0]) and words[1].startswith("-")
        return words[2] if is_wrapped else " ".join(map(shlex.quote, words))
    return found if isinstance(found, str) else None


def parse_line(line: str) -> tuple[Command, ...]:
    """Return the commands of a line in their order; what only prepares the shell is left out.

    Of a pipe only the first command counts. A line with a here-document, or a very long one, is none.

    Example:
        >>> [command.shown for command in parse_line("cd api && docker compose up -d db; CI=1 uv run pytest -q 2>&1 | tail -3")]
        ['docker compose up -d db', 'CI=1 uv run pytest -q']
        >>> parse_line("CI=1 uv run pytest -q")[0][1:4]
        (('CI=1',), ('uv run',), ('pytest', '-q'))
        >>> parse_line("export HOST=db && make")[0].shown
        'HOST=db make'
    """
    if len(line) > _LONGEST or "<<" in line:
        return ()
    exported: list[str] = []
    found = []
    links = read_chain(line)
    folder = ""
    for place, link in enumerate(links):
        text = _undirected(link.first)
        words = _words(text)
        if words is None:
            return ()
        if len(words) == _SOURCED and words[0] in ("source", ".") and not _STARTUP.search(words[1]):
            exported.append(f"source {_within(folder, words[1])} &&")
        elif len(words) == _SOURCED and words[0] == "cd":
            folder = _within(folder, words[1])
        elif words and words[0] == "export":
            exported += [word for word in words[1:] if _SETTING.match(word) and not word.startswith("PATH=")]
        elif words and words[0] not in _NO_COMMAND and not words[0].startswith("#"):
            command = _read_far(text, words, is_piped=link.after in ("|", "||")) or _read(
                text, words, is_piped=link.after in ("|", "||")
            )
            if command.words:
                lead = "".join(f"{one} " for one in exported)
                found.append(
                    command._replace(
                        shown=lead + command.shown,
                        settings=(*exported, *command.settings),
                        place=place,
                        is_excused=_is_excused(links[place:]),
                    )
                )
    return tuple(found)


def _within(folder: str, path: str) -> str:
    """Return a path as it is called from outside of a folder.

    Example:
        >>> [_within("~/shop", path) for path in (".venv/bin/activate", "/opt/kit/env", "~/kit.env", "-")]
        ['~/shop/.venv/bin/activate', '/opt/kit/env', '~/kit.env', '-']
    """
    return (
        path
        if not folder or path.startswith(("/", "~", "$", "-"))
        else f"{folder.rstrip('/')}/{path.removeprefix('./')}"
    )


def _is_excused(links: Sequence[Link]) -> bool:
    """Tell whether a command is followed by one that goes well whatever became of it."""
    return len(links) > 1 and links[1].joiner in ("||", ";") and _GREEN.fullmatch(links[1].first) is not None


def _undirected(text: str) -> str:
    """Return a command without redirections."""
    return (
        _REDIRECTION.sub("", text).strip()
        if "'" not in text and '"' not in text
        else re.sub(r"(?<!\s)\s*2>&1\s*$", "", text)
    )


def _words(text: str) -> list[str] | None:
    """Return the words of a command; what is put in for a command is part of one."""
    held = _PUT_IN.findall(text)
    try:
        words = shlex.split(_PUT_IN.sub(_HELD, text))
    except ValueError:
        return None
    rest = iter(held)
    return [re.sub(_HELD, lambda _: next(rest, ""), word) for word in words]


def _read(text: str, words: list[str], *, is_piped: bool) -> Command:
    settings: list[str] = []
    runners: list[str] = []
    while words:
        if _SETTING.match(words[0]) and not runners:
            settings.append(words.pop(0))
            continue
        runner = next((one for one in _RUNNERS if tuple(words[: len(one[0])]) == one[0]), None)
        if runner is None:
            break
        name, more = runner
        is_dashed = name in _DASHED and "--" in words
        taken = words.index("--") + 1 if is_dashed else len(name)
        while taken < len(words) and words[taken].startswith("-") and not is_dashed:
            taken += 2 if words[taken] in _WITH_VALUE else 1
        taken += 0 if is_dashed else more
        if name[0] not in _IDLE:
            runners.append(" ".join(words[:taken]))
        words = words[taken:]
    if words and _PYTHON.match(words[0].rpartition("/")[2]) and len(words) > 2 and words[1] == "-m":
        runners.append(" ".join(words[:2]))
        words = words[2:]
    if words and "/" in words[0] and not words[0].startswith("./"):
        folder, _, name_only = words[0].rpartition("/")
        runners.append(folder + "/")
        words = [name_only, *words[1:]]
    return Command(text, tuple(settings), tuple(runners), tuple(words), is_piped)


def _read_far(text: str, words: list[str], *, is_piped: bool) -> Command | None:
    """Return the one command that is run on another machine, or None.

    Example:
        >>> [command[2:4] for command in parse_line("ssh web 'cd shop && sudo kit run a'")]
        [(('ssh web', 'sudo'), ('kit', 'run', 'a'))]
        >>> [command.program for command in parse_line("ssh web 'kit stop; kit run a'")]
        ['ssh']
    """
    if len(words) != _FAR or words[0] != "ssh" or words[1].startswith("-") or " " not in words[2]:
        return None
    inner = parse_line(words[2])
    is_all = (
        len(inner) == 1
        and sum(not link.is_idle and link.first.split()[0] != "cd" for link in read_chain(words[2])) == 1
    )
    return (
        inner[0]._replace(shown=text, runners=(f"ssh {words[1]}", *inner[0].runners), is_piped=is_piped)
        if is_all
        else None
    )


def _family(words: tuple[str, ...]) -> str:
    if not words:
        return ""
    program = words[0].removeprefix("./")
    if program in _SCRIPT_RUNNERS or program in SCRIPT_TESTS:
        return f"js {_script(words)}"
    if _PYTHON.match(program):
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        return (
            f"{script.rpartition('/')[2]} {_second(words[2:])}".strip()
            if script.endswith("manage.py")
            else f"python {script}".strip()
        )
    if program == "docker-compose":
        return f"docker compose {_second(words[1:])}".strip()
    if program == "docker" and words[1:2] == ("compose",):
        return f"docker compose {_second(words[2:])}".strip()
    if program == "uv" and words[1:2] == ("pip",):
        return f"pip {_second(words[2:])}".strip()
    if program in TARGET_RUNNERS:
        target = _second(words[1:])
        return f"{program} {'test' if _TEST_TARGET.search(target) else target}".strip()
    if program == "cmake":
        return "cmake --build" if "--build" in words else "cmake"
    if program in _WITH_SUBCOMMAND:
        rest = (
            [word for before, word in itertools.pairwise(words) if before not in _SPACES]
            if program in _IN_SPACES
            else words[1:]
        )
        return f"{'pip' if program == 'pip3' else program} {_second(tuple(rest))}".strip()
    return program


def _second(words: tuple[str, ...]) -> str:
    """Return the first word that is neither an option nor what an option is given."""
    pairs = zip(("", *words), words, strict=False)
    return next((word for before, word in pairs if not word.startswith(_SIGNS) and not _is_given(before, word)), "")


def _is_given(before: str, word: str) -> bool:
    return before in _PLACES or (before.startswith("-") and is_configuration(word))


def is_configuration(word: str) -> bool:
    """Tell whether a word names a file of settings.

    Example:
        >>> is_configuration(".ci/settings.xml"), is_configuration("verify")
        (True, False)
    """
    return _CONFIGURATION.fullmatch(word) is not None


def _script(words: tuple[str, ...]) -> str:
    """Return the purpose of a script that a package manager runs."""
    if words[0] in SCRIPT_TESTS:
        return "test"
    rest = [
        word
        for word in words[1:]
        if not word.startswith("-") or word in ("-w", "-F", "--filter", "--workspace", "--prefix", "-C")
    ]
    while rest and rest[0] in ("workspace", "-w", "-F", "--filter", "--workspace", "--prefix", "-C", "run", "exec"):
        rest = rest[1:] if rest[0] in ("run", "exec") else rest[2:]
    name = rest[0] if rest else "install"
    if name in ("install", "i", "ci", "add") or name in SCRIPT_TESTS or name == "t":
        return "install" if name in ("install", "i", "ci", "add") else "test"
    return re.split(r"[:_-]", name)[0]
