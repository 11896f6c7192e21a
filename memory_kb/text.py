"""Tokens, stop words, similarity, globs, injected marks."""

from __future__ import annotations

import codecs
import fnmatch
import functools
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Scripts written without spaces between words, or (Hangul) with particles glued to them.
_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_WORD = re.compile(r"\w+")
_PLUS_PLUS = re.compile(r"\+\+(?<=\w\+\+)(?!\+)")
_SHARP = re.compile(r"#(?<=[A-Za-z]#)(?<![A-Za-z0-9_][A-Za-z]#)(?![\w#])")
_LAST_WORD = re.compile(r"\w+$")

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")

#: The bytes that a file in UTF-16 begins with.
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WINDOWS = "memory-kb-windows-1252"

#: A longer whole number is none that anybody counts with; Python refuses those of more than 4,300 digits.
MOST_DIGITS = 4_000

#: Characters per token, the estimate every budget is counted in.
CHARS_PER_TOKEN = 4


def load_json(text: str | bytes, **how: Any) -> Any:
    """Return the value of some JSON; an integer with more digits than Python reads stays a text.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.

    Example:
        >>> load_json('{"a": 1}'), load_json("[" + "1" * 9_000 + "]") == ["1" * 9_000]
        ({'a': 1}, True)
    """
    try:
        return json.loads(text, **how)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:
        return json.loads(text, parse_int=read_integer, **how)


def read_integer(digits: str) -> int | str:
    """Return a whole number, or its digits where they are too many for one."""
    return digits if len(digits) > MOST_DIGITS else int(digits)


def short_id(entry_id: str) -> str:
    """Return an id as short as it stays telling: uuids are cut, readable ids are not.

    Example:
        >>> short_id("69712e00-2428-4298-a1d4-4e3d73916342"), short_id("ep-2026-03-24-001")
        ('69712e00', 'ep-2026-03-24-001')
    """
    return entry_id[:8] if _UUID.fullmatch(entry_id) else entry_id


@functools.cache
def _cjk_run() -> re.Pattern[str]:
    """Return the expression for a CJK run.

    It is costly to compile and most vaults never need it.
    """
    return re.compile(f"[{_CJK}]+")


@functools.cache
def _cjk_word() -> re.Pattern[str]:
    return re.compile(rf"\w*[{_CJK}]\w*")


def has_cjk(text: str) -> bool:
    """Tell whether the text holds any script that needs cutting into bigrams.

    Example:
        >>> has_cjk("Größe"), has_cjk("検索する")
        (False, True)
    """
    return not text.isascii() and _cjk_run().search(text) is not None


def bigrams(run: str) -> list[str]:
    """Cut a run of CJK characters into overlapping pairs and its last character.

    The last character stands alone too, so that a one-character query, which is searched as a
    prefix, finds every position.

    Example:
        >>> bigrams("検索機能")
        ['検索', '索機', '機能', '能']
    """
    return [run[i : i + 2] for i in range(len(run))]


def cut_cjk(word: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a word and whether each is a CJK run.

    Example:
        >>> list(cut_cjk("Obsidian同期v2"))
        [('Obsidian', False), ('同期', True), ('v2', False)]
    """
    end = 0
    for run in _cjk_run().finditer(word):
        if run.start() > end:
            yield word[end : run.start()], False
        yield run.group(), True
        end = run.end()
    if end < len(word):
        yield word[end:], False


def cjk_terms(text: str) -> str:
    """Return the extra search terms of a text.

    They are its CJK words as bigrams, their Latin parts apart.

    Example:
        >>> cjk_terms("use Obsidian同期 here")
        'Obsidian 同期 期'
    """
    terms: list[str] = []
    for word in _cjk_word().findall(text):
        for piece, is_cjk in cut_cjk(word):
            terms.extend(bigrams(piece) if is_cjk else (piece,))
    return " ".join(terms)


def symbol_terms(text: str) -> str:
    """Return names whose meaning is in their signs, spelled out.

    Example:
        >>> symbol_terms("C++ and C# but not issue #12 or i += 1")
        'Cplusplus Csharp'
    """
    terms = []
    if "++" in text:
        for found in _PLUS_PLUS.finditer(text):
            name = _LAST_WORD.search(text, max(0, found.start() - 40), found.start())
            if name:
                terms.append(f"{name.group()}plusplus")
    if "#" in text:
        terms.extend(f"{text[found.start() - 1]}sharp" for found in _SHARP.finditer(text))
    return " ".join(terms)


def tokens(text: str) -> frozenset[str]:
    """Return the set of words of a text, for comparing texts of any script.

    Example:
        >>> sorted(tokens("Привет, мир! 日本語"))
        ['мир', 'привет', '日本', '本語', '語']
    """
    words = _WORD.findall(text.casefold())
    if not has_cjk(text):
        return frozenset(words)
    found: set[str] = set()
    for word in words:
        for piece, is_cjk in cut_cjk(word):
            found.update(bigrams(piece) if is_cjk else (piece,))
    return frozenset(found)


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return how much of two token sets is shared.

    Two empty sets share nothing.

    Example:
        >>> jaccard(frozenset("abc"), frozenset("bcd")), jaccard(frozenset(), frozenset())
        (0.5, 0.0)
    """
    if a.isdisjoint(b):
        return 0.0
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def count_tokens(text: str) -> int:
    """Estimate what a text costs a language model.

    Example:
        >>> count_tokens("12345")
        2
    """
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def slugify(text: str, limit: int = 60) -> str:
    """Turn a title into a file name that is safe everywhere.

    Letters of every script stay.

    Example:
        >>> slugify("Retry, then: ../fail?"), slugify("日本語 メモ"), slugify("…")
        ('retry-then-fail', '日本語-メモ', 'note')
    """
    slug = "-".join(re.findall(r"[^\W_]+", text[: 4 * limit].casefold()))
    slug = slug.encode()[:limit].decode(errors="ignore")
    return slug.strip("-") or "note"


def shorten(text: str, limit: int = 120) -> str:
    """Cut a line at a word, marking that something follows.

    Example:
        >>> shorten("one two three", 9)
        'one two…'
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    head = cut.rpartition(" ")[0]
    return (head if len(head) > limit // 2 else cut) + "…"


def printable(text: str) -> str:
    """Return a text that can be stored and printed.

    Bytes from the shell that are no UTF-8 become question marks.

    Example:
        >>> printable("a\\udcff")
        'a?'
    """
    return text.encode("utf-8", "replace").decode()


def decode_text(data: bytes) -> str:
    """Return the text that bytes stand for: UTF-8, UTF-16 where they begin with its mark, and Windows-1252 where they are neither.

    Every byte that is no UTF-8 is read by itself, so that a stretch of a file reads like the file.

    Example:
        >>> decode_text("Grüße".encode("latin-1")), decode_text("Grüße".encode("utf-16")), decode_text("ü ".encode() + b"\\xfc")
        ('Grüße', 'Grüße', 'ü ü')
    """
    return data.decode("utf-16", "replace") if data[:2] in UTF_16_MARKS else data.decode("utf-8", _WINDOWS)


def _read_as_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_WINDOWS, _read_as_windows)


def as_read(text: str) -> str:
    """Return a text with undecodable bytes in it as readers see them; see `decode_text`.

    Example:
        >>> as_read("Gr\\udcfc\\udcdfe"), as_read("\\ud800")
        ('Grüße', '?')
    """
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", _WINDOWS)
    except UnicodeEncodeError:
        return printable(text)


def readable_name(name: str) -> str:
    """Return a file's name as it can be printed and stored; bytes of it that are no UTF-8 become `\\xff`.

    Example:
        >>> readable_name("tea.md"), readable_name("caf\\udce9.md")
        ('tea.md', 'caf\\\\xe9.md')
    """
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return printable(name)


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its word, in the plural where there is not one.

    Example:
        >>> counted(1, "failure"), counted(0, "failure"), counted(1200, "success", "successes")
        ('1 failure', '0 failures', '1,200 successes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def count_same(one: Iterable[object], other: Iterable[object]) -> int:
    """Return how many items two texts have in common from the start.

    Example:
        >>> count_same("prominence", "promotion")
        4
    """
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def sized(count: int) -> str:
    """Return a number of bytes as people say it.

    Example:
        >>> sized(2_000), sized(999_999), sized(4_194_304)
        ('2.0 kB', '1,000.0 kB', '4.2 MB')
    """
    return f"{count / 1e6:,.1f} MB" if count >= 1_000_000 else f"{count / 1e3:,.1f} kB"


def fits_any(path: str, patterns: Iterable[str]) -> bool:
    """Tell whether a path fits one of the patterns.

    Example:
        >>> fits_any("src/api/users.py", ["src/api", "docs/**"]), fits_any("src/a.py", ["docs/**"])
        (True, False)
    """
    return any(fits(path, pattern) for pattern in patterns)


def fits(path: str, pattern: str) -> bool:
    """Tell whether a path, or a folder above it, fits a pattern.

    `*` stays within a folder, `**` crosses folders; a pattern without a slash fits a file or
    folder of that name at any depth, one that begins with a slash only at the top. Patterns
    come from notes, so none may take long.

    Example:
        >>> fits("src/a/b/x.py", "src/**/*.py"), fits("src/a/x.py", "src/*.py"), fits("deep/down/x.py", "*.py")
        (True, False, True)
    """
    parts = path.split("/")
    wanted = pattern.removeprefix("./").strip("/").split("/")
    if len(wanted) == 1 and not pattern.startswith("/"):
        return wanted[0] == "**" or any(name_matcher(wanted[0])(part) for part in parts)
    # The places in the path that the pattern can have got to.
    places = {0}
    for number, name in enumerate(wanted):
        if name == "**":
            places = set(range(min(places) + (number == len(wanted) - 1), len(parts) + 1))
        else:
            matches = name_matcher(name)
            places = {place + 1 for place in places if place < len(parts) and matches(parts[place])}
        if not places:
            return False
    return True


@functools.lru_cache(maxsize=1024)
def name_matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that tells whether one name fits a pattern.

    A name has no slashes.

    Example:
        >>> bool(name_matcher("*.p[yi]")("a.py")), bool(name_matcher("[^a]")("a"))
        (True, False)
    """
    return re.compile(_name_expression(pattern)).match


def _name_expression(pattern: str) -> str:
    """Return the expression for a name.

    A class that means nothing stands for itself.
    """
    return f"{fnmatch.translate(pattern.replace('[^', '[!'))}|{re.escape(pattern)}\\Z"


class Ignore:
    """Patterns for what a walk leaves out.

    Folders are left out whole, so their contents need no test.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        cleaned = [pattern.removeprefix("./").rstrip("/") for pattern in patterns]
        names = [pattern for pattern in cleaned if pattern and "/" not in pattern]
        self._names = re.compile("|".join(map(_name_expression, names))) if names else None
        self._paths = [pattern for pattern in cleaned if "/" in pattern]

    def covers(self, path: str) -> bool:
        """Tell whether a file or folder is left out.

        Example:
            >>> ignore = Ignore(["node_modules", "docs/drafts/**"])
            >>> ignore.covers("a/node_modules"), ignore.covers("docs/drafts/x.md"), ignore.covers("a/notes.md")
            (True, True, False)
        """
        if self._names and self._names.match(path, path.rfind("/") + 1):
            return True
        return bool(self._paths) and fits_any(path, self._paths)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LISTS: Mapping[str, frozenset[str]] = {
    "en": _words(
        """a about above after again all also am an and any are as at be because been before being below between both but by can
        could did do does doing down during each few for from further had has have having he her here hers herself him himself his how
        i if in into is it its itself just let me more most my myself no nor not now of off on once only or other our ours ourselves out
        over own please same shall she should so some such than that the their theirs them themselves then there these they this those
        through to too under until up us very was we were what when where which while who whom whose why will with would you your yours
        yourself don doesn didn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn ll ve re d s t m"""
    ),
    "de": _words(
        """aber als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den denn der des die dies diese diesem diesen
        dieser dieses doch dort du durch ein eine einem einen einer eines er es etwas euch für gegen hat habe haben hatte hier ich ihm ihn
        ihr ihre im in ins ist ja kann kein keine können man mein mich mir mit nach nicht noch nun nur ob oder ohne sein seine sich sie sind
        so über um und uns unser unter vom von vor wann war waren warum was weil welche welcher welches wenn wer werden wie wieder wir wird
        wo wurde wurden zu zum zur"""
    ),
    "fr": _words(
        """à ai as au aux avec avez avons c ce ces cet cette comment d dans de des donc du elle elles en es est et été être eu il ils j je l la
        le les leur leurs lui m ma mais me mes moi mon n ne nos notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle
        quelles quels qui quoi s sa sans se ses si son sont sur ta te tes toi ton tu un une vos votre vous y"""
    ),
    "es": _words(
        """a al algo como con cómo cual cuál cuando cuándo de del donde dónde el ella ellas ellos en entre era es esa ese eso esta está están
        este esto fue ha han hay la las le les lo los más me mi mis muy no nos o para pero por porque qué que quien quién se sea ser si sin
        sobre son su sus también te tiene tu un una uno y ya yo"""
    ),
    "it": _words(
        """a ad ai al alla alle anche c che chi ci come con cosa cui d da dal dalla dei del della delle di dove e è era gli ha hanno ho i il in
        io l la le lei lo loro lui ma mi mio ne nei nel nella noi non o per perché più quale quando quella quello questa questo se sei si sono
        su sua sul suo ti tu un una uno vi"""
    ),
    "pt": _words(
        """a ao aos as à às com como da das de do dos e é ela ele eles em entre era essa esse esta está este eu foi há isso isto já lhe mais mas me
        meu minha muito na nas não nem no nos nós o onde os ou para pela pelo por porque qual quando que quem se sem ser seu sua são também te
        tem um uma você"""
    ),
    "nl": _words(
        """aan al als bij dan dat de der deze die dit doen door een en er geen had heb hebben heeft hem het hier hij hoe hun iets ik in is ja je
        kan maar me meer men met mij mijn naar niet nog nu of om onder ons ook op over te tegen toen tot u uit uw van veel voor waar waarom wanneer
        waren was wat we wel werd wie wij wil worden zal ze zich zij zijn zo zonder zou"""
    ),
    "ru": _words(
        """а без был была были было быть в вам вас во вот все всё вы где для до его ее её если есть еще ещё же за и из или им их к как какая какие
        какой ко когда кто ли мне мы на над не него нее ней нет ни но ну о об он она они оно от по под почему при с со так там те то тоже только
        тот ты у уже чего чем что чтобы эта эти это этот я"""
    ),
}


def stop_words(words: Sequence[str]) -> frozenset[str]:
    """Return the stop words of the language of a query.

    The language is the one that the query's words look most like, else English. One word proves
    nothing: `c` and `die` are words of other languages that may carry meaning.

    Example:
        >>> "die" in stop_words("wie kann ich die notiz finden".split()), "die" in stop_words("did the dog die".split())
        (True, False)
    """
    known, found = max(((known, sum(word in known for word in words)) for known in _LISTS.values()), key=itemgetter(1))
    return known if found > 1 else _LISTS["en"]


#: How alike two texts are for each purpose.
MERGE_ABOVE, MERGE_COSINE = 0.8, 0.9
CONTRADICTION_FROM = 0.3
CLASH_ABOVE = 0.5

#: Up to so many sets, comparing all of them is faster than loading numpy.
_FEW = 256
#: Rows and columns of one block of cosines; its product takes 8 MB.
_ROWS, _COLUMNS = 512, 4_096
#: What a bound may be off by for the rounding of floats.
_SLACK = 1e-6
_PART = re.compile(r"[^\W_]+")


class Pair(NamedTuple):
    """Two of a sequence, by their places, `one < other`, and how alike they are."""

    one: int
    other: int
    similarity: float


class _Measure(NamedTuple):
    """A similarity of sets, and what follows from being similar.

    `least_size` is of the smaller set, given the size of the larger; `least_shared` how many
    elements two sets share, given the size of the larger and those of the smaller ones.
    """

    of: Callable[[frozenset[str], frozenset[str]], float]
    least_size: Callable[[float, int], float]
    least_shared: Callable[[float, int, NDArray[np.int64]], NDArray[np.floating[Any]]]


# Several steps in a row look at the same few thousand texts.
@functools.lru_cache(maxsize=4_096)
def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that near duplicates are told by.

    For ASCII these are the matches of `[a-z0-9]+`; other scripts count as well.

    Example:
        >>> sorted(word_set("Set retry_count to 3!")), sorted(word_set("Übung"))
        (['3', 'count', 'retry', 'set', 'to'], ['übung'])
    """
    return tokens(text.replace("_", " ")) if has_cjk(text) else frozenset(_PART.findall(text.casefold()))


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without its English ending; good enough to compare, not to show.

    Example:
        >>> [stem(word) for word in ("using", "uses", "used", "tests", "stopped", "policies", "5432")]
        ['us', 'us', 'us', 'test', 'stop', 'policy', '5432']
    """
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) >= len(ending) + 2 and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + rest
            if ending in ("ing", "ed") and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 2 and word.endswith("e") else word


def stemmed_set(text: str) -> frozenset[str]:
    """Return the stems of a text's words without its stop words, by which paraphrases are told.

    Example:
        >>> sorted(stemmed_set("The tests are using the caches."))
        ['cach', 'test', 'us']
    """
    words = word_set(text)
    return frozenset(map(stem, words - stop_words(sorted(words))))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the smaller set that is in the other, which is never less than their Jaccard.

    Example:
        >>> overlap(frozenset("ab"), frozenset("abcd")), overlap(frozenset(), frozenset())
        (1.0, 0.0)
    """
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


_JACCARD = _Measure(
    jaccard,
    lambda threshold, size: threshold * size,
    lambda threshold, size, sizes: threshold / (1 + threshold) * (size + sizes),
)
_OVERLAP = _Measure(overlap, lambda *_: 1, lambda threshold, _, sizes: threshold * sizes)


def near_pairs(sets: Sequence[frozenset[str]], threshold: float, *, is_strict: bool = False) -> Iterator[Pair]:
    """Yield the pairs of sets whose Jaccard is at least a threshold, or strictly above it.

    Their order is always the same, but not sorted. Empty sets are like nothing.

    Example:
        >>> sets = [frozenset("abcd"), frozenset("xyz"), frozenset("abcde")]
        >>> list(near_pairs(sets, 0.8)), list(near_pairs(sets, 0.8, is_strict=True))
        ([Pair(one=0, other=2, similarity=0.8)], [])
    """
    return _pairs(sets, threshold, _JACCARD, is_strict=is_strict)


def pairs_with(sets: Sequence[frozenset[str]], places: Sequence[int], threshold: float) -> Iterator[Pair]:
    """Yield the pairs of some of the sets with any other whose Jaccard is at least a threshold.

    Example:
        >>> list(pairs_with([frozenset("abcd"), frozenset("abcde"), frozenset("abc")], [2], 0.7))
        [Pair(one=0, other=2, similarity=0.75)]
    """
    chosen = set(places)
    sizes = list(map(len, sets))
    for place in sorted(chosen):
        mine, size = sets[place], sizes[place]
        for other, count in enumerate(sizes):
            if (
                count < threshold * size
                or size < threshold * count
                or other == place
                or (other < place and other in chosen)
            ):
                continue
            similarity = jaccard(mine, sets[other])
            if similarity >= threshold and similarity:
                yield Pair(min(place, other), max(place, other), similarity)


def overlap_pairs(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[Pair]:
    """Yield the pairs of sets whose overlap coefficient is at least a threshold.

    Example:
        >>> list(overlap_pairs([frozenset("abcd"), frozenset("cdxyz")], 0.5))
        [Pair(one=0, other=1, similarity=0.5)]
    """
    return _pairs(sets, threshold, _OVERLAP, is_strict=False)


def _pairs(sets: Sequence[frozenset[str]], threshold: float, measure: _Measure, *, is_strict: bool) -> Iterator[Pair]:
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold {threshold} is not above 0 and at most 1")
    possible = (
        itertools.combinations(range(len(sets)), 2) if len(sets) <= _FEW else _candidates(sets, threshold, measure)
    )
    for one, other in possible:
        similarity = measure.of(sets[one], sets[other])
        if similarity > threshold or (similarity == threshold and not is_strict):
            yield Pair(one, other, similarity)


def _candidates(sets: Sequence[frozenset[str]], threshold: float, measure: _Measure) -> Iterator[tuple[int, int]]:
    """Yield the pairs that share enough elements to be similar, and few others.

    An inverted index of the sets by size, smallest first. Each set asks for its elements but for
    the most frequent ones, so many fewer than it must share with anything similar; whoever shares
    too few of the asked ones cannot make up for it with the others (the prefix and length filters
    of AllPairs, with the counts that MergeSkip keeps).
    """
    import numpy as np

    order = sorted((place for place, one in enumerate(sets) if one), key=lambda place: (len(sets[place]), place))
    frequency = Counter(itertools.chain.from_iterable(sets))
    ranked = sorted((word for word, count in frequency.items() if count > 1), key=lambda word: (frequency[word], word))
    rank = {word: number for number, word in enumerate(ranked)}
    words = [sorted(rank[word] for word in sets[place] if word in rank) for place in order]
    sizes = np.array([len(sets[place]) for place in order], np.int64)
    counts = np.array([frequency[word] for word in ranked], np.int64)
    starts = [0, *np.cumsum(counts).tolist()]
    places = np.argsort(np.fromiter(itertools.chain.from_iterable(words), np.int64, starts[-1]), kind="stable")
    postings = np.repeat(np.arange(len(words)), [len(one) for one in words])[places]
    filled = list(starts)
    for here, asked in enumerate(words):
        size = len(sets[order[here]])
        least = measure.least_size(threshold, size)
        shared = float(measure.least_shared(threshold, size, np.array([max(1, math.ceil(least - _SLACK))]))[0])
        skipped = max(0, math.ceil(shared - _SLACK) - 1)
        listed = [
            postings[starts[word] : filled[word]]
            for word in asked[: len(asked) - skipped]
            if filled[word] > starts[word]
        ]
        if listed:
            found, times = _count(np.concatenate(listed), here)
            enough = (times + skipped >= measure.least_shared(threshold, size, sizes[found]) - _SLACK) & (
                sizes[found] >= least - _SLACK
            )
            for there in found[enough].tolist():
                one, other = order[there], order[here]
                yield (one, other) if one < other else (other, one)
        for word in asked:
            filled[word] += 1


def _count(found: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different values below a bound, ascending, and how often each is there."""
    import numpy as np

    if 32 * len(found) < bound:
        return np.unique(found, return_counts=True)
    times = np.bincount(found, minlength=bound)
    values = np.flatnonzero(times)
    return values, times[values]


def cosine_pairs(rows: NDArray[np.float32], threshold: float) -> Iterator[Pair]:
    """Yield the pairs of vectors of length 1 whose cosine is at least a threshold.

    It multiplies block by block: memory does not grow with the number of vectors.

    Example:
        >>> import numpy as np
        >>> [pair[:2] for pair in cosine_pairs(np.array([[1, 0], [0, 1], [1, 0]], np.float32), 0.9)]
        [(0, 2)]
    """
    import numpy as np

    for top in range(0, len(rows), _ROWS):
        for left in range(top, len(rows), _COLUMNS):
            cosines = rows[top : top + _ROWS] @ rows[left : left + _COLUMNS].T
            for row, column in np.argwhere(cosines >= threshold).tolist():
                if top + row < left + column:
                    yield Pair(top + row, left + column, min(1.0, float(cosines[row, column])))


def seeded_clusters(pairs: Iterable[Pair]) -> list[tuple[int, ...]]:
    """Return clusters around seeds: the first of all takes those like it, the first left takes those left, and so on.

    What is like a member but not like the seed stays out. Seeds stand first, and ascend.

    Example:
        >>> seeded_clusters([Pair(0, 1, 0.9), Pair(1, 2, 0.9), Pair(2, 3, 0.9)])
        [(0, 1), (2, 3)]
    """
    taken: set[int] = set()
    clusters: dict[int, list[int]] = {}
    for one, other, _ in sorted(pairs):
        if one not in taken and other not in taken:
            clusters.setdefault(one, [one]).append(other)
            taken.add(other)
    return [tuple(cluster) for cluster in clusters.values()]


def linked_clusters(pairs: Iterable[Pair]) -> list[tuple[int, ...]]:
    """Return the clusters of single linkage: whatever a chain of pairs connects.

    Example:
        >>> linked_clusters([Pair(1, 2, 0.9), Pair(0, 1, 0.9), Pair(3, 4, 0.9)])
        [(0, 1, 2), (3, 4)]
    """
    root: dict[int, int] = {}

    def find(place: int) -> int:
        while root.setdefault(place, place) != place:
            root[place] = place = root[root[place]]
        return place

    for one, other, _ in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    clusters: dict[int, list[int]] = {}
    for place in sorted(root):
        clusters.setdefault(find(place), []).append(place)
    return [tuple(cluster) for cluster in clusters.values()]


BEGIN, END = "<!-- memory-kb:begin -->", "<!-- memory-kb:end -->"
_COMMAND = re.compile(r"(?:^|[;&|(]\s*|\s)(?:\S*/)?(?:memory-kb|mkb|python\S* -m memory_kb)(?=\s|$)")
_OWN_TOOLS = re.compile(
    r"memory[-_]kb|^memory_(?:learn|recall|context|episode|procedure|outcome|stats|consolidate)$", re.IGNORECASE
)
# Blocks with an end of their own, then headings whose block goes on to the end of the text.
_BLOCKS = re.compile(
    r"<!--\s*memory-kb:(?:begin|start)\b[^>]*-->.*?(?:<!--\s*memory-kb:end\s*-->|\Z)"
    r"|<memory-kb\b[^>]*>.*?(?:</memory-kb>|\Z)"
    r"|^--- (?:Institutional Memory|Retrieved Memory) ---$.*?(?:^--- end ---$|\Z)"
    r"|^## Historical Learnings \(from previous sessions\).*\Z"
    r"|^## Relevant Guidelines\s+The following rules are based on past experience with similar tasks:.*\Z"
    r"|^## Patterns to Avoid\s+These patterns have caused problems in similar past work:.*\Z",
    re.DOTALL | re.MULTILINE,
)
_SIGNS = ("memory-kb", "Memory ---", "## Historical Learnings", "## Relevant Guidelines", "## Patterns to Avoid")


def wrap(text: str) -> str:
    """Mark a text as ours before it is given to an agent.

    Example:
        >>> strip("before " + wrap("Use tabs.") + " after")
        'before  after'
    """
    return f"{BEGIN}\n{text}\n{END}"


def strip(text: str) -> str:
    """Return what is left of a text without what memory-kb put there."""
    if not any(sign in text for sign in _SIGNS):
        return text
    return _BLOCKS.sub("", text)


#: Tags that a harness puts around what a person wrote.
_AROUND = re.compile(r"</?(?:user-memory-input|user[_-](?:query|prompt|message|request|input))>")
_ANSWERS = re.compile(
    r"\s*User has answered your questions?:\s*(?P<answers>.*?)(?:\.?\s*You can now continue with the user's answers in"
    r" mind\.?)?\s*\Z",
    re.DOTALL,
)
_ANSWER = re.compile(r'"(?P<asked>[^"\n]*)"\s*=\s*"(?P<told>[^"\n]*)"')


def in_own_words(text: str) -> str:
    """Return what a person said without what a harness wrote around it: tags, and the frame of answers to its questions.

    Example:
        >>> in_own_words("<user-memory-input>never use tabs</user-memory-input>")
        'never use tabs'
        >>> in_own_words('User has answered your questions: "Which queue?"="SQS".')
        'Which queue? SQS'
    """
    found = _ANSWERS.match(text)
    if found:
        pairs = [f"{one['asked']} {one['told']}" for one in _ANSWER.finditer(found["answers"])]
        return "; ".join(pairs) or found["answers"]
    return _AROUND.sub("", text) if "</" in text else text


def judge(text: str) -> str | None:
    """Tell whether a text is ours: `whole`, `part`, or None.

    Example:
        >>> judge(wrap("Use tabs.")), judge("Fix it. " + wrap("Use tabs.")), judge("Fix it.")
        ('whole', 'part', None)
    """
    left = strip(text)
    return None if left == text else "part" if left.strip() else "whole"


def is_own_call(tool: str | None, args: Mapping[str, object] | None) -> bool:
    """Tell whether a tool call asks memory-kb, so that its result is our own text.

    Example:
        >>> is_own_call("mcp__memory-kb__memory_recall", None), is_own_call("Bash", {"command": "cd x && mkb search tabs"})
        (True, True)
        >>> is_own_call("Bash", {"command": "pytest tests/test_mkb.py"})
        False
    """
    if tool and _OWN_TOOLS.search(tool):
        return True
    command = (args or {}).get("command", (args or {}).get("cmd"))
    words = " ".join(map(str, command)) if isinstance(command, list) else command
    return isinstance(words, str) and _COMMAND.search(words[:2000]) is not None


def hash_of(data: bytes) -> str:
    """Return the hash of a file's bytes.

    Example:
        >>> hash_of(b"")[:8]
        'e3b0c442'
    """
    import hashlib

    return hashlib.sha256(data, usedforsecurity=False).hexdigest()


def decode(data: bytes) -> str:
    """Return bytes as text that `encode` turns back into them."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of a text."""
    return text.encode("utf-8", "surrogateescape")


#: How it begins, under the label `Context`, on which occasion something was said.
OCCASION = "said when the agent "


_OCCASION = re.compile(rf"^\*\*Context:\*\* {OCCASION}.*\n?", re.MULTILINE)


def without_occasion(text: str) -> str:
    """Return a text without the line that tells on which occasion it was said.

    Example:
        >>> without_occasion("only two cards are ours\\n**Context:** said when the agent had run `make train`.")
        'only two cards are ours\\n'
    """
    return _OCCASION.sub("", text) if OCCASION in text else text
