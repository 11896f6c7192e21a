"""How people take back what they said: by name, by pointing at their own words, by telling of a mix-up.

English, German, French, Spanish and Japanese; what was just done is put back in ten languages.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

from memory_kb.expressions import lazy_compile

#: `own` words that nobody else said, a `mixup` of the speaker, or `that` which may be anything said last.
Pointing = Literal["own", "mixup", "that"]

_I = re.IGNORECASE
_NOT_TOLD = r"(?<!don't )(?<!dont )(?<!do not )(?<!not )(?<!never )(?<!to )(?<!can )(?<!will )"
_DROP = rf"{_NOT_TOLD}\b(?:scratch|scrap|strike|disregard|forget|ignore|never ?mind|undo|drop|cancel|withdraw|take back)(?: about)?"
_SAID = (
    r"(?:what|everything|anything|all|the thing)(?: that)? i(?:'ve| have)? (?:just |earlier |before )?(?:said|wrote|written|told you|asked|decided|"
    r"mentioned)(?: (?:earlier|before|just now))?"
)
_NOUN = r"(?:rule|one|instruction|preference|convention|remark|comment|sentence|request|message|note)"
_OF = r"(?:about|on|regarding|concerning|with)"
_ABOUT = r"(?P<about>[^.,;:!?。、！？]{1,60}?)"
_STOP = r"(?=\s*(?:[.,;:!?…—–。、！？]|- |$|(?:please|again|then|too|completely|entirely|bitte|wieder)\b))"
_OTHER_PLACE = (
    r"(?:(?:another|a different|the other|my other|our other|an old|the old|my old|our old) (?:[\w-]+ ){0,2}?(?:window|chat|tab|session|"
    r"terminal|projects?|repos?|repository|code ?base|teams?|clients?|customers?|agent|conversation|company|job|app|service|bot|channel|ticket|"
    r"colleagues?|style guide)|(?:somebody|someone) else|(?:my|our) (?:colleagues?|boss|java|mobile|\w+ style guide))\b"
)
_END = r"(?=\s*(?:[.,;:!…—–]|- |$|(?:please|again|then|too|completely|entirely)\b))"
_WINDOW = r"(?:window|chat|tab|terminal|repo|repository|project|session|conversation|thread|code ?base|channel)"
_OTHER_DE = r"(?:fürs|für (?:das|ein|mein|unser|einen|den)) ander\w+\b|\b(?:ein|das) ander\w+ (?:projekt|fenster|repo|repository)"


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(lazy_compile(one.replace("ABOUT", _ABOUT), _I) for one in patterns)


_NAMED = _compiled(
    rf"{_DROP} {_SAID} {_OF} ABOUT{_STOP}",
    rf"{_DROP} (?:(?:that|this)|(?:that|this|the|my) (?:last )?(?:rule|thing|bit|part|remark|comment|point|stuff|story|instruction)) {_OF}"
    rf" ABOUT{_STOP}",
    rf"{_DROP} (?:the|that|my|this) ABOUT (?:rule|thing|bit|part|remark|instruction|preference|convention|stuff|business){_STOP}",
    rf"\b{_SAID} {_OF} ABOUT (?:was|is|were|does not|doesn't|no longer|holds|applies|can be)\b",
    rf"\b(?:the|my|that) ABOUT(?: (?:rule|thing|bit|part|convention|preference|stuff|one))? (?:is|was|were|are) (?:actually |really |only |meant |"
    rf"intended )*(?:for|from|about|of|in) {_OTHER_PLACE}",
    rf"\bi was (?:wrong|mistaken) (?:about|on|with|regarding) ABOUT{_STOP}",
    r"\b(?:vergiss|vergesst|ignoriere?|streiche?|verwirf) (?:bitte )?(?:das|die sache|den teil|die regel|den hinweis|die ansage) (?:mit|über|zu[rm]?|"
    rf"bezüglich|wegen) ABOUT{_STOP}",
    r"\bwas ich (?:\w+ )?(?:über|zu[rm]?|bezüglich|mit|von) ABOUT (?:gesagt|geschrieben|gemeint)\b",
    r"(?<!n')\b(?:oublie[zr]?|ignore[zr]?|laisse[zr]? tomber) (?!pas\b)(?:ce que j'ai (?:dit|écrit)|l'histoire|la règle|la consigne|le truc)"
    rf" (?:sur|à propos d(?:e|es|u)|au sujet d(?:e|es|u)|concernant|avec|d(?:e|es|u)) ABOUT{_STOP}",
    r"(?<!no )\b(?:olvida|olvide|ignora|ignore|descarta) (?:lo(?: que (?:he dicho|dije|he escrito|escribí))?|la regla|la norma) (?:de|del|sobre|"
    rf"respecto a|acerca de) ABOUT{_STOP}",
    r"ABOUT(?:の件|のこと|の話|のルール|について言ったこと|について言った件)(?:は|を)?(?:忘れて|無視して|取り消|なし|無し|撤回)",
)
#: What is named, and only for now.
_FOR_ONCE = lazy_compile(
    r"\b(?:for now|for the moment|right now|today|this time|for this|just here|in (?:the|this) \w+ (?:folder|file|module))\b",
    _I,
)
_NO_NAME = lazy_compile(
    r"(?:(?:last|previous|first|earlier|whole|other|new|old|one|two|few|things?|message|remark|rule) ?)+", _I
)
_OWN = lazy_compile(
    rf"{_DROP} (?:(?:that|it|this|the|my) (?:last |previous |earlier |first )?{_NOUN}){_END}|{_DROP} {_SAID}(?! {_OF}\b)"
    r"|\b(?:i )?take (?:that|it|this) back\b|\bi misspoke\b|\bforget (?:that )?i (?:ever )?said (?:anything|that|it|this)(?!\w)|\blet's not do"
    r" (?:that|it) "
    r"after all\b"
    r"|\b(?:vergiss|ignoriere?|streiche?),? (?:bitte )?was ich (?:\w+ )?(?:gesagt|geschrieben)|\b(?:das|es) nehm\w* ich zurück|\bich nehm\w*"
    r" (?:das|es) "
    r"zurück|\b(?:vergiss|ignoriere?|streiche?) (?:bitte )?(?:die|meine) (?:letzte |vorige )?(?:nachricht|ansage|regel|anweisung)"
    r"|(?<!n')\b(?:oublie[zr]?|ignore[zr]?) (?:ce que j'ai (?:dit|écrit)(?! (?:sur|à|au|concernant)\b)|mon (?:dernier )?message)|\bje retire ce que"
    r"|\b(?:olvida|ignora) (?:lo que (?:he dicho|dije)(?! sobre\b)|mi (?:último )?mensaje)|\bretiro lo dicho\b"
    r"|(?:さっき|今|先ほど|前)の?(?:は|話|発言|指示|メッセージ|ルール)?(?:は|を)?(?:忘れて|無視して|なし|無し|取り消|撤回)|撤回します",
    _I,
)
_MIXUP = lazy_compile(
    rf"\b(?:that one|that|it|this|(?:that|the|my last) message)(?:'s| was| is) (?:actually |really |only |meant |intended )*for {_OTHER_PLACE}"
    rf"|^(?:\W*(?:oops|sorry|uh|um|ugh|argh|oh|ah|no|wait|damn|my (?:mistake|bad|fault)|wrong)\b)*\W*(?:wrong|different|another) {_WINDOW}\b"
    r"|\bi (?:(?:just |must have |have )?(?:mixed|mix) (?:it|that|this|them|these|things) up\b|(?:got|was|am) (?:\w+ )?(?:confused|mixed up) with|"
    r"(?:was |am )?(?:just )?(?:confus\w+|mistook|mistaking) (?:it|that|this|them|two \w+)\b|mixed up (?:two|the two|the) (?:projects|repos|teams"
    r"|windows)|"
    r"was (?:just )?thinking of (?:the|another|a different|my|our|some))"
    r"|\bthat was (?:\w+ )?(?:nonsense|rubbish|bullshit|a brain ?fart|(?:silly|stupid) of me|my (?:mistake|fault|error))\b"
    rf"|\bfalsche[sr]? (?:fenster|projekt|repo|repository|chat)\b|\bwar {_OTHER_DE}\b|\bich hab\w* (?:mich|das|es|da was|da etwas) (?:da"
    rf" )?(?:vertan|geirrt|"
    r"verwechselt)|\bda hab\w* ich mich (?:vertan|geirrt)|\bdas war quatsch\b"
    r"|\bje me suis trompée?\b|\bmauvaise? (?:fenêtre|projet|dépôt)|\bc'était pour une? autre\b|\bj'ai confondu\b|\bau temps pour moi\b"
    r"|\bme (?:he )?(?:equivoqué|equivocado|confundí|confundido)\b|\bera para otr[oa]\b|\b(?:ventana|proyecto) equivocad[oa]\b"
    r"|別の(?:プロジェクト|リポジトリ|ウィンドウ|チャット)(?:と|の)|勘違い|混同",
    _I,
)
_THAT = lazy_compile(
    rf"{_DROP} (?:that|it|this){_END}|^(?:(?:actually|oh|ah|no|ok(?:ay)?|well|hm+|sorry)[\s,.!]+)*never ?mind{_END}"
    r"|\b(?:vergiss|streich|ignorier|lass)e? (?:das|es)(?: (?:wieder|bitte|einfach))?(?=\s*(?:[.,;!]|$))|(?:^|\bach |\bach, )(?:nein|nee|nö)?,?"
    r" ?doch nicht\b"
    r"|(?<!n')\boublie[zr]? (?:ça|cela)\b|\blaisse[zr]? tomber\b|\bfinalement,? non\b"
    r"|\bolvídal[oa]\b|\bignóral[oa]\b|\b(?:olvida|ignora) eso\b|\bmejor no\b"
    r"|やっぱり(?:いい|やめ|なし|無し)|^忘れて|なしで[。お]?",
    _I,
)
# How somebody has put back what was just done, in ten languages.
_BEFORE_UNDO = (
    r"(?:(?:please|pls|so|then|ok(?:ay)?|just|no|hm+|uh|oh|ah|eh|mm+|wait|actually|nah|nope|bitte|nein|nee|ach|doch|also|non|finalement|en fait"
    r"|mejor|al final|não|melhor|meglio|anzi|toch|いや|やっぱり?|还是|不|算了)\b[\s,.!…、，]*)*+"
)
# That, and no other thing by name.
_IT = (
    r"(?=\s*(?:$|[.,;:!?…—–-]|(?:it|that|this|them|please|pls|again|all|everything|das|es|bitte|ça|cela|tout|comme|stp|eso|todo|como|por|isso|tudo|tutto"
    r"|come|per)\b))"
)
_UNDO = lazy_compile(
    rf"^{_BEFORE_UNDO}(?:(?:revert|undo|roll(?: (?:it|that|this))? back)\b{_IT}|(?:put|change|switch|set|turn) (?:it|that|this|them) back\b"
    r"|back to (?!work\b|the (?:old|previous) )\S|take (?:it|that|this|them) (?:back )?out\b"
    rf"|(?:mach|nimm|stell|dreh|setz|bau) (?:das|es)(?: (?:bitte|wieder|mal|doch))* (?:rückgängig|zurück|raus)\b"
    rf"|(?:wieder )?(?:rückgängig{_IT}|zurück auf)\b"
    rf"|(?:remets|remettez|annule|annulez|reviens|revenez)\b(?:[- ](?:le|la|les))?{_IT}|enl[eè]ve[sz]?[- ](?:le|la|les|ça)\b{_IT}"
    rf"|(?:revierte|revertí|deshaz|deshacé|quítal[oa]|déjal[oa]|reverte|desfaz|desfaça|tira|annulla|ripristina|rimettil[oa]|toglil[oa])\b{_IT}"
    r"|(?:vuelve|volvé|torna) a \d|volta (?:pra|para) \d"
    r"|(?:zet|draai|haal|maak) (?:het|dat)(?: (?:weer|maar|even))* (?:terug|weg|eruit|ongedaan)\b"
    r"|[^。、]{0,12}(?:元に戻|戻して|戻そう|取り消)|(?:还原|恢复|改回|撤销|回退|撤回))",
    _I,
)
#: A sentence that says nothing but that something comes.
INTERJECTION = lazy_compile(
    r"(?:(?:oh|ah|hm+|uh|um|ugh|argh|oops|wait|no+|nope|yes|right|ok(?:ay)?|well|sorry|damn|actually|true|good point|really|you(?:'re| are) right"
    r"|ach|nee|"
    r"nein|äh|moment|pardon|non|perdón|ay|すみません|あ|ああ|いや|いえ)[\s,.!…。、]*)+",
    _I,
)
_LEAD = (
    r"(?:oh|ah|hm+|no+|wait|sorry|oops|actually|hang on|hold on|well|but|or|um|uh|nein|nee|warte|moment|ach|non|attends|espera|perdón|pardon|"
    r"i was (?:wrong|mistaken)|my (?:mistake|bad)|of course)"
)
_STRONG = (
    r"(?:i was (?:wrong|mistaken)|my (?:mistake|bad)|no,? wait|wait,? no|hm+,? no|oh,? no|sorry,? no|no,? sorry|hang on|hold on|actually|oops"
    r"|correction|"
    r"i mean(?:t)?|make (?:that|it)|rather|nein,? warte|quatsch|ich meine?|vielmehr|non,? attends|plutôt|je voulais dire|no,? espera|mejor dicho|"
    r"quise decir)"
)
_PREPOSITION = (
    r"(?:by|to|in|at|after|before|with|on|from|via|under|as|for|nach|auf|mit|bei|vor|par|à|en|avec|por|a|con|como)"
)
_FRAGMENT = lazy_compile(
    rf"^(?:{_LEAD}[\s,.!:…]+)*{_STRONG}[\s,.!:…]+(?:{_LEAD}[\s,.!:…]+)*(?P<way>{_PREPOSITION}) (?P<what>(?!be\b|the way\b|now\b"
    rf"|first\b)[\w.+#/-]+(?: "
    r"[\w.+#/-]+){0,2}?)(?:,? (?:please|instead|of course|not \w+ [\w-]+))?\W*$",
    _I,
)
_MEANT = lazy_compile(
    rf"^(?:{_LEAD}[\s,.!:…]+)*(?:i mean(?:t)?|make (?:that|it)|correction:?|ich meine?|je voulais dire|quise decir)[\s,:]+(?!(?:the|this|that"
    rf"|these|those|it|"
    r"to|you|your|my|what|how|in|on|der|die|das|den|le|la|les|el|los|un|une|una)\b)(?P<what>[\w.+#/-]+(?: [\w.+#/-]+){0,2})(?:,? (?:please|instead|"
    r"of course|not [\w-]+))?\W*$",
    _I,
)


# The same sentence is held against all that was stated before.
@functools.lru_cache(maxsize=64)
def names(sentence: str) -> tuple[str, ...]:
    """Return what somebody names that they take back.

    Example:
        >>> names("Scratch that about the tabs, I mixed it up."), names("Don't forget what I said about tabs.")
        (('the tabs',), ())
    """
    if _FOR_ONCE.search(sentence):
        return ()
    found = (one["about"].strip() for pattern in _NAMED for one in pattern.finditer(sentence))
    return tuple(about for about in found if not _NO_NAME.fullmatch(about))


@functools.lru_cache(maxsize=64)
def points(sentence: str) -> Pointing | None:
    """Tell how a sentence points back at what was said last, if it does.

    Example:
        >>> points("Forget what I said."), points("Oops, wrong window."), points("Ignore that."), points("Ignore the warnings.")
        ('own', 'mixup', 'that', None)
    """
    return (
        "own"
        if _OWN.search(sentence)
        else "mixup"
        if _MIXUP.search(sentence)
        else "that"
        if _THAT.search(sentence)
        else None
    )


def undoes(sentence: str) -> bool:
    """Tell whether somebody has put back what was just done.

    Example:
        >>> undoes("hm no actually revert, the kiosks need it"), undoes("nein, mach das wieder rückgängig"), undoes("the revert button is gone")
        (True, True, False)
    """
    return _UNDO.match(sentence) is not None


def replace_in(kept: str, sentence: str) -> str | None:
    """Return a statement with what somebody puts in the place of a part of it; "" where they do not say of which.

    Example:
        >>> replace_in("Always sort by date.", "No wait, by amount"), replace_in("Always use CET.", "sorry, I meant UTC")
        ('Always sort by amount.', '')
        >>> replace_in("Always sort by date.", "No wait, by the way") is None
        True
    """
    found = _FRAGMENT.match(sentence)
    if found:
        part = lazy_compile(rf"\b{found['way']} (?:(?:the|a|an) )?[\w.+#/-]+(?<![.])", _I)
        return part.sub(lambda _: f"{found['way']} {found['what']}", kept, count=1) if part.search(kept) else None
    return "" if _MEANT.match(sentence) else None
