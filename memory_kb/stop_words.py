"""Stop words of nine languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter


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
    "id": _words(
        """ada adalah agar akan aku anda apa apakah atau bagaimana bagaimanakah bagi bahwa banyak beberapa berapa berapakah bisa bukan dalam
        dan dapat dari daripada dengan di dia dimana dimanakah hanya harus ia ialah ini itu jika juga kah kami kapan kapankah karena kau ke
        kenapa kepada ketika kita lagi lalu lebih maka mana manakah masih mengapa mereka merupakan nya oleh pada para pernah saat saja sampai
        sangat saya sebagai sebelum sebuah secara sedang sejak selama semua seorang seperti serta sesudah setelah siapa siapakah suatu sudah
        supaya tapi telah tentang tersebut tetapi tidak untuk yaitu yakni yang"""
    ),
}


def stop_words(words: Sequence[str]) -> frozenset[str]:
    """Return the stop words of the language of a query.

    The language is the one that the query's words look most like, else English. One word proves
    nothing: `c` and `die` are words of other languages that may carry meaning.

    Example:
        >>> "die" in stop_words("wie kann ich die notiz finden".split()), "die" in stop_words("did the dog die".split())
        (True, False)
        >>> sorted(stop_words("kapan borobudur dibangun dan oleh siapa".split()) & {"kapan", "dibangun", "siapa"})
        ['kapan', 'siapa']
    """
    return _closest(words) or _LISTS["en"]


def is_english(words: Sequence[str]) -> bool:
    """Return whether the words of a query look like English, or like no language at all.

    Example:
        >>> is_english("naïve use of the cache".split()), is_english(["cache"]), is_english(["café"])
        (True, True, False)
    """
    known = _closest(words)
    return known is _LISTS["en"] or (known is None and all(word.isascii() for word in words))


def is_surely_english(words: Sequence[str]) -> bool:
    """Return whether words hold more stop words of English than of any other language.

    Example:
        >>> [is_surely_english(text.split()) for text in ("fix the upload test", "was ist in der cache", "upload cache")]
        [True, False, False]
    """
    said = {name: sum(word in known for word in words) for name, known in _LISTS.items()}
    return all(said["en"] > count for name, count in said.items() if name != "en")


def is_stop_word(word: str) -> bool:
    """Return whether a word is a stop word of any of the languages."""
    return any(word in known for known in _LISTS.values())


def _closest(words: Sequence[str]) -> frozenset[str] | None:
    known, found = max(((known, sum(word in known for word in words)) for known in _LISTS.values()), key=itemgetter(1))
    return known if found > 1 else None
