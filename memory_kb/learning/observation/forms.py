"""Commands side by side: what differs between two of one purpose, what a command may have changed, how it is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_kb.credentials import redact
from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import SCRIPT_TESTS, TARGET_RUNNERS, Command, word_set
from memory_kb.learning.observation.options import Option, as_written, flags_beside
from memory_kb.text import shorten

#: Characters of a command, of options, and of a command in the fewest words, in a learning.
SHOWN, _OPTIONS, _NAME = 110, 80, 60
#: The shortest word that says what a command is for.
TELLING = 4
# Of what these say nothing is learned: looking around, and what is tried until it fits.
_NO_LESSON = word_set(
    "git gh psql mysql sqlite3 redis-cli mongosh curl wget ssh scp rsync kill pkill lsof rm mv cp mkdir touch ls cat head tail grep rg ag fd "
    "find sed awk jq wc sort diff which "
    "type file stat du df ps env printenv date test [ tree open code vim nano less more tee xargs chmod chown cut tr uniq nl ping dig nc "
    "kubectl gcloud aws az perl "
    "gofmt prettier markdownlint actionlint"
)
_ACTING = word_set("git rm mv cp kubectl psql mysql")
# Words in front of a command that do not run it; so many may stand there.
_NOT_RUN = word_set(
    "install uninstall reinstall i add remove rm get create init new update upgrade use pin unpin link which whereis where man command type alias "
    "hash help search info show list ls why echo printf"
)
_IN_FRONT = 6
_LOOKING = word_set("sinfo squeue sacct lsusb lsblk lspci dmesg whoami hostname uname id nproc")
_ASKING = word_set(
    "list ls show info status describe search history help logs log inspect view doctor outdated why explain"
)
_ASKING_FLAGS = word_set("--help -h --version -V --list")
# A setting whose value is a secret, or of this machine alone; an address is where it may hold a user or a token.
_LONG_VALUE = lazy_compile(
    r"(?<!\S)([A-Za-z_]*(?i:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\w*|"
    r"[A-Za-z_]\w*(?==[^\s=]*://)(?!=['\"]?https?://[a-z0-9.-]+(?::\d+)?(?:/[a-z][a-z._-]{0,30})*/?(?:,\w+)?['\"]?(?:\s|$))|"
    r"[A-Za-z_]\w*(?==\S{41}))=(?P<value>\"[^\"]*\"|'[^']*'|(?:\$\([^()]*(?:\([^()]*\)[^()]*)*\)|\S)+)"
)
# A value that stands elsewhere: a variable, or what a command answers that is not itself given the value.
_REFERENCE = lazy_compile(
    r"(?P<quote>\"?)(?:\$\((?!\s*(?:echo|printf)\b)[^()\"]*(?:\([^()\"]*\)[^()\"]*)*\)|\$\w+|\$\{\w+\})(?P=quote)"
)
# What is cut whole or not at all, and what may stand in it.
_WHOLE = lazy_compile(r"\$\([^()]*(?:\([^()]*\)[^()]*)*\)|(?<!\w)'[^']*'|(?<!\w)\"[^\"]*\"")
# What may be a command of a program: no file, and none of the folders that are worked in.
_SECOND = lazy_compile(r"(?!(?:tests|src|lib|docs?|app|apps|web|api|packages|scripts)$)[a-z][a-z-]{2,}")
_HOME = lazy_compile(r"(?<!/)/(?:home|Users)/[^/\s]+/")
_HOME_IN_ADDRESS = lazy_compile(r"(?<=//)/(?:home|Users)/[^/\s]+/")
#: What everybody runs in a fresh checkout.
KNOWN = lazy_compile(
    r"(?:terraform|tofu|npm|pnpm|yarn|pip3?|bundle|composer|poetry|uv) (?:init|install|i|ci|sync)\b(?!.* --(?:extra|group|with))"
)
FETCHED = lazy_compile(r"\bcurl\b|\bwget\b|base64|\|\s*(?:ba|z)?sh\b|--no-verify|https?://")


def show(command: Command, limit: int = SHOWN) -> str:
    """Return a command as it stands in a learning."""
    return f"`{plain(command.shown, limit)}`"


def plain(text: str, limit: int) -> str:
    """Return a command on one line, without credentials, long values and the name of a home.

    Example:
        >>> plain("TOKEN=$(gh auth token) npm ci", 60), plain("TOKEN=hunter2 npm ci", 60), plain("TOKEN=$(echo hunter2) npm ci", 60)
        ('TOKEN=$(gh auth token) npm ci', 'TOKEN=… npm ci', 'TOKEN=… npm ci')
    """
    return cut(without_home(redact(_LONG_VALUE.sub(_shorten_value, text)).text.replace("`", "")), limit)


def _shorten_value(found: re.Match[str]) -> str:
    return found[0] if _REFERENCE.fullmatch(found["value"]) else f"{found[1]}=…"


def cut(text: str, limit: int) -> str:
    """Cut a line with commands at a word, but not within quotes or `$(...)`.

    Example:
        >>> cut("run --on 'iPhone 15 Pro' --now", 20), cut("A=$(cat a b) run it", 18)
        ('run --on…', 'A=$(cat a b) run…')
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    wholes = [found.span() for found in _WHOLE.finditer(line)]
    spaces = (place for place in range(limit - 1, 0, -1) if line[place] == " ")
    place = next((place for place in spaces if not any(start < place < end for start, end in wholes)), 0)
    return f"{line[:place]}…" if place else shorten(_WHOLE.sub("…", line), limit)


def without_home(text: str) -> str:
    """Return a text without the name of a home.

    Example:
        >>> without_home("/home/mira/a.sock"), without_home("unix:///Users/mira/a.sock")
        ('~/a.sock', 'unix://$HOME/a.sock')
    """
    return _HOME_IN_ADDRESS.sub("$HOME/", _HOME.sub("~/", text))


def show_options(options: tuple[Option, ...]) -> str:
    """Return options with what they are given, or an empty text where they cannot be shown whole."""
    text = " ".join(without_home(one.shown) for one in options)
    return f"`{text}`" if options and plain(text, _OPTIONS) == text else ""


def show_setting(worked: Command, failed: Command) -> str:
    """Return the settings that a command has and the same one without them has not, or an empty text."""
    more = [one for one in worked.settings if one not in failed.settings]
    is_same = (worked.runners, worked.family) == (failed.runners, failed.family) and not _differ(failed, worked)
    shown = [one.removesuffix(" &&") for one in _settings(worked, more)]
    return f"`{plain(' '.join(shown), 70)}`" if more and is_same else ""


def _settings(command: Command, settings: Sequence[str]) -> list[str]:
    """Return settings of a command with the quotes that their values have in it."""
    parts = [one.partition("=") for one in settings]
    return [name + joined + (as_written(value, command.shown) if joined else "") for name, joined, value in parts]


def _differ(failed: Command, worked: Command) -> bool:
    return bool(flags_beside(failed, worked) or flags_beside(worked, failed))


def name(command: Command) -> str:
    """Return a command in the fewest words: how it is run, without what it is run on.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> name(parse_line("uv run pytest -q tests/test_a.py")[0]), name(parse_line("npx vitest run src/Cart")[0])
        ('uv run pytest', 'npx vitest run')
    """
    words = list(command.words)
    runner = next((place for place, word in enumerate(words) if word in SCRIPT_TESTS), None)
    if runner is not None and command.family.startswith("js "):
        words = words[: runner + 1 + (words[runner + 1 : runner + 2] == ["run"])]
    elif command.family.startswith("js "):
        purpose = command.family[3:]
        end = next(
            (place for place, word in enumerate(words) if word.startswith(purpose) or word in ("i", "ci", "add", "t")),
            len(words) - 1,
        )
        words = words[: end + 1]
    else:
        own = len(command.family.split()) + (words[:2] == ["uv", "pip"]) - (command.program == "docker-compose")
        words = (
            words[: max(1, own)]
            if not any(one.startswith(("-", "+")) for one in words[1:own])
            else command.family.split()
        )
    runners = [one for one in command.runners if not one.endswith("/")]
    folder = next((one for one in command.runners if one.endswith("/")), "")
    called = " ".join((*runners, folder + " ".join(words)))
    settings = _settings(command, command.settings)
    names = [one if one.endswith("&&") else f"{one.partition('=')[0]}=…" for one in settings]
    leads = (f"{' '.join(lead)} {called}" for lead in (settings, names) if lead)
    return plain(
        next(
            (one for one in leads if len(plain(one, _NAME + 1)) <= _NAME and "…" not in plain(one, _NAME)[-1:]), called
        ),
        _NAME,
    )


def name_beside(worked: Command, failed: Command) -> str:
    """Return a command in the fewest words, with the word behind the program where another one begins alike.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> name_beside(*(parse_line(line)[0] for line in ("pod install --repo-update", "pod install")))
        'pod install'
    """
    short = name(worked)
    pair = {
        command.words[1]
        for command in (worked, failed)
        if len(command.words) > 1 and command.family == command.program == worked.program
    }
    second = "".join(pair) if len(pair) == 1 and len(failed.words) > 1 else ""
    return plain(f"{short} {second}", 60) if _SECOND.fullmatch(second) and short.endswith(worked.program) else short


def bare(command: Command) -> str:
    """Return a command without settings and runners."""
    return " ".join(command.words)


def form_of(command: Command) -> str:
    """Return all that a command is, redirections apart."""
    return " ".join((*command.settings, *command.runners, *command.words))


def words_of(command: Command) -> frozenset[str]:
    """Return the words of a command that say what it is for."""
    return frozenset(
        part for word in command.words for part in re.split(r"[^A-Za-z]+", word.lower()) if len(part) >= TELLING
    )


def acts(command: Command) -> bool:
    """Tell whether a command may have changed something."""
    return (
        (teaches(command) and not looks(command))
        or command.program in _ACTING
        or "login" in command.words
        or edits(command)
    )


def edits(command: Command) -> bool:
    """Tell whether a command changes a file in its place.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> [edits(parse_line(line)[0]) for line in ("sed -i s/a/b/ Makefile", "sed -n 3p Makefile", "patch -p1 a.diff")]
        [True, False, True]
    """
    return (
        command.program in ("sed", "perl") and any(flag.startswith("-i") for flag in command.flags)
    ) or command.program in ("patch", "sponge")


def looks(command: Command) -> bool:
    """Tell whether a command only tells how things are.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> [looks(parse_line(line)[0]) for line in ("xcrun simctl list devices", "conan --version", "docker compose up -d logs")]
        [True, True, False]
    """
    plain_words = [word for word in command.words[1:] if not word.startswith("-")]
    return (
        command.program in _LOOKING
        or not _ASKING.isdisjoint(plain_words[:2])
        or not _ASKING_FLAGS.isdisjoint(command.flags)
    )


def teaches(command: Command) -> bool:
    """Tell whether something may be learned of a command: it does not only look around, and brings nothing from elsewhere."""
    return (
        command.program not in _NO_LESSON and not command.program.startswith("-") and not FETCHED.search(command.shown)
    )


def handed_on(command: Command, failed: Command) -> Command | None:
    """Return a command as the one that failed, run through the words in front of it, or None where it is not that one.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> failed, *others = (parse_line(line)[0] for line in ("ember test a", "vm ember test a", "vm use ember test a", "vm ember build"))
        >>> [found and found[2:4] for found in (handed_on(one, failed) for one in others)]
        [(('vm',), ('ember', 'test', 'a')), None, None]
    """
    words = command.words
    place = next((place for place, word in enumerate(words) if place and word == failed.program), 0)
    front, rest = words[:place], words[place:]
    if not 0 < place <= _IN_FRONT or not teaches(command) or not _NOT_RUN.isdisjoint(front):
        return None
    run = command._replace(runners=(*command.runners, " ".join(front)), words=rest)
    is_same = rest == failed.words and len(rest) > 1
    return run if is_same or (run.family == failed.family and " " in run.family) else None


def is_other_form(failed: Command, worked: Command) -> bool:
    """Tell whether two commands of a family differ in more than what they are run on."""
    if (
        set(worked.settings) - set(failed.settings)
        or failed.runners != worked.runners
        or failed.program != worked.program
    ):
        return True
    if failed.family.partition(" ")[0] in ("js", *TARGET_RUNNERS) and name(failed._replace(settings=())) != name(
        worked._replace(settings=())
    ):
        return True
    return _differ(failed, worked)


def covers(worked: Command, failed: Command) -> bool:
    """Tell whether what worked is what failed, or more than that."""
    return not worked.operands or worked.operands == failed.operands or set(failed.operands) <= set(worked.operands)


def without_path(command: Command) -> Command:
    """Return a command without the setting that says where programs are: what was installed is found there."""
    settings = tuple(one for one in command.settings if not one.startswith("PATH="))
    lead = "".join(f"{one} " for one in command.settings if one.startswith("PATH="))
    return command._replace(settings=settings, shown=command.shown.replace(lead, "", 1)) if lead else command


def is_only_set(failed: Command, worked: Command) -> bool:
    """Tell whether what worked is what failed with nothing but other settings.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> failed, *others = (parse_line(line)[0] for line in ("make all", "A=1 make all", "A=1 make -k all"))
        >>> [is_only_set(failed, one) for one in others]
        [True, False]
    """
    return failed.words == worked.words and failed.runners == worked.runners


def is_step_towards(step: Command, failed: Command, worked: Command) -> bool:
    """Tell whether a command has something of what worked that the one before it had not, and nothing else.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> failed, worked, *others = (parse_line(line)[0] for line in ("kit a", "B=1 kit --c a", "kit --c a", "B=1 kit a", "kit --d a"))
        >>> [is_step_towards(one, failed, worked) for one in others]
        [True, True, False]
    """
    more, flags = set(step.settings) - set(failed.settings), flags_beside(step, failed)
    if {one.partition("=")[0] for one in failed.settings} - {one.partition("=")[0] for one in step.settings}:
        return False
    if step.program != worked.program or not more <= set(worked.settings) or not flags <= worked.flags:
        return False
    is_led = step.runners != failed.runners
    return bool(more or flags or is_led) and (not is_led or step.runners == worked.runners)
