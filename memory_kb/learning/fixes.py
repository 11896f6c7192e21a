"""Commands that failed and then worked, and what lay between: what is worth knowing next time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.commandlines import TARGET_RUNNERS, Command, word_set
from memory_kb.learning.failures import Failure
from memory_kb.learning.statements import is_general
from memory_kb.text import shorten

#: How much of a session is kept in mind: families of commands, failures of each, steps, causes.
_FAMILIES, _FAILURES, _STEPS, _CAUSES, _PASSED = 60, 8, 60, 30, 500
_SHOWN, _CODE = 110, 130
#: So often the same must have failed before a failure that nobody fixed is kept.
_UNFIXED = 3
_AGAIN = 2
# Of what these say nothing is learned: looking around, and what is tried until it fits.
_NO_LESSON = word_set(
    "git gh psql mysql sqlite3 redis-cli mongosh curl wget ssh scp rsync kill pkill lsof rm mv cp mkdir touch ls cat head tail grep rg ag fd "
    "find sed awk jq wc sort diff which "
    "type file stat du df ps env printenv date test [ tree open code vim nano less more tee xargs chmod chown cut tr uniq nl ping dig nc "
    "kubectl gcloud aws az perl "
    "gofmt prettier markdownlint actionlint"
)
_IDLE_FLAGS = word_set(
    "-q -qq -v -vv -x -s -k --quiet --verbose --tb --no-header -rA -ra --maxfail --lf --ff --color --no-color --silent --reporter "
    "--runInBand -i -n -j --watch --watchAll "
    "--nocapture -run -count -race --lib --bin --tests --fix --json --coverage --cov -t --testNamePattern --last-failed --durations "
    "--no-pager -p --workspace --all"
)
_SERVICE = re.compile(
    r"^(?:docker(?:-| )compose (?:\S+ )*(?:up|start)|docker (?:start|run)|systemctl (?:--user )?start|service \S+ start|brew services start|"
    r"pg_ctl\b|redis-server|colima start|"
    r"minikube start|supabase start|make \S*(?:up|db|services|infra|deps)\b|(?:npm|pnpm|yarn|bun)(?: run)? \S*(?:db|services|infra|up)\b|"
    r"\S*(?:start|up)[-_]\S+|podman (?:start|run))"
)
_INSTALL = re.compile(
    r"^(?:(?:uv (?:sync|pip install)|pip3? install|poetry install|pdm install|npm (?:ci|install)|pnpm install|yarn(?: install)?|"
    r"bundle install|apt(?:-get)? install|brew install|conda install)\b.*"
    r"(?:--extra|--all-extras|--with|--group|--dev|\[\w+|--legacy-peer-deps|-r \S*(?:dev|test|ci)\S*|lib\S+|-dev\b)|brew install \S|"
    r"apt(?:-get)? install|rustup (?:component|target) add|playwright install|"
    r"^\S*(?:install|setup|bootstrap)[\w.-]*\.(?:sh|py)\b|^make (?:install|setup|bootstrap|tools|deps)\b)"
)
_SCHEMA = re.compile(
    r"\bmigrate\b|\balembic (?:upgrade|stamp)|\bupgrade heads?\b|prisma (?:db push|migrate)|createdb\b|createuser\b|db:(?:create|"
    r"migrate|setup|push|reset|schema)|sqlx (?:database|migrate)|diesel (?:setup|migration)|goose\b|flyway\b"
)
_GENERATE = re.compile(r"\bgenerate\b|\bgen(?:[:_-]\w+)?\b|\bcodegen\b|\bprotoc\b|\bbuf\b|sqlx prepare|\bmake proto\b")
_CLEAN = re.compile(
    r"\bclean\b|--clear-?cache|--no-cache|rm -rf \S*(?:cache|\.next|dist|build|target|node_modules/\.)|cache (?:clean|clear|"
    r"purge)"
)
_SETTINGS = re.compile(r"^(?:cp \S*env\S* \S*\.env|source|direnv allow)")
_VERSION = re.compile(r"^(?:(?:nvm|fnm|pyenv|rustup|asdf|mise|corepack|goenv|uv python)\b|sdk use\b)")
_HELP = {
    "missing service": (_SERVICE,),
    "missing package": (_INSTALL, _GENERATE),
    "missing program": (_INSTALL,),
    "missing schema": (_SCHEMA,),
    "stale code": (_GENERATE, _CLEAN),
    "missing setting": (_SETTINGS,),
    "wrong version": (_VERSION,),
    "wrong package manager": (re.compile(r"^corepack\b|lockfile"),),
    "wrong module system": (_CLEAN,),
    "other": (_GENERATE, _VERSION, _SERVICE, _SCHEMA),
}
# What a command fails with that is run in the wrong way or place.
_WRONG_PLACE = frozenset({"missing program", "missing package", "missing script", "wrong package manager"})
_STABLE = frozenset({"wrong version", "not allowed", "wrong package manager", "wrong platform", "wrong module system"})
_CONFIGURATION = re.compile(
    r"(?:^|/)(?:[\w.-]*config[\w.-]*\.(?:js|ts|mjs|cjs|json|ya?ml|toml)|package\.json|pyproject\.toml|setup\.(?:cfg|py)|tox\.ini|pytest\.ini|"
    r"conftest\.py|tsconfig[\w.]*\.json|Dockerfile\S*|"
    r"(?:docker-)?compose[\w.-]*\.ya?ml|go\.(?:mod|work)|Cargo\.toml|Makefile|justfile|build\.gradle(?:\.kts)?|pom\.xml|\.env\S*|"
    r"\.\w+rc(?:\.\w+)?|\.npmrc|\.tool-versions|\.nvmrc|[\w.-]+\.nix)$|"
    r"^\.(?:github|gitlab|circleci|cargo)\b|\.gitlab-ci\.yml$"
)
# A setting whose value is a secret, or of this machine alone.
_LONG_VALUE = re.compile(
    r"(?<!\S)([A-Za-z_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\w*|[A-Za-z_]\w*(?==[^\s=]*://)|"
    r"[A-Za-z_]\w*(?==\S{41}))=(?:\"[^\"]*\"|'[^']*'|\S+)"
)
_HOME = re.compile(r"/(?:home|Users)/[^/\s]+/")
_FETCHED = re.compile(r"\bcurl\b|\bwget\b|base64|\|\s*(?:ba|z)?sh\b|--no-verify|https?://")


class Attempt(NamedTuple):
    """A command that failed."""

    command: Command
    failure: Failure
    seq: int


class Step(NamedTuple):
    """What was done between a failure and a success: an edit of a file, or a command that worked."""

    seq: int
    file: str = ""
    added: str = ""
    command: Command | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """A failure together with what made it work.

    `way` tells how: `form` where the command was to be written otherwise, `before` where another
    one had to come first, `edit` where a file had to change, `none` where nothing helped.
    """

    way: str
    attempts: tuple[Attempt, ...]
    worked: Command | None = None
    steps: tuple[Step, ...] = ()
    cause: str | None = None
    seqs: tuple[int, ...] = ()


@dataclass(slots=True)
class FixWatch:
    """Watch commands fail and work again."""

    _open: dict[str, deque[Attempt]] = field(default_factory=dict)
    _steps: deque[Step] = field(default_factory=lambda: deque(maxlen=_STEPS))
    _causes: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_CAUSES))
    _passed: dict[str, None] = field(default_factory=dict)

    def edited(self, seq: int, file: str, added: str) -> None:
        """Take in that a file was changed."""
        self._steps.append(Step(seq, file, added))

    def explained(self, seq: int, cause: str) -> None:
        """Take in what the agent says an error comes from."""
        self._causes.append((seq, cause))

    def failed(self, command: Command, failure: Failure, seq: int) -> None:
        """Take in that a command failed."""
        if not _teaches(command) and failure.sort != "missing program":
            return
        attempts = self._open.pop(command.family, None) or deque(maxlen=_FAILURES)
        attempts.append(Attempt(command, failure, seq))
        self._open[command.family] = attempts
        if len(self._open) > _FAMILIES:
            self._open.pop(next(iter(self._open)))

    def worked(self, command: Command, seq: int) -> Iterator[Fix]:
        """Take in that a command worked; yield what that teaches."""
        attempts = self._open.pop(command.family, None)
        if attempts:
            yield from self._settle(tuple(attempts), command, seq)
        self._passed[_form(command)] = None
        if len(self._passed) > _PASSED:
            self._passed.pop(next(iter(self._passed)))
        self._steps.append(Step(seq, command=command))

    def _settle(self, attempts: tuple[Attempt, ...], command: Command, seq: int) -> Iterator[Fix]:
        others = tuple(one for one in attempts if _is_other_form(one.command, command) and _form(one.command) not in self._passed)
        for alike in _by_sort(others):
            told = tuple(one for one in alike if _tells_form(one, alike, command))
            if told:
                helped = self._find_help(told[-1], seq)
                yield Fix(
                    "form", told, command, (helped,) if helped else (), seqs=(*(one.seq for one in told), *([helped.seq] if helped else []), seq)
                )
        same = [one for one in attempts if one not in others and one.failure.sort not in ("change", "passing")]
        for message in dict.fromkeys(one.failure.message for one in same):
            last = [one for one in same if one.failure.message == message][-1]
            fix = self._explain(last, command, seq)
            if fix:
                yield fix

    def _explain(self, attempt: Attempt, command: Command, seq: int) -> Fix | None:
        """Return what between a failure and the success made the difference, if that can be told."""
        helped = self._find_help(attempt, seq)
        if helped:
            return Fix("before", (attempt,), command, (helped,), seqs=(attempt.seq, helped.seq, seq))
        edits = tuple(one for one in self._steps if one.file and attempt.seq < one.seq < seq)
        if not edits or not _covers(command, attempt.command):
            return None
        cause = next((text for when, text in reversed(self._causes) if attempt.seq < when < seq), None)
        return Fix("edit", (attempt,), command, edits[-2:], cause, (attempt.seq, *(one.seq for one in edits[-2:]), seq))

    def _find_help(self, attempt: Attempt, seq: int) -> Step | None:
        """Return the command after a failure that such a failure calls for."""
        helps = _HELP.get(attempt.failure.sort, ())
        steps = (one for one in self._steps if attempt.seq < one.seq < seq and one.command and not _FETCHED.search(one.command.shown))
        return next((one for one in steps if one.command and any(help_.search(_bare(one.command)) for help_ in helps)), None)

    def unfixed(self) -> Iterator[Fix]:
        """Yield, at the end, what failed again and again for a reason that will still be there."""
        for attempts in self._open.values():
            last = attempts[-1]
            same = tuple(one for one in attempts if one.failure.message == last.failure.message)
            if len(same) >= _UNFIXED and last.failure.sort in _STABLE:
                yield Fix("none", same, seqs=tuple(one.seq for one in same))


def is_kept(fix: Fix) -> bool:
    """Tell whether a fix is worth knowing, once all that was said of it is known.

    A change that helped teaches something only if somebody said why, or if it set up the tools.
    """
    if fix.way != "edit":
        return True
    failure = fix.attempts[0].failure
    if fix.cause is not None and (failure.is_about_setup or is_general(fix.cause)):
        return True
    return failure.is_about_setup and all(_CONFIGURATION.search(one.file) for one in fix.steps)


def with_cause(fix: Fix, cause: str | None) -> Fix:
    """Return the fix with the cause that was told after it, if none was told before."""
    return replace(fix, cause=cause) if fix.way == "edit" and fix.cause is None else fix


def show(command: Command) -> str:
    """Return a command as it stands in a learning."""
    return f"`{_plain(command.shown, _SHOWN)}`"


def _plain(text: str, limit: int) -> str:
    """Return a command on one line, without credentials, long values and the name of a home."""
    return shorten(_HOME.sub("~/", redact(_LONG_VALUE.sub(r"\1=…", text)).text.replace("`", "")), limit)


def show_step(step: Step) -> str:
    """Return a step as it stands in a learning."""
    if step.command:
        return show(step.command)
    line = next((line.strip() for line in step.added.splitlines() if line.strip()), "")
    code = redact(shorten(line.replace("`", "'"), _CODE)).text
    return f"`{step.file}`: `{code}`" if code and not _FETCHED.search(code) else f"`{step.file}`"


def show_more(worked: Command, failed: Command) -> str:
    """Return the options that a command has and another one has not, or an empty text."""
    words = list(worked.words)
    more = [
        " ".join(words[place : place + 1 + (place + 1 < len(words) and not words[place + 1].startswith("-"))])
        for place, word in enumerate(words)
        if word.startswith("-") and word not in failed.words and word not in _IDLE_FLAGS
    ]
    return f"`{_plain(' '.join(more), 60)}`" if more else ""


def name(command: Command) -> str:
    """Return a command in the fewest words: how it is run, without what it is run on.

    Example:
        >>> from memory_kb.learning.commandlines import parse_line
        >>> name(parse_line("uv run pytest -q tests/test_a.py")[0]), name(parse_line("yarn workspace web test Cart")[0])
        ('uv run pytest', 'yarn workspace web test')
    """
    words = list(command.words)
    if command.family.startswith("js "):
        purpose = command.family[3:]
        end = next((place for place, word in enumerate(words) if word.startswith(purpose) or word in ("i", "ci", "add", "t")), len(words) - 1)
        words = words[: end + 1]
    else:
        own = len(command.family.split()) + (words[:2] == ["uv", "pip"]) - (command.program == "docker-compose")
        words = words[: max(1, own)]
    runners = [one for one in command.runners if not one.endswith("/")]
    folder = next((one for one in command.runners if one.endswith("/")), "")
    return _plain(" ".join((*command.settings, *runners, folder + " ".join(words))), 60)


def _bare(command: Command) -> str:
    return " ".join(command.words)


def _form(command: Command) -> str:
    return " ".join((*command.settings, *command.runners, *command.words))


def _by_sort(attempts: tuple[Attempt, ...]) -> list[tuple[Attempt, ...]]:
    """Return the attempts that failed for the same sort of reason together."""
    groups: dict[str, list[Attempt]] = {}
    for one in attempts:
        groups.setdefault("missing" if one.failure.sort in _WRONG_PLACE else one.failure.sort, []).append(one)
    return [tuple(group) for group in groups.values()]


def _teaches(command: Command) -> bool:
    return command.program not in _NO_LESSON and not command.program.startswith("-") and not _FETCHED.search(command.shown)


def _is_other_form(failed: Command, worked: Command) -> bool:
    """Tell whether two commands of a family differ in more than what they are run on."""
    if set(worked.settings) - set(failed.settings) or failed.runners != worked.runners or failed.program != worked.program:
        return True
    if failed.family.partition(" ")[0] in ("js", *TARGET_RUNNERS) and name(failed) != name(worked):
        return True
    return bool((failed.flags ^ worked.flags) - _IDLE_FLAGS)


def _tells_form(attempt: Attempt, others: tuple[Attempt, ...], worked: Command) -> bool:
    """Tell whether the form of a command was what made it fail.

    What is known of no sort must have failed again, or have worked with nothing but a setting more.
    """
    sort = attempt.failure.sort
    if sort in ("change", "passing", "missing schema", "stale code"):
        return False
    if set(worked.runners) - set(attempt.command.runners) == {"sudo"}:
        return False
    is_setting = attempt.command.words == worked.words and attempt.command.runners == worked.runners
    return len(others) >= _AGAIN or is_setting if sort in ("other", "wrong option") else True


def _covers(worked: Command, failed: Command) -> bool:
    """Tell whether what worked is what failed, or more than that."""
    return not worked.operands or worked.operands == failed.operands or set(failed.operands) <= set(worked.operands)
