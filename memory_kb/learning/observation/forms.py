"""Commands side by side: what differs between two of one purpose, what a command may have changed, how it is shown."""

from __future__ import annotations

import re

from memory_kb.credentials import redact
from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import SCRIPT_TESTS, TARGET_RUNNERS, Command, word_set
from memory_kb.text import shorten

_SHOWN = 110
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
IDLE_FLAGS = word_set(
    "-q -qq -v -vv -x -s -k --quiet --verbose --tb --no-header -rA -ra --maxfail --lf --ff --color --no-color --silent --reporter "
    "--runInBand -i -n -j --watch --watchAll "
    "--nocapture -run -count -race --lib --bin --tests --fix --json --coverage --cov -t --testNamePattern --last-failed --durations "
    "--no-pager -p --workspace --all"
)
# A setting whose value is a secret, or of this machine alone.
_LONG_VALUE = lazy_compile(
    r"(?<!\S)([A-Za-z_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\w*|[A-Za-z_]\w*(?==[^\s=]*://)|"
    r"[A-Za-z_]\w*(?==\S{41}))=(?:\"[^\"]*\"|'[^']*'|\S+)"
)
_HOME = lazy_compile(r"(?<!/)/(?:home|Users)/[^/\s]+/")
_HOME_IN_ADDRESS = lazy_compile(r"(?<=//)/(?:home|Users)/[^/\s]+/")
#: What everybody runs in a fresh checkout.
KNOWN = lazy_compile(r"(?:terraform|tofu|npm|pnpm|yarn|pip3?|bundle|composer|poetry|uv) (?:init|install|i|ci|sync)\b(?!.* --(?:extra|group|with))")
FETCHED = lazy_compile(r"\bcurl\b|\bwget\b|base64|\|\s*(?:ba|z)?sh\b|--no-verify|https?://")


def show(command: Command) -> str:
    """Return a command as it stands in a learning."""
    return f"`{plain(command.shown, _SHOWN)}`"


def plain(text: str, limit: int) -> str:
    """Return a command on one line, without credentials, long values and the name of a home."""
    return shorten(without_home(redact(_LONG_VALUE.sub(r"\1=…", text)).text.replace("`", "")), limit)


def without_home(text: str) -> str:
    """Return a text without the name of a home.

    Example:
        >>> without_home("/home/mira/a.sock"), without_home("unix:///Users/mira/a.sock")
        ('~/a.sock', 'unix://$HOME/a.sock')
    """
    return _HOME_IN_ADDRESS.sub("$HOME/", _HOME.sub("~/", text))


def show_more(worked: Command, failed: Command) -> str:
    """Return the options that a command has and another one has not, or an empty text."""
    words = list(worked.words)
    more = [
        " ".join(words[place : place + 1 + (word[0] == "-" and place + 1 < len(words) and not words[place + 1].startswith("-"))])
        for place, word in enumerate(words)
        if word.startswith(("-", "+")) and word not in failed.words and word not in IDLE_FLAGS
    ]
    return f"`{plain(' '.join(more), 60)}`" if more else ""


def show_setting(worked: Command, failed: Command) -> str:
    """Return the settings that a command has and the same one without them has not, or an empty text."""
    more = [one for one in worked.settings if one not in failed.settings]
    is_same = (worked.runners, worked.family) == (failed.runners, failed.family) and not (worked.flags ^ failed.flags) - IDLE_FLAGS
    return f"`{plain(' '.join(one.removesuffix(' &&') for one in more), 70)}`" if more and is_same else ""


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
        end = next((place for place, word in enumerate(words) if word.startswith(purpose) or word in ("i", "ci", "add", "t")), len(words) - 1)
        words = words[: end + 1]
    else:
        own = len(command.family.split()) + (words[:2] == ["uv", "pip"]) - (command.program == "docker-compose")
        words = words[: max(1, own)] if not any(one.startswith(("-", "+")) for one in words[1:own]) else command.family.split()
    runners = [one for one in command.runners if not one.endswith("/")]
    folder = next((one for one in command.runners if one.endswith("/")), "")
    return plain(" ".join((*command.settings, *runners, folder + " ".join(words))), 60)


def bare(command: Command) -> str:
    """Return a command without settings and runners."""
    return " ".join(command.words)


def form_of(command: Command) -> str:
    """Return all that a command is, redirections apart."""
    return " ".join((*command.settings, *command.runners, *command.words))


def words_of(command: Command) -> frozenset[str]:
    """Return the words of a command that say what it is for."""
    return frozenset(part for word in command.words for part in re.split(r"[^A-Za-z]+", word.lower()) if len(part) >= TELLING)


def acts(command: Command) -> bool:
    """Tell whether a command may have changed something."""
    return teaches(command) or command.program in _ACTING or "login" in command.words


def teaches(command: Command) -> bool:
    """Tell whether something may be learned of a command: it does not only look around, and brings nothing from elsewhere."""
    return command.program not in _NO_LESSON and not command.program.startswith("-") and not FETCHED.search(command.shown)


def is_other_form(failed: Command, worked: Command) -> bool:
    """Tell whether two commands of a family differ in more than what they are run on."""
    if set(worked.settings) - set(failed.settings) or failed.runners != worked.runners or failed.program != worked.program:
        return True
    if failed.family.partition(" ")[0] in ("js", *TARGET_RUNNERS) and name(failed._replace(settings=())) != name(worked._replace(settings=())):
        return True
    return bool((failed.flags ^ worked.flags) - IDLE_FLAGS)


def covers(worked: Command, failed: Command) -> bool:
    """Tell whether what worked is what failed, or more than that."""
    return not worked.operands or worked.operands == failed.operands or set(failed.operands) <= set(worked.operands)
