"""Cut the words of any script into the terms that a full-text index finds them by."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from memory_kb.lazy_regex import lazy_regex

# Scripts written without spaces between words, or (Hangul) with particles glued to them.
_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
#: Thai, Lao, Burmese and Khmer: no spaces either, and letters that carry marks.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
#: Hebrew, Arabic, the scripts of India and Ethiopic: spaces, but words with letters before and behind them that
#: change, and marks that `\\w` does not hold. Their punctuation is left out.
_GLUED = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u05d0-\u05f2"
    "\u0610-\u061a\u0620-\u0669\u066e-\u06d3\u06d5-\u06dc\u06df-\u06e8\u06ea-\u06ff\u0750-\u077f\u08a0-\u08ff"
    "\u0900-\u0963\u0966-\u096f\u0971-\u0dff\u1200-\u135f"
)
_WORD = lazy_regex(r"\w+")
#: What words hold beside `\\w`: marks, in any script, for the inside of `[]`.
MARKS = f"\u0300-\u036f{_SPACELESS}{_GLUED}"
#: Words with their marks, with `_` and between it. The latter begin with a letter or digit.
MARKED_WORD, MARKED_NAME = lazy_regex(rf"[\w{MARKS}]+"), lazy_regex(rf"[^\W_](?:[^\W_]|[{MARKS}])*")
_SIGNS = lazy_regex(r"[^\w\s]+")
_PLUS_PLUS = lazy_regex(r"\+\+(?<=\w\+\+)(?!\+)")
_SHARP = lazy_regex(r"#(?<=[A-Za-z]#)(?<![A-Za-z0-9_][A-Za-z]#)(?![\w#])")
_LAST_WORD = lazy_regex(r"\w+$")
#: A run of a script without spaces, and of one whose words are cut into terms.
_CJK_RUN = lazy_regex(f"[{_CJK}]+|[{_SPACELESS}]+")
_CUT_RUN = lazy_regex(f"[{_CJK}]+|[{_SPACELESS}]+|[{_GLUED}]+")


def has_cjk(text: str) -> bool:
    """Return whether the text holds any script without spaces between words.

    Example:
        >>> has_cjk("Größe"), has_cjk("検索する"), has_cjk("שלום")
        (False, True, False)
    """
    return not text.isascii() and _CJK_RUN.search(text) is not None


def needs_cutting(text: str) -> bool:
    """Return whether the text holds any script whose words are cut into terms.

    Example:
        >>> needs_cutting("Größe"), needs_cutting("検索する"), needs_cutting("שלום")
        (False, True, True)
    """
    return not text.isascii() and _CUT_RUN.search(text) is not None


def run_terms(run: str) -> list[str]:
    """Cut a run of letters into overlapping terms: pairs, or three letters without their marks.

    In scripts without spaces the ends of the run are terms too, so that a query shorter than a term, which is searched
    as a prefix, finds every place. Where words have spaces between them, only those longer than a term are cut.

    Example:
        >>> run_terms("検索機能"), run_terms("จริง"), run_terms("الملف"), run_terms("दिनों")
        (['検索', '索機', '機能', '能'], ['จรง', 'รง', 'ง'], ['الم', 'لمل', 'ملف'], [])
    """
    size, letters = _cut_size(run)
    if is_glued(run):
        return _parts(letters, size)
    return [letters[start : start + size] for start in range(len(letters))]


def query_terms(run: str) -> tuple[list[str], bool]:
    """Return the terms that a run is looked for by, and whether it is but the beginning of one.

    A word that has spaces around it is looked for as a whole, too.

    Example:
        >>> query_terms("検索機能"), query_terms("能"), query_terms("الملف")
        ((['検索', '索機', '機能'], False), (['能'], True), (['الم', 'لمل', 'ملف'], False))
    """
    size, letters = _cut_size(run)
    if is_glued(run):
        return _parts(letters, size), False
    whole = [letters[start : start + size] for start in range(len(letters) - size + 1)]
    return whole or [letters] * bool(letters), not whole


def _parts(word: str, size: int) -> list[str]:
    """Return the overlapping parts of a word that is longer than a part."""
    return [word[start : start + size] for start in range(len(word) - size + 1)] if len(word) > size else []


def is_glued(run: str) -> bool:
    """Return whether a run is of a script that has spaces between words, and letters glued to them.

    Example:
        >>> is_glued("שלום"), is_glued("検索")
        (True, False)
    """
    return "\u0590" <= run[0] <= "\u0dff" or "\u1200" <= run[0] <= "\u139f"


def _cut_size(run: str) -> tuple[int, str]:
    """Return how many letters a term of a run has, and its letters."""
    if not "\u0590" <= run[0] <= "\u17ff" or "\u1100" <= run[0] <= "\u11ff":
        return 2, run
    return 3, "".join(filter(str.isalnum, run))


def cut_word(word: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a word and whether each is a run that is cut into terms.

    Example:
        >>> list(cut_word("Obsidian同期v2"))
        [('Obsidian', False), ('同期', True), ('v2', False)]
    """
    end = 0
    for run in () if word.isascii() else _CUT_RUN.finditer(word):
        if run.start() > end:
            yield word[end : run.start()], False
        yield run.group(), True
        end = run.end()
    if end < len(word):
        yield word[end:], False


def extra_terms(text: str) -> str:
    """Return the extra search terms of a text: the overlapping terms of words that are cut, Latin parts apart.

    Example:
        >>> extra_terms("use Obsidian同期 here")
        'Obsidian 同期 期'
    """
    terms: list[str] = []
    for word in MARKED_WORD.findall(to_nfc(text)):
        if not word.isascii():
            terms += _terms_of_word(word)
    return " ".join(terms)


# Where words have spaces between them, most come again.
@functools.lru_cache(maxsize=16_384)
def _terms_of_word(word: str) -> tuple[str, ...]:
    """Return the terms of a word that is cut, those of its other parts too; none of any other word."""
    if not needs_cutting(word):
        return ()
    pieces = cut_word(word)
    return tuple(term for piece, is_run in pieces for term in (run_terms(piece) if is_run else (piece,)))


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


def word_tokens(text: str) -> frozenset[str]:
    """Return the set of words of a text, for comparing texts of any script.

    Example:
        >>> sorted(word_tokens("Привет, мир! 日本語"))
        ['мир', 'привет', '日本', '本語', '語']
    """
    text = to_nfc(text)
    if not has_cjk(text):
        return frozenset((_WORD if text.isascii() else MARKED_WORD).findall(text.casefold()))
    pieces = (piece for word in MARKED_WORD.findall(text.casefold()) for piece in cut_word(word))
    return frozenset(
        term for piece, is_run in pieces for term in (run_terms(piece) if is_run and not is_glued(piece) else (piece,))
    )


def to_nfc(text: str) -> str:
    """Return a text in the form NFC of Unicode, as most programs write it; macOS writes letters and their marks apart.

    Example:
        >>> to_nfc("u\u0308ber") == "\u00fcber"
        True
    """
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFC", text)


def name_key(name: str) -> str:
    """Return what names are compared by: a name in lower case, with its letters and marks as one sign each.

    Example:
        >>> name_key("U\u0308ber") == name_key("\u00dcber")
        True
    """
    return to_nfc(name.casefold())


def without_marks(text: str) -> str:
    """Return a text without signs between its letters, so that the terms of scripts with marks are in it.

    Example:
        >>> without_marks("हिन्दी (x)")
        'हनद x'
    """
    return _SIGNS.sub("", text)


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return how much of two token sets is shared; two empty sets share nothing.

    Example:
        >>> jaccard(frozenset("abc"), frozenset("bcd")), jaccard(frozenset(), frozenset())
        (0.5, 0.0)
    """
    if a.isdisjoint(b):
        return 0.0
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)
