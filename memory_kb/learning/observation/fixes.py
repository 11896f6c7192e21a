"""Commands that failed and then worked, and what lay between: what is worth knowing next time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.observation.commandlines import TARGET_RUNNERS, Command, word_set
from memory_kb.learning.observation.failures import Failure
from memory_kb.learning.observation.remedies import HELP, PREPARES
from memory_kb.learning.observation.statements import is_general
from memory_kb.text import shorten

#: How much of a session is kept in mind: families of commands, failures of each, steps, causes.
_FAMILIES, _FAILURES, _STEPS, _CAUSES, _PASSED = 60, 8, 60, 30, 500
_SHOWN, _CODE = 110, 130
#: So often the same must have failed before a failure that nobody fixed is kept.
_UNFIXED = 3
#: The shortest name of a command that is known again in what somebody says.
_TELLING = 4
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
# Options that only ask or only try, and those that silence what stands in the way.
_ASKING_FLAGS = word_set("--help -h --version -V --dry-run --list --collect-only --list-tests --what-if")
_FORCING = re.compile(r"--?(?:f$|force|no-|skip|ignore|allow|yes|y$|verbose|debug|trace|break|dangerously|insecure|disable|without|quiet|log)")
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
#: What everybody runs in a fresh checkout.
KNOWN = re.compile(r"(?:terraform|tofu|npm|pnpm|yarn|pip3?|bundle|composer|poetry|uv) (?:init|install|i|ci|sync)\b(?!.* --(?:extra|group|with))")
_FIRST = re.compile(r"\b(?:first|before|beforehand)\b", re.IGNORECASE)
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
    _last: Attempt | None = None
    _hint: str = ""

    def edited(self, seq: int, file: str, added: str) -> None:
        """Take in that a file was changed."""
        self._last = None
        self._steps.append(Step(seq, file, added))

    def explained(self, seq: int, cause: str) -> None:
        """Take in what the agent says an error comes from."""
        self._causes.append((seq, cause))

    def refused(self) -> None:
        """Take in that the person refused a call: what they say is about that."""
        self._last = None

    def interrupted(self) -> None:
        """Take in that a person spoke: what works next may be of their doing."""
        self._steps.append(Step(0))

    def hinted(self, said: str) -> None:
        """Take in what the person says right after a failure."""
        self._hint = said if self._last else ""

    def failed(self, command: Command, failure: Failure, seq: int) -> None:
        """Take in that a command failed."""
        self._last, self._hint = Attempt(command, failure, seq), ""
        if not _teaches(command) and failure.sort != "missing program":
            return
        attempts = self._open.pop(command.family, None) or deque(maxlen=_FAILURES)
        attempts.append(Attempt(command, failure, seq))
        self._open[command.family] = attempts
        if len(self._open) > _FAMILIES:
            self._open.pop(next(iter(self._open)))

    def worked(self, command: Command, seq: int) -> Iterator[Fix]:
        """Take in that a command worked; yield what that teaches."""
        asking = command.flags & _ASKING_FLAGS
        if asking and not any(asking <= one.command.flags for one in self._open.get(command.family, ())):
            return
        attempts = self._open.pop(command.family, None)
        if attempts:
            yield from self._settle(tuple(attempts), command, seq)
        elif self._is_hinted(command) and self._last:
            self._open.pop(self._last.command.family, None)
            yield Fix("form", (self._last,), command, seqs=(self._last.seq, seq))
        self._last, self._hint = None, ""
        self._passed[_form(command)] = None
        if len(self._passed) > _PASSED:
            self._passed.pop(next(iter(self._passed)))
        self._steps.append(Step(seq, command=command))

    def _is_hinted(self, command: Command) -> bool:
        """Tell whether the person named this command right after another one had failed for its set-up."""
        last = self._last
        if last is None or not (last.failure.is_about_setup or last.failure.sort == "other") or not _teaches(command):
            return False
        words = command.words[:2] if len(command.program) < _TELLING else command.words[:1]
        if len(" ".join(words)) < _TELLING or " ".join(words) not in self._hint or last.command.program == command.program:
            return False
        return bool(_parts(last.command) & _parts(command)) and not _FIRST.search(self._hint)

    def _settle(self, attempts: tuple[Attempt, ...], command: Command, seq: int) -> Iterator[Fix]:
        others = tuple(one for one in attempts if _is_other_form(one.command, command) and _form(one.command) not in self._passed)
        plain = {one.failure.sort for one in attempts if _form(one.command) == _form(command)} - {"change", "passing"}
        for alike in _by_sort(others):
            told = tuple(one for one in alike if _tells_form(one, alike, command) or self._tells_option(one, command, seq))
            if told and plain.isdisjoint(one.failure.sort for one in told):
                helped = self._find_help(told[-1], seq)
                yield Fix(
                    "form", told, command, (helped,) if helped else (), seqs=(*(one.seq for one in told), *([helped.seq] if helped else []), seq)
                )
        same = [one for one in attempts if one not in others and (one.failure.sort not in ("change", "passing") or one.failure.advice)]
        for pattern in dict.fromkeys(one.failure.pattern for one in same):
            equal = [one for one in same if one.failure.pattern == pattern]
            last = next((one for one in reversed(equal) if _covers(command, one.command)), equal[-1])
            fix = self._explain(last, command, seq)
            if fix:
                yield fix

    def _tells_option(self, attempt: Attempt, worked: Command, seq: int) -> bool:
        """Tell whether the same command went well with nothing but an option more, and nothing was changed before."""
        failed = attempt.command
        more = worked.flags - failed.flags - _IDLE_FLAGS
        is_longer = set(failed.words) <= set(worked.words) and failed.settings == worked.settings and failed.runners == worked.runners
        if attempt.failure.sort in ("change", "passing") or len(more) != 1 or not is_longer or any(map(_FORCING.match, more)):
            return False
        return not any(one.seq == 0 or one.file or (one.command and _acts(one.command)) for one in self._since(attempt, seq))

    def _since(self, attempt: Attempt, seq: int) -> list[Step]:
        """Return what was done after a failure, and where a person spoke."""
        recent = list(self._steps)
        place = next((number for number in range(len(recent), 0, -1) if 0 < recent[number - 1].seq <= attempt.seq), 0)
        return [one for one in recent[place:] if one.seq < seq]

    def _explain(self, attempt: Attempt, command: Command, seq: int) -> Fix | None:
        """Return what between a failure and the success made the difference, if that can be told."""
        helped = self._find_help(attempt, seq)
        if helped:
            return Fix("before", (attempt,), command, (helped,), seqs=(attempt.seq, helped.seq, seq))
        if attempt.failure.sort in ("change", "passing"):
            return None
        edits = tuple(one for one in self._steps if one.file and attempt.seq < one.seq < seq)
        if not edits or not _covers(command, attempt.command):
            return None
        cause = next((text for when, text in reversed(self._causes) if attempt.seq < when < seq), None)
        return Fix("edit", (attempt,), command, edits[-2:], cause, (attempt.seq, *(one.seq for one in edits[-2:]), seq))

    def _find_help(self, attempt: Attempt, seq: int) -> Step | None:
        """Return the command after a failure that such a failure calls for."""
        helps = HELP.get(attempt.failure.sort, ())
        advice = attempt.failure.advice
        steps = (one for one in self._steps if attempt.seq < one.seq < seq and one.command and not _FETCHED.search(one.command.shown))
        named = (
            one
            for one in steps
            if one.command and (any(help_.search(_bare(one.command)) for help_ in helps) or _is_advised(one.command, attempt.command, advice))
        )
        return next(named, None) or self._find_only(attempt, seq)

    def _find_only(self, attempt: Attempt, seq: int) -> Step | None:
        """Return the one command that was run after a failure, right before the same went well."""
        between = [one for one in self._since(attempt, seq) if one.command is None or _acts(one.command)]
        if len(between) != 1 or attempt.failure.sort != "other":
            return None
        command = between[0].command
        if command is None or command.family == attempt.command.family or KNOWN.match(_bare(command)):
            return None
        is_install = command.family.rpartition(" ")[2] in ("install", "add", "sync", "ci")
        return between[0] if PREPARES.search(_bare(command)) and not is_install else None

    def unfixed(self) -> Iterator[Fix]:
        """Yield, at the end, what failed again and again for a reason that will still be there."""
        for attempts in self._open.values():
            last = attempts[-1]
            same = tuple(one for one in attempts if one.failure.pattern == last.failure.pattern)
            if len(same) >= _UNFIXED and last.failure.sort in _STABLE:
                yield Fix("none", same, seqs=tuple(one.seq for one in same))


def _parts(command: Command) -> frozenset[str]:
    """Return the words of a command that say what it is for."""
    return frozenset(part for word in command.words for part in re.split(r"[^A-Za-z]+", word.lower()) if len(part) >= _TELLING)


def _acts(command: Command) -> bool:
    """Tell whether a command may have changed something."""
    return _teaches(command) or command.program in ("git", "rm", "mv", "cp", "kubectl", "psql", "mysql")


def _is_advised(command: Command, failed: Command, advice: tuple[str, ...]) -> bool:
    """Tell whether the output of what failed names this command, and not every user of the tool knows it."""
    return (
        _teaches(command)
        and not KNOWN.match(_bare(command))
        and command.family != failed.family
        and any(f"{_bare(command)} ".startswith(f"{one} ") for one in advice)
    )


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
        " ".join(words[place : place + 1 + (word[0] == "-" and place + 1 < len(words) and not words[place + 1].startswith("-"))])
        for place, word in enumerate(words)
        if word.startswith(("-", "+")) and word not in failed.words and word not in _IDLE_FLAGS
    ]
    return f"`{_plain(' '.join(more), 60)}`" if more else ""


def show_setting(worked: Command, failed: Command) -> str:
    """Return the settings that a command has and the same one without them has not, or an empty text."""
    more = [one for one in worked.settings if one not in failed.settings]
    is_same = (worked.runners, worked.family) == (failed.runners, failed.family) and not (worked.flags ^ failed.flags) - _IDLE_FLAGS
    return f"`{_plain(' '.join(one.removesuffix(' &&') for one in more), 70)}`" if more and is_same else ""


def name(command: Command) -> str:
    """Return a command in the fewest words: how it is run, without what it is run on.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
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
        words = words[: max(1, own)] if not any(one.startswith(("-", "+")) for one in words[1:own]) else command.family.split()
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
    if failed.family.partition(" ")[0] in ("js", *TARGET_RUNNERS) and name(failed._replace(settings=())) != name(worked._replace(settings=())):
        return True
    return bool((failed.flags ^ worked.flags) - _IDLE_FLAGS)


def _tells_form(attempt: Attempt, others: tuple[Attempt, ...], worked: Command) -> bool:
    """Tell whether the form of a command was what made it fail.

    What is known of no sort must have failed again, or have worked with nothing but a setting more.
    """
    sort = attempt.failure.sort
    if any(one in attempt.failure.advice for one in set(worked.settings) - set(attempt.command.settings)):
        return True
    if sort in ("change", "passing", "missing schema", "stale code"):
        return False
    if set(worked.runners) - set(attempt.command.runners) == {"sudo"}:
        return False
    is_setting = attempt.command.words == worked.words and attempt.command.runners == worked.runners
    return len(others) >= _AGAIN or is_setting if sort in ("other", "wrong option") else True


def _covers(worked: Command, failed: Command) -> bool:
    """Tell whether what worked is what failed, or more than that."""
    return not worked.operands or worked.operands == failed.operands or set(failed.operands) <= set(worked.operands)
