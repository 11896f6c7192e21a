"""Whether a person wants what was done: what they object to, forbid or take for a makeshift, and what is undone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import Command

_I = re.IGNORECASE
_AGAINST = lazy_compile(
    r"\W*(?:(?:no+|nope|non|nee|nein|нет|não|stop|halt|undo|revert|not like|put (?:it|that) back|take (?:it|that) (?:back|out)|"
    r"roll (?:it |that )?back|why (?:did|would) you|get rid of|(?:don'?t|do not)(?: (?:do|use|run|touch) (?:that|this|it))?(?=\W*$)|"
    r"(?:whoa|wait|hold on|hm+|uh)\b.{0,40}\b(?:undo|revert|no|not|don'?t|back))\b"
    r"(?!,? (?:more|problem|worries|issues?|errors?|idea|need|wonder|clue|longer)\b)|别|不要|不行)",
    _I,
)
_FOR_NOW = lazy_compile(
    r"\b(?:(?:just|only) (?:this once|this time|for (?:now|today|this))|for (?:now|today|the moment) only|"
    r"this (?:one )?time only|(?:quick|dirty|ugly) hack|"
    r"(?:is|as) an? (?:hack|stop-?gap|workaround)|one-?off|temporar\w+|nur (?:dieses mal|heute|jetzt)|ausnahmsweise|juste pour|solo por ahora|"
    r"só por agora)\b|临时|先顶",
    _I,
)
_NOT = lazy_compile(
    r"\b(?:no|not|never|undo|revert|don'?t|do not|doesn'?t|mustn'?t|shouldn'?t|without|stop|forbidden|nicht|nie|"
    r"kein\w*|pas|jamais|geen|niet|nooit|nunca|jamás|não|"
    r"не|никогда|нельзя)\b|别|不要|不能",
    _I,
)
_ACTED = lazy_compile(
    r"\b(?:i|we|i've|i have|we have)(?: just| now)? (?:logged|restarted|fixed|installed|started|gave|granted|added|reset|changed|updated|enabled|"
    r"turned|cleaned|freed|(?:re)?plugged|put (?:it|that) right)\b|^\W*(?:ok,? )?(?:done|fixed|relogged|replugged|try (?:it )?(?:again|now))\b",
    _I,
)
_SENTENCE = lazy_compile(r"[.!?;。！？；]+(?=\s|$)|[。！？；\n]+")
_UNDOING = ("checkout", "restore", "revert", "reset", "stash")
_REMOVING = frozenset({"uninstall", "remove", "purge", "unset"})


def objects(text: str) -> bool:
    """Tell whether a message begins with a word against what was just done.

    Example:
        >>> [objects(text) for text in ("no no, put it back", "No problem, go on", "nice, nothing is red")]
        [True, False, False]
    """
    return _AGAINST.match(text) is not None


def is_makeshift(text: str) -> bool:
    """Tell whether a message calls what is done a thing of the moment.

    Example:
        >>> is_makeshift("ok, just this once"), is_makeshift("ok, it has been so once")
        (True, False)
    """
    return _FOR_NOW.search(text) is not None


def has_acted(text: str) -> bool:
    """Tell whether a person says that they did something themselves.

    Example:
        >>> [has_acted(text) for text in ("i just restarted it", "done, try again", "restart it")]
        [True, True, False]
    """
    return _ACTED.search(text) is not None


def forbids(text: str, words: Iterable[str]) -> bool:
    """Tell whether a sentence of a message that says no names one of some words, as they are written or in plain words.

    Example:
        >>> [forbids("in prod never do a full refresh. run it in dev", [one]) for one in ("--full-refresh", "--target dev")]
        [True, False]
    """
    named = [plain for word in words if len(plain := _plain(word)) > 2]
    against = [f" {_plain(sentence)} " for sentence in _SENTENCE.split(text) if _NOT.search(sentence)]
    return any(f" {one} " in sentence for one in named for sentence in against)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def undoes(command: Command, files: Iterable[str], earlier: Command | None) -> bool:
    """Tell whether a command takes back the change of one of some files, or takes away what an earlier one installed.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> restore, remove, install = (parse_line(line)[0] for line in ("git checkout a/b.toml", "npm uninstall kit", "npm install kit"))
        >>> undoes(restore, ["/x/a/b.toml"], None), undoes(restore, ["c.toml"], None), undoes(remove, [], install)
        (True, False, True)
    """
    words = command.words
    if command.program == "git" and len(words) > 1 and words[1] in _UNDOING:
        paths = [word.removeprefix("./") for word in words[2:] if not word.startswith("-")]
        return any(file == path or file.endswith(f"/{path}") for file in files for path in paths)
    is_removed = not _REMOVING.isdisjoint(words[1:3]) and earlier is not None and earlier.program == command.program
    return is_removed and earlier is not None and not set(words[2:]).isdisjoint(earlier.words[2:])
