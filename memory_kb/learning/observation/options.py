"""The options of a command and what each is given: those that another one has not, and those that are of one thing alone."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import Command, is_configuration, word_set

IDLE_FLAGS = word_set(
    "-q -qq -v -vv -x -s -k --quiet --verbose --tb --no-header -rA -ra --maxfail --lf --ff --color --no-color --silent --reporter "
    "--runInBand -i -n -j --watch --watchAll "
    "--nocapture -run -count -race --lib --bin --tests --fix --json --coverage --cov -t --testNamePattern --last-failed --durations "
    "--no-pager -p --workspace --all"
)
# What is the address or the number of one thing; what every machine calls itself is none. Where something is fetched
# from is one too: an agent that was talked into a server should not tell the next one to use it.
_ONE_THING = lazy_compile(
    r"(?!127\.|0\.0\.0\.0|localhost\b|::1)(?:[a-z][a-z0-9+.-]*://\S+|"
    r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?|"
    r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){3,7}|"
    r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,64}|"
    r"(?![A-Z]+\d+$)(?=(?:[A-Z]*\d){3})(?=\d*[A-Z])[0-9A-Z]{6,}|emulator-\d+|COM\d+|/dev/(?:tty|cu|disk|sd|nvme|serial|video)\S*|"
    r"[\w-]+(?:\.[\w-]+)*\.(?:local|lan)(?::\d+)?|[\w.-]+:\d{4,5})"
)
# Options that take the number of one thing.
_OF_ONE = lazy_compile(r"(?:^|[-_])(?:port|ip|mac|id|pid|uuid|udid|serial|sn|sha|addr(?:ess)?)$")
# Options that choose what is worked on.
_CHOOSING = lazy_compile(
    r"(?:^|[-_])(?:filter|tests?|tests?[-_]?name|grep|match|select|only|include|exclude|pattern|branch|ref|rev|revision|commit|tag|message|title|"
    r"query|file|path|dir|directory|out|output|input|example|bin|package|crate|module)$",
    re.IGNORECASE,
)
_ABSENT = lazy_compile(
    r"\b(?:(?:do(?:es)?|did) ?n[o']t exist|(?:was |is |were |are )?not (?:be )?found|no such|unknown|(?:unable to|could not|couldn't|cannot|can't) "
    r"(?:find|locate)|(?:is|are) not (?:known|available)|no \S+ (?:named|called|matching)|no \w+ [`'\"][^`'\"]+[`'\"] (?:was )?found|"
    r"non[- ]?existent)\b",
    re.IGNORECASE,
)
#: Options that only wait longer, or try again.
WAITING = lazy_compile(r"time-?out|\bretr(?:y|ies)|\bwait|max-?time|attempts")
# What silences what stands in the way, and what leaves out a part of the work.
_FORCING = lazy_compile(
    r"--?(?:f$|force|no-|D?(?:[\w.]*\.)?skip|ignore|allow|yes|y$|verbose|debug|trace|break|dangerously|insecure|disable|without|quiet|log|"
    r"deselect|exclude|filter|only|trusted|tags$|pl$|m$|projects$|(?:[\w-]*-)?(?:pattern|grep|match)$)",
    re.IGNORECASE,
)
_FORCED = lazy_compile(
    r"(?:\w+_)?(?:NO|SKIP|DISABLE|IGNORE|ALLOW|FORCE|BLESS|ACCEPT|REGEN\w*|UPDATE|OVERWRITE|RECORD|INSECURE|UNAUTHORIZED|HUSKY|"
    r"(?:RUST_)?(?:BACKTRACE|LOG)|DEBUG|VERBOSE|TRACE|V|DRY_?RUN)(?:_\w+)?=",
    re.IGNORECASE,
)
# A target that does less than the one it is named after; options that hold an install to what is locked.
_LESS = lazy_compile(r"\w[-_:](?:fast|quick|smoke|lite|light|short|mini)$")
_STRICT = lazy_compile(r"-.*(?:frozen|locked|immutable)")
_ALIKE, _TELLING = 0.75, 4


class Option(NamedTuple):
    """An option, what it is given, and both as they can be given to a shell again."""

    name: str
    value: str = ""
    shown: str = ""
    is_joined: bool = False

    @property
    def word(self) -> str:
        """The word that the option is in its command."""
        return f"{self.name}={self.value}" if self.is_joined else self.name


def read_options(command: Command) -> tuple[Option, ...]:
    """Return the options of a command with the word that stands behind each, which may be an operand.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> [one[:3] for one in read_options(parse_line("app build --to=x -d 'a b' +nightly")[0])]
        [('--to', 'x', '--to=x'), ('-d', 'a b', "-d 'a b'"), ('+nightly', '', '+nightly')]
    """
    words = command.words
    found = []
    for place, word in enumerate(words[1:], 1):
        if len(word) < 2 or word == "--" or not word.startswith(("-", "+")):
            continue
        name, joined, value = word.partition("=")
        after = words[place + 1] if place + 1 < len(words) else ""
        if joined:
            found.append(Option(name, value, f"{name}={as_written(value, command.shown)}", is_joined=True))
        elif word[0] == "+" or not after or after.startswith("-"):
            found.append(Option(word, "", word))
        else:
            found.append(Option(word, after, f"{word} {as_written(after, command.shown)}"))
        if words[place - 1] == "--":
            found[-1] = found[-1]._replace(shown=f"-- {found[-1].shown}")
    return tuple(found)


def as_written(word: str, line: str) -> str:
    """Return a word with the quotes it has in a line.

    Example:
        >>> as_written("iPhone 15", "run --on='iPhone 15'"), as_written("$(gh auth token)", "T=$(gh auth token) run")
        ("'iPhone 15'", '$(gh auth token)')
    """
    return next((one for one in (f"'{word}'", f'"{word}"') if one in line), word if word in line else shlex.quote(word))


def flags_beside(one: Command, other: Command) -> frozenset[str]:
    """Return the options that a command has and another has not, but for those that only tell how much is said or run.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> plain, *others = (parse_line(line)[0] for line in ("mvn verify", "mvn -q verify", "mvn -s ci/settings.xml verify"))
        >>> [sorted(flags_beside(one, plain)) for one in others]
        [[], ['-s']]
    """
    files = {
        option.name for option in read_options(one) if _names_place(option.value) and option.value not in other.words
    }
    return (one.flags - other.flags) - (IDLE_FLAGS - files) - {"--"}


def _names_place(value: str) -> bool:
    """Tell whether an option is given a file of settings or the address of a server."""
    return is_configuration(value) or "://" in value


def added_options(worked: Command, failed: Command) -> tuple[Option, ...]:
    """Return the options that a command has and another has not; where it has none, those that are given something else."""
    files = flags_beside(worked, failed) & IDLE_FLAGS
    more = tuple(
        one
        for one in read_options(worked)
        if one.word not in failed.words and (one.name not in IDLE_FLAGS or one.name in files)
    )
    replaced = None if more else replaced_value(failed, worked)
    if set(failed.words) <= set(worked.words):
        more = tuple(
            one if one.is_joined or one.value not in failed.words else Option(one.name, "", one.name) for one in more
        )
    return more if replaced is None else (replaced,)


def replaced_value(failed: Command, worked: Command) -> Option | None:
    """Return the one option that is given something else, where two commands differ in nothing else.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> one, other, more = (parse_line(line)[0] for line in ("app run --on a", "app run --on b", "app run --on b c"))
        >>> replaced_value(one, other), replaced_value(one, more)
        (Option(name='--on', value='b', shown='--on b', is_joined=False), None)
    """
    if (failed.settings, failed.runners, len(failed.words)) != (worked.settings, worked.runners, len(worked.words)):
        return None
    places = [place for place, pair in enumerate(zip(failed.words, worked.words, strict=True)) if pair[0] != pair[1]]
    if len(places) != 1 or places[0] == 0:
        return None
    place = places[0]
    old, new, before = failed.words[place], worked.words[place], worked.words[place - 1]
    if new.startswith("-"):
        return next(
            (
                one
                for one in read_options(worked)
                if one.is_joined and one.word == new and old.startswith(f"{one.name}=")
            ),
            None,
        )
    return next(
        (one for one in read_options(worked) if (one.name, one.value) == (before, new) and not one.is_joined), None
    )


def is_other_job(failed: Command, worked: Command) -> bool:
    """Tell whether each of two commands has an option of its own, and the second leaves out what the first is run on.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> lines = ("app --export linux out/a", "app --import", "app --pack linux out/a", "app --export linux")
        >>> export, other, same, short = (parse_line(line)[0] for line in lines)
        >>> is_other_job(export, other), is_other_job(export, same), is_other_job(short, other)
        (True, False, False)
    """
    own = flags_beside(failed, worked)
    given = {one.value for one in read_options(failed) if one.name in own and not one.is_joined}
    return bool(own and flags_beside(worked, failed)) and not set(failed.operands) - given <= set(worked.operands)


def is_green_only(worked: Command, failed: Command) -> bool:
    """Tell whether a command has an option or a setting more that only silences what is wrong, or leaves out a part of the work.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> failed, *others = (parse_line(line)[0] for line in ("mvn verify", "mvn verify -DskipTests", "SKIP=lint mvn verify", "mvn verify -Pci"))
        >>> [is_green_only(one, failed) for one in others]
        [True, True, False]
    """
    more = [one for one in worked.settings if one not in failed.settings]
    is_looser = (
        failed.words[1:2] == ("ci",)
        and failed.program == worked.program
        and worked.words[1:2] in (("install",), ("i",))
    )
    is_less = any(map(_LESS.search, set(worked.words) - set(failed.words))) or any(
        map(_STRICT.match, failed.flags - worked.flags)
    )
    return (
        is_looser or is_less or any(map(_FORCING.match, flags_beside(worked, failed))) or any(map(_FORCED.match, more))
    )


def is_of_one_thing(option: Option) -> bool:
    """Tell whether an option is given the address or the number of one thing, which is nothing for other calls.

    Example:
        >>> [is_of_one_thing(Option("--device", value)) for value in ("192.168.40.23", "0483A2", "cuda", "127.0.0.1", "SHA256")]
        [True, True, False, False, False]
        >>> is_of_one_thing(Option("--port", "5433")), is_of_one_thing(Option("--jobs", "5433"))
        (True, False)
    """
    return _ONE_THING.fullmatch(option.value) is not None or (
        _OF_ONE.search(option.name) is not None and re.search(r"\d", option.value) is not None
    )


def names_absent(message: str, failed: Command, worked: Command) -> bool:
    """Tell whether a message says that there is no such thing as the one option names that was then given another one.

    A slip of the hand, a file, what chooses the work and the address of one thing teach nothing.
    """
    option = replaced_value(failed, worked)
    old = next(
        (
            one.value
            for one in read_options(failed)
            if option and one.name == option.name and one.value not in worked.words
        ),
        "",
    )
    if (
        option is None
        or not old
        or not _ABSENT.search(message)
        or option.name in IDLE_FLAGS
        or _CHOOSING.search(option.name)
    ):
        return False
    if any(
        "/" in value or value.startswith("$") or re.search(r"\.\w{1,5}$", value) for value in (old, option.value)
    ) or is_of_one_thing(option):
        return False
    if _is_slip(old, option.value):
        return False
    named = (option.name.lstrip("-"), old, *re.split(r"[=,:\s]+", old))
    return any(len(word) >= _TELLING and word.lower() in message.lower() for word in named)


def _is_slip(old: str, new: str) -> bool:
    """Tell whether one name is another one with a few letters wrong.

    Example:
        >>> _is_slip("name=batsh", "name=batch"), _is_slip("name=iPad Air", "name=iPad Pro"), _is_slip("pool-1", "pool-2")
        (True, False, False)
    """
    parts = [set(re.findall(r"[^\W\d_]+", value.lower())) for value in (old, new)]
    letters, others = ("".join(sorted(part - other)) for part, other in (parts, reversed(parts)))
    return bool(letters and others) and difflib.SequenceMatcher(None, letters, others).ratio() > _ALIKE


def speaks_of(message: str, names: Iterable[str]) -> bool:
    """Tell whether a message speaks of what an option is named after.

    Example:
        >>> [speaks_of("no board named a1", [name]) for name in ("-DBOARD_ROOT", "--static")]
        [True, False]
    """
    words = [
        word.lower().rstrip("s")
        for name in names
        for word in re.findall(r"[A-Za-z]{2,}", re.sub(r"^-D(?=[A-Z])", "", name))
    ]
    return any(len(word) >= _TELLING and word in message.lower() for word in words)


def is_advised(advice: tuple[str, ...], worked: Command, failed: Command) -> bool:
    """Tell whether an output names in quotes an option that was then added, as it is written or in plain words.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> failed, worked = (parse_line(line)[0] for line in ("flash write a", "flash --under-reset write a"))
        >>> is_advised(("under reset",), worked, failed), is_advised(("--erase",), worked, failed)
        (True, False)
    """
    more = {" ".join(re.findall(r"\w+", name.lower())) for name in flags_beside(worked, failed)}
    return any(" ".join(re.findall(r"\w+", one.partition("=")[0].lower())) in more for one in advice)
